expect 0 "$heddle" export "$traces/lost_update.std" --format std
silent
same "$out" "$traces/lost_update.std"
# What STD cannot express is counted in one warning …
expect 0 "$heddle" export "$traces/lost_update.txt" --format std
complains "warning: $traces/lost_update.txt: 1 event that STD cannot express left out (1 outcome)"
one_line
says "salary|r(balance)|bank.c:11"
lines 18
# … or refused.
expect 2 "$heddle" export "$traces/lost_update.txt" --format std --strict -o out.std
complains "STD would not be the whole trace"
one_line
[ ! -e out.std ] || fail "out.std was left"
