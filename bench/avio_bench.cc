// How fast AVIO reads a trace, on one core: accesses per second with 4 and with 64 threads, and the
// memory of its shadow.
//
//   heddle_bench_avio [TRACE…] [--benchmark_…]
//
// Without traces, two made-up ones: each thread runs for a slice, mostly on data of its own (8- and
// 4-byte accesses, streaming and scattered; 2.5 MB over all threads), one access in six on tables
// that all threads read and sometimes write, calls and locked updates in between.
#include "detect/avio/avio.h"
#include "trace/memory.h"
#include "trace/source.h"

#include <cstdio>
#include <random>
#include <string>

#include <benchmark/benchmark.h>

namespace heddle {
namespace {

constexpr std::size_t kEvents = 8'000'000;

class Maker {
 public:
  explicit Maker(ThreadId threads) : threads_(threads), random_(threads), stream_(threads) {
    for (int n = 0; n < 2000; ++n) trace_.catalog.sites.emplace_back();
    for (int n = 0; n < 50; ++n) trace_.catalog.functions.emplace_back();
  }

  Trace make() {
    while (trace_.events.size() < kEvents) slice(static_cast<ThreadId>(below(threads_)));
    return std::move(trace_);
  }

 private:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }

  Event& add(EventKind kind, ThreadId thread, Address address, unsigned size) {
    Event event;
    event.kind = kind;
    event.thread = thread;
    event.address = address;
    event.size = size & 0xff;
    // A structure is accessed by a few lines, private data by many.
    const bool shared = address >= 0x8000000 && address < 0x10000000;
    event.site = static_cast<SiteId>(shared ? (address >> 17) % 64 + (is_write(kind) ? 64 : 0)
                                            : 200 + below(1800));
    trace_.events.push_back(event);
    return trace_.events.back();
  }
  EventKind kind() { return below(3) == 0 ? EventKind::kWrite : EventKind::kRead; }

  void slice(ThreadId thread) {
    const Address own = 0x10000000 + thread * Address{0x200000};
    for (std::uint64_t left = 20 + below(400); left > 0; --left) {
      const std::uint64_t dice = below(100);
      if (dice < 40) {
        stream_[thread] = (stream_[thread] + 8) % (0x200000 / threads_);
        add(kind(), thread, own + stream_[thread], 8);
      } else if (dice < 60) {
        add(kind(), thread, own + 0x100000 + below(0x20000 / threads_) * 4, 4);
      } else if (dice < 80) {
        add(kind(), thread, own + 0x1c0000 + below(64) * 8, 8);
      } else if (dice < 96) {
        const EventKind what = below(20) == 0 ? EventKind::kWrite : EventKind::kRead;
        add(what, thread, 0x8000000 + below(0x4000) * 8, 8);
      } else if (dice < 98) {
        const std::uint64_t function = 1 + below(49);
        Event& enter = add(EventKind::kEnter, thread, 0, 0);
        enter.value = function;
        enter.site = static_cast<SiteId>(function);
        add(kind(), thread, own + 0x1d0000, 8);
        add(EventKind::kLeave, thread, 0, 0).value = function;
      } else {
        const Address lock = 0x9000000 + below(16) * 64;
        add(EventKind::kAcquire, thread, lock, 0);
        add(EventKind::kRead, thread, lock + 40, 8);
        add(EventKind::kWrite, thread, lock + 40, 8);
        add(EventKind::kRelease, thread, lock, 0);
      }
    }
  }

  ThreadId threads_;
  std::mt19937_64 random_;
  std::vector<std::uint64_t> stream_;
  Trace trace_;
};

void read_trace(benchmark::State& state, const Trace& trace) {
  std::int64_t accesses = 0;
  for (const Event& event : trace.events) accesses += is_access(event.kind) ? 1 : 0;
  avio::Shadow::Memory memory;
  std::size_t findings = 0;
  constexpr std::size_t kBatch = 65536;
  for ([[maybe_unused]] const auto round : state) {
    avio::Avio avio(trace.catalog, {});
    for (std::size_t at = 0; at < trace.events.size(); at += kBatch) {
      const std::size_t count = std::min(kBatch, trace.events.size() - at);
      avio.on({trace.events.data() + at, count}, at);
    }
    findings = avio.finish().size();
    benchmark::DoNotOptimize(findings);
    state.PauseTiming();  // counting what is there is no part of the work
    memory = avio.memory();
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * accesses);
  state.counters["findings"] = static_cast<double>(findings);
  state.counters["shared"] = static_cast<double>(memory.shared);
  state.counters["shadow_MB"] = static_cast<double>(memory.bytes) / 1e6;
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  using namespace heddle;
  benchmark::Initialize(&argc, argv);
  static std::vector<std::unique_ptr<Trace>> traces;
  const auto add = [&](const std::string& name, Trace trace) {
    traces.push_back(std::make_unique<Trace>(std::move(trace)));
    const Trace& kept = *traces.back();
    benchmark::RegisterBenchmark(name.c_str(), [&kept](benchmark::State& state) {
      read_trace(state, kept);
    })->Unit(benchmark::kMillisecond);
  };
  for (int n = 1; n < argc; ++n) {
    Result<std::unique_ptr<EventSource>> source = open_trace(argv[n]);
    Result<Trace> trace = source.ok() ? read_all(**source) : Result<Trace>(source.error());
    if (!trace.ok()) {
      std::fprintf(stderr, "heddle_bench_avio: %s\n", trace.error().message.c_str());
      return 2;
    }
    add(argv[n], std::move(*trace));
  }
  if (argc == 1) {
    add("made-up/4", Maker(4).make());
    add("made-up/64", Maker(64).make());
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
