#include "trace/text_declarations.h"

#include "trace/catalog_codec.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace heddle::text {
namespace {

constexpr std::array<std::string_view, 9> kDeclarations = {
    "var", "thread", "module", "function", "site", "segment", "phi", "access", "ends"};

// Threads are dense, so a trace has no use for a larger one; without a limit `t4000000000` would
// make every table that is indexed by thread enormous.
constexpr std::uint64_t kLargestThread = kMaxThreads - 1;

}  // namespace

bool LineReader::starts_event(std::string_view line) {
  if (line.empty() || line[0] != 't') return false;
  std::size_t n = 1;
  while (n < line.size() && line[n] >= '0' && line[n] <= '9') ++n;
  return n > 1 && n < line.size() && (line[n] == ':' || line[n] == ' ');
}

bool LineReader::starts_line(std::string_view line) {
  if (starts_event(line)) return true;
  const std::string_view word = line.substr(0, bare_name_length(line));
  return std::find(kDeclarations.begin(), kDeclarations.end(), word) != kDeclarations.end();
}

bool LineReader::fail(std::string_view expected) {
  if (cursor_.at_end()) return fail_found("the end of the line", expected);
  std::string_view found = cursor_.rest();
  std::size_t n = 1;
  while (n < found.size() && found[n] != ' ' && found[n] != '\t' && found[n] != '\r') ++n;
  constexpr std::size_t kLongest = 40;
  std::string shown;
  for (const char c : found.substr(0, std::min(n, kLongest))) {
    if (c >= ' ' && c <= '~') {
      shown.push_back(c);
    } else {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return fail_found(fmt::format("`{}{}`", shown, n > kLongest ? "…" : ""), expected);
}

bool LineReader::fail_found(std::string_view found, std::string_view expected) {
  error_ = fmt::format("found {}, expected {}", found, expected);
  return false;
}

bool LineReader::end_of_line() {
  return cursor_.at_end() || fail("the end of the line");
}

bool LineReader::thread(ThreadId& id) {
  constexpr std::string_view kExpected = "a thread: t0, t1, … t1048575";
  if (cursor_.at_end()) return fail(kExpected);
  const std::string_view before = cursor_.rest();
  std::uint64_t value = 0;
  const bool is_digit = before.size() > 1 && before[1] >= '0' && before[1] <= '9';
  if (!is_digit || !cursor_.take('t') || !cursor_.number(value) || value > kLargestThread) {
    rewind(before);
    return fail(kExpected);
  }
  id = static_cast<ThreadId>(value);
  return true;
}

bool LineReader::string(StringId& id, std::string_view expected) {
  std::string_view text;
  if (cursor_.at_end() || !name(text)) return fail(expected);
  id = names_.intern(text);
  return true;
}

bool LineReader::function(FunctionId& id) {
  if (cursor_.at_end()) return fail("a function");
  if (cursor_.take('?')) {
    id = 0;
    return true;
  }
  std::string_view text;
  if (!name(text)) return fail("a function");
  if (!cursor_.take('#')) {
    if (text.empty()) return fail_found("\"\"", "the name of a function");
    id = names_.function_named(text);
    return true;
  }
  std::uint64_t number = 0;
  if (!cursor_.number(number)) return fail("the number of a function");
  const Catalog& catalog = names_.catalog();
  if (number >= catalog.functions.size() || catalog.text(catalog.functions[number].name) != text) {
    return fail_found(fmt::format("{}#{}", text, number), "a function declared before");
  }
  id = static_cast<FunctionId>(number);
  return true;
}

bool LineReader::site_place(Names::SiteKey& key, SiteId& id) {
  cursor_.take('@');
  std::string_view file;
  bool has_place = true;
  if (cursor_.peek() == '"') {
    if (!cursor_.quoted(file, buffer_)) return fail("a file name in quotes");
    key.file = names_.intern(file);
  } else {
    file = cursor_.run([](char c) { return in_bare_file(c); });
    const bool is_line = !file.empty() && std::all_of(file.begin(), file.end(),
                                                      [](char c) { return c >= '0' && c <= '9'; });
    if (is_line) {
      Cursor line(file);
      std::uint64_t value = 0;
      if (!line.number(value) || value > std::numeric_limits<std::uint32_t>::max()) {
        return fail_found(file, "a line number");
      }
      key.line = static_cast<std::uint32_t>(value);
    } else {
      key.file = names_.intern(file);
      has_place = !file.empty();
    }
  }
  if (key.line == 0 && cursor_.take(':')) {
    if (!number32(key.line, "a line number")) return false;
    has_place = true;
  }
  if (cursor_.take(':') && !number32(key.column, "a column")) return false;
  std::uint64_t number = 0;
  if (cursor_.take('#')) {
    if (!cursor_.number(number)) return fail("the number of a site");
    if (number >= names_.catalog().sites.size()) {
      return fail_found(fmt::format("site {}", number), "a site declared before");
    }
    id = static_cast<SiteId>(number);
  } else if (!has_place) {
    return fail("a site: @file:line, @line or @name");
  }
  if (cursor_.take_word("in") && !function(key.function)) return false;
  if (id != kNone && has_place) {
    const Site& site = names_.catalog().sites[id];
    if (site.file != key.file || site.line != key.line || site.column != key.column ||
        site.function != key.function) {
      return fail_found(fmt::format("another place than that of site {}", id),
                        "the place where it was declared");
    }
  }
  return true;
}

Site LineReader::automatic_site(const Names::SiteKey& key, const Event& event) const {
  const Catalog& catalog = names_.catalog();
  return Names::automatic_site(key, event, catalog.text(key.file),
                               catalog.text(catalog.function(key.function).name));
}

bool LineReader::unknown_kind(std::string_view verb, std::uint32_t& number) {
  if (verb.substr(0, 4) != "kind") return false;
  Cursor cursor(verb.substr(4));
  std::uint64_t value = 0;
  if (!cursor.number(value) || !cursor.rest().empty() || value > 255) return false;
  number = static_cast<std::uint32_t>(value);
  return kind_word(static_cast<EventKind>(number)) == nullptr;
}

bool LineReader::number32(std::uint32_t& value, std::string_view expected) {
  const std::string_view before = cursor_.rest();
  std::uint64_t wide = 0;
  if (!cursor_.number(wide) || wide > std::numeric_limits<std::uint32_t>::max()) {
    rewind(before);
    return fail(expected);
  }
  value = static_cast<std::uint32_t>(wide);
  return true;
}

bool LineReader::next_id(std::string_view table, std::size_t expected) {
  std::uint64_t id = 0;
  if (cursor_.at_end() || !cursor_.number(id) || id != expected) {
    return fail_found(fmt::format("another number of this {}", table),
                      fmt::format("{} {}, the next", table, expected));
  }
  return true;
}

bool LineReader::attribute(std::string_view& key) {
  if (cursor_.at_end()) return false;
  const std::string_view before = cursor_.rest();
  key = cursor_.run([](char c) { return continues_name(c); });
  if (!key.empty() && cursor_.take('=')) return true;
  rewind(before);
  return false;
}

bool LineReader::flags(std::uint16_t& value, const EnumWord* words, std::size_t count) {
  value = 0;
  do {
    std::uint64_t bits = 0;
    if (cursor_.number(bits)) {
      if (bits > 0xffff) return fail_found(fmt::format("{:#x}", bits), "flags of 16 bits");
      value = static_cast<std::uint16_t>(value | bits);
      continue;
    }
    const std::string_view before = cursor_.rest();
    const std::string_view word = cursor_.run([](char c) { return continues_name(c); });
    const EnumWord* found =
        std::find_if(words, words + count, [&](const EnumWord& w) { return w.word == word; });
    if (found == words + count) {
      rewind(before);
      std::string known;
      for (std::size_t i = 0; i < count; ++i)
        known += fmt::format("{}{}", i ? ", " : "", words[i].word);
      return fail("flags joined by `+`: " + known);
    }
    value = static_cast<std::uint16_t>(value | found->value);
  } while (cursor_.take('+'));
  return true;
}

template <typename Table>
bool LineReader::enumerator(const Table& table, std::uint32_t& value, std::string_view expected) {
  const std::string_view before = cursor_.rest();
  const auto found = value_of(table, cursor_.run([](char c) { return continues_name(c); }));
  if (!found) {
    rewind(before);
    return fail(expected);
  }
  value = *found;
  return true;
}

bool LineReader::declaration() {
  if (cursor_.take_word("var")) return declare_variable();
  if (cursor_.take_word("thread")) return declare_thread();
  if (cursor_.take_word("module")) return declare_module();
  if (cursor_.take_word("function")) return declare_function();
  if (cursor_.take_word("site")) return declare_site();
  if (cursor_.take_word("segment")) return declare_segment();
  if (cursor_.take_word("phi")) return declare_phi();
  if (cursor_.take_word("access")) return declare_access();
  if (cursor_.take_word("ends")) return declare_end();
  return fail(
      "an event (`t1: r x`) or a declaration (var, thread, module, function, site, segment)");
}

// var NAME [0xADDRESS][:SIZE] [@file:line]
bool LineReader::declare_variable() {
  Symbol symbol;
  if (!string(symbol.name, "the name of a variable")) return false;
  std::uint64_t size = kAutomaticSize;
  cursor_.at_end();
  const bool has_address = cursor_.number(symbol.address);
  if (cursor_.take(':') && !cursor_.number(size)) return fail("a size");
  if (!has_address) {
    const auto address = names_.next_automatic(size);
    if (!address)
      return fail_found(fmt::format("{} bytes", size), "a variable that fits in memory");
    symbol.address = *address;
  }
  symbol.size = size;
  if (!cursor_.at_end() && cursor_.peek() == '@') {
    Names::SiteKey key;
    SiteId id = kNone;
    if (!site_place(key, id)) return false;
    symbol.file = key.file;
    symbol.line = key.line;
  }
  if (!end_of_line()) return false;
  names_.add_symbol(symbol);
  return true;
}

// thread tN [NAME]
bool LineReader::declare_thread() {
  ThreadId id = 0;
  if (!thread(id)) return false;
  if (names_.threads().size() <= id) names_.threads().resize(id + 1);
  if (!cursor_.at_end() && !string(names_.threads()[id].name, "the name of the thread"))
    return false;
  return end_of_line();
}

// module "PATH" [build=ID] [bias=0x…]
bool LineReader::declare_module() {
  Module module;
  if (!string(module.path, "the path of the module in quotes")) return false;
  std::string_view key;
  while (attribute(key)) {
    if (key == "build") {
      if (!string(module.build_id, "a build id in quotes")) return false;
    } else if (key == "bias") {
      if (!cursor_.number(module.load_bias)) return fail("an address");
    } else {
      return fail_found(key, "build or bias");
    }
  }
  if (!end_of_line()) return false;
  names_.modules().push_back(module);
  return true;
}

// function N NAME [@file:line] [key=value …]
bool LineReader::declare_function() {
  if (!next_id("function", names_.catalog().functions.size())) return false;
  Function function;
  if (!string(function.name, "the name of the function")) return false;
  if (!cursor_.at_end() && cursor_.peek() == '@') {
    Names::SiteKey place;
    SiteId none = kNone;
    if (!site_place(place, none)) return false;
    function.file = place.file;
    function.line = place.line;
  }
  bool has_linkage_name = false;
  bool has_key = false;
  std::string_view key;
  while (attribute(key)) {
    if (key == "linkage") {
      if (!string(function.linkage_name, "a name")) return false;
      has_linkage_name = true;
    } else if (key == "class") {
      if (!string(function.class_name, "a name")) return false;
    } else if (key == "access") {
      std::uint32_t access = 0;
      if (!enumerator(kMemberAccessWords, access, "none, public, protected or private"))
        return false;
      function.access = static_cast<MemberAccess>(access);
    } else if (key == "flags") {
      if (!flags(function.flags, kFunctionFlagWords.data(), kFunctionFlagWords.size()))
        return false;
    } else if (key == "parameters") {
      if (!number32(function.parameters, "a number")) return false;
    } else if (key == "registers") {
      if (!number32(function.registers, "a number")) return false;
    } else if (key == "key") {
      if (!cursor_.number(function.key)) return fail("a number");
      has_key = true;
    } else {
      return fail_found(key, "linkage, class, access, flags, parameters, registers or key");
    }
  }
  if (!end_of_line()) return false;
  if (!has_linkage_name) function.linkage_name = function.name;
  if (!has_key) function.key = Names::key_of_function(names_.catalog().text(function.name));
  names_.add_function(function);
  return true;
}

// site N [@file:line:column [in f]] [key=value …]
bool LineReader::declare_site() {
  if (!next_id("site", names_.catalog().sites.size())) return false;
  Names::SiteKey place;
  if (!cursor_.at_end() && cursor_.peek() == '@') {
    SiteId none = kNone;
    if (!site_place(place, none)) return false;
  }
  Site site;
  bool has_key = false;
  std::string_view key;
  while (attribute(key)) {
    if (key == "in") {
      if (!function(place.function)) return false;
    } else if (key == "ordinal") {
      if (!number32(site.ordinal, "a number")) return false;
    } else if (key == "kind") {
      const std::string_view before = cursor_.rest();
      const std::string_view verb = cursor_.run([](char c) { return continues_name(c); });
      const KindWord* word = kind_word(verb);
      std::uint32_t number = 0;
      if (word == nullptr && !unknown_kind(verb, number)) {
        rewind(before);
        return fail("the kind of an event: r, w, acq, …");
      }
      site.kind = word != nullptr ? word->kind : static_cast<EventKind>(number);
    } else if (key == "order") {
      std::uint32_t order = 0;
      if (!enumerator(kOrderWords, order, "a memory order")) return false;
      site.order = static_cast<MemoryOrder>(order);
    } else if (key == "flags") {
      if (!flags(site.flags, kSiteFlagWords.data(), kSiteFlagWords.size())) return false;
    } else if (key == "size") {
      if (!number32(site.size, "a number")) return false;
    } else if (key == "variable") {
      if (!string(site.variable, "a name")) return false;
    } else if (key == "type") {
      if (!string(site.type, "a name")) return false;
    } else if (key == "field") {
      if (!string(site.field, "a name")) return false;
    } else if (key == "offset") {
      if (!number32(site.offset, "a number")) return false;
    } else if (key == "key") {
      if (!cursor_.number(site.key)) return fail("a number");
      has_key = true;
    } else {
      return fail_found(
          key, "in, ordinal, kind, order, flags, size, variable, type, field, offset or key");
    }
  }
  if (!end_of_line()) return false;
  site.function = place.function;
  site.file = place.file;
  site.line = place.line;
  site.column = place.column;
  if (!has_key) {
    Event event;
    event.kind = site.kind;
    place.kind = site.kind;
    site.key = automatic_site(place, event).key;
  }
  names_.add_site(site);
  return true;
}

// segment N [in f] [block=B] [index=I] [parents=B,B,…]
bool LineReader::declare_segment() {
  if (!next_id("segment", names_.catalog().segments.size())) return false;
  Segment segment;
  if (cursor_.take_word("in") && !function(segment.function)) return false;
  std::string_view key;
  while (attribute(key)) {
    if (key == "block") {
      if (!number32(segment.block, "the number of a block")) return false;
    } else if (key == "index") {
      if (!number32(segment.index, "a number")) return false;
    } else if (key == "parents") {
      do {
        std::uint32_t block = 0;
        if (!number32(block, "the number of a block")) return false;
        segment.control_parents.push_back(block);
      } while (cursor_.take(','));
    } else {
      return fail_found(key, "block, index or parents");
    }
  }
  if (!end_of_line()) return false;
  names_.add_segment(std::move(segment));
  return true;
}

bool LineReader::need_segment() {
  return names_.catalog().segments.size() > 1 ||
         fail_found("part of a segment", "the line `segment N` before it");
}

bool LineReader::reg(Register& value) {
  if (cursor_.at_end() || !cursor_.take('%')) return fail("a register: %0, %1, …");
  return number32(value, "the number of a register");
}

// (%1 %2 …), also empty
bool LineReader::sources(Sources& list) {
  if (!cursor_.take('(')) return fail("`(`");
  while (true) {
    if (cursor_.at_end()) return fail("`)`");
    if (cursor_.take(')')) return true;
    Register value = 0;
    if (!reg(value)) return false;
    list.push_back(value);
  }
}

// phi %5 1(%2 %3) 2()
bool LineReader::declare_phi() {
  Phi phi;
  if (!need_segment() || !reg(phi.defines)) return false;
  while (!cursor_.at_end()) {
    Phi::Incoming incoming;
    if (!number32(incoming.block, "the number of a block") || !sources(incoming.sources))
      return false;
    phi.incoming.push_back(std::move(incoming));
  }
  names_.last_segment().phis.push_back(std::move(phi));
  return true;
}

// access @#7 [%6] [address=(%1)] [value=(%2)]
bool LineReader::declare_access() {
  AccessItem item;
  if (!need_segment()) return false;
  if (cursor_.at_end() || cursor_.peek() != '@') return fail("a site: @#1");
  Names::SiteKey place;
  SiteId id = kNone;
  if (!site_place(place, id)) return false;
  if (id == kNone) return fail_found("a site without a number", "a declared site: @a.c:3#1 or @#1");
  item.site = id;
  if (!cursor_.at_end() && cursor_.peek() == '%' && !reg(item.defines)) return false;
  std::string_view key;
  while (attribute(key)) {
    if (key == "address") {
      if (!sources(item.address_from)) return false;
    } else if (key == "value") {
      if (!sources(item.value_from)) return false;
    } else {
      return fail_found(key, "address or value");
    }
  }
  if (!end_of_line()) return false;
  names_.last_segment().items.push_back(std::move(item));
  return true;
}

// ends fall|branch|call|return|unwind [from=(…)] [arguments=(…)(…)] [defines=%8] [callee=NAME]
bool LineReader::declare_end() {
  if (!need_segment()) return false;
  Segment& segment = names_.last_segment();
  std::uint32_t end = 0;
  cursor_.at_end();
  if (!enumerator(kSegmentEndWords, end, "fall, branch, call, return or unwind")) return false;
  segment.end = static_cast<SegmentEnd>(end);
  std::string_view key;
  while (attribute(key)) {
    if (key == "from") {
      if (!sources(segment.end_from)) return false;
    } else if (key == "arguments") {
      do {
        if (!sources(segment.arguments.emplace_back())) return false;
      } while (cursor_.peek() == '(');
    } else if (key == "defines") {
      if (!reg(segment.defines)) return false;
    } else if (key == "callee") {
      if (!string(segment.callee, "a name")) return false;
    } else {
      return fail_found(key, "from, arguments, defines or callee");
    }
  }
  return end_of_line();
}

}  // namespace heddle::text
