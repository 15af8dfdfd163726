#include "base/test_seed.h"
#include "collect/decoder_testing.h"

#include <random>

namespace heddle::collect {
namespace {

// A function that reads two fields of its object, called twice between segments of its caller: the
// caller's accesses are of a word, of a symbol and of a word again.
class JoinedTest : public DecoderTest {
 protected:
  JoinedTest() {
    own_.symbols.emplace_back();
    caller_ = function("caller");
    accessor_ = function("accessor", Function::kMethod);
    begin_ = site(EventKind::kRead, 8);
    end_ = site(EventKind::kRead, 8);
    enter_ = slot(HEDDLE_SLOT_ENTER, accessor_, 2);
    inside_ = segment({{begin_, word()}, {end_, from_item(0, 8)}}, accessor_);
    leave_ = slot(HEDDLE_SLOT_LEAVE, accessor_, 0);
    before_ = segment({{site(EventKind::kWrite, 8), word()}}, caller_);
    decide_ = flow_segment();
    after_ = segment(
        {{site(EventKind::kWrite, 4), symbol(4)}, {site(EventKind::kWrite, 8), word()}}, caller_);
    first_call_ = site(EventKind::kEnter, 0);
    second_call_ = site(EventKind::kEnter, 0);
  }

  std::uint64_t flow_segment() {
    Segment segment;
    segment.function = caller_;
    own_.segments.push_back(segment);
    return slot(HEDDLE_SLOT_FLOW_SEGMENT, static_cast<std::uint32_t>(own_.segments.size() - 1), 0);
  }
  // Numbers in the catalog are those of the first decoder again.
  Decoder& fresh_decoder(bool flow = false) {
    catalog_ = Catalog();
    return decoder(flow);
  }
  std::vector<Event> decode_afresh(const std::vector<std::uint64_t>& words, bool flow) {
    catalog_ = Catalog();
    return decode(words, Tail::kWhole, flow);
  }
  std::uint32_t number_of(std::uint64_t slot) const {
    return static_cast<std::uint32_t>((slot - kSlots) / sizeof(heddle_slot));
  }
  void part(std::uint64_t of) { slot(HEDDLE_SLOT_PART, number_of(of), 0); }
  void call_part(std::uint64_t enter, SiteId site) {
    slot(HEDDLE_SLOT_CALL_PART, number_of(enter), 0);
    slot(HEDDLE_SLOT_CALL_SITE, site, 0);
  }
  std::uint64_t join(unsigned words = 6) {
    const std::uint64_t joined = slot(HEDDLE_SLOT_JOINED, 7, words);
    part(before_);
    call_part(enter_, first_call_);
    part(decide_);
    call_part(enter_, second_call_);
    part(after_);
    return joined;
  }
  // The same in records of their own.
  std::vector<std::uint64_t> one_by_one(bool flow) const {
    std::vector<std::uint64_t> words = {before_, 0x10,    enter_, kFlags + first_call_,
                                        0x100,   inside_, 0x108,  leave_};
    if (flow) words.push_back(decide_);
    const std::vector<std::uint64_t> rest = {
        enter_, kFlags + second_call_, 0x200, inside_, 0x208, leave_, after_, 0x20};
    words.insert(words.end(), rest.begin(), rest.end());
    return words;
  }

  FunctionId caller_, accessor_;
  SiteId begin_, end_, first_call_, second_call_;
  std::uint64_t enter_, inside_, leave_, before_, decide_, after_;
};

TEST_F(JoinedTest, IsWhatItsPartsAre) {
  const std::uint64_t joined = join();
  const std::vector<std::uint64_t> words = {joined, 0x10, 0x100, 0x108, 0x200, 0x208, 0x20};
  for (const bool flow : {false, true}) {
    const std::vector<Event> expected = decode_afresh(one_by_one(flow), flow);
    EXPECT_EQ(decode_afresh(words, flow), expected);
    Taken taken;
    EXPECT_TRUE(execute_all(fresh_decoder(flow), after_unit(words), flow, taken).ok());
    EXPECT_EQ(taken.events, expected);
  }
  EXPECT_EQ(brief(decode(words)),
            "0:w(10,8) 0:enter(100,0) 0:r(108,8) 0:r(110,8) 0:leave(0,0) 0:enter(200,0) "
            "0:r(208,8) 0:r(210,8) 0:leave(0,0) 0:w(8004,4) 0:w(20,8)");
}

TEST_F(JoinedTest, PassesTheFilterLikeItsParts) {
  const std::uint64_t joined = join();
  const std::vector<std::uint64_t> as_one = {joined, 0x10, 0x100, 0x108, 0x200, 0x208, 0x20};
  const auto filtered = [&](const std::vector<std::uint64_t>& record) {
    // Another thread shares what the second call reads, and the symbol.
    std::vector<std::uint64_t> words = record;
    const std::vector<std::uint64_t> other = {switch_to(1), inside_, 0x208,
                                              after_,       0x700,   switch_to(0)};
    words.insert(words.end(), other.begin(), other.end());
    words.insert(words.end(), record.begin(), record.end());
    Taken taken;
    const auto filter = shared_filter(taken);
    EXPECT_TRUE(filter_all(fresh_decoder(), after_unit(words), *filter).ok());
    EXPECT_EQ(filter->accesses(), 18u);
    return taken.events;
  };
  const std::vector<Event> passed = filtered(as_one);
  EXPECT_EQ(passed, filtered(one_by_one(false)));
  EXPECT_EQ(brief({passed.end() - 5, passed.end()}),
            "0:enter(200,0) 0:r(208,8) 0:r(210,8) 0:leave(0,0) 0:w(8004,4)");
}

TEST_F(JoinedTest, PassesTheFilterAsEventsDo) {
  const std::uint64_t joined = join();
  const unsigned seed = test_seed();
  SCOPED_TRACE("HEDDLE_TEST_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  std::size_t partly = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<std::uint64_t> words;
    for (int i = 0; i < 100; ++i) {
      // Memory that is used for a while, mostly by one thread, and mostly where words begin.
      const auto address = [&]() -> std::uint64_t {
        const std::uint64_t at = 0x1000 + i / 10 * 0x20u + random() % 0x60;
        return random() % 8 == 0 ? at : at & ~std::uint64_t{7};
      };
      if (random() % 6 == 0) words.push_back(switch_to(static_cast<ThreadId>(random() % 2 * 300)));
      words.push_back(joined);
      for (int word = 0; word < 6; ++word) words.push_back(address());
    }
    Taken passed;
    const std::size_t all = filter_both_ways(words, passed);
    ASSERT_FALSE(HasFailure());
    partly += passed.events.size() < all && passed.in_executions != 0 ? 1 : 0;
  }
  EXPECT_GT(partly, 100u);
}

// Before the second access of the second call: its site is that of the first call's, too.
TEST_F(JoinedTest, PausesInTheRightCall) {
  const std::uint64_t joined = join();
  const std::uint64_t resume = HEDDLE_HEADER(HEDDLE_REC_CONTINUE, 0, 1, 0, 0, 0);
  const std::uint64_t flag = kFlags + end_;
  EXPECT_EQ(brief(decode({joined | 1, 0x10,         0x100,   0x108, 0x200,        0x208,  0,
                          flag,       switch_to(1), before_, 0x50,  switch_to(0), resume, flag,
                          joined,     0x10,         0x100,   0x108, 0x200,        0x208,  0x20})),
            "0:w(10,8) 0:enter(100,0) 0:r(108,8) 0:r(110,8) 0:leave(0,0) 0:enter(200,0) "
            "0:r(208,8) 1:w(50,8) 0:r(210,8) 0:leave(0,0) 0:w(8004,4) 0:w(20,8)");
  // Before the first one, when the object is there already.
  const std::uint64_t first = kFlags + begin_;
  EXPECT_EQ(brief(decode({joined | 1, 0x10,  0x100,        0,       0,     0,
                          0,          first, switch_to(1), before_, 0x50,  switch_to(0),
                          resume,     first, joined,       0x10,    0x100, 0x108,
                          0x200,      0x208, 0x20})),
            "0:w(10,8) 1:w(50,8) 0:enter(100,0) 0:r(108,8) 0:r(110,8) 0:leave(0,0) "
            "0:enter(200,0) 0:r(208,8) 0:r(210,8) 0:leave(0,0) 0:w(8004,4) 0:w(20,8)");
}

// What stands between two accesses is known with the second one.
TEST_F(JoinedTest, KilledInTheMiddle) {
  const std::uint64_t joined = join();
  EXPECT_EQ(brief(decode({joined, 0x10, 0x100, 0x108, 0x200, 0, 0}, Tail::kCut)),
            "0:w(10,8) 0:enter(100,0) 0:r(108,8) 0:r(110,8)");
}

// In each case one thing is wrong.
TEST_F(JoinedTest, WhatCannotBeIsDamage) {
  const auto refused = [this] {
    Decoder& reader = decoder();
    std::vector<Event> out;
    return !decode_all(reader, after_unit({}), Tail::kWhole, out).ok();
  };
  const std::vector<heddle_slot> good = slots_;
  const auto afresh = [&] { slots_ = good; };
  join();
  EXPECT_FALSE(refused());
  afresh();
  join(5);  // more words than that
  EXPECT_TRUE(refused());
  afresh();
  slot(HEDDLE_SLOT_JOINED, 3, 1);  // more parts than there are slots
  part(before_);
  EXPECT_TRUE(refused());
  afresh();
  slot(HEDDLE_SLOT_JOINED, 1, 2);
  part(enter_);  // no segment
  EXPECT_TRUE(refused());
  afresh();
  slot(HEDDLE_SLOT_JOINED, 1, 1);
  slot(HEDDLE_SLOT_PART, 4711, 0);  // no slot
  EXPECT_TRUE(refused());
  afresh();
  slot(HEDDLE_SLOT_JOINED, 2, 2);
  call_part(inside_, first_call_);  // no enter
  EXPECT_TRUE(refused());
  afresh();
  slot(HEDDLE_SLOT_JOINED, 2, 2);
  call_part(enter_, 4711);  // no site
  EXPECT_TRUE(refused());
  afresh();
  slot(HEDDLE_SLOT_JOINED, 1, 2);
  slot(HEDDLE_SLOT_CALL_PART, number_of(enter_), 0);  // without its site
  EXPECT_TRUE(refused());
}

}  // namespace
}  // namespace heddle::collect
