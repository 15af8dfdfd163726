#include "recorded.h"

#include "abi/abi.h"
#include "abi/layout.h"
#include "trace/catalog_codec.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

namespace heddle::test {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "heddle-instrument-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

std::string read_all(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class Dump {
 public:
  explicit Dump(std::string bytes) : bytes_(std::move(bytes)) {}
  bool ok() const { return ok_; }
  std::uint64_t word() {
    std::uint64_t value = 0;
    const std::string piece = take(8);
    if (piece.size() == 8) std::memcpy(&value, piece.data(), 8);
    return value;
  }
  std::string take(std::uint64_t size) {
    if (size > bytes_.size() - at_) {
      ok_ = false;
      return {};
    }
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }
  std::string bytes() { return take(word()); }

 private:
  std::string bytes_;
  std::size_t at_{};
  bool ok_ = true;
};

template <typename T>
std::vector<T> as_array(const std::string& bytes) {
  std::vector<T> out(bytes.size() / sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), bytes.data(), out.size() * sizeof(T));
  return out;
}

std::span<const std::uint8_t> as_bytes(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

struct DumpedUnit {
  std::uint64_t slots_at{};
  std::uint64_t flags_at{};
  std::vector<heddle_slot> slots;
  std::vector<SegmentLayout> layouts;  // by segment number
  std::vector<LoopLayout> loops;
  std::vector<std::uint64_t> symbols;
};

// The steps of one block.
class BlockReader {
 public:
  BlockReader(const std::vector<DumpedUnit>& units, bool flow, Recorded& out)
      : units_(units), flow_(flow), out_(out) {}

  std::string read(const std::vector<std::uint64_t>& words) {
    for (std::size_t at = 0; at < words.size();) {
      const std::uint64_t header = words[at++];
      if (header == 0) return {};
      if (header >> 56 == HEDDLE_REC_EVENT) {
        out_.steps.push_back({.kind = RecordedStep::Kind::kRange,
                              .event = static_cast<EventKind>(header >> 48 & 0xff),
                              .address = words[at],
                              .size = header & 0xffffffff});
        ++at;
        continue;
      }
      const DumpedUnit* unit = nullptr;
      for (const DumpedUnit& candidate : units_) {
        if (header >= candidate.slots_at &&
            header < candidate.slots_at + candidate.slots.size() * 8) {
          unit = &candidate;
        }
      }
      if (unit == nullptr) return fmt::format("word {:#x} is not the address of a slot", header);
      ++out_.records;
      const heddle_slot& slot = unit->slots[(header - unit->slots_at) / 8];
      std::size_t length = slot.words;
      if (slot.kind == HEDDLE_SLOT_LOOP && slot.round_words != 0) {
        const LoopLayout& loop = unit->loops.at(slot.index);
        length += (words.at(at) - 1) * loop.round_words() + loop.last_words();
      }
      std::vector<std::uint64_t> rest(
          words.begin() + static_cast<std::ptrdiff_t>(at),
          words.begin() + static_cast<std::ptrdiff_t>(std::min(words.size(), at + length)));
      rest.resize(length);
      at += length;
      add(slot, static_cast<std::size_t>(unit - units_.data()), rest);
    }
    return {};
  }

 private:
  void add(const heddle_slot& slot, std::size_t unit, const std::vector<std::uint64_t>& words) {
    RecordedStep step;
    step.unit = unit;
    const Catalog& catalog = out_.catalogs[unit];
    switch (slot.kind) {
      case HEDDLE_SLOT_JOINED:
        add_parts(&slot, unit, words);
        return;
      case HEDDLE_SLOT_LOOP:
        add_rounds(units_[unit].loops[slot.index], unit, words);
        return;
      case HEDDLE_SLOT_ENTER: {
        step.kind = RecordedStep::Kind::kEnter;
        step.function = slot.index;
        if (words[0] != 0) step.site = static_cast<SiteId>(words[0] - units_[unit].flags_at);
        std::size_t next = 1;
        const Function& function = catalog.function(slot.index);
        if ((function.flags & Function::kMethod) != 0) step.address = words[next++];
        if ((function.flags & Function::kCatchesJumps) != 0) step.frame = words[next];
        break;
      }
      case HEDDLE_SLOT_LEAVE:
        step.kind = RecordedStep::Kind::kLeave;
        step.function = slot.index;
        break;
      case HEDDLE_SLOT_RESYNC:
        step.kind = RecordedStep::Kind::kResync;
        step.function = slot.index;
        step.frame = words[0];
        break;
      case HEDDLE_SLOT_LIBCALL:
        step.kind = RecordedStep::Kind::kLibcall;
        step.site = slot.index;
        break;
      default:
        step.kind = RecordedStep::Kind::kSegment;
        step.segment = slot.index;
    }
    out_.steps.push_back(step);
    if (slot.kind == HEDDLE_SLOT_SEGMENT) add_items(slot.index, unit, words);
  }

  // What would have been recorded if nothing had been joined.
  void add_parts(const heddle_slot* joined, std::size_t unit,
                 const std::vector<std::uint64_t>& words) {
    const std::vector<heddle_slot>& slots = units_[unit].slots;
    std::size_t next = 0;
    const auto take = [&](std::size_t count) {
      std::vector<std::uint64_t> taken;
      for (; count != 0; --count) taken.push_back(words.at(next++));
      return taken;
    };
    for (const heddle_slot* part = joined + 1; part <= joined + joined->index; ++part) {
      const heddle_slot& slot = slots.at(part->index);
      if (part->kind == HEDDLE_SLOT_PART) {
        if (slot.kind == HEDDLE_SLOT_SEGMENT || flow_) add(slot, unit, take(slot.words));
        continue;
      }
      ++part;
      std::vector<std::uint64_t> enter{units_[unit].flags_at + part->index};
      for (const std::uint64_t object : take(slot.words - 1u)) enter.push_back(object);
      add(slot, unit, enter);
      const auto of_callee = [&](const heddle_slot& other, unsigned kind) {
        return other.kind == kind &&
               slot.index == (kind == HEDDLE_SLOT_LEAVE
                                  ? other.index
                                  : out_.catalogs[unit].segment(other.index).function);
      };
      for (const unsigned kind : {HEDDLE_SLOT_SEGMENT, HEDDLE_SLOT_LEAVE}) {
        for (const heddle_slot& other : slots) {
          if (of_callee(other, kind)) add(other, unit, take(other.words));
        }
      }
    }
  }

  // What the instrumented loop would have recorded, word by word as abi/layout.h says.
  void add_rounds(const LoopLayout& loop, std::size_t unit,
                  const std::vector<std::uint64_t>& words) {
    out_.steps.push_back({.kind = RecordedStep::Kind::kLoop, .unit = unit});
    std::vector<Address> addresses;
    std::vector<std::uint64_t> steps;
    std::vector<std::size_t> gathered;  // the word in every round's, by item; or kMoves
    constexpr std::size_t kMoves = ~std::size_t{0};
    std::size_t next = loop.round_words() != 0 ? 2 : 1;
    std::size_t next_gathered = 0;
    for (const LoopItem& item : loop.items) {
      const auto offset = static_cast<Address>(item.first.offset);
      const bool follows = item.first.source == LayoutItem::Source::kItem;
      gathered.push_back(item.step == LoopItem::Step::kGathered ? next_gathered++
                         : follows                              ? gathered.at(item.first.reference)
                                                                : kMoves);
      if (gathered.back() != kMoves) {
        addresses.push_back(follows ? addresses.at(item.first.reference) + offset : 0);
        steps.push_back(0);
        continue;
      }
      addresses.push_back(item.first.source == LayoutItem::Source::kWord ? words[next++]
                          : item.first.source == LayoutItem::Source::kSymbol
                              ? units_[unit].symbols[item.first.reference] + offset
                              : addresses[item.first.reference] + offset);
      steps.push_back(item.step == LoopItem::Step::kWord ? words[next++]
                      : item.step == LoopItem::Step::kItem
                          ? steps[item.reference]
                          : static_cast<std::uint64_t>(item.distance));
    }
    const std::uint64_t rounds = words[0] >> 63 != 0 ? 0 : words[0];
    const std::uint64_t before = loop.round_words() != 0 ? words[1] : 0;
    const auto address = [&](std::size_t item, std::uint64_t round) {
      if (gathered[item] == kMoves) return addresses[item] + (before + round) * steps[item];
      return addresses[item] + words.at(loop.words() + round * loop.round_words() + gathered[item]);
    };
    for (std::uint64_t round = 0; round < rounds; ++round) {
      const std::size_t count = round + 1 < rounds ? loop.items.size() : loop.always;
      for (std::size_t i = 0; i < count; ++i) {
        const Site& site = out_.catalogs[unit].site(loop.items[i].site);
        out_.steps.push_back({.kind = RecordedStep::Kind::kAccess,
                              .unit = unit,
                              .site = loop.items[i].site,
                              .event = site.kind,
                              .order = site.order,
                              .address = address(i, round),
                              .size = site.size});
      }
    }
  }

  void add_items(SegmentId segment, std::size_t unit, const std::vector<std::uint64_t>& words) {
    const Catalog& catalog = out_.catalogs[unit];
    const SegmentLayout& layout = units_[unit].layouts[segment];
    const std::vector<AccessItem>& items = catalog.segment(segment).items;
    std::vector<Address> addresses;
    std::size_t next = 0;
    for (std::size_t i = 0; i < layout.size(); ++i) {
      const LayoutItem& item = layout[i];
      const Site& site = catalog.site(items[i].site);
      RecordedStep step{.kind = RecordedStep::Kind::kAccess,
                        .unit = unit,
                        .site = items[i].site,
                        .event = site.kind,
                        .order = site.order,
                        .size = site.size};
      switch (item.source) {
        case LayoutItem::Source::kNone:
          break;
        case LayoutItem::Source::kWord:
          step.address = words[next++];
          if (step.address == 0) return;
          break;
        case LayoutItem::Source::kSymbol:
          step.address = units_[unit].symbols[item.reference] + static_cast<Address>(item.offset);
          break;
        case LayoutItem::Source::kItem:
          step.address = addresses[item.reference] + static_cast<Address>(item.offset);
          break;
      }
      addresses.push_back(step.address);
      if (item.dynamic_size) step.size = words[next++] - 1;
      if (item.outcome && words[next++] == 1) {
        step.event = EventKind::kRead;
        step.order = static_cast<MemoryOrder>(item.failure_order);
      }
      out_.steps.push_back(step);
    }
  }

  const std::vector<DumpedUnit>& units_;
  bool flow_;
  Recorded& out_;
};

std::string parse(const std::string& bytes, bool flow, Recorded& out) {
  Dump dump(bytes);
  if (dump.take(8) != "HDUMP001") return "no dump was written";
  std::vector<DumpedUnit> units(dump.word());
  for (DumpedUnit& unit : units) {
    unit.slots_at = dump.word();
    unit.flags_at = dump.word();
    unit.slots = as_array<heddle_slot>(dump.bytes());
    const std::string catalog = dump.bytes();
    const std::string layout = dump.bytes();
    unit.symbols = as_array<std::uint64_t>(dump.bytes());
    dump.bytes();
    const Status decoded = decode_catalog(as_bytes(catalog), out.catalogs.emplace_back());
    if (!decoded.ok()) return decoded.error().message;
    std::vector<SegmentId> segments;
    for (const heddle_slot& slot : unit.slots) {
      if (slot.kind == HEDDLE_SLOT_SEGMENT) segments.push_back(slot.index);
    }
    Layout decoded_layout;
    const Catalog& described = out.catalogs.back();
    if (!decode_layout(as_bytes(layout),
                       {segments.size(), unit.symbols.size(), described.sites.size()},
                       decoded_layout)) {
      return "the layout is damaged";
    }
    unit.layouts.resize(described.segments.size());
    for (std::size_t i = 0; i < segments.size(); ++i) {
      unit.layouts[segments[i]] = decoded_layout.segments[i];
    }
    unit.loops = decoded_layout.loops;
  }
  for (std::uint64_t blocks = dump.word(); blocks != 0 && dump.ok(); --blocks) {
    const std::string problem =
        BlockReader(units, flow, out).read(as_array<std::uint64_t>(dump.bytes()));
    if (!problem.empty()) return problem;
  }
  const std::vector<std::uint64_t> points = as_array<std::uint64_t>(dump.bytes());
  for (std::size_t i = 0; i + 1 < points.size(); i += 2) {
    out.points.emplace_back(points[i] - (units.empty() ? 0 : units[0].flags_at), points[i + 1]);
  }
  return dump.ok() ? "" : "the dump is damaged";
}

int run(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

const char* order_name(MemoryOrder order) {
  static constexpr const char* kNames[] = {"",         " relaxed", " consume", " acquire",
                                           " release", " acq_rel", " seq_cst"};
  return kNames[static_cast<unsigned>(order)];
}

}  // namespace

Recorded run_recorded(const std::string& source, const RunOptions& options) {
  Recorded out;
  const Folder folder;
  const bool cpp = options.language == "c++";
  const std::string file = folder.file(cpp ? "program.cc" : "program.c");
  std::ofstream(file) << source;
  const std::string compile =
      fmt::format("{} -g -fpass-plugin={} {} {} -o {} -Wl,-rpath,{} {} -lpthread > {} 2>&1",
                  cpp ? HEDDLE_TEST_CLANGXX " -std=c++20" : HEDDLE_TEST_CLANG, HEDDLE_TEST_PLUGIN,
                  options.flags, file, folder.file("program"),
                  fs::path(HEDDLE_TEST_RUNTIME).parent_path().string(), HEDDLE_TEST_RUNTIME,
                  folder.file("messages"));
  if (run(compile) != 0) {
    out.error = compile + "\n" + read_all(folder.file("messages"));
    return out;
  }
  out.status = run(fmt::format(
      "cd {} && HEDDLE_DUMP={} HEDDLE_DUMP_FLOW={} HEDDLE_DUMP_POINTS={} "
      "HEDDLE_DUMP_LOOPS={} timeout 60 ./program > {} 2>&1",
      folder.file(""), folder.file("dump"), options.flow ? 1 : 0, options.points ? 1 : 0,
      options.loops && !options.flow && !options.points ? 1 : 0, folder.file("output")));
  out.output = read_all(folder.file("output"));
  out.error = parse(read_all(folder.file("dump")), options.flow, out);
  return out;
}

std::string compile_object(const std::string& source, const std::string& language,
                           const std::string& flags, const std::string& object) {
  const Folder folder;
  const bool cpp = language == "c++";
  const std::string file = folder.file(cpp ? "program.cc" : "program.c");
  std::ofstream(file) << source;
  const std::string command =
      fmt::format("{} -g -fpass-plugin={} {} -c {} -o {} > {} 2>&1",
                  cpp ? HEDDLE_TEST_CLANGXX " -std=c++20" : HEDDLE_TEST_CLANG, HEDDLE_TEST_PLUGIN,
                  flags, file, object, folder.file("messages"));
  return run(command) == 0 ? "" : command + "\n" + read_all(folder.file("messages"));
}

std::string Recorded::variable(const RecordedStep& step) const {
  const std::string_view name = catalogs[step.unit].text(site(step).variable);
  return name.empty() ? "?" : std::string(name);
}

std::string Recorded::function(const RecordedStep& step) const {
  const Catalog& catalog = catalogs[step.unit];
  return std::string(catalog.text(catalog.function(step.function).name));
}

std::vector<std::string> Recorded::lines() const {
  std::vector<std::string> out;
  for (const RecordedStep& step : steps) {
    switch (step.kind) {
      case RecordedStep::Kind::kAccess: {
        const char* verb = step.event == EventKind::kRead    ? "read"
                           : step.event == EventKind::kWrite ? "write"
                           : step.event == EventKind::kRmw   ? "rmw"
                           : step.event == EventKind::kFence ? "fence"
                                                             : "once_pass";
        if (step.event == EventKind::kFence) {
          out.push_back(fmt::format("fence{}", order_name(step.order)));
        } else {
          out.push_back(
              fmt::format("{} {} {}{}", verb, variable(step), step.size, order_name(step.order)));
        }
        break;
      }
      case RecordedStep::Kind::kSegment:
      case RecordedStep::Kind::kLoop:
        break;
      case RecordedStep::Kind::kRange:
        out.push_back(fmt::format("range {} {}", step.event == EventKind::kRead ? "read" : "write",
                                  step.size));
        break;
      case RecordedStep::Kind::kEnter:
        out.push_back("enter " + function(step));
        break;
      case RecordedStep::Kind::kLeave:
        out.push_back("leave " + function(step));
        break;
      case RecordedStep::Kind::kResync:
        out.push_back("resync " + function(step));
        break;
      case RecordedStep::Kind::kLibcall:
        out.push_back("libcall");
        break;
    }
  }
  return out;
}

std::size_t Recorded::count(const std::string& line) const {
  const std::vector<std::string> all = lines();
  return static_cast<std::size_t>(std::count(all.begin(), all.end(), line));
}

const Site* Recorded::find_site(const std::string& line) const {
  std::size_t number = 0;
  const std::vector<std::string> all = lines();
  for (const RecordedStep& step : steps) {
    if (step.kind == RecordedStep::Kind::kSegment || step.kind == RecordedStep::Kind::kLoop) {
      continue;
    }
    if (all[number++] == line) return &site(step);
  }
  return nullptr;
}

}  // namespace heddle::test
