# FRD in two passes with a file of marks in between; marked automatically it agrees with race.
cat >flag.txt <<'T'
var data 0x1000:4
var ready 0x2000:4
var count 0x3000:4
t1: w data @p.c:1 in producer
t1: w ready @p.c:2 in producer
t2: r ready @c.c:1 in consumer
t2: r data @c.c:2 in consumer
t1: w count @p.c:3 in producer
t2: w count @c.c:3 in consumer
T
expect 2 "$heddle" check flag.txt --detect frontier
complains '--marks'
expect 0 "$heddle" check flag.txt --detect frontier --marks app.marks
complains 'mark each as sync or data'
grep -q '^?' app.marks || fail "nothing to mark"
grep -q ready app.marks || fail "the flag is no frontier race"
grep data app.marks | grep -q 'p.c:1' && fail "data is ordered by the flag's conflict"

# Nothing marked: every conflict is a race.
expect 1 "$heddle" check flag.txt --detect frontier --marks app.marks
complains 'not marked'
sed -i '/ready/s/^?/sync/; /count/s/^?/data/' app.marks
expect 1 "$heddle" check flag.txt --detect frontier --marks app.marks
says 'count'
[ "$(grep -c '^data race' "$out")" = 1 ] || fail "the marked flag orders data"

cat >locks.txt <<'T'
var x 0x1000:4
var y 0x2000:4
t1: acq m
t1: w x @a.c:1 in f
t1: rel m
t1: w y @a.c:2 in f
t2: acq m
t2: w x @a.c:3 in g
t2: rel m
t3: w y @a.c:4 in h
T
expect 1 "$heddle" check locks.txt --detect race
grep '^data race' "$out" >race
expect 1 "$heddle" check locks.txt --detect frontier --mark-auto --marks auto.marks
grep '^data race' "$out" >frontier
same race frontier
grep -q '^sync' auto.marks || fail "the hand-over of the lock is marked as synchronisation"
grep -q '^data' auto.marks || fail "the race is marked as data"
