# Never over the trace that is being read.
cp "$traces/lost_update.txt" a.heddle
expect 2 "$heddle" import a.heddle
complains "is the trace that is read"
one_line
ln a.heddle b
expect 2 "$heddle" export a.heddle -o b
same a.heddle "$traces/lost_update.txt"
