#include "trace/text.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

std::string error_of(std::string_view text) {
  Result<Trace> trace = parse_text(text, "x.txt");
  return trace.ok() ? "no error" : trace.error().message;
}

std::string_view symbol(const Trace& trace, Address address) {
  for (const Symbol& s : trace.catalog.symbols) {
    if (s.address == address) return trace.catalog.text(s.name);
  }
  return {};
}

TEST(Text, ALineIsAnEvent) {
  const Trace trace = trace_from_text(R"(
    # the lost update
    t0: fork t1
    t1: acq m @bank.c:10
    t1: r balance = 100 @bank.c:11:7 in deposit   # a comment
    t1: rel m
    t1: w balance:4 = -1
  )");
  ASSERT_EQ(trace.events.size(), 5u);
  EXPECT_EQ(trace.events[0].kind, EventKind::kFork);
  EXPECT_EQ(trace.events[0].value, 1u);
  const Event& read = trace.events[2];
  EXPECT_EQ(read.kind, EventKind::kRead);
  EXPECT_EQ(read.thread, 1u);
  EXPECT_EQ(read.size, 8u);
  EXPECT_TRUE(read.has_value);
  EXPECT_EQ(read.value, 100u);
  EXPECT_EQ(symbol(trace, read.address), "balance");
  const Site& site = trace.catalog.site(read.site);
  EXPECT_EQ(trace.catalog.text(site.file), "bank.c");
  EXPECT_EQ(site.line, 11u);
  EXPECT_EQ(site.column, 7u);
  EXPECT_EQ(site.kind, EventKind::kRead);
  EXPECT_NE(site.key, 0u);
  EXPECT_EQ(trace.catalog.text(trace.catalog.function(site.function).name), "deposit");
  EXPECT_EQ(trace.events[1].address, trace.events[3].address);
  EXPECT_EQ(trace.events[4].size, 4u);
  EXPECT_EQ(trace.events[4].value, ~std::uint64_t{0});
}

TEST(Text, VariablesAreApartAndPlacesAreExactToTheByte) {
  const Trace trace = trace_from_text(
      "t0: w x\nt0: w y\nt0: w x+2:1\nt0: w 0x5000:16\n"
      "t0: r x+4\nt0: r 0x5000\n");
  EXPECT_GE(trace.events[1].address, trace.events[0].address + 64);
  EXPECT_EQ(trace.events[2].address, trace.events[0].address + 2);
  EXPECT_EQ(trace.events[2].size, 1u);
  EXPECT_EQ(trace.events[3].address, 0x5000u);
  EXPECT_EQ(trace.events[3].size, 16u);
  EXPECT_EQ(trace.events[0].size, 8u);
  EXPECT_EQ(trace.events[4].size, 4u);
  EXPECT_EQ(trace.events[5].size, 8u);
}

TEST(Text, ASiteIsAPlaceAndAKind) {
  const Trace trace = trace_from_text(
      "t0: r x @a.c:3\nt1: r y @a.c:3\nt0: w x @a.c:3\nt0: r x @a.c:4\nt0: r x @P\nt0: r x @7\n");
  EXPECT_EQ(trace.events[0].site, trace.events[1].site);
  EXPECT_NE(trace.events[0].site, trace.events[2].site);
  EXPECT_NE(trace.events[0].site, trace.events[3].site);
  EXPECT_EQ(trace.catalog.text(trace.catalog.site(trace.events[4].site).file), "P");
  EXPECT_EQ(trace.catalog.site(trace.events[5].site).line, 7u);
}

TEST(Text, SitesHaveTheSameKeysInEveryTrace) {
  const Trace one = trace_from_text("t0: w z @b.c:1\nt0: r x @a.c:3 in f\n");
  const Trace two = trace_from_text("t0: r x @a.c:3 in f\n");
  EXPECT_EQ(one.catalog.site(one.events[1].site).key, two.catalog.site(two.events[0].site).key);
}

TEST(Text, PrintsWhatItRead) {
  const std::string text =
      "t0: fork t1\n"
      "t1: thread.begin t0\n"
      "t1: r x\n"
      "t1: r.acquire x @a.c:3\n"
      "t1: w x+2:1 = 5 @a.c:9:2 in f\n"
      "t1: rmw.acq_rel flag = 0xffffffffffffffff\n"
      "t1: fence.seq_cst\n"
      "t1: acq m\n"
      "t1: acq.shared m failed\n"
      "t1: acq m timedout\n"
      "t1: wait c m\n"
      "t1: wait c m timedout\n"
      "t1: signal c\n"
      "t1: broadcast c\n"
      "t1: rel m @\"a file.c\":3\n"
      "t1: rel.shared m\n"
      "t1: sem.post s\n"
      "t1: sem.wait s failed\n"
      "t1: barrier.arrive b\n"
      "t1: barrier.leave b\n"
      "t1: once.begin o\n"
      "t1: once.end o\n"
      "t1: once.pass o\n"
      "t1: order.release q\n"
      "t1: order.acquire q\n"
      "t1: alloc 0x5000:40\n"
      "t1: free 0x5000\n"
      "t1: enter ns::Account::deposit on 0x5000 @a.c:7\n"
      "t1: leave ns::Account::deposit\n"
      "t1: enter \"f(int, char)\"\n"
      "t1: begin\n"
      "t1: begin transfer\n"
      "t1: end transfer\n"
      "t1: end\n"
      "t1: branch taken @a.c:1\n"
      "t1: branch not @a.c:1\n"
      "t1: io.read log:100\n"
      "t1: io.write log:7\n"
      "t1: mark \"here we \\\"are\\\"\"\n"
      "t1: thread.end\n"
      "t0: join t1\n"
      "t0: outcome assertion 6 \"x > 0\"\n";
  EXPECT_EQ(print_text(trace_from_text(text)), text);
}

TEST(Text, DeclarationsSayWhatEventsCannot) {
  const std::string text =
      "thread t1 worker\n"
      "module \"/bin/shop\" build=\"00ff\" bias=0x400000\n"
      "var stock 0x404040:4 @shop.cc:6\n"
      "function 1 \"Shop::sell()\" @shop.cc:10 linkage=_ZN4Shop4sellEv class=Shop access=private "
      "flags=method+static parameters=1 registers=3 key=0x1234567\n"
      "site 1 @shop.cc:12:7 in \"Shop::sell()\" ordinal=2 kind=r order=relaxed flags=volatile "
      "size=4 "
      "variable=Shop.stock type=Shop field=stock offset=16 key=0x9999999\n"
      "t1: r stock @shop.cc:12:7 in \"Shop::sell()\"\n"
      "site 2 @shop.cc:12:7 in \"Shop::sell()\" ordinal=3 kind=r size=4\n"
      "t1: r stock @shop.cc:12:7#2 in \"Shop::sell()\"\n"
      "segment 1 in \"Shop::sell()\" block=4 index=0 parents=1,2\n"
      "  phi %5 1(%2 %3) 2()\n"
      "  access @#1 %6 address=(%1) value=(%5 %6)\n"
      "  access @#2\n"
      "  ends call from=(%6) arguments=(%1)() defines=%7 callee=g\n"
      "t1: segment 1\n";
  EXPECT_EQ(print_text(trace_from_text(text)), text);
}

TEST(Text, EntriesThatLookAlikeStayApart) {
  Trace trace = trace_from_text("t0: enter f @a.c:3\nt0: r x @a.c:4\n");
  Catalog& catalog = trace.catalog;
  catalog.functions.push_back(catalog.functions[1]);
  catalog.sites.push_back(catalog.sites[1]);
  catalog.symbols.push_back(catalog.symbols[0]);
  catalog.symbols[1].address += 0x1000;
  // One after the other, so that no line declares what the next one needs.
  trace.events.push_back(trace.events[0]);
  trace.events[2].value = 2;
  trace.events[2].site = 0;
  trace.events.push_back(trace.events[1]);
  trace.events[3].address += 0x1000;
  trace.events.push_back(trace.events[0]);
  trace.events[4].site = 3;
  const std::string printed = print_text(trace);
  EXPECT_NE(printed.find("enter f#2\n"), std::string::npos) << printed;
  EXPECT_NE(printed.find("enter f @a.c:3#3\n"), std::string::npos) << printed;
  const Trace again = trace_from_text(printed);
  EXPECT_EQ(again.events, trace.events) << printed;
  EXPECT_EQ(again.catalog.functions.size(), 3u);
  EXPECT_EQ(again.catalog.symbols.size(), 2u);
}

TEST(Text, FieldsThatAKindDoesNotUseAreKept) {
  const std::string text = "t0: acq m {order=1 size=8 has_value=1 value=3}\nt0: r x {value=7}\n";
  const Trace trace = trace_from_text(text);
  EXPECT_EQ(trace.events[0].order, MemoryOrder::kRelaxed);
  EXPECT_EQ(trace.events[1].value, 7u);
  EXPECT_EQ(print_text(trace), text);
}

TEST(Text, ErrorsSayWhereWhatWasFoundAndWhatWasExpected) {
  EXPECT_EQ(error_of("t0: r x\nt1: frobnicate x\n"),
            "x.txt:2: found `frobnicate`, expected an event such as r, w, acq, rel, fork, join, "
            "enter, leave, begin, end");
  EXPECT_EQ(error_of("t0: r\n"),
            "x.txt:1: found the end of the line, expected a variable or an address");
  EXPECT_EQ(error_of("t0: r x y\n"), "x.txt:1: found `y`, expected the end of the line");
  EXPECT_EQ(error_of("t0: r x = y\n"), "x.txt:1: found `y`, expected a value");
  EXPECT_EQ(error_of("t0: r.fast x\n"),
            "x.txt:1: found `r.fast`, expected a memory order: relaxed, consume, acquire, release, "
            "acq_rel, seq_cst");
  EXPECT_EQ(error_of("t0: r x\nt0: r x+8\n"),
            "x.txt:2: found x+8, expected a place within the 8 bytes of `x`");
  EXPECT_EQ(error_of("t0: fork x\n"), "x.txt:1: found `x`, expected a thread: t0, t1, … t1048575");
  EXPECT_EQ(error_of("t0: segment 4\n"),
            "x.txt:1: found segment 4, expected a segment declared before");
  EXPECT_EQ(error_of("site 4\n"),
            "x.txt:1: found another number of this site, expected site 1, the next");
  EXPECT_EQ(
      error_of("1|r(x)|3\n"),
      "x.txt:1: found `1|r(x)|3`, expected an event (`t1: r x`) or a declaration (var, thread, "
      "module, function, site, segment)");
}

TEST(Text, IsToldFromOtherFilesByItsFirstLine) {
  EXPECT_TRUE(looks_like_text("# hello\n\n  t1: r x\n"));
  EXPECT_TRUE(looks_like_text("var x 0x50\n"));
  EXPECT_FALSE(looks_like_text("T1|r(x)|3\n"));
  EXPECT_FALSE(
      looks_like_text("\x7f"
                      "ELF"));
}

}  // namespace
}  // namespace heddle
