# text → binary → text changes nothing.
expect 0 "$heddle" export "$traces/lost_update.txt"
cp "$out" once.txt
expect 0 "$heddle" export once.txt --format binary -o b.heddle
expect 0 "$heddle" export b.heddle --format text -o twice.txt
same once.txt twice.txt
