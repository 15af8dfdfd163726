#include "base/test_seed.h"
#include "collect/decoder_testing.h"

#include <algorithm>
#include <cstring>
#include <random>

namespace heddle::collect {
namespace {

TEST_F(DecoderTest, AddressesFromWordsSymbolsAndEarlierItems) {
  own_.symbols.emplace_back();
  const std::uint64_t slot = segment({{site(EventKind::kRead, 8), word()},
                                      {site(EventKind::kWrite, 4), symbol(12)},
                                      {site(EventKind::kRead, 2), from_item(0, -2)},
                                      {site(EventKind::kWrite, 1), from_item(1, 3)},
                                      {site(EventKind::kWrite, 8), word()}});
  EXPECT_EQ(brief(decode({slot, 0x1000, 0x2000})),
            "0:r(1000,8) 0:w(800c,4) 0:r(ffe,2) 0:w(800f,1) 0:w(2000,8)");
}

TEST_F(DecoderTest, SegmentEventsOnlyAtTheFlowLevel) {
  const std::uint64_t slot = segment({{site(EventKind::kRead, 8), word()}});
  EXPECT_EQ(brief(decode({slot, 0x10}, Tail::kWhole, true)), "0:seg(0,0) 0:r(10,8)");
}

TEST_F(DecoderTest, RangesAndOutcomes) {
  LayoutItem range = word();
  range.dynamic_size = true;
  LayoutItem exchange = word();
  exchange.outcome = true;
  exchange.failure_order = static_cast<std::uint8_t>(MemoryOrder::kAcquire);
  const std::uint64_t slot = segment({{site(EventKind::kRead, 0), range},
                                      {site(EventKind::kRmw, 4, MemoryOrder::kSeqCst), exchange}});
  EXPECT_EQ(brief(decode({slot, 0x100, 33, 0x200, 2, slot, 0x100, 1, 0x200, 1})),
            "0:r(100,32) 0:u(200,4) 0:r(200,4)");
}

TEST_F(DecoderTest, PausedSegmentGoesOnAfterTheOtherThread) {
  const SiteId first = site(EventKind::kRead, 8);
  const SiteId second = site(EventKind::kWrite, 8);
  const SiteId third = site(EventKind::kWrite, 4);
  const std::uint64_t slot = segment({{first, word()}, {second, from_item(0, 0)}, {third, word()}});
  const std::uint64_t flag = kFlags + second;
  const std::uint64_t resume = HEDDLE_HEADER(HEDDLE_REC_CONTINUE, 0, 1, 0, 0, 0);
  EXPECT_EQ(brief(decode({slot | 1, 0x10, 0, flag, switch_to(1), slot, 0x30, 0x40, switch_to(0),
                          resume, flag, slot, 0x10, 0x20})),
            "0:r(10,8) 1:r(30,8) 1:w(30,8) 1:w(40,4) 0:w(10,8) 0:w(20,4)");
}

TEST_F(DecoderTest, PausedTwice) {
  const SiteId first = site(EventKind::kRead, 8);
  const SiteId second = site(EventKind::kWrite, 8);
  const std::uint64_t slot = segment({{first, word()}, {second, word()}});
  const std::uint64_t resume = HEDDLE_HEADER(HEDDLE_REC_CONTINUE, 0, 1, 0, 0, 0);
  EXPECT_EQ(brief(decode({slot | 1, 0, 0, kFlags + first, switch_to(1), switch_to(0), resume,
                          kFlags + first, slot | 1, 0x10, 0, kFlags + second, switch_to(1),
                          switch_to(0), resume, kFlags + second, slot, 0x10, 0x20})),
            "0:r(10,8) 0:w(20,8)");
}

TEST_F(DecoderTest, KilledInTheMiddleOfASegment) {
  own_.symbols.emplace_back();
  const std::uint64_t slot = segment({{site(EventKind::kRead, 8), symbol(0)},
                                      {site(EventKind::kRead, 8), word()},
                                      {site(EventKind::kWrite, 8), word()},
                                      {site(EventKind::kWrite, 8), symbol(8)}});
  EXPECT_EQ(brief(decode({slot, 0x10, 0, 0, 0, 0}, Tail::kCut)), "0:r(8000,8) 0:r(10,8)");
}

TEST_F(DecoderTest, ExceptionsAndJumpsLeaveWhatTheyPassed) {
  const FunctionId outer = function("outer", Function::kCatchesJumps);
  const FunctionId middle = function("middle", Function::kMethod);
  const FunctionId inner = function("inner");
  const SiteId call = site(EventKind::kEnter, 0);
  const std::uint64_t enter_outer = slot(HEDDLE_SLOT_ENTER, outer, 2);
  const std::uint64_t enter_middle = slot(HEDDLE_SLOT_ENTER, middle, 2);
  const std::uint64_t enter_inner = slot(HEDDLE_SLOT_ENTER, inner, 1);
  const std::uint64_t resync = slot(HEDDLE_SLOT_RESYNC, outer, 1);
  const std::uint64_t leave_outer = slot(HEDDLE_SLOT_LEAVE, outer, 0);
  const std::uint64_t leave_middle = slot(HEDDLE_SLOT_LEAVE, middle, 0);
  const std::vector<Event> events =
      decode({enter_outer, 0, 0xf0, enter_middle, kFlags + call, 0x77, enter_inner, 0x5, resync,
              0xf0, enter_middle, 0, 0x78, enter_inner, 0, leave_middle, leave_outer});
  EXPECT_EQ(brief(events),
            "0:enter(0,0) 0:enter(77,0) 0:enter(0,0) 0:leave(0,0) 0:leave(0,0) 0:enter(78,0) "
            "0:enter(0,0) 0:leave(0,0) 0:leave(0,0) 0:leave(0,0)");
  EXPECT_EQ(events[3].value, inner);
  EXPECT_EQ(events[4].value, middle);
  EXPECT_EQ(events[0].site, 0u);
  EXPECT_EQ(catalog_.site(events[1].site).line, own_.site(call).line);
  EXPECT_EQ(events[2].site, 0u);  // no unit has a flag there
}

TEST_F(DecoderTest, RangesOfLibraryCallsBelongToTheCallsSite) {
  const SiteId call = site(EventKind::kRead, 0);
  const std::uint64_t libcall = slot(HEDDLE_SLOT_LIBCALL, call, 0);
  const auto read = static_cast<unsigned>(EventKind::kRead);
  const std::vector<Event> events =
      decode({libcall, HEDDLE_HEADER(HEDDLE_REC_EVENT, read, 3, 0, 0, 40), 0x900, 0, 0});
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].size, 40u);
  EXPECT_EQ(catalog_.site(events[0].site).line, own_.site(call).line);
}

TEST_F(DecoderTest, AnUnloadedUnitIsUnknown) {
  const std::uint64_t slot = segment({{site(EventKind::kRead, 8), word()}});
  std::vector<Event> out;
  const Status status = decode_all(
      decoder(),
      after_unit({slot, 0x10, HEDDLE_HEADER(HEDDLE_REC_UNLOAD, 0, 1, 0, 0, 0), kUnit, slot, 0x20}),
      Tail::kWhole, out);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(out.size(), 1u);
}

TEST_F(DecoderTest, WhatAUnitDidBeforeItWasUnloadedIsExecuted) {
  const std::uint64_t slot = segment({{site(EventKind::kRead, 8), word()}});
  const std::vector<std::uint64_t> words =
      after_unit({slot, 0x10, switch_to(1), slot, 0x10, slot, 0x10,
                  HEDDLE_HEADER(HEDDLE_REC_UNLOAD, 0, 1, 0, 0, 0), kUnit});
  Taken executed;
  ASSERT_TRUE(execute_all(decoder(), words, false, executed).ok());
  EXPECT_EQ(executed.events.size(), 3u);
  catalog_ = {};
  Taken filtered;
  const auto filter = shared_filter(filtered);
  ASSERT_TRUE(filter_all(decoder(), words, *filter).ok());
  EXPECT_EQ(filtered.events, executed.events);
}

TEST_F(DecoderTest, FilteredExecutionsAreFilteredEvents) {
  own_.symbols.emplace_back();
  const FunctionId f = function("f", Function::kMethod);
  const std::uint64_t enter = slot(HEDDLE_SLOT_ENTER, f, 2);
  const std::uint64_t body =
      segment({{site(EventKind::kRead, 8), word()}, {site(EventKind::kWrite, 4), symbol(8)}}, f);
  const std::uint64_t leave = slot(HEDDLE_SLOT_LEAVE, f, 0);
  LayoutItem range = word();
  range.dynamic_size = true;
  const std::uint64_t slots[] = {
      segment({{site(EventKind::kRead, 8), word()},
               {site(EventKind::kWrite, 4), symbol(12)},
               {site(EventKind::kRmw, 2, MemoryOrder::kSeqCst), from_item(0, 6)}}),
      segment({{site(EventKind::kWrite, 16), word()}, {site(EventKind::kRead, 1), word()}}),
      segment({{site(EventKind::kWrite, 0), range}}),
      segment({{site(EventKind::kRead, 4), word()},
               {site(EventKind::kRead, 8), word()},
               {site(EventKind::kWrite, 4), from_item(0, 0)},
               {site(EventKind::kRead, 2), from_item(0, 0)},
               {site(EventKind::kWrite, 8), from_item(1, 0)}}),
      loop()};
  // Each has one word for an address, and some rounds.
  const std::uint64_t loops[] = {
      // Read in the last round, too, but not written.
      loop({.always = 1,
            .items = {moving(EventKind::kRead, 4, 4, word()),
                      moving(EventKind::kWrite, 4, 4, from_item(0, 0))}}),
      loop({.always = 1, .items = {moving(EventKind::kWrite, 8, -8, word())}}),
      loop({.always = 2,
            .items = {moving(EventKind::kRead, 2, 2, word()),
                      moving(EventKind::kWrite, 2, 2, from_item(0, 200))}}),
      loop({.always = 2,
            .items = {moving(EventKind::kRead, 8, 8, word()),
                      moving(EventKind::kWrite, 8, 8, from_item(0, -8))}}),
      loop({.always = 0, .items = {moving(EventKind::kRead, 4, 24, word())}}),
      // Neighbours, and two in one granule.
      loop({.always = 1,
            .items = {moving(EventKind::kRead, 8, 16, word()),
                      moving(EventKind::kWrite, 8, 16, from_item(0, 8))}}),
      loop({.always = 3,
            .items = {moving(EventKind::kRead, 4, -16, word()),
                      moving(EventKind::kRead, 4, -16, from_item(0, 4)),
                      moving(EventKind::kWrite, 4, -16, from_item(0, 0))}}),
      // One that stays where it is, and one that is now and then in two granules.
      loop({.always = 2,
            .items = {moving(EventKind::kRead, 8, 0, word()),
                      moving(EventKind::kWrite, 2, 2, from_item(0, 16))}}),
      loop({.always = 1, .items = {moving(EventKind::kWrite, 4, 6, word())}})};
  // Each gathers.
  struct Gathering {
    std::uint64_t slot;
    std::size_t words, round_words, last_words;  // behind the rounds before, and in rounds
  };
  const Gathering gathering[] = {
      {loop({.always = 2,
             .items = {gathered(EventKind::kRead, 4), following(EventKind::kWrite, 4, 0, 0)}}),
       0, 1, 1},
      {loop({.always = 1,
             .items = {moving(EventKind::kRead, 8, 8, word()), gathered(EventKind::kWrite, 8),
                       following(EventKind::kRead, 8, 1, 8)}}),
       1, 1, 0},
      {loop(
           {.always = 1, .items = {gathered(EventKind::kRead, 1), gathered(EventKind::kWrite, 2)}}),
       0, 2, 1}};
  const unsigned seed = test_seed();
  SCOPED_TRACE("HEDDLE_TEST_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 60; ++round) {
    std::vector<std::uint64_t> words;
    const auto address = [&] { return 0x1000 + random() % 512; };
    for (int i = 0; i < 1000; ++i) {
      switch (random() % 16) {
        case 14:
        case 15: {
          // Some go round in a few granules, which may well be all of one thread or all shared.
          const Gathering& one = gathering[random() % std::size(gathering)];
          const std::uint64_t rounds = 1 + random() % 20;
          const Address width = random() % 2 == 0 ? 32 : 512;
          const Address begin = 0x1000 + random() % (513 - width);
          const Address alignment = Address{1} << random() % 4;
          words.insert(words.end(), {one.slot, rounds, random() % 4});
          for (std::size_t n = one.words + (rounds - 1) * one.round_words + one.last_words; n > 0;
               --n) {
            words.push_back((begin + random() % width) / alignment * alignment);
          }
          break;
        }
        case 12:
        case 13: {
          // Some are in memory that nobody has touched long before.
          const Address alignment = Address{1} << random() % 4;
          const Address begin = random() % 2 == 0 ? 0x1000 : 0x10000 + i / 32 * 0x400u;
          words.insert(words.end(), {loops[random() % std::size(loops)], 1 + random() % 20,
                                     begin + random() % 512 / alignment * alignment});
          break;
        }
        case 0:
          words.push_back(switch_to(static_cast<ThreadId>(random() % 3 * 200)));
          break;
        case 7:
        case 8:
          words.insert(words.end(), {enter, kFlags, address(), body, address(), leave});
          break;
        case 1:
          words.insert(words.end(), {slots[2], address(), 1 + random() % 40});
          break;
        case 5:
          words.insert(words.end(), {slots[3], address() & ~std::uint64_t{3}, address()});
          break;
        case 6:
          words.insert(words.end(), {slots[4], 4 + random() % 20, address()});
          break;
        case 2: {
          const auto kind = static_cast<std::uint64_t>(EventKind::kAlloc);
          words.insert(words.end(),
                       {HEDDLE_HEADER(HEDDLE_REC_EVENT, kind, 3, 0, 0, 0), address(), 16, 0});
          break;
        }
        case 3:
        case 4:
          words.insert(words.end(), {slots[1], address(), address()});
          break;
        default:
          words.insert(words.end(), {slots[0], address()});
      }
    }
    Taken passed;
    filter_both_ways(words, passed);
    ASSERT_FALSE(HasFailure());
    ASSERT_GT(passed.in_executions, 0u);
  }
}

TEST_F(DecoderTest, ALoopsRecordIsItsAccesses) {
  const std::uint64_t before = segment({{site(EventKind::kRead, 8), word()}});
  const std::uint64_t slot = loop();
  EXPECT_EQ(brief(decode({before, 0x10, slot, 3, 0x100, before, 0x20})),
            "0:r(10,8) 0:r(100,8) 0:w(8001,1) 0:r(108,8) 0:w(8002,1) 0:r(20,8)");
  // Killed while it ran.
  EXPECT_EQ(brief(decode({before, 0x10, slot, ~std::uint64_t{3}, 0x100, 0, 0}, Tail::kCut)),
            "0:r(10,8)");
  // Ended by a fault, of which the runtime wrote the page.
  EXPECT_EQ(brief(decode(
                {slot | 1, ~std::uint64_t{9}, 0xff8, 0x1000 | HEDDLE_FAULT_KNOWN, before, 0x20})),
            "0:r(ff8,8) 0:w(8001,1) 0:r(1000,8) 0:r(20,8)");
}

// Batch by batch, with other records around it and by several threads.
TEST_F(DecoderTest, LongLoopsComeInBatches) {
  const std::uint64_t before = segment({{site(EventKind::kRead, 8), word()}});
  const std::uint64_t slot = loop();
  const std::vector<std::uint64_t> words =
      after_unit({before, 0x10, slot, 5001, 0x100, switch_to(1), slot, 11, 0x200, before, 0x20});
  std::vector<Event> out;
  Decoder& one = decoder();
  for (std::size_t at = 0; at < words.size();) {
    EventBuffer batch;
    ASSERT_TRUE(one.decode(words, Tail::kWhole, batch, at).ok());
    EXPECT_LT(batch.size(), 1100u);
    out.insert(out.end(), batch.events().begin(), batch.events().end());
  }
  ASSERT_EQ(out.size(), 10022u);
  for (std::size_t i = 0; i < 5000; ++i) {
    EXPECT_EQ(out[1 + 2 * i].address, 0x100 + 8 * i);
    EXPECT_EQ(out[2 + 2 * i].address, 0x8001 + i);
  }
  EXPECT_EQ(out[10001].thread, 1u);
  EXPECT_EQ(out[10001].address, 0x200u);
  EXPECT_EQ(out[10021].address, 0x20u);
  catalog_ = {};
  Taken taken;
  ASSERT_TRUE(execute_all(decoder(), words, false, taken).ok());
  EXPECT_EQ(taken.events, out);
}

TEST_F(DecoderTest, ALoopThatGathers) {
  const std::uint64_t before = segment({{site(EventKind::kRead, 8), word()}});
  const std::uint64_t slot =
      loop({.always = 1,
            .items = {moving(EventKind::kRead, 4, 4, word()), gathered(EventKind::kRead, 8),
                      following(EventKind::kWrite, 8, 1, 8)}});
  EXPECT_EQ(brief(decode({before, 0x10, slot, 3, 2, 0x100, 0x900, 0x700, before, 0x20})),
            "0:r(10,8) 0:r(108,4) 0:r(900,8) 0:w(908,8) 0:r(10c,4) 0:r(700,8) 0:w(708,8) "
            "0:r(110,4) 0:r(20,8)");
  // Killed while it ran.
  EXPECT_EQ(brief(decode({before, 0x10, slot, ~std::uint64_t{900}, 0, 0x100, 0x900, 0x700, 0, 0},
                         Tail::kCut)),
            "0:r(10,8)");
  // Ended by a fault in the second round.
  EXPECT_EQ(brief(decode({slot | 1, ~std::uint64_t{2}, 0, 0x100, 0x900, 0x7000,
                          0x7000 | HEDDLE_FAULT_KNOWN, before, 0x20})),
            "0:r(100,4) 0:r(900,8) 0:w(908,8) 0:r(104,4) 0:r(7000,8) 0:r(20,8)");
  // More rounds than there are words.
  for (const std::uint64_t rounds : {std::uint64_t{5}, std::uint64_t{1} << 40}) {
    catalog_ = {};
    std::vector<Event> out;
    const std::vector<std::uint64_t> words = after_unit({slot, rounds, 0, 0x100, 0x900});
    EXPECT_FALSE(decode_all(decoder(), words, Tail::kWhole, out).ok());
    EXPECT_TRUE(out.empty());
  }
}

TEST_F(DecoderTest, AnImpossibleLoopIsDamage) {
  const std::uint64_t slot = loop();
  std::vector<Event> out;
  const Status status =
      decode_all(decoder(), after_unit({slot, std::uint64_t{1} << 60, 0x100}), Tail::kWhole, out);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("loop"), std::string::npos);
  EXPECT_TRUE(out.empty());
}

TEST_F(DecoderTest, SegmentsThatAreImpliedComeFirst) {
  const auto flow_segment = [&] {
    own_.segments.emplace_back();
    return slot(HEDDLE_SLOT_FLOW_SEGMENT, static_cast<std::uint32_t>(own_.segments.size() - 1), 0);
  };
  const std::uint64_t head = flow_segment();
  const std::uint64_t test = flow_segment();
  const SiteId read = site(EventKind::kRead, 8);
  const std::uint64_t body = segment({{read, word()}});
  slots_[1].before = -1;  // the test follows the head, the body the test
  slots_[2].before = -1;
  std::vector<Event> out;
  const std::vector<std::uint64_t> words =
      after_unit({body, 0x100, head, body | 1, 0, kFlags + read, switch_to(2), test});
  ASSERT_TRUE(decode_all(decoder(true), words, Tail::kWhole, out).ok());
  std::vector<std::pair<EventKind, std::uint64_t>> kinds;
  for (const Event& event : out) kinds.emplace_back(event.kind, event.value);
  const auto segment_event = [&](std::uint64_t of) {
    return std::pair(EventKind::kSegment, std::uint64_t{own_.segments.size()} - 3 + of);
  };
  const auto h = segment_event(0);
  const auto t = segment_event(1);
  const auto b = segment_event(2);
  EXPECT_EQ(kinds, (std::vector{h, t, b, std::pair(EventKind::kRead, std::uint64_t{0}), h, h, t, b,
                                h, t}));
  Taken taken;
  catalog_ = {};
  ASSERT_TRUE(execute_all(decoder(true), words, true, taken).ok());
  EXPECT_EQ(taken.events, out);
}

TEST_F(DecoderTest, AnImpossibleOrderOfSegmentsIsDamage) {
  own_.segments.emplace_back();
  const std::uint64_t head =
      slot(HEDDLE_SLOT_FLOW_SEGMENT, static_cast<std::uint32_t>(own_.segments.size() - 1), 0);
  segment({{site(EventKind::kRead, 8), word()}});
  // Before all slots, behind them, in a circle; and none.
  for (const std::int16_t before : std::initializer_list<std::int16_t>{-1, 2, 1, 0}) {
    slots_[0].before = before;
    slots_[1].before = -1;
    std::vector<Event> out;
    const Status status = decode_all(decoder(), after_unit({head}), Tail::kWhole, out);
    EXPECT_EQ(status.ok(), before == 0) << before;
    catalog_ = {};
  }
}

TEST_F(DecoderTest, ExecutionsStandForTheirEvents) {
  own_.symbols.emplace_back();
  LayoutItem range = word();
  range.dynamic_size = true;
  const SiteId first = site(EventKind::kRead, 8);
  const std::uint64_t simple = segment({{first, word()}, {site(EventKind::kWrite, 4), symbol(12)}});
  const std::uint64_t dynamic = segment({{site(EventKind::kWrite, 0), range}});
  own_.segments.emplace_back();
  const std::uint64_t flow =
      slot(HEDDLE_SLOT_FLOW_SEGMENT, static_cast<std::uint32_t>(own_.segments.size() - 1), 0);
  const FunctionId f = function("f");
  const std::uint64_t enter = slot(HEDDLE_SLOT_ENTER, f, 1);
  const std::uint64_t leave = slot(HEDDLE_SLOT_LEAVE, f, 0);
  const std::uint64_t body = segment({{first, word()}, {first, symbol(4)}}, f);
  const unsigned seed = test_seed();
  SCOPED_TRACE("HEDDLE_TEST_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 60; ++round) {
    std::vector<std::uint64_t> words;
    for (int i = 0; i < 2000; ++i) {
      switch (random() % 15) {
        case 0:
          words.push_back(switch_to(static_cast<ThreadId>(random() % 3)));
          break;
        case 12:
          words.insert(words.end(), {enter, kFlags + first, body, random() % 512, leave});
          break;
        case 13:
          words.insert(words.end(), {enter, kFlags + first, body, random() % 512});
          break;
        case 1:
          words.insert(words.end(), {dynamic, random() % 512, 1 + random() % 40});
          break;
        case 2:
          words.insert(words.end(), {enter, kFlags + first});
          break;
        case 3:
          words.push_back(leave);
          break;
        case 4:  // interrupted before its second item
          words.insert(words.end(), {simple | 1, random() % 512, kFlags + first + 1});
          break;
        case 5:
        case 6:
          words.push_back(flow);
          break;
        default:
          words.insert(words.end(), {simple, random() % 512});
      }
    }
    for (const bool at_flow : {false, true}) {
      catalog_ = {};
      const std::vector<Event> expected = decode(words, Tail::kWhole, at_flow);
      catalog_ = {};
      Taken taken;
      ASSERT_TRUE(execute_all(decoder(at_flow), after_unit(words), at_flow, taken).ok());
      ASSERT_EQ(taken.events, expected);
      ASSERT_GT(taken.in_executions, 0u);
    }
  }
}

TEST_F(DecoderTest, CallsInWhichNothingPassesDoNotPass) {
  const SiteId read = site(EventKind::kRead, 8);
  const std::uint64_t slot_of_read = segment({{read, word()}});
  const FunctionId f = function("f");
  const std::uint64_t enter = slot(HEDDLE_SLOT_ENTER, f, 1);
  const std::uint64_t leave = slot(HEDDLE_SLOT_LEAVE, f, 0);
  Taken taken;
  const auto filter = shared_filter(taken);
  const std::vector<std::uint64_t> words =
      after_unit({slot_of_read, 0x100, switch_to(1), enter, kFlags, enter, kFlags, slot_of_read,
                  0x200, leave, enter, kFlags, slot_of_read, 0x100, leave, leave});
  ASSERT_TRUE(filter_all(decoder(), words, *filter).ok());
  std::string kinds;
  for (const Event& event : taken.events) {
    kinds += event.kind == EventKind::kEnter ? '(' : event.kind == EventKind::kLeave ? ')' : 'r';
  }
  EXPECT_EQ(kinds, "((rr))");
  EXPECT_EQ(filter->accesses(), 3u);
}

// One record calls the judge of the next: where a compiler makes no jump of that, a block must not
// be deeper than the stack.
TEST_F(DecoderTest, ABlockOfTheShortestRecords) {
  own_.symbols.emplace_back();
  const std::uint64_t two[] = {segment({{site(EventKind::kWrite, 8), symbol(0)}}),
                               segment({{site(EventKind::kRead, 4), symbol(8)}})};
  std::vector<std::uint64_t> words;
  for (std::size_t i = 0; i < HEDDLE_BLOCK_WORDS; ++i) words.push_back(two[i % 2]);
  Taken taken;
  const auto filter = shared_filter(taken);
  ASSERT_TRUE(filter_all(decoder(), after_unit(words), *filter).ok());
  EXPECT_EQ(filter->accesses(), HEDDLE_BLOCK_WORDS);
  EXPECT_TRUE(taken.events.empty());
}

TEST_F(DecoderTest, DamagedWords) {
  const SiteId first = site(EventKind::kRead, 8);
  LayoutItem range = word();
  range.dynamic_size = true;
  own_.symbols.emplace_back();
  const std::uint64_t one = segment({{first, word()}, {site(EventKind::kWrite, 0), range}});
  const std::uint64_t enter =
      slot(HEDDLE_SLOT_ENTER, function("f", Function::kMethod | Function::kCatchesJumps), 3);
  const std::vector<std::uint64_t> good =
      after_unit({one,
                  0x10,
                  0x20,
                  9,
                  enter,
                  kFlags + first,
                  1,
                  2,
                  one | 1,
                  0x10,
                  0,
                  0,
                  kFlags + first,
                  switch_to(3),
                  HEDDLE_HEADER(HEDDLE_REC_CONTINUE, 0, 1, 0, 0, 0),
                  kFlags,
                  one,
                  1,
                  2,
                  3,
                  HEDDLE_HEADER(HEDDLE_REC_TEXT, 0, 3, 0, 0, 0),
                  2,
                  5,
                  0x41,
                  HEDDLE_HEADER(HEDDLE_REC_STACK, 0, 2, 0, 0, 0),
                  0,
                  0x1234});
  const unsigned seed = test_seed();
  SCOPED_TRACE("HEDDLE_TEST_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::uint64_t> words = good;
    for (auto changes = 1 + random() % 3; changes > 0; --changes) {
      words[random() % words.size()] ^= std::uint64_t{1} << random() % 64;
    }
    if (random() % 4 == 0) words.resize(1 + random() % words.size());
    std::vector<Event> out;
    const Tail tail = random() % 2 == 0 ? Tail::kWhole : Tail::kCut;
    switch (random() % 3) {
      case 0:
        (void)decode_all(decoder(false), words, tail, out);
        break;
      case 1:
        (void)decode_all(decoder(true), words, tail, out);
        break;
      default: {
        const bool flow = random() % 2 == 0;
        Taken taken;
        (void)execute_all(decoder(flow), words, flow, taken, tail);
      }
    }
  }
}

TEST_F(DecoderTest, DamagedUnits) {
  const SiteId first = site(EventKind::kRead, 8);
  own_.symbols.emplace_back();
  segment({{first, word()}, {first, symbol(4)}, {first, from_item(0, 4)}});
  slot(HEDDLE_SLOT_ENTER, function("f"), 1);
  loop();
  const unsigned seed = test_seed();
  SCOPED_TRACE("HEDDLE_TEST_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  const std::vector<std::uint8_t> good = unit_copy();
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::uint8_t> bytes = good;
    for (auto changes = 1 + random() % 3; changes > 0; --changes) {
      bytes[random() % bytes.size()] ^= static_cast<std::uint8_t>(1u << random() % 8);
    }
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    Catalog catalog;
    UnitTable units(catalog);
    (void)units.add(kUnit, bytes);
  }
}

}  // namespace
}  // namespace heddle::collect
