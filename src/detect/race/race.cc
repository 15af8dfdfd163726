#include "detect/race/race.h"

#include <fmt/format.h>

namespace heddle::race {

void RaceDetector::on(std::span<const Event> batch, EventOrdinal first) {
  constexpr std::size_t kAhead = 16;
  for (std::size_t n = 0; n < batch.size(); ++n) {
    const Event& event = batch[n];
    const EventOrdinal ordinal = first + n;
    if (n + kAhead < batch.size()) {
      engine_.prefetch_word(batch[n + kAhead]);
      engine_.prefetch_cell(batch[n + kAhead / 2]);
    }
    now_ = &event;
    if (is_access(event.kind)) {
      if (annotations_.ignores(event)) continue;
      if (event.order != MemoryOrder::kPlain) sync_.on(event, ordinal);
    } else {
      // What is freed is named as it was.
      if (event.kind != EventKind::kFree) narrator_.on(event);
      annotations_.on(event);
      sync_.on(event, ordinal);
    }
    if (annotations_.ignores_order(event)) {
      engine_.on_without_order(event, ordinal);
    } else {
      engine_.on(event, ordinal);
    }
    if (event.kind == EventKind::kFree) narrator_.on(event);
  }
}

void RaceDetector::on_ordered_elsewhere(const Event& access, const Event& original,
                                        EventOrdinal ordinal) {
  now_ = &original;
  if (annotations_.ignores(original)) return;
  if (original.order != MemoryOrder::kPlain) sync_.on(original, ordinal);
  engine_.on(access, ordinal);
}

void RaceDetector::only_narrate(const Event& event, EventOrdinal ordinal) {
  narrator_.on(event);
  annotations_.on(event);
  sync_.on(event, ordinal);
}

Witness RaceDetector::witness(const RacingAccess& side, const Race& race) const {
  Witness out;
  out.thread = engine_.thread(side.access.slot, side.access.time);
  out.kind = side.operation.kind;
  out.order = side.operation.order;
  out.site = side.access.site;
  out.stack = side.access.stack;
  out.locks = side.access.locks;
  out.size = race.size;
  out.ordinal = ordinal_of(side.access.time);
  out.address = race.address;
  return out;
}

void RaceDetector::on_race(const Race& race) {
  ++races_;
  Witness later = witness(race.later, race);
  if (now_->has_value && now_->address == race.address && now_->size == race.size) {
    later.has_value = true;
    later.value = now_->value;
  }
  Finding* const finding = findings_.add(witness(race.earlier, race), later);
  if (finding == nullptr) return;
  finding->kind = FindingKind::kDataRace;
  finding->detectors = {name_};
  finding->in_words = race.later.operation.kind == EventKind::kFree
                          ? "freed while another thread used it, without an order between the two"
                          : "two accesses without an order between them";
  if (first_variable_.empty()) first_variable_ = finding->variables[0].name;
  if (race.schedulable) {
    finding->rank = 0.8;
    return;
  }
  finding->rank = 0.3;
  finding->notes.push_back(
      fmt::format("Comes after a read that raced (the first race of the run is on `{}`): may be a "
                  "consequence of that one. Look at the earlier races first.",
                  first_variable_));
}

std::vector<Finding> RaceDetector::finish() {
  return findings_.take();
}

}  // namespace heddle::race
