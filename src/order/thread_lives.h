// ThreadLives: who started whom, who waited for whose end, and when.
//
// Of two accesses of a thread around the whole life of another, the first before the fork, the
// second after the join, no schedule can put anything of that life elsewhere than between them.
#pragma once

#include "trace/event.h"

#include <vector>

namespace heddle {

class ThreadLives {
 public:
  // Forks and joins; other events are of no concern.
  void on(const Event& event, EventOrdinal ordinal) {
    if (event.kind != EventKind::kFork && event.kind != EventKind::kJoin) return;
    if (event.value >= lives_.size()) lives_.resize(event.value + 1);
    Life& life = lives_[event.value];
    if (event.kind == EventKind::kFork) {
      life = {.parent = event.thread, .forked = ordinal};
    } else {
      life.joined_by = event.thread;
      life.joined = ordinal;
    }
  }

  // Whether `child` was started by `thread` after its event `first`, and joined by it before its
  // event `last`.
  bool lies_between(ThreadId child, ThreadId thread, EventOrdinal first, EventOrdinal last) const {
    if (child >= lives_.size()) return false;
    const Life& life = lives_[child];
    return life.forked != kNoEvent && life.joined != kNoEvent && life.parent == thread &&
           life.joined_by == thread && life.forked > first && life.joined < last;
  }

 private:
  struct Life {
    ThreadId parent = 0;
    ThreadId joined_by = 0;
    EventOrdinal forked = kNoEvent;
    EventOrdinal joined = kNoEvent;
  };
  std::vector<Life> lives_;  // by thread
};

}  // namespace heddle
