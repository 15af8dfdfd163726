// What every example shares: how it fails, how often it goes round, and how it runs its threads.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace example {

// One line on stderr, then exit status 1. Called by main, once no other thread runs.
[[noreturn, gnu::format(printf, 1, 2)]] inline void fail(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::fputc('\n', stderr);
  std::exit(1);
}

// The first argument, or `standard`: small enough for a scheduler that visits every access. A bug
// that hides from a native run shows with more rounds.
inline int rounds(int argc, char** argv, int standard) {
  if (argc < 2) return standard;
  const int asked = std::atoi(argv[1]);
  if (asked > 0) return asked;
  std::fprintf(stderr, "usage: %s [ROUNDS]\n", argv[0]);
  std::exit(2);
}

// Runs the bodies, each on a thread of its own, and waits for all. A function of its own keeps what
// belongs to the threads out of the cache lines of the program's variables, where avio-h would see
// the two collide.
template <class... Bodies>
[[gnu::noinline]] void in_parallel(Bodies... bodies) {
  std::thread threads[] = {std::thread(bodies)...};
  for (std::thread& thread : threads) thread.join();
}

}  // namespace example
