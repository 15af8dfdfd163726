#include "trace/text.h"
#include "trace/text_grammar.h"
#include "trace/text_names.h"

#include <algorithm>
#include <charconv>
#include <map>

namespace heddle {

using namespace text;

namespace {

constexpr auto kLastRunEnd = static_cast<std::uint32_t>(RunEnd::kLost);

void append(std::string& out, std::uint64_t number) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  out.append(digits, end);
}

void append_hex(std::string& out, std::uint64_t number) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, number, 16).ptr;
  out.append("0x").append(digits, end);
}

void append_value(std::string& out, std::uint64_t number) {
  if (number < 1000000) {
    append(out, number);
  } else {
    append_hex(out, number);
  }
}

void append_quoted(std::string& out, std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out.push_back('"');
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (c == '\n') {
      out.append("\\n");
    } else if (c == '\t') {
      out.append("\\t");
    } else if (byte < 0x20 || byte == 0x7f) {
      out.append("\\x").push_back(kHex[byte >> 4]);
      out.push_back(kHex[byte & 15]);
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
}

void append_name(std::string& out, std::string_view text) {
  if (!text.empty() && bare_name_length(text) == text.size()) {
    out.append(text);
  } else {
    append_quoted(out, text);
  }
}

void append_file(std::string& out, std::string_view file) {
  const bool bare = std::all_of(file.begin(), file.end(), in_bare_file);
  const bool digits =
      std::all_of(file.begin(), file.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (file.empty()) return;
  if (bare && !digits) {
    out.append(file);
  } else {
    append_quoted(out, file);
  }
}

void append_key(std::string& out, std::string_view key) {
  out.push_back(' ');
  out.append(key).push_back('=');
}

void append_flags(std::string& out, std::uint16_t flags, const EnumWord* words, std::size_t count) {
  if (flags == 0) return;
  append_key(out, "flags");
  bool first = true;
  for (std::size_t i = 0; i < count; ++i) {
    if ((flags & words[i].value) == 0) continue;
    if (!first) out.push_back('+');
    out.append(words[i].word);
    flags = static_cast<std::uint16_t>(flags & ~words[i].value);
    first = false;
  }
  if (flags == 0) return;
  if (!first) out.push_back('+');
  append_hex(out, flags);
}

void append_sources(std::string& out, const Sources& sources) {
  out.push_back('(');
  for (std::size_t i = 0; i < sources.size(); ++i) {
    out.append(i == 0 ? "%" : " %");
    append(out, sources[i]);
  }
  out.push_back(')');
}

bool is_placed(const Site& site) {
  return site.file != 0 || site.line != 0 || site.column != 0;
}

}  // namespace

class TextPrinter::State {
 public:
  explicit State(const Catalog& catalog) : catalog_(catalog), names_(shadow_) {}

  void print(const Event& event, std::string& out);
  void finish(std::string& out);

 private:
  // What an event's line refers to, in the order in which the line mentions it.
  struct References {
    std::uint32_t symbol[2] = {kNone, kNone};
    std::uint64_t extent[2] = {};  // bytes from the variable's start to the end of the access
    FunctionId function[2] = {};
    SiteId site{};
    SegmentId segment{};
  };
  References references(const Event& event, Shape shape);
  std::uint32_t symbol_at(Address address, std::uint64_t bytes);
  bool says_itself(const Event& event, const References& refs);
  void declare(const References& refs, std::string& out);

  void declare_symbols(std::size_t count, std::string& out);
  void declare_functions(std::size_t count, std::string& out);
  void declare_sites(std::size_t count, std::string& out);
  void declare_segments(std::size_t count, std::string& out);
  void declare_threads_and_modules(std::string& out);

  void operands(const Event& event, Shape shape, const References& refs, std::string& out);
  void braces(const Event& event, std::uint8_t spelt, std::string& out);
  // Gives the size that an access there has when none is written.
  std::uint64_t place(Address address, std::uint32_t symbol, std::uint64_t extent,
                      std::string& out);
  void function(FunctionId id, std::string& out);
  void file_line_column(const Site& site, std::string& out);
  void site_place(const Site& site, std::string& out);
  void site(const Event& event, std::string& out);

  std::string_view text(StringId id) const { return catalog_.text(id); }
  StringId shadow(StringId id) { return names_.intern(catalog_.text(id)); }
  Names::SiteKey key_of(const Site& site, EventKind kind) {
    return {shadow(site.file), site.line, site.column, site.function, kind};
  }
  std::string_view function_name(const Site& site) const {
    return text(catalog_.function(site.function).name);
  }
  Site shadow_of(const Site& site);

  const Catalog& catalog_;
  Catalog shadow_;  // what a reader of the lines printed so far has
  Names names_;
  std::map<Address, std::uint32_t> symbol_by_address_;
  std::size_t indexed_symbols_ = 0;
  std::size_t printed_modules_ = 0;
  bool started_ = false;
};

// The innermost variable that begins at or before `address` and holds all of the access.
std::uint32_t TextPrinter::State::symbol_at(Address address, std::uint64_t bytes) {
  for (; indexed_symbols_ < catalog_.symbols.size(); ++indexed_symbols_) {
    symbol_by_address_.try_emplace(catalog_.symbols[indexed_symbols_].address,
                                   static_cast<std::uint32_t>(indexed_symbols_));
  }
  auto after = symbol_by_address_.upper_bound(address);
  if (after == symbol_by_address_.begin()) return kNone;
  const std::uint32_t index = std::prev(after)->second;
  const Symbol& symbol = catalog_.symbols[index];
  const std::uint64_t offset = address - symbol.address;
  const std::uint64_t size = std::max<std::uint64_t>(symbol.size, 1);
  if (offset >= size || bytes > size - offset || text(symbol.name).empty()) return kNone;
  const std::uint32_t known = names_.find_symbol(text(symbol.name));
  if (index < shadow_.symbols.size() ? known != index : known != kNone) return kNone;
  return index;
}

TextPrinter::State::References TextPrinter::State::references(const Event& event, Shape shape) {
  References refs;
  refs.site = event.site;
  const auto refer = [&](int which, Address address, std::uint64_t bytes) {
    refs.symbol[which] = symbol_at(address, std::max<std::uint64_t>(bytes, 1));
    if (refs.symbol[which] == kNone) return;
    refs.extent[which] =
        address - catalog_.symbols[refs.symbol[which]].address + std::max<std::uint64_t>(bytes, 1);
  };
  switch (shape) {
    case Shape::kAccess:
    case Shape::kIo:
      refer(0, event.address, event.size);
      break;
    case Shape::kBlock:
      refer(0, event.address, event.value);
      break;
    case Shape::kLock:
    case Shape::kObject:
    case Shape::kObjectOutcome:
      refer(0, event.address, 1);
      break;
    case Shape::kWait:
      refer(0, event.address, 1);
      refer(1, event.value, 1);
      break;
    case Shape::kEnter:
      if (event.address != 0) refer(0, event.address, 1);
      [[fallthrough]];
    case Shape::kLeave:
      refs.function[0] = static_cast<FunctionId>(event.value);
      break;
    case Shape::kSegment:
      refs.segment = static_cast<SegmentId>(event.value);
      break;
    default:
      break;
  }
  if (refs.site < catalog_.sites.size()) refs.function[1] = catalog_.sites[refs.site].function;
  return refs;
}

// Whether the line alone, read by the parser, makes exactly the entries that it is the first to
// mention.
bool TextPrinter::State::says_itself(const Event& event, const References& refs) {
  if (refs.segment >= shadow_.segments.size() && refs.segment < catalog_.segments.size())
    return false;

  std::size_t next_symbol = shadow_.symbols.size();
  Address past_first = 0;
  for (int i = 0; i < 2; ++i) {
    if (refs.symbol[i] == kNone || refs.symbol[i] < next_symbol) continue;
    if (refs.symbol[i] != next_symbol) return false;
    const Symbol& symbol = catalog_.symbols[refs.symbol[i]];
    const auto free = names_.next_automatic(refs.extent[i]);
    const Address expected = past_first != 0 ? past_first : free.value_or(0);
    if (!free || expected != symbol.address || symbol.file != 0 || symbol.line != 0 ||
        symbol.size != std::max(refs.extent[i], kAutomaticSize)) {
      return false;
    }
    past_first = Names::automatic_after(symbol.address + symbol.size);
    ++next_symbol;
  }
  const bool two_symbols = next_symbol == shadow_.symbols.size() + 2;
  if (two_symbols &&
      text(catalog_.symbols[refs.symbol[0]].name) == text(catalog_.symbols[refs.symbol[1]].name)) {
    return false;
  }

  std::size_t next_function = shadow_.functions.size();
  for (const FunctionId id : refs.function) {
    if (id < next_function) continue;
    if (id != next_function || id >= catalog_.functions.size()) return false;
    const Function& f = catalog_.functions[id];
    if (text(f.name).empty() || f.linkage_name != f.name || f.file != 0 || f.line != 0 ||
        f.class_name != 0 || f.access != MemberAccess::kNone || f.flags != 0 || f.parameters != 0 ||
        f.registers != 0 || f.key != Names::key_of_function(text(f.name)) ||
        names_.find_function(text(f.name)) != kNone) {
      return false;
    }
    ++next_function;
  }
  const bool two_functions = next_function == shadow_.functions.size() + 2;
  if (two_functions &&
      catalog_.functions[refs.function[0]].name == catalog_.functions[refs.function[1]].name) {
    return false;
  }

  if (refs.site < shadow_.sites.size() || refs.site >= catalog_.sites.size()) return true;
  if (refs.site != shadow_.sites.size()) return false;
  const Site& s = catalog_.sites[refs.site];
  if (text(s.file).empty() && s.line == 0) return false;
  const Names::SiteKey key = key_of(s, event.kind);
  if (names_.find_site(key) != kNone) return false;
  const Site automatic = Names::automatic_site(key, event, text(s.file), function_name(s));
  return s.kind == automatic.kind && s.order == automatic.order && s.flags == automatic.flags &&
         s.size == automatic.size && s.key == automatic.key && s.ordinal == 0 && s.variable == 0 &&
         s.type == 0 && s.field == 0 && s.offset == 0;
}

void TextPrinter::State::declare(const References& refs, std::string& out) {
  for (const std::uint32_t symbol : refs.symbol) {
    if (symbol != kNone) declare_symbols(symbol + 1, out);
  }
  for (const FunctionId function : refs.function) declare_functions(function + std::size_t{1}, out);
  declare_sites(refs.site + std::size_t{1}, out);
  declare_segments(refs.segment + std::size_t{1}, out);
}

void TextPrinter::State::declare_symbols(std::size_t count, std::string& out) {
  count = std::min(count, catalog_.symbols.size());
  for (std::size_t i = shadow_.symbols.size(); i < count; ++i) {
    Symbol symbol = catalog_.symbols[i];
    out.append("var ");
    append_name(out, text(symbol.name));
    out.push_back(' ');
    append_hex(out, symbol.address);
    out.push_back(':');
    append(out, symbol.size);
    if (symbol.file != 0 || symbol.line != 0) {
      out.append(" @");
      append_file(out, text(symbol.file));
      out.push_back(':');
      append(out, symbol.line);
    }
    out.push_back('\n');
    symbol.name = shadow(symbol.name);
    symbol.file = shadow(symbol.file);
    names_.add_symbol(symbol);
  }
}

void TextPrinter::State::declare_functions(std::size_t count, std::string& out) {
  count = std::min(count, catalog_.functions.size());
  for (std::size_t i = shadow_.functions.size(); i < count; ++i) {
    Function f = catalog_.functions[i];
    out.append("function ");
    append(out, i);
    out.push_back(' ');
    append_name(out, text(f.name));
    if (f.file != 0 || f.line != 0) {
      out.append(" @");
      append_file(out, text(f.file));
      out.push_back(':');
      append(out, f.line);
    }
    if (f.linkage_name != f.name)
      append_key(out, "linkage"), append_name(out, text(f.linkage_name));
    if (f.class_name != 0) append_key(out, "class"), append_name(out, text(f.class_name));
    if (f.access != MemberAccess::kNone) {
      append_key(out, "access");
      out.append(word_of(kMemberAccessWords, static_cast<std::uint32_t>(f.access)));
    }
    append_flags(out, f.flags, kFunctionFlagWords.data(), kFunctionFlagWords.size());
    if (f.parameters != 0) append_key(out, "parameters"), append(out, f.parameters);
    if (f.registers != 0) append_key(out, "registers"), append(out, f.registers);
    if (f.key != Names::key_of_function(text(f.name)))
      append_key(out, "key"), append_hex(out, f.key);
    out.push_back('\n');
    f.name = shadow(f.name);
    f.linkage_name = shadow(f.linkage_name);
    f.file = shadow(f.file);
    f.class_name = shadow(f.class_name);
    names_.add_function(f);
  }
}

Site TextPrinter::State::shadow_of(const Site& site) {
  Site copy = site;
  copy.file = shadow(site.file);
  copy.variable = shadow(site.variable);
  copy.type = shadow(site.type);
  copy.field = shadow(site.field);
  return copy;
}

void TextPrinter::State::declare_sites(std::size_t count, std::string& out) {
  count = std::min(count, catalog_.sites.size());
  for (std::size_t i = shadow_.sites.size(); i < count; ++i) {
    const Site& s = catalog_.sites[i];
    declare_functions(s.function + std::size_t{1}, out);
    out.append("site ");
    append(out, i);
    const bool has_place = is_placed(s);
    if (has_place) {
      out.append(" @");
      site_place(s, out);
    } else if (s.function != 0) {
      append_key(out, "in");
      function(s.function, out);
    }
    if (s.ordinal != 0) append_key(out, "ordinal"), append(out, s.ordinal);
    if (s.kind != EventKind{}) {
      append_key(out, "kind");
      if (const KindWord* word = kind_word(s.kind)) {
        out.append(word->word);
      } else {
        out.append("kind");
        append(out, static_cast<std::uint64_t>(s.kind));
      }
    }
    if (s.order != MemoryOrder::kPlain) {
      append_key(out, "order");
      out.append(word_of(kOrderWords, static_cast<std::uint32_t>(s.order)));
    }
    append_flags(out, s.flags, kSiteFlagWords.data(), kSiteFlagWords.size());
    if (s.size != 0) append_key(out, "size"), append(out, s.size);
    if (s.variable != 0) append_key(out, "variable"), append_name(out, text(s.variable));
    if (s.type != 0) append_key(out, "type"), append_name(out, text(s.type));
    if (s.field != 0) append_key(out, "field"), append_name(out, text(s.field));
    if (s.offset != 0) append_key(out, "offset"), append(out, s.offset);
    Event event;
    event.kind = s.kind;
    if (s.key !=
        Names::automatic_site(key_of(s, s.kind), event, text(s.file), function_name(s)).key) {
      append_key(out, "key");
      append_hex(out, s.key);
    }
    out.push_back('\n');
    names_.add_site(shadow_of(s));
  }
}

void TextPrinter::State::declare_segments(std::size_t count, std::string& out) {
  count = std::min(count, catalog_.segments.size());
  for (std::size_t i = shadow_.segments.size(); i < count; ++i) {
    const Segment& s = catalog_.segments[i];
    declare_functions(s.function + std::size_t{1}, out);
    for (const AccessItem& item : s.items) declare_sites(item.site + std::size_t{1}, out);
    out.append("segment ");
    append(out, i);
    if (s.function != 0) {
      out.append(" in ");
      function(s.function, out);
    }
    append_key(out, "block"), append(out, s.block);
    append_key(out, "index"), append(out, s.index);
    for (std::size_t k = 0; k < s.control_parents.size(); ++k) {
      out.append(k == 0 ? " parents=" : ",");
      append(out, s.control_parents[k]);
    }
    out.push_back('\n');
    for (const Phi& phi : s.phis) {
      out.append("  phi %");
      append(out, phi.defines);
      for (const Phi::Incoming& incoming : phi.incoming) {
        out.push_back(' ');
        append(out, incoming.block);
        append_sources(out, incoming.sources);
      }
      out.push_back('\n');
    }
    for (const AccessItem& item : s.items) {
      out.append("  access @#");
      append(out, item.site);
      if (item.defines != kNoRegister) out.append(" %"), append(out, item.defines);
      if (!item.address_from.empty()) {
        append_key(out, "address");
        append_sources(out, item.address_from);
      }
      if (!item.value_from.empty()) append_key(out, "value"), append_sources(out, item.value_from);
      out.push_back('\n');
    }
    out.append("  ends ").append(word_of(kSegmentEndWords, static_cast<std::uint32_t>(s.end)));
    if (!s.end_from.empty()) append_key(out, "from"), append_sources(out, s.end_from);
    if (!s.arguments.empty()) append_key(out, "arguments");
    for (const Sources& argument : s.arguments) append_sources(out, argument);
    if (s.defines != kNoRegister) out.append(" defines=%"), append(out, s.defines);
    if (s.callee != 0) append_key(out, "callee"), append_name(out, text(s.callee));
    out.push_back('\n');
    names_.add_segment(Segment{});
  }
}

void TextPrinter::State::declare_threads_and_modules(std::string& out) {
  for (std::size_t i = 0; i < catalog_.threads.size(); ++i) {
    const std::string_view name = text(catalog_.threads[i].name);
    const bool known = i < shadow_.threads.size() && shadow_.text(shadow_.threads[i].name) == name;
    const bool last = i + 1 == catalog_.threads.size();
    if (known || (name.empty() && !last)) continue;
    out.append("thread t");
    append(out, i);
    out.push_back(' ');
    append_name(out, name);
    out.push_back('\n');
    if (shadow_.threads.size() <= i) shadow_.threads.resize(i + 1);
    shadow_.threads[i].name = names_.intern(name);
  }
  for (; printed_modules_ < catalog_.modules.size(); ++printed_modules_) {
    const Module& module = catalog_.modules[printed_modules_];
    out.append("module ");
    append_quoted(out, text(module.path));
    if (module.build_id != 0) append_key(out, "build"), append_quoted(out, text(module.build_id));
    if (module.load_bias != 0) append_key(out, "bias"), append_hex(out, module.load_bias);
    out.push_back('\n');
  }
}

std::uint64_t TextPrinter::State::place(Address address, std::uint32_t symbol, std::uint64_t extent,
                                        std::string& out) {
  if (symbol != kNone) {
    const std::string_view name = text(catalog_.symbols[symbol].name);
    const std::uint64_t offset = address - catalog_.symbols[symbol].address;
    std::uint32_t known = names_.find_symbol(name);
    const bool is_new = known == kNone;
    if (is_new) known = names_.add_automatic(name, extent);
    if (known == symbol) {
      append_name(out, name);
      if (offset != 0) out.push_back('+'), append(out, offset);
      const std::uint64_t held =
          is_new ? kAutomaticSize : std::max<std::uint64_t>(shadow_.symbols[known].size, 1);
      return offset < held ? held - offset : 0;
    }
  }
  append_hex(out, address);
  return kDefaultAccessSize;
}

void TextPrinter::State::function(FunctionId id, std::string& out) {
  if (id == 0 || id >= catalog_.functions.size()) {
    out.push_back('?');
    return;
  }
  const std::string_view name = text(catalog_.functions[id].name);
  append_name(out, name);
  const bool by_name = !name.empty() && names_.function_named(name) == id;
  if (!by_name) out.push_back('#'), append(out, id);
}

void TextPrinter::State::file_line_column(const Site& site, std::string& out) {
  append_file(out, text(site.file));
  const bool bare_line = site.file == 0 && site.line != 0;
  if (!bare_line && (site.line != 0 || site.column != 0)) out.push_back(':');
  if (site.line != 0 || site.column != 0) append(out, site.line);
  if (site.column != 0) out.push_back(':'), append(out, site.column);
}

void TextPrinter::State::site_place(const Site& site, std::string& out) {
  file_line_column(site, out);
  if (site.function == 0) return;
  out.append(" in ");
  function(site.function, out);
}

void TextPrinter::State::site(const Event& event, std::string& out) {
  if (event.site == 0 || event.site >= catalog_.sites.size()) return;
  const Site& site = catalog_.sites[event.site];
  out.append(" @");
  const bool has_place = is_placed(site);
  SiteId known = kNone;
  if (has_place) {
    const Names::SiteKey key = key_of(site, event.kind);
    known = names_.find_site(key);
    if (known == kNone && event.site == shadow_.sites.size()) {
      names_.add_site(shadow_of(site));
      known = event.site;
    }
  }
  if (known != event.site) {
    if (has_place) file_line_column(site, out);
    out.push_back('#');
    append(out, event.site);
    if (has_place && site.function != 0) out.append(" in "), function(site.function, out);
    return;
  }
  site_place(site, out);
}

void TextPrinter::State::operands(const Event& event, Shape shape, const References& refs,
                                  std::string& out) {
  const auto outcome = [&] {
    if (event.outcome == OpOutcome::kOk) return;
    out.push_back(' ');
    out.append(word_of(kOutcomeWords, static_cast<std::uint32_t>(event.outcome)));
  };
  const auto sized = [&](std::uint64_t size, std::uint64_t default_size) {
    if (size != default_size) out.push_back(':'), append(out, size);
  };
  out.push_back(' ');
  switch (shape) {
    case Shape::kAccess:
      sized(event.size, place(event.address, refs.symbol[0], refs.extent[0], out));
      if (event.has_value) out.append(" = "), append_value(out, event.value);
      break;
    case Shape::kLock:
    case Shape::kObjectOutcome:
      place(event.address, refs.symbol[0], refs.extent[0], out);
      outcome();
      break;
    case Shape::kObject:
      place(event.address, refs.symbol[0], refs.extent[0], out);
      break;
    case Shape::kWait:
      place(event.address, refs.symbol[0], refs.extent[0], out);
      out.push_back(' ');
      place(event.value, refs.symbol[1], refs.extent[1], out);
      outcome();
      break;
    case Shape::kThread:
      out.push_back('t');
      append(out, event.value);
      break;
    case Shape::kBlock:
      place(event.address, refs.symbol[0], refs.extent[0], out);
      sized(event.value, 0);
      break;
    case Shape::kEnter:
    case Shape::kLeave:
      function(static_cast<FunctionId>(event.value), out);
      if (shape == Shape::kEnter && event.address != 0) {
        out.append(" on ");
        place(event.address, refs.symbol[0], refs.extent[0], out);
      }
      break;
    case Shape::kUnit:
      if (event.value == 0) {
        out.pop_back();
      } else {
        append_name(out, text(static_cast<StringId>(event.value)));
      }
      break;
    case Shape::kSegment:
      append(out, event.value);
      break;
    case Shape::kBranch:
      if (event.value <= 1) {
        out.append(event.value == 1 ? "taken" : "not");
      } else {
        append_value(out, event.value);
      }
      break;
    case Shape::kIo:
      place(event.address, refs.symbol[0], refs.extent[0], out);
      sized(event.size, 0);
      break;
    case Shape::kMark:
      append_quoted(out, text(static_cast<StringId>(event.value)));
      break;
    case Shape::kOutcome:
      out.append(word_of(kRunEndWords, event.size <= kLastRunEnd ? event.size : 0)).push_back(' ');
      append_value(out, event.value);
      if (event.address != 0) {
        out.push_back(' ');
        append_quoted(out, text(static_cast<StringId>(event.address)));
      }
      break;
    case Shape::kFence:
    case Shape::kNothing:
    case Shape::kAnything:
      out.pop_back();
      break;
  }
}

void TextPrinter::State::braces(const Event& event, std::uint8_t spelt, std::string& out) {
  const std::size_t start = out.size();
  const auto field = [&](Field which, std::string_view name, std::uint64_t value) {
    if ((spelt & which) != 0 || value == 0) return;
    out.append(out.size() == start ? " {" : " ").append(name).push_back('=');
    append_value(out, value);
  };
  field(kOrderField, "order", static_cast<std::uint64_t>(event.order));
  field(kModeField, "mode", static_cast<std::uint64_t>(event.mode));
  field(kOutcomeField, "outcome", static_cast<std::uint64_t>(event.outcome));
  field(kSizeField, "size", event.size);
  field(kHasValueField, "has_value", event.has_value);
  field(kAddressField, "address", event.address);
  field(kValueField, "value", event.value);
  if (out.size() != start) out.push_back('}');
}

void TextPrinter::State::print(const Event& event, std::string& out) {
  if (!started_) {
    started_ = true;
    declare_threads_and_modules(out);
  }
  const KindWord* word = kind_word(event.kind);
  const Shape shape = word != nullptr ? word->shape : Shape::kAnything;
  const References refs = references(event, shape);
  if (!says_itself(event, refs)) declare(refs, out);

  out.push_back('t');
  append(out, event.thread);
  out.append(": ");
  if (word != nullptr) {
    out.append(word->word);
  } else {
    out.append("kind");
    append(out, static_cast<std::uint64_t>(event.kind));
  }
  std::uint8_t spelt = fields_of(shape);
  if ((spelt & kOrderField) != 0 && event.order != MemoryOrder::kPlain) {
    out.push_back('.');
    out.append(word_of(kOrderWords, static_cast<std::uint32_t>(event.order)));
  }
  if ((spelt & kModeField) != 0 && event.mode != LockMode::kExclusive) {
    out.push_back('.');
    out.append(word_of(kModeWords, static_cast<std::uint32_t>(event.mode)));
  }
  operands(event, shape, refs, out);
  if (shape == Shape::kAccess && event.has_value) spelt |= kValueField;
  if (shape == Shape::kOutcome && event.size > kLastRunEnd) spelt &= ~kSizeField & 0xff;
  braces(event, spelt, out);
  site(event, out);
  out.push_back('\n');
}

void TextPrinter::State::finish(std::string& out) {
  declare_threads_and_modules(out);
  declare_symbols(catalog_.symbols.size(), out);
  declare_functions(catalog_.functions.size(), out);
  declare_sites(catalog_.sites.size(), out);
  declare_segments(catalog_.segments.size(), out);
}

TextPrinter::TextPrinter(const Catalog& catalog) : state_(std::make_unique<State>(catalog)) {}
TextPrinter::~TextPrinter() = default;

void TextPrinter::print(const Event& event, std::string& out) {
  state_->print(event, out);
}

void TextPrinter::finish(std::string& out) {
  state_->finish(out);
}

std::string print_text(const Trace& trace) {
  std::string out;
  TextPrinter printer(trace.catalog);
  for (const Event& event : trace.events) printer.print(event, out);
  printer.finish(out);
  return out;
}

}  // namespace heddle
