# Names of a stranger's trace give no orders to the terminal; into a file they go as they are.
printf 'thread t1 "\\x1b[2J"\nt1: w "a\\x1bb" @a.c:1\n' >evil.txt
expect 0 script -qec "'$heddle' show evil.txt" /dev/null
says '\x1b[2J'
says 'a\x1bb'
! grep -q $'\x1b' "$out" || fail "an escape character reached the terminal"
expect 0 "$heddle" show evil.txt
grep -q $'\x1b' "$out" || fail "the name is not as it was"
