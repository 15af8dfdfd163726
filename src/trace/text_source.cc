#include "trace/line_input.h"
#include "trace/text.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace heddle {
namespace {

class TextSource : public EventSource {
 public:
  TextSource(InputFile file, const OpenOptions& options)
      : lines_(std::move(file)), parser_(catalog_), salvage_(options.salvage), events_(kBatch) {}

  Result<std::span<const Event>> next() override;
  const Catalog& catalog() const override { return catalog_; }
  std::string warning() const override { return warning_; }
  std::string_view format() const override { return "text"; }
  double fraction() const override {
    const auto size = static_cast<double>(lines_.file().size());
    return size == 0 ? 1 : std::min(1.0, static_cast<double>(lines_.position()) / size);
  }

 private:
  static constexpr std::size_t kBatch = 8192;

  LineInput lines_;
  Catalog catalog_;
  TextParser parser_;
  bool salvage_;
  bool ended_ = false;
  std::optional<Error> damage_;  // what ended the reading
  std::string warning_;
  std::vector<Event> events_;
};

Result<std::span<const Event>> TextSource::next() {
  std::size_t count = 0;
  while (!ended_ && count < kBatch) {
    const std::optional<std::string_view> line = lines_.next();
    if (line) {
      const TextParser::Line read = parser_.parse(*line, events_[count]);
      if (read == TextParser::Line::kEvent) ++count;
      if (read != TextParser::Line::kError) continue;
    }
    ended_ = true;
    damage_ = lines_.error();
    if (line) {
      damage_ = Error{
          fmt::format("{}:{}: {}", lines_.file().path(), lines_.line_number(), parser_.error())};
    }
    if (damage_ && salvage_) {
      warning_ = damage_->message + "; the rest is left out";
      damage_.reset();
    }
  }
  // The events before the damage come first, then, at the next call, the error.
  if (count == 0 && damage_) return *damage_;
  return std::span<const Event>(events_.data(), count);
}

}  // namespace

std::unique_ptr<EventSource> text_source(InputFile file, const OpenOptions& options) {
  return std::make_unique<TextSource>(std::move(file), options);
}

}  // namespace heddle
