// The log for examination afterwards (svd-2005, section 2.3).
//
// Units that are smaller than what the programmer meant to be atomic hide bugs from the online
// check. The log catches them differently: it has an entry for every read `s` of a location that
// another thread wrote last (`remote`), with the reading thread's own last write before that
// (`local`), whose value the remote write destroyed. If the thread meant to read back what it had
// written, that is the bug.
//
// Most such reads are honest communication. What makes one suspicious is that the same statement,
// in other instances, reads back its own thread's write: a variable that is meant to be private. So
// groups are ranked by how often the statement read its own thread's value, in proportion. Last
// come reads without an earlier local write, and those of what a thread left behind that the reader
// started after its own write and joined before it read: no schedule makes that different.
//
// One pass; memory follows the number of locations written by some thread.
#pragma once

#include "detect/witness.h"
#include "finding/finding.h"
#include "order/thread_lives.h"
#include "trace/catalog.h"
#include "trace/event.h"

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include <absl/container/flat_hash_map.h>

namespace heddle::svd {

struct LogGroup {
  Step read;    // s, its first instance
  Step remote;  // the write it saw
  Step local;   // the thread's own write that was destroyed; role empty when there was none
  std::uint64_t count = 0;          // instances of this triple of statements
  std::uint64_t own_reads = 0;      // times the statement read its own thread's write
  std::uint64_t all_reads = 0;      // times the statement read anything that somebody wrote
  bool by_order_of_threads = true;  // in every instance R's thread lived between P and I
  double suspicion = 0;             // 0 … 1
};

// All entries of one reading statement: of a variable in a line.
struct LogStatement {
  std::vector<LogGroup> groups;     // most suspicious first, then most frequent
  std::uint64_t foreign_reads = 0;  // times it read another thread's write
  std::uint64_t own_reads = 0;
  std::uint64_t all_reads = 0;
  double suspicion = 0;
};

class ExaminationLog {
 public:
  explicit ExaminationLog(const Catalog& catalog, std::uint32_t block_size = 4);

  void on(std::span<const Event> batch, EventOrdinal first);

  std::uint64_t entries() const { return entries_; }  // dynamic
  std::vector<LogGroup> groups() const;               // most suspicious first
  std::vector<LogStatement> statements() const;       // likewise

 private:
  using Key = std::tuple<SiteId, SiteId, SiteId>;

  // The writes that matter of one block: the last of each thread that wrote it, newest first.
  using Writers = std::vector<Witness>;

  struct Reads {
    std::uint64_t own = 0;
    std::uint64_t all = 0;
  };

  static LogGroup rank(const LogGroup& group, const Reads& reads);
  void read(const Event& event, EventOrdinal ordinal, std::uint64_t begin, std::uint64_t last);
  void write(const Event& event, EventOrdinal ordinal, Writers& writers);

  unsigned block_shift_;
  Narrator narrator_;
  ThreadLives lives_;
  absl::flat_hash_map<std::uint64_t, Writers> blocks_;
  absl::flat_hash_map<SiteId, Reads> reads_;
  std::map<Key, LogGroup> groups_;
  std::uint64_t entries_ = 0;
};

}  // namespace heddle::svd
