// One run of a program under control, recording nothing: as fast as the machine starts processes.
//
// The runtime leaves the outcome in a page that it shares with us (abi/status.h); what is not there
// (kill -9, a program without the runtime) is known from the process's own status.
#pragma once

#include "abi/status.h"
#include "base/result.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace heddle::hunt {

enum class RunResult { kPassed, kFailed, kCrashed, kDeadlocked, kHung };
inline constexpr int kRunResults = 5;
const char* run_result_name(RunResult result);

struct RunRequest {
  std::vector<std::string> command;                          // looked up in PATH
  std::vector<std::pair<std::string, std::string>> runtime;  // keys and values of HEDDLE_OPTIONS
  std::string preload;   // the runtime library, for a program that was not built with it
  bool quiet = true;     // its output goes nowhere
  unsigned timeout = 0;  // seconds; 0: none. The runtime reports the hang; we make sure of it
};

struct RunReport {
  RunResult result{};
  int value = 0;            // exit status or signal number
  bool controlled = false;  // the runtime was there
  std::string text;         // of the outcome: the assertion, who waits for whom
  std::string diverged_at;  // of a replay; empty: it stayed on its schedule
  std::uint64_t points = 0;
  std::uint64_t switches = 0;
  std::uint64_t hash = 0;
  std::uint32_t threads = 0;
  std::uint32_t seized = 0;
  std::uint32_t sources = 0;  // enum heddle_source
};

// "exit status 1", "SIGSEGV", "assertion `x > 0` failed" …
std::string describe(const RunReport& report);

// A page for one run after the other.
class StatusPage {
 public:
  static Result<StatusPage> make();
  StatusPage(StatusPage&& other) noexcept;
  StatusPage(const StatusPage&) = delete;
  StatusPage& operator=(const StatusPage&) = delete;
  ~StatusPage();

  int fd() const { return fd_; }
  heddle_status* status() { return status_; }
  void clear();

 private:
  StatusPage() = default;
  int fd_ = -1;
  heddle_status* status_ = nullptr;
};

Result<RunReport> run_controlled(const RunRequest& request, StatusPage& page);

// The parts of it. `kept_fd`: another descriptor that the program inherits; -1: none.
Result<int> start_program(const RunRequest& request, const StatusPage& page, int kept_fd = -1);
RunReport report_of(int wait_status, bool killed, const heddle_status& page);

// Where libheddle_rt.so is, relative to the command `heddle`; empty when it is not found.
std::string find_runtime();

}  // namespace heddle::hunt
