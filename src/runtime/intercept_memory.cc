// The malloc family and the operators new and delete: one Alloc or Free event per block, at the
// program's own call.
//
// The operators are interposed only to know who called: they leave the address of their caller for
// the malloc that the real operator calls, which records. Before the real functions are known
// (dlsym itself may allocate) blocks come from a small arena that is never given back.
#include "runtime/real.h"
#include "runtime/record.h"
#include "runtime/say.h"
#include "runtime/sched.h"
#include "runtime/stream.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace heddle::rt {
namespace {

using AlignedNew = void* (*)(size_t, size_t);
using AlignedNewNothrow = void* (*)(size_t, size_t, const void*);

struct RealMemory {
  void* (*malloc)(size_t);
  void (*free)(void*);
  void* (*calloc)(size_t, size_t);
  void* (*realloc)(void*, size_t);
  void* (*memalign)(size_t, size_t);
  void* (*aligned_alloc)(size_t, size_t);
  int (*posix_memalign)(void**, size_t, size_t);
  void* (*valloc)(size_t);
  void* (*pvalloc)(size_t);
};

RealMemory g_real;
int g_resolved = 0;  // 0 no, 1 under way, 2 yes
alignas(16) char g_arena[64 * 1024];
size_t g_arena_used = 0;

// The caller of the operator new that is under way on this thread.
thread_local const void* t_outer_pc __attribute__((tls_model("initial-exec"))) = nullptr;

template <typename F>
void resolve(F*& function, const char* name) {
  function = reinterpret_cast<F*>(next_symbol(name));
}

// False while somebody (this thread: dlsym) is resolving.
bool ready() {
  const int state = __atomic_load_n(&g_resolved, __ATOMIC_ACQUIRE);
  if (state == 2) return true;
  if (state == 1) return false;
  __atomic_store_n(&g_resolved, 1, __ATOMIC_RELEASE);
  resolve(g_real.malloc, "malloc");
  resolve(g_real.free, "free");
  resolve(g_real.calloc, "calloc");
  resolve(g_real.realloc, "realloc");
  resolve(g_real.memalign, "memalign");
  resolve(g_real.aligned_alloc, "aligned_alloc");
  resolve(g_real.posix_memalign, "posix_memalign");
  resolve(g_real.valloc, "valloc");
  resolve(g_real.pvalloc, "pvalloc");
  __atomic_store_n(&g_resolved, 2, __ATOMIC_RELEASE);
  return true;
}

void* arena_take(size_t size) {
  const size_t start =
      __atomic_fetch_add(&g_arena_used, (size + 31) & ~size_t{15}, __ATOMIC_RELAXED);
  RT_CHECK(start + size + 16 <= sizeof g_arena);
  char* block = g_arena + start;
  memcpy(block, &size, sizeof size);  // for realloc
  return block + 16;
}

bool of_arena(const void* block) {
  return block >= g_arena && block < g_arena + sizeof g_arena;
}

size_t arena_size(const void* block) {
  size_t size;
  memcpy(&size, static_cast<const char*>(block) - 16, sizeof size);
  return size;
}

const void* caller_or_outer(const void* pc) {
  const void* outer = t_outer_pc;
  t_outer_pc = nullptr;
  return outer != nullptr ? outer : pc;
}

void record_alloc(const void* block, size_t size, const void* pc) {
  pc = caller_or_outer(pc);
  if (block == nullptr || passive() || !has_cursor()) return;
  sched_fresh_memory(block, size);
  rec_event(EventKind::kAlloc, LockMode::kExclusive, OpOutcome::kOk, 0,
            reinterpret_cast<uint64_t>(block), size, pc);
}

void record_free(const void* block, const void* pc) {
  pc = caller_or_outer(pc);
  if (block == nullptr || passive() || !has_cursor()) return;
  rec_event(EventKind::kFree, LockMode::kExclusive, OpOutcome::kOk, 0,
            reinterpret_cast<uint64_t>(block), 0, pc);
}

}  // namespace
}  // namespace heddle::rt

using namespace heddle::rt;

#define CALLER __builtin_extract_return_addr(__builtin_return_address(0))

RT_EXPORT void* malloc(size_t size) {
  if (!ready()) return arena_take(size);
  void* block = g_real.malloc(size);
  record_alloc(block, size, CALLER);
  return block;
}

RT_EXPORT void free(void* block) {
  if (of_arena(block) || !ready()) return;
  record_free(block, CALLER);
  g_real.free(block);
}

RT_EXPORT void* calloc(size_t count, size_t size) {
  if (!ready()) return arena_take(count * size);
  void* block = g_real.calloc(count, size);
  record_alloc(block, count * size, CALLER);
  return block;
}

RT_EXPORT void* realloc(void* old, size_t size) {
  if (!ready() || of_arena(old)) {
    void* block = ready() ? g_real.malloc(size) : arena_take(size);
    if (old != nullptr && block != nullptr) {
      const size_t before = arena_size(old);
      memcpy(block, old, before < size ? before : size);
    }
    return block;
  }
  const void* pc = CALLER;
  record_free(old, pc);
  void* block = g_real.realloc(old, size);
  if (block == nullptr && old != nullptr && size != 0) {
    record_alloc(old, malloc_usable_size(old), pc);  // it failed: the old block lives on
  } else {
    record_alloc(block, size, pc);
  }
  return block;
}

RT_EXPORT void* reallocarray(void* old, size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    errno = ENOMEM;
    return nullptr;
  }
  t_outer_pc = CALLER;
  const void* pc = t_outer_pc;
  void* block = nullptr;
  if (!ready() || of_arena(old)) return realloc(old, bytes);
  record_free(old, pc);
  block = g_real.realloc(old, bytes);
  if (block == nullptr && old != nullptr && bytes != 0) {
    record_alloc(old, malloc_usable_size(old), pc);
  } else {
    record_alloc(block, bytes, pc);
  }
  return block;
}

RT_EXPORT void* memalign(size_t alignment, size_t size) {
  if (!ready()) return arena_take(size);
  void* block = g_real.memalign(alignment, size);
  record_alloc(block, size, CALLER);
  return block;
}

RT_EXPORT void* aligned_alloc(size_t alignment, size_t size) {
  if (!ready()) return arena_take(size);
  void* block = g_real.aligned_alloc(alignment, size);
  record_alloc(block, size, CALLER);
  return block;
}

RT_EXPORT int posix_memalign(void** out, size_t alignment, size_t size) {
  if (!ready()) {
    *out = arena_take(size);
    return 0;
  }
  const int status = g_real.posix_memalign(out, alignment, size);
  if (status == 0) record_alloc(*out, size, CALLER);
  return status;
}

RT_EXPORT void* valloc(size_t size) {
  if (!ready()) return nullptr;
  void* block = g_real.valloc(size);
  record_alloc(block, size, CALLER);
  return block;
}

RT_EXPORT void* pvalloc(size_t size) {
  if (!ready()) return nullptr;
  void* block = g_real.pvalloc(size);
  record_alloc(block, size, CALLER);
  return block;
}

namespace {

// What stands in for the operators of a C++ library that is linked statically: the linker takes
// ours and leaves the library's own out, so there is nothing behind them. A throw is not to be had
// here.
void* plain_new(size_t size, bool may_fail) {
  void* block = malloc(size == 0 ? 1 : size);
  if (block == nullptr && !may_fail) {
    say("no memory for %lu bytes, and a statically linked C++ library cannot be told", size);
    abort();
  }
  return block;
}

void* plain_new(size_t size, size_t alignment, bool may_fail) {
  void* block = nullptr;
  if (posix_memalign(&block, alignment < sizeof(void*) ? sizeof(void*) : alignment,
                     size == 0 ? 1 : size) == 0) {
    return block;
  }
  return may_fail ? nullptr : plain_new(~size_t{0}, false);
}

}  // namespace

// The operators, under the names the Itanium ABI gives them. The real ones are those of the C++
// library that is loaded; `instead` is what is done without one.
#define RT_OPERATOR(symbol, result, parameters, arguments, instead) \
  RT_EXPORT result symbol parameters {                              \
    using Function = result(*) parameters;                          \
    static Function real = nullptr;                                 \
    Function function = __atomic_load_n(&real, __ATOMIC_RELAXED);   \
    if (function == nullptr) {                                      \
      function = reinterpret_cast<Function>(next_symbol(#symbol));  \
      __atomic_store_n(&real, function, __ATOMIC_RELAXED);          \
    }                                                               \
    t_outer_pc = CALLER;                                            \
    if (function == nullptr) return instead;                        \
    return function arguments;                                      \
  }
#define RT_NEW(symbol, may_fail, parameters, arguments, ...) \
  RT_OPERATOR(symbol, void*, parameters, arguments, plain_new(__VA_ARGS__, may_fail))
#define RT_DELETE(symbol, parameters, arguments) \
  RT_OPERATOR(symbol, void, parameters, arguments, free(block))

RT_NEW(_Znwm, false, (size_t size), (size), size)
RT_NEW(_Znam, false, (size_t size), (size), size)
RT_NEW(_ZnwmRKSt9nothrow_t, true, (size_t size, const void* tag), (size, tag), size)
RT_NEW(_ZnamRKSt9nothrow_t, true, (size_t size, const void* tag), (size, tag), size)
RT_NEW(_ZnwmSt11align_val_t, false, (size_t size, size_t alignment), (size, alignment), size,
       alignment)
RT_NEW(_ZnamSt11align_val_t, false, (size_t size, size_t alignment), (size, alignment), size,
       alignment)
RT_NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, true, (size_t size, size_t alignment, const void* tag),
       (size, alignment, tag), size, alignment)
RT_NEW(_ZnamSt11align_val_tRKSt9nothrow_t, true, (size_t size, size_t alignment, const void* tag),
       (size, alignment, tag), size, alignment)
RT_DELETE(_ZdlPv, (void* block), (block))
RT_DELETE(_ZdaPv, (void* block), (block))
RT_DELETE(_ZdlPvm, (void* block, size_t size), (block, size))
RT_DELETE(_ZdaPvm, (void* block, size_t size), (block, size))
RT_DELETE(_ZdlPvRKSt9nothrow_t, (void* block, const void* tag), (block, tag))
RT_DELETE(_ZdaPvRKSt9nothrow_t, (void* block, const void* tag), (block, tag))
RT_DELETE(_ZdlPvSt11align_val_t, (void* block, size_t alignment), (block, alignment))
RT_DELETE(_ZdaPvSt11align_val_t, (void* block, size_t alignment), (block, alignment))
RT_DELETE(_ZdlPvmSt11align_val_t, (void* block, size_t size, size_t alignment),
          (block, size, alignment))
RT_DELETE(_ZdaPvmSt11align_val_t, (void* block, size_t size, size_t alignment),
          (block, size, alignment))
