# Transactions of a text trace and of STD: all violations, each with its cycle as witness.
cat >cycle.txt <<'T'
var x 0x1000:4
var y 0x2000:4
t1: begin
t1: r x @a.c:1
t2: begin
t2: w x @a.c:2
t2: w y @a.c:3
t2: end
t1: r y @a.c:4
t1: end
t1: begin
t1: r y @a.c:5
t2: w y @a.c:6
t1: w y @a.c:7
t1: end
T
expect 1 "$heddle" check cycle.txt --detect serializability
[ "$(grep -c '^not serializable' "$out")" = 2 ] || fail "there are two violations"
says 'a.c:4'
says 'a.c:7'
says 'B before A, which closes the cycle: thread 2 writes y (event 4), then thread 1 reads it (event 6).'
expect 1 "$heddle" check cycle.txt --detect serializability --json
says '"not-serializable"'
expect 0 "$heddle" export cycle.txt -o cycle.std
expect 1 "$heddle" check cycle.std --detect serializability,race

sed '/a.c:3/d; /a.c:6/d' cycle.txt >serial.txt
expect 0 "$heddle" check serial.txt --detect serializability
