#include "detect/race/frontier.h"

#include <algorithm>

#include <fmt/format.h>

namespace heddle::race {
namespace {

using Pass = FrontierSettings::Pass;

constexpr Address kWordBytes = 8;

// Outside every address space that a program can use.
Address changes_of(Address word) {
  return (Address{1} << 63) | (word << 1);
}
Address looks_of(Address word) {
  return changes_of(word) | 1;
}

bool is_memory_or_thread_event(EventKind kind) {
  switch (kind) {
    case EventKind::kFork:
    case EventKind::kJoin:
    case EventKind::kThreadBegin:
    case EventKind::kThreadEnd:
    case EventKind::kAlloc:
    case EventKind::kFree:
      return true;
    default:
      return false;
  }
}

std::string_view kind_word(EventKind kind) {
  switch (kind) {
    case EventKind::kWait:
      return "wait";
    case EventKind::kSignal:
      return "signal";
    case EventKind::kBroadcast:
      return "broadcast";
    case EventKind::kSemPost:
      return "post";
    case EventKind::kSemWait:
      return "semwait";
    case EventKind::kBarrierArrive:
      return "arrive";
    case EventKind::kBarrierLeave:
      return "leave";
    case EventKind::kOnceBegin:
      return "oncebegin";
    case EventKind::kOnceEnd:
      return "onceend";
    case EventKind::kOncePass:
      return "oncepass";
    default:
      return verb_of(kind);
  }
}

}  // namespace

FrontierDetector::FrontierDetector(const Catalog& catalog, FrontierSettings* settings)
    : settings_(settings != nullptr ? *settings : automatic_),
      narrator_(catalog),
      annotations_(catalog),
      races_(catalog, "frontier"),
      frontier_(narrator_.stacks(), narrator_.locks_held()) {}

void FrontierDetector::on(std::span<const Event> batch, EventOrdinal first) {
  EventOrdinal ordinal = first;
  for (const Event& event : batch) {
    narrator_.on(event);
    annotations_.on(event);
    if (settings_.pass == Pass::kApply) {
      apply(event, ordinal);
    } else {
      find(event, ordinal);
    }
    ++ordinal;
  }
  if (settings_.pass == Pass::kAuto) races_.on(batch, first);
}

void FrontierDetector::find(const Event& event, EventOrdinal ordinal) {
  if (is_access(event.kind) ? annotations_.ignores(event) : annotations_.ignores_order(event)) {
    return;
  }
  for (const FrontierEngine::Pair& pair : frontier_.on(event, ordinal)) {
    const FrontierEngine::Seen& a = pair.earlier;
    const FrontierEngine::Seen& b = pair.later;
    // Places identify a pair; without places, the address does.
    const bool unknown = a.access.site == 0 && b.access.site == 0;
    const PairKey key{a.access.site, a.kind, b.access.site, b.kind, unknown ? pair.address : 0};
    auto [at, is_new] = found_.try_emplace(key);
    ++at->second.pair.count;
    if (!is_new) continue;
    at->second.at = ordinal;
    at->second.pair.first = place(a.access.site, a.kind);
    at->second.pair.second = place(b.access.site, b.kind);
    at->second.pair.variable =
        is_sync_object(event) ? narrator_.describe().object(pair.address)
                              : narrator_.describe().variable(b.access.site, pair.address, 0).name;
    if (settings_.pass == Pass::kAuto) {
      const auto synchronises = [](const FrontierEngine::Seen& side) {
        return side.atomic || !is_access(side.kind);
      };
      at->second.pair.mark = synchronises(a) && synchronises(b) ? Mark::kSync : Mark::kData;
    }
  }
}

MarkedPlace FrontierDetector::place(SiteId site, EventKind kind) const {
  const Place at = narrator_.describe().place(site);
  return {std::string(kind_word(kind)), at.function,
          fmt::format("{}:{}:{}", at.file, at.line, at.column)};
}

bool FrontierDetector::is_marked(const Event& event) {
  const auto [at, is_new] = marked_.try_emplace({event.site, event.kind});
  if (is_new) at->second = settings_.marks.is_sync(place(event.site, event.kind));
  return at->second;
}

void FrontierDetector::apply(const Event& event, EventOrdinal ordinal) {
  const Effect effect = effect_of(event);
  const bool marked = effect != Effect::kNone && is_marked(event);
  const bool looked_at = !(is_access(event.kind) && annotations_.ignores(event));
  if (marked && looked_at && !annotations_.ignores_order_of(event.thread)) {
    order_by_word(event, ordinal, effect);
  }
  if (is_access(event.kind)) {
    Event access = event;
    access.order = marked ? MemoryOrder::kRelaxed : MemoryOrder::kPlain;
    races_.on_ordered_elsewhere(access, event, ordinal);
  } else if (is_memory_or_thread_event(event.kind)) {
    races_.on({&event, 1}, ordinal);
  } else {
    races_.only_narrate(event, ordinal);
  }
}

void FrontierDetector::order_by_word(const Event& event, EventOrdinal ordinal, Effect effect) {
  const Address first = event.address / kWordBytes;
  const Address last = is_access(event.kind) && event.size != 0
                           ? (event.address + event.size - 1) / kWordBytes
                           : first;
  Event order;
  order.thread = event.thread;
  order.site = event.site;
  const auto feed = [&](EventKind kind, Address object) {
    order.kind = kind;
    order.address = object;
    races_.only_order(order, ordinal);
  };
  for (Address word = first; word <= last; ++word) {
    feed(EventKind::kOrderAcquire, changes_of(word));
    if (effect == Effect::kChanges) {
      feed(EventKind::kOrderAcquire, looks_of(word));
      feed(EventKind::kOrderRelease, changes_of(word));
    } else {
      feed(EventKind::kOrderRelease, looks_of(word));
    }
  }
}

std::vector<Finding> FrontierDetector::finish() {
  if (settings_.pass != Pass::kApply) {
    std::vector<const Found*> in_order;
    in_order.reserve(found_.size());
    for (const auto& [key, found] : found_) in_order.push_back(&found);
    std::stable_sort(in_order.begin(), in_order.end(),
                     [](const Found* a, const Found* b) { return a->at < b->at; });
    for (const Found* found : in_order) settings_.marks.add(found->pair);
  }
  if (settings_.pass == Pass::kFind) return {};
  return races_.finish();
}

}  // namespace heddle::race
