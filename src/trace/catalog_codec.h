// Catalogs as bytes: what a translation unit carries in its object file and what a trace file
// carries in its catalog chunks. docs/trace-format.md has the grammar.
//
// A blob holds the entries that were added to a catalog since a mark (all of them, for a
// translation unit). It is a list of sections, one per table, each with its length, so that a
// section of a later version is skipped. References only point to earlier sections or to entries
// that were there before (strings, functions, sites, segments), so each is checked the moment it
// is read: whatever decode_catalog has appended is consistent even if it then stops with an error.
//
// Nothing here needs more than the standard library, because the compiler plugin links it.
#pragma once

#include "base/result.h"
#include "trace/bytes.h"
#include "trace/catalog.h"

#include <cstdint>
#include <span>
#include <vector>

namespace heddle {

inline constexpr ThreadId kMaxThreads = 1u << 20;  // of a trace; more is damage

// How much of a catalog was already written. Tables only grow and their entries stay as they are;
// only a thread may get its name late.
struct CatalogMark {
  std::size_t strings = 1;
  std::size_t functions = 1;
  std::size_t sites = 1;
  std::size_t segments = 1;
  std::size_t symbols = 0;
  std::size_t modules = 0;
  std::vector<StringId> thread_names;

  bool covers(const Catalog& catalog) const;
};

// The whole catalog.
std::vector<std::uint8_t> encode_catalog(const Catalog& catalog);

// Appends a blob with what `catalog` has beyond `mark` and moves the mark. Stops after the entry
// that brings the blob to `limit` bytes: call again until mark.covers(catalog).
void encode_catalog_since(const Catalog& catalog, CatalogMark& mark, std::size_t limit,
                          ByteWriter& out);

// Appends the entries of a blob to `into`. The error says what is wrong at which byte of the blob.
Status decode_catalog(std::span<const std::uint8_t> blob, Catalog& into);

}  // namespace heddle
