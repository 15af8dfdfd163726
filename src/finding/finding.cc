#include "finding/finding.h"

namespace heddle {

std::string_view title(FindingKind kind) {
  switch (kind) {
    case FindingKind::kAtomicityViolation:
      return "atomicity violation";
    case FindingKind::kDataRace:
      return "data race";
    case FindingKind::kInconsistentLocking:
      return "inconsistent locking";
    case FindingKind::kNotSerializable:
      return "not serializable";
    case FindingKind::kDeadlock:
      return "deadlock";
    case FindingKind::kHang:
      return "hang";
    case FindingKind::kCrash:
      return "crash";
  }
  return "finding";
}

bool in_library(const Place& place) {
  return place.file.starts_with("/usr/include/") || place.file.starts_with("/usr/lib/") ||
         place.file.starts_with("../sysdeps/") || place.file.starts_with("./nptl/");
}

const Place& own_line(const Step& step) {
  if (!in_library(step.place)) return step.place;
  for (const Place& frame : step.stack) {
    if (frame.line != 0 && !frame.is_definition && !in_library(frame)) return frame;
  }
  return step.place;
}

}  // namespace heddle
