#include "trace/shapes.h"

#include "trace/catalog_codec.h"

namespace heddle {

namespace {

// Whether a Segment event carries nothing but its segment, so that its items follow from it.
bool is_pure_segment(const Event& event) {
  return event.kind == EventKind::kSegment && event.site == 0 && event.size == 0 &&
         event.has_value == 0 && event.order == MemoryOrder::kPlain &&
         event.mode == LockMode::kExclusive && event.outcome == OpOutcome::kOk;
}

// The event that an access item stands for, without its address. A site that is no access (the
// unknown one) gives a kind that no event has.
Event item_event(const Catalog& catalog, const AccessItem& item, ThreadId thread) {
  const Site& site = catalog.site(item.site);
  Event event;
  event.kind = is_access(site.kind) ? site.kind : EventKind{};
  event.order = site.order;
  event.thread = thread;
  event.site = item.site;
  event.size = site.size & 0x7fffffffu;
  return event;
}

}  // namespace

const char* bad_reference(const Event& event, const Catalog& catalog) {
  if (event.thread >= kMaxThreads) return "a thread number that is too large";
  if (event.site >= catalog.sites.size()) return "a site that is not in the catalog";
  if (event.order > MemoryOrder::kSeqCst) return "a memory order that does not exist";
  if (event.mode > LockMode::kShared) return "a lock mode that does not exist";
  if (event.outcome > OpOutcome::kTimedOut) return "an outcome that does not exist";
  switch (event.kind) {
    case EventKind::kFork:
    case EventKind::kJoin:
    case EventKind::kThreadBegin:
      return event.value < kMaxThreads ? nullptr : "a thread number that is too large";
    case EventKind::kEnter:
    case EventKind::kLeave:
      return event.value < catalog.functions.size() ? nullptr
                                                    : "a function that is not in the catalog";
    case EventKind::kSegment:
      return event.value < catalog.segments.size() ? nullptr
                                                   : "a segment that is not in the catalog";
    case EventKind::kUnitBegin:
    case EventKind::kUnitEnd:
    case EventKind::kMark:
      return event.value < catalog.strings.size() ? nullptr : "a string that is not in the catalog";
    default:
      return nullptr;
  }
}

void append_shapes(std::vector<Shape>& shapes, const Event& event, const Catalog& catalog) {
  Shape& shape = shapes.emplace_back();
  shape.event = event;
  shape.event.address = 0;
  shape.varying = has_varying_value(event);
  if (shape.varying) shape.event.value = 0;
  shape.access = is_access(event.kind);
  if (!is_pure_segment(event)) return;
  const Segment& segment = catalog.segment(static_cast<SegmentId>(event.value));
  if (segment.items.size() > kMaxPrimedItems) return;
  for (const AccessItem& item : segment.items) {
    shapes.back().next[0] = static_cast<std::uint32_t>(shapes.size());
    Shape& access = shapes.emplace_back();
    access.event = item_event(catalog, item, event.thread);
    access.access = 1;
    access.deliver = access.event.kind != EventKind{};
  }
}

}  // namespace heddle
