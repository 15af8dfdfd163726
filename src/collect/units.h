// The translation units of a running program, as the collector knows them: for every slot, what its
// record means.
//
// A slot record is a header word (the slot's address) and the words that the segment could not know
// before it ran. Units are compiled, when they register, into a form in which decoding needs no
// decision per access: an item's address is always base[k] + offset, where base is the record. An
// address that is static is base[0], the slot's own address, plus a distance; one that depends on
// an earlier item of the segment is flattened to the word that item came from. Only segments with
// compare-exchange outcomes, and with dynamic sizes where nobody takes executions, take a slower
// way.
//
// Nothing that a target says is trusted: ids, counts and offsets are checked here, once, so that
// the decoder need not.
#pragma once

#include "abi/abi.h"
#include "abi/layout.h"
#include "base/result.h"
#include "collect/joined.h"
#include "trace/catalog.h"
#include "trace/catalog_merge.h"
#include "trace/execution.h"

#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace heddle::collect {

// One access of a segment: the event it becomes, but for its thread and its address.
struct CompiledItem {
  Event event;            // address = the offset; thread = 0
  std::uint16_t base{};   // index into the record's words: 0 = the header
  std::uint16_t words{};  // of the record that are written when the item is about to happen
  std::uint16_t next{};   // index of the first word after the item's own
  bool no_address{};      // a fence
  bool dynamic_size{};    // the word after the address is the length plus one
  bool outcome{};         // the item's last word says whether a compare-exchange succeeded
  MemoryOrder failure_order{};
  std::uint32_t flag{};  // the item's site in its own unit: index of its flag
};

struct CompiledSlot {
  std::uint32_t id{};       // segment, function or site, in the trace's catalog
  ShapeId shape{};          // of a simple segment, a loop, an enter or a leave; else 0
  ShapeId ranges{};         // of a segment that would be simple, had it no dynamic sizes; else 0
  std::uint32_t call{};     // an enter: number in Unit::calls, plus one; 0: none
  std::uint32_t implied{};  // a segment: number in Unit::implied; 0: none
  std::uint32_t joined{};   // number in Unit::joined, plus one; 0: not joined
  std::uint32_t first_item{};
  std::uint32_t item_count{};
  std::uint8_t kind{};    // heddle_slot_kind
  std::uint8_t words{};   // after the header
  bool simple{};          // a segment with no dynamic sizes, no outcomes, no fences; not too long
  bool has_this : 1 {};   // an enter whose second word is the object
  bool has_frame : 1 {};  // an enter whose last word is its frame
};

// What the enter of a function is followed by that has but one segment, if it is executed as a
// whole and alone: then the three records are one execution.
struct CompiledCall {
  ShapeId shape{};
  std::uint32_t segment_at{};  // words from the enter's header to the segment's
  std::uint32_t leave_at{};    // … and to the leave's
  std::uint64_t segment{};     // the headers
  std::uint64_t leave{};
};

struct Unit {
  std::uint32_t number{};   // never used again
  std::uint64_t address{};  // of the heddle_unit in the target
  std::uint64_t slots_begin{};
  std::uint64_t slots_end{};
  std::uint64_t flags_begin{};
  ShapeId first_shape{};      // its shapes have the numbers from there on
  std::vector<SiteId> sites;  // in the trace's catalog; one for each flag
  std::vector<CompiledSlot> slots;
  std::vector<CompiledCall> calls;
  std::vector<CompiledItem> items;
  std::vector<std::vector<SegmentId>> implied{{}};  // what happened before a segment, in order
  std::vector<Joined> joined;
  std::vector<std::unique_ptr<const RecordShape>> shapes;
  std::string name;

  // Its number.
  ShapeId add(RecordShape shape) {
    shapes.push_back(std::make_unique<const RecordShape>(std::move(shape)));
    return static_cast<ShapeId>(first_shape + shapes.size() - 1);
  }

  // The slot at this address, nullptr when there is none: no multiple of a slot's size, or beyond.
  const CompiledSlot* slot_at(std::uint64_t slot) const {
    static_assert(sizeof(heddle_slot) == 8);
    const std::uint64_t index = std::rotr(slot - slots_begin, 3);
    return index < slots.size() ? &slots[index] : nullptr;
  }
  std::span<const CompiledItem> items_of(const CompiledSlot& slot) const {
    return {items.data() + slot.first_item, slot.item_count};
  }
};

class UnitTable {
 public:
  explicit UnitTable(Catalog& catalog) : merger_(catalog) {}

  // `copy` is a struct heddle_unit_copy with what follows it; `address` where the unit is.
  Status add(std::uint64_t address, std::span<const std::uint8_t> copy);
  // What was decoded before may still be under way to its consumer, so its shapes stay until
  // forget_removed().
  void remove(std::uint64_t address);
  void forget_removed();
  bool empty() const { return units_.empty(); }

  // By ShapeId. Numbers are not used again; nullptr for those of units that are gone.
  std::span<const RecordShape* const> shapes() const { return shapes_; }

  // The site whose flag is at this address, 0 when there is none.
  SiteId site_of_flag(std::uint64_t flag) {
    if (flag == 0) return 0;
    const Unit* unit = recent_caller_;
    if (unit == nullptr || flag - unit->flags_begin >= unit->sites.size()) {
      unit = find_by_flag(flag);
      if (unit == nullptr) return 0;
    }
    return unit->sites[flag - unit->flags_begin];
  }

  // Every unit that was ever there, by its name, calls `visit(const Unit&)`.
  template <typename Visit>
  void visit_all(Visit visit) const {
    for (const auto& unit : units_) visit(*unit);
    for (const auto& unit : gone_) visit(*unit);
  }

  // The unit whose slots contain `slot`, nullptr when there is none.
  const Unit* find(std::uint64_t slot) {
    const Unit* unit = recent_;
    if (unit != nullptr && slot - unit->slots_begin < unit->slots_end - unit->slots_begin) {
      return unit;
    }
    return find_slowly(slot);
  }

 private:
  const Unit* find_slowly(std::uint64_t slot);
  const Unit* find_by_flag(std::uint64_t flag);
  static void add_shape(Unit& unit, CompiledSlot& slot, RecordShape shape);
  static void add_calls(Unit& unit, const std::vector<FunctionId>& functions);

  CatalogMerger merger_;
  std::uint32_t added_ = 0;
  std::vector<std::unique_ptr<Unit>> units_;  // by slots_begin
  std::vector<std::unique_ptr<Unit>> gone_;   // one of each name: a library may come and go
  std::vector<const RecordShape*> shapes_{nullptr};
  std::vector<ShapeId> removed_shapes_;
  std::vector<std::unique_ptr<Unit>> removed_;
  const Unit* recent_ = nullptr;
  std::vector<const Unit*> by_flags_;  // by flags_begin; empty: to be made
  const Unit* recent_caller_ = nullptr;
};

}  // namespace heddle::collect
