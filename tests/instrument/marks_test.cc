// Enter and leave: they survive inlining, exceptions and longjmp; and what is known about
// functions.
#include "recorded.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heddle::test {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

Recorded record(const std::string& source, const std::string& flags,
                const std::string& language = "c++") {
  Recorded recorded =
      run_recorded(source, {.flags = flags, .language = language, .flow = false, .points = false});
  EXPECT_EQ(recorded.error, "");
  EXPECT_EQ(recorded.status, 0) << recorded.output;
  return recorded;
}

// Enters, leaves and resyncs only.
std::vector<std::string> marks(const Recorded& run) {
  std::vector<std::string> out;
  for (const std::string& line : run.lines()) {
    if (line.starts_with("enter ") || line.starts_with("leave ") || line.starts_with("resync ")) {
      out.push_back(line);
    }
  }
  return out;
}

// The call stack as the collector keeps it: a resync drops what is above its activation.
std::vector<std::string> final_stack(const Recorded& run, bool& consistent) {
  std::vector<std::pair<std::string, Address>> stack;
  consistent = true;
  for (const RecordedStep& step : run.steps) {
    if (step.kind == RecordedStep::Kind::kEnter) stack.emplace_back(run.function(step), step.frame);
    if (step.kind == RecordedStep::Kind::kLeave) {
      consistent &= !stack.empty() && stack.back().first == run.function(step);
      if (!stack.empty()) stack.pop_back();
    }
    if (step.kind == RecordedStep::Kind::kResync) {
      while (!stack.empty() && stack.back() != std::pair(run.function(step), step.frame)) {
        stack.pop_back();
      }
      consistent &= !stack.empty();
    }
  }
  std::vector<std::string> names;
  names.reserve(stack.size());
  for (const auto& entry : stack) names.push_back(entry.first);
  return names;
}

class MarksAtLevel : public ::testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Levels, MarksAtLevel, ::testing::Values("-O0", "-O1", "-O2"),
                         [](const auto& level) { return std::string(level.param + 1); });

// Whoever is called knows the line of the call: also when it is inlined, when templates of the
// library stand between, and when C code that nobody instrumented calls back.
TEST_P(MarksAtLevel, EnterKnowsItsCall) {
  const Recorded run = record(R"(#include <algorithm>
#include <cstdlib>
int g;
inline int leaf(int n) { return g += n; }
static int twice(int n) {
  int sum = leaf(n);
  sum += leaf(n + 1);
  return sum;
}
static int compare(const void*, const void*) { return ++g; }
int main() {
  int values[] = {1, 2};
  std::for_each(values, values + 2,
                [](int n) { g += n; });
  std::qsort(values, 2, sizeof(int), compare);
  return twice(3) == 0;
}
)",
                              GetParam());
  std::vector<std::string> calls;
  for (const RecordedStep& step : run.steps) {
    if (step.kind != RecordedStep::Kind::kEnter) continue;
    const std::string& name = run.function(step);
    calls.push_back(fmt::format("{} from {}", name.substr(0, name.find_first_of("(:")),
                                step.site == 0 ? 0 : run.catalogs[0].site(step.site).line));
  }
  EXPECT_THAT(calls, ElementsAre("main from 0", "main from 13", "main from 13", "compare from 15",
                                 "twice from 16", "leaf from 6", "leaf from 7"));
}

TEST_P(MarksAtLevel, inlined_calls_are_one_unit_each) {
  const Recorded run = record(R"(
    class Counter {
     public:
      void add(int n) { value_ += n; }
      int get() const { return value_; }
     private:
      int value_ = 0;
    };
    Counter counter;
    int main() {
      for (int i = 0; i < 10; ++i) counter.add(i);
      return counter.get() != 45;
    })",
                              GetParam());
  EXPECT_EQ(run.count("enter Counter::add(int)"), 10u);
  EXPECT_EQ(run.count("leave Counter::add(int)"), 10u);
  EXPECT_EQ(run.count("enter Counter::get() const"), 1u);
  EXPECT_EQ(run.count("read Counter.value_ 4"), 11u);
  Address object = 0;
  for (const RecordedStep& step : run.steps) {
    if (step.kind == RecordedStep::Kind::kEnter && run.function(step) == "Counter::add(int)") {
      object = step.address;
    }
  }
  for (const RecordedStep& step : run.steps) {
    if (step.kind == RecordedStep::Kind::kAccess && run.variable(step) == "Counter.value_") {
      EXPECT_EQ(step.address, object);
    }
  }
}

TEST_P(MarksAtLevel, exceptions_unwind_marks) {
  const Recorded run = record(R"(
    #include <stdexcept>
    int depth_reached, cleaned;
    struct Guard { ~Guard() { ++cleaned; } };
    __attribute__((noinline)) void bottom(int n) { ++depth_reached; if (n == 3) throw n; }
    void middle(int n) { bottom(n); }
    void guarded(int n) { Guard guard; middle(n); }
    int attempt(int n) {
      try { guarded(n); } catch (int) { return 1; }
      return 0;
    }
    int main() { return attempt(1) + attempt(3) * 2 + attempt(3) * 4 != 6 || cleaned != 3; })",
                              GetParam());
  bool consistent = false;
  EXPECT_THAT(final_stack(run, consistent), ElementsAre());
  EXPECT_TRUE(consistent) << ::testing::PrintToString(marks(run));
  EXPECT_EQ(run.count("enter Guard::~Guard()"), 3u);
  EXPECT_EQ(run.count("leave Guard::~Guard()"), 3u);
  EXPECT_EQ(run.count("enter bottom(int)"), 3u);
  EXPECT_EQ(run.count("leave bottom(int)"), 1u);
}

TEST_P(MarksAtLevel, longjmp_resynchronises) {
  const Recorded run = record(R"(
    #include <setjmp.h>
    jmp_buf env; int depth;
    __attribute__((noinline)) void deep(int n) { ++depth; if (n == 0) longjmp(env, 1); deep(n - 1); }
    __attribute__((noinline)) int attempt(void) {
      volatile int before = 1;
      if (setjmp(env) == 0) { before = 2; deep(3); }
      return before;
    }
    int main(void) { return attempt() + attempt() != 4; })",
                              GetParam(), "c");
  bool consistent = false;
  EXPECT_THAT(final_stack(run, consistent), ElementsAre());
  EXPECT_TRUE(consistent) << ::testing::PrintToString(marks(run));
  EXPECT_EQ(run.count("enter deep"), 8u);
  EXPECT_EQ(run.count("leave deep"), 0u);
  EXPECT_EQ(run.count("resync attempt"), 4u);
}

TEST_P(MarksAtLevel, standard_library_is_not_a_unit) {
  const Recorded run = record(R"(
    #include <algorithm>
    #include <map>
    #include <string>
    #include <vector>
    std::vector<int> numbers;
    std::map<std::string, int> names;
    int main() {
      for (int i = 0; i < 5; ++i) numbers.push_back(5 - i);
      std::sort(numbers.begin(), numbers.end(), [](int a, int b) { return a < b; });
      names["x"] = numbers[0];
      return names["x"] != 1;
    })",
                              GetParam());
  for (const std::string& line : marks(run)) {
    EXPECT_TRUE(line.ends_with("main") || line.find("lambda") != std::string::npos ||
                line.find("global") != std::string::npos ||
                line.find("_GLOBAL") != std::string::npos)
        << line;
  }
  std::size_t accesses = 0;
  for (const RecordedStep& step : run.steps) {
    accesses += step.kind == RecordedStep::Kind::kAccess ? 1 : 0;
  }
  EXPECT_GT(accesses, 20u);  // of the vector's and the map's memory
}

const Function* find_function(const Recorded& run, std::string_view name) {
  for (const Catalog& catalog : run.catalogs) {
    for (const Function& function : catalog.functions) {
      if (catalog.text(function.name) == name) return &function;
    }
  }
  return nullptr;
}

TEST(Functions, class_access_constructor_destructor) {
  const Recorded run = record(R"(
    namespace bank {
    class Account {
     public:
      explicit Account(int n) : balance_(n) {}
      virtual ~Account() { balance_ = 0; }
      void deposit(int n) { add(n); }
      static void touch() { ++count; }
      static int count;
     protected:
      void log() { ++logged_; }
     private:
      void add(int n) { balance_ += n; log(); }
      int balance_;
      int logged_ = 0;
    };
    int Account::count;
    struct Open { void touch() { ++x; } int x = 0; };
    template <typename T> struct Box { T value; void set(T v) { value = v; } };
    }
    static int counter;
    static void helper() { ++counter; }
    int main() {
      bank::Account* account = new bank::Account(3);
      account->deposit(4);
      bank::Account::touch();
      delete account;
      static bank::Open open;
      open.touch();
      static bank::Box<long> box;
      box.set(5);
      helper();
      return 0;
    })",
                              "-O0");
  const Catalog& catalog = run.catalogs[0];
  const Function* constructor = find_function(run, "bank::Account::Account(int)");
  ASSERT_NE(constructor, nullptr);
  EXPECT_EQ(catalog.text(constructor->class_name), "bank::Account");
  EXPECT_EQ(constructor->flags & (Function::kConstructor | Function::kMethod),
            Function::kConstructor | Function::kMethod);
  const Function* destructor = find_function(run, "bank::Account::~Account()");
  ASSERT_NE(destructor, nullptr);
  EXPECT_NE(destructor->flags & Function::kDestructor, 0);
  EXPECT_EQ(find_function(run, "bank::Account::deposit(int)")->access, MemberAccess::kPublic);
  EXPECT_EQ(find_function(run, "bank::Account::log()")->access, MemberAccess::kProtected);
  EXPECT_EQ(find_function(run, "bank::Account::add(int)")->access, MemberAccess::kPrivate);
  EXPECT_EQ(find_function(run, "bank::Open::touch()")->access, MemberAccess::kPublic);
  const Function* without_this = find_function(run, "bank::Account::touch()");
  EXPECT_EQ(without_this->flags & Function::kMethod, 0);
  EXPECT_EQ(catalog.text(without_this->class_name), "bank::Account");
  EXPECT_NE(find_function(run, "helper()")->flags & Function::kStatic, 0);
  EXPECT_EQ(find_function(run, "main")->flags & Function::kStatic, 0);
  // One constructor and one destructor ran, whatever number of variants the compiler made.
  EXPECT_EQ(run.count("enter bank::Account::Account(int)"), 1u);
  EXPECT_EQ(run.count("enter bank::Account::~Account()"), 1u);
  EXPECT_EQ(run.count("write bank::Account::count 4"), 1u);
  EXPECT_EQ(run.count("write bank::Box<long>.value 8"), 1u);
}

TEST(Functions, keys_ignore_lines_and_follow_the_body) {
  const auto key = [](const std::string& source) {
    const Recorded run = record(source, "-O1", "c");
    return find_function(run, "f")->key;
  };
  const std::string body = "int f(int i) { g += i; return g; }\nint main(void) { return f(0); }";
  const std::uint64_t plain = key("int g;\n" + body);
  EXPECT_EQ(key("int g;\n\n\n/* moved */\n" + body), plain);
  EXPECT_NE(key("int g;\nint f(int i) { g -= i; return g; }\nint main(void) { return f(0); }"),
            plain);
}

TEST(Language, static_constructors_thread_locals_and_guards) {
  const Recorded run = record(R"(
    #include <thread>
    int order;
    struct Global { Global() { order = order * 10 + 1; } ~Global() { order = 0; } } global;
    thread_local struct Local { Local() { ++order; } int x = 0; ~Local() { --order; } } local;
    struct Lazy { Lazy() { order += 100; } int x = 7; };
    int lazy() { static Lazy instance; return instance.x; }
    int main() {
      std::thread([] { local.x = 3; lazy(); }).join();
      lazy();
      return order != 101;
    })",
                              "-O2");
  EXPECT_EQ(run.count("enter Global::Global()"), 1u);
  EXPECT_EQ(run.count("enter Lazy::Lazy()"), 1u);
  bool guard = false;
  for (const RecordedStep& step : run.steps) {
    guard |= step.kind == RecordedStep::Kind::kAccess && step.event == EventKind::kOncePass;
  }
  EXPECT_TRUE(guard);
}

TEST(Language, coroutines_work) {
  const std::string source = R"(
    #include <coroutine>
    #include <thread>
    int total;
    struct Task {
      struct promise_type {
        int value = 0;
        Task get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_always initial_suspend() { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        std::suspend_always yield_value(int v) { value = v; return {}; }
        void return_void() {}
        void unhandled_exception() {}
      };
      std::coroutine_handle<promise_type> handle;
    };
    Task count(int n) { for (int i = 0; i < n; ++i) { total += i; co_yield i; } }
    int main() {
      Task task = count(5);
      task.handle.resume();
      std::thread([&] { task.handle.resume(); }).join();   // goes on in another thread
      while (!task.handle.done()) task.handle.resume();
      task.handle.destroy();
      return total != 10;
    })";
  for (const char* level : {"-O0", "-O2"}) {
    const Recorded run = record(source, level);
    EXPECT_EQ(run.count("write total 4"), 5u) << level;
  }
}

TEST(Language, link_time_optimisation) {
  const std::string source = R"(
    int g;
    inline int twice(int x) { g += x; return 2 * x; }
    int main() { int s = 0; for (int i = 0; i < 10; ++i) s += twice(i); return s != 90; })";
  for (const char* flags : {"-O2 -flto -fuse-ld=lld-19", "-O2 -flto=thin -fuse-ld=lld-19"}) {
    const Recorded run = record(source, flags);
    EXPECT_EQ(run.count("write g 4"), 10u) << flags;
    EXPECT_EQ(run.count("enter twice(int)"), 10u) << flags;
  }
}

TEST(Language, other_things_that_compile) {
  const Recorded run = record(R"(
    #include <stdarg.h>
    #include <string.h>
    extern "C" int sum(int n, ...) {
      va_list list; va_start(list, n); int s = 0;
      for (int i = 0; i < n; ++i) s += va_arg(list, int);
      va_end(list); return s;
    }
    struct Base { virtual int f(int x) { return x + v; } int v = 1; virtual ~Base() = default; };
    struct Derived : Base { int f(int x) override { return x * v + extra; } int extra = 2; };
    union U { int i; float f; } u;
    struct Big { int a[50]; };
    Big make(int n) { Big b{}; b.a[3] = n; return b; }
    Big big;
    int pick(int x) { switch (x) { case 0: return 1; case 1: return u.i; default: goto out; } out: return 3; }
    int main() {
      Base* b = new Derived; u.f = 1.0f; big = make(9);
      auto lambda = [b](auto x) { return b->f(x); };
      int (*indirect)(int) = &pick;
      bool ok = sum(3, 1, 2, 3) == 6 && lambda(4) == 6 && indirect(7) == 3 && big.a[3] == 9;
      __asm__ volatile("" ::: "memory");
      delete b;
      return !ok;
    })",
                              "-O2 -fno-omit-frame-pointer -ffunction-sections -Wl,--gc-sections");
  EXPECT_EQ(run.count("read Base.v 4"), 1u);
  EXPECT_EQ(run.count("read Derived.extra 4"), 1u);
  EXPECT_EQ(run.count("write u 4"), 1u);
}

}  // namespace
}  // namespace heddle::test
