#include "trace/call_stacks.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

Event enter(ThreadId thread, FunctionId function, SiteId site = 0) {
  Event event;
  event.kind = EventKind::kEnter;
  event.thread = thread;
  event.site = site;
  event.value = function;
  return event;
}

Event leave(ThreadId thread, FunctionId function) {
  Event event = enter(thread, function);
  event.kind = EventKind::kLeave;
  return event;
}

TEST(CallStacks, ThreadsThatMadeTheSameCallsShareAStack) {
  CallStacks stacks;
  for (const ThreadId thread : {0u, 1u}) {
    stacks.on(enter(thread, 7));
    stacks.on(enter(thread, 8, 3));
  }
  EXPECT_EQ(stacks.current(0), stacks.current(1));
  const auto frames = stacks.frames(stacks.current(0));
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].function, 8u);
  EXPECT_EQ(frames[0].call_site, 3u);
  EXPECT_EQ(frames[1].function, 7u);
}

TEST(CallStacks, ACallFromAnotherSiteIsAnotherStack) {
  CallStacks stacks;
  stacks.on(enter(0, 7));
  stacks.on(enter(0, 8, 3));
  const StackId first = stacks.current(0);
  stacks.on(leave(0, 8));
  stacks.on(enter(0, 8, 4));
  EXPECT_NE(stacks.current(0), first);
}

TEST(CallStacks, LeavingAnOuterFunctionDropsWhatLongjmpSkipped) {
  CallStacks stacks;
  stacks.on(enter(0, 7));
  const StackId outer = stacks.current(0);
  stacks.on(enter(0, 8));
  stacks.on(enter(0, 9));
  stacks.on(leave(0, 8));
  EXPECT_EQ(stacks.current(0), outer);
}

TEST(CallStacks, AStrayLeaveChangesNothing) {
  CallStacks stacks;
  stacks.on(enter(0, 7));
  const StackId before = stacks.current(0);
  stacks.on(leave(0, 99));
  EXPECT_EQ(stacks.current(0), before);
}

}  // namespace
}  // namespace heddle
