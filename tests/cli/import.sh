# Every format is read by content: a binary trace shows what its text shows.
expect 0 "$heddle" import "$traces/lost_update.std" -o a.heddle
silent
expect 0 "$heddle" show a.heddle
cp "$out" binary
expect 0 "$heddle" show "$traces/lost_update.std"
same "$out" binary
cp "$traces/lost_update.txt" plain.name
expect 0 "$heddle" import plain.name
expect 0 "$heddle" stats plain.heddle
says "(binary)"
says "events     23"
