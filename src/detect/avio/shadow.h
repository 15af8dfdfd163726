// Shadow: the memory of AVIO, by address.
//
// AVIO's own observation (section 4.1) is that an unserializable interleaving can only be completed
// where a location changes hands. One thread runs at a time, in turns; and while nobody else comes,
// of all that a thread does to a location
//
//   - only its first access can be the I of a split: the P of every other one is its own;
//   - only its last access can be the P of a later split;
//   - only its last write can be an R for others, besides a first access that is a read.
//
// So the Shadow keeps, for every location, the last access by anybody and, where several threads
// come, the last write of the thread that made it; and asks the history of the location
// (avio/history.h), which judges, only when the location passes from one thread to another.
// Everything else is one comparison (was the last access in this turn?) and a store. A location
// that one thread has to itself has no history: what it did before a second one came can only be a
// P, and its last access is there for that.
//
// Exact bytes, at the price of words: locations are halves of 8-byte cells, and single bytes in
// cells that were ever accessed in other pieces than halves. Locations that have always been
// accessed together share one history, until one of them is accessed without the others.
//
// Cells stand in chunks of reserved address space that the kernel fills with zeros where it is
// touched, behind a direct table of them. Memory that is allocated or freed starts afresh: every
// granule that overlaps the block is forgotten.
#pragma once

#include "detect/avio/arena.h"
#include "detect/avio/granules.h"
#include "detect/avio/history.h"
#include "detect/avio/pair_log.h"
#include "detect/avio/patterns.h"
#include "detect/avio/pool.h"
#include "detect/avio/stamp.h"
#include "detect/avio/touch.h"
#include "trace/loop_walk.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <span>
#include <vector>

#include <absl/container/flat_hash_map.h>

namespace heddle::avio {

// Takes the triples as they are found.
class TripleSink {
 public:
  TripleSink() = default;
  TripleSink(const TripleSink&) = delete;
  TripleSink& operator=(const TripleSink&) = delete;
  virtual ~TripleSink() = default;
  virtual void on_triple(const Triple& triple) = 0;
};

class Shadow {
 public:
  // `pairs`: where pairs are put down, for who learns; may be null.
  Shadow(Granules granules, const Spots& spots, TripleSink& sink, PairLog* pairs);
  ~Shadow();
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;

  // From this ordinal on the accesses are of this thread.
  void begin_turn(Actor actor, std::uint64_t ordinal) {
    actor_ = actor;
    turn_ = make_stamp(ordinal, 0);
  }

  void access(Stamp now, bool writes, Address address, std::uint32_t size) {
    Chunk* const chunk = address < fast_end_ ? table_[address >> kChunkBits] : nullptr;
    if (chunk != nullptr) {
      const std::size_t place = (address >> kCellBits) & (kChunkCells - 1);
      if (size == 8 && address % 8 == 0) {
        Stamps& last = chunk->last[place];
        if (last[0] >= turn_ && last[1] >= turn_) {
          if (pairs_ != nullptr) note_pairs(last, now);
          if (writes) note_write(chunk->shared[place], last, now);
          last = {now | (last[0] & kShared), now | (last[1] & kShared)};
          return;
        }
      } else if (size == 4 && address % 4 == 0) {
        const std::size_t half = address >> 2 & 1;
        Stamp& last = chunk->last[place][half];
        if (last >= turn_) {
          if (pairs_ != nullptr) note_pair(last, now);
          if (writes && (last & kShared) != 0) chunk->shared[place].write[half] = now;
          last = now | (last & kShared);
          return;
        }
      }
    }
    visit_cells(now, writes, address, size);
  }

  // The accesses of a segment by the thread whose turn it is, the first of them `first`, if all
  // that they touch stays with that thread. False: not all of it does, or that is not easily told,
  // or pairs are put down. Then the accesses have to come one by one; it does not matter what was
  // done already.
  bool stays(const Pattern& pattern, const std::uint64_t* words, Stamp first) {
    if (pairs_ != nullptr) return false;
    for (const PatternTouch& touch : pattern.touches) {
      const Stamp last = first + touch.last * kNextInRow;
      const Stamp write = touch.write != 0 ? first + (touch.write - 1u) * kNextInRow : 0;
      const Address address = touch.offset + words[touch.base];
      Chunk* const chunk = chunk_for(address);
      if (chunk == nullptr || address % touch.size != 0) return false;
      const std::size_t place = (address >> kCellBits) & (kChunkCells - 1);
      if (touch.size == 8) {
        if (!stays_8(*chunk, place, last, write)) return false;
      } else if (!stays_4(*chunk, place, address >> 2 & 1, last, write)) {
        return false;
      }
    }
    return true;
  }
  // The same of so many rounds of a loop, whose accesses are where `items` says. Here nothing is
  // done unless all is.
  bool stays(const RecordShape& loop, std::span<const LoopWalk::Moving> items, std::uint64_t rounds,
             Stamp first);

  // For an access that is about to come.
  void prefetch(Address address) const {
    if (address >= fast_end_) return;
    if (const Chunk* const chunk = table_[address >> kChunkBits]) {
      __builtin_prefetch(&chunk->last[(address >> kCellBits) & (kChunkCells - 1)], 1);
    }
  }

  void forget(Address address, std::uint64_t size);
  void forget_everything();

  void begin(Actor actor) { histories_.begin(actor); }  // actors begin in order: 0, 1, 2, …
  void end(Actor actor) { histories_.end(actor); }

  struct Memory {
    std::size_t shared{};  // histories
    std::size_t bytes{};
  };
  Memory memory() const;

 private:
  // The bit of a stamp: several threads have come here, and there is a history.
  static constexpr Stamp kShared = 1;

  static constexpr unsigned kAddressBits = 47;  // user space
  static constexpr unsigned kCellBits = 3;
  static constexpr unsigned kChunkBits = 20;  // of the program, as a power of two
  static constexpr std::size_t kChunkCells = std::size_t{1} << (kChunkBits - kCellBits);
  static constexpr std::size_t kPageCells = 512;

  using Stamps = std::array<Stamp, 2>;  // of the halves
  // A cell that is kept by bytes has the number of its Bytes in last[0] and kByBytes in last[1]:
  // both are older than every turn.
  static constexpr Stamp kByBytes = kShared;
  static constexpr Stamp kFirstStamp = Stamp{1} << kOrdinalShift;

  struct SharedHalves {
    Stamps write{};  // of the thread of `last`, since it came; 0 = none
    std::array<HistoryId, 2> history{};
  };
  struct Chunk {
    std::array<Stamps, kChunkCells> last;
    std::array<SharedHalves, kChunkCells> shared;  // of what is shared
    std::bitset<kChunkCells / kPageCells> touched;
  };
  struct SharedBytes {
    std::array<Stamp, 8> write{};
    std::array<HistoryId, 8> history{};
    std::array<std::uint64_t, 4> unused{};
  };
  struct Bytes {
    std::array<Stamp, 8> last{};
  };
  // A cell that is kept by bytes. What is shared of them hangs where the halves would have theirs.
  struct ByteCell {
    Bytes& bytes;
    SharedHalves& halves;

    SharedBytes* shared() const { return reinterpret_cast<SharedBytes*>(halves.write[0]); }
  };
  struct Visit {  // an access, at one of its cells
    Stamp now{};
    bool writes{};
    Address address{};
    std::uint32_t size{};
    std::uint64_t cell{};
  };

  Chunk* chunk_for(Address address) const {
    return address < fast_end_ ? table_[address >> kChunkBits] : nullptr;
  }
  // The latest access was this thread's. Numbers of cells that are kept by bytes are no stamps.
  bool is_mine(Stamp last) const {
    return last >= turn_ || (last >= kFirstStamp && spot(last).actor == actor_);
  }
  // Where several touches meet in a cell, the later ones win.
  bool stays_8(Chunk& chunk, std::size_t place, Stamp now, Stamp write) {
    Stamps& last = chunk.last[place];
    if (!is_mine(last[0]) || !is_mine(last[1])) return false;
    if (write != 0 && ((last[0] | last[1]) & kShared) != 0) {
      for (const std::size_t half : {0u, 1u}) {
        Stamp& known = chunk.shared[place].write[half];
        if ((last[half] & kShared) != 0) known = std::max(known, write);
      }
    }
    last = {std::max(last[0], now | (last[0] & kShared)),
            std::max(last[1], now | (last[1] & kShared))};
    return true;
  }
  bool stays_4(Chunk& chunk, std::size_t place, std::size_t half, Stamp now, Stamp write) {
    Stamp& last = chunk.last[place][half];
    if (!is_mine(last)) return false;
    if (write != 0 && (last & kShared) != 0) {
      Stamp& known = chunk.shared[place].write[half];
      known = std::max(known, write);
    }
    last = std::max(last, now | (last & kShared));
    return true;
  }
  const Spot& spot(Stamp stamp) const { return spots_[spot_of(stamp)]; }
  Touch touch(Stamp stamp) const;
  void note_pair(Stamp before, Stamp now) { pairs_->note(spot(before).site, spot(now).site); }
  void note_pairs(const Stamps& before, Stamp now) {
    note_pair(before[0], now);
    if ((before[0] ^ before[1]) > kShared) note_pair(before[1], now);
  }
  static void note_write(SharedHalves& shared, const Stamps& last, Stamp now) {
    if ((last[0] & kShared) != 0) shared.write[0] = now;
    if ((last[1] & kShared) != 0) shared.write[1] = now;
  }

  void visit_cells(Stamp now, bool writes, Address address, std::uint32_t size);
  void visit(const Visit& visit, std::uint8_t mask);
  void visit_halves(const Visit& visit, Chunk& chunk, std::size_t place, std::uint8_t mask);
  void visit_bytes(const Visit& visit, const ByteCell& cell, std::uint8_t mask);
  bool stays(Stamp last) const;
  void go_on(const Visit& visit, Stamp& last, Stamp* write);
  void pass(const Visit& visit, std::uint8_t mask, Stamp& last, Stamp& write, HistoryId& history);

  Chunk* find_chunk(std::uint64_t number) const;
  Chunk& chunk_of(std::uint64_t cell);
  ByteCell by_bytes(Chunk& chunk, std::size_t place);
  SharedBytes& make_shared(const ByteCell& cell);
  void drop(const ByteCell& cell, std::uint8_t mask);
  void clear(Chunk& chunk, std::size_t place, std::uint8_t mask);
  void forget_in_chunk(std::uint64_t number, std::uint64_t first_cell, std::uint64_t end_cell);
  void forget_cells(std::uint64_t first, std::uint64_t end);

  const Granules granules_;
  const unsigned cell_shift_;
  const Address fast_end_;  // 0 when accesses have to be rounded to granules
  const Spots& spots_;
  TripleSink& sink_;
  PairLog* const pairs_;
  Actor actor_ = 0;
  Stamp turn_ = ~Stamp{0};  // older than every stamp of the turn
  Chunk** table_;
  absl::flat_hash_map<std::uint64_t, Chunk*> far_;  // chunks that no program has
  std::vector<std::uint64_t> chunks_;               // numbers of those that are there
  Pool<Bytes> bytes_;
  Arena arena_;
  Histories histories_;
};

}  // namespace heddle::avio
