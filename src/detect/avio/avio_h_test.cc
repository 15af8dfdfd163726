#include "detect/avio/avio_h.h"

#include "trace/text.h"

#include <string>

#include <gtest/gtest.h>

namespace heddle::avio {
namespace {

struct Outcome {
  AvioH::Counts counts;
  std::vector<Finding> findings;
  std::vector<std::string> remarks;
};

Outcome check(std::string_view text, const HardwareOptions& options = {}) {
  const Trace trace = trace_from_text(text);
  AvioH hardware(trace.catalog, options);
  hardware.on(trace.events, 0);
  Outcome out{hardware.counts(), {}, hardware.remarks()};
  out.findings = hardware.finish();
  return out;
}

TEST(AvioH, SeesTheFourCases) {
  for (const char* text :
       {"t1: r x @P\n t2: w x @R\n t1: r x @I\n", "t1: w x @P\n t2: w x @R\n t1: r x @I\n",
        "t1: w x @P\n t2: r x @R\n t1: w x @I\n", "t1: r x @P\n t2: w x @R\n t1: w x @I\n"}) {
    const Outcome out = check(text);
    EXPECT_EQ(out.counts.both, 1u) << text;
    ASSERT_EQ(out.findings.size(), 1u) << text;
    EXPECT_EQ(out.findings[0].detectors, std::vector<std::string>{"avio-h"});
  }
  for (const char* text :
       {"t1: r x @P\n t2: r x @R\n t1: r x @I\n", "t1: w x @P\n t2: r x @R\n t1: r x @I\n",
        "t1: r x @P\n t2: r x @R\n t1: w x @I\n", "t1: w x @P\n t2: w x @R\n t1: w x @I\n"}) {
    EXPECT_EQ(check(text).findings.size(), 0u) << text;
  }
}

TEST(AvioH, NeighboursOnALineAreFalsePositives) {
  const Outcome out = check("t1: r x+0:4 @P\n t2: w x+4:4 @R\n t1: r x+0:4 @I\n");
  EXPECT_EQ(out.counts.only_hardware, 1u);
  EXPECT_EQ(out.counts.both, 0u);
  ASSERT_EQ(out.findings.size(), 1u);
  EXPECT_EQ(out.findings[0].notes.back(),
            "Exact bytes disagree: P, R and I share a cache line only.");
}

TEST(AvioH, ADisplacedLineIsAMissedBug) {
  HardwareOptions tiny;
  tiny.l1 = {64, 1, 64};
  const Outcome out = check("t1: r x @P\n t1: r y @other\n t2: w x @R\n t1: r x @I\n", tiny);
  EXPECT_EQ(out.counts.only_software, 1u);
  EXPECT_EQ(out.counts.displaced, 1u);
  EXPECT_EQ(out.findings.size(), 0u);
}

TEST(AvioH, AnotherAccessToTheLineHidesASplit) {
  const Outcome out =
      check("t1: r x+0:4 @P\n t2: w x+0:4 @R\n t1: r x+4:4 @other\n t1: r x+0:4 @I\n");
  EXPECT_EQ(out.counts.only_software, 1u);
  EXPECT_EQ(out.counts.displaced, 0u);
  EXPECT_EQ(out.counts.only_hardware, 1u) << "the other access is taken for I";
}

TEST(AvioH, ThreadsOfOneCoreAreLocalToEachOther) {
  HardwareOptions one_core;
  one_core.cores = 1;
  EXPECT_EQ(check("t1: r x @P\n t2: w x @R\n t1: r x @I\n", one_core).findings.size(), 0u);
}

TEST(AvioH, ChecksOnlyWhatTheCacheCannotSatisfy) {
  const Outcome out = check("t1: r x @a\n t1: r x @b\n t1: w x @c\n t1: w x @d\n");
  EXPECT_EQ(out.counts.accesses, 4u);
  EXPECT_EQ(out.counts.checked, 1u) << "the first miss";
  EXPECT_EQ(out.remarks.at(1), "avio-h: 1 of 4 accesses needed a check (25.00 %)");
}

}  // namespace
}  // namespace heddle::avio
