// Memory that nobody has touched is begun many locations at once, by ranges and by loops: what that
// leaves behind is the same as if they had been touched one by one.
#include "detect/avio/finder.h"

#include <array>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace heddle::avio {
namespace {

constexpr Address kBegin = 0x7f0000000000;
constexpr std::uint32_t kSpan = 4 * 4096;  // several pages

class Fresh : public testing::Test, private TripleSink {
 protected:
  void access(ThreadId thread, EventKind kind, Address address, std::uint32_t size) {
    Event event;
    event.kind = kind;
    event.thread = thread;
    event.site = 1 + thread;
    event.address = address;
    event.size = size & 0x7fffffffu;
    finder_.access(event, ordinal_++, 0);
  }
  // Writes all of the span, or every `step` bytes of it, as elements of `size` bytes.
  void loop(ThreadId thread, std::uint32_t size, std::int64_t step) {
    RecordShape shape;
    shape.kind = RecordShape::Kind::kLoop;
    shape.words = 2;
    shape.always = 1;
    ShapeItem item;
    item.event.kind = EventKind::kWrite;
    item.event.site = 1 + thread;
    item.event.size = size & 0x7fffffffu;
    item.base = 2;
    shape.items.push_back(item);
    shape.steps.push_back({.distance = step});
    const std::uint64_t rounds = kSpan / static_cast<std::uint64_t>(step < 0 ? -step : step);
    const Address first = step < 0 ? kBegin + kSpan - static_cast<Address>(-step) : kBegin;
    const std::array<std::uint64_t, 3> words{0, rounds, first};
    finder_.go_on_with(thread, ordinal_);
    ordinal_ += finder_.execute_loop(Execution::of(1, thread, words.data()), shape, ordinal_, 0);
  }
  void allocate(Address address, std::uint64_t size) {
    Event event;
    event.kind = EventKind::kAlloc;
    event.address = address;
    event.value = size;
    finder_.on(event);
  }
  // Whether a write of thread 1 splits what thread 0 did there from a read of it that follows.
  bool splits(Address address, std::uint32_t size) {
    const std::size_t before = triples_.size();
    access(1, EventKind::kWrite, address, size);
    access(0, EventKind::kRead, address, size);
    return triples_.size() != before;
  }

  std::vector<Triple> triples_;

 private:
  void on_triple(const Triple& triple) override { triples_.push_back(triple); }

  TripleFinder finder_{1, *this};
  EventOrdinal ordinal_ = 0;
};

TEST_F(Fresh, ARangeIsTouchedFromItsFirstByteToItsLast) {
  access(0, EventKind::kWrite, kBegin + 3, kSpan - 6);
  EXPECT_FALSE(splits(kBegin + 2, 1));
  EXPECT_TRUE(splits(kBegin + 3, 1));
  EXPECT_TRUE(splits(kBegin + kSpan / 2, 8));
  EXPECT_TRUE(splits(kBegin + kSpan - 4, 1));
  EXPECT_FALSE(splits(kBegin + kSpan - 3, 1));
}

TEST_F(Fresh, ARangeOverSomethingTouchedLeavesThatWithItsHistory) {
  access(1, EventKind::kWrite, kBegin + 4096, 8);
  access(0, EventKind::kWrite, kBegin, kSpan);
  access(1, EventKind::kRead, kBegin + 4096, 8);
  ASSERT_EQ(triples_.size(), 1u);
  EXPECT_EQ(triples_[0].split, SplitCase::kWriteWriteRead);
}

TEST_F(Fresh, WhatARangeTouchedIsForgottenWithItsBlock) {
  access(0, EventKind::kWrite, kBegin, kSpan);
  allocate(kBegin + 8192, 4096);
  EXPECT_FALSE(splits(kBegin + 8192 + 16, 8));
  EXPECT_TRUE(splits(kBegin + 4096, 8));
}

struct Elements {
  std::uint32_t size;
  std::int64_t step;
};
class FreshLoop : public Fresh, public testing::WithParamInterface<Elements> {};

TEST_P(FreshLoop, TouchesItsElementsAndNothingBetween) {
  const auto [size, step] = GetParam();
  const auto distance = static_cast<Address>(step < 0 ? -step : step);
  loop(0, size, step);
  for (const Address element :
       {Address{0}, Address{1}, kSpan / distance / 2, kSpan / distance - 1}) {
    EXPECT_TRUE(splits(kBegin + element * distance, size)) << element;
    if (distance > size) {
      EXPECT_FALSE(splits(kBegin + element * distance + size, size)) << element;
    }
  }
}

TEST_P(FreshLoop, IsForgottenWithItsBlock) {
  const auto [size, step] = GetParam();
  loop(0, size, step);
  allocate(kBegin + 8192, 4096);
  for (const Address offset : {0, 16, 4080}) {
    EXPECT_FALSE(splits(kBegin + 8192 + offset, size)) << offset;
  }
  EXPECT_TRUE(splits(kBegin + 4096, size));
}

INSTANTIATE_TEST_SUITE_P(Elements, FreshLoop,
                         testing::Values(Elements{8, 8}, Elements{8, -8}, Elements{8, 16},
                                         Elements{4, 4}, Elements{4, -4}, Elements{4, 8},
                                         Elements{1, 1}));

}  // namespace
}  // namespace heddle::avio
