// Spots: who accesses, how, and from where (thread, kind of access, site, call stack and locks), as
// one small number.
//
// The shadow keeps up to two accesses for every location of the program and stores one for every
// access to it, so an access has to be small there: its ordinal and its spot share a word.
// Memory grows with the distinct spots, not with the length of the run.
#pragma once

#include "detect/avio/touch.h"
#include "trace/event.h"
#include "trace/execution.h"

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>

namespace heddle::avio {

using SpotId = std::uint32_t;  // 0 = none

struct Spot {
  Actor actor{};
  SiteId site{};
  ContextId context{};
  EventKind kind{};
  bool wide{};  // may access more than a cell has bytes

  bool operator==(const Spot&) const = default;
  template <typename H>
  friend H AbslHashValue(H hash, const Spot& spot) {
    return H::combine(std::move(hash), spot.actor, spot.site, spot.context, spot.kind, spot.wide);
  }
};

class Spots {
 public:
  static constexpr unsigned kBits = 23;

  Spots() : spots_(1) {}

  SpotId of(const Spot& spot) {
    const SpotId known = recent_[recent(spot)];
    return spots_[known] == spot ? known : look_up(spot);
  }
  // All accesses of an execution come from one place, so their spots are numbered in a row, one for
  // each item of the shape, and in a joined record for each Enter and Leave. The first of them.
  // `inside` gives the context inside of a ShapeCall.
  template <typename Inside>
  SpotId row(ShapeId id, const RecordShape& shape, Actor actor, ContextId context, Inside inside) {
    const Row row{id, actor, context};
    const RecentRow& known = recent_rows_[recent(row)];
    if (known.row == row) return known.first;
    const auto [at, is_new] = rows_.try_emplace(row, static_cast<SpotId>(spots_.size()));
    if (is_new) {
      ContextId here = context;
      walk_items(
          shape, Execution::of(id, 0, nullptr),
          [&](const ShapeCall& call) {
            spots_.push_back({});
            here = inside(call);
          },
          [&](std::size_t i) { add(shape.items[i], actor, here); },
          [&](const ShapeCall&) {
            spots_.push_back({});
            here = context;
          });
    }
    recent_rows_[recent(row)] = {row, at->second};
    return at->second;
  }
  const Spot& operator[](SpotId id) const { return spots_[id]; }
  const Spot* data() const { return spots_.data(); }  // until there are more

  // There is no room for so many more. Whoever keeps numbers forgets them and clears.
  bool full(std::size_t more = 1) const { return (spots_.size() + more) >> kBits != 0; }
  void clear();

 private:
  static constexpr std::size_t kRecent = 8192;
  static constexpr std::size_t kRecentRows = 4096;
  static std::size_t recent(const Spot& spot) {
    const std::uint32_t from = spot.context * 0x9e3779b1u + spot.actor * 0x85ebca6bu;
    return ((from >> 16) + std::size_t{spot.site} * 4 + static_cast<std::size_t>(spot.kind)) %
           kRecent;
  }
  SpotId look_up(const Spot& spot);
  struct Row {
    ShapeId shape{};
    Actor actor{};
    ContextId context{};

    bool operator==(const Row&) const = default;
    template <typename H>
    friend H AbslHashValue(H hash, const Row& row) {
      return H::combine(std::move(hash), row.shape, row.actor, row.context);
    }
  };

  struct RecentRow {
    Row row;
    SpotId first{};
  };
  static std::size_t recent(const Row& row) {
    return (row.context * 0x9e3779b1u + row.actor * 0x85ebca6bu + row.shape * 0xc2b2ae35u) >> 20;
  }
  void add(const ShapeItem& item, Actor actor, ContextId context) {
    const bool wide = item.event.size > 8 || item.size_word != 0;
    spots_.push_back({actor, item.event.site, context, item.event.kind, wide});
  }

  std::vector<Spot> spots_;
  std::array<SpotId, kRecent> recent_{};  // most accesses come from where others came before
  std::array<RecentRow, kRecentRows> recent_rows_{};
  absl::flat_hash_map<Spot, SpotId> ids_;
  absl::flat_hash_map<Row, SpotId> rows_;
};

}  // namespace heddle::avio
