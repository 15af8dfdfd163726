#include "runtime/modules.h"

#include "runtime/raw.h"
#include "runtime/say.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>

namespace heddle::rt {
namespace {

struct Mapping {
  unsigned long begin, end, offset;
  char name[48];
};
constexpr unsigned kMostMappings = 512;
Mapping g_mappings[kMostMappings];
unsigned g_mapping_count;

unsigned long parse_hex(const char** at) {
  unsigned long value = 0;
  for (;; ++*at) {
    const char c = **at;
    unsigned digit;
    if (c >= '0' && c <= '9') {
      digit = static_cast<unsigned>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      digit = static_cast<unsigned>(c - 'a') + 10;
    } else {
      return value;
    }
    value = value << 4 | digit;
  }
}

// "begin-end perms offset device inode  path"
void add_line(const char* line) {
  if (g_mapping_count == kMostMappings) return;
  Mapping* mapping = &g_mappings[g_mapping_count];
  mapping->begin = parse_hex(&line);
  if (*line++ != '-') return;
  mapping->end = parse_hex(&line);
  if (strlen(line) < 7) return;
  line += 6;
  mapping->offset = parse_hex(&line);
  const char* slash = strrchr(line, '/');
  if (slash == nullptr) return;
  strncpy(mapping->name, slash + 1, sizeof mapping->name - 1);
  ++g_mapping_count;
}

void read_mappings() {
  g_mapping_count = 0;
  // Not /proc/self/maps, which is empty once the main thread has ended.
  const long fd = raw_syscall(SYS_open, as_long("/proc/thread-self/maps"), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  char buffer[4096 + 512];
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
      add_line(line);
      line = newline + 1;
    }
    kept = strlen(line);
    if (kept + 1 >= sizeof buffer) kept = 0;  // an absurdly long path
    memmove(buffer, line, kept);
  }
  raw_close(static_cast<int>(fd));
}

const Mapping* find_mapping(unsigned long address) {
  for (unsigned i = 0; i < g_mapping_count; ++i) {
    if (address >= g_mappings[i].begin && address < g_mappings[i].end) return &g_mappings[i];
  }
  return nullptr;
}

}  // namespace

unsigned long place_offset(const void* pc, const char** name) {
  const auto address = reinterpret_cast<unsigned long>(pc);
  *name = "?";
  if (address == 0) return 0;
  const Mapping* mapping = find_mapping(address);
  if (mapping == nullptr) {
    read_mappings();
    mapping = find_mapping(address);
  }
  if (mapping == nullptr) return 0;
  *name = mapping->name;
  return address - mapping->begin + mapping->offset;
}

size_t format_place(char* out, size_t size, const void* pc) {
  const char* name;
  const unsigned long offset = place_offset(pc, &name);
  if (name[0] == '?') return format_text(out, size, "?");
  return format_text(out, size, "%s+0x%lx", name, offset);
}

const char* program_build_id() {
  static char text[2 * 32 + 1];
  if (text[0] != '\0') return text;
  const auto* headers = reinterpret_cast<const ElfW(Phdr)*>(getauxval(AT_PHDR));
  const unsigned long count = getauxval(AT_PHNUM);
  if (headers == nullptr) return text;
  unsigned long bias = 0;
  for (unsigned long i = 0; i < count; ++i) {
    if (headers[i].p_type == PT_PHDR)
      bias = reinterpret_cast<unsigned long>(headers) - headers[i].p_vaddr;
  }
  for (unsigned long i = 0; i < count; ++i) {
    if (headers[i].p_type != PT_NOTE) continue;
    const auto* at = reinterpret_cast<const char*>(bias + headers[i].p_vaddr);
    const char* end = at + headers[i].p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      const auto* note = reinterpret_cast<const ElfW(Nhdr)*>(at);
      const char* name = at + sizeof *note;
      const char* data = name + ((note->n_namesz + 3) & ~3u);
      if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp(name, "GNU", 4) == 0 &&
          note->n_descsz <= 32) {
        for (unsigned k = 0; k < note->n_descsz; ++k) {
          const auto byte = static_cast<unsigned char>(data[k]);
          text[2 * k] = "0123456789abcdef"[byte >> 4];
          text[2 * k + 1] = "0123456789abcdef"[byte & 15];
        }
        return text;
      }
      at = data + ((note->n_descsz + 3) & ~3u);
    }
  }
  return text;
}

}  // namespace heddle::rt
