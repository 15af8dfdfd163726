#include "trace/std_format.h"
#include "trace/text_grammar.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include <fmt/format.h>

namespace heddle {
namespace {

// No field of a line may hold what separates fields.
bool is_safe(std::string_view name) {
  if (name.empty()) return false;
  return std::none_of(name.begin(), name.end(), [](char c) {
    return c == '|' || c == '(' || c == ')' || static_cast<unsigned char>(c) < 0x20;
  });
}

std::string_view op_of(const Event& event) {
  switch (event.kind) {
    case EventKind::kAcquire:
      return "acq";
    case EventKind::kRelease:
      return "rel";
    case EventKind::kFork:
      return "fork";
    case EventKind::kJoin:
      return "join";
    case EventKind::kUnitBegin:
      return "begin";
    case EventKind::kUnitEnd:
      return "end";
    default:
      return {};
  }
}

// fork and join say it already.
bool is_implied(const Event& event) {
  return event.kind == EventKind::kThreadBegin || event.kind == EventKind::kThreadEnd;
}

bool is_lost(const Event& event) {
  if (is_access(event.kind)) return event.size == 0;
  if (event.kind == EventKind::kAcquire || event.kind == EventKind::kRelease) {
    return event.mode != LockMode::kExclusive || event.outcome != OpOutcome::kOk;
  }
  return op_of(event).empty() && !is_implied(event);
}

}  // namespace

void StdWriter::scan(std::span<const Event> events) {
  for (const Event& event : events) {
    last_thread_ = std::max<std::uint64_t>(last_thread_, event.thread);
    if (event.kind == EventKind::kFork || event.kind == EventKind::kJoin) {
      last_thread_ = std::max(last_thread_, event.value);
    }
    if (is_lost(event)) {
      ++left_out_[event.kind];
      continue;
    }
    if (!is_access(event.kind)) continue;
    if (event.kind == EventKind::kRmw || event.order != MemoryOrder::kPlain) ++weakened_;
    std::uint32_t& longest = accesses_[event.address];
    if (longest == event.size) continue;
    longest = std::max<std::uint32_t>(longest, event.size);
    // An access that reaches the end of the address space ends there.
    const Address room = std::numeric_limits<Address>::max() - event.address;
    ends_.insert(event.address + std::min<Address>(room, event.size));
  }
}

void StdWriter::plan(const Catalog& catalog) {
  cuts_.reserve(accesses_.size() + ends_.size());
  for (const auto& [begin, longest] : accesses_) cuts_.push_back(begin);
  cuts_.insert(cuts_.end(), ends_.begin(), ends_.end());
  std::sort(cuts_.begin(), cuts_.end());
  cuts_.erase(std::unique(cuts_.begin(), cuts_.end()), cuts_.end());

  for (const Symbol& symbol : catalog.symbols) {
    const std::string_view name = catalog.text(symbol.name);
    if (is_safe(name)) variables_.push_back({symbol.address, symbol.size, std::string(name)});
  }
  std::stable_sort(variables_.begin(), variables_.end(),
                   [](const Variable& a, const Variable& b) { return a.begin < b.begin; });

  // Names of threads only if every thread has one and they tell all threads apart.
  absl::flat_hash_set<std::string_view> names;
  bool distinct = catalog.threads.size() > last_thread_;
  for (const ThreadInfo& info : catalog.threads) {
    const std::string_view name = catalog.text(info.name);
    distinct = distinct && is_safe(name) && names.insert(name).second;
  }
  for (std::size_t i = 0; distinct && i < catalog.threads.size(); ++i) {
    threads_.emplace_back(catalog.text(catalog.threads[i].name));
  }

  locations_.reserve(catalog.sites.size());
  for (const Site& site : catalog.sites) {
    const std::string_view file = catalog.text(site.file);
    std::string place(is_safe(file) ? file : std::string_view());
    if (site.line != 0) place += fmt::format("{}{}", place.empty() ? "" : ":", site.line);
    if (site.line != 0 && site.column != 0) place += fmt::format(":{}", site.column);
    locations_.push_back(place.empty() ? "0" : place);
  }
  for (std::size_t id = 0; id < catalog.strings.size(); ++id) {
    const std::string_view name = catalog.text(static_cast<StringId>(id));
    units_.emplace_back(is_safe(name) ? name : std::string_view());
  }
}

std::string StdWriter::name_of(Address address) const {
  auto after = std::upper_bound(variables_.begin(), variables_.end(), address,
                                [](Address a, const Variable& v) { return a < v.begin; });
  if (after != variables_.begin()) {
    const Variable& variable = *std::prev(after);
    const std::uint64_t offset = address - variable.begin;
    if (offset == 0) return variable.name;
    if (offset < variable.size) return fmt::format("{}+{}", variable.name, offset);
  }
  return fmt::format("{:#x}", address);
}

std::string StdWriter::thread(std::uint64_t id) const {
  return id < threads_.size() ? threads_[id] : fmt::format("T{}", id);
}

const std::string& StdWriter::location(SiteId id) const {
  return locations_[id < locations_.size() ? id : 0];
}

void StdWriter::line(const Event& event, std::string_view op, std::string_view operand,
                     std::string& out) {
  out.append(thread(event.thread)).push_back('|');
  out.append(op);
  if (!operand.empty()) {
    out.push_back('(');
    out.append(operand).push_back(')');
  }
  out.push_back('|');
  out.append(location(event.site)).push_back('\n');
}

void StdWriter::access(const Event& event, std::string_view op, std::string& out) {
  const Address room = std::numeric_limits<Address>::max() - event.address;
  const Address end = event.address + std::min<Address>(room, event.size);
  auto cut = std::lower_bound(cuts_.begin(), cuts_.end(), event.address);
  for (; cut != cuts_.end() && *cut < end; ++cut) {
    auto [name, added] = piece_names_.try_emplace(*cut);
    if (added) {
      name->second = name_of(*cut);
      if (!used_piece_names_.insert(name->second).second) {
        name->second += fmt::format("@{:#x}", *cut);
        used_piece_names_.insert(name->second);
      }
    }
    line(event, op, name->second, out);
  }
}

void StdWriter::write(std::span<const Event> events, std::string& out) {
  for (const Event& event : events) {
    if (is_lost(event) || is_implied(event)) continue;
    switch (event.kind) {
      case EventKind::kRead:
        access(event, "r", out);
        break;
      case EventKind::kWrite:
        access(event, "w", out);
        break;
      case EventKind::kRmw:
        access(event, "r", out);
        access(event, "w", out);
        break;
      case EventKind::kAcquire:
      case EventKind::kRelease: {
        auto [name, added] = lock_names_.try_emplace(event.address);
        if (added) {
          name->second = name_of(event.address);
          if (!used_lock_names_.insert(name->second).second) {
            name->second += fmt::format("@{:#x}", event.address);
            used_lock_names_.insert(name->second);
          }
        }
        line(event, op_of(event), name->second, out);
        break;
      }
      case EventKind::kFork:
      case EventKind::kJoin:
        line(event, op_of(event), thread(event.value), out);
        break;
      default: {
        const auto id = static_cast<std::size_t>(event.value);
        line(event, op_of(event), id < units_.size() ? units_[id] : "", out);
      }
    }
  }
}

std::string StdWriter::losses() const {
  std::string result;
  if (!left_out_.empty()) {
    std::uint64_t total = 0;
    std::string kinds;
    for (const auto& [kind, count] : left_out_) {
      total += count;
      const text::KindWord* word = text::kind_word(kind);
      kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", count,
                           word != nullptr ? word->word : "of an unknown kind");
    }
    result = fmt::format("{} event{} that STD cannot express left out ({})", total,
                         total == 1 ? "" : "s", kinds);
  }
  if (weakened_ != 0) {
    result += fmt::format("{}{} atomic access{} written as plain", result.empty() ? "" : "; ",
                          weakened_, weakened_ == 1 ? "" : "es");
  }
  return result;
}

}  // namespace heddle
