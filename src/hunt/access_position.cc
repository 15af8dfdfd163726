#include "hunt/access_position.h"

#include "collect/decoder.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

namespace heddle::hunt {
namespace {

// How often one thread was at each site, up to an event.
class Counter final : public Detector {
 public:
  Counter(const Catalog& catalog, ThreadId thread, EventOrdinal ordinal)
      : catalog_(catalog), thread_(thread), ordinal_(ordinal) {}

  void on(std::span<const Event> batch, EventOrdinal first) override {
    if (first > ordinal_) return;
    const std::size_t end = std::min<EventOrdinal>(batch.size(), ordinal_ - first + 1);
    for (const Event& event : batch.first(end)) {
      if (event.thread == thread_ && is_access(event.kind)) ++counts_[event.site];
    }
    if (first + end == ordinal_ + 1) found_ = batch[end - 1];
  }

  std::vector<Finding> finish() override { return {}; }

  bool found() const {
    return is_access(found_.kind) && found_.thread == thread_ && found_.site != 0 &&
           (catalog_.site(found_.site).flags & (Site::kRange | Site::kSync)) == 0;
  }
  SiteId site() const { return found_.site; }
  std::uint64_t count() const { return counts_.at(found_.site); }
  bool atomic() const {
    return found_.order != MemoryOrder::kPlain ||
           (catalog_.site(found_.site).flags & Site::kVolatile) != 0;
  }

 private:
  const Catalog& catalog_;
  const ThreadId thread_;
  const EventOrdinal ordinal_;
  std::unordered_map<SiteId, std::uint64_t> counts_;
  Event found_{};
};

}  // namespace

std::string AccessPosition::stop_access() const {
  return fmt::format("{}.{}.{}", thread, count, atomic ? "atomic" : "plain");
}

std::string AccessPosition::stop_sites() const {
  std::string text;
  for (const FlaggedSite& site : sites) text += fmt::format("{} {}\n", site.unit, site.index);
  return text;
}

Result<AccessPosition> find_access(ObserveRequest request, ThreadId thread, EventOrdinal ordinal) {
  AccessPosition position;
  SiteId wanted = 0;
  bool first = true;
  request.decoded = [&](const collect::Decoder& decoder) {
    if (wanted == 0) return;
    decoder.units().visit_all([&](const collect::Unit& unit) {
      for (const collect::CompiledItem& item : unit.items) {
        AccessPosition::FlaggedSite site{unit.name, item.flag};
        if (item.event.site != wanted) continue;
        if (std::find(position.sites.begin(), position.sites.end(), site) == position.sites.end()) {
          position.sites.push_back(std::move(site));
        }
      }
    });
  };
  const Result<ObservedEnd> end = observe(
      request,
      [&](const Catalog& catalog) { return std::make_unique<Counter>(catalog, thread, ordinal); },
      [&](Detector& detector, const Catalog&) {
        const auto& counter = static_cast<const Counter&>(detector);
        if (first && counter.found()) {
          wanted = counter.site();
          position.thread = thread;
          position.count = counter.count();
          position.atomic = counter.atomic();
        }
        first = false;
      });
  if (!end.ok()) return end.error();
  if (wanted == 0 || position.sites.empty()) {
    return Error{
        fmt::format("event {} of thread {} is no access of instrumented code", ordinal, thread)};
  }
  return position;
}

}  // namespace heddle::hunt
