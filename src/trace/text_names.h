// How the text notation names the entries of a catalog, and how a name that is used for the first
// time becomes an entry.
//
// The parser keeps these tables over the catalog it builds. The printer keeps them over a shadow of
// that same catalog: it makes the same calls in the same order, so it knows at every line what a
// name will mean to whoever reads the line, and whether a declaration is needed before it.
#pragma once

#include "trace/catalog.h"
#include "trace/event.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <absl/container/flat_hash_map.h>

namespace heddle::text {

inline constexpr std::uint32_t kNone = 0xffffffffu;

// Automatic variables: at least 8 bytes each, each alone on its cache lines, from this address on.
inline constexpr Address kFirstAutomatic = 0x100000;
inline constexpr std::uint64_t kAutomaticSpacing = 64;
inline constexpr std::uint64_t kAutomaticSize = 8;
inline constexpr std::uint64_t kLargestAutomatic = std::uint64_t{1} << 40;

class Names {
 public:
  explicit Names(Catalog& catalog) : catalog_(catalog) {}

  const Catalog& catalog() const { return catalog_; }
  StringId intern(std::string_view text) { return catalog_.strings.intern(text); }

  // ---- variables
  std::uint32_t find_symbol(std::string_view name);
  void add_symbol(const Symbol& symbol);
  // Where an automatic variable of that many bytes would be put; nothing when there is no room.
  std::optional<Address> next_automatic(std::uint64_t bytes) const;
  // The first place for one behind `end`.
  static Address automatic_after(Address end) {
    return (end + kAutomaticSpacing - 1) / kAutomaticSpacing * kAutomaticSpacing;
  }
  std::uint32_t add_automatic(std::string_view name, std::uint64_t bytes);

  // ---- functions
  FunctionId find_function(std::string_view name);  // kNone if there is none
  void add_function(const Function& function);
  FunctionId function_named(std::string_view name);  // made if need be
  static std::uint64_t key_of_function(std::string_view name);

  // ---- sites
  struct SiteKey {
    StringId file{};
    std::uint32_t line{};
    std::uint32_t column{};
    FunctionId function{};
    EventKind kind{};

    bool operator==(const SiteKey&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const SiteKey& k) {
      return H::combine(std::move(h), k.file, k.line, k.column, k.function, k.kind);
    }
  };
  SiteId find_site(const SiteKey& key) const;  // kNone if there is none
  void add_site(const Site& site);
  // The site that `event` at that place means, when it was not declared.
  static Site automatic_site(const SiteKey& key, const Event& event, std::string_view file,
                             std::string_view function);

  void add_segment(Segment segment) { catalog_.segments.push_back(std::move(segment)); }
  Segment& last_segment() { return catalog_.segments.back(); }
  std::vector<ThreadInfo>& threads() { return catalog_.threads; }
  std::vector<Module>& modules() { return catalog_.modules; }

 private:
  static void remember(std::vector<std::uint32_t>& by_string, StringId name, std::uint32_t index);
  static std::uint32_t recall(const std::vector<std::uint32_t>& by_string, StringId name);

  Catalog& catalog_;
  std::vector<std::uint32_t> symbol_by_name_;  // by StringId; the first of that name
  std::vector<std::uint32_t> function_by_name_;
  absl::flat_hash_map<SiteKey, SiteId> site_by_key_;  // the first of that key
  Address next_automatic_ = kFirstAutomatic;
};

}  // namespace heddle::text
