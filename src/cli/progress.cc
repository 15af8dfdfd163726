#include "cli/progress.h"

#include <cstdio>
#include <string_view>

#include <fmt/format.h>
#include <unistd.h>

namespace heddle::cli {

Progress::Progress(std::string what)
    : what_(std::move(what)),
      is_terminal_(::isatty(STDERR_FILENO) == 1),
      started_(Clock::now()),
      next_(started_ + std::chrono::seconds(1)) {}

void Progress::update(std::uint64_t events, double fraction) {
  if (!is_terminal_) return;
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + std::chrono::milliseconds(200);
  const double seconds = std::chrono::duration<double>(now - started_).count();
  std::string line =
      fmt::format("{}: {:.1f} million events", what_, static_cast<double>(events) / 1e6);
  if (fraction > 0.001) {
    line += fmt::format(", {:.0f} %, {:.0f} s left", 100 * fraction,
                        seconds / fraction * (1 - fraction));
  }
  fmt::print(stderr, "\r\x1b[K{}", line);
  std::fflush(stderr);
  shown_ = true;
}

void Progress::clear() {
  if (!shown_) return;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace heddle::cli
