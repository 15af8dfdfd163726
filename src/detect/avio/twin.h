// The definition of AVIO's unserializable interleavings, written naively, for tests: per granule
// the list of all accesses; per pair of consecutive accesses of one thread, everything in between.
// Shares no code with the detector except the vocabulary.
#pragma once

#include "detect/avio/touch.h"
#include "trace/event.h"

#include <compare>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace heddle::avio::twin {

struct RawTriple {
  Address granule{};  // its number
  SplitCase split{};
  EventOrdinal p{}, r{}, i{};
  auto operator<=>(const RawTriple&) const = default;
};

struct Access {
  int life{};  // thread and incarnation
  bool write{};
  EventOrdinal ordinal{};
};

// Consecutive accesses of one thread to one granule, as ordinals.
using Pairs = std::set<std::pair<EventOrdinal, EventOrdinal>>;

inline void pair_up(const std::vector<Access>& all, Pairs& out) {
  for (std::size_t p = 0; p < all.size(); ++p) {
    for (std::size_t i = p + 1; i < all.size(); ++i) {
      if (all[i].life != all[p].life) continue;
      // A read-modify-write is one access here.
      if (all[i].ordinal != all[p].ordinal) out.insert({all[p].ordinal, all[i].ordinal});
      break;
    }
  }
}

inline void judge(Address granule, const std::vector<Access>& all, std::set<RawTriple>& out) {
  for (std::size_t p = 0; p < all.size(); ++p) {
    std::size_t i = p + 1;
    while (i < all.size() && all[i].life != all[p].life) ++i;
    if (i == all.size()) continue;
    const std::vector<Access> between(all.begin() + static_cast<std::ptrdiff_t>(p) + 1,
                                      all.begin() + static_cast<std::ptrdiff_t>(i));
    const Access* last_write = nullptr;
    for (const Access& access : between) {
      if (access.write) last_write = &access;
    }
    if (all[p].write && all[i].write) {
      if (!between.empty() && !between.front().write) {
        out.insert({granule, SplitCase::kWriteReadWrite, all[p].ordinal, between.front().ordinal,
                    all[i].ordinal});
      }
    } else if (last_write != nullptr) {
      const SplitCase split = all[p].write   ? SplitCase::kWriteWriteRead
                              : all[i].write ? SplitCase::kReadWriteWrite
                                             : SplitCase::kReadWriteRead;
      out.insert({granule, split, all[p].ordinal, last_write->ordinal, all[i].ordinal});
    }
  }
}

struct Verdict {
  std::set<RawTriple> triples;
  Pairs pairs;
  bool operator==(const Verdict&) const = default;
};

inline Verdict verdict(std::span<const Event> events, unsigned granule_size) {
  Verdict out;
  std::map<Address, std::vector<Access>> granules;
  std::map<ThreadId, int> lives;
  std::map<Address, std::uint64_t> blocks;
  int next_life = 0;
  const auto life = [&](ThreadId thread) {
    if (!lives.contains(thread)) lives[thread] = next_life++;
    return lives[thread];
  };
  const auto forget = [&](Address from, std::uint64_t size) {
    for (std::uint64_t k = 0; k < size; ++k) {
      const Address granule = (from + k) / granule_size;
      if (!granules.contains(granule)) continue;
      judge(granule, granules[granule], out.triples);
      pair_up(granules[granule], out.pairs);
      granules.erase(granule);
    }
  };
  for (std::size_t n = 0; n < events.size(); ++n) {
    const Event& event = events[n];
    switch (event.kind) {
      case EventKind::kRead:
      case EventKind::kWrite:
      case EventKind::kRmw: {
        std::set<Address> touched;
        for (std::uint32_t k = 0; k < event.size; ++k)
          touched.insert((event.address + k) / granule_size);
        for (const Address granule : touched) {
          if (event.kind != EventKind::kWrite)
            granules[granule].push_back({life(event.thread), false, n});
          if (event.kind != EventKind::kRead)
            granules[granule].push_back({life(event.thread), true, n});
        }
        break;
      }
      case EventKind::kThreadBegin:
      case EventKind::kThreadEnd:
        lives.erase(event.thread);
        break;
      case EventKind::kAlloc:
        forget(event.address, event.value);
        blocks[event.address] = event.value;
        break;
      case EventKind::kFree:
        forget(event.address, event.value != 0 ? event.value : blocks[event.address]);
        blocks.erase(event.address);
        break;
      default:
        break;
    }
  }
  for (const auto& [granule, all] : granules) {
    judge(granule, all, out.triples);
    pair_up(all, out.pairs);
  }
  return out;
}

}  // namespace heddle::avio::twin
