#include "runtime/real.h"

#include "runtime/record.h"

#include <dlfcn.h>

namespace heddle::rt {

void* next_symbol(const char* name, const char* version) {
  // dlsym may allocate; intercept_memory.cc serves that while the look-up is under way.
  const Inside guard;
  return version != nullptr ? dlvsym(RTLD_NEXT, name, version) : dlsym(RTLD_NEXT, name);
}

}  // namespace heddle::rt
