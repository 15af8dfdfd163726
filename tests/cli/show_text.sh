# The notation round-trips, and a part of a trace is a trace.
expect 0 "$heddle" show "$traces/lost_update.txt" --text
cp "$out" one.txt
expect 0 "$heddle" show one.txt --text
same one.txt "$out"
expect 0 "$heddle" show one.txt --text --kind w
cp "$out" writes.txt
expect 0 "$heddle" stats writes.txt
says "events     3"
