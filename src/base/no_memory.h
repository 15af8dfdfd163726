// Ends the process where memory cannot be had and nothing sensible is left to do.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace heddle {

[[noreturn]] inline void no_memory() {
  std::fputs(
      "heddle: there is no memory left; try without a limit to it (`ulimit -v unlimited`), or with "
      "less work\n",
      stderr);
  std::_Exit(2);
}

}  // namespace heddle
