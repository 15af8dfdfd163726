#include "collect/to_file.h"

#include "collect/shared_filter.h"
#include "trace/writer.h"

#include <chrono>

#include <fmt/format.h>

namespace heddle::collect {

ToFileResult write_session(Session& session, const ToFileOptions& options) {
  ToFileResult result;
  Result<std::unique_ptr<TraceWriter>> writer =
      TraceWriter::create(options.path, session.catalog());
  if (!writer.ok()) {
    result.problem = writer.error().message + "; the program goes on unrecorded";
    session.abandon();
    return result;
  }
  SharedFilter filter;
  if (options.shared_only) session.filter_by(&filter);
  auto last_flush = std::chrono::steady_clock::now();
  for (;;) {
    Result<std::span<const Event>> batch = session.next();
    if (!batch.ok()) {
      result.problem = batch.error().message;
      break;
    }
    if (batch->empty()) break;
    Status status = (*writer)->add(*batch);
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
  session.filter_by(nullptr);
  result.events = (*writer)->events();
  result.bytes = (*writer)->bytes();
  result.threads = session.catalog().threads.size();
  result.instrumented = session.saw_units();
  return result;
}

}  // namespace heddle::collect
