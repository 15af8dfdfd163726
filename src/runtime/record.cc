#include "runtime/record.h"

#include "runtime/raw.h"
#include "runtime/say.h"
#include "runtime/sched.h"
#include "runtime/sched_point.h"
#include "runtime/stream.h"

#include <linux/membarrier.h>
#include <string.h>

using namespace heddle::rt;

__thread heddle_tls __heddle_tls = {reinterpret_cast<uint64_t*>(~uint64_t{0} - 7), nullptr, nullptr,
                                    0};

namespace heddle::rt {

Stream g_stream;
__thread Scratch heddle_scratch;
constinit thread_local int t_inside = 0;

namespace {

// Where words go that nobody wants. For threads that nobody controls: small enough to leave the
// first-level cache to the program, and several, because the threads of a dormant process run in
// parallel.
constexpr size_t kBehindLimit = HEDDLE_SEGMENT_WORDS + HEDDLE_BLOCK_SLACK;
constexpr size_t kScratchRoom = 512;
constexpr size_t kScratchBlocks = 64;
alignas(64) uint64_t g_scratch[kScratchBlocks][kScratchRoom + kBehindLimit];

// For the holder of a run that records nothing. Nearly all stores of words have been dropped
// (sleds.h), so its size is a matter of how often it is started over. kHolderRounds is how often
// that happens before somebody asks whether the thread should go on: fairness (sched_tick) needs
// that.
constexpr size_t kHolderRoom = 4096;
constexpr int64_t kHolderRounds = 8;
alignas(64) uint64_t g_holder_scratch[kHolderRoom + kBehindLimit];

uint64_t* use_scratch(heddle_tls* tls) {
  // Threads have their thread-local storage in different pages.
  uint64_t* scratch = g_scratch[(reinterpret_cast<uint64_t>(tls) >> 12) % kScratchBlocks];
  tls->cursor = scratch;
  tls->limit = scratch + kScratchRoom;
  heddle_scratch = {scratch, dormant() ? INT64_MAX : 0};
  return scratch;
}

void start_block(uint64_t* block) {
  __heddle_tls.cursor = block;
  g_stream.limit = block + HEDDLE_BLOCK_WORDS - HEDDLE_SEGMENT_WORDS - HEDDLE_BLOCK_SLACK;
}

void start_scratch() {
  __heddle_tls.cursor = g_holder_scratch;
  g_stream.limit = g_holder_scratch + kHolderRoom;
  heddle_scratch = {g_holder_scratch, kHolderRounds};
}

// A signal handler may close the limit at any moment, so it is looked at after the store.
void open_limit() {
  __heddle_tls.limit = g_stream.limit;
  if (signals_pending()) __atomic_store_n(&__heddle_tls.limit, nullptr, __ATOMIC_RELAXED);
}

// The current block is full (or is to be seen by the collector now).
void next_block() {
  if (!g_stream.recording) {
    start_scratch();
    return;
  }
  region_submit(&g_stream.region);
  __atomic_store_n(&g_stream.stalled, true, __ATOMIC_RELEASE);
  uint64_t* block = region_next_block(&g_stream.region);
  __atomic_store_n(&g_stream.stalled, false, __ATOMIC_RELEASE);
  if (block == nullptr) {
    stream_stop();
    start_scratch();
    return;
  }
  start_block(block);
}

// How many blocks have been filled since the last time, this one included: those that plain loops
// would have filled count, so that who loses its turn for writing too much does not depend on them.
uint64_t blocks_filled() {
  const uint64_t block = g_stream.recording ? HEDDLE_BLOCK_WORDS : kHolderRoom * kHolderRounds;
  const uint64_t skipped = __heddle_tls.skipped;
  __heddle_tls.skipped = skipped % block;
  return 1 + skipped / block;
}

void put_switch(ThreadId thread) {
  uint64_t* at = make_room(1);
  *at = HEDDLE_HEADER(HEDDLE_REC_SWITCH, 0, 0, 0, 0, thread);
  __heddle_tls.cursor = at + 1;
}

}  // namespace

uint64_t* make_room(uint32_t count) {
  static_assert(HEDDLE_BLOCK_SLACK < HEDDLE_SEGMENT_WORDS);
  RT_CHECK(count <= HEDDLE_SEGMENT_WORDS);
  if (__heddle_tls.cursor > g_stream.limit) {
    const Inside guard;
    next_block();
    open_limit();
  }
  return __heddle_tls.cursor;
}

bool stream_open(uint32_t parent_pid) {
  g_stream.pid = raw_getpid();
  g_stream.holder = &__heddle_tls;
  g_stream.thread = 0;
  heddle_scratch.rounds = 0;
  g_stream.recording = g_stream.level != HEDDLE_LEVEL_OFF &&
                       region_open(&g_stream.region, g_stream.level, parent_pid);
  raw_syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
  if (g_stream.recording) {
    uint64_t* block = region_next_block(&g_stream.region);
    if (block != nullptr) {
      start_block(block);
    } else {
      stream_stop();
    }
  }
  if (!g_stream.recording) start_scratch();
  open_limit();
  return g_stream.recording;
}

bool stream_records_flow() {
  return g_stream.recording && g_stream.level == HEDDLE_LEVEL_FLOW;
}

void stream_stop() {
  g_stream.recording = false;
}

void rec_event(EventKind kind, LockMode mode, OpOutcome outcome, uint32_t small, uint64_t address,
               uint64_t value, const void* pc) {
  if (!has_cursor() || !g_stream.recording) return;
  uint64_t* at = make_room(4);
  at[1] = address;
  at[2] = value;
  at[3] = reinterpret_cast<uint64_t>(pc);
  // The header last: a record whose header is zero does not exist for whoever reads after a kill.
  __atomic_store_n(
      &at[0],
      HEDDLE_HEADER(HEDDLE_REC_EVENT, static_cast<uint64_t>(kind), 3, static_cast<uint64_t>(mode),
                    static_cast<uint64_t>(outcome), small),
      __ATOMIC_RELEASE);
  __heddle_tls.cursor = at + 4;
}

void rec_decision(uint64_t point, ThreadId thread) {
  if (!has_cursor() || !g_stream.recording) return;
  uint64_t* at = make_room(3);
  at[1] = point;
  at[2] = thread;
  __atomic_store_n(&at[0], HEDDLE_HEADER(HEDDLE_REC_DECISION, 0, 2, 0, 0, 0), __ATOMIC_RELEASE);
  __heddle_tls.cursor = at + 3;
}

namespace {

void put_text(TextKind kind, uint32_t small, const char* text, size_t length) {
  if (!has_cursor() || !g_stream.recording) return;
  constexpr size_t kMost = 1504;
  if (length > kMost) length = kMost;
  const uint32_t words = static_cast<uint32_t>((length + 7) / 8);
  uint64_t* at = make_room(3 + words);
  at[1] = static_cast<uint64_t>(kind);
  at[2] = length;
  memcpy(at + 3, text, length);
  __atomic_store_n(&at[0], HEDDLE_HEADER(HEDDLE_REC_TEXT, 0, 2 + words, 0, 0, small),
                   __ATOMIC_RELEASE);
  __heddle_tls.cursor = at + 3 + words;
}

}  // namespace

void rec_text(TextKind kind, const char* text, size_t length) {
  put_text(kind, 0, text, length);
}

void rec_thread_name(ThreadId thread, const char* name) {
  put_text(TextKind::kThreadName, thread + 1, name, strlen(name));
}

void rec_stack(ThreadId thread, const void* const* frames, size_t count) {
  if (!has_cursor() || !g_stream.recording) return;
  constexpr size_t kMost = 200;
  if (count > kMost) count = kMost;
  uint64_t* at = make_room(static_cast<uint32_t>(2 + count));
  at[1] = thread;
  for (size_t i = 0; i < count; ++i) at[2 + i] = reinterpret_cast<uint64_t>(frames[i]);
  __atomic_store_n(&at[0], HEDDLE_HEADER(HEDDLE_REC_STACK, 0, 1 + count, 0, 0, 0),
                   __ATOMIC_RELEASE);
  __heddle_tls.cursor = at + 2 + count;
}

void rec_give() {
  if (!has_cursor()) return;
  g_stream.cursor = __heddle_tls.cursor;
  __heddle_tls.cursor = closed_cursor();
  __heddle_tls.limit = nullptr;
  __atomic_store_n(&g_stream.holder, nullptr, __ATOMIC_RELEASE);
}

void rec_take(ThreadId thread) {
  if (!has_cursor()) {
    __heddle_tls.cursor = g_stream.cursor;
    __atomic_store_n(&g_stream.holder, &__heddle_tls, __ATOMIC_RELEASE);
  }
  open_limit();
  if (thread == g_stream.thread) return;
  g_stream.thread = thread;
  put_switch(thread);
}

void rec_fence_holder() {
  heddle_tls* holder = __atomic_load_n(&g_stream.holder, __ATOMIC_ACQUIRE);
  if (holder != nullptr) __atomic_store_n(&holder->limit, nullptr, __ATOMIC_SEQ_CST);
  raw_syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

void rec_seize() {
  heddle_tls* holder = __atomic_load_n(&g_stream.holder, __ATOMIC_ACQUIRE);
  if (holder == nullptr) return;
  g_stream.cursor = __atomic_load_n(&holder->cursor, __ATOMIC_ACQUIRE);
  __atomic_store_n(&holder->cursor, closed_cursor(), __ATOMIC_RELEASE);
  __atomic_store_n(&g_stream.holder, nullptr, __ATOMIC_RELEASE);
}

bool rec_stalled() {
  return __atomic_load_n(&g_stream.stalled, __ATOMIC_ACQUIRE);
}

ThreadId rec_thread() {
  return g_stream.thread;
}

void rec_flush() {
  if (!has_cursor() || !g_stream.recording) return;
  const Inside guard;
  next_block();
  open_limit();
}

bool rec_finished() {
  return __atomic_load_n(&g_stream.finished, __ATOMIC_ACQUIRE);
}

void rec_finish(RunEnd end, uint64_t value, const char* text, const void* pc) {
  if (__atomic_exchange_n(&g_stream.finished, true, __ATOMIC_ACQ_REL)) return;
  if (g_stream.pid == raw_getpid()) sched_finish(end, value, text);
  if (!g_stream.recording || g_stream.pid != raw_getpid()) return;
  const Inside guard;
  heddle_shared* shared = g_stream.region.shared;
  shared->end_kind = static_cast<uint32_t>(end);
  shared->end_thread = g_stream.thread;
  shared->end_value = value;
  shared->end_pc = reinterpret_cast<uint64_t>(pc);
  size_t length = text == nullptr ? 0 : strlen(text);
  if (length > HEDDLE_END_TEXT) length = HEDDLE_END_TEXT;
  if (length != 0) memcpy(shared->end_text, text, length);
  shared->end_text_size = length;
  // Not submitted: what stands in the current block is read up to its first zero word, as after a
  // kill. So nobody has to own the cursor here.
  stream_stop();
  heddle_tls* holder = __atomic_load_n(&g_stream.holder, __ATOMIC_ACQUIRE);
  if (holder != nullptr) __atomic_store_n(&holder->limit, nullptr, __ATOMIC_RELEASE);
  __atomic_store_n(&shared->ended, 1, __ATOMIC_RELEASE);
  if (!g_stream.region.private_memory) {
    futex_wake(reinterpret_cast<const uint32_t*>(&shared->submitted), 1, true);
    region_wait_for_collector(&g_stream.region);
  }
}

}  // namespace heddle::rt

uint64_t* __heddle_refill(uint64_t* cursor) {
  heddle_tls* tls = &__heddle_tls;
  if (dormant()) return use_scratch(tls);
  if (in_synchronous_handler()) return use_scratch(tls);
  if (!has_cursor()) sched_need_baton();
  if (!has_cursor()) return use_scratch(tls);  // a thread that the runtime does not know
  deliver_pending_signals();
  sched_tick(blocks_filled());
  (void)cursor;
  const Inside guard;
  // Stopped in the meantime, the cursor may still stand in the ring.
  if (!g_stream.recording) start_scratch();
  while (tls->cursor > g_stream.limit) next_block();
  open_limit();
  return tls->cursor;
}

// The long way of __heddle_point (point_entry.cc).
extern "C" HEDDLE_PRESERVE __attribute__((visibility("hidden"))) uint64_t* heddle_point_at_length(
    uint64_t* base, uint8_t* flag, const void* address) {
  if (dormant() || inside()) return base;
  const PointKind kind =
      __atomic_load_n(flag, __ATOMIC_RELAXED) != 0 ? PointKind::kAccess : PointKind::kAtomic;
  if (!has_cursor()) return base;
  if (sched_point_passes(kind, address, flag)) return base;
  if (!g_stream.recording) {
    sched_point(kind, address, flag);
    return base;  // scratch: base stays usable, and the words mean nothing
  }
  // Pause the record, and keep what it says: the continuation repeats it.
  const auto* slot = reinterpret_cast<const heddle_slot*>(base[0]);
  const uint32_t words = slot->words;
  uint64_t known[HEDDLE_SEGMENT_WORDS];
  memcpy(known, base, (1 + words) * sizeof(uint64_t));
  base[1 + words] = reinterpret_cast<uint64_t>(flag);
  base[0] |= 1;
  __heddle_tls.cursor = base + 2 + words;
  sched_point(kind, address, flag);
  if (__heddle_tls.cursor == base + 2 + words && base[0] == (known[0] | 1)) {
    // Nobody came in between: the record goes on as if nothing had been.
    base[0] = known[0];
    base[1 + words] = 0;
    __heddle_tls.cursor = base;
    return base;
  }
  uint64_t* at = make_room(1);
  if (!g_stream.recording) return at;
  at[1] = reinterpret_cast<uint64_t>(flag);
  memcpy(at + 2, known, (1 + words) * sizeof(uint64_t));
  __atomic_store_n(&at[0], HEDDLE_HEADER(HEDDLE_REC_CONTINUE, 0, 1, 0, 0, 0), __ATOMIC_RELEASE);
  __heddle_tls.cursor = at + 2;
  return at + 2;
}
