// The decoder's loop for a consumer of shared accesses: finds a record and looks at its granules at
// once. Watching a program costs what this loop costs.
#include "collect/decoder.h"

#include <bit>
#include <cstddef>

namespace heddle::collect {

// Like executions(): returns where a record stands that takes the way of all others.
std::size_t Decoder::filtered(std::span<const std::uint64_t> words, std::size_t at) {
  constexpr std::ptrdiff_t kAhead = 128;  // words; the program wrote them on another processor
  const std::uint64_t* record = words.data() + at;
  const std::uint64_t* const end = words.data() + words.size();
  std::uint64_t slots_begin = 0;
  std::uint64_t slot_count = 0;
  const Forms::OfUnit* unit = nullptr;
  SharedFilter::Stretch to(*filter_, thread_);
  while (record < end) {
    const std::uint64_t header = *record;
    const std::uint64_t number = std::rotr(header - slots_begin, 3);
    if (number >= slot_count) [[unlikely]] {
      const Unit* other = header >> 56 == 0 ? units_.find(header) : nullptr;
      if (other == nullptr || other->slot_at(header) == nullptr) break;
      unit = &to.forms(*other);
      slots_begin = other->slots_begin;
      slot_count = other->slots.size();
      continue;
    }
    __builtin_prefetch(record + kAhead);
    const Form& form = unit->slots[number];
    if (form.words >= end - record) break;
    // The same record again and again, in a loop say, need not be found again.
    const auto while_same = [&](auto judge) __attribute__((always_inline)) {
      const std::size_t length = std::size_t{1} + form.words;
      const std::uint64_t* const last = end - length;
      do {
        judge();
        record += length;
      } while (record <= last && *record == header);
    };
    const auto by_looks = [&](unsigned looks) __attribute__((always_inline)) {
      while_same([&]() __attribute__((always_inline)) { to.by_looks(form, looks, record, 0); });
    };
    const auto by_windows = [&](unsigned windows) __attribute__((always_inline)) {
      while_same([&]() __attribute__((always_inline)) { to.by_windows(form, windows, record, 0); });
    };
    switch (form.code) {
      case Form::kOneLook:
        by_looks(1);
        continue;
      case Form::kTwoLooks:
        by_looks(2);
        continue;
      case Form::kThreeLooks:
        by_looks(3);
        continue;
      case Form::kFourLooks:
        by_looks(4);
        continue;
      case Form::kOneWindow:
        by_windows(1);
        continue;
      case Form::kTwoWindows:
        by_windows(2);
        continue;
      case Form::kThreeWindows:
        by_windows(3);
        continue;
      case Form::kFourWindows:
        by_windows(4);
        continue;
      case Form::kFiveWindows:
        by_windows(5);
        continue;
      case Form::kSixWindows:
        by_windows(6);
        continue;
      case Form::kSegment:
        by_windows(form.window_count);
        continue;
      case Form::kNothing:
        break;
      case Form::kManyItems:
        to.slowly(form, record, 0);
        break;
      case Form::kRanges:
        if (!to.ranges(unit->unit->items_of(unit->unit->slots[number]), record)) {
          return static_cast<std::size_t>(record - words.data());
        }
        break;
      case Form::kJoined:
        for (unsigned i = 0; i < form.look_count; ++i) {
          const Forms::Part& part = unit->parts[form.looks + i];
          const std::uint64_t* const counted_from = record + part.shift;
          if (part.form.code == Form::kManyItems) {
            to.slowly(part.form, counted_from, part.site);
          } else {
            to.by_windows(part.form, part.form.window_count, counted_from, part.site);
          }
        }
        break;
      case Form::kEnter: {
        const CompiledSlot& slot = unit->unit->slots[number];
        const SiteId site = units_.site_of_flag(record[1]);
        if (slot.call != 0) {
          const CompiledCall& call = unit->unit->calls[slot.call - 1];
          if (call.leave_at < end - record && record[call.segment_at] == call.segment &&
              record[call.leave_at] == call.leave) {
            const Form& whole = unit->calls[slot.call - 1];
            to.by_windows(whole, whole.window_count, record, site);
            record += call.leave_at + 1;
            continue;
          }
        }
        state_->calls.push_back(
            {.function = slot.id, .frame = slot.has_frame ? record[slot.words] : 0});
        to.enter(form.shape, record, site);
        break;
      }
      case Form::kLeave:
        if (state_->calls.empty() ||
            state_->calls.back().function != unit->unit->slots[number].id) {
          return static_cast<std::size_t>(record - words.data());
        }
        state_->calls.pop_back();
        to.leave(form.shape, record);
        break;
      case Form::kLoop:
        if (!to.loop(form.shape, record)) return static_cast<std::size_t>(record - words.data());
        break;
      case Form::kOther:
        return static_cast<std::size_t>(record - words.data());
    }
    record += std::size_t{1} + form.words;
  }
  return static_cast<std::size_t>(record - words.data());
}

}  // namespace heddle::collect
