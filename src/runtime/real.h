// The functions behind the ones the runtime interposes.
//
//   ssize_t read(int fd, void* data, size_t size) { … return REAL(read)(fd, data, size); }
//
// The look-up is by dlsym(RTLD_NEXT), once per place; two threads that look at the same time find
// the same.
#pragma once

#define RT_EXPORT extern "C" __attribute__((visibility("default")))

namespace heddle::rt {

// The next definition of `name` after this library. `version` (for example "GLIBC_2.3.2") picks one
// of several versions of the symbol. nullptr when there is none.
void* next_symbol(const char* name, const char* version = nullptr);

}  // namespace heddle::rt

#define REAL_VERSION(name, version)                                                  \
  ([]() __attribute__((always_inline)) {                                             \
    using Function = decltype(&::name);                                              \
    static Function function;                                                        \
    Function found = __atomic_load_n(&function, __ATOMIC_RELAXED);                   \
    if (__builtin_expect(found == nullptr, 0)) {                                     \
      found = reinterpret_cast<Function>(::heddle::rt::next_symbol(#name, version)); \
      __atomic_store_n(&function, found, __ATOMIC_RELAXED);                          \
    }                                                                                \
    return found;                                                                    \
  }())
#define REAL(name) REAL_VERSION(name, nullptr)
