# HEDDLE_OPTIONS: programs that are started without the command; keys nobody knows.
echo 'int x; int main(void) { x = 1; return 5; }' >small.c
expect 0 "$build/bin/heddle-cc" small.c -o small
expect 5 ./small
silent
ls -- *.heddle >/dev/null 2>&1 && fail "a trace although nobody asked"

export HEDDLE_OPTIONS=output=small.heddle
expect 5 ./small
silent
expect 0 env -u HEDDLE_OPTIONS "$heddle" show small.heddle
grep -qE ' w +x ' "$out" || fail "the write is missing"
tail -1 "$out" | grep -q 'exit 5' || fail "the end is missing"

# A collector of the program's own that does not answer: said once.
export HEDDLE_OPTIONS=output=none.heddle:heddle=/bin/true
expect 5 ./small
one_line
complains "the collector did not take this program's recording"

export HEDDLE_OPTIONS=output=other.heddle:colour=blue:level=accesses
expect 5 ./small
one_line
complains "there is no option \`colour\`"
export HEDDLE_OPTIONS=mode=memory:ring=many
expect 5 ./small
one_line
complains "ring=many is not a number"
export HEDDLE_OPTIONS=mode=memory:nonsense
expect 5 ./small
one_line
complains "nonsense"
export HEDDLE_OPTIONS=mode=memory:level=deep
expect 5 ./small
one_line
complains "level=deep"
export HEDDLE_OPTIONS=help=1:mode=memory
expect 5 ./small
complains "schedule=TEXT"
export 'HEDDLE_OPTIONS=output=with\:colon.heddle'
expect 5 ./small
[ -s with:colon.heddle ] || fail "an escaped colon"
export HEDDLE_OPTIONS=output=big.heddle:ring=1000000000
expect 5 ./small
unset HEDDLE_OPTIONS
