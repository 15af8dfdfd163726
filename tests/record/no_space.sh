# No room, no permission: the program goes on, and the loss is reported in one line.
cat >steps.c <<'C'
#include <stdio.h>
#include <stdlib.h>
volatile int table[4096];
int main(int argc, char** argv) {
  long rounds = argc > 1 ? atol(argv[1]) : 1;
  unsigned at = 1;
  for (long i = 0; i < rounds; ++i) {
    at = at * 1664525u + 1013904223u;
    table[at >> 20]++;
  }
  printf("done\n");
  return 5;
}
C
expect 0 "$build/bin/heddle-cc" -O1 steps.c -o steps

expect 5 timeout 300 "$heddle" record -o /dev/full -- ./steps
says done
complains "/dev/full"
complains "goes on unrecorded"

# A disk that fills while the program runs: what was written before is a trace.
expect 5 timeout 300 bash -c 'ulimit -f 2000; exec "$0" record -o limited.heddle -- ./steps 3000000' "$heddle"
says done
complains "limited.heddle"
complains "the trace ends after"
[ "$(stat -c %s limited.heddle)" -le 2048000 ] || fail "the limit was not kept"
expect 0 "$heddle" stats --salvage limited.heddle
says "segment"

# The limit holds for shared memory, too: too small for the ring, the program runs unrecorded.
expect 5 timeout 300 bash -c 'ulimit -f 100; exec "$0" record -o small.heddle -- ./steps' "$heddle"
says done
complains "the run is not recorded; raise the limit"
grep -q "not built with" "$err" && fail "what has no room is not what was not built"

# Nothing was looked at: no verdict, in words or as a status.
expect 5 timeout 300 bash -c 'ulimit -f 100; exec "$0" run -- ./steps' "$heddle"
complains "the run is not recorded; raise the limit"
grep -q "nothing found" "$err" && fail "nothing was recorded, so nothing can be said"
expect 2 timeout 300 bash -c 'ulimit -f 100; exec "$0" run --fail-on new -- ./steps' "$heddle"
says done
complains "nothing was recorded"

expect 5 timeout 300 "$heddle" record -o no/such/folder/steps.heddle -- ./steps
says done
complains "no/such/folder/steps.heddle"
grep -q "not built with" "$err" && fail "what could not be written is not what was not seen"
mkdir closed
chmod 555 closed
if [ "$(id -u)" != 0 ]; then
  expect 5 timeout 300 "$heddle" record -o closed/steps.heddle -- ./steps
  complains "closed/steps.heddle"
fi
expect 5 timeout 300 "$heddle" record -o /sys/steps.heddle -- ./steps
says done
complains "/sys/steps.heddle"

# No address space for the filter's notes.
expect 5 timeout 300 bash -c 'ulimit -v 900000; exec "$0" record --shared-only -o shared.heddle -- ./steps' "$heddle"
says done
complains "ulimit -v unlimited"
one_line
