// The virtual clock.
//
// The problem. A program that sleeps, waits with a time limit or looks at the clock branches on the
// time, and the time differs from run to run. Under control nobody needs to wait for it either.
//
// The virtual clock starts at the same moment in every run and moves
//   - by kNsPerPoint at every scheduling point,
//   - by kNsPerRead when it is read (more, when a thread does nothing but read it: a busy wait),
//   - by kNsWasted when a thread loses its turn and nobody else is ready,
//   - to the earliest deadline, when every thread waits.
//
// Invariant: it never goes back, and depends on the program's own steps only. The exception is the
// outside world: while a thread waits for something that may come from outside the process, time
// passes as it really does, or a time limit of five seconds for an answer would expire at once.
//
// CLOCK_REALTIME starts at kEpoch, CLOCK_MONOTONIC and kin at kBoot. CPU-time clocks are real. With
// real_time=1 all clocks are real, and deadlines are waited for.
#pragma once

#include <stdint.h>
#include <time.h>

namespace heddle::rt {

constexpr uint64_t kNsPerSecond = 1000000000ull;
constexpr uint64_t kNsPerPoint = 50;
constexpr uint64_t kNsPerRead = 1000;
constexpr uint64_t kNsWasted = 50000;
constexpr uint64_t kEpoch = 1704067200ull * kNsPerSecond;  // 2024-01-01 00:00:00 UTC
constexpr uint64_t kBoot = 1000 * kNsPerSecond;

void clock_init();

uint64_t clock_now();                        // of the monotonic clock, in nanoseconds
void clock_waste();                          // a turn was lost, nobody was ready
void clock_leap(uint64_t deadline);          // everybody waits
void clock_pass(uint64_t nanoseconds);       // real time went by while everybody waited
uint64_t clock_point_of(uint64_t deadline);  // the number of the point at which it is due

// The deadline, on the monotonic clock, of an absolute or relative time of the program's.
uint64_t clock_deadline(clockid_t clock, const timespec* absolute);
uint64_t clock_deadline_after(uint64_t nanoseconds);
bool clock_valid(const timespec* time);

void clock_gettime_real(clockid_t clock, timespec* out);

}  // namespace heddle::rt
