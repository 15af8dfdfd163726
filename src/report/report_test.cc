#include "detect/avio/avio.h"
#include "report/json.h"
#include "report/source_text.h"
#include "report/terminal.h"
#include "report/words.h"
#include "trace/text.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace heddle::report {
namespace {

std::vector<Finding> findings_of(std::string_view text) {
  const Trace trace = trace_from_text(text);
  avio::Avio avio(trace.catalog, {});
  avio.on(trace.events, 0);
  return avio.finish();
}

constexpr std::string_view kShop = R"(
var stock 0x1000:4 @shop.cc:6
var m 0x2000:40
thread t2 worker
thread t3 worker
t2: acq m @shop.cc:11 in sell
t2: r stock = 1 @shop.cc:12 in sell
t2: rel m @shop.cc:13 in sell
t3: acq m @shop.cc:14 in sell
t3: w stock = 0 @shop.cc:15 in sell
t3: rel m @shop.cc:16 in sell
t2: acq m @shop.cc:14 in sell
t2: r stock = 0 @shop.cc:15 in sell
)";

TEST(Terminal, DrawsColumnsBracketAndRoles) {
  EXPECT_EQ(terminal(findings_of(kShop)),
            R"(atomicity violation  read – write – read  on `stock`  (global, shop.cc:6)
read twice, written in between · found by avio · unlearned

        thread 2 (worker)                thread 3 (worker)
  ┌─ P  shop.cc:12  reads stock  = 1
  │     shop.cc:13  lets go of m
  │                                   R  shop.cc:15  writes stock  = 0
  └─ I  shop.cc:15  reads stock  = 0

  P, R and I each held m; thread 2 let go of m (shop.cc:13) between P and I.

  P  sell  shop.cc:12
     holding m taken at shop.cc:11
  R  sell  shop.cc:15
     holding m taken at shop.cc:14
  I  sell  shop.cc:15
     holding m taken at shop.cc:14

1 finding is unlearned: nothing is known about passing runs, and most of these are harmless.
To learn which pairs are never split, and see only their violations:
  heddle learn -n 100 -o app.inv -- PROGRAM, then again with --invariants app.inv
)");
}

TEST(Terminal, ColoursOnlyWhenAsked) {
  const auto findings = findings_of(kShop);
  EXPECT_EQ(terminal(findings).find('\x1b'), std::string::npos);
  EXPECT_NE(terminal(findings, {.colour = true}).find('\x1b'), std::string::npos);
}

TEST(Terminal, ManyThreadsBecomeAList) {
  auto findings = findings_of(kShop);
  for (unsigned n = 0; n < 6; ++n) {
    Step step;
    step.thread = 10 + n;
    step.note = "waits";
    findings[0].steps.push_back(step);
  }
  const std::string text = terminal(findings);
  EXPECT_NE(text.find("P  thread 2 (worker)  shop.cc:12  reads stock  = 1"), std::string::npos)
      << text;
}

class SourceFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::path(testing::TempDir()) / ("heddle_source_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_ / "lib");
    std::ofstream(folder_ / "lib" / "shop.cc") << "one\n\t if (stock == 0) return;  \nthree";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST_F(SourceFolder, FindsALineByAPathOfAnotherMachine) {
  SourceText source({folder_.string()});
  EXPECT_EQ(source.line("/build/elsewhere/lib/shop.cc", 2), "if (stock == 0) return;");
  EXPECT_EQ(source.line("/build/elsewhere/lib/shop.cc", 3), "three");
  EXPECT_EQ(source.line("/build/elsewhere/lib/shop.cc", 4), "");
  EXPECT_EQ(source.line("/build/nowhere.cc", 1), "");
  EXPECT_EQ(source.line("lib", 1), "") << "a folder is no source";
}

TEST_F(SourceFolder, TheTerminalShowsTheLine) {
  const auto findings =
      findings_of("t1: r x @lib/shop.cc:2\n t2: w x @lib/shop.cc:3\n t1: r x @lib/shop.cc:2\n");
  const std::string text = terminal(findings, {.source_roots = {folder_.string()}});
  EXPECT_NE(text.find("P  shop.cc:2  if (stock == 0) return;"), std::string::npos) << text;
}

// What a unit's finding looks like: notes cost no source text, and the bracket holds the unit.
TEST_F(SourceFolder, NotesStandBelowWhereThereIsNoRoomBeside) {
  std::ofstream(folder_ / "log.cc") << "len += strl[i];\nif (len + buf->outcnt > kBufferSize) {\n"
                                       "buf->outcnt = end;\n";
  const auto step = [](std::string role, ThreadId thread, std::uint32_t line, std::string note) {
    Step out;
    out.role = std::move(role);
    out.thread = thread;
    out.kind = EventKind::kWrite;
    out.place = {.function = "", .file = "log.cc", .line = line, .column = 1};
    out.note = std::move(note);
    return out;
  };
  Finding finding;
  finding.kind = FindingKind::kAtomicityViolation;
  finding.steps = {step("", 1, 1, "in the unit"), step("P", 1, 2, "input of the unit"),
                   step("R", 2, 3, "overwrites it"), step("I", 1, 3, "uses it")};
  const std::string text =
      terminal({&finding, 1}, {.width = 96, .source_roots = {folder_.string()}});
  EXPECT_NE(text.find(R"(
  ┌─    log.cc:1  len += strl[i];  in the unit
  │  P  log.cc:2  if (len + buf->outcnt > kBufferSize) {
  │               input of the unit
  │                                                       R  log.cc:3  buf->outcnt = end;
  │                                                                    overwrites it
  └─ I  log.cc:3  buf->outcnt = end;  uses it
)"),
            std::string::npos)
      << text;
}

// What a person wrote, not what the library made of it.
TEST(Terminal, OfALibraryTheProgramsOwnLineIsDrawn) {
  Finding finding;
  finding.kind = FindingKind::kAtomicityViolation;
  Step step;
  step.role = "P";
  step.kind = EventKind::kRead;
  step.variable.name = "cache.size";
  step.place = {.function = "std::map::find", .file = "/usr/include/c++/12/map", .line = 99};
  step.stack = {step.place, {.function = "Cache::get", .file = "/home/a/cache.cc", .line = 7}};
  finding.steps = {step};
  const std::span<const Finding> findings(&finding, 1);
  EXPECT_NE(terminal(findings, {.stacks = false}).find("P  cache.cc:7"), std::string::npos);
  EXPECT_NE(terminal(findings, {.stacks = true}).find("std::map::find  map:99"), std::string::npos);
  finding.steps[0].stack.pop_back();
  EXPECT_NE(terminal(findings, {.stacks = false}).find("P  map:99"), std::string::npos);
}

TEST(Words, ValuesAreSignedWhenThatIsLikelier) {
  Step step;
  step.kind = EventKind::kWrite;
  step.size = 4;
  step.value = 0xffffffffu;
  EXPECT_EQ(value(step), "writes -1");
  step.kind = EventKind::kRead;
  step.value = 0x80000000u;
  EXPECT_EQ(value(step), "= 2147483648");
  step.size = 8;
  step.value = 0x7f0012345678u;
  EXPECT_EQ(value(step), "= 0x7f0012345678");
}

TEST(Words, FunctionsAreShownWithoutParameters) {
  EXPECT_EQ(short_function("(anonymous namespace)::Shop::sell(std::vector<int>&, void (*)(int))"),
            "Shop::sell");
  EXPECT_EQ(short_function("main::$_0::operator()() const"), "main::$_0::operator()");
  EXPECT_EQ(short_function("main"), "main");
}

TEST(Words, LongTemplateArgumentsAreLeftOut) {
  EXPECT_EQ(short_function("Stack<int>::push(int)"), "Stack<int>::push");
  EXPECT_EQ(short_function("std::_Rb_tree<int, std::pair<int const, int>, std::less<int>>::find"),
            "std::_Rb_tree<…>::find");
  EXPECT_EQ(short_function("std::_Rb_tree_iterator<std::pair<int const, std::vector<int>>> "
                           "std::_Rb_tree<int>::_M_emplace<int const&>(int const&)"),
            "std::_Rb_tree<int>::_M_emplace<int const&>");
  EXPECT_EQ(short_function("std::ostream& std::operator<< <std::char_traits<char>>(std::ostream&)"),
            "std::operator<< <std::char_traits<char>>");
  EXPECT_EQ(short_function("Text::operator unsigned long() const"), "Text::operator unsigned long");
  EXPECT_EQ(short_function("bool Less::operator<=><Text>(Text) const"), "Less::operator<=><Text>");
  EXPECT_EQ(short_function("unfinished<int, std::pair<int, std::vector<int>"),
            "unfinished<int, std::pair<int, std::vector<int>");
  EXPECT_EQ(short_name("`std::map<int, std::vector<int>, std::less<int>>.size_` was written"),
            "`std::map<…>.size_` was written");
}

TEST(Json, HasTheSameContent) {
  const auto out = nlohmann::json::parse(json(findings_of(kShop), {{"trace", "shop.txt"}}));
  EXPECT_EQ(out["schema"], kSchema);
  EXPECT_EQ(out["about"]["trace"], "shop.txt");
  const auto& finding = out["findings"][0];
  EXPECT_EQ(finding["kind"], "atomicity-violation");
  EXPECT_EQ(finding["label"], "unlearned");
  EXPECT_EQ(finding["summary"], "read – write – read");
  EXPECT_EQ(finding["variables"][0]["name"], "stock");
  EXPECT_EQ(finding["steps"][0]["role"], "P");
  EXPECT_EQ(finding["steps"][0]["place"]["line"], 12);
  EXPECT_EQ(finding["steps"][0]["value"], "0x1");
  EXPECT_EQ(finding["steps"][0]["locks"][0]["name"], "m");
  EXPECT_EQ(finding["steps"][1]["note"], "lets go of m");
  EXPECT_EQ(finding["fingerprint"].get<std::string>().size(), 16u);
}

TEST(Terminal, GivesNoOrdersThatATraceBroughtAlong) {
  auto findings = findings_of(kShop);
  const std::string evil =
      "\x1b[2Jx\x7f\xc2\x9b"
      "1m\r";
  findings[0].variables[0].name = evil;
  findings[0].notes.push_back(evil);
  for (Step& step : findings[0].steps) {
    step.thread_name = step.note = step.place.file = step.place.function = evil;
    step.stack.push_back({.function = evil, .file = evil, .line = 1, .column = 1});
    step.locks.push_back({.name = evil, .mode = {}, .acquired = {}});
  }
  const std::string text = terminal(findings);
  EXPECT_EQ(text.find_first_of("\x1b\x7f\r"), std::string::npos) << text;
  EXPECT_EQ(text.find("\xc2\x9b"), std::string::npos) << text;
  EXPECT_NE(text.find("`\\x1b[2Jx\\x7f\\x9b1m\\x0d`"), std::string::npos) << text;
}

TEST(Json, SurvivesNamesThatAreNotUtf8) {
  auto findings = findings_of(kShop);
  findings[0].variables[0].name = "\xff\xfe";
  EXPECT_TRUE(nlohmann::json::accept(json(findings)));
}

}  // namespace
}  // namespace heddle::report
