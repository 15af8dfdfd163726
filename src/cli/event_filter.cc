#include "cli/event_filter.h"

#include "cli/words.h"
#include "trace/text_grammar.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include <fmt/format.h>

namespace heddle::cli {
namespace {

std::optional<std::uint64_t> number(std::string_view text) {
  int base = 10;
  if (text.substr(0, 2) == "0x" || text.substr(0, 2) == "0X") {
    base = 16;
    text.remove_prefix(2);
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

// Whether `path` is `file`, or ends in it after a slash.
bool names_file(std::string_view path, std::string_view file) {
  if (path.size() < file.size() || path.substr(path.size() - file.size()) != file) return false;
  return path.size() == file.size() || path[path.size() - file.size() - 1] == '/';
}

// Whether the address of an event of this kind is a place in memory.
bool has_place(EventKind kind) {
  switch (kind) {
    case EventKind::kFence:
    case EventKind::kFork:
    case EventKind::kJoin:
    case EventKind::kThreadBegin:
    case EventKind::kThreadEnd:
    case EventKind::kLeave:
    case EventKind::kUnitBegin:
    case EventKind::kUnitEnd:
    case EventKind::kSegment:
    case EventKind::kBranch:
    case EventKind::kMark:
    case EventKind::kOutcome:
      return false;
    default:
      return true;
  }
}

}  // namespace

Result<EventFilter> EventFilter::make(const Words& words) {
  EventFilter filter;
  filter.words_ = words;
  filter.everything_ = words.threads.empty() && words.sites.empty() && words.variables.empty() &&
                       words.kinds.empty() && words.range.empty();

  if (!words.range.empty()) {
    const std::string_view text = words.range;
    const std::size_t dots = text.find("..");
    const std::string_view from = text.substr(0, dots);
    const std::string_view to = dots == std::string_view::npos ? from : text.substr(dots + 2);
    const auto first = from.empty() ? 0 : number(from);
    const auto last = to.empty() ? std::numeric_limits<EventOrdinal>::max() : number(to);
    if (!first || !last || *first > *last || (from.empty() && to.empty())) {
      return Error{fmt::format(
          "--range: `{}` is not a range of events; write 100..200, 100.. or ..200", text)};
    }
    filter.first_ = *first;
    filter.last_ = *last;
  }

  filter.kinds_.fill(words.kinds.empty());
  for (const std::string& word : words.kinds) {
    const text::KindWord* kind = text::kind_word(word);
    if (kind == nullptr) {
      std::vector<std::string> known;
      std::string list;
      for (const text::KindWord& k : text::kKindWords) {
        known.emplace_back(k.word);
        if (text::kind_word(k.kind) == &k)
          list += fmt::format("{}{}", list.empty() ? "" : " ", k.word);
      }
      const std::string meant = nearest(word, known);
      return Error{fmt::format("--kind: there is no kind of event `{}`{}; the kinds are {}", word,
                               meant.empty() ? "" : fmt::format(", did you mean `{}`?", meant),
                               list)};
    }
    filter.kinds_[static_cast<std::size_t>(kind->kind)] = true;
  }

  for (const std::string& word : words.threads) {
    const std::string_view text = word;
    const auto id = number(text.substr(0, 1) == "t" ? text.substr(1) : text);
    if (id && *id <= std::numeric_limits<ThreadId>::max()) {
      filter.threads_.push_back(static_cast<ThreadId>(*id));
    }
  }

  for (const std::string& word : words.sites) {
    const std::size_t colon = word.rfind(':');
    SiteWord site{word, 0};
    if (colon != std::string::npos) {
      const auto line = number(std::string_view(word).substr(colon + 1));
      if (line && *line > 0 && *line <= std::numeric_limits<std::uint32_t>::max()) {
        site = {word.substr(0, colon), static_cast<std::uint32_t>(*line)};
      }
    }
    filter.sites_.push_back(site);
  }

  for (const std::string& word : words.variables) {
    if (const auto address = number(word)) filter.addresses_.push_back(*address);
  }
  return filter;
}

bool EventFilter::thread_passes(const Event& event, const Catalog& catalog) const {
  if (std::find(threads_.begin(), threads_.end(), event.thread) != threads_.end()) return true;
  if (event.thread >= catalog.threads.size()) return false;
  const std::string_view name = catalog.text(catalog.threads[event.thread].name);
  return !name.empty() &&
         std::find(words_.threads.begin(), words_.threads.end(), name) != words_.threads.end();
}

void EventFilter::learn(const Catalog& catalog) {
  const std::vector<std::string>& names = words_.variables;
  const auto wanted = [&names](std::string_view name) {
    return !name.empty() && std::find(names.begin(), names.end(), name) != names.end();
  };
  for (std::size_t id = site_passes_.size(); id < catalog.sites.size(); ++id) {
    const Site& site = catalog.sites[id];
    site_passes_.push_back(std::any_of(sites_.begin(), sites_.end(), [&](const SiteWord& word) {
      return (word.line == 0 || word.line == site.line) &&
             names_file(catalog.text(site.file), word.file);
    }));
    const std::string_view field = catalog.text(site.field);
    site_names_variable_.push_back(
        wanted(catalog.text(site.variable)) ||
        (!field.empty() && wanted(fmt::format("{}.{}", catalog.text(site.type), field))));
  }
  for (; known_symbols_ < catalog.symbols.size(); ++known_symbols_) {
    const Symbol& symbol = catalog.symbols[known_symbols_];
    if (!wanted(catalog.text(symbol.name))) continue;
    const std::uint64_t size = std::max<std::uint64_t>(symbol.size, 1);
    const std::uint64_t room = std::numeric_limits<Address>::max() - symbol.address;
    ranges_.push_back({symbol.address, symbol.address + std::min(size - 1, room)});
  }
}

bool EventFilter::variable_passes(const Event& event) const {
  if (event.site < site_names_variable_.size() && site_names_variable_[event.site]) return true;
  if (!has_place(event.kind)) return false;
  const auto touches = [&](Address begin, std::uint64_t size) {
    const std::uint64_t room = std::numeric_limits<Address>::max() - begin;
    const Address last = begin + std::min(std::max<std::uint64_t>(size, 1) - 1, room);
    for (const Range& range : ranges_) {
      if (begin <= range.last && last >= range.begin) return true;
    }
    return std::any_of(addresses_.begin(), addresses_.end(),
                       [&](Address a) { return begin <= a && a <= last; });
  };
  const bool is_block = event.kind == EventKind::kAlloc || event.kind == EventKind::kFree;
  if (touches(event.address, is_block ? event.value : event.size)) return true;
  return event.kind == EventKind::kWait && touches(event.value, 1);
}

bool EventFilter::passes(const Event& event, EventOrdinal ordinal, const Catalog& catalog) {
  if (everything_) return true;
  if (ordinal < first_ || ordinal > last_) return false;
  if (!kinds_[static_cast<std::size_t>(event.kind)]) return false;
  if (!words_.threads.empty() && !thread_passes(event, catalog)) return false;
  if (words_.sites.empty() && words_.variables.empty()) return true;
  learn(catalog);
  if (!words_.sites.empty() && (event.site >= site_passes_.size() || !site_passes_[event.site])) {
    return false;
  }
  return words_.variables.empty() || variable_passes(event);
}

}  // namespace heddle::cli
