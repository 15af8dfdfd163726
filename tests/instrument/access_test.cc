// What is recorded for each kind of access, at every level of optimisation.
#include "recorded.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heddle::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using ::testing::StartsWith;

Recorded record(const std::string& source, const std::string& level,
                const std::string& language = "c", bool points = false) {
  Recorded recorded =
      run_recorded(source, {.flags = level, .language = language, .flow = false, .points = points});
  EXPECT_EQ(recorded.error, "");
  return recorded;
}

class AtLevel : public ::testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Levels, AtLevel, ::testing::Values("-O0", "-O1", "-O2"),
                         [](const auto& level) { return std::string(level.param + 1); });

TEST_P(AtLevel, every_increment_is_a_read_and_a_write) {
  const Recorded run = record(R"(
    #include <pthread.h>
    #include <stdio.h>
    int g;
    static void* work(void* x) {
      for (int i = 0; i < 1000; i++) g = g + 1;
      return x;
    }
    int main(void) {
      pthread_t t[2];
      for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, work, 0);
      for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
      printf("%p\n", (void*)&g);
      return 0;
    })",
                              GetParam());
  EXPECT_EQ(run.count("read g 4"), 2000u);
  EXPECT_EQ(run.count("write g 4"), 2000u);
  EXPECT_EQ(run.count("enter work"), 2u);
  EXPECT_EQ(run.count("leave work"), 2u);
  for (const RecordedStep& step : run.steps) {
    if (step.kind != RecordedStep::Kind::kAccess) continue;
    if (run.variable(step) != "g") continue;
    ASSERT_EQ(fmt::format("{:#x}\n", step.address), run.output);
  }
}

TEST_P(AtLevel, repeated_reads_are_not_merged) {
  const Recorded run = record(R"(
    int* p;
    int x = 7;
    int main(void) {
      p = &x;
      if (p) return *p - 7;
      return 1;
    })",
                              GetParam());
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.count("write p 8"), 1u);
  EXPECT_EQ(run.count("read p 8"), 2u);
}

TEST_P(AtLevel, unused_and_overwritten_accesses_stay) {
  const Recorded run = record(R"(
    static int a;
    int main(void) {
      (void)a;
      a = 1;
      a = 2;
      int unused = a;
      (void)unused;
      return 0;
    })",
                              GetParam());
  EXPECT_EQ(run.count("write a 4"), 2u);
  EXPECT_GE(run.count("read a 4"), 1u);
}

TEST_P(AtLevel, only_what_cannot_be_shared_is_left_out) {
  const Recorded run = record(R"(
    #include <pthread.h>
    static const int constants[3] = {1, 2, 3};
    static __thread int local;
    struct pair { int first, second; };
    int* leak;
    int use(int i) {
      int array[4] = {i, i + 1, i + 2, i + 3};   /* its address stays here */
      struct pair escaping = {1, 2};
      leak = &escaping.first;
      escaping.second = array[i & 3];            /* not at the offset that escapes */
      local += constants[i & 1];
      return escaping.second + local;
    }
    int main(void) { return use(1) == 0; })",
                              GetParam());
  const std::vector<std::string> lines = run.lines();
  EXPECT_EQ(run.count("write pair.second 4"), 1u);
  EXPECT_EQ(run.count("read pair.second 4"), 1u);
  EXPECT_EQ(run.count("write leak 8"), 1u);
  for (const std::string& line : lines) {
    EXPECT_EQ(line.find("array"), std::string::npos) << line;
    EXPECT_EQ(line.find("local"), std::string::npos) << line;
    EXPECT_EQ(line.find("constants"), std::string::npos) << line;
  }
}

// Functions that are handed nothing but locals of their caller do that caller's private work,
// whatever the author thinks of inlining; handed anything else, they are units as ever.
TEST_P(AtLevel, calls_on_private_locals_are_left_out) {
  const Recorded run = record(R"(
    struct Generator {
      unsigned state = 1;
      unsigned next() { return state = state * 5 + 1; }
      unsigned below(unsigned n) { return next() % n; }
      Generator& skip() { next(); return *this; }
    };
    struct Pair { int first, second; };
    static int sum(const Pair& a, const Pair& b) { return a.first + b.second; }
    __attribute__((noinline)) static void step(Pair& a) { ++a.first; }
    Generator shared;
    Pair known{1, 2};
    Pair* kept;
    unsigned out;
    void private_work() {
      Generator mine;
      Generator& again = mine;
      Pair a{3, 4};
      step(a);
      out = mine.next() + again.below(7) + static_cast<unsigned>(sum(a, a));
    }
    void shared_work() { out = shared.below(7); }
    void mixed_work() {
      Pair a{3, 4};
      out = static_cast<unsigned>(sum(a, known));
    }
    void escaping_work() {
      Pair a{3, 4};
      kept = &a;
      step(a);
      out = static_cast<unsigned>(a.first);
    }
    void chained_work() {
      Generator mine;
      out = mine.skip().next();
    }
    int main() {
      private_work();
      shared_work();
      mixed_work();
      escaping_work();
      chained_work();
      return out == 12345;
    })",
                              GetParam(), "c++");
  // By unit: what each of main's calls did itself and below.
  std::map<std::string, std::vector<std::string>> units;
  std::string unit;
  for (const std::string& step : run.lines()) {
    if (step.starts_with("enter ") && step.ends_with("_work()")) unit = step.substr(6);
    units[unit].push_back(step);
  }
  EXPECT_THAT(units["private_work()"],
              ElementsAre("enter private_work()", "write out 4", "leave private_work()"));
  EXPECT_THAT(
      units["shared_work()"],
      ElementsAre("enter shared_work()", "enter Generator::below(unsigned int)",
                  "enter Generator::next()", "read Generator.state 4", "write Generator.state 4",
                  "leave Generator::next()", "leave Generator::below(unsigned int)", "write out 4",
                  "leave shared_work()"));
  EXPECT_THAT(units["mixed_work()"], Contains("read Pair.first 4"));
  EXPECT_THAT(units["mixed_work()"], Contains(StartsWith("enter sum(")));
  EXPECT_THAT(units["escaping_work()"], Contains("enter step(Pair&)"));
  EXPECT_THAT(units["escaping_work()"], Contains("write Pair.first 4"));
  EXPECT_THAT(units["chained_work()"], Contains("write out 4"));
}

TEST_P(AtLevel, members_have_type_field_and_offset) {
  const Recorded run = record(R"(
    typedef struct { int id; long balance; struct { short lo, hi; } limits; int history[4]; } Account;
    struct node { struct node* next; Account* account; };
    Account acct; struct node n;
    void deposit(struct node* where, int amount) {
      where->account->balance += amount;
      where->account->limits.hi = 3;
      where->account->history[amount & 3] = amount;
      acct.id = 1;
    }
    int main(void) { n.account = &acct; deposit(&n, 5); return acct.balance != 5; })",
                              GetParam());
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.count("read node.account 8"), 3u);
  EXPECT_EQ(run.count("write Account.balance 8"), 1u);
  EXPECT_EQ(run.count("read Account.balance 8"), 2u);
  EXPECT_EQ(run.count("write Account.history[] 4"), 1u);
  EXPECT_EQ(run.count("write Account.id 4"), 1u);
  const Site* site = run.find_site("write Account.balance 8");
  ASSERT_NE(site, nullptr);
  EXPECT_EQ(run.catalogs[0].text(site->type), "Account");
  EXPECT_EQ(run.catalogs[0].text(site->field), "balance");
  EXPECT_EQ(site->offset, 8u);
  EXPECT_EQ(site->line, 6u);
  const Function& deposit = run.catalogs[0].function(site->function);
  EXPECT_EQ(run.catalogs[0].text(deposit.class_name), "node");
}

TEST_P(AtLevel, objects_on_the_stack_have_names) {
  const Recorded run = run_recorded(R"(
    void keep(void*);
    void* kept;
    namespace {
    class Account {
     public:
      void deposit(int n) { balance_ = balance_ + n; }
      int x = 0;
     private:
      int balance_ = 0;
    };
    struct Pair { int first, second; };
    template <class T> struct Box { T other; T value; void set(T v) { value = v; } };
    }
    template <class F> void call(const F& f) { f(); }
    void keep(void* p) { kept = p; }
    int main() {
      Account account;
      Pair pair{1, 2};
      Box<long> box;
      int plain = 0, table[4];
      keep(&pair);
      call([&] {
        account.deposit(3);
        box.set(4);
        plain = 4;
        table[3] = 1;
        Pair other = pair;
        pair = Pair{other.second, 3};
      });
    })",
                                    {.flags = GetParam(), .language = "c++"});
  EXPECT_EQ(run.error, "");
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.count("read (anonymous)::Account.balance_ 4"), 1u);
  EXPECT_EQ(run.count("write (anonymous)::Account.balance_ 4"), 2u);
  EXPECT_EQ(run.count("write (anonymous)::Box<long>.value 8"), 1u);
  EXPECT_EQ(run.count("write plain 4"), 2u);
  EXPECT_EQ(run.count("write table[] 4"), 1u);
  EXPECT_GE(run.count("write pair 4") + run.count("write pair 8"), 1u);
}

TEST_P(AtLevel, bit_fields_have_their_names) {
  const Recorded run = record(R"(
    struct flags { unsigned ready : 1; unsigned mode : 3; int level : 5; } f;
    int main(void) {
      f.mode = 5;
      f.level = -2;
      return f.ready + (f.level != -2);
    })",
                              GetParam());
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.count("write flags.mode 2"), 1u);
  EXPECT_EQ(run.count("write flags.level 2"), 1u);
  EXPECT_EQ(run.count("read flags.ready 2"), 1u);
  EXPECT_NE(run.find_site("write flags.mode 2")->flags & Site::kBitField, 0);
}

TEST_P(AtLevel, atomics_have_their_order_and_are_points) {
  const Recorded run = record(R"(
    #include <stdatomic.h>
    atomic_int a; volatile int v; int b;
    int main(void) {
      atomic_store_explicit(&a, 1, memory_order_release);
      atomic_load_explicit(&a, memory_order_acquire);
      atomic_load_explicit(&a, memory_order_relaxed);
      atomic_fetch_add(&a, 2);
      int expected = 3, wrong = 9;
      if (!atomic_compare_exchange_strong_explicit(&a, &expected, 4, memory_order_acq_rel,
                                                   memory_order_acquire)) return 1;
      if (atomic_compare_exchange_strong_explicit(&a, &wrong, 5, memory_order_acq_rel,
                                                  memory_order_relaxed)) return 2;
      atomic_thread_fence(memory_order_seq_cst);
      atomic_signal_fence(memory_order_seq_cst);
      v = 1;
      b = 2;
      return 0;
    })",
                              GetParam());
  EXPECT_EQ(run.status, 0);
  std::vector<std::string> lines;
  for (const std::string& line : run.lines()) {
    if (!line.starts_with("enter") && !line.starts_with("leave")) lines.push_back(line);
  }
  EXPECT_THAT(lines, ElementsAre("write a 4 release", "read a 4 acquire", "read a 4 relaxed",
                                 "rmw a 4 seq_cst", "rmw a 4 acq_rel", "read a 4 relaxed",
                                 "fence seq_cst", "write v 4", "write b 4"));
  // All but the write of b, whose flag is not set.
  EXPECT_EQ(run.points.size(), 8u);
}

TEST_P(AtLevel, ranges_of_memory_intrinsics) {
  const Recorded run = record(R"(
    #include <string.h>
    #include <stdlib.h>
    struct big { char bytes[100]; } x, y;
    char* heap;
    int main(int argc, char** argv) {
      x = y;
      heap = malloc(64);
      memset(heap, 0, 32 + (size_t)argc);
      memmove(heap, heap + 1, (size_t)argc - 1);
      memcpy(&x, heap, 8);
      return 0;
    })",
                              GetParam());
  EXPECT_EQ(run.count("read y 100"), 1u);
  EXPECT_EQ(run.count("write x 100"), 1u);
  EXPECT_EQ(run.count("write ? 33"), 1u);
  EXPECT_EQ(run.count("read ? 0"), 1u);
  EXPECT_EQ(run.count("write ? 0"), 1u);
  EXPECT_EQ(run.count("read ? 8"), 1u);
}

TEST_P(AtLevel, derived_addresses_are_right) {
  const Recorded run = record(R"(
    #include <stdio.h>
    int a[100];
    struct s { int x, y, z; } items[10];
    int sum(int* p, int i, struct s* q, long j) {
      return p[i - 1] + p[i] + p[i + 1] + p[i * 2] + q[j].x + q[j].z + q[j + 1].y;
    }
    int main(void) {
      int r = sum(a, 10, items, 3);
      printf("%p %p\n", (void*)a, (void*)items);
      return r;
    })",
                              GetParam());
  std::vector<Address> got;
  for (const RecordedStep& step : run.steps) {
    if (step.kind == RecordedStep::Kind::kAccess) got.push_back(step.address);
  }
  Address a = 0;
  Address items = 0;
  ASSERT_EQ(std::sscanf(run.output.c_str(), "%lx %lx", &a, &items), 2);
  EXPECT_THAT(got, ElementsAre(a + 36, a + 40, a + 44, a + 80, items + 36, items + 44, items + 52));
}

TEST_P(AtLevel, points_may_move_the_record) {
  const std::string source = R"(
    int g, h; int table[64];
    struct s { int x; long y; } s;
    int f(int i) { g += i; s.y = table[i] + g; table[i + 1] = h++; return s.x; }
    int main(void) {
      int r = 0;
      for (int i = 0; i < 20; i++) r += f(i);
      return r + g != 190;
    })";
  const Recorded plain = record(source, GetParam());
  const Recorded moved = record(source, GetParam(), "c", true);
  EXPECT_EQ(plain.status, 0);
  EXPECT_EQ(moved.status, 0);
  EXPECT_TRUE(plain.points.empty());
  std::vector<std::string> expected = plain.lines();
  std::vector<std::string> got = moved.lines();
  EXPECT_EQ(got, expected);
  std::size_t accesses = 0;
  for (const RecordedStep& step : moved.steps) {
    accesses += step.kind == RecordedStep::Kind::kAccess ? 1 : 0;
  }
  EXPECT_EQ(moved.points.size(), accesses);
}

TEST(Access, vectors_and_arrays_on_the_stack) {
  const Recorded run = record(R"(
    typedef int v4 __attribute__((vector_size(16)));
    v4 a, b;
    int vla(int n) { int x[n]; for (int i = 0; i < n; i++) x[i] = i; return x[n - 1]; }
    int main(int argc, char** argv) { a = a + b; __asm__ volatile("nop" ::: "memory"); return vla(argc + 3) != 3; })",
                              "-O2");
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.count("write a 16"), 1u);
  EXPECT_NE(run.find_site("write a 16")->flags & Site::kVector, 0);
  for (const std::string& line : run.lines()) EXPECT_EQ(line.find(" x"), std::string::npos) << line;
}

TEST(Access, libc_ranges_go_through_the_runtime) {
  const Recorded run = record(R"(
    #include <string.h>
    char text[16] = "hello", copy[16];
    int main(void) {
      if (strlen(text) != 5) return 1;
      if (strlen("four") != 4) return 2;           /* nothing shared */
      strcpy(copy, text);
      strcat(copy, "!");
      if (strcmp(copy, text) <= 0) return 3;
      if (strchr(copy, 'l') != copy + 2) return 4;
      if (memcmp(copy, text, 16) == 0) return 5;
      char* token = strtok(copy, "l");
      return strcmp(token, "he") != 0;
    })",
                              "-O1");
  EXPECT_EQ(run.status, 0);
  std::vector<std::string> ranges;
  for (const std::string& line : run.lines()) {
    if (line.starts_with("range") || line == "libcall") ranges.push_back(line);
  }
  EXPECT_THAT(ranges,
              ElementsAre("libcall", "range read 6",                                   // strlen
                          "libcall", "range read 6", "range write 6",                  // strcpy
                          "libcall", "range read 6", "range read 2", "range write 2",  // strcat
                          "libcall", "range read 6", "range read 6",                   // strcmp
                          "libcall", "range read 3",                                   // strchr
                          "libcall", "range read 6", "range read 6",                   // memcmp
                          "libcall", "range read 8", "range read 2", "range read 3",   // strtok
                          "range write 1", "range write 8",                            //
                          "libcall", "range read 3", "range read 3"));                 // strcmp
}

TEST(Access, long_blocks_are_cut) {
  std::string source = "int main(int n, char** v) { int** p = (int**)v; long s = 0;\n";
  source += "static int* volatile q; static int x; q = &x; int* a;\n";
  for (int i = 0; i < 300; ++i) source += "a = q; s += *a;\n";
  source += "return s != 0; }";
  const Recorded run = record(source, "-O1");
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.count("read ? 4"), 300u);
}

}  // namespace
}  // namespace heddle::test
