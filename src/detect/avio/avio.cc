#include "detect/avio/avio.h"

#include "base/check.h"

#include <algorithm>

#include <fmt/format.h>

namespace heddle::avio {
namespace {

// Most of the time of an access is waiting for its state, unless somebody asked for it early: so
// many events before it is needed; and for its history, and what that has of other threads.
constexpr std::size_t kAhead = 16;
constexpr std::size_t kHistoriesAhead = 12;
constexpr std::size_t kOthersAhead = 8;
constexpr std::size_t kStretch = 512;  // after which it is asked anew whether histories are needed

}  // namespace

Avio::Avio(const Catalog& catalog, const Options& options)
    : catalog_(catalog),
      learns_(options.learn),
      cell_size_(options.granule == 64 ? 64 : 8),
      judge_(catalog, options.invariants),
      finder_(options.granule, *this, options.learn ? &pairs_ : nullptr),
      explainer_(catalog, finder_, options.invariants) {}

inline void Avio::note_executed(SiteId site) {
  if (site >= executed_.size()) {
    executed_.resize(std::max<std::size_t>(catalog_.sites.size(), site + std::size_t{1}));
  }
  executed_[site] = 1;
}

inline void Avio::on_access(const Event& event, EventOrdinal ordinal) {
  if (learns_) note_executed(event.site);
  if (event.has_value) explainer_.on_value(event, ordinal);
  if (event.thread != thread_) {
    thread_ = event.thread;
    context_ = explainer_.context(thread_);
  }
  finder_.access(event, ordinal, context_);
}

void Avio::on(std::span<const Event> batch, EventOrdinal first) {
  bool histories = false;
  const auto ahead = [&](std::size_t n) {
    return n < batch.size() && is_access(batch[n].kind) ? &batch[n] : nullptr;
  };
  for (std::size_t n = 0; n < batch.size(); ++n) {
    if (n % kStretch == 0) histories = finder_.asks_for_others();
    if (const Event* const next = ahead(n + kAhead)) finder_.prefetch(*next);
    if (histories) {
      if (const Event* const next = ahead(n + kHistoriesAhead)) finder_.prefetch_history(*next);
      if (const Event* const next = ahead(n + kOthersAhead)) finder_.prefetch_others(*next);
    }
    if (is_access(batch[n].kind)) {
      on_access(batch[n], first + n);
    } else {
      on_other(batch[n], first + n);
    }
  }
}

EventOrdinal Avio::on_executions(const ExecutionBatch& batch, EventOrdinal first) {
  if (batch.flow) return EventTaker::on_executions(batch, first);
  EventOrdinal ordinal = first;
  std::span<const Event> events = batch.events;
  for (auto rest = batch.executions; !rest.empty();) {
    const Execution& next = rest.front();
    if (next.shape == 0) {
      on(events.first(next.who), ordinal);
      ordinal += next.who;
      events = events.subspan(next.who);
      rest = rest.subspan(1);
      continue;
    }
    const std::size_t ready = finder_.expect(rest, batch.shapes, ordinal);
    for (const Execution& execution : rest.first(ready)) {
      ordinal = execute(execution, *batch.shapes[execution.shape], ordinal);
    }
    if (ready == 0) ordinal = execute_alone(batch, next, ordinal);
    rest = rest.subspan(std::max<std::size_t>(ready, 1));
  }
  return ordinal;
}

inline void Avio::enter_context_of(ThreadId thread) {
  if (thread == thread_) return;
  thread_ = thread;
  context_ = explainer_.context(thread);
}

// One that was expected. Returns the ordinal of what comes next.
[[gnu::always_inline]] inline EventOrdinal Avio::execute(const Execution& execution,
                                                         const RecordShape& shape,
                                                         EventOrdinal ordinal) {
  Pattern& pattern = finder_.pattern(execution);
  if (learns_) {
    for (const ShapeItem& item : shape.items) note_executed(item.event.site);
  }
  switch (pattern.kind) {
    case RecordShape::Kind::kEnter:
      explainer_.on_call(enter_of(shape, execution));
      thread_ = kNoThread;
      return ordinal + 1;
    case RecordShape::Kind::kLeave:
      explainer_.on_call(leave_of(shape, execution));
      thread_ = kNoThread;
      return ordinal + 1;
    case RecordShape::Kind::kCall: {
      enter_context_of(execution.who);
      finder_.execute_call(pattern, execution, shape, ordinal + 1, context_, [&] {
        return explainer_.context_inside(context_, thread_, shape.id, execution.site);
      });
      return ordinal + pattern.items + 2;
    }
    case RecordShape::Kind::kJoined:
      enter_context_of(execution.who);
      finder_.execute_joined(
          pattern, execution, shape, ordinal, context_, [&](const ShapeCall& call) {
            return explainer_.context_inside(context_, thread_, call.function, call.site);
          });
      return ordinal + pattern.items;
    case RecordShape::Kind::kLoop:
      enter_context_of(execution.who);
      return ordinal + finder_.execute_loop(execution, shape, ordinal, context_);
    case RecordShape::Kind::kSegment:
      break;
  }
  enter_context_of(execution.who);
  finder_.execute_expected(pattern, execution, shape, ordinal, context_);
  return ordinal + pattern.items;
}

// A long loop, or one of which somebody left out a few accesses.
EventOrdinal Avio::execute_alone(const ExecutionBatch& batch, const Execution& execution,
                                 EventOrdinal ordinal) {
  const RecordShape& shape = *batch.shapes[execution.shape];
  if (shape.kind != RecordShape::Kind::kLoop) {
    return EventTaker::on_executions({{&execution, 1}, {}, batch.shapes, false}, ordinal);
  }
  finder_.go_on_with(execution.who, ordinal);
  enter_context_of(execution.who);
  if (learns_) {
    for (std::size_t i = 0; i < shape.items.size(); ++i) {
      if (execution.has(i)) note_executed(shape.items[i].event.site);
    }
  }
  return ordinal + finder_.execute_loop(execution, shape, ordinal, context_);
}

void Avio::on_other(const Event& event, EventOrdinal ordinal) {
  switch (event.kind) {
    case EventKind::kEnter:
    case EventKind::kLeave:
      explainer_.on_call(event);
      thread_ = kNoThread;
      break;
    case EventKind::kAcquire:
    case EventKind::kRelease:
      explainer_.on(event, ordinal);
      thread_ = kNoThread;
      break;
    case EventKind::kWait:
    case EventKind::kFork:
    case EventKind::kJoin:
      explainer_.on(event, ordinal);
      break;
    case EventKind::kAlloc:
    case EventKind::kFree:
      explainer_.on(event, ordinal);
      finder_.on(event);
      break;
    case EventKind::kThreadBegin:
    case EventKind::kThreadEnd:
      finder_.on(event);
      break;
    default:
      break;
  }
}

void Avio::on_triple(const Triple& triple) {
  if (seen_for_this_access(triple)) return;
  const Judged& known = judged(triple);
  if (known.verdict == Judge::Verdict::kNeverSeen) ++unjudged_;
  if (known.verdict != Judge::Verdict::kReport && known.verdict != Judge::Verdict::kPair) return;
  Finding& finding = reports_[known.report];
  if (finding.count++ == 0) {
    finding = explainer_.describe(triple, "avio");
    finding.count = 1;
  }
}

std::uint64_t* Avio::count_of(const Triple& triple) {
  const Judged& known = judged(triple);
  switch (known.verdict) {
    case Judge::Verdict::kReport:
    case Judge::Verdict::kPair:
      return &reports_[known.report].count;
    case Judge::Verdict::kNeverSeen:
      return &unjudged_;
    default:
      return &dropped_;
  }
}

const Avio::Judged& Avio::judged(const Triple& triple) {
  const Reports::Key key = Reports::key(triple);
  Judged& known = judged_[(key.p * 5u + key.r * 3u + key.i) % kJudged];
  if (known.verdict != Judge::Verdict::kUnknown && known.key == key) return known;
  split_pairs_.insert({key.p, key.i});
  known.key = key;
  known.verdict = judge_.of(key.p, key.i);
  const bool reported =
      known.verdict == Judge::Verdict::kReport || known.verdict == Judge::Verdict::kPair;
  known.report = reported ? reports_.add(key) : 0;
  return known;
}

// An access of many bytes can complete the same triple in many cells.
bool Avio::seen_for_this_access(const Triple& triple) {
  constexpr std::size_t kFew = 16;
  const Instance instance{triple.split, triple.p.ordinal(), triple.r.ordinal()};
  if (const EventOrdinal i = finder_.ordinal(triple.i); last_i_ != i) {
    last_i_ = i;
    if (!seen_set_.empty()) seen_set_.clear();
    seen_.clear();
    narrow_ = 0;
  }
  if (triple.narrow) return seen_nearby(instance, triple.address);
  if (seen_.size() < kFew) {
    if (std::find(seen_.begin(), seen_.end(), instance) != seen_.end()) return true;
    seen_.push_back(instance);
    return false;
  }
  if (seen_set_.empty()) seen_set_.insert(seen_.begin(), seen_.end());
  return !seen_set_.insert(instance).second;
}

// The same for one of which P or R is in two cells at most, one next to the other. Cells come in
// their order, and eight triples at most from each.
bool Avio::seen_nearby(const Instance& instance, Address cell) {
  const std::size_t oldest = narrow_ - std::min(narrow_, nearby_.size());
  for (std::size_t n = narrow_; n-- > oldest;) {
    const Nearby& other = nearby_[n % nearby_.size()];
    if (other.cell + cell_size_ < cell) break;
    if (other.instance == instance) return true;
  }
  nearby_[narrow_++ % nearby_.size()] = {instance, cell};
  return false;
}

RunEvidence Avio::evidence() const {
  HEDDLE_CHECK(learns_);
  RunEvidence out;
  for (SiteId id = 1; id < executed_.size(); ++id) {
    const Site& site = catalog_.site(id);
    if (executed_[id] == 0 || site.key == 0) continue;
    const Place place = explainer_.describer().place(id);
    const char* kind = site.kind == EventKind::kRead    ? "read"
                       : site.kind == EventKind::kWrite ? "write"
                                                        : "read-modify-write";
    SiteText text{kind, place.function,
                  fmt::format("{}:{}:{}", place.file, place.line, place.column),
                  std::string(catalog_.text(site.variable))};
    SiteText& known = out.executed[site.key];
    known = std::max(known, text);
  }
  for (const auto& [p, i] : pairs_.all()) {
    const SiteKey key = catalog_.site(i).key;
    if (key != 0) out.made.insert({catalog_.site(p).key, key});
  }
  for (const auto& [p, i] : split_pairs_) {
    const SiteKey key = catalog_.site(i).key;
    if (key != 0) out.split.insert({catalog_.site(p).key, key});
  }
  return out;
}

std::vector<Finding> Avio::finish() {
  return reports_.finish(catalog_);
}

}  // namespace heddle::avio
