trace=$traces/lost_update.txt
expect 0 "$heddle" show "$trace" --thread 2
lines 9
expect 0 "$heddle" show "$trace" --thread t1 --thread gift
lines 17
expect 0 "$heddle" show "$trace" --kind r,w
lines 7
expect 0 "$heddle" show "$trace" --variable balance --thread salary
lines 3
says "= 1100"
expect 0 "$heddle" show "$trace" --variable lock
lines 9
expect 0 "$heddle" show "$trace" --variable 0x404041
lines 7
expect 0 "$heddle" show "$trace" --site bank.c:11
lines 3
expect 0 "$heddle" show "$trace" --site bank.c
lines 19
expect 0 "$heddle" show "$trace" --site ank.c
lines 1
expect 0 "$heddle" show "$trace" --range 3..5
lines 4
expect 0 "$heddle" show "$trace" --range 22..
lines 2
