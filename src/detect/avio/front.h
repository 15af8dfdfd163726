// Front: what one thread does to a location between two visits of others, in two words.
//
// AVIO's own observation (section 4.1) is that an unserializable interleaving can only be completed
// where a location changes hands. One thread runs at a time, in turns; and while nobody else comes,
// of all that a thread does to a location
//
//   - only its first access can be the I of a split: the P of every other one is its own;
//   - only its last access can be the P of a later split;
//   - only its last write can be an R for others, besides a first access that is a read.
//
// So the Front keeps, for every location, the last access by anybody and the last write of the
// thread that made it, and tells the Shadow (avio/shadow.h), which judges, only when the location
// changes hands: what the old owner did last, and the new owner's first access. Everything else is
// one comparison (was the last access in this turn?) and one or two stores. Memory that only one
// thread ever touches is never seen by the Shadow at all.
//
// Locations are halves of 8-byte cells, and single bytes in cells that were ever accessed in other
// pieces than halves. An access is a Stamp: its ordinal and its spot (avio/spots.h).
//
// Cells stand in chunks behind a direct table, both of reserved address space that the kernel fills
// with zeros where it is touched. Addresses that no program has (beyond 47 bits, in a trace made by
// hand) go to the Shadow one by one.
#pragma once

#include "detect/avio/arena.h"
#include "detect/avio/granules.h"
#include "detect/avio/pair_log.h"
#include "detect/avio/pool.h"
#include "detect/avio/shadow.h"
#include "detect/avio/spots.h"

#include <array>
#include <bitset>
#include <cstdint>
#include <vector>

namespace heddle::avio {

// From the top: ordinal plus one, spot, and whether the Shadow knows the location. 0 = no access.
using Stamp = std::uint64_t;

class Front {
 public:
  static constexpr unsigned kOrdinalShift = Spots::kBits + 1;
  static constexpr std::uint64_t kMaxOrdinal = (std::uint64_t{1} << (64 - kOrdinalShift)) - 2;

  // `pairs`: where pairs are put down, for who learns; may be null.
  Front(Granules granules, Shadow& shadow, const Spots& spots, PairLog* pairs);
  ~Front();
  Front(const Front&) = delete;
  Front& operator=(const Front&) = delete;

  static Stamp stamp(std::uint64_t ordinal, SpotId spot) {
    return (ordinal + 1) << kOrdinalShift | std::uint64_t{spot} << 1;
  }

  // From this ordinal on the accesses are of this thread.
  void begin_turn(Actor actor, std::uint64_t ordinal) {
    actor_ = actor;
    turn_ = (ordinal + 1) << kOrdinalShift;
  }

  void access(Stamp now, bool writes, Address address, std::uint32_t size) {
    Chunk* const chunk = address < fast_end_ ? table_[address >> kChunkBits] : nullptr;
    if (chunk != nullptr) {
      const std::size_t place = (address >> kCellBits) & (kChunkCells - 1);
      if (size == 8 && address % 8 == 0) {
        Stamps& last = chunk->last[place];
        if (last[0] >= turn_ && last[1] >= turn_) {
          if (pairs_ != nullptr) note_pairs(last, now);
          last = {now | (last[0] & kShared), now | (last[1] & kShared)};
          if (writes) chunk->write[place] = {now, now};
          return;
        }
      } else if (size == 4 && address % 4 == 0) {
        const std::size_t half = address >> 2 & 1;
        Stamp& last = chunk->last[place][half];
        if (last >= turn_) {
          if (pairs_ != nullptr) note_pair(last, now);
          last = now | (last & kShared);
          if (writes) chunk->write[place][half] = now;
          return;
        }
      }
    }
    visit_cells(now, writes, address, size);
  }

  void prefetch(Address address) const {
    if (address >= fast_end_) return;
    if (const Chunk* chunk = table_[address >> kChunkBits]) {
      __builtin_prefetch(&chunk->last[(address >> kCellBits) & (kChunkCells - 1)], 1);
    }
  }

  void forget(Address address, std::uint64_t size);
  void forget_everything();

  std::size_t bytes() const;

 private:
  static constexpr Stamp kShared = 1;
  static constexpr unsigned kAddressBits = 47;
  static constexpr unsigned kCellBits = 3;
  static constexpr unsigned kChunkBits = 20;  // of the program, as a power of two
  static constexpr std::size_t kChunkCells = std::size_t{1} << (kChunkBits - kCellBits);
  static constexpr std::size_t kPageCells = 512;

  using Stamps = std::array<Stamp, 2>;  // of the halves
  // A cell that is kept by bytes has the number of its Bytes in last[0] and kByBytes in last[1]:
  // both are older than every turn.
  static constexpr Stamp kByBytes = kShared;
  struct Chunk {
    std::array<Stamps, kChunkCells> last;   // of anybody
    std::array<Stamps, kChunkCells> write;  // of the thread of `last`, since it came; 0 = none
    std::bitset<kChunkCells / kPageCells> touched;
  };
  struct Bytes {
    std::array<Stamp, 8> last{};
    std::array<Stamp, 8> write{};
  };
  struct Visit {  // an access to one cell
    Stamp now;
    bool writes;
    Address address;  // of the whole access
    std::uint32_t size;
    std::uint64_t cell;
  };

  const Spot& spot(Stamp stamp) const {
    return spots_[static_cast<SpotId>(stamp >> 1 & ((std::uint64_t{1} << Spots::kBits) - 1))];
  }
  Touch touch(Stamp stamp) const;
  void note_pair(Stamp before, Stamp now) { pairs_->note(spot(before).site, spot(now).site); }
  void note_pairs(const Stamps& before, Stamp now) {
    note_pair(before[0], now);
    if ((before[0] ^ before[1]) > kShared) note_pair(before[1], now);
  }

  void visit_cells(Stamp now, bool writes, Address address, std::uint32_t size);
  void visit(const Visit& visit, std::uint8_t mask);
  void visit_bytes(const Visit& visit, Bytes& bytes, std::uint8_t mask);
  void visit_location(const Visit& visit, Stamp& last, Stamp& write, std::uint8_t mask);
  Chunk* chunk_of(std::uint64_t cell);
  Bytes& by_bytes(Chunk& chunk, std::size_t place);
  bool clear(Chunk& chunk, std::size_t place, std::uint8_t mask);
  bool forget_cells(std::uint64_t first, std::uint64_t end);

  const Granules granules_;
  const unsigned cell_shift_;
  const Address fast_end_;  // 0 when accesses have to be rounded to granules
  Shadow& shadow_;
  const Spots& spots_;
  PairLog* const pairs_;
  Actor actor_ = 0;
  Stamp turn_ = ~Stamp{0};  // the least stamp of the turn
  Chunk** table_;
  std::vector<std::uint64_t> chunks_;  // numbers of those that are there
  Pool<Bytes> bytes_;
  Arena arena_;
};

}  // namespace heddle::avio
