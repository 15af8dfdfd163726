# A line that does not parse is an error with its number; nothing is written.
printf 'T1|r(x)|1\nT1|r(x)|2\nT1|read x\n' >bad.std
expect 2 "$heddle" import bad.std
complains 'heddle: bad.std:3: found `read x`, expected op(operand)|location'
one_line
[ ! -e bad.heddle ] || fail "bad.heddle was left"
printf 't1: r x\nt1: frob y\n' >bad.txt
expect 2 "$heddle" import bad.txt
complains 'heddle: bad.txt:2: found `frob`, expected an event'
expect 2 "$heddle" export bad.txt -o out.txt
[ ! -e out.txt ] || fail "out.txt was left"
