#include "runtime/descriptors.h"

#include "runtime/raw.h"

#include <sys/time.h>

namespace heddle::rt {
namespace {

constexpr int kMostDescriptors = 65536;
bool g_internal[kMostDescriptors];

}  // namespace

bool descriptor_is_external(int fd) {
  return fd >= 0 && (fd >= kMostDescriptors || !g_internal[fd]);
}

void descriptor_opened(int fd, bool internal) {
  if (fd >= 0 && fd < kMostDescriptors) g_internal[fd] = internal;
}

void descriptors_shared() {
  for (bool& internal : g_internal) internal = false;
}

bool signals_may_come() {
  itimerval timer = {};
  raw_syscall(SYS_getitimer, ITIMER_REAL, as_long(&timer));
  return timer.it_value.tv_sec != 0 || timer.it_value.tv_usec != 0;
}

}  // namespace heddle::rt
