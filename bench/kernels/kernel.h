// What the kernels share: two optional arguments, a pool of threads, a barrier, a reproducible
// source of numbers, and one line of output.
//
//   kernel_NAME [--quick] [THREADS [SIZE]]
//
// --quick picks a size that ends within milliseconds. Exit status: 0 the result was right, 1 it was
// wrong, 2 wrong use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <thread>
#include <vector>

#include <pthread.h>

namespace kernel {

struct Options {
  unsigned threads = 2;
  std::size_t size = 0;
};

struct Sizes {
  std::size_t full;
  std::size_t quick;
};

inline Options parse(int argc, char** argv, Sizes sizes) {
  Options options{.threads = 2, .size = sizes.full};
  int position = 0;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--quick") == 0) {
      options.size = sizes.quick;
      continue;
    }
    char* end = nullptr;
    const unsigned long value = std::strtoul(argv[i], &end, 10);
    if (*end != '\0' || value == 0 || position == 2 || (position == 0 && value > 64)) {
      std::fprintf(stderr, "usage: %s [--quick] [THREADS (1-64) [SIZE]]\n", argv[0]);
      std::exit(2);
    }
    if (position++ == 0) {
      options.threads = static_cast<unsigned>(value);
    } else {
      options.size = value;
    }
  }
  return options;
}

// Calls body(0) ... body(threads - 1), each on a thread of its own.
template <class Body>
void run(unsigned threads, Body body) {
  std::vector<std::thread> pool;
  for (unsigned id = 0; id < threads; ++id) pool.emplace_back(body, id);
  for (std::thread& thread : pool) thread.join();
}

// The part of [0, count) that belongs to thread `id`.
struct Share {
  Share(std::size_t count, unsigned threads, unsigned id)
      : begin(count * id / threads), end(count * (id + 1) / threads) {}
  std::size_t begin;
  std::size_t end;
};

class Barrier {
 public:
  explicit Barrier(unsigned threads) { pthread_barrier_init(&barrier_, nullptr, threads); }
  ~Barrier() { pthread_barrier_destroy(&barrier_); }
  Barrier(const Barrier&) = delete;
  Barrier& operator=(const Barrier&) = delete;
  void wait() { pthread_barrier_wait(&barrier_); }

 private:
  pthread_barrier_t barrier_;
};

// splitmix64 (Steele, Lea, Flood, 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

// Says how the run went; its value is main's.
inline int verdict(const char* name, const Options& options, bool right) {
  std::printf("%s threads=%u size=%zu cpu=%.3fs %s\n", name, options.threads, options.size,
              static_cast<double>(std::clock()) / CLOCKS_PER_SEC, right ? "ok" : "WRONG");
  return right ? 0 : 1;
}

}  // namespace kernel
