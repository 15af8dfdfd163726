#include "instrument/wrapper/command.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heddle::wrapper {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::optional<std::string> no_files(const std::string&) {
  return std::nullopt;
}

Intent intent(const std::vector<std::string>& arguments, bool cpp = false) {
  return intent_of(arguments, cpp, no_files);
}

const Installation kInstallation{.compiler = "clang-19",
                                 .plugin = "/p/libheddle_plugin.so",
                                 .runtime = "/r/libheddle_rt.so",
                                 .runtime_folder = "/r",
                                 .cpp = false};

std::vector<std::string> command(const std::vector<std::string>& arguments) {
  return command_for(arguments, intent(arguments), kInstallation);
}

TEST(WrapperIntent, compile_and_link) {
  EXPECT_TRUE(intent({"a.c"}).compiles);
  EXPECT_TRUE(intent({"a.c"}).links);
  EXPECT_TRUE(intent({"-c", "a.c"}).compiles);
  EXPECT_FALSE(intent({"-c", "a.c"}).links);
  EXPECT_FALSE(intent({"-S", "a.c"}).links);
  EXPECT_TRUE(intent({"-S", "a.c"}).compiles);
  EXPECT_FALSE(intent({"a.o", "-o", "a.c"}).compiles);
  EXPECT_TRUE(intent({"a.o", "libx.a", "-lm"}).links);
  EXPECT_TRUE(intent({"-shared", "a.o", "-o", "liba.so"}).links);
  EXPECT_FALSE(intent({"-r", "a.o", "-o", "b.o"}).links);
}

TEST(WrapperIntent, no_code) {
  for (const char* option : {"-E", "-M", "-MM", "-fsyntax-only"}) {
    EXPECT_FALSE(intent({option, "a.c"}).compiles) << option;
    EXPECT_FALSE(intent({option, "a.c"}).links) << option;
  }
  EXPECT_TRUE(intent({"-MMD", "-MF", "a.d", "-c", "a.c"}).compiles);
  EXPECT_FALSE(intent({"--version"}).links);
  EXPECT_FALSE(intent({"-v"}).links);
  EXPECT_FALSE(intent({"-print-prog-name=ld"}).links);
  EXPECT_FALSE(intent({}).links);
}

TEST(WrapperIntent, languages) {
  EXPECT_TRUE(intent({"-x", "c++", "-"}).compiles);
  EXPECT_TRUE(intent({"-x", "c++", "-"}).cpp);
  EXPECT_TRUE(intent({"-xc", "-c", "-"}).compiles);
  EXPECT_FALSE(intent({"-x", "assembler", "-c", "a.c"}).compiles);
  EXPECT_FALSE(intent({"-x", "c++-header", "a.h"}).compiles);
  EXPECT_FALSE(intent({"-c", "a.S"}).compiles);
  EXPECT_TRUE(intent({"-c", "a.cc"}).cpp);
  EXPECT_FALSE(intent({"-c", "a.c"}).cpp);
  EXPECT_TRUE(intent({"-c", "a.c"}, true).cpp);
}

TEST(WrapperIntent, headers_are_not_linked) {
  EXPECT_FALSE(intent({"a.h", "-o", "a.h.pch"}).links);
  EXPECT_FALSE(intent({"-x", "c++-header", "a", "-o", "a.pch"}).links);
  EXPECT_FALSE(intent({"-x", "c++-header", "a", "-o", "a.pch"}).compiles);
  EXPECT_TRUE(intent({"a.cc", "-include", "a.h"}).links);
}

TEST(WrapperIntent, values_of_options_are_not_inputs) {
  EXPECT_FALSE(intent({"-include", "config.c", "-I", "dir.c"}).compiles);
  EXPECT_FALSE(intent({"-MF", "a.c"}).links);
}

TEST(WrapperIntent, response_files) {
  const std::map<std::string, std::string> files = {{"a.rsp", "-c 'my file.c' @b.rsp"},
                                                    {"b.rsp", "-DX=\\\"y\\\"\n"}};
  const ReadFile read = [&](const std::string& name) -> std::optional<std::string> {
    const auto found = files.find(name);
    if (found == files.end()) return std::nullopt;
    return found->second;
  };
  EXPECT_TRUE(intent_of({"@a.rsp"}, false, read).compiles);
  EXPECT_FALSE(intent_of({"@a.rsp"}, false, read).links);
  EXPECT_TRUE(intent_of({"@missing"}, false, read).links);  // clang says what is wrong
}

TEST(WrapperIntent, special_targets) {
  EXPECT_TRUE(intent({"-static", "a.c"}).wants_static);
  EXPECT_FALSE(intent({"-static-libgcc", "a.c"}).wants_static);
  EXPECT_TRUE(intent({"-m32", "a.c"}).other_target);
  EXPECT_FALSE(intent({"-m32", "a.c"}).compiles);
}

TEST(WrapperCommand, adds_what_is_needed) {
  EXPECT_THAT(command({"--version"}), ElementsAre("clang-19", "--version"));
  EXPECT_THAT(command({"-E", "a.c"}), ElementsAre("clang-19", "-E", "a.c"));
  EXPECT_THAT(command({"-c", "a.c"}), ElementsAre("clang-19", "--start-no-unused-arguments", "-g",
                                                  "-fpass-plugin=/p/libheddle_plugin.so",
                                                  "--end-no-unused-arguments", "-c", "a.c"));
  EXPECT_THAT(command({"a.o"}),
              ElementsAre("clang-19", "--start-no-unused-arguments",
                          "-Wl,--push-state,--no-as-needed,/r/libheddle_rt.so,--pop-state",
                          "-Wl,-rpath,/r", "--end-no-unused-arguments", "a.o"));
  EXPECT_THAT(command({"-m32", "a.c"}), ElementsAre("clang-19", "-m32", "a.c"));
}

}  // namespace
}  // namespace heddle::wrapper
