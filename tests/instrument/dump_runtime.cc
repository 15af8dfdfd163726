/* The plugin's test harness: a runtime that implements the symbols of abi.h for one process, keeps
 * every word, and at exit writes them with the units' tables to the file that HEDDLE_DUMP names.
 * Every thread has blocks of its own, so tests of the plugin look at what a thread records, not at
 * the order between threads.
 *
 *   file  = "HDUMP001" unit_count:u64 unit* block_count:u64 block* points
 *   unit  = address_of_slots:u64 address_of_flags:u64, then five byte strings (length:u64 bytes):
 *           slots, catalog, layout, symbols, name
 *   block = length:u64 word*        (length in bytes)
 *   points = length:u64 (address of the flag:u64 address:u64)* */
#include "abi/abi.h"
#include "runtime/record.h"
#include "runtime/say.h"
#include "runtime/sleds.h"
#include "runtime/stream.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS 16384
#define MAX_BLOCKS 4096
#define MAX_UNITS 256

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct heddle_unit* units[MAX_UNITS];
static unsigned unit_count;
static struct block {
  uint64_t* words;
} blocks[MAX_BLOCKS];
static unsigned block_count;

__thread struct heddle_tls __heddle_tls
    __attribute__((tls_model("initial-exec"))) = {(uint64_t*)8, NULL, NULL, 0};
static __thread struct block* mine;
__thread heddle::rt::Scratch heddle::rt::heddle_scratch;  // no rounds: every full block comes here

static struct point {
  const uint8_t* flag;
  const void* address;
} points[1 << 16];
static uint64_t point_count;

static void dump_bytes(FILE* out, const void* bytes, uint64_t size) {
  fwrite(&size, 8, 1, out);
  fwrite(bytes, 1, size, out);
}

static void dump(void) {
  const char* path = getenv("HEDDLE_DUMP");
  if (path == NULL) return;
  FILE* out = fopen(path, "wb");
  if (out == NULL) abort();
  fwrite("HDUMP001", 8, 1, out);
  uint64_t count = unit_count;
  fwrite(&count, 8, 1, out);
  for (unsigned i = 0; i < unit_count; ++i) {
    const struct heddle_unit* unit = units[i];
    uint64_t address = (uint64_t)unit->slots;
    fwrite(&address, 8, 1, out);
    address = (uint64_t)unit->site_flags;
    fwrite(&address, 8, 1, out);
    dump_bytes(out, unit->slots, unit->slot_count * sizeof(struct heddle_slot));
    dump_bytes(out, unit->catalog, unit->catalog_size);
    dump_bytes(out, unit->layout, unit->layout_size);
    dump_bytes(out, unit->symbols, unit->symbol_count * 8);
    dump_bytes(out, unit->name, strlen(unit->name));
  }
  count = block_count;
  fwrite(&count, 8, 1, out);
  for (unsigned i = 0; i < block_count; ++i) {
    uint64_t used = WORDS;
    while (used != 0 && blocks[i].words[used - 1] == 0) --used;
    dump_bytes(out, blocks[i].words, used * 8);
  }
  dump_bytes(out, points, point_count * sizeof(points[0]));
  fclose(out);
}

void __heddle_register(const struct heddle_unit* unit) {
  if (unit->abi_version != HEDDLE_ABI_VERSION || unit_count == MAX_UNITS) abort();
  pthread_mutex_lock(&lock);
  const char* flow = getenv("HEDDLE_DUMP_FLOW");
  if (flow != NULL && *flow == '1') heddle::rt::sleds_place_flows(unit);
  const char* points = getenv("HEDDLE_DUMP_POINTS");
  if (points != NULL && *points == '1') heddle::rt::sleds_place_all_points(unit);
  const char* loops = getenv("HEDDLE_DUMP_LOOPS");
  if (loops != NULL && *loops == '0') memset(unit->loop_rounds, 0, 8 * HEDDLE_LOOP_KINDS);
  if (unit_count == 0) atexit(dump);
  units[unit_count++] = unit;
  pthread_mutex_unlock(&lock);
}

void __heddle_unregister(const struct heddle_unit* unit) {
  (void)unit;
}

static void new_block(void) {
  pthread_mutex_lock(&lock);
  if (block_count == MAX_BLOCKS) abort();
  mine = &blocks[block_count++];
  mine->words = static_cast<uint64_t*>(calloc(WORDS, 8));
  pthread_mutex_unlock(&lock);
  __heddle_tls.cursor = mine->words;
  __heddle_tls.limit = mine->words + WORDS - HEDDLE_SEGMENT_WORDS;
}

HEDDLE_PRESERVE uint64_t* __heddle_refill(uint64_t* cursor) {
  (void)cursor;
  new_block();
  return mine->words;
}

/* Moves the unfinished record to a new block now and then, as a switch of threads would. */
HEDDLE_PRESERVE uint64_t* __heddle_point(uint64_t* base, uint8_t* flag, const void* address) {
  pthread_mutex_lock(&lock);
  if (point_count < sizeof(points) / sizeof(points[0])) {
    points[point_count].flag = flag;
    points[point_count].address = address;
  }
  const uint64_t number = point_count++;
  pthread_mutex_unlock(&lock);
  if (number % 5 != 2 || block_count > MAX_BLOCKS / 2) return base;
  new_block();
  memcpy(mine->words, base, HEDDLE_SEGMENT_WORDS * 8);
  memset(base, 0, HEDDLE_SEGMENT_WORDS * 8);
  return mine->words;
}

/* Every access asks at length. */
extern "C" bool heddle_access_passes(const uint8_t*, const void*) {
  return false;
}

// What the wrappers of the C library's functions need: ranges are kept as in the real runtime.
namespace heddle::rt {

constinit thread_local int t_inside = 0;

bool dormant() {
  return false;
}

void say(const char* format, ...) {
  fputs(format, stderr);
  abort();
}

void rec_event(EventKind kind, LockMode, OpOutcome, uint32_t small, uint64_t address, uint64_t,
               const void*) {
  if (__heddle_tls.cursor > __heddle_tls.limit) new_block();
  uint64_t* at = __heddle_tls.cursor;
  at[0] = HEDDLE_HEADER(HEDDLE_REC_EVENT, kind, 1, 0, 0, small);
  at[1] = address;
  __heddle_tls.cursor = at + 2;
}

}  // namespace heddle::rt
