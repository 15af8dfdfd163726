#include "detect/race/lockset.h"

namespace heddle::race {

LocksetEngine::Seen LocksetEngine::seen(const Event& event, EventOrdinal ordinal) const {
  const ThreadId thread = event.thread;
  return {{time_of(ordinal), 0, event.site, stacks_.current(thread), held_.current(thread)},
          thread,
          event.kind};
}

bool LocksetEngine::refine(Cell& cell, const Seen& now) {
  const bool writes = is_write(now.kind);
  if (cell.state == State::kUntouched) {
    cell.state = State::kExclusive;
    cell.latest = now;
    return false;
  }
  if (now.thread != cell.latest.thread) cell.other = cell.latest;
  cell.latest = now;
  if (cell.state == State::kExclusive && cell.other.access.time == 0) return false;

  if (writes) {
    cell.state = State::kSharedModified;
  } else if (cell.state == State::kExclusive) {
    cell.state = State::kShared;
  }
  const LockSetId held = now.access.locks;
  cell.candidates =
      sets_.intersect(cell.candidates, writes ? sets_.exclusive(held) : sets_.any_mode(held));
  if (cell.state != State::kSharedModified || cell.candidates != kNoLocks || cell.reported) {
    return false;
  }
  cell.reported = true;
  return true;
}

void LocksetEngine::on_free(const Event& event) {
  const auto block = blocks_.find(event.address);
  std::uint64_t size = event.value;
  if (block != blocks_.end()) {
    if (size == 0) size = block->second;
    blocks_.erase(block);
  }
  pieces_.clear(event.address, size);
}

void LocksetDetector::on(std::span<const Event> batch, EventOrdinal first) {
  for (const Event& event : batch) {
    const EventOrdinal ordinal = first++;
    if (is_access(event.kind)) {
      if (annotations_.ignores(event)) continue;
    } else {
      narrator_.on(event);
      annotations_.on(event);
      sync_.on(event, ordinal);
    }
    engine_.on(event, ordinal, [&](const LocksetEngine::Report& r) { report(event, ordinal, r); });
  }
}

void LocksetDetector::report(const Event& event, EventOrdinal ordinal,
                             const LocksetEngine::Report& report) {
  Witness later = narrator_.witness(event, ordinal);
  later.address = report.address;
  later.size = report.size;
  Witness earlier;
  earlier.thread = report.earlier.thread;
  earlier.kind = report.earlier.kind;
  earlier.site = report.earlier.access.site;
  earlier.stack = report.earlier.access.stack;
  earlier.locks = report.earlier.access.locks;
  earlier.ordinal = ordinal_of(report.earlier.access.time);
  earlier.address = report.address;
  earlier.size = report.size;
  Finding* const finding = findings_.add(earlier, later);
  if (finding == nullptr) return;
  finding->kind = FindingKind::kInconsistentLocking;
  finding->detectors = {"lockset"};
  finding->in_words = "no lock is held at all accesses";
  finding->rank = 0.2;
}

}  // namespace heddle::race
