// Which accesses are scheduling points (option `points`).
//
// Instrumented code has a sled before each access (sleds.h), so that accesses that are none cost
// nothing. In the mode `shared` all of them are points, and an access counts only when its 8 bytes
// are shared, as far as a run can know without having seen its end:
//
//   - variables with static storage are, from the start: whoever knows their names can reach them;
//   - other memory is when a second owner touches it. A thread is a new owner after it has created
//     another thread: what it had before may be in the other's hands now, whoever comes first.
//
// Memory that is allocated anew, and the stack of a new thread, start again without owner: what was
// there before is chance. The shadow is exact (pages found by their number, no hashing of granules
// onto each other), because an address must never decide who runs.
//
// This file is compiled without vector registers: see heddle_access_passes.
#include "runtime/sched_point.h"
#include "runtime/schedule.h"
#include "runtime/sleds.h"
#include "runtime/stream.h"

#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>

namespace heddle::rt {
namespace {

using Owner = uint16_t;  // 0 nobody, kShared several, else a number of g_owner
constexpr Owner kShared = 0xffff;
Owner* g_owner;  // by thread; 0: to be chosen at its next access
Owner g_last_owner;

// Where the variables with static storage of the modules with instrumented code are.
struct Range {
  uint64_t begin, end;
};
constexpr unsigned kMostRanges = 256;
Range g_static[kMostRanges];
unsigned g_static_count;
constexpr unsigned kGranulesPerPage = 4096 / 8;

struct ShadowPage {
  uint64_t number;  // of the page of memory, plus one; 0: free
  Owner* owners;
};

constexpr uint64_t kPages = 1u << 22;  // 16 GiB of touched memory
ShadowPage* g_pages;
Owner* g_arena;
uint64_t g_arena_left;

template <typename T>
T* allocate(size_t bytes) {
  const long mapping = raw_syscall(SYS_mmap, 0, static_cast<long>(bytes), PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return mapping < 0 && mapping > -4096 ? nullptr : reinterpret_cast<T*>(mapping);
}

Owner* new_owners() {
  constexpr uint64_t kChunk = 1 << 20;
  if (g_arena_left == 0) {
    g_arena = allocate<Owner>(kChunk);
    if (g_arena == nullptr) return nullptr;
    g_arena_left = kChunk / (kGranulesPerPage * sizeof(Owner));
  }
  --g_arena_left;
  Owner* owners = g_arena;
  g_arena += kGranulesPerPage;
  return owners;
}

// The granules of a page that are within a range of static storage are shared.
void mark_static(uint64_t page, Owner* owners, const Range& range) {
  const uint64_t first = page * kGranulesPerPage;
  for (uint64_t i = 0; i < kGranulesPerPage; ++i) {
    const uint64_t address = (first + i) << 3;
    if (address >= range.begin && address < range.end) owners[i] = kShared;
  }
}

// Where a page's entry is, or may be made; nullptr: all are in use.
[[gnu::always_inline]] inline ShadowPage* entry_of(uint64_t page) {
  // Neighbours stay neighbours, so that a stack's pages share cache lines here.
  constexpr uint64_t kRun = 2048;
  const uint64_t start = ((page / kRun * 0x9e3779b97f4a7c15ull) >> 42) + page % kRun;
  for (uint64_t probe = 0; probe < kPages; ++probe) {
    ShadowPage* entry = &g_pages[(start + probe) % kPages];
    if (entry->number == page + 1 || entry->number == 0) return entry;
  }
  return nullptr;
}

// The owners of a page; nullptr when it was never touched.
[[gnu::always_inline]] inline Owner* find_owners(uint64_t page) {
  const ShadowPage* entry = entry_of(page);
  return entry != nullptr ? entry->owners : nullptr;
}

// The same, made when there are none; nullptr: without memory.
Owner* make_owners(uint64_t page) {
  ShadowPage* entry = entry_of(page);
  if (entry == nullptr || entry->number != 0) return entry != nullptr ? entry->owners : nullptr;
  entry->owners = new_owners();
  if (entry->owners == nullptr) return nullptr;
  entry->number = page + 1;
  for (unsigned i = 0; i < g_static_count; ++i) mark_static(page, entry->owners, g_static[i]);
  return entry->owners;
}

}  // namespace

void points_select(const char* mode) {
  if (mode == g_sched.points_mode) return;
  strncpy(g_sched.points_mode, mode, sizeof g_sched.points_mode - 1);
  g_sched.shared_only = strcmp(mode, "shared") == 0;
  if (g_sched.shared_only && g_pages == nullptr) {
    g_pages = allocate<ShadowPage>(kPages * sizeof(ShadowPage));
    g_owner = allocate<Owner>(kMaxThreads * sizeof(Owner));
    if (g_pages == nullptr || g_owner == nullptr) {
      say("points=shared: no address space for the shadow; all accesses are points");
      g_sched.shared_only = false;
    }
  }
  if (strcmp(mode, "sync") != 0 && strcmp(mode, "all") != 0 && strcmp(mode, "shared") != 0 &&
      strncmp(mode, "sites:", 6) != 0) {
    say("points=%s is none of sync, shared, all, sites:FILE; taken as sync", mode);
  }
}

namespace {

uint64_t granule_of(const volatile void* address) {
  return reinterpret_cast<uint64_t>(address) >> 3;
}

// `thread` touches what has this owner; true when it is not its alone.
[[gnu::always_inline]] inline bool touch(Owner* owner, const Thread* thread) {
  if (*owner == kShared) return true;
  Owner& self = g_owner[thread->id];
  if (self == 0) {
    g_last_owner = static_cast<Owner>(g_last_owner % (kShared - 1) + 1);
    self = g_last_owner;
  }
  if (*owner == self) return false;
  if (*owner == 0) {
    *owner = self;
    return false;
  }
  *owner = kShared;
  return true;
}

}  // namespace

bool access_is_shared(const volatile void* address) {
  const uint64_t granule = granule_of(address);
  Owner* owners = make_owners(granule / kGranulesPerPage);
  return owners == nullptr || touch(&owners[granule % kGranulesPerPage], t_self);
}

// Whether a plain access goes on at once: then it is counted, if it is a point. False, and nothing
// is done that asking at length does not do again: it must.
//
// Nearly every access that comes here goes on, and saving the vector registers would be most of its
// cost. So this calls nobody, and the compiler has no such registers to use.
extern "C" __attribute__((visibility("hidden"))) bool heddle_access_passes(const uint8_t* flag,
                                                                           const void* address) {
  Thread* self = t_self;
  if (self == nullptr || self != g_sched.holder || !g_sched.on || inside() || !has_cursor() ||
      g_sched.stop_watched || *flag == 0) {
    return false;
  }
  if (g_sched.shared_only) {
    const uint64_t granule = granule_of(address);
    Owner* owners = find_owners(granule / kGranulesPerPage);
    if (owners == nullptr) return false;
    if (!touch(&owners[granule % kGranulesPerPage], self)) {
      return note_place(self, address, flag, kPrivateSpinLimit);
    }
  }
  if (g_sched.points + 1 >= g_sched.next_action || self->async_cancel || self->once_depth != 0 ||
      !note_place(self, address, flag, kSpinLimit)) {
    return false;
  }
  count_point(self, PointKind::kAccess);
  g_sched.quick = self;
  return true;
}

void points_thread_created(const Thread* creator) {
  if (g_sched.shared_only) g_owner[creator->id] = 0;
}

void sched_fresh_memory(const void* address, size_t size) {
  if (!g_sched.shared_only || size == 0) return;
  uint64_t granule = reinterpret_cast<uint64_t>(address) >> 3;
  const uint64_t end = (reinterpret_cast<uint64_t>(address) + size + 7) >> 3;
  while (granule < end) {
    const uint64_t page = granule / kGranulesPerPage;
    const uint64_t page_end = (page + 1) * kGranulesPerPage;
    const uint64_t stop = page_end < end ? page_end : end;
    if (Owner* owners = find_owners(page)) {
      memset(&owners[granule % kGranulesPerPage], 0, (stop - granule) * sizeof(Owner));
    }
    granule = stop;
  }
}

namespace {

// Adds what the module that holds `unit` may write to. Called while the module is being loaded, so
// that this thread may ask the dynamic linker.
void note_static_storage(const heddle_unit* unit) {
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* wanted) {
        const auto inside = reinterpret_cast<uint64_t>(wanted);
        const auto in = [&](const ElfW(Phdr) & header, uint64_t address) {
          const uint64_t begin = info->dlpi_addr + header.p_vaddr;
          return header.p_type == PT_LOAD && address - begin < header.p_memsz;
        };
        bool found = false;
        for (unsigned i = 0; i < info->dlpi_phnum; ++i) found |= in(info->dlpi_phdr[i], inside);
        if (!found) return 0;
        for (unsigned i = 0; i < info->dlpi_phnum && g_static_count < kMostRanges; ++i) {
          const ElfW(Phdr)& header = info->dlpi_phdr[i];
          if (header.p_type != PT_LOAD || (header.p_flags & PF_W) == 0) continue;
          const uint64_t begin = info->dlpi_addr + header.p_vaddr;
          const Range range{begin, begin + header.p_memsz};
          bool known = false;
          for (unsigned k = 0; k < g_static_count; ++k) known |= g_static[k].begin == range.begin;
          if (!known) g_static[g_static_count++] = range;
        }
        return 1;
      },
      const_cast<heddle_unit*>(unit));
}

}  // namespace

// The sites are named by their numbers in the unit's catalog.
void each_named_site(const heddle_unit* unit, const char* path, void (*use)(uint8_t* flag)) {
  const long fd = raw_syscall(SYS_open, as_long(path), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    static bool said = false;
    if (!said) say("cannot read the sites in %s", path);
    said = true;
    return;
  }
  char buffer[8192];
  size_t kept = 0;
  for (;;) {
    const long got = raw_syscall(SYS_read, fd, as_long(buffer + kept),
                                 static_cast<long>(sizeof buffer - 1 - kept));
    if (got <= 0) break;
    kept += static_cast<size_t>(got);
    buffer[kept] = '\0';
    char* line = buffer;
    while (char* newline = strchr(line, '\n')) {
      *newline = '\0';
      char* space = strrchr(line, ' ');
      if (space != nullptr) {
        *space = '\0';
        uint64_t index = 0;
        for (const char* at = space + 1; *at >= '0' && *at <= '9'; ++at) {
          index = index * 10 + static_cast<uint64_t>(*at - '0');
        }
        if (strcmp(line, unit->name) == 0 && index < unit->site_count) {
          use(&unit->site_flags[index]);
        }
      }
      line = newline + 1;
    }
    kept = strlen(line);
    if (kept + 1 >= sizeof buffer) kept = 0;
    memmove(buffer, line, kept);
  }
  raw_close(static_cast<int>(fd));
}

bool sched_unit_registered(const heddle_unit* unit) {
  const char* mode = g_sched.points_mode;
  if (unit->site_flags == nullptr) return false;
  if (g_sched.shared_only) note_static_storage(unit);
  if (strcmp(mode, "all") == 0 || strcmp(mode, "shared") == 0) {
    memset(unit->site_flags, 1, unit->site_count);
    sleds_place_all_points(unit);
    stop_unit_registered(unit);
    return true;
  }
  const bool named = strncmp(mode, "sites:", 6) == 0;
  if (named) each_named_site(unit, mode + 6, [](uint8_t* flag) { *flag = 1; });
  const bool looked_at = stop_unit_registered(unit) || named;
  if (looked_at) sleds_place_flagged_points(unit);
  return looked_at;
}

}  // namespace heddle::rt
