expect 0 "$heddle" stats "$traces/lost_update.txt"
silent
says "events     23"
says "threads    3"
says "locations  1, 1 shared, 1 of them written"
says "balance                       3 reads, 3 writes, 3 threads"
says "  acq                           4"
