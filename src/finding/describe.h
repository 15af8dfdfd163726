// Describer: the words for what events refer to by number. It follows a trace and names variables,
// places, threads and locks the way a person would: `stock`, `Account.balance`, `table[3]`,
// `40-byte block allocated at shop.cc:9`, by what is known at that moment (a heap address means
// another block after free), so ask when the instance is at hand, not at the end of the trace.
#pragma once

#include "finding/finding.h"
#include "trace/call_stacks.h"
#include "trace/catalog.h"
#include "trace/event.h"

#include <map>
#include <string>
#include <vector>

#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>

namespace heddle {

class Describer {
 public:
  explicit Describer(const Catalog& catalog) : catalog_(catalog) {}

  // Takes note of Alloc and Free, and of what locks are called where they are taken (for which it
  // wants to see Acquire and Wait); every other event is ignored.
  void on(const Event& event);

  Place place(SiteId site) const;
  VariableName variable(SiteId site, Address address, std::uint32_t size) const;
  std::string thread(ThreadId thread) const;
  std::string object(Address address) const;  // a lock, condition, barrier …

  // Innermost first. The innermost frame shows the line of `site`, the others the line of the call.
  std::vector<Place> stack(const CallStacks& stacks, StackId stack, SiteId site) const;

 private:
  struct Block {
    std::uint64_t size{};
    SiteId site{};
  };

  struct NamedLock {
    SiteId site{};           // one that names it
    std::uint32_t number{};  // among the locks of that name, from 1
  };

  // Of several symbols (modules may be loaded where others were) the one called `hint`, if any.
  const Symbol* symbol_at(Address address, std::string_view hint = {}) const;
  void index_symbols() const;

  const Catalog& catalog_;
  absl::flat_hash_map<Address, NamedLock> locks_;
  absl::flat_hash_map<StringId, std::uint32_t> lock_counts_;  // by name
  absl::flat_hash_map<ThreadId, Address> waking_;  // the lock that it takes again after a wait
  absl::btree_map<Address, Block> blocks_;         // live heap blocks
  mutable std::multimap<Address, std::size_t> symbols_;  // start address → index in the catalog
  mutable std::size_t indexed_symbols_ = 0;
};

}  // namespace heddle
