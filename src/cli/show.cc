// heddle show: the events of a trace.
#include "cli/event_filter.h"
#include "cli/messages.h"
#include "cli/output.h"
#include "cli/trace_input.h"
#include "cli/trace_verbs.h"
#include "finding/describe.h"
#include "trace/text.h"
#include "trace/text_grammar.h"

#include <memory>
#include <optional>

#include <fmt/format.h>

namespace heddle::cli {
namespace {

struct Options {
  TraceInput trace;
  EventFilter::Words words;
  bool text = false;
};

// One line for an event, in columns.
class Columns {
 public:
  explicit Columns(const Catalog& catalog) : catalog_(catalog), describer_(catalog) {}

  static void header(std::string& out) {
    line("event", "thread", "kind", "object", "value", "site", out);
  }

  void follow(const Event& event) { describer_.on(event); }

  void print(const Event& event, EventOrdinal ordinal, std::string& out) {
    std::string thread = fmt::format("t{}", event.thread);
    if (const std::string name = describer_.thread(event.thread); !name.empty())
      thread += " " + name;
    line(fmt::format("{}", ordinal), thread, kind(event), object(event), value(event), site(event),
         out);
  }

 private:
  static void line(std::string_view ordinal, std::string_view thread, std::string_view kind,
                   std::string_view object, std::string_view value, std::string_view site,
                   std::string& out) {
    const std::size_t start = out.size();
    fmt::format_to(std::back_inserter(out), "{:>9}  {:<12} {:<16} {:<24} {:<12} {}", ordinal,
                   thread, kind, object, value, site);
    while (out.size() > start && out.back() == ' ') out.pop_back();
    out.push_back('\n');
  }

  static std::string kind(const Event& event) {
    const text::KindWord* word = text::kind_word(event.kind);
    if (word == nullptr) return fmt::format("kind{}", static_cast<int>(event.kind));
    std::string out(word->word);
    if (event.order != MemoryOrder::kPlain) {
      out += fmt::format(".{}",
                         text::word_of(text::kOrderWords, static_cast<std::uint32_t>(event.order)));
    }
    if (event.mode != LockMode::kExclusive) out += ".shared";
    if (event.outcome != OpOutcome::kOk) {
      out += fmt::format(
          " {}", text::word_of(text::kOutcomeWords, static_cast<std::uint32_t>(event.outcome)));
    }
    return out;
  }

  std::string object(const Event& event) const {
    using text::Shape;
    const text::KindWord* word = text::kind_word(event.kind);
    switch (word != nullptr ? word->shape : Shape::kAnything) {
      case Shape::kAccess:
        return describer_.variable(event.site, event.address, event.size).name;
      case Shape::kLock:
      case Shape::kObject:
      case Shape::kObjectOutcome:
      case Shape::kIo:
        return describer_.object(event.address);
      case Shape::kWait:
        return fmt::format("{} {}", describer_.object(event.address),
                           describer_.object(event.value));
      case Shape::kThread:
        return fmt::format("t{}", event.value);
      case Shape::kBlock:
        return fmt::format("{:#x}", event.address);
      case Shape::kEnter:
      case Shape::kLeave: {
        const Function& f = catalog_.function(static_cast<FunctionId>(event.value));
        return std::string(f.name != 0 ? catalog_.text(f.name) : "?");
      }
      case Shape::kUnit:
      case Shape::kMark:
        return std::string(catalog_.text(static_cast<StringId>(event.value)));
      case Shape::kSegment: {
        const Segment& s = catalog_.segment(static_cast<SegmentId>(event.value));
        return fmt::format("{} of {}", event.value,
                           catalog_.text(catalog_.function(s.function).name));
      }
      case Shape::kBranch:
        return event.value != 0 ? "taken" : "not";
      case Shape::kOutcome: {
        std::string out =
            fmt::format("{} {}", text::word_of(text::kRunEndWords, event.size), event.value);
        if (event.address != 0) {
          out += fmt::format(" \"{}\"", catalog_.text(static_cast<StringId>(event.address)));
        }
        return out;
      }
      case Shape::kFence:
      case Shape::kNothing:
      case Shape::kAnything:
        return {};
    }
    return {};
  }

  static std::string value(const Event& event) {
    if (event.kind == EventKind::kAlloc || event.kind == EventKind::kFree) {
      return event.value == 0 ? "" : fmt::format("{} bytes", event.value);
    }
    if (event.kind == EventKind::kIoRead || event.kind == EventKind::kIoWrite) {
      return fmt::format("{} bytes", event.size);
    }
    if (!is_access(event.kind) || !event.has_value) return {};
    return event.value < 1000000 ? fmt::format("= {}", event.value)
                                 : fmt::format("= {:#x}", event.value);
  }

  std::string site(const Event& event) const {
    const Place place = describer_.place(event.site);
    std::string out = place.file;
    if (place.line != 0) out += fmt::format("{}{}", out.empty() ? "line " : ":", place.line);
    if (place.column != 0) out += fmt::format(":{}", place.column);
    if (!place.function.empty())
      out += fmt::format("{}in {}", out.empty() ? "" : " ", place.function);
    return out;
  }

  const Catalog& catalog_;
  Describer describer_;
};

int run(const Options& options) {
  Result<EventFilter> filter = EventFilter::make(options.words);
  if (!filter.ok()) return fail(filter.error());
  Output out;
  std::optional<Columns> columns;
  std::unique_ptr<TextPrinter> printer;
  EventOrdinal ordinal = 0;
  const Status read =
      read_trace(options.trace, [&](const EventSource& source, std::span<const Event> events) {
        if (options.text) {
          if (printer == nullptr) printer = std::make_unique<TextPrinter>(source.catalog());
        } else if (!columns) {
          columns.emplace(source.catalog());
          Columns::header(out.buffer());
        }
        for (const Event& event : events) {
          if (filter->is_past(ordinal)) return false;
          const bool passes = filter->passes(event, ordinal, source.catalog());
          if (columns) columns->follow(event);
          if (passes && printer != nullptr) printer->print(event, out.buffer());
          if (passes && columns) columns->print(event, ordinal, out.buffer());
          out.flush_if_full();
          ++ordinal;
        }
        // Of a part of a trace, declare only what it refers to.
        if (events.empty() && printer != nullptr && filter->lets_everything_pass()) {
          printer->finish(out.buffer());
        }
        return out.wanted();
      });
  const Status written = out.finish();
  if (!read.ok()) return fail(read.error());
  return written.ok() ? static_cast<int>(kNothingNew) : fail(written.error());
}

std::function<int()> declare(CLI::App& app) {
  auto options = std::make_shared<Options>();
  EventFilter::Words& words = options->words;
  add_trace(app, options->trace);
  app.add_option("-t,--thread", words.threads, "only events of this thread: t2, 2 or its name")
      ->type_name("THREAD")
      ->allow_extra_args(false);
  app.add_option("-s,--site", words.sites, "only events at this file, or file and line")
      ->type_name("FILE[:LINE]")
      ->allow_extra_args(false);
  app.add_option("-v,--variable", words.variables,
                 "only events on this variable, Type.field, lock or address")
      ->type_name("NAME")
      ->allow_extra_args(false);
  app.add_option("-k,--kind", words.kinds, "only events of these kinds: r,w,acq,…")
      ->type_name("KIND,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option(
         "-r,--range", words.range,
         "only these events, by their numbers, the last one included: 100..200, 100.., ..200")
      ->type_name("A..B");
  app.add_flag("--text", options->text, "in the text notation, which every verb reads");
  return [options] { return run(*options); };
}

}  // namespace

const Verb kShowVerb = {
    .name = "show",
    .summary = "Shows the events of a trace",
    .description =
        "Prints one line for each event, in the order in which they happened: its number, thread, "
        "kind, the variable or lock it concerns, the value where it was recorded, and its place in "
        "the source. Options that select can be given several times and together.",
    .example =
        "heddle show run.heddle --thread 2 --kind r,w --variable stock\n"
        "heddle show run.heddle --site shop.cc:12 --range 1000..2000\n"
        "heddle show run.heddle --text | head",
    .declare = declare,
};

}  // namespace heddle::cli
