#include "hunt/observed_run.h"

#include "collect/launch.h"
#include "collect/session.h"
#include "hunt/controlled_run.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <optional>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>

namespace heddle::hunt {
namespace {

// Kills the program when the runtime did not end it in time itself.
class Deadline {
 public:
  Deadline(std::uint32_t pid, unsigned seconds) {
    if (seconds == 0) return;
    constexpr unsigned kGrace = 3;
    thread_ = std::thread([this, pid, limit = std::chrono::seconds(seconds + kGrace)] {
      std::unique_lock lock(mutex_);
      if (ended_.wait_for(lock, limit, [this] { return over_; })) return;
      expired_ = true;
      kill(static_cast<pid_t>(pid), SIGKILL);
    });
  }
  ~Deadline() { stop(); }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  // True: the program had to be killed.
  bool stop() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    ended_.notify_all();
    if (thread_.joinable()) thread_.join();
    return expired_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  bool expired_ = false;
  std::thread thread_;
};

struct Watched {
  bool accesses = false;
  bool units = false;
  std::vector<std::string> notes;
  std::optional<Event> outcome;
  std::string text;
};

// Passes everything on to the detector, and keeps what the run itself is judged by.
class Watch : public EventTaker {
 public:
  Watch(Detector& detector, const Catalog& catalog, Watched& out)
      : detector_(detector), catalog_(catalog), out_(out) {}

  void on(std::span<const Event> batch, EventOrdinal first) override {
    detector_.on(batch, first);
    for (const Event& event : batch) look(event);
  }
  EventOrdinal on_executions(const ExecutionBatch& batch, EventOrdinal first) override {
    for (const Execution& execution : batch.executions) {
      if (out_.accesses) break;
      out_.accesses = execution.shape != 0 && !batch.shapes[execution.shape]->items.empty();
    }
    for (const Event& event : batch.events) look(event);
    return detector_.on_executions(batch, first);
  }

 private:
  void look(const Event& event) {
    out_.accesses = out_.accesses || is_access(event.kind);
    if (event.kind != EventKind::kOutcome) return;
    out_.outcome = event;
    out_.text = catalog_.text(static_cast<StringId>(event.address));
  }

  Detector& detector_;
  const Catalog& catalog_;
  Watched& out_;
};

}  // namespace

std::string describe(const ObservedEnd& end) {
  switch (end.end) {
    case RunEnd::kExit:
      return fmt::format("exit status {}", end.value);
    case RunEnd::kSignal:
      return fmt::format("signal {}", end.value);
    case RunEnd::kAssertion:
      return fmt::format("assertion {}", end.text);
    case RunEnd::kHang:
      return "hang";
    case RunEnd::kDeadlock:
      return "deadlock";
    case RunEnd::kLost:
      return "unknown end";
  }
  return {};
}

Result<ObservedEnd> observe(const ObserveRequest& request,
                            const std::function<std::unique_ptr<Detector>(const Catalog&)>& make,
                            const std::function<void(Detector&, const Catalog&)>& done,
                            int* start_status) {
  collect::LaunchOptions options;
  options.command = request.command;
  options.runtime = request.runtime;
  options.output_fd = request.output_fd;
  if (request.timeout != 0) {
    options.runtime.emplace_back("timeout", std::to_string(request.timeout));
  }
  Result<StatusPage> page = StatusPage::make();
  if (page.ok()) {
    fcntl(page->fd(), F_SETFD, 0);  // the program inherits it
    options.runtime.emplace_back("status_fd", std::to_string(page->fd()));
  }
  int ignored = 0;
  Result<std::unique_ptr<collect::Launch>> launch =
      collect::Launch::start(options, start_status != nullptr ? start_status : &ignored);
  if (!launch.ok()) return launch.error();
  if (request.started) request.started();
  Deadline deadline((*launch)->pid(), request.timeout);

  std::vector<std::thread> threads;
  std::vector<std::unique_ptr<Watched>> watched;
  std::mutex mutex;
  std::size_t first_process = 0;
  std::string problem;
  const auto take_sessions = [&] {
    for (;;) {
      Result<std::unique_ptr<collect::Session>> session = (*launch)->next_session();
      if (!session.ok()) {
        problem = session.error().message;
        continue;
      }
      if (*session == nullptr) return;
      if ((*session)->pid() == (*launch)->pid()) first_process = watched.size();
      Watched& out = *watched.emplace_back(std::make_unique<Watched>());
      std::unique_ptr<Detector> detector;
      {
        const std::lock_guard lock(mutex);
        detector = make((*session)->catalog());
      }
      threads.emplace_back([&out, &mutex, &done, &request,
                            first = (*session)->pid() == (*launch)->pid(),
                            owned = std::move(*session), attached = std::move(detector)] {
        Watch watch(*attached, owned->catalog(), out);
        owned->deliver(watch);
        out.units = owned->saw_units();
        out.notes = owned->decoder().notes();
        const std::lock_guard lock(mutex);
        done(*attached, owned->catalog());
        if (first && request.decoded) request.decoded(owned->decoder());
      });
    }
  };
  // Children may outlive the program and make children of their own.
  for (std::size_t joined = 0;;) {
    take_sessions();
    if (joined == threads.size() && !(*launch)->connection_pending()) break;
    for (; joined < threads.size(); ++joined) threads[joined].join();
  }
  const collect::ProcessEnd process = (*launch)->wait();
  const bool killed = deadline.stop();
  if (!problem.empty()) return Error{problem};

  ObservedEnd out;
  out.value = process.value;
  out.shell_status = collect::shell_status(process);
  if (page.ok()) out.status = *page->status();
  out.end = process.signalled ? RunEnd::kSignal : RunEnd::kExit;
  // A runtime that started and did not call has said why.
  out.units = watched.empty() && out.status.magic == HEDDLE_STATUS_MAGIC;
  for (const auto& each : watched) {
    out.instrumented = out.instrumented || each->accesses;
    out.units = out.units || each->units;
    out.notes.insert(out.notes.end(), each->notes.begin(), each->notes.end());
  }
  if (first_process < watched.size() && watched[first_process]->outcome) {
    // The trace knows of hangs, deadlocks and assertions; of an exit status the kernel knows more.
    const Event& outcome = *watched[first_process]->outcome;
    const auto end = static_cast<RunEnd>(std::uint32_t{outcome.size});
    if (end != RunEnd::kExit && end != RunEnd::kLost) {
      out.end = end;
      out.value = static_cast<int>(outcome.value);
    }
    out.text = watched[first_process]->text;
  }
  if (killed) out.end = RunEnd::kHang;
  return out;
}

}  // namespace heddle::hunt
