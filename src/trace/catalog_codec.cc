#include "trace/catalog_codec.h"

#include <string>

namespace heddle {
namespace {

// Kinds of sections; the numbers are part of the file format.
enum class Section : std::uint8_t {
  kStrings = 1,
  kFunctions = 2,
  kSites = 3,
  kSegments = 4,
  kSymbols = 5,
  kModules = 6,
  kThreads = 7,
};

constexpr std::uint8_t kBlobVersion = 1;

// ---- out --------------------------------------------------------------------------------------

// Differences to the entry before keep the numbers of neighbours in a function small.
struct Previous {
  std::int64_t function = 0;
  std::int64_t file = 0;
  std::int64_t line = 0;
};

void put_delta(ByteWriter& out, std::int64_t& previous, std::uint32_t value) {
  out.signed_varint(static_cast<std::int64_t>(value) - previous);
  previous = value;
}

void put(ByteWriter& out, const Function& f, Previous& previous) {
  out.varint(f.name);
  out.varint(f.linkage_name);
  put_delta(out, previous.file, f.file);
  put_delta(out, previous.line, f.line);
  out.varint(f.class_name);
  out.byte(static_cast<std::uint8_t>(f.access));
  out.varint(f.flags);
  out.varint(f.parameters);
  out.varint(f.registers);
  out.word64(f.key);
}

void put(ByteWriter& out, const Site& s, Previous& previous) {
  put_delta(out, previous.function, s.function);
  put_delta(out, previous.file, s.file);
  put_delta(out, previous.line, s.line);
  out.varint(s.column);
  out.varint(s.ordinal);
  out.byte(static_cast<std::uint8_t>(s.kind));
  out.byte(static_cast<std::uint8_t>(s.order));
  out.varint(s.flags);
  out.varint(s.size);
  out.varint(s.variable);
  out.varint(s.type);
  out.varint(s.field);
  out.varint(s.offset);
  out.word64(s.key);
}

void put(ByteWriter& out, const Sources& sources) {
  out.varint(sources.size());
  for (const Register r : sources) out.varint(r);
}

// kNoRegister becomes 0, so that it takes one byte.
void put_register(ByteWriter& out, Register r) {
  out.varint(static_cast<std::uint32_t>(r + 1));
}

void put(ByteWriter& out, const Segment& s, Previous& previous) {
  put_delta(out, previous.function, s.function);
  out.varint(s.block);
  out.varint(s.index);
  out.varint(s.phis.size());
  for (const Phi& phi : s.phis) {
    put_register(out, phi.defines);
    out.varint(phi.incoming.size());
    for (const Phi::Incoming& incoming : phi.incoming) {
      out.varint(incoming.block);
      put(out, incoming.sources);
    }
  }
  out.varint(s.items.size());
  for (const AccessItem& item : s.items) {
    put_delta(out, previous.line, item.site);
    put_register(out, item.defines);
    put(out, item.address_from);
    put(out, item.value_from);
  }
  out.byte(static_cast<std::uint8_t>(s.end));
  put(out, s.end_from);
  out.varint(s.arguments.size());
  for (const Sources& argument : s.arguments) put(out, argument);
  put_register(out, s.defines);
  out.varint(s.callee);
  put(out, s.control_parents);
}

void put(ByteWriter& out, const Symbol& s, Previous& previous) {
  out.varint(s.name);
  put_delta(out, previous.file, s.file);
  put_delta(out, previous.line, s.line);
  out.varint(s.address);
  out.varint(s.size);
}

void put(ByteWriter& out, const Module& m, Previous&) {
  out.varint(m.path);
  out.varint(m.build_id);
  out.varint(m.load_bias);
}

void put_section(ByteWriter& out, Section kind, std::size_t first, std::size_t count,
                 const ByteWriter& body) {
  if (count == 0) return;
  out.byte(static_cast<std::uint8_t>(kind));
  out.varint(body.size());
  out.varint(first);
  out.varint(count);
  out.raw(body.bytes());
}

template <typename Entry>
void put_table(ByteWriter& out, Section kind, const std::vector<Entry>& table, std::size_t& done,
               std::size_t limit) {
  ByteWriter body;
  Previous previous;
  const std::size_t first = done;
  while (done < table.size() && out.size() + body.size() < limit) {
    put(body, table[done++], previous);
  }
  put_section(out, kind, first, done - first, body);
}

void put_strings(ByteWriter& out, const StringTable& table, std::size_t& done, std::size_t limit) {
  ByteWriter body;
  const std::size_t first = done;
  while (done < table.size() && out.size() + body.size() < limit) {
    body.text(table[static_cast<StringId>(done++)]);
  }
  put_section(out, Section::kStrings, first, done - first, body);
}

void put_threads(ByteWriter& out, const std::vector<ThreadInfo>& table,
                 std::vector<StringId>& done) {
  ByteWriter body;
  std::size_t count = 0;
  for (std::size_t id = 0; id < table.size(); ++id) {
    const bool known = id < done.size();
    if (known && done[id] == table[id].name) continue;
    if (!known) done.resize(id + 1);
    done[id] = table[id].name;
    body.varint(id);
    body.varint(table[id].name);
    ++count;
  }
  put_section(out, Section::kThreads, 0, count, body);
}

// ---- in ---------------------------------------------------------------------------------------

// Reads entries and checks every reference against the tables as they are so far.
class Decoder {
 public:
  Decoder(std::span<const std::uint8_t> blob, Catalog& into) : blob_(blob), into_(into) {}

  Status run() {
    ByteReader in(blob_);
    if (in.byte() != kBlobVersion) return Error{"catalog: unknown version at byte 0"};
    while (!in.at_end()) {
      const auto kind = static_cast<Section>(in.byte());
      const std::uint64_t length = in.varint();
      const std::uint64_t first = in.varint();
      const std::uint64_t count = in.varint();
      base_ = in.offset();
      const std::span<const std::uint8_t> body = in.raw(length);
      if (!in.ok()) return wrong("a section that is longer than the catalog", base_);
      if (Status status = section(kind, first, count, body); !status.ok()) return status;
    }
    return Done{};
  }

 private:
  static Status wrong(const std::string& what, std::size_t offset) {
    return Error{"catalog: " + what + " at byte " + std::to_string(offset)};
  }

  Status section(Section kind, std::uint64_t first, std::uint64_t count,
                 std::span<const std::uint8_t> body) {
    ByteReader in(body);
    previous_ = {};
    switch (kind) {
      case Section::kStrings:
        return strings(in, first, count);
      case Section::kFunctions:
        return table(in, first, count, into_.functions, 17);
      case Section::kSites:
        return table(in, first, count, into_.sites, 21);
      case Section::kSegments:
        return table(in, first, count, into_.segments, 11);
      case Section::kSymbols:
        return table(in, first, count, into_.symbols, 5);
      case Section::kModules:
        return table(in, first, count, into_.modules, 3);
      case Section::kThreads:
        return threads(in, count);
    }
    return Done{};  // of a later version
  }

  Status strings(ByteReader& in, std::uint64_t first, std::uint64_t count) {
    if (first != into_.strings.size()) return wrong("strings that do not continue", base_);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::size_t at = base_ + in.offset();
      const std::string_view text = in.text();
      if (!in.ok()) return wrong("a string that is cut off", at);
      if (into_.strings.intern(text) != first + i) return wrong("a string that was there", at);
    }
    return in.at_end() ? Status(Done{}) : wrong("bytes after the last string", base_ + in.offset());
  }

  template <typename Entry>
  Status table(ByteReader& in, std::uint64_t first, std::uint64_t count, std::vector<Entry>& table,
               std::size_t least) {
    if (first != table.size()) return wrong("entries that do not continue their table", base_);
    if (count > in.remaining() / least) return wrong("more entries than bytes", base_);
    table.reserve(table.size() + static_cast<std::size_t>(count));
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::size_t at = base_ + in.offset();
      Entry entry;
      what_ = nullptr;
      get(in, entry);
      if (!in.ok()) return wrong("an entry that is cut off", at);
      if (what_ != nullptr) return wrong(what_, at);
      table.push_back(std::move(entry));
    }
    return in.at_end() ? Status(Done{}) : wrong("bytes after the last entry", base_ + in.offset());
  }

  Status threads(ByteReader& in, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::size_t at = base_ + in.offset();
      const std::uint64_t id = in.varint();
      what_ = nullptr;
      const StringId name = string(in);
      if (!in.ok()) return wrong("a thread that is cut off", at);
      if (id >= kMaxThreads) return wrong("thread number " + std::to_string(id), at);
      if (what_ != nullptr) return wrong(what_, at);
      if (id >= into_.threads.size()) into_.threads.resize(static_cast<std::size_t>(id) + 1);
      into_.threads[static_cast<std::size_t>(id)].name = name;
    }
    return in.at_end() ? Status(Done{}) : wrong("bytes after the last thread", base_ + in.offset());
  }

  void complain(const char* what) {
    if (what_ == nullptr) what_ = what;
  }
  std::uint32_t narrow(std::uint64_t value) {
    if (value > 0xffffffffu) complain("a number that is too large");
    return static_cast<std::uint32_t>(value);
  }
  std::uint32_t number(ByteReader& in) { return narrow(in.varint()); }
  std::uint32_t reference(std::uint64_t id, std::size_t size, const char* what) {
    if (id < size) return static_cast<std::uint32_t>(id);
    complain(what);
    return 0;
  }
  StringId string(ByteReader& in) {
    return reference(in.varint(), into_.strings.size(), "a string that does not exist");
  }
  std::uint64_t delta(ByteReader& in, std::int64_t& previous) {
    const std::uint64_t value =
        static_cast<std::uint64_t>(previous) + static_cast<std::uint64_t>(in.signed_varint());
    previous = static_cast<std::int64_t>(value);
    return value;
  }
  StringId file(ByteReader& in) {
    return reference(delta(in, previous_.file), into_.strings.size(),
                     "a string that does not exist");
  }
  std::uint32_t line(ByteReader& in) { return narrow(delta(in, previous_.line)); }
  FunctionId function(ByteReader& in) {
    return reference(delta(in, previous_.function), into_.functions.size(),
                     "a function that does not exist");
  }
  std::uint16_t flags(ByteReader& in) {
    const std::uint64_t value = in.varint();
    if (value > 0xffff) complain("flags that do not exist");
    return static_cast<std::uint16_t>(value);
  }
  template <typename Enum>
  Enum choice(ByteReader& in, Enum last) {
    const std::uint8_t value = in.byte();
    if (value > static_cast<std::uint8_t>(last)) complain("a choice that does not exist");
    return static_cast<Enum>(value);
  }
  Register reg(ByteReader& in) { return number(in) - 1; }
  void get(ByteReader& in, Sources& sources) {
    sources.resize(in.count(1));
    for (Register& r : sources) r = number(in);
  }

  void get(ByteReader& in, Function& f) {
    f.name = string(in);
    f.linkage_name = string(in);
    f.file = file(in);
    f.line = line(in);
    f.class_name = string(in);
    f.access = choice(in, MemberAccess::kPrivate);
    f.flags = flags(in);
    f.parameters = number(in);
    f.registers = number(in);
    f.key = in.word64();
  }

  void get(ByteReader& in, Site& s) {
    s.function = function(in);
    s.file = file(in);
    s.line = line(in);
    s.column = number(in);
    s.ordinal = number(in);
    s.kind = static_cast<EventKind>(in.byte());  // a later version may know more
    s.order = choice(in, MemoryOrder::kSeqCst);
    s.flags = flags(in);
    s.size = number(in);
    s.variable = string(in);
    s.type = string(in);
    s.field = string(in);
    s.offset = number(in);
    s.key = in.word64();
  }

  void get(ByteReader& in, Segment& s) {
    s.function = function(in);
    s.block = number(in);
    s.index = number(in);
    s.phis.resize(in.count(2));
    for (Phi& phi : s.phis) {
      phi.defines = reg(in);
      phi.incoming.resize(in.count(2));
      for (Phi::Incoming& incoming : phi.incoming) {
        incoming.block = number(in);
        get(in, incoming.sources);
      }
    }
    s.items.resize(in.count(4));
    for (AccessItem& item : s.items) {
      item.site =
          reference(delta(in, previous_.line), into_.sites.size(), "a site that does not exist");
      item.defines = reg(in);
      get(in, item.address_from);
      get(in, item.value_from);
    }
    s.end = choice(in, SegmentEnd::kUnwind);
    get(in, s.end_from);
    s.arguments.resize(in.count(1));
    for (Sources& argument : s.arguments) get(in, argument);
    s.defines = reg(in);
    s.callee = string(in);
    get(in, s.control_parents);
  }

  void get(ByteReader& in, Symbol& s) {
    s.name = string(in);
    s.file = file(in);
    s.line = line(in);
    s.address = in.varint();
    s.size = in.varint();
  }

  void get(ByteReader& in, Module& m) {
    m.path = string(in);
    m.build_id = string(in);
    m.load_bias = in.varint();
  }

  std::span<const std::uint8_t> blob_;
  Catalog& into_;
  Previous previous_;
  std::size_t base_ = 0;        // where the section's body starts in the blob
  const char* what_ = nullptr;  // what is wrong with the entry being read
};

}  // namespace

bool CatalogMark::covers(const Catalog& catalog) const {
  if (strings != catalog.strings.size() || functions != catalog.functions.size() ||
      sites != catalog.sites.size() || segments != catalog.segments.size() ||
      symbols != catalog.symbols.size() || modules != catalog.modules.size() ||
      thread_names.size() != catalog.threads.size()) {
    return false;
  }
  for (std::size_t id = 0; id < thread_names.size(); ++id) {
    if (thread_names[id] != catalog.threads[id].name) return false;
  }
  return true;
}

void encode_catalog_since(const Catalog& catalog, CatalogMark& mark, std::size_t limit,
                          ByteWriter& out) {
  limit += out.size() + 1;  // beyond the version byte, so that every call makes progress
  out.byte(kBlobVersion);
  put_strings(out, catalog.strings, mark.strings, limit);
  put_table(out, Section::kFunctions, catalog.functions, mark.functions, limit);
  put_table(out, Section::kSites, catalog.sites, mark.sites, limit);
  put_table(out, Section::kSegments, catalog.segments, mark.segments, limit);
  put_table(out, Section::kSymbols, catalog.symbols, mark.symbols, limit);
  put_table(out, Section::kModules, catalog.modules, mark.modules, limit);
  if (out.size() < limit) put_threads(out, catalog.threads, mark.thread_names);
}

std::vector<std::uint8_t> encode_catalog(const Catalog& catalog) {
  ByteWriter out;
  CatalogMark mark;
  encode_catalog_since(catalog, mark, SIZE_MAX / 2, out);
  return out.take();
}

Status decode_catalog(std::span<const std::uint8_t> blob, Catalog& into) {
  return Decoder(blob, into).run();
}

}  // namespace heddle
