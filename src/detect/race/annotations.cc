#include "detect/race/annotations.h"

#include <algorithm>
#include <charconv>
#include <iterator>
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

void Annotations::on_mark_or_block(const Event& event) {
  switch (event.kind) {
    case EventKind::kMark:
      take(event);
      break;
    case EventKind::kAlloc:
      blocks_[event.address] = event.value;
      break;
    case EventKind::kFree: {
      const auto block = blocks_.find(event.address);
      const std::uint64_t known = block == blocks_.end() ? 1 : block->second;
      if (!benign_.empty()) forget_benign(event.address, event.value != 0 ? event.value : known);
      if (block != blocks_.end()) blocks_.erase(block);
      break;
    }
    default:
      break;
  }
}

void Annotations::take(const Event& mark) {
  std::string_view text = catalog_.text(static_cast<StringId>(mark.value));
  if (!take_word(text, "heddle:")) return;
  if (mark.thread >= threads_.size()) threads_.resize(mark.thread + 1);
  Regions& regions = threads_[mark.thread];
  if (take_word(text, "benign-race ")) {
    const auto address = take_number(text), size = take_number(text);
    if (address && size) add_benign(*address, *size);
  } else if (take_word(text, "ignore-reads ")) {
    count(regions.reads, text == "1");
  } else if (take_word(text, "ignore-writes ")) {
    count(regions.writes, text == "1");
  } else if (take_word(text, "ignore-sync ")) {
    count(regions.sync, text == "1");
  } else if (take_word(text, "ignore-all ")) {
    count(regions.reads, text == "1");
    count(regions.writes, text == "1");
    count(regions.sync, text == "1");
  } else if (take_word(text, "race-detection ")) {
    disabled_ = text == "0";
  } else {
    return;
  }
  in_use_ = true;
}

void Annotations::add_benign(Address address, std::uint64_t size) {
  Address end = address + size;
  if (end <= address) return;
  auto at = benign_.upper_bound(end);
  while (at != benign_.begin()) {
    const auto before = std::prev(at);
    if (before->second < address) break;
    address = std::min(address, before->first);
    end = std::max(end, before->second);
    at = benign_.erase(before);
  }
  benign_[address] = end;
}

void Annotations::forget_benign(Address address, std::uint64_t size) {
  const Address end = address + size;
  auto at = benign_.lower_bound(end);
  while (at != benign_.begin()) {
    const auto before = std::prev(at);
    const auto [first, last] = *before;
    if (last <= address) break;
    at = benign_.erase(before);
    if (last > end) benign_[end] = last;
    if (first < address) benign_[first] = address;
  }
}

bool Annotations::may_order(const Event& event) {
  if (is_access(event.kind)) return event.order != MemoryOrder::kPlain;
  return event.kind >= EventKind::kFence && event.kind <= EventKind::kOrderAcquire;
}

bool Annotations::is_ignored(const Event& access) const {
  const bool atomic = access.order != MemoryOrder::kPlain;
  if (access.thread < threads_.size()) {
    const Regions& regions = threads_[access.thread];
    const bool ignored = is_write(access.kind) ? regions.writes != 0 : regions.reads != 0;
    if (ignored && (!atomic || regions.sync != 0)) return true;
  }
  if (atomic) return false;
  if (disabled_) return true;
  auto benign = benign_.upper_bound(access.address);
  if (benign == benign_.begin()) return false;
  --benign;
  return access.address < benign->second;
}

}  // namespace heddle::race
