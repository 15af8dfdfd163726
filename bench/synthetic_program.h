// Events of a program that does not exist, as fast as they can be made: some hundred loops of
// a few thousand sites, run by several threads that take turns. For benches of the trace code.
#pragma once

#include "trace/memory.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace heddle::bench {

struct SyntheticOptions {
  ThreadId threads = 4;
  std::uint32_t loops = 500;
  std::uint32_t irregular_percent = 10;  // of the accesses that start at an address of their own
  bool segments = false;                 // the flow level
  std::uint32_t turn = 5000;             // events, on average, until another thread runs
};

class SyntheticProgram {
 public:
  explicit SyntheticProgram(const SyntheticOptions& options, std::uint64_t seed = 1)
      : options_(options), random_(seed), threads_(options.threads) {
    for (std::uint32_t i = 0; i < options.loops; ++i) add_loop();
    for (State& state : threads_) start_loop(state);
  }

  const Catalog& catalog() const { return catalog_; }

  // Replaces `events` by `count` (or a few more) new ones.
  void make(std::vector<Event>& events, std::size_t count) {
    events.clear();
    while (events.size() < count) {
      if (below(options_.turn) < 8) thread_ = static_cast<ThreadId>(below(options_.threads));
      iterate(threads_[thread_], events);
    }
  }

 private:
  enum class Walk : std::uint8_t { kScalar, kStride, kField, kAnywhere };
  struct Access {
    Event event;
    Walk walk;
    Address start;
    std::uint64_t step;
  };
  struct Loop {
    SegmentId segment;
    std::vector<Access> body;
  };
  struct State {
    std::size_t loop = 0;
    std::uint64_t trips = 0;
    std::uint64_t at = 0;
  };

  std::uint64_t below(std::uint64_t n) { return random_() % n; }

  void add_loop() {
    Loop loop;
    loop.segment = static_cast<SegmentId>(catalog_.segments.size());
    Segment segment;
    segment.function = static_cast<FunctionId>(catalog_.functions.size());
    Function function;
    function.name = catalog_.strings.intern("loop" + std::to_string(segment.function));
    catalog_.functions.push_back(function);
    for (std::uint64_t n = 3 + below(6); n > 0; --n) {
      Site site;
      site.function = segment.function;
      site.line = static_cast<std::uint32_t>(std::uint64_t{10} * loop.segment + n);
      site.kind = below(3) == 0 ? EventKind::kWrite : EventKind::kRead;
      site.size = below(2) == 0 ? 4 : 8;
      Access access;
      access.event.kind = site.kind;
      access.event.size = site.size & 0xff;
      access.event.site = static_cast<SiteId>(catalog_.sites.size());
      access.start = 0x7f0000000000 + below(1u << 30) * 8;
      access.step = site.size;
      const std::uint64_t dice = below(100);
      if (dice < options_.irregular_percent) {
        access.walk = Walk::kAnywhere;
      } else if (dice < 30) {
        access.walk = Walk::kScalar;
      } else if (dice < 60 && !loop.body.empty()) {
        access.walk = Walk::kField;
        access.step = 8 * (1 + below(8));
      } else {
        access.walk = Walk::kStride;
      }
      catalog_.sites.push_back(site);
      segment.items.push_back({access.event.site, kNoRegister, {}, {}});
      loop.body.push_back(access);
    }
    catalog_.segments.push_back(segment);
    loops_.push_back(loop);
  }

  void start_loop(State& state) {
    state.loop = below(loops_.size());
    state.trips = 1 + below(200);
    state.at = below(1000);
  }

  void iterate(State& state, std::vector<Event>& events) {
    if (state.trips == 0) start_loop(state);
    --state.trips;
    ++state.at;
    const Loop& loop = loops_[state.loop];
    if (options_.segments) {
      Event& event = events.emplace_back();
      event.kind = EventKind::kSegment;
      event.thread = thread_;
      event.value = loop.segment;
    }
    const Address mine = Address{thread_} << 32;
    Address previous = 0;
    for (const Access& access : loop.body) {
      Event& event = events.emplace_back(access.event);
      event.thread = thread_;
      switch (access.walk) {
        case Walk::kScalar:
          event.address = access.start;
          break;
        case Walk::kStride:
          event.address = access.start + mine + state.at * access.step;
          break;
        case Walk::kField:
          event.address = previous + access.step;
          break;
        case Walk::kAnywhere:
          event.address = access.start + 8 * below(1u << 20);
          break;
      }
      previous = event.address;
    }
  }

  SyntheticOptions options_;
  Catalog catalog_;
  std::minstd_rand random_;
  std::vector<Loop> loops_;
  std::vector<State> threads_;
  ThreadId thread_ = 0;
};

}  // namespace heddle::bench
