// Records of one thread that come one after the other, judged by the filter of shared accesses.
// Watching a program costs what this costs.
//
// Every kind of record has a function of its own, its judge, and the last thing that it does is to
// call the judge of the next record. A compiler that optimises makes a jump of such a call, so what
// all of them work with stays in the same six registers from record to record; in one loop around
// all kinds of records most of it would be on the stack. Where the compiler does not, the calls are
// as deep as a block of the ring has records, which a stack holds.
//
// What is rare goes to the filter.
#pragma once

#include "collect/activation.h"
#include "collect/looks.h"
#include "collect/shadow.h"
#include "collect/shared_filter.h"
#include "trace/execution.h"

#include <cstdint>

namespace heddle::collect {

class Stretch {
 public:
  using Words = const std::uint64_t*;

  // `calls` are the thread's.
  Stretch(SharedFilter& filter, UnitTable& units, ThreadId thread, Activations& calls, Words end);
  Stretch(const Stretch&) = delete;
  Stretch& operator=(const Stretch&) = delete;
  ~Stretch() { pause(); }

  // Judges one record after the other, from this one on. Returns the first one that takes the way
  // of all others.
  Words judge(Words record);

  // Between two records, something that hands events to the filter.
  template <typename Hand>
  void aside(Hand hand) {
    pause();
    hand();
    resume();
  }

  // How forms of this kind, with so many looks and windows, are judged.
  static Judge judge_of(const Form& form);

 private:
  struct Judges;
  class Gathering;

  bool go_to_unit_of(std::uint64_t header);
  void resume();
  void pause();

  // Used for every record.
  std::uint64_t slots_begin_ = 0;
  std::uint64_t slot_count_ = 0;
  const Form* slots_ = nullptr;
  const Execution* room_end_ = nullptr;
  ThreadId thread_;
  std::uint8_t mine_;  // the state of granules that are surely this thread's; kShared: none is …
  std::uint64_t all_mine_;  // … and eight of it
  std::uint8_t free_;       // the state of granules that surely become this thread's; kShared: none
  std::uint64_t last_;
  std::uint64_t accesses_ = 0;
  // Where the next execution that passes is put down, while no judge has it.
  Execution* to_ = nullptr;

  Words end_;
  Activations& calls_;

  SharedFilter& filter_;
  UnitTable& units_;
  const Unit* unit_ = nullptr;
};

}  // namespace heddle::collect
