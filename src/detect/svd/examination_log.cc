#include "detect/svd/examination_log.h"

#include "base/check.h"

#include <algorithm>
#include <bit>
#include <map>
#include <string>
#include <utility>

namespace heddle::svd {
namespace {

constexpr std::uint64_t kMaxBlocksPerAccess = 1u << 16;

}  // namespace

ExaminationLog::ExaminationLog(const Catalog& catalog, std::uint32_t block_size)
    : block_shift_(static_cast<unsigned>(std::countr_zero(block_size))), narrator_(catalog) {
  HEDDLE_CHECK(std::has_single_bit(block_size));
}

void ExaminationLog::on(std::span<const Event> batch, EventOrdinal first) {
  for (const Event& event : batch) {
    const EventOrdinal ordinal = first++;
    narrator_.on(event);
    lives_.on(event, ordinal);
    const bool fresh = event.kind == EventKind::kAlloc || event.kind == EventKind::kFree;
    if (!is_access(event.kind) && !fresh) continue;
    const std::uint64_t bytes = fresh ? event.value : event.size;
    if (bytes == 0) continue;
    const std::uint64_t begin = event.address >> block_shift_;
    const std::uint64_t end = (event.address + bytes - 1) >> block_shift_;
    if (fresh) {
      // Handed out or given back: no history. A range larger than the table is swept the other way
      // round.
      if (end - begin > blocks_.size()) {
        absl::erase_if(blocks_,
                       [&](const auto& at) { return at.first >= begin && at.first <= end; });
      } else {
        for (std::uint64_t block = begin; block <= end; ++block) blocks_.erase(block);
      }
      continue;
    }
    const std::uint64_t last = std::min(end, begin + kMaxBlocksPerAccess - 1);
    if (is_read(event.kind)) read(event, ordinal, begin, last);
    if (!is_write(event.kind)) continue;
    for (std::uint64_t block = begin; block <= last; ++block) write(event, ordinal, blocks_[block]);
  }
}

// An access of several blocks is one read: of another thread's value if any of them is.
void ExaminationLog::read(const Event& event, EventOrdinal ordinal, std::uint64_t begin,
                          std::uint64_t last) {
  const Writers* foreign = nullptr;
  bool own = false;
  for (std::uint64_t block = begin; block <= last && foreign == nullptr; ++block) {
    const auto at = blocks_.find(block);
    if (at == blocks_.end()) continue;
    if (at->second.front().thread == event.thread) {
      own = true;
    } else {
      foreign = &at->second;
    }
  }
  if (foreign == nullptr && !own) return;
  Reads& reads = reads_[event.site];
  ++reads.all;
  if (foreign == nullptr) {
    ++reads.own;
    return;
  }
  ++entries_;
  const Writers& writers = *foreign;
  const auto local = std::find_if(writers.begin(), writers.end(), [&](const Witness& writer) {
    return writer.thread == event.thread;
  });
  const bool overwrote = local != writers.end();
  const Key key{event.site, writers.front().site, overwrote ? local->site : 0};
  LogGroup& group = groups_[key];
  group.by_order_of_threads =
      group.by_order_of_threads && overwrote &&
      lives_.lies_between(writers.front().thread, event.thread, local->ordinal, ordinal);
  if (group.count++ != 0) return;
  group.read = narrator_.step(narrator_.witness(event, ordinal), "I");
  group.remote = narrator_.step(writers.front(), "R");
  if (overwrote) group.local = narrator_.step(*local, "P");
}

void ExaminationLog::write(const Event& event, EventOrdinal ordinal, Writers& writers) {
  const auto own = std::find_if(writers.begin(), writers.end(), [&](const Witness& writer) {
    return writer.thread == event.thread;
  });
  if (own == writers.end()) {
    writers.insert(writers.begin(), narrator_.witness(event, ordinal));
  } else {
    *own = narrator_.witness(event, ordinal);
    std::rotate(writers.begin(), own, own + 1);
  }
}

LogGroup ExaminationLog::rank(const LogGroup& group, const Reads& reads) {
  LogGroup ranked = group;
  ranked.own_reads = reads.own;
  ranked.all_reads = reads.all;
  const bool may_be_meant = !group.local.role.empty() && !group.by_order_of_threads;
  ranked.suspicion =
      may_be_meant ? static_cast<double>(reads.own + 1) / static_cast<double>(reads.all + 1) : 0;
  return ranked;
}

std::vector<LogGroup> ExaminationLog::groups() const {
  std::vector<LogGroup> out;
  out.reserve(groups_.size());
  for (const auto& [key, group] : groups_) out.push_back(rank(group, reads_.at(std::get<0>(key))));
  std::stable_sort(out.begin(), out.end(),
                   [](const LogGroup& a, const LogGroup& b) { return a.suspicion > b.suspicion; });
  return out;
}

// To whoever reads the log, several reads of a variable in one line are one. Where lines are not
// known, every access is a statement of its own.
std::vector<LogStatement> ExaminationLog::statements() const {
  using Statement = std::tuple<std::string, std::uint32_t, std::string, std::string, SiteId>;
  struct Entries {
    std::map<SiteId, Reads> reads;
    std::map<std::pair<SiteId, SiteId>, LogGroup> groups;  // by the two writes
  };
  std::map<Statement, Entries> all;
  for (const auto& [key, group] : groups_) {
    const auto [site, remote, local] = key;
    const Place& place = group.read.place;
    Entries& entries = all[{place.file, place.line, place.function, group.read.variable.name,
                            place.line == 0 ? site : 0}];
    entries.reads[site] = reads_.at(site);
    const auto [same, is_new] = entries.groups.try_emplace({remote, local}, group);
    if (is_new) continue;
    same->second.count += group.count;
    same->second.by_order_of_threads &= group.by_order_of_threads;
  }
  std::vector<LogStatement> out;
  for (const auto& [where, entries] : all) {
    Reads reads;
    for (const auto& [site, of_site] : entries.reads) {
      reads.own += of_site.own;
      reads.all += of_site.all;
    }
    LogStatement& statement = out.emplace_back();
    statement.own_reads = reads.own;
    statement.all_reads = reads.all;
    for (const auto& [writes, group] : entries.groups) {
      statement.foreign_reads += group.count;
      statement.groups.push_back(rank(group, reads));
    }
    std::stable_sort(
        statement.groups.begin(), statement.groups.end(), [](const LogGroup& a, const LogGroup& b) {
          return a.suspicion != b.suspicion ? a.suspicion > b.suspicion : a.count > b.count;
        });
    statement.suspicion = statement.groups.front().suspicion;
  }
  std::stable_sort(out.begin(), out.end(), [](const LogStatement& a, const LogStatement& b) {
    return a.suspicion > b.suspicion;
  });
  return out;
}

}  // namespace heddle::svd
