#include "trace/std_format.h"

#include "trace/memory.h"
#include "trace/random_trace.h"
#include "trace/text.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

namespace heddle {
namespace {

// A file that goes with the test.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view content)
      : path_(std::filesystem::temp_directory_path() /
              ("heddle-std-" + std::to_string(::getpid()) + ".std")) {
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

Result<Trace> import(std::string_view text, std::string* warning = nullptr) {
  const TemporaryFile file(text);
  Result<InputFile> input = InputFile::open(file.path());
  if (!input.ok()) return input.error();
  OpenOptions options;
  options.salvage = warning != nullptr;
  const auto source = std_source(*std::move(input), options);
  Result<Trace> trace = read_all(*source);
  if (warning != nullptr) *warning = source->warning();
  return trace;
}

std::string error_of(std::string_view text) {
  Result<Trace> trace = import(text);
  if (trace.ok()) return "no error";
  const std::string& message = trace.error().message;
  return message.substr(message.find(".std:") + 5);
}

std::string exported(const Trace& trace, std::string* losses = nullptr) {
  StdWriter writer;
  writer.scan(trace.events);
  writer.plan(trace.catalog);
  std::string out;
  writer.write(trace.events, out);
  if (losses != nullptr) *losses = writer.losses();
  return out;
}

TEST(Std, EachOpIsAnEvent) {
  Result<Trace> trace = import(
      "main|fork(T1)|1\nT1|acq(L)|a.c:2\nT1|begin|3\nT1|r(x)|4\nT1|w(x)|4\nT1|end(foo)|5\n"
      "T1|rel(L)|6\nmain|join(T1)|7\n");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  const std::vector<Event>& e = trace->events;
  ASSERT_EQ(e.size(), 8u);
  EXPECT_EQ(e[0].kind, EventKind::kFork);
  EXPECT_EQ(e[0].thread, 0u);
  EXPECT_EQ(e[0].value, 1u);
  EXPECT_EQ(e[1].kind, EventKind::kAcquire);
  EXPECT_EQ(e[1].thread, 1u);
  EXPECT_EQ(e[2].kind, EventKind::kUnitBegin);
  EXPECT_EQ(e[2].value, 0u);
  EXPECT_EQ(e[3].kind, EventKind::kRead);
  EXPECT_EQ(e[4].kind, EventKind::kWrite);
  EXPECT_EQ(e[3].address, e[4].address);
  EXPECT_EQ(e[5].kind, EventKind::kUnitEnd);
  EXPECT_EQ(trace->catalog.text(static_cast<StringId>(e[5].value)), "foo");
  EXPECT_EQ(e[6].kind, EventKind::kRelease);
  EXPECT_EQ(e[6].address, e[1].address);
  EXPECT_EQ(e[7].kind, EventKind::kJoin);
  EXPECT_NE(e[3].site, e[4].site) << "a read and a write at one location";
  EXPECT_EQ(trace->catalog.site(e[1].site).line, 2u);
  EXPECT_EQ(trace->catalog.text(trace->catalog.site(e[1].site).file), "a.c");
  EXPECT_EQ(trace->catalog.site(e[3].site).line, 4u);
}

TEST(Std, LocksAndVariablesOfOneNameAreApart) {
  Result<Trace> trace = import("T|acq(x)|1\nT|w(x)|2\nT|rel(x)|3\n");
  ASSERT_TRUE(trace.ok());
  EXPECT_NE(trace->events[0].address, trace->events[1].address);
  EXPECT_EQ(trace->events[0].address, trace->events[2].address);
}

TEST(Std, LongNamesAndNamesWithACommonStartAreApart) {
  const std::string a = "a_rather_long_name_of_a_variable_1";
  const std::string b = "a_rather_long_name_of_a_variable_2";
  Result<Trace> trace = import("T|w(" + a + ")|1\nT|w(" + b + ")|1\nT|w(a_rather_long_n)|1\nT|w(" +
                               a + ")|1\nT|w(ab)|1\nT|w(a)|1\n");
  ASSERT_TRUE(trace.ok());
  const std::vector<Event>& e = trace->events;
  EXPECT_NE(e[0].address, e[1].address);
  EXPECT_NE(e[0].address, e[2].address);
  EXPECT_EQ(e[0].address, e[3].address);
  EXPECT_NE(e[4].address, e[5].address);
}

TEST(Std, LastLineNeedsNoLineFeedAndDosLinesAreRead) {
  Result<Trace> trace = import("T|w(x)|1\r\nT|w(x)|1");
  ASSERT_TRUE(trace.ok());
  ASSERT_EQ(trace->events.size(), 2u);
  EXPECT_EQ(trace->events[0], trace->events[1]);
}

TEST(Std, ALineThatDoesNotParseIsAnError) {
  EXPECT_EQ(error_of("T|r(x)|1\n\nT|r(x)|1\n"),
            "2: found an empty line, expected thread|op(operand)|location");
  EXPECT_EQ(error_of("T|r(x)|1\nhello\n"),
            "2: found `hello`, expected thread|op(operand)|location");
  EXPECT_EQ(error_of("T|r(x)\n"), "1: found `r(x)`, expected op(operand)|location");
  EXPECT_EQ(error_of("T|read(x)|1\n"),
            "1: found `read(x)`, expected r, w, acq, rel, fork, join, begin or end");
  EXPECT_EQ(error_of("T|r|1\n"), "1: found `r`, expected an operand: op(operand)");
  EXPECT_EQ(error_of("T|r()|1\n"), "1: found `r()`, expected an operand: op(operand)");
  EXPECT_EQ(error_of("T|r(x|1\n"), "1: found `r(x`, expected `)` before `|`");
  EXPECT_EQ(error_of("|r(x)|1\n"), "1: found `|r(x)|1`, expected the name of a thread before `|`");
  EXPECT_EQ(error_of("T|r(x)|\n"), "1: found the end of the line, expected a location after `|`");
  EXPECT_EQ(error_of("T|r(x)|1|2\n"),
            "1: found `1|2`, expected the line to end after the location");
}

TEST(Std, ThreadsHaveALimit) {
  std::string text;
  for (int i = 0; i < (1 << 20) + 5; ++i) text += "T" + std::to_string(i) + "|begin|1\n";
  EXPECT_EQ(error_of(text), "1048577: found one thread too many, expected at most 1048576 threads");
}

TEST(Std, WhatComesBeforeTheErrorIsDeliveredOnRequest) {
  std::string warning;
  Result<Trace> trace = import("T|r(x)|1\nT|r(x)|1\nbad\nT|r(x)|1\n", &warning);
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->events.size(), 2u);
  EXPECT_NE(warning.find(":3: found `bad`"), std::string::npos) << warning;
}

TEST(Std, ExportGivesBackWhatWasImported) {
  testing::RandomTrace random(7);
  const std::vector<std::string> names = {"x", "V1", "obj.f[2]",
                                          "a_rather_long_name_of_a_variable"};
  const std::vector<std::string> locations = {"7",       "0",        "07",   "a.c:3",
                                              "a.c:3:9", "no where", "12:x", ":5"};
  std::string text;
  for (int i = 0; i < 120000; ++i) {  // more than one block of input
    const std::string& name = names[random.below(names.size())];
    const std::string ops[] = {"r(" + name + ")",
                               "w(" + name + ")",
                               "acq(" + name + ")",
                               "rel(" + name + ")",
                               "fork(T7)",
                               "join(main)",
                               "begin",
                               "begin(" + name + ")",
                               "end"};
    text += (random.one_in(2) ? "main|" : "T3|") + ops[random.below(std::size(ops))] + "|" +
            locations[random.below(locations.size())] + "\n";
  }
  Result<Trace> trace = import(text);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  std::string losses;
  EXPECT_EQ(exported(*trace, &losses), text);
  EXPECT_EQ(losses, "");
}

TEST(Std, AccessesThatOverlapShareAPiece) {
  const Trace trace = trace_from_text(
      "t0: w x:8 @1\nt1: r x+4 @2\nt1: w y @3\nt0: w 0x5000:2 @4\nt0: r 0x5001:1 @5\n");
  EXPECT_EQ(exported(trace),
            "T0|w(x)|1\nT0|w(x+4)|1\nT1|r(x+4)|2\nT1|w(y)|3\nT0|w(0x5000)|4\nT0|w(0x5001)|4\n"
            "T0|r(0x5001)|5\n");
}

TEST(Std, WhatCannotBeExpressedIsCounted) {
  const Trace trace = trace_from_text(
      "t0: rmw.seq_cst x @1\nt0: r.acquire x @2\nt0: acq.shared m\nt0: acq m failed\nt0: signal c\n"
      "t0: fork t1\nt1: thread.begin t0\nt1: w x @3\n");
  std::string losses;
  EXPECT_EQ(exported(trace, &losses),
            "T0|r(x)|1\nT0|w(x)|1\nT0|r(x)|2\nT0|fork(T1)|0\nT1|w(x)|3\n");
  EXPECT_EQ(
      losses,
      "3 events that STD cannot express left out (2 acq, 1 signal); 2 atomic accesses written "
      "as plain");
}

TEST(Std, VariablesOfOneNameAreToldApart) {
  const Trace trace = trace_from_text(
      "var n 0x1000:4 @a.c:1\nvar n 0x2000:4 @b.c:1\nt0: w 0x1000 @1\nt0: w 0x2000 @2\n");
  EXPECT_EQ(exported(trace), "T0|w(n)|1\nT0|w(n@0x2000)|2\n");
}

TEST(Std, IsToldFromOtherFilesByItsFirstLine) {
  EXPECT_TRUE(looks_like_std("T1|r(x)|3\nT1|"));
  EXPECT_TRUE(looks_like_std("T1|oops"));
  EXPECT_FALSE(looks_like_std("t1: mark \"a\"\nT1|r(x)|3\n"));
  EXPECT_FALSE(
      looks_like_std("\x7f"
                     "ELF|"));
}

}  // namespace
}  // namespace heddle
