#pragma once

namespace heddle::cli {

enum ExitStatus : int { kNothingNew = 0, kFindings = 1, kUsage = 2, kDiverged = 3 };

}  // namespace heddle::cli
