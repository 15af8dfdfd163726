# ThreadSanitizer's files load unchanged; several files; pairs; expiry; bad lines are reported and
# skipped; entries that match nothing are listed.
cat >races.txt <<'T'
var a 0x1000:4
var b 0x2000:4
t1: w a @a.c:1 in producer
t2: w a @a.c:2 in consumer
t1: w b @b.c:1 in logger
t2: w b @b.c:2 in flusher
T
expect 1 "$heddle" check races.txt --detect race
says 'data race'
[ "$(grep -c '^data race' "$out")" = 2 ] || fail "there are two races"

printf '# of ThreadSanitizer\nrace:producer\nmutex:whatever\nthread:whatever\n' >tsan.supp
expect 1 "$heddle" check races.txt --detect race --suppressions tsan.supp
says '1 suppressed'
[ "$(grep -c '^data race' "$out")" = 1 ] || fail "one race is left"
printf 'race:logger\n' >second.supp
expect 0 "$heddle" check races.txt --detect race --suppressions tsan.supp --suppressions second.supp
says '2 suppressed'

printf 'pair:producer|consumer\npair:logger|consumer\n' >pairs.supp
expect 1 "$heddle" check races.txt --detect race --suppressions pairs.supp
says '1 suppressed'
complains 'pairs.supp:2'

printf 'race:producer until=2001-01-31\nrace:logger until=2999-01-31\n' >dated.supp
expect 1 "$heddle" check races.txt --detect race --suppressions dated.supp
says '1 suppressed'
complains 'dated.supp:1'
complains 'expired'

printf 'race:producer\nthis is no suppression\nrace:logger until=someday\n' >bad.supp
expect 1 "$heddle" check races.txt --detect race --suppressions bad.supp
complains 'bad.supp:2'
complains 'bad.supp:3'
says '1 suppressed'

printf 'race:nobody\n' >unused.supp
expect 1 "$heddle" check races.txt --detect race --suppressions unused.supp
complains 'unused.supp:1'
expect 2 "$heddle" check races.txt --detect race --suppressions missing.supp
one_line
complains 'missing.supp'
