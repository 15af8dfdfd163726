#include "cli/trace_input.h"

#include "cli/messages.h"
#include "cli/progress.h"

#include <fmt/format.h>
#include <sys/stat.h>

namespace heddle::cli {

Status read_trace(const TraceInput& input, const TakeEvents& take) {
  OpenOptions options;
  options.salvage = input.salvage;
  Result<std::unique_ptr<EventSource>> source = open_trace(input.path, options);
  if (!source.ok()) return source.error();
  Progress progress("reading " + input.path);
  std::uint64_t count = 0;
  while (true) {
    Result<std::span<const Event>> batch = (*source)->next();
    if (!batch.ok()) return batch.error();
    if (batch->empty()) progress.clear();
    if (!take(**source, *batch) || batch->empty()) break;
    count += batch->size();
    progress.update(count, (*source)->fraction());
  }
  progress.clear();
  if (const std::string warning = (*source)->warning(); !warning.empty()) warn(warning);
  return Done{};
}

Status check_not_same_file(const std::string& input, const std::string& output) {
  struct stat in = {};
  struct stat out = {};
  if (::stat(input.c_str(), &in) == 0 && ::stat(output.c_str(), &out) == 0 &&
      in.st_dev == out.st_dev && in.st_ino == out.st_ino) {
    return Error{fmt::format("{}: is the trace that is read; write to another file", output)};
  }
  return Done{};
}

}  // namespace heddle::cli
