// The functions of the C library whose memory accesses are recorded as ranges: the compiler plugin
// redirects calls of `name` to the runtime's `__heddle_name`, which has the same type.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace heddle {

// Sorted.
inline constexpr std::array<std::string_view, 50> kLibcRanges = {
    "__memcpy_chk",  "__memmove_chk", "__mempcpy_chk", "__memset_chk",   "__stpcpy_chk",
    "__stpncpy_chk", "__strcat_chk",  "__strcpy_chk",  "__strncat_chk",  "__strncpy_chk",
    "bcmp",          "bcopy",         "bzero",         "explicit_bzero", "memccpy",
    "memchr",        "memcmp",        "memcpy",        "memmem",         "memmove",
    "mempcpy",       "memrchr",       "memset",        "rawmemchr",      "stpcpy",
    "stpncpy",       "strcasecmp",    "strcasestr",    "strcat",         "strchr",
    "strchrnul",     "strcmp",        "strcoll",       "strcpy",         "strcspn",
    "strdup",        "strlen",        "strncasecmp",   "strncat",        "strncmp",
    "strncpy",       "strndup",       "strnlen",       "strpbrk",        "strrchr",
    "strsep",        "strspn",        "strstr",        "strtok",         "strtok_r",
};

inline bool is_libc_range(std::string_view name) {
  return std::binary_search(kLibcRanges.begin(), kLibcRanges.end(), name);
}

}  // namespace heddle
