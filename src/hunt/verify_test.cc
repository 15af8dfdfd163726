#include "hunt/verify.h"

#include "abi/status.h"
#include "trace/text.h"

#include <gtest/gtest.h>

namespace heddle::hunt {
namespace {

std::optional<Difference> compare(const char* first, const char* second) {
  MemorySource left(trace_from_text(first), 2);  // batches of different sizes must not matter
  MemorySource right(trace_from_text(second), 3);
  Result<std::optional<Difference>> difference = first_difference(left, right);
  EXPECT_TRUE(difference.ok());
  return *difference;
}

constexpr const char* kTrace =
    "t0: fork t1\n"
    "t1: acq m @bank.c:10\n"
    "t1: r balance = 100 @bank.c:11\n"
    "t1: rel m @bank.c:12\n"
    "t0: join t1\n";

TEST(Verify, ValuesAndAddressesMayDiffer) {
  EXPECT_FALSE(compare(kTrace, kTrace).has_value());
  EXPECT_FALSE(compare(kTrace,
                       "t0: fork t1\n"
                       "t1: acq other @bank.c:10\n"
                       "t1: r x = 7 @bank.c:11\n"
                       "t1: rel other @bank.c:12\n"
                       "t0: join t1\n")
                   .has_value());
}

TEST(Verify, FindsTheFirstDifference) {
  const std::optional<Difference> other_site = compare(kTrace,
                                                       "t0: fork t1\n"
                                                       "t1: acq m @bank.c:10\n"
                                                       "t1: r balance = 100 @bank.c:99\n"
                                                       "t0: join t1\n");
  ASSERT_TRUE(other_site.has_value());
  EXPECT_EQ(other_site->ordinal, 2u);
  EXPECT_NE(other_site->first.find("bank.c:11"), std::string::npos) << other_site->first;
  EXPECT_NE(other_site->second.find("bank.c:99"), std::string::npos) << other_site->second;

  const std::optional<Difference> shorter = compare(kTrace,
                                                    "t0: fork t1\n"
                                                    "t1: acq m @bank.c:10\n");
  ASSERT_TRUE(shorter.has_value());
  EXPECT_EQ(shorter->ordinal, 2u);
  EXPECT_EQ(shorter->second, "the end");

  const std::optional<Difference> other_thread = compare(kTrace,
                                                         "t0: fork t1\n"
                                                         "t0: acq m @bank.c:10\n");
  ASSERT_TRUE(other_thread.has_value());
  EXPECT_EQ(other_thread->ordinal, 1u);
}

TEST(Verify, NamesWhatIsNotControlled) {
  EXPECT_NE(name_sources(0).find("addresses"), std::string::npos);
  EXPECT_EQ(name_sources(HEDDLE_SOURCE_RANDOM | HEDDLE_SOURCE_OUTSIDE),
            "input from outside, random bytes from the kernel");
}

}  // namespace
}  // namespace heddle::hunt
