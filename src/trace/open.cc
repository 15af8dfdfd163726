#include "trace/file.h"
#include "trace/reader.h"
#include "trace/source.h"
#include "trace/std_format.h"
#include "trace/text.h"

#include <array>
#include <string_view>

namespace heddle {

Result<std::unique_ptr<EventSource>> open_trace(const std::string& path,
                                                const OpenOptions& options) {
  Result<InputFile> file = InputFile::open(path);
  if (!file.ok()) return file.error();
  if (file->size() == 0) return Error{path + ": is empty, there is no trace in it"};
  std::array<std::uint8_t, 4096> start;
  Result<std::size_t> got = file->read(0, start);
  if (!got.ok()) return got.error();
  if (is_binary_trace(std::span(start).first(*got))) {
    Result<std::unique_ptr<TraceReader>> reader = TraceReader::open(*std::move(file), options);
    if (!reader.ok()) return reader.error();
    return std::unique_ptr<EventSource>(*std::move(reader));
  }
  const std::string_view head(reinterpret_cast<const char*>(start.data()), *got);
  if (looks_like_text(head)) return text_source(*std::move(file), options);
  if (looks_like_std(head)) return std_source(*std::move(file), options);
  return Error{path + ": not a trace: neither binary nor text in a form that Heddle knows"};
}

}  // namespace heddle
