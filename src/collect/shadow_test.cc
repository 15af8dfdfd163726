#include "collect/shadow.h"

#include <gtest/gtest.h>

namespace heddle::collect {
namespace {

constexpr Address kBoundary = Address{1} << 33;  // of two regions

void fill(Shadow& shadow, Address from, Address to, std::uint8_t state) {
  for (Address at = from; at < to; at += 8) ASSERT_TRUE(shadow.set(at, state, at));
}

TEST(Shadow, WhatNobodyTouchedHasNoState) {
  const Shadow shadow;
  ASSERT_TRUE(shadow.made());
  EXPECT_EQ(shadow.view().state(0), 0);
  EXPECT_EQ(shadow.view().state((Address{1} << Shadow::kAddressBits) - 1), 0);
  EXPECT_FALSE(shadow.view().all(kBoundary - 8, kBoundary, 1));
}

TEST(Shadow, RegionsAreOne) {
  Shadow shadow;
  ASSERT_TRUE(shadow.made());
  fill(shadow, kBoundary - 800, kBoundary + 800, 7);
  EXPECT_EQ(shadow.view().word(kBoundary - 3), kBoundary - 8);
  EXPECT_EQ(shadow.view().word(kBoundary + 3), kBoundary);
  EXPECT_TRUE(shadow.view().all(kBoundary - 800, kBoundary + 799, 7));
  EXPECT_FALSE(shadow.view().all(kBoundary - 801, kBoundary + 799, 7));
  EXPECT_FALSE(shadow.view().all(kBoundary - 800, kBoundary + 800, 7));
  shadow.set(kBoundary, 9);
  EXPECT_FALSE(shadow.view().all(kBoundary - 800, kBoundary + 799, 7));
  EXPECT_FALSE(shadow.view().all_or_nothing(kBoundary - 800, kBoundary + 799, 7));
  shadow.clear(kBoundary - 16, 32);
  EXPECT_TRUE(shadow.view().all_or_nothing(kBoundary - 808, kBoundary + 807, 7));
  EXPECT_TRUE(shadow.view().all_or_nothing(kBoundary - 24, kBoundary - 9, 7));
  EXPECT_FALSE(shadow.view().all_or_nothing(kBoundary - 24, kBoundary - 9, 8));
  EXPECT_TRUE(shadow.view().all(kBoundary - 800, kBoundary - 17, 7));
  EXPECT_TRUE(shadow.view().all(kBoundary - 16, kBoundary + 15, 0));
  EXPECT_TRUE(shadow.view().all(kBoundary + 16, kBoundary + 799, 7));
}

TEST(Shadow, LargeBlocksAreForgottenToTheirEdges) {
  Shadow shadow;
  ASSERT_TRUE(shadow.made());
  constexpr Address kFrom = kBoundary - (Address{3} << 20) - 40;
  constexpr Address kSize = (Address{5} << 20) + 24;
  fill(shadow, kFrom - 80, kFrom + kSize + 80, 7);
  shadow.clear(kFrom, kSize);
  EXPECT_TRUE(shadow.view().all(kFrom - 80, kFrom - 1, 7));
  EXPECT_TRUE(shadow.view().all(kFrom, kFrom + kSize - 1, 0));
  EXPECT_TRUE(shadow.view().all(kFrom + kSize, kFrom + kSize + 79, 7));
}

}  // namespace
}  // namespace heddle::collect
