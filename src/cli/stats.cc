// heddle stats: what is in a trace, in numbers.
#include "cli/messages.h"
#include "cli/output.h"
#include "cli/trace_input.h"
#include "cli/trace_stats.h"
#include "cli/trace_verbs.h"
#include "trace/text_grammar.h"

#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

namespace heddle::cli {
namespace {

struct Options {
  TraceInput trace;
  bool json = false;
  std::uint64_t top = 10;
};

// 1234567 as 1,234,567
std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

std::string kind_name(std::size_t number) {
  const text::KindWord* word = text::kind_word(static_cast<EventKind>(number));
  return word != nullptr ? std::string(word->word) : fmt::format("kind{}", number);
}

struct Sizes {
  std::uint64_t file = 0;
  std::string format;
  std::size_t sites = 0;
  std::size_t functions = 0;
  std::size_t segments = 0;
  std::size_t symbols = 0;
};

void print_people(const TraceStats& stats, const Sizes& sizes, const Options& options,
                  std::string& out) {
  auto to = std::back_inserter(out);
  fmt::format_to(to, "trace      {} ({}), {} bytes", options.trace.path, sizes.format,
                 grouped(sizes.file));
  if (stats.events() != 0) {
    fmt::format_to(to, ", {:.2f} per event",
                   static_cast<double>(sizes.file) / static_cast<double>(stats.events()));
  }
  fmt::format_to(to, "\nevents     {}\n", grouped(stats.events()));
  for (std::size_t kind = 0; kind < 256; ++kind) {
    if (stats.of_kind(kind) == 0) continue;
    fmt::format_to(to, "  {:<16} {:>14}\n", kind_name(kind), grouped(stats.of_kind(kind)));
  }
  const std::vector<TraceStats::Thread> threads = stats.threads();
  std::size_t seen = 0;
  for (const TraceStats::Thread& thread : threads) seen += thread.events != 0 ? 1 : 0;
  fmt::format_to(to, "threads    {}\n", seen);
  for (std::size_t i = 0; i < threads.size(); ++i) {
    if (threads[i].events == 0) continue;
    fmt::format_to(to, "  {:<16} {:>14} events, {} accesses\n",
                   fmt::format("t{} {}", i, threads[i].name), grouped(threads[i].events),
                   grouped(threads[i].accesses));
  }
  fmt::format_to(to, "locations  {}, {} shared, {} of them written\n", grouped(stats.locations()),
                 grouped(stats.shared_locations()), grouped(stats.contended_locations()));
  const std::vector<TraceStats::Variable> variables = stats.shared_variables();
  fmt::format_to(to, "shared variables that are written  {}\n", variables.size());
  for (std::size_t i = 0; i < variables.size() && i < options.top; ++i) {
    const TraceStats::Variable& v = variables[i];
    fmt::format_to(to, "  {:<16} {:>14} reads, {} writes, {} threads", v.name, grouped(v.reads),
                   grouped(v.writes), v.threads);
    if (v.locations > 1) fmt::format_to(to, ", {} locations", grouped(v.locations));
    out.push_back('\n');
  }
  if (variables.size() > options.top) {
    fmt::format_to(to, "  … and {} more (--top)\n", variables.size() - options.top);
  }
  fmt::format_to(to, "catalog    {} sites, {} functions, {} segments, {} variables\n", sizes.sites,
                 sizes.functions, sizes.segments, sizes.symbols);
}

void print_json(const TraceStats& stats, const Sizes& sizes, const Options& options,
                std::string& out) {
  nlohmann::ordered_json json;
  json["trace"] = options.trace.path;
  json["format"] = sizes.format;
  json["bytes"] = sizes.file;
  json["events"] = stats.events();
  for (std::size_t kind = 0; kind < 256; ++kind) {
    if (stats.of_kind(kind) != 0) json["kinds"][kind_name(kind)] = stats.of_kind(kind);
  }
  json["threads"] = nlohmann::ordered_json::array();
  const std::vector<TraceStats::Thread> threads = stats.threads();
  for (std::size_t i = 0; i < threads.size(); ++i) {
    if (threads[i].events == 0) continue;
    json["threads"].push_back({{"thread", i},
                               {"name", threads[i].name},
                               {"events", threads[i].events},
                               {"accesses", threads[i].accesses}});
  }
  json["locations"] = {{"all", stats.locations()},
                       {"shared", stats.shared_locations()},
                       {"shared_and_written", stats.contended_locations()}};
  json["shared_variables"] = nlohmann::ordered_json::array();
  for (const TraceStats::Variable& v : stats.shared_variables()) {
    json["shared_variables"].push_back({{"name", v.name},
                                        {"reads", v.reads},
                                        {"writes", v.writes},
                                        {"threads", v.threads},
                                        {"locations", v.locations}});
  }
  json["catalog"] = {{"sites", sizes.sites},
                     {"functions", sizes.functions},
                     {"segments", sizes.segments},
                     {"variables", sizes.symbols}};
  // Names come from the trace, so they may be any bytes.
  out += json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

int run(const Options& options) {
  std::unique_ptr<TraceStats> stats;
  Sizes sizes;
  Status written = Done{};
  const Status read =
      read_trace(options.trace, [&](const EventSource& source, std::span<const Event> events) {
        if (stats == nullptr) {
          stats = std::make_unique<TraceStats>(source.catalog());
          sizes.format = source.format();
        }
        stats->add(events);
        if (!events.empty()) return true;
        // Entry 0 of a table is the unknown one.
        const Catalog& catalog = source.catalog();
        sizes.sites = catalog.sites.size() - 1;
        sizes.functions = catalog.functions.size() - 1;
        sizes.segments = catalog.segments.size() - 1;
        sizes.symbols = catalog.symbols.size();
        struct stat facts = {};
        if (::stat(options.trace.path.c_str(), &facts) == 0) {
          sizes.file = static_cast<std::uint64_t>(facts.st_size);
        }
        Output out;
        if (options.json) {
          print_json(*stats, sizes, options, out.buffer());
        } else {
          print_people(*stats, sizes, options, out.buffer());
        }
        written = out.finish();
        return true;
      });
  if (!read.ok()) return fail(read.error());
  return written.ok() ? static_cast<int>(kNothingNew) : fail(written.error());
}

std::function<int()> declare(CLI::App& app) {
  auto options = std::make_shared<Options>();
  add_trace(app, options->trace);
  app.add_flag("--json", options->json, "for programs");
  app.add_option("--top", options->top, "how many shared variables to list")
      ->type_name("N")
      ->capture_default_str();
  return [options] { return run(*options); };
}

}  // namespace

const Verb kStatsVerb = {
    .name = "stats",
    .summary = "Counts what is in a trace",
    .description =
        "Prints the number of events by kind and by thread, how many locations are shared between "
        "threads, the shared variables that are written, and the sizes of the trace and its "
        "catalog.",
    .example =
        "heddle stats run.heddle\n"
        "heddle stats run.heddle --json | jq .kinds",
    .declare = declare,
};

}  // namespace heddle::cli
