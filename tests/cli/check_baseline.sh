# A baseline survives moved lines; --fail-on says what counts.
cat >before.txt <<'T'
var a 0x1000:4
var b 0x2000:4
t1: w a @a.c:1 in producer
t2: w a @a.c:2 in consumer
T
expect 1 "$heddle" check before.txt --detect race --write-baseline known
expect 0 "$heddle" check before.txt --detect race --baseline known
says '1 already in the baseline'
expect 0 "$heddle" check before.txt --detect race --baseline known --fail-on new
expect 1 "$heddle" check before.txt --detect race --baseline known --fail-on any
expect 0 "$heddle" check before.txt --detect race --fail-on none

sed 's/@a.c:1/@a.c:101/; s/@a.c:2/@a.c:207/' before.txt >after.txt
expect 0 "$heddle" check after.txt --detect race --baseline known
printf 't1: w b @a.c:9 in producer\nt2: r b @a.c:9 in consumer\n' >>after.txt
expect 1 "$heddle" check after.txt --detect race --baseline known
says '1 already in the baseline'
[ "$(grep -c '^data race' "$out")" = 1 ] || fail "only the new one is shown"

echo nonsense >broken
expect 2 "$heddle" check before.txt --detect race --baseline broken
complains 'broken'
expect 2 "$heddle" check before.txt --detect race --baseline missing
expect 2 "$heddle" check before.txt --detect race --fail-on sometimes
