#include "trace/random_trace.h"

#include <array>

namespace heddle::testing {
namespace {

constexpr std::array kKinds = {
    EventKind::kRead,         EventKind::kWrite,        EventKind::kRmw,
    EventKind::kFence,        EventKind::kAcquire,      EventKind::kRelease,
    EventKind::kWait,         EventKind::kSignal,       EventKind::kBroadcast,
    EventKind::kSemPost,      EventKind::kSemWait,      EventKind::kBarrierArrive,
    EventKind::kBarrierLeave, EventKind::kOnceBegin,    EventKind::kOnceEnd,
    EventKind::kOncePass,     EventKind::kOrderRelease, EventKind::kOrderAcquire,
    EventKind::kFork,         EventKind::kJoin,         EventKind::kThreadBegin,
    EventKind::kThreadEnd,    EventKind::kAlloc,        EventKind::kFree,
    EventKind::kEnter,        EventKind::kLeave,        EventKind::kUnitBegin,
    EventKind::kUnitEnd,      EventKind::kSegment,      EventKind::kBranch,
    EventKind::kIoRead,       EventKind::kIoWrite,      EventKind::kMark,
    EventKind::kOutcome,
};

}  // namespace

Sources RandomTrace::sources() {
  Sources result(below(3));
  for (Register& r : result) r = any32();
  return result;
}

void RandomTrace::grow(Catalog& catalog, std::size_t most) {
  for (std::size_t n = below(most + 1); n > 0; --n) {
    catalog.strings.intern("s" + std::to_string(any32()) + std::string(below(20), 'x'));
  }
  for (std::size_t n = below(most + 1); n > 0; --n) {
    Function f;
    f.name = id_of(catalog.strings);
    f.linkage_name = id_of(catalog.strings);
    f.file = id_of(catalog.strings);
    f.line = any32();
    f.class_name = id_of(catalog.strings);
    f.access = static_cast<MemberAccess>(below(4));
    f.flags = static_cast<std::uint16_t>(any());
    f.parameters = any32();
    f.registers = any32();
    f.key = any();
    catalog.functions.push_back(f);
  }
  for (std::size_t n = below(2 * most + 1); n > 0; --n) {
    Site s;
    s.function = id_of(catalog.functions);
    s.file = id_of(catalog.strings);
    s.line = any32();
    s.column = any32();
    s.ordinal = any32();
    s.kind = static_cast<EventKind>(1 + below(3));
    s.order = static_cast<MemoryOrder>(one_in(4) ? below(7) : 0);
    s.flags = static_cast<std::uint16_t>(any());
    s.size = one_in(8) ? any32() : 1u << below(4);
    s.variable = id_of(catalog.strings);
    s.type = id_of(catalog.strings);
    s.field = id_of(catalog.strings);
    s.offset = any32();
    s.key = any();
    catalog.sites.push_back(s);
  }
  for (std::size_t n = below(most + 1); n > 0; --n) {
    Segment s;
    s.function = id_of(catalog.functions);
    s.block = any32();
    s.index = any32();
    s.phis.resize(below(3));
    for (Phi& phi : s.phis) {
      phi.defines = any32();
      phi.incoming.resize(below(3));
      for (Phi::Incoming& incoming : phi.incoming) incoming = {any32(), sources()};
    }
    s.items.resize(below(6));
    for (AccessItem& item : s.items) {
      item.site = id_of(catalog.sites);
      item.defines = one_in(2) ? kNoRegister : any32();
      item.address_from = sources();
      item.value_from = sources();
    }
    s.end = static_cast<SegmentEnd>(below(5));
    s.end_from = sources();
    s.arguments.resize(below(3));
    for (Sources& argument : s.arguments) argument = sources();
    s.defines = one_in(2) ? kNoRegister : any32();
    s.callee = id_of(catalog.strings);
    s.control_parents = sources();
    catalog.segments.push_back(std::move(s));
  }
  for (std::size_t n = below(most + 1); n > 0; --n) {
    catalog.symbols.push_back(
        {id_of(catalog.strings), id_of(catalog.strings), any32(), any(), any()});
  }
  if (one_in(3)) {
    catalog.modules.push_back({id_of(catalog.strings), id_of(catalog.strings), any()});
  }
  for (std::size_t n = below(3); n > 0; --n) catalog.threads.push_back({id_of(catalog.strings)});
  if (!catalog.threads.empty() && one_in(2)) {
    catalog.threads[below(catalog.threads.size())].name = id_of(catalog.strings);
  }
}

Event RandomTrace::any_event(const Catalog& catalog, ThreadId thread) {
  Event e;
  e.kind = kKinds[below(kKinds.size())];
  e.thread = thread;
  e.site = id_of(catalog.sites);
  if (one_in(2)) e.order = static_cast<MemoryOrder>(below(7));
  if (one_in(4)) e.mode = static_cast<LockMode>(below(2));
  if (one_in(4)) e.outcome = static_cast<OpOutcome>(below(3));
  e.size = any32() & 0x7fffffffu;
  e.has_value = below(2) & 1;
  e.address = any();
  switch (e.kind) {
    case EventKind::kEnter:
    case EventKind::kLeave:
      e.value = id_of(catalog.functions);
      break;
    case EventKind::kSegment:
      e.value = id_of(catalog.segments);
      break;
    case EventKind::kOutcome:
      e.address = below(catalog.strings.size());
      e.value = any();
      break;
    case EventKind::kUnitBegin:
    case EventKind::kUnitEnd:
    case EventKind::kMark:
      e.value = below(catalog.strings.size());
      break;
    case EventKind::kFork:
    case EventKind::kJoin:
    case EventKind::kThreadBegin:
      e.value = below(100);
      break;
    default:
      e.value = any();
  }
  return e;
}

std::vector<Event> RandomTrace::events(const Catalog& catalog, std::size_t count,
                                       ThreadId threads) {
  struct State {
    SegmentId segment = 0;
    std::size_t item = 0;
    Address base = 0;
    std::uint64_t stride = 0;
  };
  std::vector<State> states(threads);
  std::vector<Event> result;
  ThreadId thread = 0;
  const std::uint64_t stay = 1 + below(40);
  while (result.size() < count) {
    if (one_in(stay)) thread = static_cast<ThreadId>(below(threads));
    State& state = states[thread];
    Event e;
    e.thread = thread;
    if (one_in(20)) {
      state.base = any();
      state.stride = below(3) * 8;
    }
    const std::vector<AccessItem>& items = catalog.segments[state.segment].items;
    if (state.item < items.size()) {  // go on with the segment
      const Site& site = catalog.sites[items[state.item].site];
      ++state.item;
      e.kind = site.kind;
      e.order = site.order;
      e.size = site.size & 0x7fffffffu;
      e.site = items[state.item - 1].site;
      e.address = state.base + 4 * state.item;
      if (!is_access(e.kind)) continue;  // the unknown site
      result.push_back(e);
    } else if (one_in(6)) {
      result.push_back(any_event(catalog, thread));
    } else if (one_in(2)) {
      state.base += state.stride;
      e.kind = one_in(3) ? EventKind::kWrite : EventKind::kRead;
      e.size = 4;
      e.site = id_of(catalog.sites);
      e.address = state.base;
      result.push_back(e);
    } else {
      state.segment = id_of(catalog.segments);
      state.item = 0;
      state.base += state.stride;
      e.kind = EventKind::kSegment;
      e.value = state.segment;
      result.push_back(e);
      if (one_in(8)) state.item = below(5);  // entered in the middle, as after a loss
    }
  }
  return result;
}

bool same_catalog(const Catalog& a, const Catalog& b) {
  if (a.strings.size() != b.strings.size()) return false;
  for (std::size_t id = 0; id < a.strings.size(); ++id) {
    if (a.strings[static_cast<StringId>(id)] != b.strings[static_cast<StringId>(id)]) return false;
  }
  return a.functions == b.functions && a.sites == b.sites && a.segments == b.segments &&
         a.symbols == b.symbols && a.modules == b.modules && a.threads == b.threads;
}

}  // namespace heddle::testing
