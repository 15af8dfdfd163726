// A limit on the size of files holds for shared memory, too, and answers with a signal that would
// end the program. While this lives, it does not; the signal is taken out of the queue again.
#pragma once

#include "runtime/raw.h"

#include <signal.h>
#include <time.h>

namespace heddle::rt {

class NoSizeSignal {
 public:
  NoSizeSignal() {
    raw_syscall(SYS_rt_sigprocmask, SIG_BLOCK, as_long(&kSet), as_long(&before_), sizeof kSet);
  }
  ~NoSizeSignal() {
    if ((before_ & kSet) == 0) {
      const timespec none = {0, 0};
      raw_syscall(SYS_rt_sigtimedwait, as_long(&kSet), 0, as_long(&none), sizeof kSet);
    }
    raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, as_long(&before_), 0, sizeof kSet);
  }
  NoSizeSignal(const NoSizeSignal&) = delete;
  NoSizeSignal& operator=(const NoSizeSignal&) = delete;

 private:
  static constexpr uint64_t kSet = uint64_t{1} << (SIGXFSZ - 1);
  uint64_t before_ = 0;
};

}  // namespace heddle::rt
