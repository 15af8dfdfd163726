#include "detect/svd/online.h"

#include "base/check.h"

#include <algorithm>
#include <bit>

namespace heddle::svd {
namespace {

Moment moment_of(const Witness& access) {
  return {access.ordinal, access.site, access.stack, access.locks, access.kind};
}

// The address of the inside access is not kept: what it has in common with the remote one is the
// place.
Witness witness_of(const Overwrite& overwrite, ThreadId thread) {
  Witness out;
  out.thread = thread;
  out.kind = overwrite.inside.kind;
  out.site = overwrite.inside.site;
  out.stack = overwrite.inside.stack;
  out.locks = overwrite.inside.locks;
  out.ordinal = overwrite.inside.ordinal;
  out.address = overwrite.remote.address;
  out.size = overwrite.remote.size;
  return out;
}

}  // namespace

Online::Online(const Catalog& catalog, const OnlineOptions& options)
    : options_(options),
      block_shift_(static_cast<unsigned>(std::countr_zero(options.block_size))),
      machine_(catalog, *this),
      narrator_(catalog),
      entries_(1) {
  HEDDLE_CHECK(std::has_single_bit(options.block_size) && options.block_size <= 64);
}

void Online::on(const Event& event, EventOrdinal ordinal) {
  switch (event.kind) {
    case EventKind::kAlloc:
    case EventKind::kFree:
      forget_range(event.address, event.value);
      break;
    case EventKind::kThreadEnd:
      if (event.thread >= gone_.size()) gone_.resize(event.thread + 1, false);
      gone_[event.thread] = true;
      break;
    default:
      break;
  }
  narrator_.on(event);
  machine_.on(event, ordinal);
  collect_when_due();
}

// ---- blocks ---------------------------------------------------------------------------------

Online::BlockRange Online::blocks_of(const Event& event) const {
  const Address last = event.address + (event.size == 0 ? 0 : event.size - 1);
  BlockRange range{event.address >> block_shift_, last >> block_shift_};
  if (range.last < range.first) range.last = range.first;
  range.last = std::min(range.last, range.first + kMaxBlocksPerAccess - 1);
  return range;
}

std::uint32_t& Online::head(BlockNumber block) {
  const std::uint64_t per_page = kPageBytes >> block_shift_;
  const std::uint64_t number = block / per_page;
  if (number != last_page_number_) {
    Page& page = pages_[number];
    if (page == nullptr) page = std::make_unique<std::uint32_t[]>(per_page);
    last_page_ = page.get();
    last_page_number_ = number;
  }
  return last_page_[block % per_page];
}

Online::Entry& Online::own_entry(BlockNumber block, ThreadId thread) {
  std::uint32_t& first = head(block);
  for (std::uint32_t at = first; at != kNoEntry; at = entries_[at].next) {
    if (entries_[at].thread == thread) return entries_[at];
  }
  std::uint32_t index = 0;
  if (free_entries_.empty()) {
    index = static_cast<std::uint32_t>(entries_.size());
    entries_.emplace_back();
  } else {
    index = free_entries_.back();
    free_entries_.pop_back();
    entries_[index] = Entry();
  }
  Entry& entry = entries_[index];
  entry.thread = thread;
  entry.next = first;
  first = index;
  return entry;
}

void Online::drop_idle(BlockNumber block) {
  std::uint32_t* link = &head(block);
  while (*link != kNoEntry) {
    Entry& entry = entries_[*link];
    const bool gone = entry.thread < gone_.size() && gone_[entry.thread];
    if (entry.state == BlockState::kIdle || gone) {
      free_entries_.push_back(*link);
      *link = entry.next;
    } else {
      link = &entry.next;
    }
  }
}

// Memory that is handed out or given back has no history.
void Online::forget_range(Address address, std::uint64_t size) {
  if (size == 0) return;
  const std::uint64_t per_page = kPageBytes >> block_shift_;
  const BlockNumber first = address >> block_shift_;
  const BlockNumber last = (address + size - 1) >> block_shift_;
  if (last < first) return;
  // Walk the pages of the range, or all pages when the range has more than there are.
  auto forget = [&](std::uint64_t number) {
    const auto page = pages_.find(number);
    if (page == pages_.end()) return;
    const BlockNumber begin = std::max(first, number * per_page);
    const BlockNumber end = std::min(last, number * per_page + per_page - 1);
    for (BlockNumber block = begin; block <= end; ++block) {
      std::uint32_t& list = page->second[block % per_page];
      for (; list != kNoEntry; list = entries_[list].next) free_entries_.push_back(list);
    }
  };
  if (last / per_page - first / per_page < pages_.size()) {
    for (std::uint64_t number = first / per_page; number <= last / per_page; ++number)
      forget(number);
  } else {
    for (const auto& [number, page] : pages_) {
      if (number >= first / per_page && number <= last / per_page) forget(number);
    }
  }
}

// ---- the other threads ------------------------------------------------------------------------

void Online::tell_others(BlockNumber block, const Witness& access) {
  bool idle = false;
  for (std::uint32_t at = head(block); at != kNoEntry; at = entries_[at].next) {
    Entry& entry = entries_[at];
    if (entry.thread == access.thread) continue;
    remote_access(entry, access);
    idle |= entry.state == BlockState::kIdle;
  }
  if (idle) drop_idle(block);
}

void Online::remote_access(Entry& entry, const Witness& access) {
  if (!entry.overwritten) {
    const bool stored = entry.state == BlockState::kStored ||
                        entry.state == BlockState::kStoredShared ||
                        entry.state == BlockState::kTrueDep;
    if (is_write(access.kind) && units_.live(entry.reader)) {
      note_overwrite(entry.reader, entry, access);
      entry.overwritten = true;
    } else if (!options_.inputs_only && stored && units_.live(entry.unit)) {
      note_overwrite(entry.unit, entry, access);
      entry.overwritten = true;
    }
  }
  switch (entry.state) {
    case BlockState::kLoaded:
      entry.state = BlockState::kLoadedShared;
      break;
    case BlockState::kStored:
      entry.state = BlockState::kStoredShared;
      break;
    case BlockState::kTrueDep:
      entry.state = BlockState::kIdle;
      if (units_.live(entry.unit)) end_unit(entry.unit);
      break;
    case BlockState::kIdle:
    case BlockState::kLoadedShared:
    case BlockState::kStoredShared:
      break;
  }
}

void Online::note_overwrite(UnitId unit, const Entry& entry, const Witness& access) {
  units_.at(units_.root(unit)).overwrites.push_back({entry.access, access});
}

// The unit grows no further; its blocks of this thread are thread-local again until proven
// otherwise.
void Online::end_unit(UnitId id) {
  ++ended_by_sharing_;
  const UnitId ended = units_.root(id);
  const ThreadId thread = units_.at(ended).thread;
  for (const BlockNumber block : units_.end(ended)) {
    for (std::uint32_t at = head(block); at != kNoEntry; at = entries_[at].next) {
      Entry& entry = entries_[at];
      if (entry.thread == thread && (entry.unit == 0 || units_.root(entry.unit) == ended)) {
        entry.state = BlockState::kIdle;
        entry.unit = 0;
      }
    }
  }
}

// ---- loads and stores ---------------------------------------------------------------------------

UnitId Online::load_block(BlockNumber block, const Witness& access) {
  tell_others(block, access);
  Entry* entry = &own_entry(block, access.thread);
  if (entry->state == BlockState::kStoredShared) {
    if (units_.live(entry->unit)) end_unit(entry->unit);
    entry->state = BlockState::kIdle;
  }
  if (!units_.live(entry->unit)) {
    entry->unit = units_.create(access.thread);
    entry->state = BlockState::kIdle;
  }
  const bool written_here =
      entry->state == BlockState::kStored || entry->state == BlockState::kTrueDep;
  if (entry->state == BlockState::kIdle) entry->state = BlockState::kLoaded;
  if (entry->state == BlockState::kStored) entry->state = BlockState::kTrueDep;
  const UnitId unit = units_.root(entry->unit);
  if (!written_here && (!units_.live(entry->reader) || units_.root(entry->reader) != unit)) {
    entry->reader = unit;
    entry->access = moment_of(access);
    entry->overwritten = false;
    units_.at(unit).blocks.push_back(block);
  }
  return unit;
}

void Online::store_block(BlockNumber block, const Witness& access, UnitId owner) {
  tell_others(block, access);
  Entry& entry = own_entry(block, access.thread);
  if (!units_.live(entry.unit)) entry.state = BlockState::kIdle;
  if (entry.unit == 0 || units_.root(entry.unit) != owner) units_.at(owner).blocks.push_back(block);
  entry.unit = owner;
  if (!units_.live(entry.reader)) {
    entry.access = moment_of(access);
    entry.overwritten = false;
  }
  if (entry.state == BlockState::kIdle || entry.state == BlockState::kLoaded) {
    entry.state = BlockState::kStored;
  } else if (entry.state == BlockState::kLoadedShared) {
    entry.state = BlockState::kStoredShared;
  }
}

Online::Tag Online::load(const Event& event, EventOrdinal ordinal, Tag address, Tag /*control*/) {
  const Witness access = narrator_.witness(event, ordinal);
  const BlockRange range = blocks_of(event);
  Tag tag = 0;
  for (BlockNumber block = range.first; block <= range.last; ++block) {
    tag = units_.join(tag, load_block(block, access));
  }
  return options_.propagate_address ? units_.join(tag, address) : tag;
}

void Online::store(const Event& event, EventOrdinal ordinal, Tag data, Tag address, Tag control) {
  const Witness access = narrator_.witness(event, ordinal);
  check(data, access);
  check(address, access);
  check(control, access);
  if (options_.propagate_address) data = units_.join(data, address);
  if (options_.merge_control) data = units_.join(data, control);
  UnitId owner = units_.merge(data);
  if (owner == 0) owner = units_.create(access.thread);
  const BlockRange range = blocks_of(event);
  for (BlockNumber block = range.first; block <= range.last; ++block) {
    store_block(block, access, units_.root(owner));
  }
}

// The value read goes into the value written; nothing can come between the two.
Online::Tag Online::update(const Event& event, EventOrdinal ordinal, Tag data, Tag address,
                           Tag control) {
  const Tag read = load(event, ordinal, address, control);
  store(event, ordinal, units_.join(data, read), address, control);
  return read;
}

Online::Tag Online::branch(ThreadId /*thread*/, EventOrdinal /*ordinal*/, SegmentId /*segment*/,
                           Tag condition, Tag control) {
  return units_.join(condition, control);
}

void Online::check(UnitSet set, const Witness& store) {
  units_.for_each_live(set, [&](UnitId id) {
    for (const Overwrite& overwrite : std::exchange(units_.at(id).overwrites, {})) {
      violations_.push_back({witness_of(overwrite, store.thread), overwrite.remote, store});
    }
  });
}

// Most units die young; what refers to them is renumbered away when they outnumber the living.
void Online::collect_when_due() {
  if (units_.records() < collect_at_) return;
  units_.renumber([&](auto& renumbering) {
    machine_.for_each_tag([&](Tag& tag) { renumbering.set(tag); });
    for (Entry& entry : entries_) {
      renumbering.unit(entry.unit);
      renumbering.unit(entry.reader);
    }
  });
  collect_at_ = std::max<std::size_t>(1u << 20, units_.records() * 2);
}

}  // namespace heddle::svd
