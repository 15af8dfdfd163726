// heddle-cc and heddle-c++: from the command line of a compiler to the one of clang-19.
//
// The wrapper adds what recording needs and otherwise stays out of the way: it compiles what clang
// would compile and links what clang would link, with the same words for every mistake. So it has
// to know just two things about a command line: whether C or C++ source is compiled to code (then
// the plugin and debug information are added), and whether something is linked (then the runtime
// is, first of all libraries, so that it comes first in the dynamic linker's search order).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace heddle::wrapper {

struct Installation {
  std::string compiler;        // clang-19 or clang++-19
  std::string plugin;          // path of libheddle_plugin.so
  std::string runtime;         // path of libheddle_rt.so
  std::string runtime_folder;  // where the dynamic linker will find it
  bool cpp = false;            // heddle-c++
};

struct Intent {
  bool compiles = false;      // C or C++ source to code
  bool links = false;         // into an executable or a shared library
  bool wants_static = false;  // -static, -static-pie
  bool other_target = false;  // -m32 and kin: neither plugin nor runtime is for it
  bool cpp = false;           // at least one input is C++
};

// `read_file` gives the content of a response file, if it can be read.
using ReadFile = std::function<std::optional<std::string>(const std::string&)>;

Intent intent_of(const std::vector<std::string>& arguments, bool cpp, const ReadFile& read_file);

// The arguments for clang, program name first; response files stay as they were.
std::vector<std::string> command_for(const std::vector<std::string>& arguments,
                                     const Intent& intent, const Installation& installation);

}  // namespace heddle::wrapper
