#include "detect/avio/history.h"

#include "base/check.h"

namespace heddle::avio {

void Histories::begin(Actor actor) {
  HEDDLE_CHECK(actor == ended_.size());
  ended_.push_back(false);
}

void Histories::forget_everything() {
  arena_ = Arena();
  pool_ = Pool<History>();
  ended_.clear();
  pool_.add(arena_);  // number 0 is none
}

// Where the actor's entry is, or the free one where it would be. There is always a free one.
Histories::Entry* Histories::place_in(Entry* table, std::uint64_t size, Actor of) const {
  const std::uint32_t first = of * 0x9e3779b1u;
  for (std::uint64_t at = first;; ++at) {
    Entry& entry = table[at & (size - 1)];
    if (entry.last == 0 || actor(entry) == of) return &entry;
  }
}

Histories::Entry* Histories::find(const History& history, Actor of) const {
  if (history.many != nullptr) {
    Entry* const entry = place_in(history.many, history.few[0].last, of);
    return entry->last != 0 ? entry : nullptr;
  }
  for (const Entry& entry : history.few) {
    if (entry.last != 0 && actor(entry) == of) return const_cast<Entry*>(&entry);
  }
  return nullptr;
}

// May move the other entries.
Histories::Entry& Histories::find_or_add(History& history, Actor of) {
  if (Entry* const known = find(history, of)) return *known;
  if (history.many == nullptr) {
    for (Entry& entry : history.few) {
      if (entry.last != 0 && !ended(actor(entry))) continue;
      entry = Entry();
      return entry;
    }
    make_table(history, kFirstTable);
  }
  return add_to_table(history, of);
}

Histories::Entry& Histories::add_to_table(History& history, Actor of) {
  if (2 * (history.few[0].reader + 1) > history.few[0].last) {
    make_table(history, history.few[0].last);
    // Threads that ended are gone now; is that enough?
    if (2 * (history.few[0].reader + 1) > history.few[0].last) {
      make_table(history, 2 * history.few[0].last);
    }
  }
  ++history.few[0].reader;
  return *place_in(history.many, history.few[0].last, of);
}

// Moves what is known of living threads to a new table.
void Histories::make_table(History& history, std::uint64_t size) {
  auto* const table = static_cast<Entry*>(arena_.take(size * sizeof(Entry)));
  std::uint64_t used = 0;
  const auto move = [&](const Entry& entry) {
    if (entry.last == 0 || ended(actor(entry))) return;
    *place_in(table, size, actor(entry)) = entry;
    ++used;
  };
  if (history.many == nullptr) {
    for (const Entry& entry : history.few) move(entry);
  } else {
    const std::uint64_t old_size = history.few[0].last;
    for (std::uint64_t n = 0; n < old_size; ++n) move(history.many[n]);
    give_back(history.many, old_size);
  }
  history.many = table;
  history.few[0] = {size, used};
}

HistoryId Histories::copy(HistoryId id) {
  const HistoryId other = pool_.add(arena_);
  const History& from = pool_[id];
  History& to = pool_[other];
  to = from;
  if (from.many == nullptr) return other;
  const std::uint64_t size = from.few[0].last;
  to.many = static_cast<Entry*>(arena_.take(size * sizeof(Entry)));
  std::copy(from.many, from.many + size, to.many);
  return other;
}

void Histories::drop(HistoryId id) {
  History& history = pool_[id];
  if (history.many != nullptr) give_back(history.many, history.few[0].last);
  history = History();
  pool_.remove(id);
}

Stamp Histories::last_of(HistoryId id, Actor of) const {
  const Entry* const entry = find(pool_[id], of);
  return entry != nullptr ? entry->last : 0;
}

bool Histories::pass(HistoryId id, Stamp last, Stamp write, Stamp now, Split* split) {
  History& history = pool_[id];
  if (write == 0) write = history.write;
  history.write = write;
  const Spot& from = spots_[spot_of(last)];
  const Spot& to = spots_[spot_of(now)];

  if (!ended(from.actor)) {
    Entry& theirs = find_or_add(history, from.actor);
    theirs = {last, is_write(from.kind) && is_read(to.kind) ? now : 0};
  }
  Entry& mine = find_or_add(history, to.actor);
  bool found = false;
  if (mine.last != 0) {
    const EventKind p = spots_[spot_of(mine.last)].kind;
    if (is_write(p) && !is_read(to.kind)) {
      if (mine.reader != 0) {
        *split = {SplitCase::kWriteReadWrite, mine.last, mine.reader};
        found = true;
      }
    } else if (write > mine.last) {
      *split = {is_write(p)        ? SplitCase::kWriteWriteRead
                : is_read(to.kind) ? SplitCase::kReadWriteRead
                                   : SplitCase::kReadWriteWrite,
                mine.last, write};
      found = true;
    }
  }
  mine = {now, 0};
  return found;
}

}  // namespace heddle::avio
