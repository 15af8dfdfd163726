// FlowMachine's way with loops whose rounds are executions of one segment, one after another.
//
// What the branches of a loop over an array depend on does not change from round to round, mostly,
// so neither does what controls its accesses: once a round has decided everything as the one before
// it did, the next ones only ask whether the branches' conditions are still the same.
//
// A round is *steady* if the next one, should it find memory as this one did, is bound to do the
// same: its reads, and the phis of the next round, give their registers what these have already,
// its branches decide as before, and what the client knows besides, but for the memory that is
// accessed, is after it what it was before it. So one round is watched; then, as long as what the
// client remembers of the addresses of a round is what it remembered of the watched one's before
// that, it becomes what that became, and nothing else of the round is looked at. Mostly it becomes
// what it was. Where it does not, accesses of a round that are about the same memory matter to each
// other: then they must be the same ones in every round, which they are if all addresses move on by
// the same distance.
//
// Neighbours of a point of a grid are points of the other colour of a chessboard, and so are the
// units of their values: where one round does not lead back to what was, two may. Then both are
// watched, and come by turns.
#pragma once

#include "flow/machine.h"

#include <type_traits>
#include <utility>

namespace heddle {

// The rounds that come after the first one.
template <typename Client>
template <typename Source, typename After>
void FlowMachine<Client>::repeat(ThreadId id, Thread& thread, LiveSegment& live, Source& source,
                                 EventOrdinal& ordinal, After after) {
  Rounds rounds(thread, live, steady_of(live));
  const auto goes_on = [&] { return source.goes_on() && thread.running != nullptr; };
  const auto done = [&] {
    ordinal += live.events();
    source.move_on(1);
    after();
  };
  const auto go_on_steadily = [&] {
    std::uint32_t turn = 0;
    std::uint32_t pause = 1;
    std::uint32_t single = 0;  // rounds before it is worth looking for a stretch of them
    while (goes_on()) {
      if (std::is_empty_v<After> && single == 0) {
        const std::uint64_t count = go_through(id, rounds, turn, source, ordinal);
        source.move_on(count);
        ordinal += count * live.events();
        if (count != 0) {
          pause = 1;
          continue;
        }
        pause = std::min(2 * pause, kLongestPause);
        single = pause;
      }
      if (!go_on(id, rounds, rounds.steady.watched[turn], source.words(), ordinal)) break;
      done();
      turn = (turn + 1) & (rounds.steady.period - 1);
      --single;
    }
    if (turn != 0) give(rounds, rounds.steady.watched[0].gave);
  };
  bool begins = true;
  do {
    expect_rounds(id, live, source);
    const bool looks = rounds.stable && live.steady.is_worth_a_look();
    if (looks) update_registers(rounds);
    if (live.has_phis) take_phis(id, rounds.frame, programs_.edge(live.own_edge));
    if (std::exchange(begins, false) && recall(id, rounds, source.words(), ordinal)) {
      go_on_steadily();
    } else if (!rounds.stable || !decides_as_before(id, rounds, ordinal)) {
      settle(rounds);
      round(id, rounds, source.words(), ordinal);
      done();
    } else if (looks) {
      Steady& steady = rounds.steady;
      const auto watch_one = [&](Watched& watched) {
        const bool watches = watch(id, rounds, watched, source.words(), ordinal);
        done();
        return watches;
      };
      hold(rounds, rounds.held);
      remember(id, rounds);
      bool is_steady = watch_one(steady.watched[0]);
      steady.period = 1;
      if (is_steady && !is_back(rounds)) {
        steady.period = 2;
        is_steady = !live.has_phis && goes_on() && decides_as_before(id, rounds, ordinal) &&
                    watch_one(steady.watched[1]) && is_back(rounds);
      }
      const EventOrdinal first = ordinal;
      steady.known = is_steady && phis_stay(id, rounds);
      if (steady.known) go_on_steadily();
      live.steady.lasted(static_cast<std::ptrdiff_t>((ordinal - first) / live.events()));
    } else {
      same_round(id, rounds, source.words(), ordinal);
      done();
    }
  } while (goes_on());
  settle(rounds);
}

template <typename Client>
typename FlowMachine<Client>::Steady& FlowMachine<Client>::steady_of(const LiveSegment& live) {
  const std::size_t number = programs_.number_of(live);
  if (number >= steady_.size()) steady_.resize(number + 1);
  if (steady_[number] == nullptr) steady_[number] = std::make_unique<Steady>();
  return *steady_[number];
}

// Puts down, before a round is watched, what it depends on but memory. Registers that nothing in a
// round uses do not matter.
template <typename Client>
void FlowMachine<Client>::remember(ThreadId id, Rounds& rounds) {
  const LiveSegment& live = rounds.live;
  Steady& steady = rounds.steady;
  steady.known = false;
  if (steady.uses.empty()) {
    const auto use = [&](FlowList list) {
      for (std::uint32_t i = 0; i < list.size(); ++i) steady.uses.push_back(list[i]);
    };
    for (const LiveItem& item : live.all_items()) {
      use(item.address);
      use(item.value);
      steady.uses.push_back(item.defines);
    }
    for (std::uint32_t i = 0; i < live.before_count; ++i) use(live.before[i].flow->from);
    use(live.flow->from);
    std::sort(steady.uses.begin(), steady.uses.end());
    steady.uses.erase(std::unique(steady.uses.begin(), steady.uses.end()), steady.uses.end());
  }
  steady.held.clear();
  for (const Register reg : steady.uses) steady.held.push_back(rounds.frame.registers[reg]);
  steady.thread = id;
  steady.generation = client_.generation();
}

// Whether the round, the second of its loop, which has taken its phis, is bound to do what a steady
// one did when the loop came the last time. What controls it may be something else than then: the
// client is asked anew whether its stores have anything to say about that.
template <typename Client>
bool FlowMachine<Client>::recall(ThreadId id, Rounds& rounds, const std::uint64_t* words,
                                 EventOrdinal ordinal) {
  const LiveSegment& live = rounds.live;
  Steady& steady = rounds.steady;
  Activation& frame = rounds.frame;
  if (!steady.known || steady.thread != id || steady.generation != client_.generation() ||
      live.before_count > 1) {
    return false;
  }
  update_registers(rounds);
  for (std::size_t i = 0; i < steady.uses.size(); ++i) {
    if (frame.registers[steady.uses[i]] != steady.held[i]) return false;
  }
  // The branches of the first round have left their marks.
  if (live.before_count != 0) {
    if (!live.before[0].controls_next) return false;
    rounds.outer[0] = control_of(frame, *live.before[0].flow);
  }
  rounds.outer[live.before_count] = frame.control;
  if (!decides_as_before(id, rounds, ordinal) || !ends_as_before(id, rounds, ordinal)) return false;
  std::array<Address, kMostSights> where;
  for (std::uint32_t i = 0; i < live.item_count; ++i) {
    const LiveItem& item = live.items[i];
    where[i] = item.offset + words[item.base];
    if (!client_.recall(item, where[i], id, frame.registers.data(), frame.control,
                        steady.watched[0].sights[i], steady.watched[steady.period - 1].sights[i])) {
      return false;
    }
  }
  for (Watched& watched : std::span(steady.watched).first(steady.period)) {
    if (watched.moves && !are_same_places(live, watched.where, where)) return false;
    watched.where = where;
  }
  rounds.stable = phis_stay(id, rounds);
  return rounds.stable;
}

// Whether those of the accesses that were about the same memory are, and no others.
template <typename Client>
bool FlowMachine<Client>::are_same_places(const LiveSegment& live, const Places& then,
                                          const Places& now) {
  for (std::uint32_t i = 0; i < live.item_count; ++i) {
    for (std::uint32_t other = 0; other < i; ++other) {
      const std::uint8_t shift = live.items[i].shift;
      const auto are_one = [&](const Places& where) {
        return where[i] >> shift == where[other] >> shift;
      };
      if (are_one(then) != are_one(now)) return false;
    }
  }
  return true;
}

// What the registers of its items hold, with what units have been merged into by now: that is what
// a round like the last one would find there.
template <typename Client>
void FlowMachine<Client>::update_registers(Rounds& rounds) {
  for (const LiveItem& item : std::span(rounds.live.items, rounds.live.item_count)) {
    Tag& tag = rounds.frame.registers[item.defines];
    tag = client_.updated(tag);
  }
}

template <typename Client>
void FlowMachine<Client>::hold(const Rounds& rounds, Held& held) {
  const std::size_t count = std::min<std::size_t>(rounds.live.item_count, held.size());
  for (std::size_t i = 0; i < count; ++i)
    held[i] = rounds.frame.registers[rounds.live.items[i].defines];
}

template <typename Client>
void FlowMachine<Client>::give(Rounds& rounds, const Held& held) {
  for (std::uint32_t i = 0; i < rounds.live.item_count; ++i)
    rounds.frame.registers[rounds.live.items[i].defines] = held[i];
}

// Whether they hold what they held before the first round that was watched.
template <typename Client>
bool FlowMachine<Client>::is_back(const Rounds& rounds) {
  for (std::uint32_t i = 0; i < rounds.live.item_count; ++i) {
    if (rounds.frame.registers[rounds.live.items[i].defines] != rounds.held[i]) return false;
  }
  return true;
}

// Those that have just been taken, the next time.
template <typename Client>
bool FlowMachine<Client>::phis_stay(ThreadId id, const Rounds& rounds) {
  if (!rounds.live.has_phis) return true;
  const FlowPrograms::Edge& edge = programs_.edge(rounds.live.own_edge);
  for (std::uint32_t i = 0; i < edge.phi_count; ++i) {
    const FlowPrograms::Phi& phi = programs_.phi(edge.first_phi + i);
    const Tag* const registers = rounds.frame.registers.data();
    if (value_of(id, registers, rounds.frame.control, phi) != registers[phi.defines]) return false;
  }
  return true;
}

// Executes a round that has taken its phis and decides as before, up to its last branch. Steady
// rounds do not take phis: those of the next one must give what these gave.
template <typename Client>
bool FlowMachine<Client>::watch(ThreadId id, Rounds& rounds, Watched& watched,
                                const std::uint64_t* words, EventOrdinal ordinal) {
  const std::span<LiveItem> items(rounds.live.items, rounds.live.item_count);
  const bool watches = items.size() <= kMostSights && [&] {
    for (std::size_t i = 0; i < items.size(); ++i) {
      watched.where[i] = items[i].offset + words[items[i].base];
      if (!client_.begin_sight(items[i], watched.where[i], watched.sights[i])) return false;
    }
    return true;
  }();
  const auto before = client_.knowledge();
  same_round(id, rounds, words, ordinal);
  if (!watches || !rounds.stable || !client_.is_as_good_as(before)) return false;
  update_registers(rounds);
  hold(rounds, watched.gave);
  watched.moves = false;
  for (std::size_t i = 0; i < items.size(); ++i) {
    Sight& sight = watched.sights[i];
    if (!client_.end_sight(items[i], watched.where[i], id, rounds.frame.registers.data(),
                           rounds.frame.control, std::span(watched.sights).first(i), sight)) {
      return false;
    }
    watched.moves = watched.moves || sight.moves;
  }
  return client_.end_watch();
}

// Whether the round is like the one that was watched; then it has been executed.
template <typename Client>
[[gnu::always_inline]] inline bool FlowMachine<Client>::go_on(ThreadId id, Rounds& rounds,
                                                              Watched& watched,
                                                              const std::uint64_t* words,
                                                              EventOrdinal ordinal) {
  const LiveSegment& live = rounds.live;
  for (std::uint32_t i = 0; i < live.item_count; ++i) {
    const LiveItem& item = live.items[i];
    const Address where = item.offset + words[item.base];
    if (!client_.is_seen(watched.sights[i], item, where) &&
        !client_.is_seen_beyond(watched.sights[i], item, where)) {
      return false;
    }
  }
  if (watched.moves && !move_on(id, live, watched, words, ordinal + live.before_count))
    return false;
  rounds.thread.steps += live.before_count + 1;
  return true;
}

// Many rounds like those that were watched, of a loop that goes through memory step by step; how
// many they were.
template <typename Client>
template <typename Source>
std::uint64_t FlowMachine<Client>::go_through(ThreadId id, Rounds& rounds, std::uint32_t turn,
                                              const Source& source, EventOrdinal ordinal) {
  const LiveSegment& live = rounds.live;
  const std::uint64_t even = source.template count_even<kMostSights>(live.all_items());
  if (even < kStretch) return 0;
  Places where;
  std::array<std::uint64_t, kMostSights> steps;
  for (std::uint32_t i = 0; i < live.item_count; ++i) {
    const LiveItem& item = live.items[i];
    where[i] = item.offset + source.words()[item.base];
    steps[i] = source.step(item.base);
  }
  const Stretch stretch{{live.items, live.item_count},
                        rounds.steady.watched[turn].sights.data(),
                        rounds.steady.watched[turn ^ (rounds.steady.period - 1)].sights.data(),
                        where.data(),
                        steps.data(),
                        live.events()};
  const std::uint64_t done = client_.go_through(stretch, even, id, ordinal + live.before_count);
  rounds.thread.steps += done * (live.before_count + 1);
  return done;
}

template <typename Client>
[[gnu::always_inline]] inline bool FlowMachine<Client>::move_on(ThreadId id,
                                                                const LiveSegment& live,
                                                                const Watched& watched,
                                                                const std::uint64_t* words,
                                                                EventOrdinal ordinal) {
  LiveItem* const items = live.items;
  const std::uint64_t distance = items[0].offset + words[items[0].base] - watched.where[0];
  for (std::uint32_t i = 1; i < live.item_count; ++i) {
    if (items[i].offset + words[items[i].base] - watched.where[i] != distance) return false;
  }
  for (std::uint32_t i = 0; i < live.item_count; ++i) {
    ++ordinal;
    if (watched.sights[i].moves)
      client_.see_again(watched.sights[i], items[i], watched.where[i] + distance, id, ordinal);
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
  execute_items(id, frame.registers.data(), frame.control, live.all_items(), words, ordinal);
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

// The same of the branch at its end.
template <typename Client>
[[gnu::always_inline]] inline bool FlowMachine<Client>::ends_as_before(ThreadId id,
                                                                       const Rounds& rounds,
                                                                       EventOrdinal ordinal) {
  const LiveSegment& live = rounds.live;
  if (!live.asks) return true;
  const Activation& frame = rounds.frame;
  const Tag condition = joined(id, frame, live.flow->from);
  const Control decided =
      client_.branch(id, ordinal + live.before_count, live.id, condition, frame.control);
  return decided == frame.marks[live.flow->block].control;
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
  execute_items_here(id, frame.registers.data(), frame.control, live.all_items(), words, ordinal);
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
