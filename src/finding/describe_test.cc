#include "finding/describe.h"

#include "finding/fingerprint.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

Event event(EventKind kind, Address address, std::uint64_t value, SiteId site = 0) {
  Event out;
  out.kind = kind;
  out.address = address;
  out.value = value;
  out.site = site;
  return out;
}

class DescriberTest : public testing::Test {
 protected:
  SiteId site_in(const char* file, std::uint32_t line) {
    Site site;
    site.file = catalog.strings.intern(file);
    site.line = line;
    catalog.sites.push_back(site);
    return static_cast<SiteId>(catalog.sites.size() - 1);
  }
  void symbol(const char* name, Address address, std::uint64_t size) {
    catalog.symbols.push_back({catalog.strings.intern(name), 0, 0, address, size});
  }

  Catalog catalog;
};

TEST_F(DescriberTest, NamesAGlobalAnElementAndABytePosition) {
  symbol("stock", 0x1000, 4);
  symbol("table", 0x2000, 32);
  const Describer describe(catalog);
  EXPECT_EQ(describe.variable(0, 0x1000, 4).name, "stock");
  EXPECT_EQ(describe.variable(0, 0x2008, 8).name, "table[1]");
  EXPECT_EQ(describe.variable(0, 0x2003, 2).name, "table+3");
  EXPECT_EQ(describe.variable(0, 0x1004, 4).name, "0x1004");
}

TEST_F(DescriberTest, AHeapBlockIsNamedByItsAllocationUntilItIsFreed) {
  const SiteId site = site_in("src/shop.cc", 9);
  Describer describe(catalog);
  describe.on(event(EventKind::kAlloc, 0x5000, 40, site));
  EXPECT_EQ(describe.variable(0, 0x5008, 8).name, "40-byte block allocated at shop.cc:9, byte 8");
  EXPECT_EQ(describe.variable(0, 0x5028, 8).name, "0x5028");
  describe.on(event(EventKind::kFree, 0x5000, 0));
  EXPECT_EQ(describe.variable(0, 0x5008, 8).name, "0x5008");
}

TEST_F(DescriberTest, ALockIsCalledWhatItIsCalledWhereItIsTaken) {
  const SiteId site = site_in("bank.cc", 12);
  catalog.sites[site].variable = catalog.strings.intern("(anonymous)::Account.lock");
  catalog.sites[site].field = catalog.strings.intern("lock");
  symbol("main_account", 0x1000, 64);
  Describer describe(catalog);
  EXPECT_EQ(describe.object(0x7000), "0x7000");
  for (const Address address : {0x7000, 0x8000, 0x7000, 0x1008}) {
    describe.on(event(EventKind::kAcquire, address, 0, site));
  }
  EXPECT_EQ(describe.object(0x7000), "Account.lock");
  EXPECT_EQ(describe.object(0x8000), "Account.lock#2") << "another account's";
  EXPECT_EQ(describe.object(0x1008), "main_account.lock");
}

TEST_F(DescriberTest, AConditionDoesNotGiveItsNameToTheLock) {
  const SiteId taken = site_in("queue.cc", 24);
  catalog.sites[taken].variable = catalog.strings.intern("Queue.lock");
  const SiteId waited = site_in("queue.cc", 25);
  catalog.sites[waited].variable = catalog.strings.intern("Queue.not_full");
  Describer describe(catalog);
  describe.on(event(EventKind::kAcquire, 0x1000, 0, taken));
  describe.on(event(EventKind::kWait, 0x2000, 0x1000, waited));
  describe.on(event(EventKind::kAcquire, 0x1000, 0, waited));
  EXPECT_EQ(describe.object(0x1000), "Queue.lock");
  // Another one at the same place, of another name.
  describe.on(event(EventKind::kAcquire, 0x1000, 0, waited));
  EXPECT_EQ(describe.object(0x1000), "Queue.not_full");
}

TEST_F(DescriberTest, SymbolsOfModulesLoadedLaterAreFound) {
  const Describer describe(catalog);
  EXPECT_EQ(describe.object(0x9000), "0x9000");
  symbol("late", 0x9000, 8);
  EXPECT_EQ(describe.object(0x9000), "late");
}

TEST(Fingerprint, IgnoresLinesAddressesAndThreadsButNotFunctions) {
  Finding finding;
  finding.variables.push_back({"stock", "global", {}, 0x1000, 4});
  Step step;
  step.role = "P";
  step.place = {"sell", "shop.cc", 12, 3};
  finding.steps.push_back(step);
  const std::string before = fingerprint(finding);
  finding.steps[0].place.line = 99;
  finding.steps[0].thread = 7;
  finding.variables[0].address = 0x2000;
  EXPECT_EQ(fingerprint(finding), before);
  finding.steps[0].place.function = "buy";
  EXPECT_NE(fingerprint(finding), before);
}

}  // namespace
}  // namespace heddle
