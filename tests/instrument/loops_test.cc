// Loops that are recorded as a whole: what the plain version's one record says is, access by
// access, what the instrumented version writes.
#include "recorded.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heddle::test {
namespace {

// What one run of a program recorded.
struct OneRun {
  std::vector<std::string> accesses;         // with their addresses, and the marks between them
  std::map<std::string, std::size_t> loops;  // records of plain loops, by function
};

// Programs keep their memory in variables with static storage, which are in the same place in all
// runs, because they are linked for a fixed one.
OneRun run(const std::string& source, const RunOptions& options) {
  const Recorded recorded = run_recorded(source, options);
  EXPECT_EQ(recorded.error, "");
  EXPECT_EQ(recorded.status, 0);
  const std::vector<std::string> lines = recorded.lines();
  OneRun out;
  std::vector<std::string> functions;
  std::size_t number = 0;
  for (const RecordedStep& step : recorded.steps) {
    if (step.kind == RecordedStep::Kind::kSegment) continue;
    if (step.kind == RecordedStep::Kind::kLoop) {
      ++out.loops[functions.empty() ? "" : functions.back()];
      continue;
    }
    if (step.kind == RecordedStep::Kind::kEnter) functions.push_back(recorded.function(step));
    if (step.kind == RecordedStep::Kind::kLeave) functions.pop_back();
    const std::string& line = lines[number++];
    out.accesses.push_back(step.kind == RecordedStep::Kind::kAccess
                               ? fmt::format("{} site {} at {:x}", line, step.site, step.address)
                               : line);
  }
  return out;
}

// The same program with and without plain loops: its accesses are the same.
OneRun run_both(const std::string& source, const std::string& language, const std::string& flags) {
  RunOptions options{.flags = flags + " -fno-pie -no-pie", .language = language};
  const OneRun plain = run(source, options);
  options.loops = false;
  const OneRun instrumented = run(source, options);
  EXPECT_TRUE(instrumented.loops.empty());
  EXPECT_EQ(plain.accesses.size(), instrumented.accesses.size());
  std::string function;
  for (std::size_t i = 0; i < std::min(plain.accesses.size(), instrumented.accesses.size()); ++i) {
    if (plain.accesses[i].starts_with("enter ")) function = plain.accesses[i];
    EXPECT_EQ(plain.accesses[i], instrumented.accesses[i]) << function << ", access " << i;
    if (plain.accesses[i] != instrumented.accesses[i]) break;
  }
  return plain;
}

// A function with an argument that the compiler knows nothing about, and how many records of plain
// loops it makes when that is 30.
struct Case {
  const char* name;
  const char* variables;  // static ones
  const char* code;
  std::size_t records;
};

class Loops : public ::testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Levels, Loops, ::testing::Values("-O0", "-O1", "-O2"),
                         [](const auto& one) { return std::string(one.param + 1); });

TEST_P(Loops, InC) {
  const bool typed = std::string(GetParam()) != "-O0";  // then accesses of two types are two places
  const Case cases[] = {
      {"sum", "double a[100], s;", "double t = 0; for (int i = 0; i < n; ++i) t += a[i]; s = t;",
       1},
      {"axpy", "double x[100], y[100];", "for (long i = 0; i < n; ++i) y[i] += 3 * x[i];", 1},
      {"stencil", "double a[100], b[100];",
       "for (unsigned long i = 1; i + 1 < n; ++i) b[i] = a[i - 1] + a[i] + a[i + 1];", 1},
      {"reverse", "int a[100];", "for (int i = n - 1; i >= 0; --i) a[i] = i;", 1},
      {"stride_2", "short a[100];", "for (int i = 0; i < n; i += 2) a[i] = (short)i;", 1},
      {"stride_minus_3", "char a[100];", "for (int i = n; i > 0; i -= 3) a[i] = 1;", 1},
      {"unsigned_index", "int a[100];", "for (unsigned i = 0; i < n; ++i) a[i]++;", 1},
      {"dynamic_stride", "int a[1000];",
       "long d = n / 4; for (long i = 0; i < n; ++i) a[i * d] = a[i * d + 1];", 1},
      {"two_dynamic_strides", "int a[1000], b[1000];",
       "long d = n / 4, e = n / 10; for (long i = 0; i < n; ++i) a[i * d] = b[i * e] + b[i * d];",
       1},
      {"pointers", "char from[100], to[100];",
       "char *p = from, *q = to; for (char* e = from + n; p != e;) *q++ = *p++; *q = 1;", 1},
      {"fields", "struct { int a; char b; double c; } s[100];",
       "for (int i = 0; i < n; ++i) { s[i].c = s[i].a; s[i].b = 1; }", 1},
      {"two_dimensions", "double m[20][30];",
       "for (int i = 0; i < 20; ++i) for (int j = 1; j < n; ++j) m[i][j] = m[j % 1][0];", 20},
      {"triangle", "double m[20][20];",
       "for (int i = 0; i < 20; ++i) for (int j = i + 1; j < 20; ++j) m[j][i] -= m[i][j];", 17},
      {"own_input", "int a[100];", "for (int i = 1; i < n; ++i) a[i] = a[i - 1] + 1;", 1},
      {"test_last", "int a[100];", "int i = 0; do { a[i] = i; ++i; } while (i < n);", 1},
      {"no_round", "int a[100], b;", "for (int i = n; i < 3; ++i) a[i] = i; b = 1;", 0},
      {"two_rounds", "int a[100];", "for (int i = 20; i < n - 8; ++i) a[i] = i;", 0},
      {"three_rounds", "int a[100];", "for (int i = 20; i < n - 7; ++i) a[i] = i;", 1},
      {"bound_in_memory", "int a[100], m, s;",
       "m = n; int t = 0; for (int i = 0; i < m; ++i) t += a[i]; s = t;", 1},
      {"bound_of_another_type", "double a[100]; static struct { long m; } *p, o;",
       "p = &o; p->m = n; for (long i = 0; i < p->m; ++i) a[i] = 1;", typed ? 1u : 0u},
      {"bound_that_is_written", "int a[100];", "a[0] = n; for (int i = 0; i < a[0]; ++i) a[i] = n;",
       0},
      {"data_decides", "int a[100], b[100];", "for (int i = 0; i < n; ++i) b[a[i] + 1] = i;", 1},
      {"histogram", "unsigned a[100]; static int b[16];",
       "for (int i = 0; i < n; ++i) ++b[a[i] & 15];", 1},
      {"gather_and_scatter", "double a[100], b[100]; static int from[100], to[100];",
       "for (int i = 0; i < n; ++i) b[to[i] + 1] += a[from[i] + 2] * a[from[i] + 3];", 1},
      {"decided_by_the_test", "int a[100], b[100];",
       "for (long i = 0, j = n; i < n; ++i) { j = j * 5 & 63; b[j] = a[j ^ 9] + a[i]; }", 1},
      {"in_pieces", "unsigned char a[40000]; static short b[256];",
       "for (int i = 0; i < n * 1000; ++i) { a[i] = (unsigned char)(i * 7); }"
       "for (int i = 0; i < n * 1000; ++i) { ++b[a[i]]; }",
       3},
      {"many_gathered", "int a[100], b[100];",
       "for (int i = 0; i < n; ++i) b[a[i]] = b[a[i + 1] + 1] + b[a[i + 2] + 2] + b[a[i + 3] + 3];",
       1},
      {"too_many_gathered", "int a[100], b[100];",
       "for (int i = 0; i < n; ++i) b[a[i]] = b[a[i + 1]] + b[a[i + 2]] + b[a[i + 3]] + b[a[i + 4]]"
       " + b[a[i + 5]] + b[a[i + 6]] + b[a[i + 7]] + b[a[i + 8]] + b[a[i + 9]];",
       0},
      {"branch", "int a[100];", "for (int i = 0; i < n; ++i) if (i & 1) a[i] = i;", 0},
      {"call", "int a[100];", "for (int i = 0; i < n; ++i) a[i] = times_one(i);", 0},
      {"arithmetic", "int a[100];", "for (int i = 0; i < n; ++i) a[i] = same(i);", 1},
      {"volatile_array", "volatile int a[100];", "for (int i = 0; i < n; ++i) a[i] = i;", 0},
      {"atomic_array", "_Atomic int a[100];", "for (int i = 0; i < n; ++i) a[i] = i;", 0},
      {"division", "int a[100];", "for (int i = 0; i < n; ++i) a[i] = 60 / (a[i] + 2);", 0},
      {"constant_memory", "const int t[4] = {1, 2, 3, 4}; static int a[100];",
       "for (int i = 0; i < n; ++i) a[i] = t[a[i] & 3];", 1},
      {"value_behind", "int a[100], last;",
       "int i = 0; for (; i < n; ++i) a[i] = i; last = i; a[last - 1] = last; a[i + 1] = 0;", 1},
      {"several_ways_in", "int a[100];",
       "int i; switch (n) { case 1: i = 4; break; case 30: i = 3; break; default: i = 5; }"
       "for (; i < n; ++i) a[i] = i;",
       1},
      {"bytes", "char a[100];", "for (int i = 0; i < n; ++i) a[i] ^= a[i + 1];", 1},
      {"many_items", "int a[100], b[100], c[100], d[100];",
       "for (int i = 1; i < n; ++i) { a[i] = b[i]; b[i - 1] = c[i]; c[i] = d[i + 4]; d[i] = a[i]; "
       "}",
       1},
      {"one_after_another", "int a[100];",
       "int *p = a, *e = a + n; for (; p < e; ++p) *p = 1; for (e += n; p < e; ++p) *p = 2; *p = "
       "3;",
       2},
  };
  std::string source =
      "volatile int rounds = 30;\n__attribute__((noinline)) int same(int i) { return i; }\n"
      "int one = 1;\n__attribute__((noinline)) int times_one(int i) { return i * one; }\n";
  std::string calls;
  for (const Case& one : cases) {
    source += fmt::format("__attribute__((noinline)) void {}(int n) {{ static {} {} }}\n", one.name,
                          one.variables, one.code);
    calls += fmt::format("{}(rounds); ", one.name);
  }
  source += fmt::format("int main(void) {{ {} }}\n", calls);
  const OneRun plain = run_both(source, "c", GetParam());
  for (const Case& one : cases) {
    const auto found = plain.loops.find(one.name);
    EXPECT_EQ(found == plain.loops.end() ? 0 : found->second, one.records) << one.name;
  }
}

TEST_P(Loops, InCpp) {
  const std::string source = R"(
#include <cstddef>
#include <new>
#include <vector>
alignas(16) static char arena[1 << 16];
static std::size_t used;
void* operator new(std::size_t size) {
  void* at = arena + used;
  used += (size + 15) / 16 * 16;
  return at;
}
void operator delete(void*) noexcept {}
void operator delete(void*, std::size_t) noexcept {}

std::vector<long> v(40), w(40);
std::vector<double> d(40);
struct Point { float x, y; };
std::vector<Point> points(25);
int total;

__attribute__((noinline)) long by_index(const std::vector<long>& a) {
  long sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i];
  return sum;
}
__attribute__((noinline)) long by_range(const std::vector<long>& a) {
  long sum = 0;
  for (long x : a) sum += x;
  return sum;
}
__attribute__((noinline)) void copy(const std::vector<long>& from, std::vector<double>& to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<double>(from[i]);
}
template <typename Each>
inline void each(std::size_t n, Each f) {
  for (std::size_t i = 0; i < n; ++i) f(i);
}
template <typename T>
struct Row {
  T* cells;
  std::size_t size;
  __attribute__((noinline)) T sum() const {
    T all{};
    for (std::size_t i = 0; i < size; ++i) all += cells[i];
    return all;
  }
};
int main() {
  v[3] = by_index(w) + by_range(v);
  copy(v, d);
  each(20, [](std::size_t i) { w[i] = static_cast<long>(i); });
  for (Point& p : points) p.x += p.y;
  auto square = [&](int n) { for (int i = 0; i < n; ++i) points[i].y = 2; };
  square(20);
  static Row<double> row{d.data() + 2, 20};
  static Row<long> longs{v.data(), 12};
  d[1] = row.sum();
  total = static_cast<int>(longs.sum());
}
)";
  const OneRun plain = run_both(source, "c++", GetParam());
  std::set<std::string> functions;
  for (const auto& [function, records] : plain.loops) {
    functions.insert(function.substr(0, function.find('(')));
  }
  EXPECT_THAT(functions, ::testing::IsSupersetOf({"by_index", "by_range", "main",
                                                  "Row<double>::sum", "Row<long>::sum"}));
  // The begin of a vector is read in every round: only types tell that the loop does not write it.
  EXPECT_EQ(functions.contains("copy"), std::string(GetParam()) != "-O0");
}

// A loop that touches nothing of the shared memory writes no record, and is plain all the same.
TEST_P(Loops, Unrecorded) {
  const Recorded recorded = run_recorded(R"(
int g;
int main(void) {
  int a[50];
  for (int i = 0; i < 50; ++i) a[i] = i * i;
  int sum = 0;
  for (int i = 0; i < 50; ++i) sum += a[i];
  g = sum;
  return sum == 40425 ? 0 : 1;
}
)",
                                         {.flags = GetParam()});
  EXPECT_EQ(recorded.error, "");
  EXPECT_EQ(recorded.status, 0);
  EXPECT_THAT(recorded.lines(), ::testing::ElementsAre("enter main", "write g 4", "leave main"));
}

}  // namespace
}  // namespace heddle::test
