// Puts the catalogs of translation units together into the catalog of a trace.
//
// Units that include the same header carry the same functions and sites. Entries that are equal in
// every field (their strings compared as texts) become one, so that an access has one site
// whichever unit's copy the linker kept. Functions, sites and segments without a key, or that
// differ in anything, stay apart.
#pragma once

#include "trace/catalog.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace heddle {

// What each id of a unit's catalog became.
struct CatalogRemap {
  std::vector<StringId> strings;
  std::vector<FunctionId> functions;
  std::vector<SiteId> sites;
  std::vector<SegmentId> segments;
  std::vector<std::uint32_t> symbols;  // index into Catalog::symbols
};

class CatalogMerger {
 public:
  // `into` must outlive the merger and grow through it only (strings, threads and modules may be
  // added by others).
  explicit CatalogMerger(Catalog& into);

  // Adds the strings, functions, sites, segments, symbols and modules of a unit. A symbol's address
  // must be filled in before: two units' symbols are one when they are equal and at one address.
  // Threads belong to a run, not to a unit, and are left alone.
  CatalogRemap add(const Catalog& unit);

 private:
  using Index = std::unordered_map<std::uint64_t, std::vector<std::uint32_t>>;

  template <typename Entry>
  std::uint32_t place(std::vector<Entry>& table, Index& index, std::uint64_t key, Entry entry);

  Catalog& into_;
  Index functions_;
  Index sites_;
  Index segments_;
  Index symbols_;
};

}  // namespace heddle
