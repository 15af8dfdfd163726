// Stands for: text processing with the standard library. Byte-sized accesses, memcmp and hashing in
// library code, many small allocations, results merged under one lock at the end.
//
// Counts the words of a text. The text is drawn from a known vocabulary, so the counts are known.
#include "kernel.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace {

constexpr std::size_t kVocabulary = 5'000;

using Counts = std::unordered_map<std::string, std::uint64_t>;

std::string spell(std::uint64_t index) {
  constexpr std::string_view syllables[] = {"ba", "ce", "di", "fo", "gu", "ha", "je", "ki"};
  std::string word;
  do {
    word += syllables[index % 8];
    index /= 8;
  } while (index > 0);
  return word;
}

struct Text {
  explicit Text(std::size_t words) {
    kernel::Random random(8);
    for (std::size_t i = 0; i < words; ++i) {
      // The smaller of two draws: some words are frequent, most are not.
      const auto index = std::min(random.below(kVocabulary), random.below(kVocabulary));
      ++drawn[index];
      characters += spell(index);
      characters += random.below(12) == 0 ? '\n' : ' ';
    }
  }

  std::string characters;
  std::vector<std::uint64_t> drawn = std::vector<std::uint64_t>(kVocabulary);
};

// A word belongs to the share in which it begins.
Counts count(std::string_view text, kernel::Share share) {
  const auto is_space = [](char c) { return c == ' ' || c == '\n'; };
  Counts counts;
  std::size_t at = share.begin;
  if (at > 0) {
    while (at < share.end && !is_space(text[at - 1])) ++at;
  }
  while (at < share.end) {
    std::size_t end = at;
    while (end < text.size() && !is_space(text[end])) ++end;
    if (end > at) ++counts[std::string(text.substr(at, end - at))];
    at = end + 1;
  }
  return counts;
}

}  // namespace

int main(int argc, char** argv) {
  const kernel::Options options = kernel::parse(argc, argv, {.full = 2'500'000, .quick = 3'000});
  const Text text(options.size);
  std::mutex lock;
  Counts total;
  kernel::run(options.threads, [&](unsigned id) {
    const Counts mine =
        count(text.characters, kernel::Share(text.characters.size(), options.threads, id));
    const std::lock_guard guard(lock);
    for (const auto& [word, times] : mine) total[word] += times;
  });

  bool right = true;
  for (std::size_t index = 0; index < kVocabulary; ++index) {
    const auto found = total.find(spell(index));
    const std::uint64_t counted = found == total.end() ? 0 : found->second;
    if (counted != text.drawn[index]) right = false;
  }
  return kernel::verdict("words", options, right);
}
