#include "collect/stretch.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

namespace heddle::collect {

// The record of a loop that gathers, round by round.
class Stretch::Gathering {
 public:
  Gathering(const Form& form, const std::uint64_t* record, const RecordShape& shape)
      : all_(form.lanes, form.window_count), record_(record), shape_(shape), rounds_(record[1]) {}

  const RecordShape& shape() const { return shape_; }
  std::uint64_t rounds() const { return rounds_; }
  std::uint64_t round() const { return round_; }
  bool can_be() const { return rounds_ - 1 < LoopWalk::kMostGathered / shape_.round_words; }
  // Of the record, behind its header.
  std::ptrdiff_t length() const {
    return static_cast<std::ptrdiff_t>(shape_.words + LoopWalk::gathered(shape_, rounds_));
  }

  bool all_shared(Shadow::View shadow) const {
    return std::all_of(all_.begin(), all_.end(),
                       [&](const Lane& lane) { return all_shared(lane, shadow); });
  }

  // From round to round.
  void begin() {
    round_ = 0;
    count_ = all_.size();
    for (std::size_t i = 0; i < all_.size(); ++i) ways_[i] = way_of(all_[i]);
  }
  bool ended() const { return round_ == rounds_; }
  // Of the next round, as many as there are addresses.
  std::span<const Lane> lanes() const { return all_; }
  std::span<const Address> addresses() const { return {addresses_, count_}; }
  std::uint64_t items() const { return round_ + 1 < rounds_ ? shape_.items.size() : shape_.always; }

  // False: a look at one granule each is not enough.
  [[gnu::always_inline]] bool find_addresses() {
    if (round_ + 1 == rounds_) leave_out_lanes();
    std::uint64_t unlikely = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      addresses_[i] = ways_[i].next();
      unlikely |= addresses_[i] & all_[i].unlikely;
    }
    return unlikely == 0;
  }
  void go_on() { ++round_; }

 private:
  // The address is the sum of two that get on.
  struct Way {
    Address address;
    std::uint64_t step;
    const std::uint64_t* word;
    std::size_t words;

    Address next() {
      const Address now = address + *word;
      address += step;
      word += words;
      return now;
    }
  };
  static constexpr std::uint64_t kNoWord = 0;

  Way way_of(const Lane& lane) const {
    const LoopWalk::Moving item = LoopWalk::moving(shape_, lane.item, record_);
    return {.address = item.address,
            .step = item.step,
            .word = lane.round_words != 0 ? record_ + lane.base : &kNoWord,
            .words = lane.round_words};
  }

  bool all_shared(const Lane& lane, Shadow::View shadow) const {
    const std::uint64_t rounds = lane.in_last_round ? rounds_ : rounds_ - 1;
    if (rounds == 0) return true;
    Way way = way_of(lane);
    if (lane.round_words == 0 && way.step == lane.size) {
      const Address to = way.address + rounds * lane.size - 1;
      return (way.address & lane.unlikely) == 0 && Shadow::covers(to) &&
             shadow.all(way.address, to, SharedFilter::kShared);
    }
    for (std::uint64_t round = 0; round < rounds; ++round) {
      const Address address = way.next();
      if ((address & lane.unlikely) != 0 || shadow.state(address) != SharedFilter::kShared) {
        return false;
      }
    }
    return true;
  }

  // Those that happen in the last round, too, are the first.
  void leave_out_lanes() {
    while (count_ != 0 && !all_[count_ - 1].in_last_round) --count_;
  }

  std::span<const Lane> all_;
  const std::uint64_t* record_;
  const RecordShape& shape_;
  std::uint64_t rounds_;
  std::uint64_t round_ = 0;
  std::size_t count_ = all_.size();
  Way ways_[Execution::kMostBits];
  Address addresses_[Execution::kMostBits];
};

struct Stretch::Judges {
  // What judges hand each other, in registers.
#define HEDDLE_JUDGE_ARGUMENTS \
  Words record, Execution *to, const Form &form, Stretch &in, Shadow::View shadow

  static Words stop(Words record, Execution* to, Stretch& in) {
    in.to_ = to;
    return record;
  }

  [[gnu::always_inline]] static Words next(Words record, Execution* to, Stretch& in,
                                           Shadow::View shadow) {
    constexpr std::ptrdiff_t kAhead = 128;  // words; the program wrote them on another processor
    if (record >= in.end_) [[unlikely]]
      return stop(record, to, in);
    const std::uint64_t number = std::rotr(*record - in.slots_begin_, 3);
    if (number >= in.slot_count_) [[unlikely]]
      return of_another_unit(record, to, in, shadow);
    __builtin_prefetch(record + kAhead);
    const Form& form = in.slots_[number];
    return form.judge(record, to, form, in, shadow);
  }

  [[gnu::noinline]] static Words of_another_unit(Words record, Execution* to, Stretch& in,
                                                 Shadow::View shadow) {
    if (!in.go_to_unit_of(*record)) return stop(record, to, in);
    return next(record, to, in, shadow);
  }

  // Something that may put down executions by itself. Returns where the next one is put down.
  template <typename Judge>
  static Execution* aside(Execution* to, Stretch& in, Judge judge) {
    in.to_ = to;
    in.aside(judge);
    return in.to_;
  }
  [[gnu::noinline]] static Execution* with_room(Execution* to, Stretch& in) {
    return aside(to, in, [] {});
  }
  [[gnu::noinline]] static Words make_room(Words record, Execution* to, Stretch& in,
                                           Shadow::View shadow) {
    return next(record, with_room(to, in), in, shadow);
  }

  static Words not_judged(Words record, Execution* to, const Form&, Stretch& in, Shadow::View) {
    return stop(record, to, in);
  }

  static Words nothing(HEDDLE_JUDGE_ARGUMENTS) {
    record += std::ptrdiff_t{1} + form.words;
    if (record > in.end_) [[unlikely]]
      return stop(record - form.words - 1, to, in);
    return next(record, to, in, shadow);
  }

  // Whatever it touches.
  static void segment(const Form& form, Stretch& in, Words words, SiteId site) {
    in.filter_.segment(form, Execution::of(form.shape, in.thread_, words, site));
  }
  [[gnu::noinline]] static Words slowly(HEDDLE_JUDGE_ARGUMENTS) {
    if (form.words >= in.end_ - record) return stop(record, to, in);
    to = aside(to, in, [&] { segment(form, in, record, 0); });
    return next(record + form.words + 1, to, in, shadow);
  }

  // `last`: of the look or the lane.
  static std::uint64_t last_of(const Stretch& in, std::uint64_t last, Address address) {
    return last | in.last_ | LastAccess::at(address);
  }
  // A granule that is this thread's.
  static void remember(const Stretch& in, Shadow::View shadow, std::uint64_t last,
                       Address address) {
    shadow.word(address) = last_of(in, last, address);
  }
  // One that nobody has touched; false: one that somebody has, or that cannot be remembered.
  static bool take(const Stretch& in, Shadow::View shadow, std::uint64_t last, Address address) {
    return shadow.state(address) == in.free_ &&
           shadow.set(address, in.mine_, last_of(in, last, address));
  }

  // Adds the items that pass to `passing`. Those few cases are judged here that are nearly all: the
  // granules are shared, this thread's as before, or nobody's. False: something else, and if some
  // of the looks were remembered already, that does no harm.
  [[gnu::always_inline]] static bool look_at(const Look* look, unsigned count, Words words,
                                             const Stretch& in, Shadow::View shadow,
                                             std::uint32_t& passing) {
#pragma GCC unroll 4
    for (unsigned i = 0; i < count; ++i, ++look) {
      const Address address = look->offset + words[look->base];
      if ((address & look->unlikely) != 0) [[unlikely]]
        return false;
      const std::uint8_t state = shadow.state(address);
      if (state == SharedFilter::kShared) {
        passing |= look->items;
      } else if (state == in.mine_) {
        remember(in, shadow, look->last, address);
      } else if (!take(in, shadow, look->last, address)) [[unlikely]] {
        return false;
      }
    }
    return true;
  }
  [[gnu::always_inline]] static bool look_through(const Window* window, unsigned count, Words words,
                                                  const Stretch& in, Shadow::View shadow,
                                                  std::uint32_t& passing) {
#pragma GCC unroll 6
    for (unsigned i = 0; i < count; ++i, ++window) {
      const Address base = words[window->base];
      const Address address = base + window->offset;
      if ((address & window->unlikely) != 0) [[unlikely]]
        return false;
      const std::uint64_t states = shadow.states(address) & window->mask;
      if (states == window->mask) {
        passing |= window->items;
      } else if (states == (in.all_mine_ & window->mask) && window->look_count != 0) {
        const Look* look = window->looks;
        for (const Look* const last = look + window->look_count; look != last; ++look) {
          remember(in, shadow, look->last, base + look->offset);
        }
      } else if (states == 0 && window->look_count != 0) {
        const Look* look = window->looks;
        for (const Look* const last = look + window->look_count; look != last; ++look) {
          // Several looks at one granule: the first has taken it.
          const Address at = base + look->offset;
          if (shadow.state(at) == in.mine_) {
            remember(in, shadow, look->last, at);
          } else if (!take(in, shadow, look->last, at)) {
            return false;
          }
        }
      } else [[unlikely]] {
        return false;
      }
    }
    return true;
  }

  // Another thread's granule becomes everybody's, and that thread's last access passes.
  static Execution* share(Stretch& in, Address address, Execution* to) {
    SharedFilter& filter = in.filter_;
    filter.share(address);
    filter.placed_ = filter.events_.size();
    if (to != filter.executions_.data() && to[-1].shape == 0) {
      ++to[-1].who;
      return to;
    }
    *to = Execution::events(1);
    return to + 1;
  }

  [[gnu::always_inline]] static Execution* pass(Execution* to, const Form& form, Stretch& in,
                                                Words words, SiteId site, std::uint32_t passing) {
    in.accesses_ += form.items;
    if (passing == 0) return to;
    to->shape = form.shape;
    to->who = in.thread_;
    to->site = site;
    to->items = passing == form.all ? Execution::kAll : passing;
    to->words = words;
    return to + 1;
  }

  // Segments, by so many looks or windows, or as many as the form says.
  static constexpr unsigned kAny = ~0u;

  template <bool kWindows, unsigned kCount>
  static Words segments(HEDDLE_JUDGE_ARGUMENTS) {
    const Words behind = record + 1 + form.words;
    if (behind > in.end_) [[unlikely]]
      return stop(record, to, in);
    std::uint32_t passing = 0;
    const unsigned all = kWindows ? form.window_count : form.look_count;
    const unsigned count = kCount == kAny ? all : kCount;
    const bool judged = kWindows ? look_through(form.windows, count, record, in, shadow, passing)
                                 : look_at(form.looks, count, record, in, shadow, passing);
    if (!judged) [[unlikely]]
      return slowly(record, to, form, in, shadow);
    to = pass(to, form, in, record, 0, passing);
    if (to >= in.room_end_) [[unlikely]]
      return make_room(behind, to, in, shadow);
    // In a loop the same record comes again and again, and need not be found again.
    if (behind < in.end_ && *behind == *record) {
      return segments<kWindows, kCount>(behind, to, form, in, shadow);
    }
    return next(behind, to, in, shadow);
  }

  // The segment of a call, which has three records.
  [[gnu::always_inline]] static Execution* of_call(Words words, Execution* to, const Form& form,
                                                   SiteId site, Stretch& in, Shadow::View shadow) {
    std::uint32_t passing = 0;
    if (form.window_count != 1 || !look_through(form.windows, 1, words, in, shadow, passing)) {
      return any_call(words, to, form, site, in, shadow);
    }
    to = pass(to, form, in, words, site, passing);
    return to < in.room_end_ ? to : with_room(to, in);
  }
  [[gnu::noinline]] static Execution* any_call(Words words, Execution* to, const Form& form,
                                               SiteId site, Stretch& in, Shadow::View shadow) {
    std::uint32_t passing = 0;
    if (form.kind == Form::Kind::kManyItems ||
        !look_through(form.windows, form.window_count, words, in, shadow, passing)) {
      return aside(to, in, [&] { segment(form, in, words, site); });
    }
    to = pass(to, form, in, words, site, passing);
    return to < in.room_end_ ? to : with_room(to, in);
  }

  // A loop of which nothing is private passes as a whole.
  static Words loop(HEDDLE_JUDGE_ARGUMENTS) {
    if (form.words >= in.end_ - record) [[unlikely]]
      return stop(record, to, in);
    const std::uint64_t rounds = record[1];
    if (rounds - 1 >= LoopWalk::kMostRounds || !all_shared(form, record, rounds, shadow)) {
      return loop_slowly(record, to, form, in, shadow);
    }
    in.accesses_ += (rounds - 1) * form.round_items + form.always;
    return put_down(Execution::of(form.shape, in.thread_, record), record, to, form, in, shadow);
  }
  [[gnu::always_inline]] static bool all_shared(const Form& form, Words record,
                                                std::uint64_t rounds, Shadow::View shadow) {
    const Row* row = form.rows;
    for (const Row* const end = row + form.count; row != end; ++row) {
      if (row->forward ? !all_shared_forward(*row, record, rounds, shadow)
                       : !SharedFilter::all_shared(*row, record, rounds, shadow)) {
        return false;
      }
    }
    return true;
  }
  // The same for what most rows are.
  [[gnu::always_inline]] static bool all_shared_forward(const Row& row, Words record,
                                                        std::uint64_t rounds, Shadow::View shadow) {
    static_assert(LoopWalk::kMostRounds < std::uint64_t{1} << (Shadow::kAddressBits - 8));
    const std::uint64_t steps = rounds - (row.in_last_round ? 1 : 2);
    if (steps == ~std::uint64_t{0}) return true;
    const Address first = row.offset + record[row.base];
    const Address last =
        first + steps * static_cast<std::uint64_t>(row.step.distance) + (row.size - 1);
    return Shadow::covers(first) && Shadow::covers(last) &&
           shadow.all_in_row(first, last, SharedFilter::kShared);
  }
  [[gnu::noinline]] static Words loop_slowly(HEDDLE_JUDGE_ARGUMENTS) {
    bool taken = false;
    to = aside(to, in, [&] {
      taken = in.filter_.loop(form, Execution::of(form.shape, in.thread_, record));
    });
    return taken ? next(record + 1 + form.words, to, in, shadow) : record;
  }

  // A loop that gathers: all of it passes, or it is judged round by round.
  static Words gathering(HEDDLE_JUDGE_ARGUMENTS) {
    const std::ptrdiff_t left = in.end_ - record;
    if (form.words >= left) [[unlikely]]
      return stop(record, to, in);
    Gathering loop(form, record, *in.filter_.shapes_[form.shape]);
    if (!loop.can_be() || loop.length() >= left) [[unlikely]]
      return stop(record, to, in);
    const Words behind = record + 1 + loop.length();
    bool passes = loop.all_shared(shadow);
    if (!passes) {
      const std::size_t events = in.filter_.events_.size();
      to = share_all(loop, to, in);
      passes = in.filter_.events_.size() != events && loop.all_shared(shadow);
    }
    if (passes) {
      *to = Execution::of(form.shape, in.thread_, record);
      in.accesses_ += accesses_of_loop(loop.shape(), *to);
      ++to;
    } else {
      to = round_by_round(loop, record, to, form, in, shadow);
    }
    if (to >= in.room_end_) [[unlikely]]
      return make_room(behind, to, in, shadow);
    return next(behind, to, in, shadow);
  }

  // What is another thread's becomes everybody's before the loop runs.
  [[gnu::noinline]] static Execution* share_all(Gathering& loop, Execution* to, Stretch& in) {
    for (loop.begin(); !loop.ended() && loop.find_addresses(); loop.go_on()) {
      for (const Address address : loop.addresses()) {
        if (in.filter_.is_others(address, in.thread_)) to = share(in, address, to);
      }
    }
    return to;
  }

  // Rounds of which the same items pass are one execution.
  [[gnu::noinline]] static Execution* round_by_round(Gathering& loop, HEDDLE_JUDGE_ARGUMENTS) {
    std::uint64_t first = 0;
    std::uint32_t items = 0;
    const std::uint32_t all = (std::uint32_t{2} << (loop.shape().items.size() - 1)) - 1;
    const auto rounds = [&](std::uint64_t from, std::uint64_t to_round, std::uint32_t which) {
      if (which == all) which = Execution::kAll;
      return Execution::some_rounds(form.shape, in.thread_, record, which, from, to_round - from);
    };
    const auto put_down_until = [&](std::uint64_t round) {
      if (items == 0) return;
      *to++ = rounds(first, round, items);
      if (to >= in.room_end_) to = with_room(to, in);
    };
    for (loop.begin(); !loop.ended(); loop.go_on()) {
      if (!loop.find_addresses()) [[unlikely]] {
        put_down_until(loop.round());
        return aside(to, in, [&] {
          in.filter_.loop(form, rounds(loop.round(), loop.rounds(), Execution::kAll));
        });
      }
      std::uint32_t passing = 0;
      const bool judged = look_at_lanes(loop.lanes(), loop.addresses(), in, shadow, passing);
      in.accesses_ += judged ? loop.items() : 0;
      if (judged && passing == items) continue;
      put_down_until(loop.round());
      first = loop.round();
      items = passing;
      if (judged) continue;
      to = aside(to, in, [&] {
        in.filter_.accesses_ += loop.items();
        in.filter_.round(loop.lanes(), loop.addresses(), rounds(first, first + 1, 0));
      });
      items = 0;
    }
    put_down_until(loop.rounds());
    return to;
  }
  // False: one of them is another thread's, and if some were remembered already, that does no harm.
  static bool look_at_lanes(std::span<const Lane> lanes, std::span<const Address> addresses,
                            const Stretch& in, Shadow::View shadow, std::uint32_t& passing) {
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      const std::uint8_t state = shadow.state(addresses[i]);
      if (state == SharedFilter::kShared) {
        passing |= lanes[i].items;
      } else if (state == in.mine_) {
        remember(in, shadow, lanes[i].last, addresses[i]);
      } else if (!take(in, shadow, lanes[i].last, addresses[i])) {
        return false;
      }
    }
    return true;
  }

  static Words enter(HEDDLE_JUDGE_ARGUMENTS) {
    if (form.words >= in.end_ - record) [[unlikely]]
      return stop(record, to, in);
    if (!in.calls_.has_room()) [[unlikely]]
      return enter_deeper(record, to, form, in, shadow);
    const SiteId site = in.units_.site_of_flag(record[1]);
    in.calls_.push_in_room(
        {.function = form.function, .frame = form.has_frame ? record[form.words] : 0});
    return put_down(Execution::of(form.shape, in.thread_, record, site), record, to, form, in,
                    shadow);
  }
  [[gnu::noinline]] static Words enter_deeper(HEDDLE_JUDGE_ARGUMENTS) {
    in.calls_.make_room();
    return enter(record, to, form, in, shadow);
  }
  // The enter of a function that has but one segment.
  static Words enter_segment(HEDDLE_JUDGE_ARGUMENTS) {
    const CompiledCall& call = *form.call->is;
    if (call.leave_at >= in.end_ - record || record[call.segment_at] != call.segment ||
        record[call.leave_at] != call.leave) {
      return enter(record, to, form, in, shadow);
    }
    const SiteId site = in.units_.site_of_flag(record[1]);
    to = of_call(record, to, form.call->form, site, in, shadow);
    return next(record + call.leave_at + 1, to, in, shadow);
  }
  // A call in which nothing passed does not pass either.
  static Words leave(HEDDLE_JUDGE_ARGUMENTS) {
    if (form.words >= in.end_ - record || in.calls_.empty() ||
        in.calls_.back().function != form.function) [[unlikely]] {
      return stop(record, to, in);
    }
    in.calls_.pop();
    const bool nothing_between =
        to != in.filter_.executions_.data() && to[-1].shape != 0 &&
        in.filter_.shapes_[to[-1].shape]->kind == RecordShape::Kind::kEnter;
    if (nothing_between) return next(record + 1 + form.words, to - 1, in, shadow);
    return put_down(Execution::of(form.shape, in.thread_, record), record, to, form, in, shadow);
  }
  [[gnu::always_inline]] static Words put_down(const Execution& execution, HEDDLE_JUDGE_ARGUMENTS) {
    *to++ = execution;
    if (to >= in.room_end_) [[unlikely]]
      return make_room(record + 1 + form.words, to, in, shadow);
    return next(record + 1 + form.words, to, in, shadow);
  }

  static Words ranges(HEDDLE_JUDGE_ARGUMENTS) {
    const Words behind = record + 1 + form.words;
    if (behind > in.end_) [[unlikely]]
      return stop(record, to, in);
    std::uint32_t passing = 0;
    for (unsigned i = 0; i < form.items; ++i) {
      if (!look_along(form.ranges[i], std::uint32_t{1} << i, record, in, shadow, passing)) {
        return ranges_slowly(record, to, form, in, shadow);
      }
    }
    to = pass(to, form, in, record, 0, passing);
    if (to >= in.room_end_) [[unlikely]]
      return make_room(behind, to, in, shadow);
    return next(behind, to, in, shadow);
  }
  // A few bytes, as look_at() does it.
  [[gnu::always_inline]] static bool look_along(const Range& range, std::uint32_t item,
                                                Words record, const Stretch& in,
                                                Shadow::View shadow, std::uint32_t& passing) {
    constexpr std::uint64_t kFew = 64;
    const std::uint64_t size = range.size_in(record);
    Address at = range.offset + record[range.base];
    if (size - 1 >= kFew || !Shadow::covers(at) || !Shadow::covers(at + kFew)) return false;
    for (std::uint64_t left = size; left != 0;) {
      const std::uint64_t here =
          std::min(left, SharedFilter::kGranuleMask + 1 - (at & SharedFilter::kGranuleMask));
      const std::uint64_t last = range.last + LastAccess::of_more_bytes(here - 1);
      const std::uint8_t state = shadow.state(at);
      if (state == SharedFilter::kShared) {
        passing |= item;
      } else if (state == in.mine_) {
        remember(in, shadow, last, at);
      } else if (!take(in, shadow, last, at)) {
        return false;
      }
      at += here;
      left -= here;
    }
    return true;
  }
  [[gnu::noinline]] static Words ranges_slowly(HEDDLE_JUDGE_ARGUMENTS) {
    bool taken = false;
    to = aside(to, in,
               [&] { taken = in.filter_.ranges(Execution::of(form.shape, in.thread_, record)); });
    return taken ? next(record + 1 + form.words, to, in, shadow) : record;
  }

  template <bool kWindows>
  static Judge of_segment(unsigned count) {
    switch (count) {
      case 1:
        return &segments<kWindows, 1>;
      case 2:
        return &segments<kWindows, 2>;
      case 3:
        return &segments<kWindows, 3>;
      case 4:
        return &segments<kWindows, 4>;
      case 5:
        return &segments<kWindows, 5>;
      case 6:
        return &segments<kWindows, 6>;
      default:
        return &segments<kWindows, kAny>;
    }
  }
#undef HEDDLE_JUDGE_ARGUMENTS
};

Judge Stretch::judge_of(const Form& form) {
  switch (form.kind) {
    case Form::Kind::kNothing:
      return &Judges::nothing;
    case Form::Kind::kLoop:
      return &Judges::loop;
    case Form::Kind::kGathering:
      return &Judges::gathering;
    case Form::Kind::kManyItems:
      return &Judges::slowly;
    case Form::Kind::kRanges:
      return &Judges::ranges;
    case Form::Kind::kSegment:
      return form.window_count < form.look_count ? Judges::of_segment<true>(form.window_count)
                                                 : Judges::of_segment<false>(form.look_count);
    case Form::Kind::kEnter:
      return form.call != nullptr ? &Judges::enter_segment : &Judges::enter;
    case Form::Kind::kLeave:
      return &Judges::leave;
    case Form::Kind::kOther:
      break;
  }
  return &Judges::not_judged;
}

Stretch::Stretch(SharedFilter& filter, UnitTable& units, ThreadId thread, Activations& calls,
                 Words end)
    : thread_(thread),
      mine_(SharedFilter::state_of(thread) != SharedFilter::kSomebody
                ? SharedFilter::state_of(thread)
                : SharedFilter::kShared),
      all_mine_(mine_ * Shadow::kEach),
      free_(mine_ != SharedFilter::kShared ? SharedFilter::kUntouched : SharedFilter::kShared),
      last_(LastAccess::of_thread(thread)),
      end_(end),
      calls_(calls),
      filter_(filter),
      units_(units) {
  resume();
}

Stretch::Words Stretch::judge(Words record) {
  return Judges::next(record, to_, *this, filter_.shadow_.view());
}

// The records of this unit follow; false: there is none that has such a slot.
bool Stretch::go_to_unit_of(std::uint64_t header) {
  const Unit* const unit = header >> 56 == 0 ? units_.find(header) : nullptr;
  if (unit == nullptr || unit->slot_at(header) == nullptr) return false;
  unit_ = unit;
  slots_begin_ = unit->slots_begin;
  slot_count_ = unit->slots.size();
  slots_ = filter_.forms(*unit).slots.data();
  return true;
}

void Stretch::resume() {
  filter_.make_room();
  to_ = filter_.executions_.data() + filter_.used_;
  room_end_ = filter_.executions_.data() + SharedFilter::kRoom;
}

void Stretch::pause() {
  filter_.used_ = static_cast<std::size_t>(to_ - filter_.executions_.data());
  filter_.accesses_ += std::exchange(accesses_, 0);
}

}  // namespace heddle::collect
