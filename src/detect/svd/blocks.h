// What every thread knows about every block of memory, in shadow pages.
//
// A block has a state for each thread (svd-2005, section 4.2), its *cell*: the unit that the block
// belongs to, the state, and a few bits, in one word. A page of memory has a *plane* of cells for
// every thread that accesses it, so a thread finds its cells without looking at other threads'. A
// word of zero is Idle, and so is a cell whose unit has ended.
//
// A cell does not say which access it is about; only inputs, and what was read back last, need
// that, for the report. A plane remembers it elsewhere (accesses.h) from the first of these on,
// until none of its cells needs it.
//
// When a thread accesses a block, all other threads' cells of it must be told. Most pages are used
// by one thread. Of the others, data that one thread sets up and others use, the other threads'
// cells have nothing more to learn after the first access of a stretch: they know that the block is
// shared, and a write has been noted. The thread's cell then says that its accesses are *calm* in
// that sense: its reads, or its writes, too. At most one thread is calm at a block: whoever tells
// the others takes it from them, so what a calm thread does to its own cell need not be told.
// Where all cells of a thread have nothing more to learn (it has set up a page that others work on
// now), the plane is *asleep* until the thread comes back: nobody looks at it.
//
// Programs use mostly words of eight bytes, blocks are four by default. A page therefore starts
// with cells of eight bytes and is split into cells of the block size by the first access that
// covers only a part of one. Until then the blocks of a cell have seen the same accesses and are in
// the same state, because an access treats all of its blocks alike.
//
// Memory that is freed takes its shadow with it; planes of threads that have ended, and planes
// without a live cell, go when numbers are collected.
#pragma once

#include "detect/svd/accesses.h"
#include "detect/svd/units.h"
#include "trace/event.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include <absl/container/flat_hash_map.h>

namespace heddle::svd {

enum class BlockState : std::uint8_t {
  kIdle,
  kLoaded,
  kLoadedShared,
  kStored,
  kStoredShared,
  kTrueDep,
  kTrueDepRead,  // read back last; that read is remembered
  kLastRead      // the same, and its unit has ended since
};

// One thread's view of a block in a word; 0: Idle.
struct Cell {
  std::uint32_t noted : 1 {};  // since the access that it is about, another's has been noted
  std::uint32_t input : 1 {};  // the unit read it before it wrote it
  std::uint32_t state : 3 {};
  std::uint32_t calm : 2 {};   // what other threads know already: a bit for reads, one for writes
  std::uint32_t unit : 25 {};  // 0 = none

  BlockState block_state() const { return static_cast<BlockState>(state); }
  // What the thread itself knows: state << 2 | input << 1 | noted.
  constexpr unsigned kind() const { return std::bit_cast<std::uint32_t>(*this) & 31; }
  // What is left of it when the thread's own knowledge becomes this.
  Cell with(unsigned kind, UnitId next) const {
    return std::bit_cast<Cell>(next << 7 | (std::bit_cast<std::uint32_t>(*this) & 0x60) | kind);
  }
  void set(BlockState next) { state = static_cast<std::uint32_t>(next) & 7; }
  // As one word, which compilers do not make of a comparison of its parts.
  friend bool operator==(Cell a, Cell b) {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
  }
};
static_assert(sizeof(Cell) == 4);

// What becomes of a cell.
inline Cell make_cell(Cell before, UnitId unit, BlockState state, bool input, bool noted) {
  Cell out;
  out.calm = before.calm;
  out.unit = unit & kMaxUnit;
  out.set(state);
  out.input = input ? 1 : 0;
  out.noted = noted ? 1 : 0;
  return out;
}

// Sets of cells by everything but their units: a bit for each kind.
class CellKinds {
 public:
  template <typename Has>  // has(state, input, noted)
  static constexpr CellKinds where(Has has) {
    CellKinds out;
    for (unsigned kind = 0; kind < 32; ++kind) {
      if (has(static_cast<BlockState>(kind >> 2), (kind & 2) != 0, (kind & 1) != 0))
        out.bits_ |= 1u << kind;
    }
    return out;
  }
  constexpr bool has(Cell cell) const { return (bits_ >> cell.kind() & 1) != 0; }

 private:
  std::uint32_t bits_ = 0;
};

inline constexpr ThreadId kMaxThread = (1u << 17) - 1;

// Which further accesses of other threads change nothing in a cell.
enum class Calm : std::uint8_t { kNone, kReads, kAll = 3 };

class Blocks {
 public:
  struct Plane {
    ThreadId thread{};
    bool asleep{};
    std::unique_ptr<Cell[]> cells;
    std::unique_ptr<Accesses> accesses;  // of the cells, once there is an input
  };
  struct Page {
    unsigned shift = 0;
    std::uint32_t told = 0;  // how often others were, since it was asked who may sleep
    bool visited = false;    // by more than one thread, some time
    std::vector<Plane> planes;

    std::size_t cell_count() const { return kPageBytes >> shift; }
  };

  // A page as one thread sees it.
  struct alignas(64) Near {
    Address begin = ~0ull;  // which no page has
    std::uint64_t key = 0;  // begin and, where an offset of 256 or more would be, the shift
    Cell* cells = nullptr;
    Accesses* accesses = nullptr;
    std::array<const Cell*, 2> others{};  // cells of other planes, if there are any
    Page* page = nullptr;
    std::uint32_t plane = 0;
    std::uint8_t shift = 0;
    std::uint8_t one_cell = 0;     // the sizes of accesses that are one cell if they are aligned
    std::uint8_t always_calm = 0;  // like a cell's bits for calm, of all: nobody else is there
    bool visited = false;          // somebody else is, or was

    bool is_calm_for_reads(Cell cell) const {
      return ((std::bit_cast<std::uint32_t>(cell) | always_calm) & 1u << 5) != 0;
    }
    bool is_calm_for_writes(Cell cell) const {
      return ((std::bit_cast<std::uint32_t>(cell) | always_calm) & 1u << 6) != 0;
    }
    bool is_calm_for_reads(std::uint64_t cell) const { return is_calm_for_reads(cells[cell]); }
    bool is_calm_for_writes(std::uint64_t cell) const { return is_calm_for_writes(cells[cell]); }
    bool is_calm(std::uint64_t cell, bool writes) const {
      return writes ? is_calm_for_writes(cell) : is_calm_for_reads(cell);
    }
  };

  static_assert(sizeof(Near) == 64);

  // Cells that an access touches: `count` of them from `first` on.
  struct Run {
    Near* near = nullptr;
    std::uint64_t first = 0;
    std::uint64_t count = 0;
  };

  static constexpr unsigned kPageShift = 13;

  explicit Blocks(std::uint32_t block_size);

  // The page of an access that is one cell, if it is near; else nullptr. Most are.
  Near* near_of_one(ThreadId thread, Address address, std::uint32_t size) {
    if (thread != current_) go_to(thread);
    const std::uint64_t number = address >> kPageShift;
    Near& near = near_[near_place(number)];
    return near.begin == number << kPageShift && ((address | size) & (size - 1)) == 0 &&
                   (near.one_cell & size) != 0
               ? &near
               : nullptr;
  }
  // Where an access of the current thread may be.
  Near& near_here(Address address) { return near_[near_place(address >> kPageShift)]; }
  // What is the same for all accesses of a size: an address and `mask` is the page's if the access
  // is aligned; it is one cell of pages with this shift.
  struct Place {
    std::int32_t mask = -1;  // with its sign in front
    std::uint32_t key = kNoShift << kKeyShift;
    std::uint8_t shift = kNoShift;
  };
  Place place(std::uint32_t size) const {
    if (!std::has_single_bit(size) || size > 32) return {};
    const unsigned shift = std::max<unsigned>(std::countr_zero(size), block_shift_);
    return {static_cast<std::int32_t>(~(kPageBytes - 1) | (size - 1)), shift << kKeyShift,
            static_cast<std::uint8_t>(shift)};
  }
  // Whether an access is there, and one cell.
  template <typename Placed>
  static bool is_one(const Near& near, Address address, const Placed& place) {
    return (address & place.mask) + place.key == near.key;
  }
  // … and two.
  template <typename Placed>
  static bool is_two(const Near& near, Address address, const Placed& place) {
    return (address & place.mask) == near.begin && place.shift == near.shift + 1;
  }
  static std::uint64_t cell_of(Address address, std::uint32_t shift) {
    return (address & (kPageBytes - 1)) >> shift;
  }
  // How many there are from this one to the end of its page.
  static std::uint64_t cells_from(Address address, std::uint32_t shift) {
    return (kPageBytes - (address & (kPageBytes - 1))) >> shift;
  }
  // An access of the current thread will need the cell of this address, and maybe that of another
  // thread.
  [[gnu::always_inline]] void expect(Address address) const {
    const Near& near = near_[near_place(address >> kPageShift)];
    if ((address & ~(kPageBytes - 1)) != near.begin) return;
    const std::uint64_t number = cell_of(near, address);
    __builtin_prefetch(near.cells + number);
    if (near.always_calm == 0) {
      for (const Cell* const others : near.others) __builtin_prefetch(others + number);
    }
  }
  // Calls visit(cell) for that cell, if its page is near, and that of another thread that may have
  // to be told.
  template <typename Visit>
  [[gnu::always_inline]] void for_cells_at(Address address, Visit visit) const {
    const Near& near = near_[near_place(address >> kPageShift)];
    if ((address & ~(kPageBytes - 1)) != near.begin) return;
    const std::uint64_t number = cell_of(near, address);
    visit(near.cells[number]);
    if (near.is_calm_for_writes(number)) return;
    for (const Cell* const others : near.others) visit(others[number]);
  }
  void turn(ThreadId thread) {
    if (thread != current_) go_to(thread);
  }
  static Address address_of(const Near& near, std::uint64_t cell) {
    return near.begin + (cell << near.shift);
  }
  static std::uint64_t cell_of(const Near& near, Address address) {
    return (address & (kPageBytes - 1)) >> near.shift;
  }

  // The cells of an access within one page whose cells it covers as wholes; else a count of 0.
  Run run(ThreadId thread, Address address, std::uint64_t size) {
    Near& near = page(thread, address >> kPageShift);
    const std::uint64_t low = address & (kPageBytes - 1);
    const std::uint64_t part = (1ull << near.shift) - 1;
    if (low + size > kPageBytes || size == 0 ||
        (near.shift != block_shift_ && ((low | size) & part) != 0)) {
      return {};
    }
    const std::uint64_t first = low >> near.shift;
    return {&near, first, ((low + size - 1) >> near.shift) - first + 1};
  }

  // Calls visit(Run) for the parts of the range in each page, pages split as needed.
  template <typename Visit>
  void for_each_run(ThreadId thread, Address address, std::uint64_t size, Visit visit);

  // The access that the cell is about; for inputs, and for whatever was set.
  static AccessRef access(const Plane& plane, std::uint64_t cell) {
    return plane.accesses == nullptr ? 0 : (*plane.accesses)[cell];
  }
  void set_access(Near& near, std::uint64_t cell, AccessRef access) {
    set_access(*accesses_of(near), cell, access);
  }
  void set_access(Accesses& accesses, std::uint64_t cell, AccessRef access) {
    bytes_ += accesses.set(cell, access);
  }
  // They do not move until numbers are collected.
  Accesses* accesses_of(Near& near) {
    if (near.accesses == nullptr) near.accesses = make_accesses(near);
    return near.accesses;
  }
  // Calls tell(cell, its plane) for the other threads' cells; it returns what they know by then.
  template <typename Tell>
  static void tell_others(Near& near, std::uint64_t number, Tell tell) {
    Calm all = Calm::kAll;
    std::vector<Plane>& planes = near.page->planes;
    for (std::uint32_t i = 0; i < planes.size(); ++i) {
      if (i == near.plane || planes[i].asleep) continue;
      Cell& cell = planes[i].cells[number];
      if (cell == Cell()) continue;
      cell.calm = 0;
      all = std::min(all, tell(cell, planes[i]));
    }
    near.cells[number].calm = static_cast<std::uint32_t>(all) & 3;
  }

  // Puts the other threads' planes to sleep all of whose cells are of these kinds, which have
  // nothing to learn from anybody.
  void put_to_sleep(Near& near, CellKinds calm);

  // A thread's cell of a block: slowly, and without becoming its reader.
  Cell cell_at(ThreadId thread, Address address) const;

  // The range was handed out or given back.
  void forget(Address address, std::uint64_t size);
  // The thread has ended: its planes are dropped, now or when numbers are collected.
  void drop(ThreadId thread);

  template <typename Visit>  // visit(cells) of a thread that has not ended
  void for_each_plane(Visit visit);
  // Calls visit(AccessRef, thread, address of its block, bytes) for cells of which wants(cell).
  template <typename Wants, typename Visit>
  void for_each_cell(Wants wants, Visit visit) const;
  // Gives back planes of Idle cells only and those of threads that have ended; and, of the others,
  // the accesses of those without a cell of which needs(cell).
  template <typename Needs>
  void shrink(Needs needs);
  void shrink() {
    shrink([](Cell /*cell*/) { return true; });
  }

  bool gone(ThreadId thread) const { return thread < gone_.size() && gone_[thread]; }
  // Of all planes, and of large tables of what is near.
  std::size_t bytes() const { return bytes_; }
  // Of the program's memory, in whole pages.
  std::size_t touched() const { return pages_.size() << kPageShift; }

 private:
  static constexpr unsigned kKeyShift = 8;
  static constexpr std::uint8_t kNoShift = 15;
  static constexpr std::uint64_t kPageBytes = 1u << kPageShift;
  static constexpr unsigned kWordShift = 3;
  static constexpr std::uint64_t kMaxBytesPerAccess = 1u << 18;
  static constexpr std::size_t kFewNear = 512;
  static constexpr std::size_t kMostNear = 8192;
  static constexpr std::size_t kMuch = 16u << 20;  // less is not worth giving back

  // The pages that a thread used lately, by their numbers' bits: few at first, more for a thread
  // that comes back to others again and again.
  struct NearPages {
    std::vector<Near> pages = std::vector<Near>(kFewNear);
    std::size_t missed = 0;  // that were known and not near, since there are so many

    Near& at(std::uint64_t number) { return pages[spread(number) & (pages.size() - 1)]; }
    // Beyond what every thread has.
    std::size_t bytes() const { return (pages.size() - kFewNear) * sizeof(Near); }
  };
  // Pages that are a large power of two apart, as the halves of an array often are, must not have
  // the same place.
  static std::uint64_t spread(std::uint64_t number) { return number ^ number >> 9; }
  static_assert(kFewNear == 1u << 9);
  std::uint64_t near_place(std::uint64_t number) const { return spread(number) & near_mask_; }

  Near& page(ThreadId thread, std::uint64_t number) {
    if (thread != current_) go_to(thread);
    Near& near = near_[near_place(number)];
    return near.begin == number << kPageShift ? near : find(thread, number);
  }
  void go_to(ThreadId thread);
  void missed(ThreadId thread);
  Accesses* make_accesses(const Near& near);
  static std::size_t bytes_of(const Plane& plane, const Page& page) {
    return page.cell_count() * sizeof(Cell) +
           (plane.accesses != nullptr ? plane.accesses->bytes() : 0);
  }
  Near& find(ThreadId thread, std::uint64_t number);
  void far(std::uint64_t number, const Page& page);
  void far(std::uint64_t number, const Plane& plane);
  static void look_around(Near& near);
  void split(std::uint64_t number, Page& page);
  void drop_idle_planes();
  void give_back();
  template <typename Drop>
  bool drop_planes(std::uint64_t number, Page& page, Drop drop);

  unsigned block_shift_;
  std::size_t bytes_ = 0;
  std::unique_ptr<PagePool> codes_ = std::make_unique<PagePool>();
  absl::flat_hash_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  ThreadId current_ = ~0u;
  Near* near_ = nullptr;                             // of the current thread
  std::uint64_t near_mask_ = 0;                      // how many less one
  std::vector<std::unique_ptr<NearPages>> nearest_;  // by thread
  std::vector<std::size_t> planes_of_;               // by thread
  std::vector<bool> gone_;                           // threads that ended
};

template <typename Visit>
void Blocks::for_each_run(ThreadId thread, Address address, std::uint64_t size, Visit visit) {
  if (size == 0) size = 1;
  if (size > kMaxBytesPerAccess) size = kMaxBytesPerAccess;
  if (address + size < address) return;
  const Address end = address + size;
  while (address < end) {
    const std::uint64_t number = address >> kPageShift;
    const Address stop = std::min(end, (number + 1) << kPageShift);
    Run here = run(thread, address, stop - address);
    if (here.count == 0) {
      split(number, *page(thread, number).page);
      here = run(thread, address, stop - address);
    }
    visit(here);
    address = stop;
  }
}

template <typename Visit>
void Blocks::for_each_plane(Visit visit) {
  for (auto& [number, page] : pages_) {
    for (Plane& plane : page->planes) {
      const std::span cells(plane.cells.get(), page->cell_count());
      if (gone(plane.thread)) {
        std::fill(cells.begin(), cells.end(), Cell());
      } else {
        visit(cells);
      }
    }
  }
}

template <typename Wants, typename Visit>
void Blocks::for_each_cell(Wants wants, Visit visit) const {
  for (const auto& [number, page] : pages_) {
    for (const Plane& plane : page->planes) {
      if (gone(plane.thread)) continue;
      for (std::uint64_t i = 0; i < page->cell_count(); ++i) {
        if (!wants(plane.cells[i])) continue;
        visit(access(plane, i), plane.thread, (number << kPageShift) + (i << page->shift),
              1u << page->shift);
      }
    }
  }
}

template <typename Needs>
void Blocks::shrink(Needs needs) {
  const std::size_t before = bytes_;
  drop_idle_planes();
  for (auto& [number, page] : pages_) {
    for (Plane& plane : page->planes) {
      const Cell* const cells = plane.cells.get();
      if (plane.accesses == nullptr || std::any_of(cells, cells + page->cell_count(), needs))
        continue;
      far(number, *page);
      bytes_ -= bytes_of(plane, *page);
      plane.accesses = nullptr;
      bytes_ += bytes_of(plane, *page);
    }
  }
  if (before > kMuch) give_back();
}

}  // namespace heddle::svd
