// Passes on only accesses to granules that more than one thread has touched.
//
// Most memory is only ever touched by one thread, and no detector of interleavings can say anything
// about it. Because one thread runs at a time, a granule (8 bytes here: never finer than what a
// detector tracks, so nothing it needs is lost) needs no lock and no order to be watched: its
// state is the thread that has it, and its shadow word holds the last access. When another thread
// comes, that last access is delivered, late, before the execution that made the granule shared;
// from then on every access is delivered.
//
// Everything else passes. A new block of memory starts without a past. What passes
// has ordinals of its own.
//
// Executions stay executions, less the items that do not pass (looks.h). A loop passes as a whole
// when all that it touches is shared. Of executions, calls in which nothing passes do not pass
// either.
#pragma once

#include "base/result.h"
#include "collect/event_buffer.h"
#include "collect/looks.h"
#include "collect/shadow.h"
#include "trace/loop_walk.h"
#include "trace/taker.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace heddle::collect {

class SharedFilter : public EventTaker {
 public:
  class Stretch;

  // An error: there is no address space for the shadow.
  static Result<std::unique_ptr<SharedFilter>> create(EventTaker& next);

  void on(std::span<const Event> batch, EventOrdinal first) override;

  // For a decoder that has its words looked at as it finds them, in stretches and, between them,
  // events. All shapes that come have been named; what passed is handed over at the latest before
  // the words go away.
  void expect(std::span<const RecordShape* const> shapes);
  void take(std::span<const Event> events);
  void hand_over();

  const Forms::OfUnit& forms(const Unit& unit) { return forms_.of(unit, shapes_); }
  std::uint64_t accesses() const { return accesses_; }  // that came, not that passed

 private:
  // The state of a granule: nobody has touched it, thread number state - 1 has it, one of the many
  // threads without a state of their own has it (its word says which), several have touched it.
  static constexpr std::uint8_t kUntouched = 0;
  static constexpr std::uint8_t kSomebody = 254;
  static constexpr std::uint8_t kShared = 255;
  static std::uint8_t state_of(ThreadId thread) {
    return thread < kSomebody - 1 ? static_cast<std::uint8_t>(thread + 1) : kSomebody;
  }

  static constexpr Address kGranuleMask = 7;
  static constexpr std::size_t kRoom = 1024;  // executions that wait to be handed over, 24 KiB

  // Of a segment whose record tells it, plus one, if it is not known before.
  static std::uint64_t size_of(const CompiledItem& item, const std::uint64_t* words) {
    return item.dynamic_size ? words[item.next - 1] - 1 : std::uint64_t{item.event.size};
  }

  explicit SharedFilter(EventTaker& next) : next_(next), executions_(kRoom + 2) {}

  // The execution of a segment, a call or a loop, whatever it touches.
  void segment(const Form& form, const Execution& execution);
  // Both: false: it takes the way of all others.
  bool loop(const Execution& execution);
  bool ranges(std::span<const CompiledItem> items, const std::uint64_t* words, ThreadId thread);

  bool look(std::span<const Look> looks, const Execution& execution, std::uint32_t* passing);
  void piece_by_piece(const Execution& execution);
  bool all_shared(Address first, std::uint64_t size) const;
  bool all_shared(const RecordShape& loop, const std::uint64_t* record) const;
  bool all_shared(const LoopWalk::Moving& item, std::uint64_t size, std::uint64_t rounds) const;

  bool touch(const Event& event, Address address, ThreadId thread);
  bool touch_granule(Address address, std::uint64_t last, ThreadId thread);
  bool take_granule(Address address, std::uint64_t word, ThreadId thread);
  void share(Address address);
  void take(const Event& event);
  void place_events();
  void make_room();
  void add(const Execution& execution) {
    if (placed_ != events_.size()) place_events();
    executions_[used_++] = execution;
  }

  EventTaker& next_;
  Shadow shadow_;
  std::span<const RecordShape* const> shapes_;
  Forms forms_;
  LoopWalk loop_;
  // What passed and is not yet handed over.
  EventBuffer events_;
  std::size_t placed_ = 0;  // events that have their place among the executions
  std::vector<Execution> executions_;
  std::size_t used_ = 0;  // of them
  EventOrdinal ordinal_ = 0;
  std::uint64_t accesses_ = 0;
};

// Executions of one thread that come one after the other. This is where most of the time goes that
// it takes to watch a program, so what it works with are members of its own, which can stay in
// registers: as the filter's, any store to memory could be one to them. What is rare goes to the
// filter.
class SharedFilter::Stretch {
 public:
  Stretch(SharedFilter& filter, ThreadId thread)
      : filter_(filter),
        looks_(filter.forms_.looks()),
        windows_(filter.forms_.windows()),
        shadow_(filter.shadow_.view()),
        thread_(thread),
        mine_(state_of(thread) != kSomebody ? state_of(thread) : kShared),
        last_(LastAccess::of_thread(thread)) {
    resume();
  }
  Stretch(const Stretch&) = delete;
  Stretch& operator=(const Stretch&) = delete;
  ~Stretch() { pause(); }

  // Another unit's executions follow.
  const Forms::OfUnit& forms(const Unit& unit) {
    const Forms::OfUnit& forms = filter_.forms(unit);
    looks_ = filter_.forms_.looks();
    windows_ = filter_.forms_.windows();
    return forms;
  }

  // A segment or a call with so many looks, or with so many windows. Those few cases are judged
  // here that are nearly all: the granules are shared, or this thread's as before.
  [[gnu::always_inline]] void by_looks(const Form& form, unsigned looks, const std::uint64_t* words,
                                       SiteId site) {
    std::uint32_t passing = 0;
    const Look* const first = looks_ + form.looks;
#pragma GCC unroll 4
    for (unsigned i = 0; i < looks; ++i) {
      const Look& look = first[i];
      const Address address = look.offset + words[look.base];
      if ((address & look.unlikely) != 0) [[unlikely]]
        return slowly(form, words, site);
      const std::uint8_t state = shadow_.state(address);
      if (state == kShared) {
        passing |= look.items;
      } else if (state == mine_) {
        remember(look, address);
      } else [[unlikely]] {
        return slowly(form, words, site);
      }
    }
    pass(form, passing, words, site);
  }
  [[gnu::always_inline]] void by_windows(const Form& form, unsigned windows,
                                         const std::uint64_t* words, SiteId site) {
    std::uint32_t passing = 0;
    const Window* const first = windows_ + form.windows;
#pragma GCC unroll 6
    for (unsigned i = 0; i < windows; ++i) {
      const Window& window = first[i];
      const Address base = words[window.base];
      if (((base + window.offset) & window.unlikely) != 0) [[unlikely]]
        return slowly(form, words, site);
      const std::uint64_t states = shadow_.states(base + window.offset) & window.mask;
      if (states == window.mask) {
        passing |= window.items;
      } else if (states == (mine_ * kEach & window.mask) && window.look_count != 0) {
        const Look* look = looks_ + window.looks;
        for (const Look* const end = look + window.look_count; look != end; ++look) {
          remember(*look, base + look->offset);
        }
      } else [[unlikely]] {
        return one_by_one(form, words, site);
      }
    }
    pass(form, passing, words, site);
  }
  void slowly(const Form& form, const std::uint64_t* words, SiteId site) {
    pause();
    filter_.segment(form, Execution::of(form.shape, thread_, words, site));
    resume();
  }
  bool ranges(std::span<const CompiledItem> items, const std::uint64_t* words) {
    for (const CompiledItem& item : items) {
      if (!remember_range(item, words)) {
        pause();
        const bool taken = filter_.ranges(items, words, thread_);
        resume();
        return taken;
      }
    }
    accesses_ += items.size();
    return true;
  }
  void enter(ShapeId shape, const std::uint64_t* words, SiteId site) {
    add(Execution::of(shape, thread_, words, site));
  }
  void leave(ShapeId shape, const std::uint64_t* words) {
    const bool nothing_between = to_ != begin_ && to_[-1].shape != 0 &&
                                 filter_.shapes_[to_[-1].shape]->kind == RecordShape::Kind::kEnter;
    if (nothing_between) {
      --to_;
    } else {
      add(Execution::of(shape, thread_, words));
    }
  }
  bool loop(ShapeId shape, const std::uint64_t* words) {
    pause();
    const bool taken = filter_.loop(Execution::of(shape, thread_, words));
    resume();
    return taken;
  }

 private:
  static constexpr std::uint64_t kEach = 0x0101010101010101;

  // Where granules of one window have different states, or their order counts.
  [[gnu::noinline]] void one_by_one(const Form& form, const std::uint64_t* words, SiteId site) {
    by_looks(form, form.look_count, words, site);
  }
  [[gnu::always_inline]] void remember(const Look& look, Address address) const {
    shadow_.word(address) = look.last | last_ | LastAccess::at(address);
  }
  // A few bytes that are this thread's as before; false: they are not, or many.
  bool remember_range(const CompiledItem& item, const std::uint64_t* words) const {
    constexpr std::uint64_t kFew = (Shadow::kStates - 1) * (kGranuleMask + 1);
    const std::uint64_t size = size_of(item, words);
    const Address address = item.event.address + words[item.base];
    if (size - 1 >= kFew || !Shadow::covers(address)) return false;
    const Address end = address + size;
    const auto granules = static_cast<unsigned>((end - 1) / 8 - address / 8 + 1);
    const std::uint64_t mask = ~std::uint64_t{0} >> (64 - 8 * granules);
    if ((shadow_.states(address) & mask) != (mine_ * kEach & mask) || mine_ == kShared) {
      return false;
    }
    for (Address at = address; at < end;) {
      const Address next = std::min(end, (at | kGranuleMask) + 1);
      shadow_.word(at) = LastAccess::pack(item.event, next - at) | last_ | LastAccess::at(at);
      at = next;
    }
    return true;
  }
  [[gnu::always_inline]] void pass(const Form& form, std::uint32_t passing,
                                   const std::uint64_t* words, SiteId site) {
    accesses_ += form.items;
    if (passing != 0) {
      add({form.shape, thread_, site, passing == form.all ? Execution::kAll : passing, words});
    }
  }
  void resume() {
    filter_.make_room();
    begin_ = filter_.executions_.data();
    to_ = begin_ + filter_.used_;
  }
  void pause() {
    filter_.used_ = static_cast<std::size_t>(to_ - begin_);
    filter_.accesses_ += std::exchange(accesses_, 0);
  }
  void make_room() {
    pause();
    resume();
  }
  [[gnu::always_inline]] void add(const Execution& execution) {
    *to_++ = execution;
    if (to_ >= begin_ + kRoom) [[unlikely]]
      make_room();
  }

  SharedFilter& filter_;
  const Look* looks_;
  const Window* windows_;
  Shadow::View shadow_;
  ThreadId thread_;
  std::uint8_t mine_;  // the state of granules that are surely this thread's; kShared: none is
  std::uint64_t last_;
  Execution* begin_ = nullptr;
  Execution* to_ = nullptr;
  std::uint64_t accesses_ = 0;
};

}  // namespace heddle::collect
