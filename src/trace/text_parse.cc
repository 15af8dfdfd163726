#include "trace/text.h"
#include "trace/text_cursor.h"
#include "trace/text_declarations.h"
#include "trace/text_grammar.h"
#include "trace/text_names.h"

#include <cstdio>
#include <limits>

#include <fmt/format.h>

namespace heddle {

using namespace text;

class TextParser::State : public LineReader {
 public:
  using LineReader::LineReader;

  bool event(Event& event);

 private:
  bool operands(Event& event, Shape shape);
  enum class SizeRule {
    kNone,      // no size can be given
    kAccess,    // without one, the rest of the variable
    kOptional,  // without one, 0
  };
  bool place(SizeRule rule, std::uint64_t& size, std::uint64_t& address);
  bool object(Event& event) {
    std::uint64_t none = 0;
    std::uint64_t address = 0;
    if (!place(SizeRule::kNone, none, address)) return false;
    event.address = address;
    return true;
  }
  bool outcome(Event& event);
  bool run_outcome(Event& event);
  bool braces(Event& event, Shape shape);
  bool site(Event& event);
  bool set_size(Event& event, std::uint64_t size);
};

bool TextParser::State::set_size(Event& event, std::uint64_t size) {
  if (size >= (1u << 31)) return fail("a size below 2147483648");
  event.size = static_cast<std::uint32_t>(size) & 0x7fffffffu;
  return true;
}

bool TextParser::State::event(Event& event) {
  event = Event{};
  if (!thread(event.thread)) return false;
  if (!cursor().take(':')) return fail("`:` after the thread");
  if (cursor().at_end()) return fail("an event");

  const std::string_view before = cursor().rest();
  const std::string_view verb = cursor().run([](char c) { return continues_name(c); });
  const KindWord* word = kind_word(verb);
  std::string_view suffix;
  if (word == nullptr) {
    const std::size_t dot = verb.rfind('.');
    if (dot != std::string_view::npos) {
      word = kind_word(verb.substr(0, dot));
      suffix = verb.substr(dot + 1);
    }
  }
  if (word == nullptr) {
    rewind(before);
    return fail("an event such as r, w, acq, rel, fork, join, enter, leave, begin, end");
  }
  event.kind = word->kind;
  if (!suffix.empty()) {
    const bool ordered = word->shape == Shape::kAccess || word->shape == Shape::kFence;
    const auto order = ordered ? value_of(kOrderWords, suffix) : std::nullopt;
    const auto mode = word->shape == Shape::kLock ? value_of(kModeWords, suffix) : std::nullopt;
    if (!order && !mode) {
      rewind(before);
      if (ordered)
        return fail("a memory order: relaxed, consume, acquire, release, acq_rel, seq_cst");
      return fail(word->shape == Shape::kLock ? "a lock mode: exclusive or shared" : "an event");
    }
    if (order) event.order = static_cast<MemoryOrder>(*order);
    if (mode) event.mode = static_cast<LockMode>(*mode);
  }
  return operands(event, word->shape) && braces(event, word->shape) && site(event) && end_of_line();
}

bool TextParser::State::operands(Event& event, Shape shape) {
  std::uint64_t size = 0;
  std::uint64_t address = 0;
  switch (shape) {
    case Shape::kAccess:
      if (!place(SizeRule::kAccess, size, address) || !set_size(event, size)) {
        return false;
      }
      event.address = address;
      if (!cursor().at_end() && cursor().take('=')) {
        if (cursor().at_end() || !cursor().number(event.value)) return fail("a value");
        event.has_value = 1;
      }
      return true;
    case Shape::kFence:
    case Shape::kNothing:
    case Shape::kAnything:
      return true;
    case Shape::kLock:
    case Shape::kObjectOutcome:
      return object(event) && outcome(event);
    case Shape::kObject:
      return object(event);
    case Shape::kWait: {
      if (!object(event)) return false;
      std::uint64_t none = 0;
      return place(SizeRule::kNone, none, event.value) && outcome(event);
    }
    case Shape::kThread: {
      ThreadId other = 0;
      if (!thread(other)) return false;
      event.value = other;
      return true;
    }
    case Shape::kBlock:
      if (!place(SizeRule::kOptional, size, address)) return false;
      event.address = address;
      event.value = size;
      return true;
    case Shape::kEnter:
    case Shape::kLeave: {
      FunctionId id = 0;
      if (!function(id)) return false;
      event.value = id;
      return shape == Shape::kLeave || !cursor().take_word("on") || object(event);
    }
    case Shape::kUnit: {
      if (cursor().at_end() || (cursor().peek() != '"' && !starts_name(cursor().peek())))
        return true;
      StringId id = 0;
      if (!string(id, "a name")) return false;
      event.value = id;
      return true;
    }
    case Shape::kSegment:
      if (cursor().at_end() || !cursor().number(event.value))
        return fail("the number of a segment");
      if (event.value >= names().catalog().segments.size()) {
        return fail_found(fmt::format("segment {}", event.value), "a segment declared before");
      }
      return true;
    case Shape::kBranch:
      if (cursor().take_word("taken")) {
        event.value = 1;
        return true;
      }
      if (cursor().take_word("not")) return true;
      if (cursor().at_end() || !cursor().number(event.value)) return fail("`taken` or `not`");
      return true;
    case Shape::kIo:
      if (!place(SizeRule::kOptional, size, address) || !set_size(event, size)) return false;
      event.address = address;
      return true;
    case Shape::kMark: {
      StringId id = 0;
      if (!string(id, "a text")) return false;
      event.value = id;
      return true;
    }
    case Shape::kOutcome:
      return run_outcome(event);
  }
  return false;
}

// name[+offset][:size] or address[:size]. A name that is new becomes a variable large enough. What
// a missing size means is the caller's business (SizeRule).
bool TextParser::State::place(SizeRule rule, std::uint64_t& size, std::uint64_t& address) {
  constexpr std::string_view kExpected = "a variable or an address";
  if (cursor().at_end()) return fail(kExpected);
  std::string_view name;
  const bool is_number = cursor().number(address);
  if (!is_number && !this->name(name)) return fail(kExpected);
  if (!is_number && name.empty()) return fail_found("\"\"", kExpected);

  std::uint64_t offset = 0;
  if (!is_number && cursor().take('+') && !cursor().number(offset)) return fail("an offset");
  const bool is_sized = rule != SizeRule::kNone && cursor().take(':');
  if (is_sized && !cursor().number(size)) return fail("a size");
  if (is_number) {
    if (!is_sized) size = rule == SizeRule::kAccess ? kDefaultAccessSize : 0;
    return true;
  }

  const std::uint32_t known = names().find_symbol(name);
  const std::uint64_t held =
      known == kNone ? kAutomaticSize
                     : std::max<std::uint64_t>(names().catalog().symbols[known].size, 1);
  if (!is_sized) size = rule == SizeRule::kAccess && offset < held ? held - offset : 0;
  const std::uint64_t extent = std::max<std::uint64_t>(size, 1);
  const bool overflows = offset > std::numeric_limits<std::uint64_t>::max() - extent;
  const bool may_grow = known == kNone && (is_sized || rule != SizeRule::kAccess);
  if (overflows || (!may_grow && offset + extent > held)) {
    return fail_found(
        is_sized ? fmt::format("{}+{}:{}", name, offset, size) : fmt::format("{}+{}", name, offset),
        fmt::format("a place within the {} bytes of `{}`", held, name));
  }
  if (known != kNone) {
    address = names().catalog().symbols[known].address + offset;
    return true;
  }
  if (!names().next_automatic(offset + extent)) {
    return fail_found(fmt::format("{}+{}:{}", name, offset, size),
                      "a smaller variable, or one declared with `var`");
  }
  address =
      names().catalog().symbols[names().add_automatic(name, offset + extent)].address + offset;
  return true;
}

bool TextParser::State::outcome(Event& event) {
  for (const EnumWord& word : kOutcomeWords) {
    if (cursor().take_word(word.word)) event.outcome = static_cast<OpOutcome>(word.value);
  }
  return true;
}

bool TextParser::State::run_outcome(Event& event) {
  for (const EnumWord& word : kRunEndWords) {
    if (!cursor().take_word(word.word)) continue;
    event.size = word.value & 0x7fffffffu;
    if (!cursor().at_end() && cursor().number(event.value)) cursor().at_end();
    if (cursor().peek() == '"') {
      StringId id = 0;
      if (!string(id, "a text")) return false;
      event.address = id;
    }
    return true;
  }
  return fail("exit, signal, assertion, hang, deadlock or lost");
}

// {field=value …}: the fields that the event's kind does not use and that are set all the same.
bool TextParser::State::braces(Event& event, Shape shape) {
  if (cursor().at_end() || !cursor().take('{')) return true;
  while (!cursor().take('}')) {
    if (cursor().at_end()) return fail("field=value or `}`");
    const std::string_view before = cursor().rest();
    const std::string_view field = cursor().run([](char c) { return continues_name(c); });
    if (!cursor().take('=')) return fail("field=value or `}`");
    std::uint64_t value = 0;
    const std::string_view at_value = cursor().rest();
    if (!cursor().number(value)) {
      const std::string_view word = cursor().run([](char c) { return continues_name(c); });
      const auto named = field == "order"     ? value_of(kOrderWords, word)
                         : field == "mode"    ? value_of(kModeWords, word)
                         : field == "outcome" ? value_of(kOutcomeWords, word)
                                              : std::nullopt;
      if (!named) {
        rewind(at_value);
        return fail("a value");
      }
      value = *named;
    }
    // What the kind spells out is not for braces: an id there must be one of the catalog's.
    const auto may_set = [&](std::string_view name, Field which, std::uint64_t most) {
      return field == name && value <= most && (fields_of(shape) & which) == 0;
    };
    constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();
    if (may_set("order", kOrderField, 6)) {
      event.order = static_cast<MemoryOrder>(value);
    } else if (may_set("mode", kModeField, 1)) {
      event.mode = static_cast<LockMode>(value);
    } else if (may_set("outcome", kOutcomeField, 2)) {
      event.outcome = static_cast<OpOutcome>(value);
    } else if (may_set("size", kSizeField, kAny) || (field == "size" && shape == Shape::kOutcome)) {
      if (!set_size(event, value)) return false;
    } else if (may_set("has_value", kHasValueField, 1)) {
      event.has_value = value & 1u;
    } else if (may_set("address", kAddressField, kAny)) {
      event.address = value;
    } else if (may_set("value", kValueField, kAny)) {
      event.value = value;
    } else {
      rewind(before);
      return fail(
          "a field that this kind does not spell out, within its range: order, mode, outcome, "
          "size, "
          "has_value, address, value");
    }
    cursor().at_end();
  }
  return true;
}

bool TextParser::State::site(Event& event) {
  if (cursor().at_end() || cursor().peek() != '@') return true;
  Names::SiteKey key;
  SiteId id = kNone;
  if (!site_place(key, id)) return false;
  if (id != kNone) {
    event.site = id;
    return true;
  }
  key.kind = event.kind;
  event.site = names().find_site(key);
  if (event.site == kNone) {
    event.site = static_cast<SiteId>(names().catalog().sites.size());
    names().add_site(automatic_site(key, event));
  }
  return true;
}

TextParser::TextParser(Catalog& catalog) : state_(std::make_unique<State>(catalog)) {}
TextParser::~TextParser() = default;

TextParser::Line TextParser::parse(std::string_view line, Event& event) {
  state_->start(line);
  if (state_->cursor().at_end()) return Line::kOther;
  if (state_->at_event()) return state_->event(event) ? Line::kEvent : Line::kError;
  return state_->declaration() ? Line::kOther : Line::kError;
}

const std::string& TextParser::error() const {
  return state_->error();
}

Result<Trace> parse_text(std::string_view text, std::string_view name) {
  Trace trace;
  TextParser parser(trace.catalog);
  Event event;
  std::uint64_t line_number = 0;
  while (!text.empty()) {
    ++line_number;
    const std::size_t end = text.find('\n');
    const TextParser::Line line = parser.parse(text.substr(0, end), event);
    if (line == TextParser::Line::kError) {
      return Error{fmt::format("{}:{}: {}", name, line_number, parser.error())};
    }
    if (line == TextParser::Line::kEvent) trace.events.push_back(event);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return trace;
}

Trace trace_from_text(std::string_view text) {
  Result<Trace> trace = parse_text(text, "text");
  if (!trace.ok()) {
    std::fprintf(stderr, "%s\n", trace.error().message.c_str());
    HEDDLE_CHECK(trace.ok());
  }
  return *std::move(trace);
}

bool looks_like_text(std::string_view head) {
  while (!head.empty()) {
    const std::size_t end = head.find('\n');
    Cursor cursor(head.substr(0, end));
    if (!cursor.at_end()) return LineReader::starts_line(cursor.rest());
    if (end == std::string_view::npos) return true;
    head.remove_prefix(end + 1);
  }
  return true;
}

}  // namespace heddle
