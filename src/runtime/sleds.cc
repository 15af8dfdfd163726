#include "runtime/sleds.h"

#include "runtime/raw.h"
#include "runtime/say.h"

#include <string.h>
#include <sys/mman.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

// runtime/inline_entry.cc
extern "C" void __heddle_point_inline();
extern "C" void __heddle_flow_inline();

namespace heddle::rt {
namespace {

constexpr uint8_t kSled[] = HEDDLE_SLED_BYTES;
constexpr size_t kPage = 4096;
constexpr size_t kPointDetour = 32;  // at most 9 + 6 + 5 + 4 bytes
constexpr size_t kFlowDetour = 64;   // 9 + 6 + 12 + 4 + 9 + 5, then 6 + 8

// No-operations, by their size.
constexpr size_t kLongest = 9;
constexpr uint8_t kNothing[kLongest + 1][kLongest] = {
    {},
    {},
    {},
    {0x0f, 0x1f, 0x00},
    {0x0f, 0x1f, 0x40, 0x00},
    {0x0f, 0x1f, 0x44, 0x00, 0x00},
    {},
    {0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00},
    {0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00},
    {0x0f, 0x1f, 0x40, 0x00, 0x0f, 0x1f, 0x44, 0x00, 0x00},
};

// Head of a mapping of detours: the detours call through these.
struct Arena {
  void (*point)();
  void (*flow)();
};

// Detours whose module may be gone when its table's address comes again. What finds no room here
// stays mapped.
struct Placed {
  const uint8_t* table;
  void* detours;
  size_t bytes;
};
Placed g_placed[256];

bool failed(long result) {
  return result < 0 && result > -static_cast<long>(kPage);
}

// An entry's four bytes: a distance from where they stand.
uint8_t* target_of(const uint8_t* distance) {
  int32_t value;
  memcpy(&value, distance, sizeof value);
  return const_cast<uint8_t*>(distance) + value;
}

struct Entry {
  uint8_t* sled;
  uint8_t* subject;  // flag or slot
  const uint8_t* address_code;
  size_t address_size;
  const uint8_t* next;
};

Entry point_entry(const uint8_t* at) {
  return {target_of(at), target_of(at + 4), at + 9, at[8], at + 9 + at[8]};
}

Entry flow_entry(const uint8_t* at) {
  return {target_of(at), target_of(at + 4), nullptr, 0, at + 8};
}

// Machine code, written from front to back.
class Writer {
 public:
  explicit Writer(uint8_t* at) : at_(at) {}

  template <typename... Bytes>
  void bytes(Bytes... values) {
    ((*at_++ = static_cast<uint8_t>(values)), ...);
  }
  void number(int64_t value) {
    const auto low = static_cast<int32_t>(value);
    memcpy(at_, &low, sizeof low);
    at_ += sizeof low;
  }
  // Four bytes that end `behind` bytes before the place they are counted from.
  void distance(const void* target, size_t behind) {
    number(static_cast<const uint8_t*>(target) - (at_ + behind));
  }
  uint8_t* at() { return at_; }

 private:
  uint8_t* at_;
};

// leaq address, %r11, from where the compiler put it to here. Only an address relative to the
// instruction's own changes: ModRM with mod 0 and rm 5.
void copy_address_code(Writer& out, const Entry& entry) {
  uint8_t* start = out.at();
  for (size_t i = 0; i < entry.address_size; ++i) out.bytes(entry.address_code[i]);
  if (entry.address_size != 7 || (start[2] & 0xc7) != 0x05) return;
  Writer(start + 3).distance(target_of(entry.address_code + 3) + 4, 4);
}

void write_point_detour(uint8_t* detour, const Entry& entry, const Arena* arena) {
  Writer out(detour);
  copy_address_code(out, entry);
  out.bytes(0xff, 0x15);  // callq *point(%rip)
  out.distance(&arena->point, 4);
  out.bytes(0xe9);  // jmp go_on
  out.distance(entry.sled + sizeof kSled, 4);
  out.distance(entry.subject, 0);
}

void write_flow_detour(uint8_t* detour, const Entry& entry, const Arena* arena) {
  const char* self;
  __asm__("movq %%fs:0, %0" : "=r"(self));
  const int64_t cursor = reinterpret_cast<const char*>(&__heddle_tls.cursor) - self;
  const int64_t limit = reinterpret_cast<const char*>(&__heddle_tls.limit) - self;
  const uint8_t* go_on = entry.sled + sizeof kSled;
  uint8_t* full = detour + 45;
  Writer out(detour);
  out.bytes(0x64, 0x4c, 0x3b, 0x1c, 0x25);  // cmpq %fs:limit, %r11
  out.number(limit);
  out.bytes(0x0f, 0x87);  // ja full
  out.distance(full, 4);
  out.bytes(0x50);              // pushq %rax
  out.bytes(0x48, 0x8d, 0x05);  // leaq slot(%rip), %rax
  out.distance(entry.subject, 4);
  out.bytes(0x49, 0x89, 0x03);              // movq %rax, (%r11)
  out.bytes(0x58);                          // popq %rax
  out.bytes(0x49, 0x83, 0xc3, 0x08);        // addq $8, %r11
  out.bytes(0x64, 0x4c, 0x89, 0x1c, 0x25);  // movq %r11, %fs:cursor
  out.number(cursor);
  out.bytes(0xe9);  // jmp
  out.distance(go_on, 4);
  Writer slow(full);
  slow.bytes(0xff, 0x15);  // callq *flow(%rip)
  slow.distance(&arena->flow, 4);
  slow.distance(entry.subject, 0);
  slow.distance(go_on, 0);
}

// Memory within reach of a 32-bit distance from all of [first, last].
void* map_near(uint64_t first, uint64_t last, size_t bytes) {
  constexpr uint64_t kReach = uint64_t{1} << 30;
  constexpr uint64_t kStep = uint64_t{1} << 20;
  const auto attempt = [&](uint64_t at) -> void* {
    const long mapping = raw_syscall(SYS_mmap, static_cast<long>(at), static_cast<long>(bytes),
                                     PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (failed(mapping)) return nullptr;
    if (static_cast<uint64_t>(mapping) == at) return reinterpret_cast<void*>(mapping);
    raw_syscall(SYS_munmap, mapping, static_cast<long>(bytes));  // a kernel that took it for a hint
    return nullptr;
  };
  const uint64_t below = first / kPage * kPage;
  const uint64_t above = (last + kPage) / kPage * kPage;
  for (uint64_t gap = kStep; gap < kReach; gap += kStep) {
    if (below > gap + bytes) {
      if (void* found = attempt(below - gap - bytes)) return found;
    }
    if (void* found = attempt(above + gap)) return found;
  }
  return nullptr;
}

// The bytes of an instruction with one memory operand, relative to a register, and no immediate:
// movq register, offset(register), or prefetchw offset(register).
size_t instruction_size(const uint8_t* start) {
  const uint8_t* at = start;
  if ((*at & 0xf0) == 0x40) ++at;  // REX
  at += *at == 0x0f ? 2 : 1;       // the operation
  const uint8_t operand = *at++;
  if ((operand & 7) == 4) ++at;  // SIB
  const unsigned form = operand >> 6;
  at += form == 1 ? 1 : form == 2 ? 4 : 0;  // the offset
  return static_cast<size_t>(at - start);
}

bool is_nothing(const uint8_t* at) {
  return at[0] == 0x0f && at[1] == 0x1f;
}

// What [first, last] of a table's wanted entries span: their sleds, and sleds with subjects.
struct Extent {
  uint64_t first = ~uint64_t{0};
  uint64_t last = 0;

  void add(const uint8_t* place) {
    const auto at = reinterpret_cast<uint64_t>(place);
    if (at < first) first = at;
    if (at > last) last = at;
  }
};

// Code is writable from here to the end of the scope, if the system allows it.
class OpenCode {
 public:
  explicit OpenCode(const Extent& extent, size_t last_bytes)
      : start_(static_cast<long>(extent.first / kPage * kPage)),
        bytes_(static_cast<long>(extent.last + last_bytes) - start_),
        error_(raw_syscall(SYS_mprotect, start_, bytes_, PROT_READ | PROT_WRITE | PROT_EXEC)) {}
  ~OpenCode() {
    if (error_ == 0) raw_syscall(SYS_mprotect, start_, bytes_, PROT_READ | PROT_EXEC);
  }
  OpenCode(const OpenCode&) = delete;
  OpenCode& operator=(const OpenCode&) = delete;
  long error() const { return error_; }

 private:
  long start_;
  long bytes_;
  long error_;
};

void refuse(const char* what, long error) {
  static bool said = false;
  if (!said) {
    say("this system does not let a program change its own code (%s: error %ld): "
        "plain accesses are no scheduling points, and the flow level is incomplete",
        what, -error);
  }
  said = true;
}

// Whether another unit of the module has seen to this table. Detours of a module that is gone and
// had its table in the same place are dropped.
template <typename Read>
bool is_placed(const uint8_t* table, const uint8_t* end, Read read) {
  if (table == end) return true;
  if (memcmp(read(table).sled, kSled, sizeof kSled) != 0) return true;
  for (Placed& placed : g_placed) {
    if (placed.table != table) continue;
    raw_syscall(SYS_munmap, as_long(placed.detours), static_cast<long>(placed.bytes));
    placed = {};
  }
  return false;
}

// Turns the wanted sleds of a table into jumps to detours.
template <typename Read, typename Wanted, typename Write>
void place(const uint8_t* table, const uint8_t* end, size_t detour_bytes, Read read, Wanted wanted,
           Write write) {
  const auto is_open = [&](const Entry& entry) {
    return wanted(entry) && memcmp(entry.sled, kSled, sizeof kSled) == 0;
  };
  Extent sleds;
  Extent all;
  size_t count = 0;
  for (const uint8_t* at = table; at < end;) {
    const Entry entry = read(at);
    at = entry.next;
    if (!is_open(entry)) continue;
    ++count;
    sleds.add(entry.sled);
    all.add(entry.sled);
    all.add(entry.subject);
    all.add(at);
  }
  if (count == 0) return;

  constexpr size_t kHead = (sizeof(Arena) + 63) / 64 * 64;
  const size_t bytes = (kHead + count * detour_bytes + kPage - 1) / kPage * kPage;
  void* memory = map_near(all.first, all.last, bytes);
  if (memory == nullptr) {
    refuse("mmap", -12);
    return;
  }
  auto* arena = static_cast<Arena*>(memory);
  *arena = {__heddle_point_inline, __heddle_flow_inline};
  const OpenCode code(sleds, sizeof kSled);
  if (code.error() != 0) {
    refuse("mprotect", code.error());
    raw_syscall(SYS_munmap, as_long(memory), static_cast<long>(bytes));
    return;
  }
  for (Placed& placed : g_placed) {
    if (placed.table != nullptr) continue;
    placed = {table, memory, bytes};
    break;
  }
  uint8_t* detour = static_cast<uint8_t*>(memory) + kHead;
  for (const uint8_t* at = table; at < end;) {
    const Entry entry = read(at);
    at = entry.next;
    if (!is_open(entry)) continue;
    write(detour, entry, arena);
    Writer jump(entry.sled);
    jump.bytes(0xe9);
    jump.distance(detour, 4);
    detour += detour_bytes;
  }
  raw_syscall(SYS_mprotect, as_long(memory), static_cast<long>(bytes), PROT_READ | PROT_EXEC);
}

}  // namespace

void sleds_place_all_points(const heddle_unit* unit) {
  if (is_placed(unit->points, unit->points_end, point_entry)) return;
  place(
      unit->points, unit->points_end, kPointDetour, point_entry, [](const Entry&) { return true; },
      write_point_detour);
}

void sleds_place_flagged_points(const heddle_unit* unit) {
  const uint8_t* flags = unit->site_flags;
  const uint64_t count = unit->site_count;
  if (memchr(flags, 1, count) == nullptr) return;
  place(
      unit->points, unit->points_end, kPointDetour, point_entry,
      [&](const Entry& entry) {
        return entry.subject >= flags && entry.subject < flags + count && *entry.subject != 0;
      },
      write_point_detour);
}

void sleds_place_flows(const heddle_unit* unit) {
  if (is_placed(unit->flows, unit->flows_end, flow_entry)) return;
  place(
      unit->flows, unit->flows_end, kFlowDetour, flow_entry, [](const Entry&) { return true; },
      write_flow_detour);
}

void sleds_drop_words(const heddle_unit* unit) {
  constexpr size_t kEntry = 4;
  if (unit->words == unit->words_end) return;
  if (is_nothing(target_of(unit->words))) return;  // another unit of the module has seen to it
  Extent instructions;
  for (const uint8_t* at = unit->words; at < unit->words_end; at += kEntry) {
    instructions.add(target_of(at));
  }
  const OpenCode code(instructions, kLongest);
  if (code.error() != 0) return;  // they stay, and cost what they cost
  for (const uint8_t* at = unit->words; at < unit->words_end; at += kEntry) {
    uint8_t* instruction = target_of(at);
    const size_t size = instruction_size(instruction);
    memcpy(instruction, kNothing[size], size);
  }
}

}  // namespace heddle::rt
