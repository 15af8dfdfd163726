// The tokenizer of STD. It reads millions of short lines a second, so names of up to 15 bytes (all
// that matter) are looked up as two machine words, and a line costs three lookups: thread, operand,
// location.
#include "trace/catalog_codec.h"
#include "trace/line_input.h"
#include "trace/std_format.h"
#include "trace/text_names.h"

#include <array>
#include <charconv>
#include <cstring>

#include <absl/container/flat_hash_map.h>
#include <absl/strings/string_view.h>
#include <fmt/format.h>

namespace heddle {
namespace {

enum Op : std::uint8_t { kR, kW, kAcq, kRel, kForkOp, kJoinOp, kBegin, kEnd, kOpCount };

constexpr std::array<EventKind, kOpCount> kKinds = {
    EventKind::kRead, EventKind::kWrite, EventKind::kAcquire,   EventKind::kRelease,
    EventKind::kFork, EventKind::kJoin,  EventKind::kUnitBegin, EventKind::kUnitEnd};

// A name as it stands in the file, ready to be looked up.
class Token {
 public:
  Token() = default;
  // At least 16 bytes from `text` on must be readable.
  explicit Token(std::string_view text) : text_(text) {
    const std::size_t n = text.size();
    if (n >= kLong) return;
    std::memcpy(&key_.low, text.data(), 8);
    if (n < 8) {
      key_.low &= (std::uint64_t{1} << (8 * n)) - 1;
    } else {
      std::memcpy(&key_.high, text.data() + 8, 8);
      key_.high &= (std::uint64_t{1} << (8 * (n - 8))) - 1;
    }
    key_.high |= std::uint64_t{n} << 56;
  }

  struct Key {
    std::uint64_t low = 0;
    std::uint64_t high = 0;  // the length in its last byte

    bool operator==(const Key&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& k) {
      return H::combine(std::move(h), k.low, k.high);
    }
  };
  static constexpr std::size_t kLong = 16;

  bool is_short() const { return text_.size() < kLong; }
  std::string_view text() const { return text_; }
  const Key& key() const { return key_; }

 private:
  std::string_view text_;
  Key key_;
};

// From names to numbers, in the order of first mention.
class TokenTable {
 public:
  void prefetch(const Token& token) const { short_.prefetch(token.key()); }

  // The number it has, or `next` to a new one; `is_new` says which.
  std::uint32_t find_or_add(const Token& token, std::uint32_t next, bool& is_new) {
    if (token.is_short()) {
      const auto [slot, added] = short_.try_emplace(token.key(), next);
      is_new = added;
      return slot->second;
    }
    const auto known = long_.find(absl::string_view(token.text().data(), token.text().size()));
    is_new = known == long_.end();
    if (!is_new) return known->second;
    long_.emplace(std::string(token.text()), next);
    return next;
  }

 private:
  absl::flat_hash_map<Token::Key, std::uint32_t> short_;
  absl::flat_hash_map<std::string, std::uint32_t> long_;
};

// A line taken apart.
struct Fields {
  Op op = kOpCount;
  Token thread;
  Token operand;  // empty if there is none
  Token location;
};

std::optional<std::uint32_t> number_of(std::string_view text) {
  if (text.empty() || text[0] == '0') return std::nullopt;  // only what prints back the same
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// file:line:column, file:line, line, or anything.
text::Names::SiteKey place_of(std::string_view location, StringTable& strings) {
  text::Names::SiteKey place;
  if (const auto line = number_of(location)) {
    place.line = *line;
    return place;
  }
  const std::size_t colon = location.rfind(':');
  const auto last = colon == std::string_view::npos || colon == 0
                        ? std::nullopt
                        : number_of(location.substr(colon + 1));
  if (!last) {
    place.file = strings.intern(location);
    return place;
  }
  std::string_view file = location.substr(0, colon);
  place.line = *last;
  const std::size_t second = file.rfind(':');
  if (second != std::string_view::npos && second != 0) {
    if (const auto line = number_of(file.substr(second + 1))) {
      place.column = place.line;
      place.line = *line;
      file = file.substr(0, second);
    }
  }
  place.file = strings.intern(file);
  return place;
}

std::string shown(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  std::string result = "`";
  for (const char c : text.substr(0, kLongest)) {
    if (c >= ' ' && c <= '~') {
      result.push_back(c);
    } else {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return result + (text.size() > kLongest ? "…`" : "`");
}

class StdSource : public EventSource {
 public:
  StdSource(InputFile file, const OpenOptions& options)
      : lines_(std::move(file)), salvage_(options.salvage) {
    events_.resize(kBatch);
  }

  Result<std::span<const Event>> next() override;
  const Catalog& catalog() const override { return catalog_; }
  std::string warning() const override { return warning_; }
  std::string_view format() const override { return "std"; }
  double fraction() const override {
    const std::uint64_t size = lines_.file().size();
    return size == 0
               ? 1
               : std::min(1.0, static_cast<double>(lines_.position()) / static_cast<double>(size));
  }

 private:
  static constexpr std::size_t kBatch = 8192;

  static constexpr std::size_t kGroup = 32;

  // False, with the reason in error_, when the line is not STD.
  bool take_apart(std::string_view line, Fields& fields);
  void prefetch(const Fields& fields) const;
  Event event_of(const Fields& fields);
  bool fail(std::string_view found, std::string_view expected) {
    error_ = fmt::format("found {}, expected {}", found, expected);
    return false;
  }

  ThreadId thread(const Token& name);
  Address variable(const Token& name, TokenTable& table);
  SiteId site(const Token& location, Op op, const Event& event);

  LineInput lines_;
  bool salvage_;
  bool ended_ = false;
  std::string warning_;
  std::string error_;            // of the line just parsed
  std::optional<Error> damage_;  // what ended the reading
  Catalog catalog_;
  std::vector<Event> events_;

  TokenTable threads_;
  TokenTable variables_;
  TokenTable locks_;
  TokenTable locations_;
  std::vector<std::array<SiteId, kOpCount>> sites_;  // by location
};

ThreadId StdSource::thread(const Token& name) {
  bool is_new = false;
  const auto next = static_cast<std::uint32_t>(catalog_.threads.size());
  const ThreadId id = threads_.find_or_add(name, next, is_new);
  if (is_new) catalog_.threads.push_back({catalog_.strings.intern(name.text())});
  return id;
}

Address StdSource::variable(const Token& name, TokenTable& table) {
  bool is_new = false;
  const auto next = static_cast<std::uint32_t>(catalog_.symbols.size());
  const std::uint32_t index = table.find_or_add(name, next, is_new);
  const Address address = text::kFirstAutomatic + text::kAutomaticSpacing * index;
  if (is_new) {
    Symbol symbol;
    symbol.name = catalog_.strings.intern(name.text());
    symbol.address = address;
    symbol.size = text::kAutomaticSize;
    catalog_.symbols.push_back(symbol);
  }
  return address;
}

SiteId StdSource::site(const Token& location, Op op, const Event& event) {
  bool is_new = false;
  const auto next = static_cast<std::uint32_t>(sites_.size());
  const std::uint32_t index = locations_.find_or_add(location, next, is_new);
  if (is_new) sites_.emplace_back();
  SiteId& id = sites_[index][op];
  if (id == 0) {
    id = static_cast<SiteId>(catalog_.sites.size());
    text::Names::SiteKey place = place_of(location.text(), catalog_.strings);
    place.kind = event.kind;
    catalog_.sites.push_back(
        text::Names::automatic_site(place, event, catalog_.text(place.file), {}));
  }
  return id;
}

bool StdSource::take_apart(std::string_view line, Fields& fields) {
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  constexpr std::string_view kOps = "r, w, acq, rel, fork, join, begin or end";
  constexpr std::string_view kLine = "thread|op(operand)|location";
  const char* const begin = line.data();
  const char* const end = begin + line.size();
  if (begin == end) return fail("an empty line", kLine);

  const auto* bar = static_cast<const char*>(std::memchr(begin, '|', line.size()));
  if (bar == nullptr) return fail(shown(line), kLine);
  if (bar == begin) return fail(shown(line), "the name of a thread before `|`");
  const char* at = bar + 1;
  const auto* second =
      static_cast<const char*>(std::memchr(at, '|', static_cast<std::size_t>(end - at)));
  if (second == nullptr) return fail(shown({at, end}), "op(operand)|location");
  const std::string_view middle(at, static_cast<std::size_t>(second - at));

  Op op = kOpCount;
  const char* open = at;
  while (open < second && *open != '(') ++open;
  switch (open - at) {
    case 1:
      op = *at == 'r' ? kR : *at == 'w' ? kW : kOpCount;
      break;
    case 3:
      if (std::memcmp(at, "acq", 3) == 0) op = kAcq;
      if (std::memcmp(at, "rel", 3) == 0) op = kRel;
      if (std::memcmp(at, "end", 3) == 0) op = kEnd;
      break;
    case 4:
      if (std::memcmp(at, "fork", 4) == 0) op = kForkOp;
      if (std::memcmp(at, "join", 4) == 0) op = kJoinOp;
      break;
    case 5:
      if (std::memcmp(at, "begin", 5) == 0) op = kBegin;
      break;
    default:
      break;
  }
  if (op == kOpCount) return fail(shown(middle), kOps);
  const bool is_unit = op == kBegin || op == kEnd;
  std::string_view operand;
  if (open < second) {
    if (second[-1] != ')') return fail(shown(middle), "`)` before `|`");
    operand = {open + 1, static_cast<std::size_t>(second - 1 - (open + 1))};
  }
  if (operand.empty() && !is_unit) return fail(shown(middle), "an operand: op(operand)");
  const std::string_view location(second + 1, static_cast<std::size_t>(end - (second + 1)));
  if (location.empty()) return fail("the end of the line", "a location after `|`");
  if (location.find('|') != std::string_view::npos) {
    return fail(shown(location), "the line to end after the location");
  }

  fields.op = op;
  fields.thread = Token({begin, static_cast<std::size_t>(bar - begin)});
  fields.operand = operand.empty() ? Token() : Token(operand);
  fields.location = Token(location);
  return true;
}

void StdSource::prefetch(const Fields& fields) const {
  if (fields.op <= kW) variables_.prefetch(fields.operand);
  locations_.prefetch(fields.location);
}

Event StdSource::event_of(const Fields& fields) {
  Event event;
  event.kind = kKinds[fields.op];
  event.thread = thread(fields.thread);
  switch (fields.op) {
    case kR:
    case kW:
      event.size = text::kAutomaticSize;
      event.address = variable(fields.operand, variables_);
      break;
    case kAcq:
    case kRel:
      event.address = variable(fields.operand, locks_);
      break;
    case kForkOp:
    case kJoinOp:
      event.value = thread(fields.operand);
      break;
    default:
      event.value = catalog_.strings.intern(fields.operand.text());
      break;
  }
  event.site = site(fields.location, fields.op, event);
  return event;
}

// Lines are taken apart a group at a time, so that the lookups of a group find their cache lines
// fetched: otherwise waiting for memory would be most of the time.
Result<std::span<const Event>> StdSource::next() {
  std::array<Fields, kGroup> group;
  std::size_t count = 0;
  while (!ended_ && count + kGroup <= kBatch) {
    std::size_t taken = 0;
    std::optional<std::string_view> line = lines_.next();
    const std::uint64_t first_line = lines_.line_number();
    while (line && take_apart(*line, group[taken])) {
      prefetch(group[taken]);
      if (++taken == kGroup) break;
      line = lines_.next_in_block();
      if (!line) break;
    }
    std::uint64_t bad_line = lines_.line_number();
    for (std::size_t i = 0; i < taken; ++i) {
      const Event event = event_of(group[i]);
      if (catalog_.threads.size() > kMaxThreads) {
        bad_line = first_line + i;
        fail("one thread too many", fmt::format("at most {} threads", kMaxThreads));
        break;
      }
      events_[count++] = event;
    }
    if (error_.empty() && taken > 0) continue;

    ended_ = true;
    damage_ = lines_.error();
    if (!error_.empty()) {
      damage_ = Error{fmt::format("{}:{}: {}", lines_.file().path(), bad_line, error_)};
    }
    if (damage_ && salvage_) {
      warning_ = damage_->message + "; the rest is left out";
      damage_.reset();
    }
  }
  // The events before the damage come first, then, at the next call, the error.
  if (count == 0 && damage_) return *damage_;
  return std::span<const Event>(events_.data(), count);
}

}  // namespace

std::unique_ptr<EventSource> std_source(InputFile file, const OpenOptions& options) {
  return std::make_unique<StdSource>(std::move(file), options);
}

bool looks_like_std(std::string_view head) {
  const std::string_view line = head.substr(0, head.find('\n'));
  const std::size_t first = line.find('|');
  if (first == 0 || first == std::string_view::npos) return false;
  const std::string_view thread = line.substr(0, first);
  for (const char c : thread) {
    if (c < ' ' || c > '~') return false;
  }
  return true;
}

}  // namespace heddle
