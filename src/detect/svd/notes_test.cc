#include "detect/svd/notes.h"

#include "base/test_seed.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace heddle::svd {
namespace {

constexpr std::size_t kLimit = 6;

// The same, naively.
struct Naive {
  std::vector<Overwrite> notes;
  std::size_t same_remote = 0;  // from here on, remote accesses are known to be the last one's

  void add(const Overwrite& note) {
    if (notes.size() >= kLimit) return;
    const bool same = !notes.empty() && notes.back().remote == note.remote;
    const auto from = notes.begin() + static_cast<std::ptrdiff_t>(same_remote);
    const auto has_inside = [&](const Overwrite& other) { return other.inside == note.inside; };
    if (same && std::any_of(from, notes.end(), has_inside)) return;
    if (!same) same_remote = notes.size();
    notes.push_back(note);
  }
  void append(const Naive& from) {
    const std::size_t taken = std::min(kLimit - notes.size(), from.notes.size());
    notes.insert(notes.end(), from.notes.begin(),
                 from.notes.begin() + static_cast<std::ptrdiff_t>(taken));
    if (taken > 0) same_remote = notes.size() - 1;
  }
};

std::string text(const Overwrite& note) {
  return std::to_string(note.inside) + "/" + std::to_string(note.remote) + "@" +
         std::to_string(note.address) + "+" + std::to_string(note.size) + " by " +
         std::to_string(note.remote_thread) +
         (note.has_value != 0 ? "=" + std::to_string(note.value) : "") + "; ";
}

// Among them such as have a value, are long, or come from a thread with a large number.
Overwrite random_note(std::mt19937& random) {
  const auto below = [&](std::uint32_t end) { return static_cast<std::uint32_t>(random() % end); };
  Overwrite note;
  note.inside = 1 + below(3);
  note.remote = 1 + below(3);
  note.address = below(100);
  note.size = (below(4) == 0 ? (1u << 14) - 1 + below(3) : 8u) & 0x7fffffffu;
  note.remote_thread = below(4) == 0 ? (1u << 17) - 1 + below(3) : 2;
  note.has_value = below(4) == 0 ? 1 : 0;
  note.value = note.has_value != 0 ? below(1000) : 0;
  return note;
}

TEST(Notes, AreWhatWasAdded) {
  std::mt19937 random(test_seed());
  for (int run = 0; run < 200; ++run) {
    Notes notes(kLimit);
    std::vector<Notes::Ref> refs(8);
    std::vector<Naive> naive(refs.size());
    for (int step = 0; step < 300; ++step) {
      const std::size_t i = random() % refs.size();
      const std::size_t j = random() % refs.size();
      switch (random() % 8) {
        case 0:
          if (refs[i] != 0) notes.free(refs[i]);
          refs[i] = 0;
          naive[i] = {};
          break;
        case 1:
          if (i == j || refs[i] == 0 || refs[j] == 0) break;
          refs[i] = notes.append(refs[i], refs[j]);
          naive[i].append(naive[j]);
          refs[j] = 0;
          naive[j] = {};
          break;
        default: {
          const Overwrite note = random_note(random);
          refs[i] = notes.add(refs[i], note);
          naive[i].add(note);
        }
      }
      std::string expected;
      for (const Overwrite& note : naive[i].notes) expected += text(note);
      std::string found;
      notes.for_each(refs[i], [&](const Overwrite& note) { found += text(note); });
      ASSERT_EQ(found, expected) << "HEDDLE_TEST_SEED=" << test_seed();
    }
  }
}

}  // namespace
}  // namespace heddle::svd
