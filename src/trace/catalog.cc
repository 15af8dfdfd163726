#include "trace/catalog.h"

#include <algorithm>
#include <cstring>

namespace heddle {
namespace {

constexpr std::size_t kArenaBlock = 1u << 16;

std::uint64_t hash_text(std::string_view text) {
  std::uint64_t h = 0xcbf29ce484222325ull;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return h ^ (h >> 29);
}

}  // namespace

StringTable::StringTable() : strings_{std::string_view()}, index_(64, 0) {}

StringTable::StringTable(const StringTable& other) : StringTable() {
  strings_.reserve(other.strings_.size());
  for (std::size_t id = 1; id < other.strings_.size(); ++id) intern(other.strings_[id]);
}

StringTable& StringTable::operator=(const StringTable& other) {
  if (this != &other) *this = StringTable(other);
  return *this;
}

StringId StringTable::intern(std::string_view text) {
  if (text.empty()) return 0;
  if (strings_.size() * 2 > index_.size()) grow_index();
  const std::size_t mask = index_.size() - 1;
  std::size_t at = hash_text(text) & mask;
  for (; index_[at] != 0; at = (at + 1) & mask) {
    if (strings_[index_[at]] == text) return index_[at];
  }
  if (arena_.empty() || arena_.back().capacity() - arena_.back().size() < text.size()) {
    arena_.emplace_back().reserve(std::max(kArenaBlock, text.size()));
  }
  std::vector<char>& block = arena_.back();
  const std::size_t start = block.size();
  block.insert(block.end(), text.begin(), text.end());
  strings_.emplace_back(block.data() + start, text.size());
  index_[at] = static_cast<StringId>(strings_.size() - 1);
  return index_[at];
}

void StringTable::grow_index() {
  std::vector<StringId> bigger(index_.size() * 2, 0);
  const std::size_t mask = bigger.size() - 1;
  for (const StringId id : index_) {
    if (id == 0) continue;
    std::size_t at = hash_text(strings_[id]) & mask;
    while (bigger[at] != 0) at = (at + 1) & mask;
    bigger[at] = id;
  }
  index_ = std::move(bigger);
}

Catalog::Catalog() : functions(1), sites(1), segments(1) {}

}  // namespace heddle
