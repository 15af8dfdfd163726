// Notes of overwritten inputs, as units keep them until a store uses one (units.h).
//
// A program that hands its data from thread to thread has millions of units with one note each:
// that one is a node and nothing else, and the unit's word is its number. Only from the second note
// on there is a list. A node has room for what nearly every remote access is; what is longer, has a
// value, or comes from a thread with a large number leaves the rest in a table.
#pragma once

#include "detect/svd/pool.h"
#include "trace/event.h"

#include <cstddef>
#include <cstdint>

#include <absl/container/flat_hash_map.h>

namespace heddle::svd {

// An access as a block remembers it: its context (online.h) and its ordinal.
using AccessRef = std::uint64_t;
inline constexpr unsigned kOrdinalBits = 41;

// Between a unit's access of a block (`inside`) and now, another thread has accessed it.
struct Overwrite {
  AccessRef inside{};
  AccessRef remote{};
  Address address{};  // of the remote access
  std::uint64_t value{};
  std::uint32_t size : 31 {};
  std::uint32_t has_value : 1 {};
  ThreadId remote_thread{};
};

class Notes {
 public:
  // One or more notes: 0 is none; else a node, or with kListBit a list. Below 2^31.
  using Ref = std::uint32_t;

  explicit Notes(std::size_t limit);

  // The notes with one more, if there is room for it and it says something new.
  Ref add(Ref to, const Overwrite& overwrite);
  // Those of both, as many as there is room for; neither is none.
  Ref append(Ref to, Ref from);
  void free(Ref notes);
  // Calls take(overwrite) for each, the oldest first.
  template <typename Take>
  void for_each(Ref notes, Take take) const {
    const List list = list_of(notes);
    std::uint32_t at = list.first;
    for (std::uint32_t i = 0; i < list.count; ++i, at = nodes_[at].next) take(overwrite(at));
  }

  std::size_t bytes() const {
    return (nodes_.size() - free_nodes_) * sizeof(Node) + lists_.size() * sizeof(List);
  }

 private:
  static constexpr Ref kListBit = 0x40000000u;
  static constexpr std::uint32_t kMaxSize = (1u << 14) - 1;
  static constexpr ThreadId kMaxThread = (1u << 17) - 1;

  struct Node {
    AccessRef inside{};
    AccessRef remote{};
    Address address{};
    std::uint32_t next = 0;
    std::uint32_t size : 14 {};
    std::uint32_t thread : 17 {};
    std::uint32_t detailed : 1 {};  // size, thread and value are in details_
  };
  static_assert(sizeof(Node) == 32);
  struct List {
    std::uint32_t first = 0;  // of a list that is not in use: the next such
    std::uint32_t last = 0;
    std::uint32_t same_remote = 0;  // the first whose remote access is the last one's
    std::uint32_t count = 0;
  };
  struct Detail {
    std::uint64_t value{};
    std::uint32_t size{};
    bool has_value{};
    ThreadId thread{};
  };

  List list_of(Ref notes) const {
    if ((notes & kListBit) != 0) return lists_[notes & ~kListBit];
    return {notes, notes, notes, notes == 0 ? 0u : 1u};
  }
  // As a list in the place of `notes`.
  Ref put_list(Ref notes, const List& list);
  void free_list(Ref notes);
  Overwrite overwrite(std::uint32_t node) const;
  std::uint32_t new_node(const Overwrite& overwrite);
  void free_nodes(const List& list);

  std::size_t limit_;
  Pool<Node> nodes_;
  Pool<List> lists_;
  std::uint32_t free_node_ = 0;  // a list of nodes
  std::size_t free_nodes_ = 0;
  std::uint32_t free_list_ = 0;
  absl::flat_hash_map<std::uint32_t, Detail> details_;  // by node
};

}  // namespace heddle::svd
