// Speed and memory of the detectors built on order: `race` and `serializability`.
//
//   heddle_bench_order [millions of events, 20] [repetitions, 5]
//
// The best repetition counts: the machine may have other things to do.
// 1,024 variables, 32 locks; every transaction takes one lock, reads and writes variables of that
// lock and lets go. First from a binary trace (written to the temporary folder): reading alone,
// then reading with a detector. Then cases meant to be awkward, and memory as a run grows, from a
// generator; there only the detector's time counts.
#include "detect/race/race.h"
#include "detect/serializability/serializability.h"
#include "trace/source.h"
#include "trace/writer.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

namespace heddle {
namespace {

constexpr Address kVariables = 0x10000;
constexpr Address kLocks = 0x80000;
constexpr std::uint32_t kVariableCount = 1024;
constexpr std::uint32_t kLockCount = 32;
constexpr std::size_t kBatch = std::size_t{64} * 1024;

// Of this process.
double seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double resident_megabytes() {
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  unsigned long total = 0;
  unsigned long resident = 0;
  const int read = file == nullptr ? 0 : std::fscanf(file, "%lu %lu", &total, &resident);
  if (file != nullptr) std::fclose(file);
  return read == 2
             ? static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6
             : 0;
}

Event make_event(EventKind kind, ThreadId thread, Address address) {
  Event event;
  event.kind = kind;
  event.thread = thread;
  event.address = address;
  event.size = is_access(kind) ? 8 : 0;
  event.site = is_access(kind) ? 1 : 2;
  return event;
}

// Threads run bursts of events; a thread that needs a lock another one holds lets others go first.
class Generator {
 public:
  virtual ~Generator() = default;
  virtual void next(std::vector<Event>& batch) = 0;
};

class WellLocked : public Generator {
 public:
  explicit WellLocked(std::uint32_t threads) : states_(threads), holders_(kLockCount, false) {}

  void next(std::vector<Event>& batch) override {
    batch.clear();
    while (batch.size() < kBatch) {
      const auto thread = static_cast<ThreadId>(random_() % states_.size());
      for (std::uint64_t burst = 1 + random_() % 16; burst != 0; --burst) {
        if (!step(thread, batch)) break;
      }
    }
  }

 private:
  struct State {
    int position = 0;  // 0 begin, 1 acquire, then accesses, release, end
    int accesses = 0;
    std::uint32_t lock = 0;
  };

  bool step(ThreadId thread, std::vector<Event>& batch) {
    State& state = states_[thread];
    switch (state.position) {
      case 0:
        state.lock = static_cast<std::uint32_t>(random_() % kLockCount);
        state.accesses = 2 + static_cast<int>(random_() % 10);
        batch.push_back(make_event(EventKind::kUnitBegin, thread, 0));
        break;
      case 1:
        if (holders_[state.lock]) return false;
        holders_[state.lock] = true;
        batch.push_back(make_event(EventKind::kAcquire, thread, lock_address(state)));
        break;
      case 2: {
        const std::uint64_t variable =
            state.lock + kLockCount * (random_() % (kVariableCount / kLockCount));
        batch.push_back(make_event(random_() % 3 == 0 ? EventKind::kWrite : EventKind::kRead,
                                   thread, kVariables + 8 * variable));
        if (--state.accesses > 0) return true;
        break;
      }
      case 3:
        holders_[state.lock] = false;
        batch.push_back(make_event(EventKind::kRelease, thread, lock_address(state)));
        break;
      default:
        batch.push_back(make_event(EventKind::kUnitEnd, thread, 0));
    }
    state.position = (state.position + 1) % 5;
    return true;
  }

  static Address lock_address(const State& state) { return kLocks + Address{64} * state.lock; }

  std::mt19937_64 random_{42};
  std::vector<State> states_;
  std::vector<bool> holders_;
};

// One thread is in one transaction from the first event to the last and has written what everybody
// reads, so every transaction of the others is its descendant: none could ever be collected.
class LongTransaction : public Generator {
 public:
  explicit LongTransaction(std::uint32_t threads) : threads_(threads) {}

  void next(std::vector<Event>& batch) override {
    batch.clear();
    if (first_) batch.push_back(make_event(EventKind::kUnitBegin, 0, 0));
    first_ = false;
    while (batch.size() < kBatch) {
      for (int i = 0; i < 4; ++i) {
        batch.push_back(make_event(EventKind::kWrite, 0, kVariables + 8 * (random_() % 64)));
      }
      const auto thread = static_cast<ThreadId>(1 + random_() % (threads_ - 1));
      batch.push_back(make_event(EventKind::kUnitBegin, thread, 0));
      for (int i = 0; i < 4; ++i) {
        batch.push_back(make_event(EventKind::kRead, thread, kVariables + 8 * (random_() % 64)));
        batch.push_back(make_event(EventKind::kWrite, thread,
                                   kVariables + 8 * (64 + thread * 8 + random_() % 8)));
      }
      batch.push_back(make_event(EventKind::kUnitEnd, thread, 0));
    }
  }

 private:
  std::uint32_t threads_;
  std::mt19937_64 random_{7};
  bool first_ = true;
};

// Tables that all threads read, without locks.
class ReadShared : public Generator {
 public:
  explicit ReadShared(std::uint32_t threads) : threads_(threads) {}

  void next(std::vector<Event>& batch) override {
    batch.clear();
    while (batch.size() < kBatch) {
      batch.push_back(make_event(EventKind::kRead, static_cast<ThreadId>(random_() % threads_),
                                 kVariables + 8 * (random_() % kVariableCount)));
    }
  }

 private:
  std::uint32_t threads_;
  std::mt19937_64 random_{3};
};

using MakeDetector = std::function<std::unique_ptr<Detector>(const Catalog&)>;

std::unique_ptr<Detector> race_detector(const Catalog& catalog) {
  return std::make_unique<race::RaceDetector>(catalog);
}
std::unique_ptr<Detector> serializability_detector(const Catalog& catalog) {
  return std::make_unique<serializability::SerializabilityDetector>(catalog);
}

void fill(Catalog& catalog) {
  catalog.sites.resize(3);
}

bool write_trace(const std::string& path, Generator& generator, std::uint64_t events) {
  Catalog catalog;
  fill(catalog);
  Result<std::unique_ptr<TraceWriter>> writer = TraceWriter::create(path, catalog);
  if (!writer.ok()) {
    fmt::print(stderr, "{}\n", writer.error().message);
    return false;
  }
  std::vector<Event> batch;
  for (std::uint64_t done = 0; done < events; done += batch.size()) {
    generator.next(batch);
    if (!(*writer)->add(batch).ok()) return false;
  }
  return (*writer)->finish().ok();
}

// Millions of events a second; without a detector, of reading alone.
double from_file(const std::string& path, const MakeDetector& make, std::size_t* findings) {
  Result<std::unique_ptr<EventSource>> source = open_trace(path);
  if (!source.ok()) return 0;
  const std::unique_ptr<Detector> detector = make ? make((*source)->catalog()) : nullptr;
  const double start = seconds();
  EventOrdinal first = 0;
  while (true) {
    Result<std::span<const Event>> batch = (*source)->next();
    if (!batch.ok() || batch->empty()) break;
    if (detector) detector->on(*batch, first);
    first += batch->size();
  }
  if (detector && findings != nullptr) *findings = detector->finish().size();
  return static_cast<double>(first) / (seconds() - start) / 1e6;
}

struct Measured {
  double speed = 0;
  double megabytes = 0;
  std::size_t findings = 0;
};

Measured from_generator(Generator& generator, const MakeDetector& make, std::uint64_t events) {
  Catalog catalog;
  fill(catalog);
  const std::unique_ptr<Detector> detector = make(catalog);
  std::vector<Event> batch;
  double time = 0;
  std::uint64_t done = 0;
  while (done < events) {
    generator.next(batch);
    const double start = seconds();
    detector->on(batch, done);
    time += seconds() - start;
    done += batch.size();
  }
  Measured out;
  out.megabytes = resident_megabytes();
  out.findings = detector->finish().size();
  out.speed = static_cast<double>(done) / time / 1e6;
  return out;
}

int run(std::uint64_t events, int repetitions) {
  const std::string path = (std::filesystem::temp_directory_path() /
                            fmt::format("heddle_bench_order.{}.heddle", getpid()))
                               .string();
  fmt::print(
      "from a binary trace, well-locked transactions, {} million events (million events/s)\n",
      events / 1'000'000);
  fmt::print("{:>8} {:>10} {:>10} {:>16} {:>10}\n", "threads", "reading", "race", "serializability",
             "findings");
  for (const std::uint32_t threads : {4u, 8u, 16u, 64u}) {
    WellLocked generator(threads);
    if (!write_trace(path, generator, events)) return 1;
    std::size_t races = 0;
    std::size_t cycles = 0;
    double reading = 0;
    double race = 0;
    double serializability = 0;
    for (int i = 0; i < repetitions; ++i) {
      reading = std::max(reading, from_file(path, nullptr, nullptr));
      race = std::max(race, from_file(path, race_detector, &races));
      serializability =
          std::max(serializability, from_file(path, serializability_detector, &cycles));
    }
    fmt::print("{:>8} {:>10.1f} {:>10.1f} {:>16.1f} {:>10}\n", threads, reading, race,
               serializability, races + cycles);
  }
  std::filesystem::remove(path);

  fmt::print("\nfrom a generator, the detector's time only (million events/s)\n");
  const auto line = [&](const char* what, Generator&& generator, const MakeDetector& make) {
    const Measured measured = from_generator(generator, make, events);
    fmt::print("{:<58} {:>8.1f}   {} findings\n", what, measured.speed, measured.findings);
  };
  line("race, 16 threads, well locked", WellLocked(16), race_detector);
  line("race, 64 threads, well locked", WellLocked(64), race_detector);
  line("race, 16 threads read the same tables", ReadShared(16), race_detector);
  line("race, 64 threads read the same tables", ReadShared(64), race_detector);
  line("race, 8 threads, every access races", LongTransaction(8), race_detector);
  line("serializability, 16 threads, well locked", WellLocked(16), serializability_detector);
  line("serializability, 64 threads, well locked", WellLocked(64), serializability_detector);
  line("serializability, one transaction as long as the run, 8", LongTransaction(8),
       serializability_detector);
  line("serializability, one transaction as long as the run, 64", LongTransaction(64),
       serializability_detector);

  fmt::print("\nmemory as the run grows, 16 threads, well locked (resident MB)\n");
  for (const std::uint64_t millions :
       {std::uint64_t{1}, std::uint64_t{10}, 5 * events / 1'000'000}) {
    WellLocked for_race(16);
    WellLocked for_serializability(16);
    const double race = from_generator(for_race, race_detector, millions * 1'000'000).megabytes;
    const double serializability =
        from_generator(for_serializability, serializability_detector, millions * 1'000'000)
            .megabytes;
    fmt::print("{:>6} million events   race {:>7.1f}   serializability {:>7.1f}\n", millions, race,
               serializability);
  }
  return 0;
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  const std::uint64_t millions = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 20;
  const int repetitions = argc > 2 ? std::atoi(argv[2]) : 5;
  if (millions == 0 || repetitions < 1) {
    fmt::print(stderr, "usage: heddle_bench_order [millions of events] [repetitions]\n");
    return 2;
  }
  return heddle::run(millions * 1'000'000, repetitions);
}
