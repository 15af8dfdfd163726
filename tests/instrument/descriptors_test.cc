// Descriptors of small functions, compared with what one derives from the source by hand.
#include "instrument/descriptors.h"

#include "recorded.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace heddle::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string temporary(const char* name) {
  return (std::filesystem::temp_directory_path() /
          ("heddle-" + std::to_string(::getpid()) + "-" + name))
      .string();
}

// The same at every level of optimisation: what is described is the source.
std::vector<std::string> describe(const std::string& source, const std::string& function,
                                  const std::string& language = "c") {
  std::vector<std::string> first;
  for (const char* level : {"-O0", "-O2"}) {
    const std::string object = temporary("descriptors.o");
    EXPECT_EQ(compile_object(source, language, level, object), "");
    const Result<std::vector<UnitDescriptors>> units = read_descriptors(object);
    std::filesystem::remove(object);
    if (!units.ok()) {
      ADD_FAILURE() << units.error().message;
      return {};
    }
    EXPECT_EQ(units->size(), 1u);
    const Catalog& catalog = units->at(0).catalog;
    std::vector<std::string> lines{"no such function"};
    for (FunctionId id = 1; id < catalog.functions.size(); ++id) {
      if (catalog.text(catalog.functions[id].name) == function) {
        lines = function_lines(catalog, id);
      }
    }
    if (first.empty()) first = lines;
    EXPECT_EQ(lines, first) << level;
  }
  return first;
}

TEST(Descriptors, straight_line) {
  EXPECT_THAT(describe("int a, b, c; void f(int x) { a = b + x; c = a; }", "f"),
              ElementsAre("b0.0: r1 = read b; write a = r0 r1; r2 = read a; write c = r2; return"));
}

TEST(Descriptors, diamond) {
  EXPECT_THAT(describe(R"(
    int a, b, c;
    void f(int x) {
      int y;
      if (a) y = b; else y = x;
      c = y;
    })",
                       "f"),
              ElementsAre("b0.0: r1 = read a; branch r1",  //
                          "b1.0 after b0: r2 = read b",    //
                          "b2.0: r3 = phi b0: r0 | b1: r2; write c = r3; return"));
}

TEST(Descriptors, loop_with_break) {
  EXPECT_THAT(
      describe(R"(
    int a, n, sum;
    void f(void) {
      for (int i = 0; i < n; i++) {
        if (a == i) break;
        sum += i;
      }
    })",
               "f"),
      ElementsAre("b0.0:", "b1.0 after b2: r0 = phi b0: | b3: r0; r1 = read n; branch r0 r1",
                  "b2.0 after b1: r2 = read a; branch r0 r2",
                  "b3.0 after b2: r3 = read sum; write sum = r0 r3",  //
                  "b4.0: return"));
}

TEST(Descriptors, nested_loop) {
  EXPECT_THAT(
      describe(R"(
    int n, m, sum;
    void f(void) {
      for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++) sum += i;
    })",
               "f"),
      ElementsAre("b0.0:", "b1.0 after b1: r0 = phi b0: | b4: r0; r1 = read n; branch r0 r1",
                  "b2.0 after b1 b2: r2 = phi b1: | b3: r2; r3 = read m; branch r2 r3",
                  "b3.0 after b2: r4 = read sum; write sum = r0 r4",  //
                  "b4.0 after b1:",                                   //
                  "b5.0: return"));
}

TEST(Descriptors, switch_with_fall_through) {
  EXPECT_THAT(describe(R"(
    int a, r;
    void f(void) {
      switch (a) {
        case 1: r = 1; break;
        case 2: r = 2;
        case 3: r = 3; break;
        default: break;
      }
    })",
                       "f"),
              ElementsAre("b0.0: r0 = read a; branch r0",  //
                          "b1.0 after b0: write r",        //
                          "b2.0 after b0: write r",        //
                          "b3.0 after b0: write r",        //
                          "b4.0: return"));
}

TEST(Descriptors, early_return) {
  EXPECT_THAT(describe("int a, b; int f(int x) { if (x) return a; b = x; return x; }", "f"),
              ElementsAre("b0.0: branch r0",              //
                          "b1.0 after b0: r1 = read a",   //
                          "b2.0 after b0: write b = r0",  //
                          "b3.0: r2 = phi b1: r1 | b2: r0; return r2"));
}

TEST(Descriptors, call_chain) {
  const char* source = R"(
    int g;
    int leaf(int x) { g = x; return x + 1; }
    int middle(int x, int y) { return leaf(x + y); }
    void top(int x) { g = middle(leaf(x), g); })";
  EXPECT_THAT(describe(source, "leaf"), ElementsAre("b0.0: write g = r0; return r0"));
  EXPECT_THAT(describe(source, "middle"),
              ElementsAre("b0.0: r2 = call leaf(r0 r1)", "b0.1: return r2"));
  EXPECT_THAT(describe(source, "top"),
              ElementsAre("b0.0: r1 = call leaf(r0)",                     //
                          "b0.1: r2 = read g; r3 = call middle(r1, r2)",  //
                          "b0.2: write g = r3; return"));
}

TEST(Descriptors, recursion) {
  EXPECT_THAT(describe(R"(
    int depth;
    int fact(int n) {
      depth++;
      if (n <= 1) return 1;
      return n * fact(n - 1);
    })",
                       "fact"),
              ElementsAre("b0.0: r1 = read depth; write depth = r1; branch r0",
                          "b1.0 after b0: r2 = call fact(r0)",  //
                          "b1.1 after b0:",                     //
                          "b2.0: r3 = phi b0: | b1: r0 r2; return r3"));
}

TEST(Descriptors, addresses) {
  EXPECT_THAT(describe(R"(
    struct node { struct node* next; int value; };
    int g[10];
    void f(struct node* n, int i) { n->next->value = g[i + n->value]; })",
                       "f"),
              ElementsAre("b0.0: r2 = read node.value [r0]; r3 = read g[] [r1 r2]; "
                          "r4 = read node.next [r0]; write node.value [r4] = r3; return"));
}

TEST(Descriptors, function_pointers_and_constants) {
  EXPECT_THAT(describe("int (*hook)(int, int); int f(int x) { return hook(3, x); }", "f"),
              ElementsAre("b0.0: r1 = read hook; r2 = call *[r1](-, r0)", "b0.1: return r2"));
}

TEST(Descriptors, conditions_with_and_or) {
  // b2 is reached when a is set and b is; b3 when either is not.
  EXPECT_THAT(describe("int a, b, c; void f(void) { if (a && b) c = 1; }", "f"),
              ElementsAre("b0.0: r0 = read a; branch r0",           //
                          "b1.0 after b0: r1 = read b; branch r1",  //
                          "b2.0 after b1: write c",                 //
                          "b3.0: return"));
}

TEST(Descriptors, private_arrays_pass_values_on) {
  EXPECT_THAT(describe(R"(
    int a, b;
    void f(int i) {
      int local[4];
      for (int k = 0; k < 4; k++) local[k] = a;
      b = local[i & 3];
    })",
                       "f"),
              ElementsAre("b0.0:",                                            //
                          "b1.0 after b1: r1 = phi b0: | b2: r1; branch r1",  //
                          "b2.0 after b1: r2 = read a",                       //
                          "b3.0: write b = r0 r1 r2; return"));
}

TEST(Descriptors, calls_that_may_throw_control_nothing) {
  EXPECT_THAT(describe(R"(
    int a, b;
    struct Guard { ~Guard(); };
    void work(int);
    void f(int x) { Guard guard; work(x); if (a) b = x; })",
                       "f(int)", "c++"),
              ElementsAre("b0.0: call _Z4worki(r0)",       //
                          "b1.0: r1 = read a; branch r1",  //
                          "b2.0 after b1: write b = r0",   //
                          "b3.0: call _ZN5GuardD1Ev(-)",   // the cleanup
                          "b3.1: unwind",                  //
                          "b4.0: call _ZN5GuardD1Ev(-)",   //
                          "b4.1: return"));
}

TEST(Descriptors, wrong_files_are_explained) {
  EXPECT_THAT(read_descriptors("/no/such/file").error().message, HasSubstr("No such file"));
  const std::string path = temporary("text");
  std::ofstream(path) << "not an object";
  EXPECT_THAT(read_descriptors(path).error().message, HasSubstr("not an ELF"));
  std::filesystem::remove(path);
  EXPECT_THAT(read_descriptors("/proc/self/exe").error().message, HasSubstr("no descriptors"));
}

}  // namespace
}  // namespace heddle::test
