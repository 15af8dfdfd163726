#include "detect/avio/shadow.h"

#include "base/check.h"

#include <algorithm>

#include <sys/mman.h>

namespace heddle::avio {
namespace {

constexpr std::uint8_t kLow = 0x0f;
constexpr std::uint8_t kHigh = 0xf0;
constexpr std::uint8_t kAll = 0xff;

void* reserve(std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  HEDDLE_CHECK(memory != MAP_FAILED);
  return memory;
}

}  // namespace

Shadow::Shadow(Granules granules, const Spots& spots, TripleSink& sink, PairLog* pairs)
    : granules_(granules),
      cell_shift_(granules.cell_shift()),
      fast_end_(granules.size == 1 ? Address{1} << kAddressBits : 0),
      spots_(spots),
      sink_(sink),
      pairs_(pairs),
      table_(static_cast<Chunk**>(reserve(sizeof(Chunk*) << (kAddressBits - kChunkBits)))),
      histories_(spots) {
  HEDDLE_CHECK(is_granule(granules.size));
}

Shadow::~Shadow() {
  forget_everything();
  munmap(static_cast<void*>(table_), sizeof(Chunk*) << (kAddressBits - kChunkBits));
}

Shadow::Chunk* Shadow::find_chunk(std::uint64_t number) const {
  if (number >> (kAddressBits - kChunkBits) == 0) return table_[number];
  const auto at = far_.find(number);
  return at != far_.end() ? at->second : nullptr;
}

Shadow::Chunk& Shadow::chunk_of(std::uint64_t cell) {
  const std::uint64_t number = cell / kChunkCells;
  if (Chunk* const known = find_chunk(number)) return *known;
  auto* const chunk = static_cast<Chunk*>(reserve(sizeof(Chunk)));
  (number >> (kAddressBits - kChunkBits) == 0 ? table_[number] : far_[number]) = chunk;
  chunks_.push_back(number);
  return *chunk;
}

Touch Shadow::touch(Stamp stamp) const {
  const Spot& from = spot(stamp);
  return Touch::make(from.actor, from.kind, ordinal_of(stamp), from.site, from.context);
}

void Shadow::visit_cells(Stamp now, bool writes, Address address, std::uint32_t size) {
  if (size == 0) return;
  const Address end = address + (size - 1) < address ? ~Address{0} : address + (size - 1);
  const std::uint64_t first_cell = address >> cell_shift_;
  const std::uint64_t last_cell = end >> cell_shift_;
  for (std::uint64_t cell = first_cell; cell <= last_cell; ++cell) {
    const Address from = cell == first_cell ? address : cell << cell_shift_;
    const Address to = cell == last_cell ? end : ((cell + 1) << cell_shift_) - 1;
    visit({now, writes, address, size, cell}, granules_.mask(from, to));
  }
}

void Shadow::visit(const Visit& visit, std::uint8_t mask) {
  Chunk& chunk = chunk_of(visit.cell);
  const std::size_t place = visit.cell % kChunkCells;
  const Stamps& last = chunk.last[place];
  if (last[0] == 0 && last[1] == 0) chunk.touched.set(place / kPageCells);
  const bool halves = mask == kAll || mask == kLow || mask == kHigh;
  if (halves && last[1] != kByBytes) {
    visit_halves(visit, chunk, place, mask);
  } else {
    visit_bytes(visit, by_bytes(chunk, place), mask);
  }
}

bool Shadow::stays(const RecordShape& loop, std::span<const LoopWalk::Moving> items,
                   std::uint64_t rounds, Stamp first) {
  if (pairs_ != nullptr) return false;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::uint32_t size = loop.items[i].event.size;
    Address address = items[i].address;
    if ((size != 8 && size != 4) || address % size != 0 || items[i].step % size != 0) return false;
    for (std::uint64_t round = 0; round < rounds; ++round, address += items[i].step) {
      const Chunk* const chunk = chunk_for(address);
      if (chunk == nullptr) return false;
      const Stamps& last = chunk->last[(address >> kCellBits) & (kChunkCells - 1)];
      const bool mine =
          size == 8 ? is_mine(last[0]) && is_mine(last[1]) : is_mine(last[address >> 2 & 1]);
      if (!mine) return false;
    }
  }
  const Stamp round_length = items.size() << kOrdinalShift;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const bool writes = is_write(loop.items[i].event.kind);
    const std::uint32_t size = loop.items[i].event.size;
    Address address = items[i].address;
    Stamp now = first + i * kNextInRow;
    for (std::uint64_t round = 0; round < rounds; ++round, address += items[i].step) {
      Chunk& chunk = *chunk_for(address);
      const std::size_t place = (address >> kCellBits) & (kChunkCells - 1);
      if (size == 8) {
        stays_8(chunk, place, now, writes ? now : 0);
      } else {
        stays_4(chunk, place, address >> 2 & 1, now, writes ? now : 0);
      }
      now += round_length;
    }
  }
  return true;
}

// Nobody else is concerned: the location is untouched, this thread's, or that of a thread that
// ended and had it for itself.
bool Shadow::stays(Stamp last) const {
  if (last >= turn_ || last == 0) return true;
  const Actor owner = spot(last).actor;
  return owner == actor_ || ((last & kShared) == 0 && histories_.ended(owner));
}

// `write` may be null where nothing is shared.
void Shadow::go_on(const Visit& visit, Stamp& last, Stamp* write) {
  if (pairs_ != nullptr && last != 0 && spot(last).actor == actor_) note_pair(last, visit.now);
  if (visit.writes && (last & kShared) != 0) *write = visit.now;
  last = visit.now | (last & kShared);
}

// The bytes of the mask pass to another thread.
void Shadow::pass(const Visit& visit, std::uint8_t mask, Stamp& last, Stamp& write,
                  HistoryId& history) {
  if ((last & kShared) == 0) {
    history = histories_.add();
    write = 0;
  } else if (pairs_ != nullptr) {
    if (const Stamp before = histories_.last_of(history, actor_)) note_pair(before, visit.now);
  }
  Split split;
  if (histories_.pass(history, last & ~kShared, write, visit.now, &split)) {
    sink_.on_triple({split.split, touch(split.p), touch(split.r), touch(visit.now),
                     visit.cell << cell_shift_, mask, visit.address, visit.size});
  }
  last = visit.now | kShared;
  write = visit.writes ? visit.now : 0;
}

void Shadow::visit_halves(const Visit& visit, Chunk& chunk, std::size_t place, std::uint8_t mask) {
  Stamps& last = chunk.last[place];
  SharedHalves& shared = chunk.shared[place];
  if (mask == kAll) {
    const bool alike = last[0] == last[1] &&
                       ((last[0] & kShared) == 0 || (shared.write[0] == shared.write[1] &&
                                                     shared.history[0] == shared.history[1]));
    if (alike && !stays(last[0])) {
      pass(visit, kAll, last[0], shared.write[0], shared.history[0]);
      last[1] = last[0];
      shared.write[1] = shared.write[0];
      shared.history[1] = shared.history[0];
      return;
    }
  }
  for (const std::size_t half : {0u, 1u}) {
    const std::uint8_t part = half == 0 ? kLow : kHigh;
    if ((mask & part) == 0) continue;
    if (stays(last[half])) {
      go_on(visit, last[half], &shared.write[half]);
      continue;
    }
    if ((last[half] & kShared) != 0 && (last[1 - half] & kShared) != 0 &&
        shared.history[0] == shared.history[1]) {
      shared.history[half] = histories_.copy(shared.history[half]);
    }
    pass(visit, part, last[half], shared.write[half], shared.history[half]);
  }
}

// Those with the same past together.
void Shadow::visit_bytes(const Visit& visit, const ByteCell& cell, std::uint8_t mask) {
  auto& all = cell.bytes.last;
  std::uint8_t left = mask;
  while (left != 0) {
    const auto first = static_cast<unsigned>(std::countr_zero(left));
    Stamp& last = all[first];
    if (stays(last)) {
      left = static_cast<std::uint8_t>(left & ~(1u << first));
      SharedBytes* const shared = cell.shared();
      go_on(visit, last, shared != nullptr ? &shared->write[first] : nullptr);
      continue;
    }
    SharedBytes& shared = make_shared(cell);
    const bool was_shared = (last & kShared) != 0;
    std::uint8_t alike = 0;
    bool others = false;  // with the same history
    for (unsigned n = 0; n < 8; ++n) {
      const bool same_history =
          was_shared && (all[n] & kShared) != 0 && shared.history[n] == shared.history[first];
      const bool same = all[n] == last &&
                        (!was_shared || (same_history && shared.write[n] == shared.write[first]));
      if (same && (left >> n & 1) != 0) {
        alike = static_cast<std::uint8_t>(alike | 1u << n);
      } else {
        others = others || same_history;
      }
    }
    if (others) shared.history[first] = histories_.copy(shared.history[first]);
    pass(visit, alike, last, shared.write[first], shared.history[first]);
    for (unsigned n = first + 1; n < 8; ++n) {
      if ((alike >> n & 1) == 0) continue;
      all[n] = last;
      shared.write[n] = shared.write[first];
      shared.history[n] = shared.history[first];
    }
    left = static_cast<std::uint8_t>(left & ~alike);
  }
}

// A cell as one that is kept by bytes, from now on if not already.
Shadow::ByteCell Shadow::by_bytes(Chunk& chunk, std::size_t place) {
  Stamps& last = chunk.last[place];
  SharedHalves& halves = chunk.shared[place];
  if (last[1] == kByBytes) return {bytes_[static_cast<std::uint32_t>(last[0])], halves};
  const std::uint32_t index = bytes_.add(arena_);
  HEDDLE_CHECK(index >> kOrdinalShift == 0);
  const ByteCell cell{bytes_[index], halves};
  for (std::size_t n = 0; n < 8; ++n) cell.bytes.last[n] = last[n / 4];
  const SharedHalves before = halves;
  halves.write[0] = 0;
  if (((last[0] | last[1]) & kShared) != 0) {
    SharedBytes& shared = make_shared(cell);
    for (std::size_t n = 0; n < 8; ++n) {
      shared.write[n] = before.write[n / 4];
      shared.history[n] = before.history[n / 4];
    }
  }
  last = {index, kByBytes};
  return cell;
}

Shadow::SharedBytes& Shadow::make_shared(const ByteCell& cell) {
  if (cell.shared() == nullptr) {
    cell.halves.write[0] = reinterpret_cast<std::uint64_t>(arena_.take(sizeof(SharedBytes)));
  }
  return *cell.shared();
}

void Shadow::drop(const ByteCell& cell, std::uint8_t mask) {
  auto& last = cell.bytes.last;
  for (unsigned n = 0; n < 8; ++n) {
    if ((mask >> n & 1) == 0) continue;
    const bool was_shared = (last[n] & kShared) != 0;
    last[n] = 0;
    if (!was_shared) continue;
    const SharedBytes& shared = *cell.shared();
    bool others = false;
    for (unsigned m = 0; m < 8; ++m) {
      others = others || ((last[m] & kShared) != 0 && shared.history[m] == shared.history[n]);
    }
    if (!others) histories_.drop(shared.history[n]);
  }
}

void Shadow::clear(Chunk& chunk, std::size_t place, std::uint8_t mask) {
  Stamps& last = chunk.last[place];
  if (last[0] == 0 && last[1] == 0) return;
  if (last[1] != kByBytes && (mask == kAll || mask == kLow || mask == kHigh)) {
    const auto& history = chunk.shared[place].history;
    for (const std::size_t half : {0u, 1u}) {
      if ((mask & (half == 0 ? kLow : kHigh)) == 0) continue;
      const bool was_shared = (last[half] & kShared) != 0;
      last[half] = 0;
      if (!was_shared) continue;
      const bool other = (last[1 - half] & kShared) != 0 && history[0] == history[1];
      if (!other) histories_.drop(history[half]);
    }
    return;
  }
  const ByteCell cell = by_bytes(chunk, place);
  drop(cell, mask);
  if (cell.bytes.last != Bytes().last) return;
  if (cell.shared() != nullptr) arena_.give_back(cell.shared(), sizeof(SharedBytes));
  cell.halves = SharedHalves();
  bytes_.remove(static_cast<std::uint32_t>(last[0]));
  last = Stamps();
}

// What was never touched costs nothing.
void Shadow::forget_in_chunk(std::uint64_t number, std::uint64_t first_cell,
                             std::uint64_t end_cell) {
  Chunk& chunk = *find_chunk(number);
  const std::uint64_t base = number * kChunkCells;
  std::size_t at = std::max(first_cell, base) - base;
  const std::size_t end = std::min(end_cell - base, kChunkCells);
  while (at < end) {
    const std::size_t page = at / kPageCells;
    const std::size_t page_end = std::min(end, (page + 1) * kPageCells);
    const bool whole = at == page * kPageCells && page_end == at + kPageCells;
    if (!chunk.touched.test(page)) {
      at = page_end;
      continue;
    }
    for (; at < page_end; ++at) clear(chunk, at, kAll);
    if (whole) chunk.touched.reset(page);
  }
}

void Shadow::forget_cells(std::uint64_t first, std::uint64_t end) {
  const std::uint64_t first_chunk = first / kChunkCells;
  const std::uint64_t last_chunk = (end - 1) / kChunkCells;
  if (last_chunk - first_chunk < chunks_.size()) {
    for (std::uint64_t number = first_chunk; number <= last_chunk; ++number) {
      if (find_chunk(number) != nullptr) forget_in_chunk(number, first, end);
    }
    return;
  }
  for (const std::uint64_t number : chunks_) {
    if (number >= first_chunk && number <= last_chunk) forget_in_chunk(number, first, end);
  }
}

void Shadow::forget(Address address, std::uint64_t size) {
  if (size == 0) return;
  const Address last = address + size - 1 < address ? ~Address{0} : address + size - 1;
  const std::uint64_t first_cell = address >> cell_shift_;
  const std::uint64_t last_cell = last >> cell_shift_;
  const auto edge = [&](std::uint64_t cell, Address from, Address to) {
    Chunk* const chunk = find_chunk(cell / kChunkCells);
    if (chunk == nullptr) return;
    const std::size_t place = cell % kChunkCells;
    if (chunk->touched.test(place / kPageCells)) clear(*chunk, place, granules_.mask(from, to));
  };
  if (first_cell == last_cell) return edge(first_cell, address, last);
  edge(first_cell, address, ((first_cell + 1) << cell_shift_) - 1);
  edge(last_cell, last_cell << cell_shift_, last);
  if (first_cell + 1 < last_cell) forget_cells(first_cell + 1, last_cell);
}

void Shadow::forget_everything() {
  for (const std::uint64_t number : chunks_) {
    munmap(find_chunk(number), sizeof(Chunk));
    if (number >> (kAddressBits - kChunkBits) == 0) table_[number] = nullptr;
  }
  far_.clear();
  chunks_.clear();
  bytes_ = Pool<Bytes>();
  arena_ = Arena();
  histories_.forget_everything();
  turn_ = ~Stamp{0};
}

Shadow::Memory Shadow::memory() const {
  std::size_t pages = 0;
  for (const std::uint64_t number : chunks_) pages += find_chunk(number)->touched.count();
  return {histories_.live(), pages * kPageCells * (sizeof(Stamps) + sizeof(SharedHalves)) +
                                 arena_.bytes() + histories_.bytes()};
}

}  // namespace heddle::avio
