#include "cli/convert.h"

#include "cli/messages.h"
#include "cli/output.h"
#include "trace/std_format.h"
#include "trace/text.h"
#include "trace/writer.h"

#include <memory>
#include <optional>

#include <fmt/format.h>
#include <unistd.h>

namespace heddle::cli {
namespace {

Result<Output> open_output(const TraceInput& input, const std::string& output) {
  if (output.empty()) return Output();
  if (Status same = check_not_same_file(input.path, output); !same.ok()) return same.error();
  return Output::create(output);
}

// Reads the trace through `print`, which appends to the output's buffer.
using PrintEvents =
    std::function<void(const EventSource& source, std::span<const Event> events, Output& out)>;

Status print_trace(const TraceInput& input, const std::string& path, const PrintEvents& print) {
  std::optional<Output> out;  // made once the trace turned out to be one
  Status opened = Done{};
  Status read = read_trace(input, [&](const EventSource& source, std::span<const Event> events) {
    if (!out) {
      Result<Output> made = open_output(input, path);
      if (!made.ok()) {
        opened = made.error();
        return false;
      }
      out.emplace(*std::move(made));
    }
    print(source, events, *out);
    return out->wanted();
  });
  if (!opened.ok()) return opened;
  if (!read.ok()) {
    if (out) out->discard();
    return read;
  }
  return out ? out->finish() : Status(Done{});
}

}  // namespace

Status convert_to_binary(const TraceInput& input, const std::string& output) {
  if (Status same = check_not_same_file(input.path, output); !same.ok()) return same;
  std::unique_ptr<TraceWriter> writer;
  Status written = Done{};
  Status read = read_trace(input, [&](const EventSource& source, std::span<const Event> events) {
    if (writer == nullptr) {
      Result<std::unique_ptr<TraceWriter>> made = TraceWriter::create(output, source.catalog());
      if (!made.ok()) {
        written = made.error();
        return false;
      }
      writer = *std::move(made);
    }
    written = events.empty() ? writer->finish() : writer->add(events);
    return written.ok();
  });
  if (read.ok() && written.ok()) return Done{};
  if (writer != nullptr) ::unlink(output.c_str());
  return written.ok() ? read : written;
}

Status convert_to_text(const TraceInput& input, const std::string& output) {
  std::unique_ptr<TextPrinter> printer;
  return print_trace(input, output,
                     [&](const EventSource& source, std::span<const Event> events, Output& out) {
                       if (printer == nullptr) {
                         printer = std::make_unique<TextPrinter>(source.catalog());
                       }
                       for (const Event& event : events) {
                         printer->print(event, out.buffer());
                         out.flush_if_full();
                       }
                       if (events.empty()) printer->finish(out.buffer());
                     });
}

Status convert_to_std(const TraceInput& input, const std::string& output, bool strict) {
  StdWriter writer;
  Status scanned = read_trace(input, [&](const EventSource& source, std::span<const Event> events) {
    writer.scan(events);
    if (events.empty()) writer.plan(source.catalog());
    return true;
  });
  if (!scanned.ok()) return scanned;
  const std::string losses = writer.losses();
  if (strict && !losses.empty()) {
    return Error{fmt::format("{}: STD would not be the whole trace: {}", input.path, losses)};
  }
  const Status printed = print_trace(
      input, output, [&](const EventSource&, std::span<const Event> events, Output& out) {
        // A piece at a time: an access can become several lines.
        for (std::size_t i = 0; i < events.size(); i += 1024) {
          writer.write(events.subspan(i, std::min<std::size_t>(1024, events.size() - i)),
                       out.buffer());
          out.flush_if_full();
        }
      });
  if (printed.ok() && !losses.empty()) warn(fmt::format("{}: {}", input.path, losses));
  return printed;
}

}  // namespace heddle::cli
