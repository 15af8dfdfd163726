// The programs heddle-cc and heddle-c++: find the parts of the installation, build the command,
// become clang.
#include "instrument/wrapper/command.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <unistd.h>

namespace {

namespace fs = std::filesystem;
using heddle::wrapper::Installation;

// Relative to the folder of this program: as installed, then as in the build tree.
constexpr const char* kFolders[] = {HEDDLE_LIBRARY_FOLDER, "../lib/heddle", "../../runtime",
                                    "../src/runtime"};

std::string find(const fs::path& here, const char* name) {
  std::error_code error;
  for (const char* folder : kFolders) {
    const fs::path candidate = here / folder / name;
    if (fs::exists(candidate, error)) return fs::canonical(candidate, error).string();
  }
  return {};
}

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(in), {});
}

int fail(const char* program, const std::string& message) {
  std::fprintf(stderr, "%s: %s\n", program, message.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const char* program = HEDDLE_CPP ? "heddle-c++" : "heddle-cc";
  std::error_code error;
  const fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
  if (error) return fail(program, "cannot find out where it is installed: /proc is not mounted");
  Installation installation;
  installation.cpp = HEDDLE_CPP;
  installation.compiler = HEDDLE_COMPILER;
  if (!fs::exists(installation.compiler, error)) {
    installation.compiler = HEDDLE_CPP ? "clang++-19" : "clang-19";
  }
  installation.plugin = find(here, "libheddle_plugin.so");
  installation.runtime = find(here, "libheddle_rt.so");
  if (const char* other = std::getenv("HEDDLE_RUNTIME"); other != nullptr) {
    installation.runtime = other;
  }
  installation.runtime_folder = fs::path(installation.runtime).parent_path().string();

  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const heddle::wrapper::Intent intent =
      heddle::wrapper::intent_of(arguments, HEDDLE_CPP, read_file);
  if (intent.other_target && (intent.compiles || intent.links)) {
    std::fprintf(stderr, "%s: only x86-64 programs can be recorded; compiling without recording\n",
                 program);
  }
  if (intent.links && intent.wants_static) {
    return fail(program,
                "the runtime needs dynamic linking: leave out -static (libraries of your "
                "own may stay static: -Wl,-Bstatic -lfoo -Wl,-Bdynamic)");
  }
  if (intent.compiles && installation.plugin.empty()) {
    return fail(program, "libheddle_plugin.so is not in " + (here / kFolders[0]).string() +
                             ": install Heddle again");
  }
  if (intent.links && installation.runtime.empty()) {
    return fail(program, "libheddle_rt.so is not in " + (here / kFolders[0]).string() +
                             ": install Heddle again");
  }

  std::vector<std::string> command = heddle::wrapper::command_for(arguments, intent, installation);
  std::vector<char*> pointers;
  pointers.reserve(command.size() + 1);
  for (std::string& word : command) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  // The compiler frees small pieces by the hundred thousand and asks for them again. If the C
  // library keeps more of them at hand than its usual seven of a size, a large file takes a sixth
  // less time.
  if (intent.compiles) ::setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=5000", 0);
  ::execvp(pointers[0], pointers.data());
  return fail(program, "cannot run " + command[0] + ": " + std::strerror(errno) +
                           ": install the package clang-19");
}
