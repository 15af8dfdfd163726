expect 0 "$heddle" stats "$traces/lost_update.txt" --json
silent
says '"events": 23'
says '"acq": 4'
says '"name": "salary"'
says '"shared_and_written": 1'
if command -v python3 >/dev/null; then python3 -m json.tool "$out" >/dev/null || fail "not JSON"; fi
