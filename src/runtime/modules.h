// Names for code addresses that mean the same in every run: file name and offset in it.
//
// Read from /proc/self/maps with plain system calls: the dynamic linker's own functions take its
// lock, which a thread may hold that is not going to run.
#pragma once

#include <stddef.h>

namespace heddle::rt {

// Writes "shop+0x1a2b" (or "?") and returns the length. Call with the scheduler's lock held, or
// when nobody else runs.
size_t format_place(char* out, size_t size, const void* pc);

// The offset within the file, 0 when unknown; the name through `name`.
unsigned long place_offset(const void* pc, const char** name);

// Lower-case hexadecimal build id of the executable, "" when it has none.
const char* program_build_id();

}  // namespace heddle::rt
