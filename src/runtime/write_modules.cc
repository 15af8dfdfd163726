// Which files are loaded where: the collector finds the source of return addresses with it, also
// after the process is gone.
#include "runtime/record.h"
#include "runtime/stream.h"

#include <limits.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

namespace heddle::rt {
namespace {

unsigned long long g_known = 0;  // modules ever loaded, at the last look
unsigned g_skip = 0;             // of the list, those that were written

struct Walk {
  unsigned index;
  unsigned skip;
  unsigned long long loaded;
};

void write_module(const char* path, uint64_t bias, uint64_t first, uint64_t last) {
  size_t length = strlen(path);
  if (length > 1500) length = 1500;
  const uint32_t words = static_cast<uint32_t>((length + 7) / 8);
  uint64_t* at = make_room(5 + words);
  at[1] = bias;
  at[2] = first;
  at[3] = last;
  at[4] = length;
  memcpy(at + 5, path, length);
  __atomic_store_n(&at[0], HEDDLE_HEADER(HEDDLE_REC_MODULE, 0, 4 + words, 0, 0, 0),
                   __ATOMIC_RELEASE);
  __heddle_tls.cursor = at + 5 + words;
}

int visit(dl_phdr_info* info, size_t, void* opaque) {
  auto* walk = static_cast<Walk*>(opaque);
  walk->loaded = info->dlpi_adds;
  if (walk->loaded == g_known) return 1;
  uint64_t first = UINT64_MAX;
  uint64_t last = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD) continue;
    const uint64_t begin = info->dlpi_addr + header.p_vaddr;
    if (begin < first) first = begin;
    if (begin + header.p_memsz > last) last = begin + header.p_memsz;
  }
  char own[PATH_MAX];
  const char* path = info->dlpi_name;
  if (walk->index == 0 && path[0] == '\0') {
    const ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    own[length > 0 ? length : 0] = '\0';
    path = own;
  }
  if (walk->index >= walk->skip && path[0] == '/') write_module(path, info->dlpi_addr, first, last);
  ++walk->index;
  return 0;
}

}  // namespace

void write_modules() {
  if (!g_stream.recording || g_stream.region.private_memory || !has_cursor()) return;
  const Inside guard;
  // Modules that were unloaded move the rest of the list up: then some are written again, which
  // does no harm.
  Walk walk = {0, g_skip, 0};
  dl_iterate_phdr(visit, &walk);
  if (walk.index != 0) g_skip = walk.index;
  g_known = walk.loaded;
}

void forget_modules() {
  g_known = 0;
  g_skip = 0;
}

}  // namespace heddle::rt
