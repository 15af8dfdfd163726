# A block that is freed and given to another thread is not shared.
cat >reuse.txt <<'END'
t1: alloc 0x5000:16
t1: w 0x5000:4
t1: free 0x5000:16
t2: alloc 0x5000:16
t2: w 0x5000:4
END
expect 0 "$heddle" stats reuse.txt
says "locations  2, 0 shared, 0 of them written"
