// FlowMachine's way with loops whose rounds are executions of one segment, one after another.
//
// What the branches of a loop over an array depend on does not change from round to round, mostly,
// so neither does what controls its accesses: once a round has decided everything as the one before
// it did, the next ones only ask whether the branches' conditions are still the same.
//
// A round is *quiet* if, once it has taken its phis, nothing at all changes by it: its reads, and
// the phis of the next round, give their registers what these have already, its branches decide as
// before, and to the client its accesses are nothing new. What a round does depends on registers,
// on what the client remembers of the memory that it accesses, and on what the client knows
// besides. After a quiet round all of that is as it was before it, but for the addresses. So the
// next round is quiet, too, if what the client remembers of its addresses is what it remembered of
// the last round's: that is all that is looked at.
#pragma once

#include "flow/machine.h"

namespace heddle {

// The rounds that come after the first one.
template <typename Client>
template <typename After>
const Execution* FlowMachine<Client>::repeat(ThreadId id, Thread& thread, LiveSegment* segments,
                                             const Execution* next, const Execution* end,
                                             EventOrdinal& ordinal, After after) {
  const ShapeId shape = next->shape;
  LiveSegment& live = segments[shape];
  Rounds rounds(thread, live);
  const auto goes_on = [&] {
    return next != end && next->shape == shape && next->who == id && thread.running != nullptr;
  };
  const auto done = [&] {
    ordinal += live.events;
    ++next;
    after();
  };
  do {
    if ((live.scattered || live.jumps) && end - next > kAhead) {
      expect(id, segments, next[kAhead]);
      expect_soon(id, segments, next[kSoon]);
    }
    const bool looks = rounds.stable && live.quiet.is_worth_a_look();
    if (live.has_phis) take_phis(id, rounds.frame, programs_.edge(live.own_edge));
    if (!rounds.stable || !decides_as_before(id, rounds, ordinal)) {
      settle(rounds);
      round(id, rounds, next->words, ordinal);
      done();
    } else if (looks && is_quiet(id, rounds, next->words, ordinal)) {
      const Execution* const first = next;
      do {
        thread.steps += live.before_count + 1;
        done();
      } while (goes_on() && looks_the_same(rounds, next->words));
      live.quiet.lasted(next - first);
    } else {
      same_round(id, rounds, next->words, ordinal);
      done();
    }
  } while (goes_on());
  settle(rounds);
  return next;
}

// Those that have just been taken, the next time.
template <typename Client>
bool FlowMachine<Client>::phis_stay(ThreadId id, const Rounds& rounds) {
  if (!rounds.live.has_phis) return true;
  const FlowPrograms::Edge& edge = programs_.edge(rounds.live.own_edge);
  for (std::uint32_t i = 0; i < edge.phi_count; ++i) {
    const FlowPrograms::Phi& phi = programs_.phi(edge.first_phi + i);
    if (value_of(id, rounds.frame, phi) != rounds.frame.registers[phi.defines]) return false;
  }
  return true;
}

// Of a round that has taken its phis and decides as before, up to its last branch. Quiet rounds do
// not take phis: those of the next one must give what these gave.
template <typename Client>
bool FlowMachine<Client>::is_quiet(ThreadId id, Rounds& rounds, const std::uint64_t* words,
                                   EventOrdinal ordinal) {
  LiveSegment& live = rounds.live;
  const Activation& frame = rounds.frame;
  const bool quiet = [&] {
    if (live.item_count > rounds.sights.size() || !phis_stay(id, rounds)) return false;
    for (std::uint32_t i = 0; i < live.item_count; ++i) {
      const LiveItem& item = live.items[i];
      if (!client_.is_quiet(item, item.offset + words[item.base], id, frame.registers.data(),
                            frame.control, rounds.sights[i])) {
        return false;
      }
    }
    if (!live.asks) return true;
    const Tag condition = joined(id, frame, live.flow->from);
    return client_.branch(id, ordinal + live.before_count, live.id, condition, frame.control) ==
           frame.marks[live.flow->block].control;
  }();
  if (!quiet) live.quiet.lasted(0);
  return quiet;
}

template <typename Client>
[[gnu::always_inline]] inline bool FlowMachine<Client>::looks_the_same(
    const Rounds& rounds, const std::uint64_t* words) const {
  const LiveSegment& live = rounds.live;
  for (std::uint32_t i = 0; i < live.item_count; ++i) {
    const LiveItem& item = live.items[i];
    if (!client_.is_seen(rounds.sights[i], item, item.offset + words[item.base])) return false;
  }
  return true;
}

// The same as execute() of a segment that comes after itself and has taken its phis.
template <typename Client>
void FlowMachine<Client>::round(ThreadId id, Rounds& rounds, const std::uint64_t* words,
                                EventOrdinal ordinal) {
  Thread& thread = rounds.thread;
  Activation& frame = rounds.frame;
  const LiveSegment& live = rounds.live;
  bool same = true;
  const auto take = [&](const FlowSegment& segment, SegmentId number, Control& outer) {
    const Control last =
        segment.block < frame.mark_count ? frame.marks[segment.block].control : Control();
    outer = frame.control;
    const Control decided = take_branch(id, frame, segment, number, thread.steps, ordinal);
    same = same && decided == last;
    return decided;
  };
  const FlowSegment& first = live.before_count == 0 ? *live.flow : *live.before[0].flow;
  ++thread.steps;
  frame.control = control_of(frame, first);
  for (std::uint32_t i = 0; i < live.before_count; ++i, ++ordinal) {
    const LiveBefore& before = live.before[i];
    Control decided{};
    if (before.branches) decided = take(*before.flow, before.id, rounds.outer[i]);
    ++thread.steps;
    frame.control = before.controls_next ? decided : control_of(frame, *before.next);
  }
  execute_items(id, frame.registers.data(), frame.control, live, words, ordinal);
  if (live.flow->end == SegmentEnd::kBranch)
    take(*live.flow, live.id, rounds.outer[live.before_count]);
  frame.block = live.flow->block;
  rounds.stable = same;
}

template <typename Client>
[[gnu::always_inline]] inline bool FlowMachine<Client>::decides_as_before(ThreadId id,
                                                                          const Rounds& rounds,
                                                                          EventOrdinal ordinal) {
  const LiveSegment& live = rounds.live;
  for (std::uint32_t i = 0; i < live.before_count; ++i) {
    const LiveBefore& before = live.before[i];
    if (!before.asks) continue;
    const Tag condition = joined(id, rounds.frame, before.flow->from);
    const Control decided = client_.branch(id, ordinal + i, before.id, condition, rounds.outer[i]);
    if (decided != rounds.frame.marks[before.flow->block].control) return false;
  }
  return true;
}

// What controls its accesses is what controlled the last round's. When the branches were executed
// is put down later, by settle().
template <typename Client>
[[gnu::always_inline]] inline void FlowMachine<Client>::same_round(ThreadId id, Rounds& rounds,
                                                                   const std::uint64_t* words,
                                                                   EventOrdinal ordinal) {
  const LiveSegment& live = rounds.live;
  Activation& frame = rounds.frame;
  rounds.thread.steps += live.before_count + 1;
  ordinal += live.before_count;
  execute_items_here(id, frame.registers.data(), frame.control, live, words, ordinal);
  if (!live.asks) return;
  const Tag condition = joined(id, frame, live.flow->from);
  const Control decided = client_.branch(id, ordinal, live.id, condition, frame.control);
  if (decided == frame.marks[live.flow->block].control) return;
  settle(rounds);
  frame.marks[live.flow->block].control = decided;
  rounds.stable = false;
}

template <typename Client>
void FlowMachine<Client>::settle(Rounds& rounds) {
  if (!rounds.stable) return;
  const LiveSegment& live = rounds.live;
  std::uint64_t step = rounds.thread.steps - live.before_count;
  for (std::uint32_t i = 0; i < live.before_count; ++i, ++step) {
    if (live.before[i].branches) rounds.frame.marks[live.before[i].flow->block].when = step;
  }
  if (live.flow->end == SegmentEnd::kBranch) rounds.frame.marks[live.flow->block].when = step;
}

}  // namespace heddle
