#include "detect/avio/avio_h.h"

#include <algorithm>

#include <fmt/format.h>

namespace heddle::avio {

AvioH::AvioH(const Catalog& catalog, const HardwareOptions& options)
    : catalog_(catalog),
      options_(options),
      judge_(catalog, options.invariants),
      finder_(1, *this),
      explainer_(catalog, finder_, options.invariants),
      caches_(options.l1) {}

void AvioH::on(std::span<const Event> batch, EventOrdinal first) {
  for (std::size_t n = 0; n < batch.size(); ++n) {
    const Event& event = batch[n];
    if (is_access(event.kind)) {
      on_access(event, first + n);
    } else {
      explainer_.on(event, first + n);
      finder_.on(event);
    }
  }
}

void AvioH::on_triple(const Triple&) {
  software_split_ = true;
}

void AvioH::on_access(const Event& event, EventOrdinal ordinal) {
  if (event.size == 0) return;
  ++counts_.accesses;
  software_split_ = false;
  const ContextId context = explainer_.on_access(event, ordinal);
  finder_.access(event, ordinal, context);
  const Touch touch = finder_.touch(event, ordinal, context);

  const Caches::Core core = options_.cores == 0 ? event.thread : event.thread % options_.cores;
  const std::uint64_t last = caches_.line_of(event.address + event.size - 1);
  bool checked = false, absent = false;
  std::vector<Triple> found;
  for (std::uint64_t line = caches_.line_of(event.address); line <= last; ++line) {
    const Caches::Result result = caches_.access(core, line, touch);
    checked = checked || result.checked;
    absent = absent || result.absent;
    if (!result.split) continue;
    found.push_back({*result.split, result.p, result.r, touch,
                     std::max(event.address, line * options_.l1.line), 0xff, event.address,
                     event.size});
  }
  if (checked) ++counts_.checked;
  if (judge_.of(event.site) != Judge::Verdict::kReport) return;
  const bool hardware_split = !found.empty();
  if (hardware_split) hardware_sites_.insert(event.site);
  if (software_split_) software_sites_.insert(event.site);
  if (hardware_split && software_split_) ++counts_.both;
  if (hardware_split && !software_split_) ++counts_.only_hardware;
  if (!hardware_split && software_split_) {
    ++counts_.only_software;
    if (absent) ++counts_.displaced;
  }
  for (const Triple& triple : found) {
    Finding& finding = reports_[reports_.add(Reports::key(triple))];
    if (finding.count++ != 0) continue;
    finding = explainer_.describe(triple, "avio-h");
    finding.count = 1;
    finding.notes.push_back(software_split_ ? "Exact bytes agree that I was split." : kOneLineOnly);
    if (!software_split_) finding.rank *= 0.5;
  }
}

std::vector<std::string> AvioH::remarks() const {
  const auto sites_only_in = [](const auto& one, const auto& other) {
    return std::count_if(one.begin(), one.end(),
                         [&](SiteId site) { return !other.contains(site); });
  };
  const double fraction = counts_.accesses == 0 ? 0
                                                : 100.0 * static_cast<double>(counts_.checked) /
                                                      static_cast<double>(counts_.accesses);
  std::vector<std::string> out;
  out.push_back(fmt::format("avio-h: {}, {}", print(options_.l1),
                            options_.cores == 0 ? std::string("a core per thread")
                                                : fmt::format("{} cores", options_.cores)));
  out.push_back(fmt::format("avio-h: {} of {} accesses needed a check ({:.2f} %)", counts_.checked,
                            counts_.accesses, fraction));
  out.push_back(fmt::format(
      "avio-h: {} accesses split for hardware and exact bytes, {} for hardware only (false "
      "positives gained), {} for exact bytes only (missed: {} displaced, {} hidden by their line)",
      counts_.both, counts_.only_hardware, counts_.only_software, counts_.displaced,
      counts_.only_software - counts_.displaced));
  out.push_back(
      fmt::format("avio-h: sites of I: {} by hardware, {} by exact bytes; {} gained, {} missed",
                  hardware_sites_.size(), software_sites_.size(),
                  sites_only_in(hardware_sites_, software_sites_),
                  sites_only_in(software_sites_, hardware_sites_)));
  return out;
}

}  // namespace heddle::avio
