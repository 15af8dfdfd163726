expect 2 "$heddle" export "$traces/lost_update.txt" --format binary
complains "give -o FILE"
one_line
