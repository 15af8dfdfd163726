#include "runtime/region.h"

#include "runtime/collector_link.h"
#include "runtime/no_size_signal.h"
#include "runtime/options.h"
#include "runtime/raw.h"
#include "runtime/say.h"

#include <initializer_list>

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>

namespace heddle::rt {
namespace {

constexpr uint64_t kBlockBytes = HEDDLE_BLOCK_WORDS * sizeof(uint64_t);
static_assert(sizeof(heddle_shared) <= HEDDLE_HEADER_BYTES);

// Programs assume that the lowest numbers are free, and some close all they do not know up to a few
// hundred: ours live above.
int move_up(int fd) {
  for (const int base : {900, 200, 40}) {
    const long high = raw_syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, base);
    if (high >= 0) {
      raw_close(fd);
      return static_cast<int>(high);
    }
  }
  return fd;
}

uint32_t block_count() {
  const uint64_t wanted = rt_option(ring);
  return static_cast<uint32_t>(wanted < 2 ? 2 : wanted > 65536 ? 65536 : wanted);
}

void set_size(Region* region, uint32_t blocks) {
  region->block_count = blocks;
  region->mapped_bytes = HEDDLE_HEADER_BYTES + blocks * kBlockBytes;
}

// Gives the shared memory its size, or one that is smaller where there is a limit. Returns what
// ftruncate does.
long make_room(Region* region) {
  const NoSizeSignal guard;
  for (;;) {
    const long sized =
        raw_syscall(SYS_ftruncate, region->memory_fd, static_cast<long>(region->mapped_bytes));
    if (sized == 0 || region->block_count < 4) return sized;
    set_size(region, region->block_count / 2);
  }
}

bool map_region(Region* region) {
  set_size(region, block_count());
  long mapping;
  if (region->private_memory) {
    mapping = raw_syscall(SYS_mmap, 0, static_cast<long>(region->mapped_bytes),
                          PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  } else {
    const long fd = raw_syscall(SYS_memfd_create, as_long("heddle"), MFD_CLOEXEC);
    if (fd < 0) {
      say("no shared memory (memfd_create: error %ld); the run is not recorded", -fd);
      return false;
    }
    region->memory_fd = move_up(static_cast<int>(fd));
    if (const long sized = make_room(region); sized < 0) {
      say("no room for %lu bytes of shared memory (error %ld); the run is not recorded; "
          "raise the limit on file sizes",
          region->mapped_bytes, -sized);
      return false;
    }
    mapping = raw_syscall(SYS_mmap, 0, static_cast<long>(region->mapped_bytes),
                          PROT_READ | PROT_WRITE, MAP_SHARED, region->memory_fd, 0);
  }
  if (mapping < 0 && mapping > -4096) {
    say("cannot map %lu bytes of shared memory (error %ld); the run is not recorded",
        region->mapped_bytes, -mapping);
    return false;
  }
  region->shared = reinterpret_cast<heddle_shared*>(mapping);
  region->blocks = reinterpret_cast<uint64_t*>(mapping + HEDDLE_HEADER_BYTES);
  return true;
}

// A sleeping collector has all but the newest blocks behind it. It is woken for half a ring at a
// time: a wake-up costs as much as the decoding of some thousand words, and a collector that nobody
// wakes looks by itself every few milliseconds.
void wake_collector(const Region* region) {
  heddle_shared* shared = region->shared;
  // Pairs with the collector's: set collector_sleeps, then look at submitted again.
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (__atomic_load_n(&shared->collector_sleeps, __ATOMIC_RELAXED) == 0) return;
  const uint64_t waiting = shared->submitted - __atomic_load_n(&shared->released, __ATOMIC_RELAXED);
  if (waiting >= region->block_count / 2) {
    futex_wake(reinterpret_cast<const uint32_t*>(&shared->submitted), 1, true);
  }
}

// Whether the other end of the socket still exists. Costs a system call: asked only after a long
// wait.
bool collector_alive(const Region* region) {
  pollfd descriptor = {region->socket_fd, POLLIN, 0};
  timespec none = {0, 0};
  const long ready = raw_syscall(SYS_ppoll, as_long(&descriptor), 1, as_long(&none), 0, 8);
  return ready == 0 || (ready > 0 && (descriptor.revents & (POLLHUP | POLLERR | POLLNVAL)) == 0);
}

// Whether the collector takes what it is given: waits for its word, which an own one has given by
// the time that anything depends on it.
bool is_welcome(Region* region) {
  if (!region->unanswered) return true;
  region->unanswered = false;
  if (collector_welcomes(region->socket_fd)) return true;
  __atomic_store_n(&region->shared->collector_gone, 1, __ATOMIC_RELEASE);
  return false;
}

bool wait_for_free_block(Region* region) {
  heddle_shared* shared = region->shared;
  for (;;) {
    const uint64_t released = __atomic_load_n(&shared->released, __ATOMIC_ACQUIRE);
    if (shared->submitted - released < region->block_count) return true;
    if (!is_welcome(region)) return false;
    if (__atomic_load_n(&shared->collector_gone, __ATOMIC_ACQUIRE) != 0) return false;
    __atomic_store_n(&shared->target_sleeps, 1, __ATOMIC_SEQ_CST);
    long waited = 0;
    if (__atomic_load_n(&shared->released, __ATOMIC_SEQ_CST) == released) {
      const timespec timeout = {0, 200'000'000};
      waited = futex_wait(reinterpret_cast<const uint32_t*>(&shared->released),
                          static_cast<uint32_t>(released), &timeout, true);
    }
    __atomic_store_n(&shared->target_sleeps, 0, __ATOMIC_RELAXED);
    if (waited == -ETIMEDOUT && !collector_alive(region)) {
      __atomic_store_n(&shared->collector_gone, 1, __ATOMIC_RELEASE);
      return false;
    }
  }
}

}  // namespace

bool region_open(Region* region, heddle_level level, uint32_t parent_pid) {
  *region = Region();
  region->private_memory = strcmp(rt_option(mode), "memory") == 0;
  if (!map_region(region)) {
    region_drop(region);
    return false;
  }
  heddle_shared* shared = region->shared;
  shared->magic = HEDDLE_SHARED_MAGIC;
  shared->abi_version = HEDDLE_ABI_VERSION;
  shared->pid = raw_getpid();
  shared->parent_pid = parent_pid;
  shared->block_words = HEDDLE_BLOCK_WORDS;
  shared->block_count = region->block_count;
  shared->ring_offset = HEDDLE_HEADER_BYTES;
  shared->side_offset = region->mapped_bytes;
  shared->level = level;
  if (region->private_memory) return true;

  const CollectorLink link = connect_collector(region->memory_fd, parent_pid != 0);
  if (link.socket_fd < 0) {
    region_drop(region);
    return false;
  }
  region->socket_fd = move_up(link.socket_fd);
  region->own_collector = region->unanswered = link.started_here;
  return true;
}

void region_drop(Region* region) {
  if (region->shared != nullptr) {
    raw_syscall(SYS_munmap, as_long(region->shared), static_cast<long>(region->mapped_bytes));
  }
  if (region->memory_fd >= 0) raw_close(region->memory_fd);
  if (region->socket_fd >= 0) raw_close(region->socket_fd);
  *region = Region();
}

void region_submit(Region* region) {
  heddle_shared* shared = region->shared;
  __atomic_store_n(&shared->submitted, shared->submitted + 1, __ATOMIC_RELEASE);
  if (!region->private_memory) wake_collector(region);
}

uint64_t* region_next_block(Region* region) {
  heddle_shared* shared = region->shared;
  if (!region->private_memory && !wait_for_free_block(region)) return nullptr;
  uint64_t* block =
      region->blocks + (shared->submitted % region->block_count) * uint64_t{HEDDLE_BLOCK_WORDS};
  // The first round finds fresh pages, and nobody reads a private ring.
  if (shared->submitted >= region->block_count && !region->private_memory) {
    memset(block, 0, kBlockBytes);
  }
  return block;
}

uint64_t region_append(Region* region, const Part* parts, size_t count, uint64_t* length) {
  static const char kZeros[8] = {};
  const NoSizeSignal guard;
  heddle_shared* shared = region->shared;
  const uint64_t start = shared->side_offset + shared->side_used;
  uint64_t at = start;
  for (size_t i = 0; i < count; ++i) {
    const char* data = static_cast<const char*>(parts[i].data);
    size_t left = parts[i].size;
    while (left > 0) {
      const long written = raw_syscall(SYS_pwrite64, region->memory_fd, as_long(data),
                                       static_cast<long>(left), static_cast<long>(at));
      if (written <= 0) return 0;
      data += written;
      left -= static_cast<size_t>(written);
      at += static_cast<uint64_t>(written);
    }
    const uint64_t padding = (8 - at % 8) % 8;
    if (padding != 0) {
      raw_syscall(SYS_pwrite64, region->memory_fd, as_long(kZeros), static_cast<long>(padding),
                  static_cast<long>(at));
      at += padding;
    }
  }
  __atomic_store_n(&shared->side_used, at - shared->side_offset, __ATOMIC_RELEASE);
  *length = at - start;
  return start;
}

void region_wait_for_collector(Region* region) {
  if (!region->own_collector || region->socket_fd < 0 || !is_welcome(region)) return;
  // The collector says nothing more: what arrives is the end of the connection. It may have
  // megabytes to compress and write, and a stuck one must not keep the program for ever.
  for (int seconds = 0; seconds < 60 && collector_alive(region); ++seconds) {
    pollfd descriptor = {region->socket_fd, POLLIN, 0};
    timespec one = {1, 0};
    raw_syscall(SYS_ppoll, as_long(&descriptor), 1, as_long(&one), 0, 8);
    if ((descriptor.revents & (POLLHUP | POLLERR | POLLIN)) != 0) return;
  }
}

}  // namespace heddle::rt
