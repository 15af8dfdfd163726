#include "runtime/record.h"

#include <unwind.h>

namespace heddle::rt {
namespace {

struct Walk {
  const void** frames;
  size_t capacity;
  size_t count;
};

_Unwind_Reason_Code visit(_Unwind_Context* context, void* opaque) {
  auto* walk = static_cast<Walk*>(opaque);
  if (walk->count == walk->capacity) return _URC_END_OF_STACK;
  int before = 0;
  const auto address = _Unwind_GetIPInfo(context, &before);
  if (address == 0) return _URC_END_OF_STACK;
  // The collector takes one off every frame to be inside the call; a frame that a signal
  // interrupted stands at its instruction already.
  walk->frames[walk->count++] = reinterpret_cast<const void*>(address + (before != 0 ? 1 : 0));
  return _URC_NO_REASON;
}

}  // namespace

size_t native_stack(const void** frames, size_t capacity) {
  const Inside guard;
  Walk walk = {frames, capacity, 0};
  _Unwind_Backtrace(visit, &walk);
  return walk.count;
}

}  // namespace heddle::rt
