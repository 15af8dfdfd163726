expect 0 "$heddle" show "$traces/lost_update.txt"
silent
says "event  thread       kind             object"
says "        0  t0 main      w                balance                  = 100        bank.c:40 in main"
says "        5  t1 salary    acq              lock                                  bank.c:10 in deposit"
says 'outcome          assertion 6 "balance == 1150"'
lines 24
