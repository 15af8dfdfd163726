// SVD, online: computational units and their violations in one pass (svd-2005, sections 4.2
// and 4.3).
//
// Units are inferred by propagating references (units.h) along the data flow that FlowMachine
// replays: a load gives its register the unit of the block, a store gives the block the union of
// the units that its data came from. Every thread has its own state for each block. The state
// tells, without knowing any lock, whether the block is shared, and when a unit has ended: when a
// shared block that the unit wrote is read back.
//
// The block's state machine (the paper's figure 8, rebuilt from the text of section 4.2: "shared"
// means accessed by another thread after the unit accessed it and before the unit ends; a shared
// dependence is a load in Stored_Shared or a remote access in True_Dep):
//
//   state          load                     store           remote access
//   Idle           Loaded                   Stored          Idle
//   Loaded         Loaded                   Stored          Loaded_Shared
//   Loaded_Shared  Loaded_Shared            Stored_Shared   Loaded_Shared
//   Stored         True_Dep                 Stored          Stored_Shared
//   Stored_Shared  the unit ends → Loaded   Stored_Shared   Stored_Shared
//   True_Dep       True_Dep                 True_Dep        the unit ends → Idle
//
// When a unit ends, all of its blocks go back to Idle. A load that ends a unit is the first access
// of the next one.
//
// The check, at every store: for the units that the store's data, address and control depend on,
// has another thread overwritten one of their inputs since they read it? An input is a block that
// the unit read before it wrote it. Each heuristic of section 4.3 is an option whose default is the
// paper's choice.
//
// Where we differ: control dependences are exact (from the post-dominator tree), loops included,
// where the paper guesses reconvergence points of if-then-else from branch targets; an overwritten
// input is reported at the first store that uses it, not again at every later one; registers' sets
// are bounded (units.h).
//
// Invariant: a thread that has no entry in a block's list is Idle for the block.
#pragma once

#include "detect/svd/units.h"
#include "detect/witness.h"
#include "flow/machine.h"
#include "trace/catalog.h"
#include "trace/event.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>

namespace heddle::svd {

struct OnlineOptions {
  bool merge_control = false;      // control dependences connect units; else they are only checked
  bool propagate_address = false;  // address dependences connect units; else they are only checked
  bool inputs_only = true;         // check inputs; else every block the unit accessed (strict 2PL)
  std::uint32_t block_size = 4;    // bytes, a power of two up to 64: the paper's word
};

enum class BlockState : std::uint8_t {
  kIdle,
  kLoaded,
  kLoadedShared,
  kStored,
  kStoredShared,
  kTrueDep
};

// A unit read (or accessed) `inside`, `remote` overwrote it, `store` used it nevertheless.
struct Violation {
  Witness inside;
  Witness remote;
  Witness store;
};

class Online {
 public:
  Online(const Catalog& catalog, const OnlineOptions& options);

  void on(const Event& event, EventOrdinal ordinal);

  // Violations since the last call.
  std::vector<Violation> take_violations() { return std::exchange(violations_, {}); }

  const Narrator& narrator() const { return narrator_; }
  std::size_t units_created() const { return units_.created(); }
  std::size_t units_ended_by_sharing() const { return ended_by_sharing_; }

  // ---- client of FlowMachine ----
  using Tag = UnitSet;
  Tag join(ThreadId /*thread*/, Tag a, Tag b) { return units_.join(a, b); }
  Tag load(const Event& event, EventOrdinal ordinal, Tag address, Tag control);
  void store(const Event& event, EventOrdinal ordinal, Tag data, Tag address, Tag control);
  Tag update(const Event& event, EventOrdinal ordinal, Tag data, Tag address, Tag control);
  Tag branch(ThreadId thread, EventOrdinal ordinal, SegmentId segment, Tag condition, Tag control);

 private:
  static constexpr std::uint32_t kPageBytes = 4096;
  static constexpr std::uint32_t kNoEntry = 0;
  static constexpr std::uint32_t kMaxBlocksPerAccess = 1u << 16;

  // One thread's view of one block.
  struct Entry {
    ThreadId thread{};
    BlockState state{};
    bool overwritten = false;  // noted in the reader's unit already
    UnitId unit = 0;           // who the block belongs to
    UnitId reader = 0;         // whose input it is
    Moment access;             // the reader's first read, or without a reader the unit's last store
    std::uint32_t next = kNoEntry;
  };
  using Page = std::unique_ptr<std::uint32_t[]>;  // heads of the lists of the page's blocks

  struct BlockRange {
    BlockNumber first;
    BlockNumber last;
  };
  BlockRange blocks_of(const Event& event) const;
  std::uint32_t& head(BlockNumber block);
  Entry& own_entry(BlockNumber block, ThreadId thread);
  void tell_others(BlockNumber block, const Witness& access);
  void remote_access(Entry& entry, const Witness& access);
  void note_overwrite(UnitId unit, const Entry& entry, const Witness& access);
  void check(UnitSet set, const Witness& store);
  void end_unit(UnitId unit);
  void drop_idle(BlockNumber block);
  void forget_range(Address address, std::uint64_t size);
  void collect_when_due();

  UnitId load_block(BlockNumber block, const Witness& access);
  void store_block(BlockNumber block, const Witness& access, UnitId owner);

  OnlineOptions options_;
  unsigned block_shift_;
  Units units_;
  FlowMachine<Online> machine_;
  Narrator narrator_;
  absl::flat_hash_map<std::uint64_t, Page> pages_;
  std::uint64_t last_page_number_ = ~0ull;
  std::uint32_t* last_page_ = nullptr;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> free_entries_;
  std::vector<bool> gone_;  // threads that ended
  std::vector<Violation> violations_;
  std::size_t ended_by_sharing_ = 0;
  std::size_t collect_at_ = 1u << 20;
};

}  // namespace heddle::svd
