#include "table/instructions.h"

#include <gtest/gtest.h>

namespace heddle::table {
namespace {

// Costs of two objects; the program is first named by a call into it, and a call's own line (what
// the callee cost) is not counted twice.
constexpr const char* kTwoObjects = R"(# callgrind format
positions: line
events: Ir

ob=(1) /lib/libc.so.6
fl=(1) exit.c
fn=(1) exit
27 10
+3 5
cob=(2) /home/user/a.out
cfn=(2) main
calls=1 4
+1 107

ob=(2)
fn=(2)
4 3
* 4
cob=(1)
calls=2 27
+2 99
-1 100

totals: 122
)";

TEST(Instructions, AreCountedPerObject) {
  const Result<Instructions> counted = parse_callgrind(kTwoObjects, "/home/user/a.out");
  ASSERT_TRUE(counted.ok()) << counted.error().message;
  EXPECT_EQ(counted->own, 107u);
  EXPECT_EQ(counted->all, 122u);
}

TEST(Instructions, OfAnotherProgramAreAnError) {
  EXPECT_FALSE(parse_callgrind(kTwoObjects, "/home/user/b.out").ok());
}

TEST(Instructions, OfAFileWithoutItsEndAreAnError) {
  const std::string whole = kTwoObjects;
  EXPECT_FALSE(parse_callgrind(whole.substr(0, whole.find("totals")), "/home/user/a.out").ok());
}

}  // namespace
}  // namespace heddle::table
