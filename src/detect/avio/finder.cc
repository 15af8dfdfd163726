#include "detect/avio/finder.h"

namespace heddle::avio {

void TripleFinder::begin_turn(ThreadId thread, EventOrdinal ordinal) {
  if (ordinal - base_ > kMaxOrdinal) start_over(ordinal);
  const bool known = thread < actors_.size() && actors_[thread] != kNone;
  actor_ = known ? actors_[thread] : new_actor(thread);
  thread_ = thread;
  shadow_.begin_turn(actor_, ordinal - base_);
}

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

Actor TripleFinder::new_actor(ThreadId thread) {
  if (threads_.size() > Touch::kMaxActor) start_over(base_);
  const auto actor = static_cast<Actor>(threads_.size());
  threads_.push_back(thread);
  shadow_.begin(actor);
  if (thread >= actors_.size()) actors_.resize(thread + 1, kNone);
  actors_[thread] = actor;
  return actor;
}

void TripleFinder::retire(ThreadId thread) {
  if (thread >= actors_.size() || actors_[thread] == kNone) return;
  shadow_.end(actors_[thread]);
  actors_[thread] = kNone;
  thread_ = kNoThread;
}

// The numbers are exhausted (a quarter of a million million events, a million threads, or thirty
// million spots): forget all and go on. A pair that spans this moment is not judged.
void TripleFinder::start_over(EventOrdinal ordinal) {
  const ThreadId thread = thread_;
  shadow_.forget_everything();
  spots_.clear();
  actors_.clear();
  threads_.clear();
  base_ = ordinal;
  if (thread != kNoThread) begin_turn(thread, ordinal);
}

}  // namespace heddle::avio
