#include "collect/to_file.h"

#include "collect/shared_filter.h"
#include "trace/writer.h"

#include <chrono>

#include <fmt/format.h>

namespace heddle::collect {
namespace {

class Writing : public EventTaker {
 public:
  explicit Writing(TraceWriter& writer) : writer_(writer) {}
  void on(std::span<const Event> batch, EventOrdinal) override {
    if (status.ok()) status = writer_.add(batch);
  }
  Status status = Done{};

 private:
  TraceWriter& writer_;
};

}  // namespace

ToFileResult write_session(Session& session, const ToFileOptions& options) {
  ToFileResult result;
  Result<std::unique_ptr<TraceWriter>> writer =
      TraceWriter::create(options.path, session.catalog());
  if (!writer.ok()) {
    result.problem = writer.error().message + "; the program goes on unrecorded";
    session.abandon();
    return result;
  }
  Writing writing(**writer);
  Result<std::unique_ptr<SharedFilter>> filter{std::unique_ptr<SharedFilter>()};
  if (options.shared_only) filter = SharedFilter::create(writing);
  if (!filter.ok()) {
    result.problem = filter.error().message + "; the program goes on unrecorded";
    session.abandon();
    return result;
  }
  EventTaker& taker = *filter != nullptr ? static_cast<EventTaker&>(**filter) : writing;
  auto last_flush = std::chrono::steady_clock::now();
  for (;;) {
    Result<std::span<const Event>> batch = session.next();
    if (!batch.ok()) {
      result.problem = batch.error().message;
      break;
    }
    if (batch->empty()) break;
    taker.on(*batch, 0);
    Status status = writing.status;
    // A reader may want to look while the program runs.
    if (const auto now = std::chrono::steady_clock::now();
        status.ok() && now - last_flush > std::chrono::seconds(2)) {
      status = (*writer)->flush();
      last_flush = now;
    }
    if (!status.ok()) {
      result.problem = fmt::format(
          "{}; the trace ends after {} events, the program goes on "
          "unrecorded",
          status.error().message, (*writer)->events());
      session.abandon();
      break;
    }
  }
  if (Status status = (*writer)->finish(); !status.ok() && result.problem.empty()) {
    result.problem = fmt::format("{}; the trace ends after {} events", status.error().message,
                                 (*writer)->events());
  }
  result.events = (*writer)->events();
  result.bytes = (*writer)->bytes();
  result.threads = session.catalog().threads.size();
  result.instrumented = session.saw_units();
  return result;
}

}  // namespace heddle::collect
