#include "detect/avio/finder.h"

#include "base/check.h"

namespace heddle::avio {

void TripleFinder::on(const Event& event) {
  switch (event.kind) {
    case EventKind::kThreadBegin:
    case EventKind::kThreadEnd:
      retire(event.thread);
      break;
    case EventKind::kAlloc:
      shadow_.forget(event.address, event.value);
      blocks_[event.address] = event.value;
      break;
    case EventKind::kFree: {
      auto block = blocks_.find(event.address);
      const std::uint64_t known = block == blocks_.end() ? 0 : block->second;
      shadow_.forget(event.address, event.value != 0 ? event.value : known);
      if (block != blocks_.end()) blocks_.erase(block);
      break;
    }
    default:
      break;
  }
}

void TripleFinder::expect(std::span<const Event> events) {
  HEDDLE_CHECK(events.size() <= kMostExpected);
  expected_ = events.data();
  expected_count_ = events.size();
  moves_ = shadow_.moves();
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (!is_access(events[i].kind)) continue;
    cells_[i] = shadow_.locate(events[i].address);
    __builtin_prefetch(cells_[i], 1);
  }
  ThreadId thread = kNoThread;
  const Lanes* lanes = nullptr;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (!is_access(events[i].kind)) continue;
    if (events[i].thread != thread) {
      thread = events[i].thread;
      const bool known = thread < actors_.size() && actors_[thread] != kNone;
      lanes = known ? &shadow_.lanes(actors_[thread]) : nullptr;
    }
    if (lanes != nullptr) shadow_.prefetch(*cells_[i], events[i].address, *lanes);
  }
}

Actor TripleFinder::new_actor(ThreadId thread) {
  if (threads_.size() > Touch::kMaxActor) start_over(base_);
  const auto actor = static_cast<Actor>(threads_.size());
  threads_.push_back(thread);
  shadow_.begin(actor);
  if (thread >= actors_.size()) actors_.resize(thread + 1, kNone);
  actors_[thread] = actor;
  thread_ = kNoThread;  // the shadow's lanes may have moved
  return actor;
}

void TripleFinder::retire(ThreadId thread) {
  if (thread >= actors_.size() || actors_[thread] == kNone) return;
  shadow_.end(actors_[thread]);
  actors_[thread] = kNone;
  thread_ = kNoThread;
}

// The numbers of a Touch are exhausted (a million million events, or a million threads): forget all
// and go on. A pair that spans this moment is not judged.
void TripleFinder::start_over(EventOrdinal ordinal) {
  shadow_.forget_everything();
  actors_.clear();
  threads_.clear();
  thread_ = kNoThread;
  base_ = ordinal;
}

}  // namespace heddle::avio
