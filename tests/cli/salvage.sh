# What comes before the damage is delivered on request, with a warning.
printf 'T1|r(x)|1\nT1|r(x)|2\nT1|read x\nT1|r(x)|3\n' >bad.std
expect 0 "$heddle" stats bad.std --salvage
says "events     2"
complains "heddle: warning: bad.std:3:"
one_line
expect 0 "$heddle" import bad.std --salvage -o good.heddle
expect 0 "$heddle" stats good.heddle
says "events     2"
silent
head -c -30 good.heddle >cut.heddle
expect 2 "$heddle" show cut.heddle
complains "heddle: cut.heddle: "
expect 0 "$heddle" show cut.heddle --salvage
complains "heddle: warning: cut.heddle: "
