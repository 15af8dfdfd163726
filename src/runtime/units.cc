// The translation units of the process: kept in a list, copied into the side region.
#include "runtime/raw.h"
#include "runtime/record.h"
#include "runtime/say.h"
#include "runtime/sched.h"
#include "runtime/sleds.h"
#include "runtime/start.h"
#include "runtime/stream.h"

#include <string.h>
#include <sys/mman.h>

namespace heddle::rt {
namespace {

const heddle_unit** g_units = nullptr;
size_t g_count = 0;
size_t g_capacity = 0;

bool grow() {
  const size_t capacity = g_capacity == 0 ? 512 : 2 * g_capacity;
  const long mapping = raw_syscall(SYS_mmap, 0, static_cast<long>(capacity * sizeof(void*)),
                                   PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping < 0 && mapping > -4096) return false;
  auto** units = reinterpret_cast<const heddle_unit**>(mapping);
  if (g_count != 0) memcpy(units, g_units, g_count * sizeof(void*));
  if (g_units != nullptr) {
    raw_syscall(SYS_munmap, as_long(g_units), static_cast<long>(g_capacity * sizeof(void*)));
  }
  g_units = units;
  g_capacity = capacity;
  return true;
}

bool version_fits(const heddle_unit* unit) {
  if (unit->abi_version == HEDDLE_ABI_VERSION) return true;
  static bool said = false;
  if (!said) {
    say("%s was built by heddle's compilers of interface version %u, this runtime has version %u; "
        "the run is not recorded: rebuild the program",
        unit->name, unit->abi_version, HEDDLE_ABI_VERSION);
  }
  said = true;
  if (g_stream.region.shared != nullptr) g_stream.region.shared->foreign_units = 1;
  return false;
}

}  // namespace

size_t unit_count() {
  return g_count;
}
const heddle_unit* unit_at(size_t index) {
  return g_units[index];
}

void write_unit(const heddle_unit* unit) {
  if (!g_stream.recording || g_stream.region.private_memory || !has_cursor()) return;
  const Inside guard;
  heddle_unit_copy copy = {};
  copy.unit = *unit;
  copy.name_size = unit->name == nullptr ? 0 : strlen(unit->name);
  const Part parts[] = {{&copy, sizeof copy},
                        {unit->slots, unit->slot_count * sizeof(heddle_slot)},
                        {unit->catalog, unit->catalog_size},
                        {unit->layout, unit->layout_size},
                        {unit->symbols, unit->symbol_count * sizeof(void*)},
                        {unit->name, copy.name_size}};
  uint64_t length = 0;
  const uint64_t offset =
      region_append(&g_stream.region, parts, sizeof parts / sizeof parts[0], &length);
  if (offset == 0) {
    say("no room in shared memory for what %s says about itself; recording stops here",
        unit->name == nullptr ? "a unit" : unit->name);
    stream_stop();
    return;
  }
  uint64_t* at = make_room(4);
  at[1] = reinterpret_cast<uint64_t>(unit);
  at[2] = offset;
  at[3] = length;
  __atomic_store_n(&at[0], HEDDLE_HEADER(HEDDLE_REC_UNIT, 0, 3, 0, 0, 0), __ATOMIC_RELEASE);
  __heddle_tls.cursor = at + 4;
}

void write_all_units() {
  for (size_t i = 0; i < g_count; ++i) write_unit(g_units[i]);
}

}  // namespace heddle::rt

using namespace heddle::rt;

void __heddle_register(const heddle_unit* unit) {
  start();
  const Inside guard;
  if (dormant()) return;
  if (!version_fits(unit)) {
    stream_stop();
    return;
  }
  if (g_count == g_capacity && !grow()) {
    stream_stop();
    return;
  }
  g_units[g_count++] = unit;
  if (stream_records_flow()) sleds_place_flows(unit);
  if (!g_stream.recording) sleds_drop_words(unit);
  const bool looked_at = sched_unit_registered(unit);
  const bool none = looked_at || !rt_option(loops);
  if (none) unit->loop_rounds[HEDDLE_LOOP_WHOLE] = 0;
  if (none || stream_records_flow()) unit->loop_rounds[HEDDLE_LOOP_ACCESSES] = 0;
  write_modules();
  write_unit(unit);
}

void __heddle_unregister(const heddle_unit* unit) {
  const Inside guard;
  for (size_t i = 0; i < g_count; ++i) {
    if (g_units[i] != unit) continue;
    g_units[i] = g_units[--g_count];
    break;
  }
  if (!g_stream.recording || !has_cursor()) return;
  uint64_t* at = make_room(2);
  at[1] = reinterpret_cast<uint64_t>(unit);
  __atomic_store_n(&at[0], HEDDLE_HEADER(HEDDLE_REC_UNLOAD, 0, 1, 0, 0, 0), __ATOMIC_RELEASE);
  __heddle_tls.cursor = at + 2;
}
