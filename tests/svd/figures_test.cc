// The figures of svd-2005 as real programs: compiled, run under a dozen schedules each, recorded at
// the flow level and judged. What the paper says of a figure must hold under every schedule where
// it says "never", and under some where it says "can".
#include "detect/race/race.h"
#include "detect/svd/examination_log.h"
#include "detect/svd/svd.h"
#include "trace/source.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace heddle::svd {
namespace {

namespace fs = std::filesystem;

constexpr int kSchedules = 12;

struct Judged {
  bool failed = false;  // the program noticed its bug
  std::vector<Finding> svd;
  std::vector<Finding> races;
  std::vector<LogStatement> log;
};

class Figures : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::string name = (fs::temp_directory_path() / "heddle-figures-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  static void TearDownTestSuite() { fs::remove_all(folder_); }

  static std::vector<Judged> runs_of(const std::string& example, const std::string& argument = "") {
    const std::string program = folder_ + "/" + example;
    if (!fs::exists(program)) {
      const std::string compile = std::string(HEDDLE_CXX) + " -std=c++20 -g -O1 -pthread " +
                                  HEDDLE_EXAMPLES + "/" + example + ".cc -o " + program;
      EXPECT_EQ(std::system(compile.c_str()), 0) << compile;
    }
    std::vector<Judged> out;
    for (int seed = 1; seed <= kSchedules; ++seed) {
      const std::string trace = program + "." + std::to_string(seed);
      Judged& run = out.emplace_back();
      const std::string record = fmt::format(
          "{} record -q --level flow --schedule random --points shared --timeout 60 --seed {} "
          "-o {} -- {} {} > /dev/null 2>&1",
          HEDDLE_COMMAND, seed, trace, program, argument);
      const int status = std::system(record.c_str());
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) <= 1) << record;
      run.failed = WEXITSTATUS(status) == 1;
      judge(trace, run);
    }
    return out;
  }

  static void judge(const std::string& path, Judged& run) {
    Result<std::unique_ptr<EventSource>> source = open_trace(path);
    ASSERT_TRUE(source.ok()) << source.error().message;
    SvdDetector svd((*source)->catalog(), OnlineOptions());
    race::RaceDetector race((*source)->catalog());
    ExaminationLog log((*source)->catalog());
    EventOrdinal first = 0;
    while (true) {
      Result<std::span<const Event>> batch = (*source)->next();
      ASSERT_TRUE(batch.ok()) << batch.error().message;
      if (batch->empty()) break;
      svd.on(*batch, first);
      race.on(*batch, first);
      log.on(*batch, first);
      first += batch->size();
    }
    run.svd = svd.finish();
    run.races = race.finish();
    run.log = log.statements();
  }

  static std::string folder_;
};

std::string Figures::folder_;

// The number of the line that contains `text` for the n-th time, so that the example can be edited.
std::uint32_t line_of(const std::string& example, const std::string& text, int n = 1) {
  std::ifstream in(std::string(HEDDLE_EXAMPLES) + "/" + example + ".cc");
  std::string line;
  for (std::uint32_t number = 1; std::getline(in, line); ++number) {
    if (line.find(text) != std::string::npos && --n == 0) return number;
  }
  ADD_FAILURE() << "no line of " << example << ".cc has: " << text;
  return 0;
}

bool has(const Finding& finding, std::string_view role, const std::set<std::uint32_t>& lines) {
  return std::any_of(finding.steps.begin(), finding.steps.end(), [&](const Step& step) {
    return step.role == role && lines.contains(step.place.line);
  });
}

bool reported(const Judged& run, std::string_view role, const std::set<std::uint32_t>& lines) {
  return std::any_of(run.svd.begin(), run.svd.end(),
                     [&](const Finding& finding) { return has(finding, role, lines); });
}

void expect_silent(const std::string& example, const std::vector<Judged>& runs) {
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const Finding& finding : runs[i].svd) {
      std::string steps;
      for (const Step& step : finding.steps)
        steps += " " + step.role + " " + std::to_string(step.place.line);
      ADD_FAILURE() << example << " seed " << i + 1 << ": " << finding.in_words << steps;
    }
  }
}

TEST_F(Figures, OneIsSilentAlthoughItRaces) {
  const std::vector<Judged> runs = runs_of("tot_lock");
  expect_silent("tot_lock", runs);
  const std::uint32_t look = line_of("tot_lock", "if (info->tot_lock == 0) {", 2);
  bool race = false;
  for (const Judged& run : runs) {
    for (const Finding& finding : run.races) {
      for (const Step& step : finding.steps) race |= step.place.line == look;
    }
  }
  EXPECT_TRUE(race);
}

TEST_F(Figures, TwoIsReported) {
  const std::vector<Judged> runs = runs_of("log_writer");
  const std::uint32_t test = line_of("log_writer", "if (len + buf->outcnt > kBufferSize)");
  const std::uint32_t start = line_of("log_writer", "char* s = &buf->outbuf[buf->outcnt];");
  const std::uint32_t end = line_of("log_writer", "const std::size_t end = buf->outcnt + len;");
  int failed = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i].failed) continue;
    ++failed;
    EXPECT_TRUE(reported(runs[i], "P", {test, start, end})) << "seed " << i + 1;
  }
  EXPECT_GT(failed, 0);
  expect_silent("log_writer_fixed", runs_of("log_writer_fixed"));
}

TEST_F(Figures, ThreeIsNotReportedButOnTheFirstScreenOfTheLog) {
  const std::vector<Judged> runs = runs_of("prepared_query");
  expect_silent("prepared_query", runs);
  const std::set<std::uint32_t> reads = {
      line_of("prepared_query", "if (join_tab->fields[i].query_id == query.id) ++used;"),
      line_of("prepared_query", "const int used = join_tab->used_fields;"),
      line_of("prepared_query", "if (join_tab->fields[i].query_id == query->id) ++copied;")};
  int failed = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i].failed) continue;
    ++failed;
    bool found = false;
    for (std::size_t k = 0; k < runs[i].log.size() && k < 10; ++k) {
      const LogGroup& group = runs[i].log[k].groups.front();
      found |= reads.contains(group.read.place.line) && !group.local.role.empty();
    }
    EXPECT_TRUE(found) << "seed " << i + 1;
  }
  EXPECT_GT(failed, 0);
  expect_silent("prepared_query_fixed", runs_of("prepared_query_fixed"));
}

// The stores into the object depend on the list by their address only.
TEST_F(Figures, NineIsReportedByItsAddresses) {
  const std::vector<Judged> runs = runs_of("dequeue_fill");
  const std::uint32_t head = line_of("dequeue_fill", "Obj* head = list_head;");
  const std::set<std::uint32_t> stores = {line_of("dequeue_fill", "head->a = a;"),
                                          line_of("dequeue_fill", "head->b = b;")};
  int by_address = 0;
  for (const Judged& run : runs) {
    for (const Finding& finding : run.svd) {
      EXPECT_TRUE(has(finding, "P", {head}));
      by_address += has(finding, "I", stores);
    }
  }
  EXPECT_GT(by_address, 0);
  expect_silent("dequeue_fill_fixed", runs_of("dequeue_fill_fixed"));
}

// The source shrinks by one until it is empty and starts anew: a longer run has moments in which it
// grows, and an append that asked before goes on with the old length.
TEST_F(Figures, StringBufferIsReported) {
  constexpr const char* kRounds = "20";
  const std::vector<Judged> runs = runs_of("string_buffer", kRounds);
  const std::set<std::uint32_t> look = {line_of("string_buffer", "return count_;")};
  const std::set<std::uint32_t> change = {line_of("string_buffer", "count_ = length;")};
  EXPECT_TRUE(std::any_of(runs.begin(), runs.end(), [&](const Judged& run) {
    return reported(run, "P", look) && reported(run, "R", change);
  }));
  expect_silent("string_buffer_fixed", runs_of("string_buffer_fixed", kRounds));
}

}  // namespace
}  // namespace heddle::svd
