// How far a long reading has come, on standard error: only on a terminal, only after a second, and
// gone when it is over.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace heddle::cli {

class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `fraction` is negative when nobody knows.
  void update(std::uint64_t events, double fraction);
  // Before something else is written to the terminal.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  std::string what_;
  bool is_terminal_;
  bool shown_ = false;
  Clock::time_point started_;
  Clock::time_point next_;
};

}  // namespace heddle::cli
