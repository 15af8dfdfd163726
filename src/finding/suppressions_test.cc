#include "finding/suppressions.h"

#include "finding/baseline.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

constexpr Day kDay{2026, 6, 1};

Finding race(const char* first, const char* second) {
  Finding finding;
  finding.kind = FindingKind::kDataRace;
  finding.variables.push_back({"stock", "global", {}, 0x10, 4});
  for (const char* function : {first, second}) {
    Step step;
    step.role = finding.steps.empty() ? "1" : "2";
    step.place = {function, "src/shop.cc", 3, 1};
    step.stack = {step.place, {"main", "src/main.cc", 9, 1}};
    finding.steps.push_back(step);
  }
  finding.fingerprint = "00000000000000ff";
  return finding;
}

bool suppressed(const char* file, const Finding& finding, const Day& day = kDay) {
  Suppressions suppressions;
  suppressions.add(file, "s.txt");
  EXPECT_TRUE(suppressions.problems().empty());
  return suppressions.suppresses(finding, day);
}

TEST(Template, MatchesLikeThreadSanitizers) {
  EXPECT_TRUE(matches_template("foo", "afoob"));
  EXPECT_FALSE(matches_template("^foo", "afoob"));
  EXPECT_TRUE(matches_template("^a*b$", "afoob"));
  EXPECT_FALSE(matches_template("^a*c$", "afoob"));
  EXPECT_TRUE(matches_template("f*o*b", "xfooxb!"));
  EXPECT_TRUE(matches_template("foo$", "foofoo"));
  EXPECT_TRUE(matches_template("a*a$", "aba"));
  EXPECT_FALSE(matches_template("^aba*ba$", "aba"));
  EXPECT_TRUE(matches_template("*", "x"));
  EXPECT_FALSE(matches_template("*", ""));
}

TEST(Suppressions, MatchFunctionsFilesAndVariablesOfAnyFrame) {
  const Finding finding = race("sell", "audit");
  EXPECT_TRUE(suppressed("race:sell\n", finding));
  EXPECT_TRUE(suppressed("race:main.cc\n", finding));
  EXPECT_TRUE(suppressed("race:^stock$\n", finding));
  EXPECT_FALSE(suppressed("race:refund\n", finding));
  EXPECT_FALSE(suppressed("deadlock:sell\n", finding));
  EXPECT_TRUE(suppressed("any:sell\n", finding));
  EXPECT_FALSE(suppressed("race_top:main\n", finding));
  EXPECT_TRUE(suppressed("race_top:audit\n", finding));
}

TEST(Suppressions, APairNeedsBothSides) {
  EXPECT_TRUE(suppressed("pair:sell|audit\n", race("sell", "audit")));
  EXPECT_TRUE(suppressed("pair:audit|sell\n", race("sell", "audit")));
  EXPECT_FALSE(suppressed("pair:sell|audit\n", race("sell", "refund")));
  EXPECT_FALSE(suppressed("pair:sell|sell\n", race("sell", "audit")));
  EXPECT_TRUE(suppressed("pair:sell|sell\n", race("sell", "sell")));
}

TEST(Suppressions, ExpireAfterTheirDay) {
  EXPECT_TRUE(suppressed("race:sell until=2026-06-01\n", race("sell", "audit")));
  EXPECT_FALSE(suppressed("race:sell until=2026-05-31\n", race("sell", "audit")));
}

TEST(Suppressions, ABadLineIsReportedAndTheRestCounts) {
  Suppressions suppressions;
  suppressions.add(
      "# comment\n\nrace:\nnonsense\nbogus:x\nrace:sell until=2026-13-01\npair:a\nrace:sell\r\n",
      "s.txt");
  ASSERT_EQ(suppressions.problems().size(), 5u);
  EXPECT_EQ(suppressions.problems()[0], "s.txt:3: the pattern is empty; the line is skipped");
  EXPECT_TRUE(suppressions.problems()[1].starts_with("s.txt:4: found `nonsense`"));
  EXPECT_TRUE(suppressions.problems()[2].starts_with("s.txt:5: unknown type `bogus`"));
  EXPECT_TRUE(suppressions.problems()[3].starts_with("s.txt:6: `2026-13-01` is not a day"));
  EXPECT_TRUE(suppressions.suppresses(race("sell", "audit"), kDay));
}

TEST(Suppressions, UnusedAndExpiredEntriesAreListedOverAllFiles) {
  Suppressions suppressions;
  suppressions.add("race:sell\nrace:refund\n", "a.txt");
  suppressions.add("race:old until=2020-01-01\ncalled_from_lib:libz.so\n", "b.txt");
  EXPECT_TRUE(suppressions.suppresses(race("sell", "audit"), kDay));
  EXPECT_EQ(suppressions.unused(kDay),
            (std::vector<std::string>{"a.txt:2: `race:refund` matched nothing",
                                      "b.txt:1: `race:old until=2020-01-01` has expired"}));
}

TEST(Baseline, HoldsFingerprintsAndSurvivesARoundTrip) {
  const Finding finding = race("sell", "audit");
  const std::string text = baseline_of(std::vector{finding, finding});
  EXPECT_EQ(text, "# heddle baseline 1\n00000000000000ff  data race on `stock`, sell and audit\n");
  const Result<Baseline> baseline = Baseline::parse(text, "b");
  ASSERT_TRUE(baseline.ok());
  EXPECT_EQ(baseline->size(), 1u);
  EXPECT_TRUE(baseline->contains(finding));
  Finding other = finding;
  other.fingerprint = "00000000000000fe";
  EXPECT_FALSE(baseline->contains(other));
}

TEST(Baseline, SaysWhatIsWrongWithAFile) {
  EXPECT_NE(Baseline::parse("hello\n", "b").error().message.find("b:1:"), std::string::npos);
  EXPECT_NE(Baseline::parse("# heddle baseline 1\nxyz  text\n", "b").error().message.find("b:2:"),
            std::string::npos);
}

}  // namespace
}  // namespace heddle
