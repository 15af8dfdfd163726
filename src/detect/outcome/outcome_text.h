// What the runtime and the collector write about the end of a run, taken apart again.
//
// The text of an Outcome event is for people and for tools that know nothing else: a message, then
// what every thread waits for, then the stacks:
//
//     deadlock: every thread waits for another
//     thread 1 waits for mutex 0x55d0 held by thread 2
//         #0 shop+0x1249
//     thread 1
//       transfer(int) /home/me/shop.cc:14
//       0x7f0012
#pragma once

#include "finding/finding.h"
#include "trace/event.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::outcome {

struct ThreadAtEnd {
  ThreadId thread{};
  std::string doing;  // "waits for mutex 0x55d0 held by thread 2", "runs"
  std::string what;   // of a wait for an object: "mutex"; else empty
  Address object{};   // 0: none
  std::optional<ThreadId> holder;
  std::vector<Place> stack;  // innermost first
};

struct OutcomeText {
  std::string message;  // the first line that is about no thread
  std::vector<ThreadAtEnd> threads;
};

OutcomeText parse_outcome(std::string_view text);

}  // namespace heddle::outcome
