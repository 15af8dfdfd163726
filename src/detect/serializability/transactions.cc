#include "detect/serializability/transactions.h"

#include "base/check.h"

#include <algorithm>
#include <bit>

namespace heddle::serializability {
namespace {

template <typename F>
void for_each_bit(const std::uint64_t* row, std::size_t words, F&& f) {
  for (std::size_t w = 0; w < words; ++w) {
    for (std::uint64_t bits = row[w]; bits != 0; bits &= bits - 1) {
      f(static_cast<Slot>(w * 64 + static_cast<std::size_t>(std::countr_zero(bits))));
    }
  }
}

}  // namespace

Slot Transactions::add_slot() {
  const auto slot = static_cast<Slot>(slots_.size());
  slots_.emplace_back();
  if (slots_.size() > words_ * 64) widen();
  ancestors_.resize(slots_.size() * words_);
  descendants_.resize(slots_.size() * words_);
  first_.resize(slots_.size() * words_ * 64);
  return slot;
}

void Transactions::widen() {
  const std::size_t wider = words_ * 2;
  const std::size_t rows = slots_.size() - 1;
  const auto spread = [&](auto& matrix, std::size_t from, std::size_t to) {
    std::remove_reference_t<decltype(matrix)> out(rows * to);
    for (std::size_t i = 0; i < rows; ++i) {
      std::copy_n(matrix.begin() + static_cast<std::ptrdiff_t>(i * from), from,
                  out.begin() + static_cast<std::ptrdiff_t>(i * to));
    }
    matrix = std::move(out);
  };
  spread(ancestors_, words_, wider);
  spread(descendants_, words_, wider);
  spread(first_, words_ * 64, wider * 64);
  words_ = wider;
}

void Transactions::set_first(Slot descendant, Slot ancestor, Time time) {
  ancestors_[descendant * words_ + ancestor / 64] |= std::uint64_t{1} << (ancestor % 64);
  descendants_[ancestor * words_ + descendant / 64] |= std::uint64_t{1} << (descendant % 64);
  first_[descendant * words_ * 64 + ancestor] = time;
}

void Transactions::begin(Slot slot, Time time) {
  SlotState& state = slots_[slot];
  HEDDLE_CHECK(!state.running);
  state.running = true;
  state.begun = time;
  set_first(slot, slot, time);
}

void Transactions::end(Slot slot) {
  SlotState& state = slots_[slot];
  HEDDLE_CHECK(state.running);
  state.running = false;
  std::uint64_t* const descendants = &descendants_[slot * words_];
  const std::uint64_t bit = std::uint64_t{1} << (slot % 64);
  for_each_bit(descendants, words_,
               [&](Slot other) { ancestors_[other * words_ + slot / 64] &= ~bit; });
  std::fill_n(descendants, words_, 0);
  if (state.group == 0) return;
  Group& group = groups_[state.group];
  if (group.shared) {
    if (++abandoned_ > sweep_at_) {
      state.group = 0;
      sweep_groups();
    }
  } else {
    group.edges.clear();
    group.parts.clear();
    free_groups_.push_back(state.group);
  }
  state.group = 0;
}

void Transactions::learn(const Touch& source, const Touch& target, EdgeKind kind, Address object) {
  const Edge edge{source, target, object, kind};
  for (std::size_t w = 0; w < words_; ++w) {
    std::uint64_t fresh =
        ancestors_[source.slot * words_ + w] & ~ancestors_[target.slot * words_ + w];
    for (; fresh != 0; fresh &= fresh - 1) {
      const auto ancestor =
          static_cast<Slot>(w * 64 + static_cast<std::size_t>(std::countr_zero(fresh)));
      if (first(source.slot, ancestor) <= source.time) learn_one(target.slot, ancestor, edge);
    }
  }
}

void Transactions::learn_one(Slot slot, Slot ancestor, const Edge& edge) {
  const GroupId group = group_of(ancestor);
  groups_[group].edges.push_back(edge);
  if (!slots_[slot].running) {
    set_first(slot, ancestor, edge.target.time);
    return;
  }
  bool has_others = false;
  for_each_bit(&descendants_[slot * words_], words_, [&](Slot descendant) {
    const Time since = first(descendant, slot);
    if (!has(descendant, ancestor) || since < first(descendant, ancestor)) {
      set_first(descendant, ancestor, since);
    }
    has_others |= descendant != slot;
  });
  if (has_others) {
    const GroupId part = group_of(slot);
    groups_[part].shared = true;
    groups_[group].parts.push_back(part);
  }
}

Transactions::GroupId Transactions::group_of(Slot slot) {
  GroupId& group = slots_[slot].group;
  if (group != 0) return group;
  if (!free_groups_.empty()) {
    group = free_groups_.back();
    free_groups_.pop_back();
  } else {
    group = static_cast<GroupId>(groups_.size());
    groups_.emplace_back();
  }
  return group;
}

void Transactions::sweep_groups() {
  std::vector<bool> keep(groups_.size());
  std::vector<GroupId> open;
  const auto mark = [&](GroupId id) {
    if (id == 0 || keep[id]) return;
    keep[id] = true;
    open.push_back(id);
  };
  for (const SlotState& state : slots_) mark(state.group);
  while (!open.empty()) {
    const GroupId id = open.back();
    open.pop_back();
    for (const GroupId part : groups_[id].parts) mark(part);
  }
  free_groups_.clear();
  abandoned_ = 0;
  for (GroupId id = 1; id < groups_.size(); ++id) {
    if (keep[id]) {
      abandoned_ += groups_[id].shared;
      continue;
    }
    groups_[id].edges.clear();
    groups_[id].parts.clear();
    groups_[id].shared = false;
    free_groups_.push_back(id);
  }
  sweep_at_ = std::max(least_sweep_, 2 * abandoned_);
}

std::vector<Edge> Transactions::witness(const Touch& source, const Touch& target, EdgeKind kind,
                                        Address object) const {
  const SlotState& home = slots_[target.slot];
  std::vector<bool> seen(groups_.size());
  std::vector<GroupId> open{home.group};
  std::vector<const Edge*> edges;
  while (!open.empty()) {
    const GroupId id = open.back();
    open.pop_back();
    if (seen[id]) continue;
    seen[id] = true;
    for (const Edge& edge : groups_[id].edges) edges.push_back(&edge);
    open.insert(open.end(), groups_[id].parts.begin(), groups_[id].parts.end());
  }

  // Backwards from `source`, breadth first, so that the cycle is a short one.
  struct Found {
    const Edge* edge;
    std::size_t next;  // towards `source`
  };
  constexpr std::size_t kLast = ~std::size_t{0};
  const Edge closing{source, target, object, kind};
  std::vector<Found> found{{&closing, kLast}};
  for (std::size_t at = 0; at < found.size(); ++at) {
    const Touch& from = found[at].edge->source;
    if (from.slot == target.slot && from.time >= home.begun) {
      std::vector<Edge> cycle;
      for (std::size_t i = at; i != kLast; i = found[i].next) cycle.push_back(*found[i].edge);
      return cycle;
    }
    for (const Edge*& edge : edges) {
      if (edge == nullptr || edge->target.slot != from.slot) continue;
      // The edge leads to the transaction of `from`, or to an earlier one of its thread.
      if (edge->target.begun() > from.time) continue;
      found.push_back({edge, at});
      edge = nullptr;
    }
  }
  HEDDLE_CHECK(false);  // order() said that there is a path
  return {};
}

}  // namespace heddle::serializability
