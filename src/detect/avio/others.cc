#include "detect/avio/others.h"

#include "base/check.h"

#include <algorithm>

namespace heddle::avio {

void Others::begin(Actor actor) {
  HEDDLE_CHECK(actor == ended_.size());
  ended_.push_back(0);
}

void Others::forget_everything() {
  arena_ = Arena();
  ended_.clear();
}

Left Others::swap(OthersId& id, const Left& leaving, Actor comes) {
  const Left mine = id != 0 ? take(id, comes) : Left();
  if (!is_free(leaving)) put(id, leaving);
  return mine;
}

// Where the actor's place is, or the free one where it would be. There is always a free one.
Left* Others::place_in(Left* table, std::uint64_t size, Actor of) const {
  for (std::uint64_t at = first_place(of);; ++at) {
    const std::uint64_t n = at & (size - 1);
    if (n != 0 && (table[n].last == 0 || actor(table[n]) == of)) return &table[n];
  }
}

// In a table it stays, because others may stand behind it; whoever has the location is not looked
// for until it was put there again.
Left Others::take(OthersId& id, Actor of) {
  if (is_alone(id)) {
    const Left left = alone(id);
    if (actor(left) != of) return {};
    id = 0;
    return left;
  }
  if (is_table(id)) return *place_in(block(id), size(id), of);
  for (Left& left : std::span(block(id), size(id))) {
    if (left.last == 0 || actor(left) != of) continue;
    const Left taken = left;
    left = Left();
    return taken;
  }
  return {};
}

// Of the only one.
OthersId Others::make(const Left& left) {
  if (left.reader == 0) return left.last | kAlone;
  const auto id = reinterpret_cast<OthersId>(arena_.take(sizeof(Left)));
  *block(id) = left;
  return id;
}

void Others::put(OthersId& id, const Left& left) {
  if (id == 0 || (is_alone(id) && is_free(alone(id)))) {
    id = make(left);
    return;
  }
  while (!is_table(id)) {
    if (!is_alone(id)) {
      for (Left& place : std::span(block(id), size(id))) {
        if (!is_free(place)) continue;
        place = left;
        return;
      }
    }
    grow(id);
  }
  put_into_table(id, left);
}

void Others::put_into_table(OthersId& id, const Left& left) {
  ++looked_up_;
  Left* place = place_in(block(id), size(id), actor(left));
  if (place->last == 0) {
    const auto full = [&] { return 2 * (block(id)->reader + 1) > size(id); };
    if (full()) id = make_table(id, size(id));
    // Threads that ended are gone now; is that enough?
    if (full()) id = make_table(id, 2 * size(id));
    ++block(id)->reader;
    place = place_in(block(id), size(id), actor(left));
  }
  *place = left;
}

// All its places are taken.
void Others::grow(OthersId& id) {
  if (is_alone(id)) {
    auto* const two = static_cast<Left*>(arena_.take(2 * sizeof(Left)));
    two[0] = alone(id);
    id = reinterpret_cast<OthersId>(two) | 1;
    return;
  }
  const OthersId form = (id & kForm) + 1;
  if (form > kLargestBlock) {
    id = make_table(id, kFirstTable);
    return;
  }
  auto* const larger = static_cast<Left*>(arena_.take(sizeof(Left) << form));
  std::copy_n(block(id), size(id), larger);
  drop(id);
  id = reinterpret_cast<OthersId>(larger) | form;
}

// Moves what is known of living threads to a new table.
OthersId Others::make_table(OthersId from, std::uint64_t new_size) {
  auto* const table = static_cast<Left*>(arena_.take(new_size * sizeof(Left)));
  const bool from_table = is_table(from);
  std::uint64_t used = 0;
  for (std::uint64_t n = from_table ? 1 : 0; n < size(from); ++n) {
    const Left& left = block(from)[n];
    if (is_free(left)) continue;
    *place_in(table, new_size, actor(left)) = left;
    ++used;
  }
  table[0] = {new_size, used};
  drop(from);
  return table_id(table, new_size);
}

OthersId Others::copy(OthersId id) {
  if (is_alone(id)) return id;
  auto* const other = static_cast<Left*>(arena_.take(size(id) * sizeof(Left)));
  std::copy_n(block(id), size(id), other);
  return reinterpret_cast<OthersId>(other) | (id & kForm);
}

void Others::drop(OthersId id) {
  if (is_alone(id)) return;
  arena_.give_back(block(id), size(id) * sizeof(Left));
}

}  // namespace heddle::avio
