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

}  // namespace heddle
