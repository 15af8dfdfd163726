# Output that goes nowhere is an error, and never goes into another file.
got=0
"$heddle" show "$traces/lost_update.txt" 2>"$err" >&- || got=$?
[ $got = 2 ] || fail "status $got"
complains "heddle: standard output: cannot write"
got=0
"$heddle" show "$traces/lost_update.txt" 2>"$err" >/dev/full || got=$?
[ $got = 2 ] || fail "status $got"
complains "heddle: standard output: cannot write: No space left on device"
"$heddle" import "$traces/lost_update.txt" -o ok.heddle >&- || fail "import"
expect 0 "$heddle" stats ok.heddle
says "events     23"
