#include "cli/trace_stats.h"

#include <algorithm>
#include <bit>

namespace heddle::cli {

void TraceStats::add(std::span<const Event> events) {
  for (const Event& event : events) {
    ++events_;
    ++kinds_[static_cast<std::size_t>(event.kind)];
    if (threads_.size() <= event.thread) threads_.resize(event.thread + std::size_t{1});
    Thread& thread = threads_[event.thread];
    ++thread.events;
    if (is_access(event.kind)) {
      ++thread.accesses;
      access(event);
    } else if (event.kind == EventKind::kAlloc) {
      forget(event.address, event.value);
    }
  }
}

void TraceStats::access(const Event& event) {
  auto [found, is_new] = locations_.try_emplace(event.address);
  Location& location = found->second;
  if (is_new) {
    location.first_thread = event.thread;
    location.variable = variable_of(event);
  }
  if (!location.shared && location.first_thread != event.thread) {
    location.shared = true;
    ++shared_;
  }
  location.written = location.written || is_write(event.kind);
  Tally& tally = variables_[location.variable];
  if (location.shared && location.written && !location.contended) {
    location.contended = true;
    ++contended_;
    ++tally.contended;
  }
  if (is_read(event.kind)) ++tally.reads;
  if (is_write(event.kind)) ++tally.writes;
  const std::size_t word = event.thread / 64;
  if (tally.threads.size() <= word) tally.threads.resize(word + 1);
  tally.threads[word] |= std::uint64_t{1} << (event.thread % 64);
}

// The memory is somebody else's from here on.
void TraceStats::forget(Address begin, std::uint64_t size) {
  const std::size_t before = locations_.size();
  if (size > before) {
    absl::erase_if(locations_, [&](const auto& l) { return l.first - begin < size; });
  } else {
    for (std::uint64_t i = 0; i < size; ++i) locations_.erase(begin + i);
  }
  ended_locations_ += before - locations_.size();
}

std::uint32_t TraceStats::tally_named(std::string name) {
  const auto next = static_cast<std::uint32_t>(variables_.size());
  const auto [found, is_new] = variable_by_name_.try_emplace(name, next);
  if (is_new) variables_.emplace_back().name = std::move(name);
  return found->second;
}

void TraceStats::index_symbols() {
  for (; known_symbols_ < catalog_.symbols.size(); ++known_symbols_) {
    const Symbol& symbol = catalog_.symbols[known_symbols_];
    if (symbol.size != 0) symbols_.try_emplace(symbol.address, known_symbols_);
  }
}

// All elements and members of a variable count as the variable, all objects of a type as the field.
std::uint32_t TraceStats::variable_of(const Event& event) {
  const Site& site = catalog_.site(event.site);
  index_symbols();
  auto at = symbols_.upper_bound(event.address);
  if (at != symbols_.begin()) {
    const Symbol& symbol = catalog_.symbols[std::prev(at)->second];
    if (event.address - symbol.address < symbol.size) {
      return tally_named(std::string(catalog_.text(symbol.name)));
    }
  }
  if (site.variable != 0) return tally_named(std::string(catalog_.text(site.variable)));
  return tally_named("(memory without a name)");
}

std::vector<TraceStats::Thread> TraceStats::threads() const {
  std::vector<Thread> result = threads_;
  for (std::size_t i = 0; i < result.size() && i < catalog_.threads.size(); ++i) {
    result[i].name = catalog_.text(catalog_.threads[i].name);
  }
  return result;
}

std::vector<TraceStats::Variable> TraceStats::shared_variables() const {
  std::vector<Variable> result;
  for (const Tally& tally : variables_) {
    if (tally.contended == 0) continue;
    std::uint32_t threads = 0;
    for (const std::uint64_t word : tally.threads) {
      threads += static_cast<std::uint32_t>(std::popcount(word));
    }
    result.push_back({tally.name, tally.reads, tally.writes, threads, tally.contended});
  }
  std::stable_sort(result.begin(), result.end(), [](const Variable& a, const Variable& b) {
    return a.reads + a.writes > b.reads + b.writes;
  });
  return result;
}

}  // namespace heddle::cli
