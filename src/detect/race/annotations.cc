#include "detect/race/annotations.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace heddle::race {
namespace {

// The number at the start of `text`, which moves behind it and one blank.
std::optional<std::uint64_t> take_number(std::string_view& text) {
  const bool is_hexadecimal = text.starts_with("0x");
  if (is_hexadecimal) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, is_hexadecimal ? 16 : 10);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (text.starts_with(' ')) text.remove_prefix(1);
  return value;
}

bool take_word(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

void count(std::uint32_t& open, bool begins) {
  if (begins) ++open;
  if (!begins && open != 0) --open;
}

}  // namespace

void Annotations::take(const Event& mark) {
  std::string_view text = catalog_.text(static_cast<StringId>(mark.value));
  if (!take_word(text, "heddle:")) return;
  if (mark.thread >= threads_.size()) threads_.resize(mark.thread + 1);
  Regions& regions = threads_[mark.thread];
  if (take_word(text, "benign-race ")) {
    const auto address = take_number(text), size = take_number(text);
    if (address && size) benign_[*address] = *size;
  } else if (take_word(text, "ignore-reads ")) {
    count(regions.reads, text == "1");
  } else if (take_word(text, "ignore-writes ")) {
    count(regions.writes, text == "1");
  } else if (take_word(text, "race-detection ")) {
    disabled_ = text == "0";
  } else {
    return;
  }
  in_use_ = true;
}

bool Annotations::is_ignored(const Event& access) const {
  if (access.order != MemoryOrder::kPlain) return false;
  if (disabled_) return true;
  if (access.thread < threads_.size()) {
    const Regions& regions = threads_[access.thread];
    if (is_write(access.kind) ? regions.writes != 0 : regions.reads != 0) return true;
  }
  auto benign = benign_.upper_bound(access.address);
  if (benign == benign_.begin()) return false;
  --benign;
  return access.address - benign->first < benign->second;
}

}  // namespace heddle::race
