#include "table/verdicts.h"

#include "table/curve.h"
#include "table/tables.h"

#include <cstdio>

#include <gtest/gtest.h>

namespace heddle::table {
namespace {

Program program(bool bug, Verdicts heddle) {
  Program out;
  out.name = "bank";
  out.bug = bug;
  out.symptom = bug ? "exit" : "";
  out.heddle = std::move(heddle);
  return out;
}

TEST(Compare, NamesWhatDiffersAndWhatIsNotThere) {
  const Program bank = program(true, {{"avio", true}, {"race", false}});
  EXPECT_TRUE(compare(bank, {{"avio", true}, {"race", false}}).empty());
  EXPECT_EQ(compare(bank, {{"avio", false}}),
            (std::vector<std::string>{
                "bank: avio does not find the bug, expected.json says that it finds the bug"}));
  EXPECT_EQ(compare(bank, {{"svd", true}}),
            (std::vector<std::string>{"bank: expected.json has no verdict of svd"}));
}

TEST(Compare, FalseAlarmsByAddressNeedNotComeAgain) {
  const Program fixed = program(false, {{"avio-h", true}, {"svd", true}});
  EXPECT_TRUE(compare(fixed, {{"avio-h", false}}).empty());
  EXPECT_FALSE(compare(fixed, {{"svd", false}}).empty());
  EXPECT_FALSE(compare(program(false, {{"avio-h", false}}), {{"avio-h", true}}).empty());
  EXPECT_FALSE(compare(program(true, {{"avio-h", true}}), {{"avio-h", false}}).empty());
  Program by_address = program(true, {{"avio-h", true}});
  by_address.why["avio-h"] = "depends on addresses";
  EXPECT_TRUE(compare(by_address, {{"avio-h", false}}).empty());
}

TEST(Unexplained, AReportOfACorrectProgramNeedsAReason) {
  Program fixed = program(false, {{"avio", false}, {"svd", true}});
  EXPECT_EQ(
      unexplained(fixed),
      (std::vector<std::string>{"bank: svd reports a correct program, and no reason is given"}));
  fixed.why["svd"] = "its units are too long";
  EXPECT_TRUE(unexplained(fixed).empty());
}

TEST(Unexplained, ADifferenceToThePaperNeedsAReason) {
  Program bank = program(true, {{"race", false}});
  bank.paper = {{"happens-before", true}};  // as the paper calls it
  EXPECT_EQ(
      unexplained(bank),
      (std::vector<std::string>{"bank: race differs from the paper, and no reason is given"}));
  bank.paper["happens-before"] = false;
  EXPECT_TRUE(unexplained(bank).empty());
}

Measured measured(const std::string& name) {
  Measured out;
  out.name = name;
  out.judged = 4;
  out.judged_fail = true;
  out.detectors["avio"].found = 4;
  out.detectors["svd"].found = 1;
  out.detectors["lockset"].false_alarms = {{"here", "x"}, {"there", "y"}};
  out.detectors["lockset"].dynamic_false = 9;
  out.random = {{1, 3, 5}, 0};
  out.pct = {{2}, 3};
  out.native_failed = 7;
  return out;
}

TEST(Tables, SayHowOftenSomethingWasFound) {
  const Report report = write_report({program(true, {})}, {{"bank", measured("bank")}}, Budget());
  EXPECT_NE(report.markdown.find("| bank | **yes** / – | **no** / – | **no** / – | **no** / – | "
                                 "**no** / – | **1 of 4** / – |"),
            std::string::npos)
      << report.markdown;
  EXPECT_NE(report.markdown.find("| bank | 0 | 0 | 2 / 9 | 0 | 0 | 0 |"), std::string::npos);
  EXPECT_NE(report.markdown.find("| bank | 3 | never | 7 |"), std::string::npos);
}

TEST(Results, SurviveTheWayThroughJson) {
  const std::string path = testing::TempDir() + "/results.json";
  std::FILE* file = std::fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  const std::string text = print_json(Budget(), {{"bank", measured("bank")}});
  std::fputs(text.c_str(), file);
  std::fclose(file);
  const Result<Results> read = read_results(path);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(print_json(Budget(), *read), text);
}

TEST(Curve, IsDrawnAsTextAndPicture) {
  EXPECT_EQ(curve_as_text({1, 10}, {50, 1}).substr(44, 3), "   ");
  const std::string svg = curve_as_svg({1, 10}, {{"all programs", {50, 1}}});
  EXPECT_NE(svg.find("<polyline points=\"56.0,24.0 470.0,"), std::string::npos) << svg;
}

}  // namespace
}  // namespace heddle::table
