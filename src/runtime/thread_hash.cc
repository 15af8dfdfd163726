// The hash of a std::thread::id, which std::barrier and tables of threads go by.
//
// A pthread_t is an address, and so is chance under ASLR. The C++ library hashes it through one
// function for all; there the address of a thread is replaced by its number among the addresses
// that threads ever had. Equal ids keep equal hashes, also after the thread's end and in a child.
#include "runtime/intercept.h"

#include <string.h>

namespace heddle::rt {
namespace {

constexpr unsigned kMost = 4096;
pthread_t g_handles[kMost];
unsigned g_count;
pthread_t g_least = ~pthread_t{0};
pthread_t g_largest;

bool number_of(pthread_t handle, uint64_t* number) {
  if (handle < g_least || handle > g_largest) return false;
  for (unsigned i = 0; i < g_count; ++i) {
    if (g_handles[i] != handle) continue;
    *number = i;
    return true;
  }
  return false;
}

}  // namespace

void note_handle(pthread_t handle) {
  uint64_t known;
  if (g_count == kMost || number_of(handle, &known)) return;
  g_handles[g_count++] = handle;
  if (handle < g_least) g_least = handle;
  if (handle > g_largest) g_largest = handle;
}

}  // namespace heddle::rt

using namespace heddle::rt;

// std::_Hash_bytes(const void*, size_t, size_t)
extern "C" size_t _ZSt11_Hash_bytesPKvmm(const void* data, size_t size, size_t seed);
RT_EXPORT size_t _ZSt11_Hash_bytesPKvmm(const void* data, size_t size, size_t seed) {
  uint64_t number;
  if (size == sizeof(pthread_t)) {
    pthread_t handle;
    memcpy(&handle, data, sizeof handle);
    if (number_of(handle, &number)) data = &number;
  }
  return REAL(_ZSt11_Hash_bytesPKvmm)(data, size, seed);
}
