// Records of several segments: what follows from them is what was written, and they are few.
#include "recorded.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heddle::test {
namespace {

using ::testing::ElementsAre;

class Joined : public ::testing::TestWithParam<const char*> {
 protected:
  static Recorded record(const char* source, bool flow = false, bool points = false) {
    Recorded recorded = run_recorded(
        source, {.flags = GetParam(), .language = "c++", .flow = flow, .points = points});
    EXPECT_EQ(recorded.error, "");
    EXPECT_EQ(recorded.status, 0);
    return recorded;
  }
};

constexpr const char* kAccessors = R"(
  struct Vec {
    Vec(int n) : size_(n) {}
    int size() const { return size_; }
    int& at(int i) { return cells_[i]; }
    int size_;
    int cells_[4] = {};
  };
  Vec vec(4);
  int out;
  static void work(Vec* v) { out = v->at(1) + v->size(); }
  int main() {
    work(&vec);
    return 0;
  })";

TEST_P(Joined, CallsOfAccessorsAreUnitsOfWork) {
  for (const bool points : {false, true}) {
    const Recorded run = record(kAccessors, false, points);
    std::vector<std::string> work = run.lines();
    work.erase(work.begin(), std::find(work.begin(), work.end(), "enter work(Vec*)"));
    EXPECT_THAT(work, ElementsAre("enter work(Vec*)", "read ? 4", "enter Vec::size() const",
                                  "read Vec.size_ 4", "leave Vec::size() const", "write out 4",
                                  "leave work(Vec*)", "leave main"));
  }
}

TEST_P(Joined, ACallAndWhatIsAroundItAreOneRecord) {
  const Recorded run = record(R"(
    struct Cell {
      int get() const { return value; }
      void set(int v) { value = v; }
      int value;
    };
    Cell cell;
    int out;
    static void work(Cell* c) {
      out = c->get();
      c->set(out + 1);
      out = c->get();
    }
    int main() {
      work(&cell);
      return 0;
    })");
  EXPECT_EQ(run.count("enter Cell::get() const"), 2u);
  EXPECT_EQ(run.count("enter Cell::set(int)"), 1u);
  EXPECT_EQ(run.count("write out 4"), 2u);
  // Enter of main and of work, what work does, and the two Leaves.
  EXPECT_EQ(run.records, 5u);
}

// By either way into the last block, with and without the scheduler's points.
TEST_P(Joined, ABlockTakesUpTheRecordBeforeIt) {
  constexpr const char* kDiamond = R"(
    struct S { int a, b, c, d; } s;
    __attribute__((noinline)) void diamond(S* p, bool left) {
      int x = p->a;
      if (left) x += p->b; else x -= p->c;
      p->d = x;
    }
    int main(int argc, char**) {
      diamond(&s, argc == 1);
      diamond(&s, argc == 2);
      return 0;
    })";
  for (const bool points : {false, true}) {
    const Recorded run = record(kDiamond, false, points);
    EXPECT_THAT(run.lines(), ElementsAre("enter main", "enter diamond(S*, bool)", "read S.a 4",
                                         "read S.b 4", "write S.d 4", "leave diamond(S*, bool)",
                                         "enter diamond(S*, bool)", "read S.a 4", "read S.c 4",
                                         "write S.d 4", "leave diamond(S*, bool)", "leave main"));
    EXPECT_EQ(run.records, 8u);
  }
  // At the flow level its segments are there, in their order.
  const Recorded flow = record(kDiamond, true);
  std::vector<SegmentId> segments;
  for (const RecordedStep& step : flow.steps) {
    if (step.kind == RecordedStep::Kind::kSegment &&
        flow.catalogs[0].function(flow.catalogs[0].segment(step.segment).function).flags == 0 &&
        !flow.catalogs[0].segment(step.segment).items.empty()) {
      segments.push_back(flow.catalogs[0].segment(step.segment).block);
    }
  }
  ASSERT_EQ(segments.size(), 6u);
  EXPECT_EQ(segments[0], segments[3]);
  EXPECT_NE(segments[1], segments[4]);
  EXPECT_EQ(segments[2], segments[5]);
}

// Arms that write records of different lengths, and a loop around them.
TEST_P(Joined, WhatCannotGoOnBeginsAnew) {
  const Recorded run = record(R"(
    struct S { int a, b, c, d; S* next; } s;
    __attribute__((noinline)) int walk(S* p) {
      int sum = 0;
      for (; p != nullptr; p = p->next) {
        if (p->a == 0) sum += p->b;
        else if (p->c != 0) sum += p->c + p->next->d;
        sum += p->d;
      }
      return sum;
    }
    S many[3] = {{0, 1, 2, 3, &many[1]}, {1, 2, 3, 4, &many[2]}, {1, 2, 0, 4, nullptr}};
    int main() { return walk(many) == 3 + 1 + 3 + 4 + 4 + 4 ? 0 : 1; })");
  std::vector<std::string> walked = run.lines();
  std::erase_if(walked, [](const std::string& line) { return !line.starts_with("read S."); });
  EXPECT_THAT(walked, ElementsAre("read S.a 4", "read S.b 4", "read S.d 4", "read S.next 8",  //
                                  "read S.a 4", "read S.c 4", "read S.c 4", "read S.next 8",  //
                                  "read S.d 4", "read S.d 4", "read S.next 8",                //
                                  "read S.a 4", "read S.c 4", "read S.d 4", "read S.next 8"));
}

INSTANTIATE_TEST_SUITE_P(Levels, Joined, ::testing::Values("-O0", "-O1", "-O2"),
                         [](const auto& level) { return std::string(level.param + 1); });

}  // namespace
}  // namespace heddle::test
