#include "detect/avio/front.h"

#include "base/check.h"

#include <algorithm>
#include <cstring>

#include <sys/mman.h>

namespace heddle::avio {
namespace {

constexpr std::uint8_t kLow = 0x0f;
constexpr std::uint8_t kHigh = 0xf0;
constexpr std::uint8_t kAll = 0xff;

void* reserve(std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace

Front::Front(Granules granules, Shadow& shadow, const Spots& spots, PairLog* pairs)
    : granules_(granules),
      cell_shift_(granules.cell_shift()),
      fast_end_(granules.size == 1 ? Address{1} << kAddressBits : 0),
      shadow_(shadow),
      spots_(spots),
      pairs_(pairs),
      table_(static_cast<Chunk**>(reserve(sizeof(Chunk*) << (kAddressBits - kChunkBits)))) {
  HEDDLE_CHECK(is_granule(granules.size) && table_ != nullptr);
}

Front::~Front() {
  for (const std::uint64_t number : chunks_) munmap(table_[number], sizeof(Chunk));
  munmap(static_cast<void*>(table_), sizeof(Chunk*) << (kAddressBits - kChunkBits));
}

// Null: there can be none, and the Shadow does without.
Front::Chunk* Front::chunk_of(std::uint64_t cell) {
  constexpr unsigned kCellsPerChunkBits = kChunkBits - kCellBits;
  const std::uint64_t number = cell >> kCellsPerChunkBits;
  if (number >> (kAddressBits - kChunkBits) != 0) return nullptr;
  Chunk*& chunk = table_[number];
  if (chunk == nullptr) {
    chunk = static_cast<Chunk*>(reserve(sizeof(Chunk)));
    if (chunk != nullptr) chunks_.push_back(number);
  }
  return chunk;
}

Touch Front::touch(Stamp stamp) const {
  const Spot& from = spot(stamp);
  return Touch::make(from.actor, from.kind, (stamp >> kOrdinalShift) - 1, from.site, from.context);
}

void Front::visit_cells(Stamp now, bool writes, Address address, std::uint32_t size) {
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

void Front::visit(const Visit& visit, std::uint8_t mask) {
  Chunk* const chunk = chunk_of(visit.cell);
  if (chunk == nullptr) {
    shadow_.access(touch(visit.now), {visit.cell, mask, visit.address, visit.size});
    return;
  }
  const std::size_t place = visit.cell % kChunkCells;
  Stamps& last = chunk->last[place];
  Stamps& write = chunk->write[place];
  if (last[0] == 0 && last[1] == 0) chunk->touched.set(place / kPageCells);
  if (last[1] != kByBytes) {
    if (mask == kAll) {
      if (last[0] == last[1] && write[0] == write[1]) {
        visit_location(visit, last[0], write[0], kAll);
        last[1] = last[0];
        write[1] = write[0];
        return;
      }
      visit_location(visit, last[0], write[0], kLow);
      visit_location(visit, last[1], write[1], kHigh);
      return;
    }
    if (mask == kLow) return visit_location(visit, last[0], write[0], mask);
    if (mask == kHigh) return visit_location(visit, last[1], write[1], mask);
  }
  visit_bytes(visit, by_bytes(*chunk, place), mask);
}

// The bytes of the mask, those with the same past together.
void Front::visit_bytes(const Visit& visit, Bytes& bytes, std::uint8_t mask) {
  for (unsigned first = 0; first < 8; ++first) {
    if ((mask >> first & 1) == 0) continue;
    unsigned end = first + 1;
    while (end < 8 && (mask >> end & 1) != 0 && bytes.last[end] == bytes.last[first] &&
           bytes.write[end] == bytes.write[first]) {
      ++end;
    }
    const auto part = static_cast<std::uint8_t>((0xffu << first) & (0xffu >> (8 - end)));
    visit_location(visit, bytes.last[first], bytes.write[first], part);
    std::fill(&bytes.last[first] + 1, bytes.last.data() + end, bytes.last[first]);
    std::fill(&bytes.write[first] + 1, bytes.write.data() + end, bytes.write[first]);
    first = end - 1;
  }
}

void Front::visit_location(const Visit& visit, Stamp& last, Stamp& write, std::uint8_t mask) {
  const Stamp own_write = visit.writes ? visit.now : 0;
  if (last >= turn_ || (last != 0 && spot(last).actor == actor_)) {
    if (pairs_ != nullptr) note_pair(last, visit.now);
    last = visit.now | (last & kShared);
    if (visit.writes) write = visit.now;
    return;
  }
  // What a thread that has ended did alone is of no use to anybody.
  const bool shared = (last & kShared) != 0;
  if (last == 0 || (!shared && shadow_.ended(spot(last).actor))) {
    last = visit.now;
    write = own_write;
    return;
  }
  // It changes hands.
  const Shadow::Place place{visit.cell, mask, visit.address, visit.size};
  if (shared) {
    shadow_.catch_up(touch(last), write != 0 ? touch(write) : Touch(), place);
  } else {
    shadow_.access(touch(last), place);
  }
  shadow_.access(touch(visit.now), place);
  last = visit.now | kShared;
  write = own_write;
}

// The bytes of a cell that is kept by bytes, from now on if not already.
Front::Bytes& Front::by_bytes(Chunk& chunk, std::size_t place) {
  Stamps& last = chunk.last[place];
  if (last[1] == kByBytes) return bytes_[static_cast<std::uint32_t>(last[0])];
  const std::uint32_t index = bytes_.add(arena_);
  HEDDLE_CHECK(index >> kOrdinalShift == 0);
  Bytes& bytes = bytes_[index];
  for (std::size_t n = 0; n < 8; ++n) {
    bytes.last[n] = last[n / 4];
    bytes.write[n] = chunk.write[place][n / 4];
  }
  last = {index, kByBytes};
  return bytes;
}

// Whether the Shadow knows something about these bytes.
bool Front::clear(Chunk& chunk, std::size_t place, std::uint8_t mask) {
  Stamps& last = chunk.last[place];
  Stamps& write = chunk.write[place];
  if (last[0] == 0 && last[1] == 0) return false;
  bool shared = false;
  const auto drop = [&](Stamp& last_of, Stamp& write_of) {
    shared = shared || (last_of & kShared) != 0;
    last_of = write_of = 0;
  };
  if (last[1] != kByBytes && (mask == kAll || mask == kLow || mask == kHigh)) {
    if ((mask & kLow) != 0) drop(last[0], write[0]);
    if ((mask & kHigh) != 0) drop(last[1], write[1]);
    return shared;
  }
  Bytes& bytes = by_bytes(chunk, place);
  for (unsigned n = 0; n < 8; ++n) {
    if ((mask >> n & 1) != 0) drop(bytes.last[n], bytes.write[n]);
  }
  const bool empty =
      std::all_of(bytes.last.begin(), bytes.last.end(), [](Stamp stamp) { return stamp == 0; });
  if (empty) {
    bytes_.remove(static_cast<std::uint32_t>(last[0]));
    last = write = Stamps();
  }
  return shared;
}

// Whole cells. What was never touched costs nothing.
bool Front::forget_cells(std::uint64_t first, std::uint64_t end) {
  bool shared = false;
  const auto forget_in_chunk = [&](std::uint64_t number) {
    Chunk& chunk = *table_[number];
    const std::uint64_t base = number * kChunkCells;
    const std::size_t from = std::max(first, base) - base;
    const std::size_t to = std::min(end, base + kChunkCells) - base;
    for (std::size_t at = from; at < to;) {
      const std::size_t page = at / kPageCells;
      const std::size_t page_end = std::min(to, (page + 1) * kPageCells);
      if (!chunk.touched.test(page)) {
        at = page_end;
        continue;
      }
      const bool whole = at == page * kPageCells && page_end == at + kPageCells;
      for (; at < page_end; ++at) shared = clear(chunk, at, kAll) || shared;
      if (whole) chunk.touched.reset(page);
    }
  };
  const std::uint64_t first_chunk = first / kChunkCells;
  const std::uint64_t last_chunk = (end - 1) / kChunkCells;
  if (last_chunk - first_chunk < chunks_.size()) {
    for (std::uint64_t number = first_chunk; number <= last_chunk; ++number) {
      if (number >> (kAddressBits - kChunkBits) != 0) break;
      if (table_[number] != nullptr) forget_in_chunk(number);
    }
  } else {
    for (const std::uint64_t number : chunks_) {
      if (number >= first_chunk && number <= last_chunk) forget_in_chunk(number);
    }
  }
  return shared;
}

void Front::forget(Address address, std::uint64_t size) {
  if (size == 0) return;
  const Address last = address + size - 1 < address ? ~Address{0} : address + size - 1;
  std::uint64_t first_cell = address >> cell_shift_;
  std::uint64_t end_cell = (last >> cell_shift_) + 1;
  // Beyond the table the Shadow may know of everything.
  bool shared = (end_cell - 1) >> (kAddressBits - kCellBits) != 0;
  const auto edge = [&](std::uint64_t cell, Address from, Address to) {
    if (cell >> (kAddressBits - kCellBits) != 0) return;
    Chunk* const chunk = table_[cell / kChunkCells];
    if (chunk != nullptr && chunk->touched.test(cell % kChunkCells / kPageCells)) {
      shared = clear(*chunk, cell % kChunkCells, granules_.mask(from, to)) || shared;
    }
  };
  if (first_cell + 1 == end_cell) {
    edge(first_cell, address, last);
  } else {
    edge(first_cell, address, ((first_cell + 1) << cell_shift_) - 1);
    edge(end_cell - 1, (end_cell - 1) << cell_shift_, last);
    ++first_cell;
    --end_cell;
    if (first_cell < end_cell) shared = forget_cells(first_cell, end_cell) || shared;
  }
  if (shared) shadow_.forget(address, size);
}

void Front::forget_everything() {
  for (const std::uint64_t number : chunks_) {
    munmap(table_[number], sizeof(Chunk));
    table_[number] = nullptr;
  }
  chunks_.clear();
  bytes_ = Pool<Bytes>();
  arena_ = Arena();
  turn_ = ~Stamp{0};
}

std::size_t Front::bytes() const {
  std::size_t pages = 0;
  for (const std::uint64_t number : chunks_) pages += table_[number]->touched.count();
  return pages * kPageCells * 2 * sizeof(Stamps) + arena_.bytes();
}

}  // namespace heddle::avio
