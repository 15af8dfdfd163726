// Whatever is printed parses back to the same trace. Two kinds of random traces: any catalog with
// any events, where nearly everything needs a declaration; and random short lines as a person
// writes them, where nearly nothing does.
#include "trace/random_trace.h"
#include "trace/text.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

using testing::RandomTrace;

// The trace with every StringId replaced by the text it stands for.
struct Spelt {
  const Catalog& catalog;

  std::string_view operator()(StringId id) const { return catalog.text(id); }
  bool same(const Function& a, const Spelt& other, const Function& b) const {
    return (*this)(a.name) == other(b.name) && (*this)(a.linkage_name) == other(b.linkage_name) &&
           (*this)(a.file) == other(b.file) && (*this)(a.class_name) == other(b.class_name) &&
           a.line == b.line && a.access == b.access && a.flags == b.flags &&
           a.parameters == b.parameters && a.registers == b.registers && a.key == b.key;
  }
  bool same(const Site& a, const Spelt& other, const Site& b) const {
    return a.function == b.function && (*this)(a.file) == other(b.file) && a.line == b.line &&
           a.column == b.column && a.ordinal == b.ordinal && a.kind == b.kind &&
           a.order == b.order && a.flags == b.flags && a.size == b.size &&
           (*this)(a.variable) == other(b.variable) && (*this)(a.type) == other(b.type) &&
           (*this)(a.field) == other(b.field) && a.offset == b.offset && a.key == b.key;
  }
  bool same(const Symbol& a, const Spelt& other, const Symbol& b) const {
    return (*this)(a.name) == other(b.name) && (*this)(a.file) == other(b.file) &&
           a.line == b.line && a.address == b.address && a.size == b.size;
  }
  bool same(const Module& a, const Spelt& other, const Module& b) const {
    return (*this)(a.path) == other(b.path) && (*this)(a.build_id) == other(b.build_id) &&
           a.load_bias == b.load_bias;
  }
  bool same(const ThreadInfo& a, const Spelt& other, const ThreadInfo& b) const {
    return (*this)(a.name) == other(b.name);
  }
  bool same(Segment a, const Spelt& other, Segment b) const {
    const bool callee = (*this)(a.callee) == other(b.callee);
    a.callee = b.callee = 0;
    return callee && a == b;
  }
  bool same(Event a, const Spelt& other, Event b) const {
    bool text = true;
    if (a.kind == EventKind::kUnitBegin || a.kind == EventKind::kUnitEnd ||
        a.kind == EventKind::kMark) {
      text = (*this)(static_cast<StringId>(a.value)) == other(static_cast<StringId>(b.value));
      a.value = b.value = 0;
    } else if (a.kind == EventKind::kOutcome) {
      text = (*this)(static_cast<StringId>(a.address)) == other(static_cast<StringId>(b.address));
      a.address = b.address = 0;
    }
    return text && a == b;
  }
};

template <typename Table>
void expect_same(const char* what, const Catalog& a, const Table& of_a, const Catalog& b,
                 const Table& of_b) {
  ASSERT_EQ(of_a.size(), of_b.size()) << what;
  for (std::size_t i = 0; i < of_a.size(); ++i) {
    ASSERT_TRUE(Spelt{a}.same(of_a[i], Spelt{b}, of_b[i])) << what << " " << i;
  }
}

void expect_round_trip(const Trace& trace) {
  const std::string printed = print_text(trace);
  Result<Trace> again = parse_text(printed);
  ASSERT_TRUE(again.ok()) << again.error().message << "\n" << printed;
  const Catalog& a = trace.catalog;
  const Catalog& b = again->catalog;
  SCOPED_TRACE(printed.substr(0, 4000));
  expect_same("event", a, trace.events, b, again->events);
  expect_same("function", a, a.functions, b, b.functions);
  expect_same("site", a, a.sites, b, b.sites);
  expect_same("segment", a, a.segments, b, b.segments);
  expect_same("symbol", a, a.symbols, b, b.symbols);
  expect_same("module", a, a.modules, b, b.modules);
  expect_same("thread", a, a.threads, b, b.threads);
  EXPECT_EQ(print_text(*again), printed);
}

TEST(TextRandom, AnyTraceRoundTrips) {
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    RandomTrace random(seed);
    Trace trace;
    random.grow(trace.catalog, random.below(8));
    const auto threads = static_cast<ThreadId>(1 + random.below(4));
    trace.events = random.events(trace.catalog, random.below(60), threads);
    // Hit the variables, and strings that need quotes.
    const StringId odd = trace.catalog.strings.intern("a \"b\"\\\n\x01\xff#:(");
    for (Symbol& symbol : trace.catalog.symbols) {
      if (random.one_in(4)) symbol.name = odd;
      if (random.one_in(2)) symbol.size = 1 + random.below(32);
    }
    for (Event& event : trace.events) {
      if (trace.catalog.symbols.empty() || event.kind == EventKind::kOutcome) continue;
      const Symbol& symbol = trace.catalog.symbols[random.below(trace.catalog.symbols.size())];
      if (random.one_in(2)) event.address = symbol.address + random.below(20);
      if (is_access(event.kind) && random.one_in(2)) event.size = 1u << random.below(4);
    }
    expect_round_trip(trace);
    if (HasFatalFailure()) return;
  }
}

std::string random_line(RandomTrace& random) {
  static constexpr const char* kNames[] = {"x", "y", "obj.f", "a[3]", "ns::v", "\"odd name\""};
  static constexpr const char* kVerbs[] = {
      "r",          "w",          "rmw.acq_rel", "r.acquire", "fence.seq_cst", "acq",
      "rel.shared", "wait",       "signal",      "sem.wait",  "enter",         "leave",
      "begin",      "end",        "branch not",  "alloc",     "free",          "mark",
      "fork t3",    "thread.end", "once.pass",   "io.read",   "outcome exit 1"};
  static constexpr const char* kFunctions[] = {"f", "g", "C::m", "\"h(int)\""};
  const auto pick = [&](const auto& list) {
    return std::string(list[random.below(std::size(list))]);
  };
  const auto place = [&] {
    std::string text = random.one_in(6) ? "0x5000" : pick(kNames);
    if (text[0] != '0' && random.one_in(3)) text += "+" + std::to_string(random.below(4));
    return text;
  };
  const std::string verb = pick(kVerbs);
  std::string line = "t" + std::to_string(random.below(3)) + ": " + verb;
  if (verb[0] == 'r' || verb[0] == 'w' || verb == "acq" || verb == "signal" || verb == "sem.wait" ||
      verb == "alloc" || verb == "free" || verb == "once.pass" || verb == "io.read") {
    line += " " + place();
  }
  if (verb == "wait") line += " " + place();
  if (verb == "enter" || verb == "leave") line += " " + pick(kFunctions);
  if (verb == "enter" && random.one_in(3)) line += " on " + place();
  if (verb == "begin" && random.one_in(2)) line += " unit";
  if (verb == "mark") line += " \"text\"";
  if (random.one_in(2)) {
    line += " @a.c:" + std::to_string(1 + random.below(9));
    if (random.one_in(3)) line += ":" + std::to_string(random.below(3));
    if (random.one_in(2)) line += " in " + pick(kFunctions);
  }
  return line + "\n";
}

TEST(TextRandom, WhatAPersonWritesRoundTripsWithoutDeclarations) {
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    RandomTrace random(seed);
    std::string text;
    for (std::uint64_t n = random.below(30); n > 0; --n) {
      const std::string line = random_line(random);
      if (parse_text(text + line).ok()) text += line;  // some reach beyond a small variable
    }
    const Trace trace = trace_from_text(text);
    expect_round_trip(trace);
    const std::string printed = print_text(trace);
    for (const char* word : {"var ", "function ", "site ", "segment "}) {
      EXPECT_EQ(printed.find(word), std::string::npos) << text << "\n" << printed;
    }
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace heddle
