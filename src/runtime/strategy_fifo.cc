// fifo: the default schedule itself. A thread runs until it blocks, ends or loses its turn; then
// the one runs that has been ready for longest.
#include "runtime/strategy.h"

namespace heddle::rt {

static const Strategy kFifo = {
    .name = "fifo",
    .help = "switch only when a thread blocks, ends or yields",
    .start = nothing,
    .next_point = never,
    .at_point = go_on,
    .after = first,
    .wake = first,
    .created = no_note,
    .yielded = no_note,
    .finish = nothing,
};
HEDDLE_STRATEGY(kFifo)

}  // namespace heddle::rt
