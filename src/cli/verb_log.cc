// heddle log: reads that saw another thread's write in place of their own thread's.
#include "cli/verb_log.h"

#include "base/printable.h"
#include "detect/svd/examination_log.h"
#include "report/source_text.h"
#include "report/words.h"
#include "trace/source.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace heddle::cli {
namespace {

struct Options {
  std::string trace;
  std::size_t limit = 10;
  std::uint32_t block_size = 4;
  bool salvage = false;
  std::vector<std::string> sources;
};

int fail(const std::string& message) {
  fmt::print(stderr, "heddle: {}\n", message);
  return kUsage;
}

std::string thread_title(const Step& step) {
  return step.thread_name.empty() ? fmt::format("thread {}", step.thread)
                                  : fmt::format("thread {} ({})", step.thread, step.thread_name);
}

void print_step(const Step& step, report::SourceText& source) {
  const Place& line = own_line(step);
  fmt::print("     {}  {:<18} {:<24} {}\n", step.role, printable(thread_title(step)),
             printable(report::place(line)), source.line(line.file, line.line));
}

// " in Cache::put", or of a place in a library " in std::find (stl_algo.h:10)".
std::string function_of(const Step& read) {
  if (read.place.function.empty()) return "";
  const std::string function = " in " + report::short_function(read.place.function);
  return printable(&own_line(read) == &read.place
                       ? function
                       : fmt::format("{} ({})", function, report::place(read.place)));
}

void print_statement(std::size_t number, const svd::LogStatement& statement,
                     report::SourceText& source) {
  const svd::LogGroup& first = statement.groups.front();
  fmt::print("{:3}. `{}` read at {}{}\n", number,
             report::short_name(printable(first.read.variable.name)),
             printable(report::place(own_line(first.read))), function_of(first.read));
  fmt::print("     read another thread's value {} of {} times, its own thread's {} times\n",
             statement.foreign_reads, statement.all_reads, statement.own_reads);
  if (!first.local.role.empty()) print_step(first.local, source);
  print_step(first.remote, source);
  print_step(first.read, source);
  if (statement.groups.size() > 1) {
    fmt::print("     and {} other pair{} of writes\n", statement.groups.size() - 1,
               statement.groups.size() == 2 ? "" : "s");
  }
  fmt::print("\n");
}

int run(const Options& options) {
  Result<std::unique_ptr<EventSource>> source =
      open_trace(options.trace, {.salvage = options.salvage});
  if (!source.ok()) return fail(source.error().message);
  svd::ExaminationLog log((*source)->catalog(), options.block_size);
  EventOrdinal first = 0;
  while (true) {
    Result<std::span<const Event>> batch = (*source)->next();
    if (!batch.ok()) return fail(batch.error().message);
    if (batch->empty()) break;
    log.on(*batch, first);
    first += batch->size();
  }
  if (const std::string warning = (*source)->warning(); !warning.empty())
    fmt::print(stderr, "heddle: {}\n", warning);

  const std::vector<svd::LogStatement> statements = log.statements();
  if (statements.empty()) {
    fmt::print("no read saw another thread's write\n");
    return kNothingNew;
  }
  fmt::print(
      "{} reads of {} statements saw another thread's write; most suspicious first: P the thread's "
      "own write, R the write that destroyed it, I the read\n\n",
      log.entries(), statements.size());
  report::SourceText text(options.sources);
  const std::size_t shown =
      options.limit == 0 ? statements.size() : std::min(options.limit, statements.size());
  for (std::size_t i = 0; i < shown; ++i) print_statement(i + 1, statements[i], text);
  if (shown < statements.size())
    fmt::print("{} more; --limit 0 shows all\n", statements.size() - shown);
  return kNothingNew;
}

std::function<int()> declare(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("trace", options->trace, "a trace: binary, text notation or STD")->required();
  app.add_option("--limit", options->limit, "how many statements to show; 0: all")
      ->capture_default_str();
  app.add_option("--block-size", options->block_size, "bytes that count as one location")
      ->check(CLI::IsMember({1, 2, 4, 8, 16, 32, 64}))
      ->capture_default_str();
  app.add_option("--source", options->sources, "folder to look for source files in; several")
      ->type_name("DIR");
  app.add_flag("--salvage", options->salvage,
               "read a damaged trace up to the first damage instead of refusing it");
  return [options] { return run(*options); };
}

}  // namespace

const Verb kLogVerb = {
    .name = "log",
    .summary = "Lists reads that saw another thread's write in place of their own thread's",
    .description =
        "For examination after a run (svd-2005, section 2.3): every statement that read a location "
        "last written by another thread, with that write and the thread's own write that it "
        "destroyed. Statements that usually read back their own thread's value come first: a "
        "variable that is meant to be private, shared by mistake.",
    .example =
        "heddle log run.heddle\n"
        "heddle log run.heddle --limit 0 | less",
    .declare = declare,
};

}  // namespace heddle::cli
