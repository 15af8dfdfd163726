// Caches: the machine of AVIO-H (Lu et al., section 4.1), as a model.
//
// Every core has a private, set-associative L1 with LRU replacement; an invalidation protocol
// (MESI) keeps them coherent; everything behind them is one memory. Each L1 line has the paper's
// three bits:
//
//   PI    the last local access was a read (set by a local read, cleared by a local write)
//   DG    a remote read made us give up exclusiveness since the last local access
//   INV   a remote write invalidated our copy since the last local access; the line keeps its place
//         (and its bits) until it is displaced
//
// A check is made only when an access cannot be satisfied by the L1 alone: a read miss, a write
// miss, a write to a line that others share. What it decides (figure 9, rebuilt from figure 6):
//
//   read,  INV          remote write since P:  PI ? case 2 : case 3
//   write, INV, PI      remote write since a read: case 6
//   write, DG, not PI   a write whose value was first of all read by another core: case 5
//                       (DG is set only while we own the line, so it precedes any INV)
//
// A line that is not in the cache (never was, or displaced) has no history and is never reported.
// Line granularity makes neighbours one location. Both are the point of the model: they are what
// the hardware costs against avio's exact bytes. Allocation and freeing are invisible to it.
//
// For explanation only, a line also remembers who made the last local access and who took the line
// away; the hardware would not know.
#pragma once

#include "base/result.h"
#include "detect/avio/touch.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <absl/container/flat_hash_map.h>

namespace heddle::avio {

struct CacheShape {
  std::uint32_t size = 32 * 1024;
  std::uint32_t ways = 4;
  std::uint32_t line = 64;

  std::uint32_t sets() const { return size / ways / line; }
};

// "32K,4,64": size (with K or M), ways, bytes per line.
Result<CacheShape> parse_cache_shape(std::string_view text);
std::string print(const CacheShape& shape);

class Caches {
 public:
  using Core = std::uint32_t;

  struct Result {
    bool checked = false;  // the L1 alone could not satisfy it
    bool absent = false;   // the line was not in the cache: no history
    std::optional<SplitCase> split;
    Touch p, r;
  };

  explicit Caches(const CacheShape& shape) : shape_(shape) {}

  // One access to one line; a read-modify-write is a read and then a write.
  Result access(Core core, std::uint64_t line, const Touch& touch);

  std::uint64_t line_of(Address address) const { return address / shape_.line; }

 private:
  enum class State : std::uint8_t { kFree, kInvalid, kShared, kExclusive, kModified };
  struct Line {
    std::uint64_t number = 0;
    std::uint64_t used = 0;  // when, for LRU
    State state = State::kFree;
    bool pi = false;
    bool dg = false;
    Touch last, remote_read, remote_write;
  };
  using Cache = std::vector<Line>;  // sets of `ways` lines

  Result read(Core core, std::uint64_t line, const Touch& touch);
  Result write(Core core, std::uint64_t line, const Touch& touch);
  Line* find(Core core, std::uint64_t line);
  Line& allocate(Core core, std::uint64_t line);
  void done(Line& line, const Touch& touch, bool is_read);
  std::vector<Core>& holders(std::uint64_t line) { return holders_[line]; }

  CacheShape shape_;
  std::vector<Cache> caches_;  // by core
  // Cores that have a valid copy. Invalid copies are not listed: nobody needs to be told about
  // them.
  absl::flat_hash_map<std::uint64_t, std::vector<Core>> holders_;
  std::uint64_t clock_ = 0;
};

}  // namespace heddle::avio
