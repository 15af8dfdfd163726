#include "hunt/run_digest.h"

#include <algorithm>
#include <string_view>

namespace heddle::hunt {
namespace {

std::uint64_t mix(std::uint64_t hash, std::uint64_t part) {
  hash = (hash ^ part) * 0x9e3779b97f4a7c15ull;
  return hash ^ (hash >> 32);
}

std::uint64_t mix(std::uint64_t hash, std::string_view text) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return mix(hash, text.size());
}

}  // namespace

std::uint64_t RunDigest::site(SiteId id) {
  if (id >= sites_.size()) sites_.resize(std::max<std::size_t>(id + 1, catalog_.sites.size()));
  std::uint64_t& known = sites_[id];
  if (known != 0) return known;
  const Site& site = catalog_.site(id);
  known = mix(mix(mix(1, catalog_.text(site.file)), site.line), site.column) | 1;
  return known;
}

void RunDigest::on(std::span<const Event> batch, EventOrdinal) {
  events_ += batch.size();
  for (const Event& event : batch) {
    digest_ = mix(digest_, std::uint64_t{event.thread} << 32 |
                               static_cast<std::uint64_t>(event.kind) << 8 |
                               static_cast<std::uint64_t>(event.outcome));
    digest_ = mix(digest_, site(event.site));
    if (event.kind == EventKind::kEnter || event.kind == EventKind::kLeave) {
      const Function& function = catalog_.function(static_cast<FunctionId>(event.value));
      digest_ = mix(digest_, catalog_.text(function.linkage_name));
    }
  }
}

}  // namespace heddle::hunt
