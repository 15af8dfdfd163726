// The report for machines: the same content as on the terminal. The schema is documented in
// docs/report-json.md; kSchema grows when a reader must change.
#pragma once

#include "finding/finding.h"

#include <map>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace heddle::report {

inline constexpr int kSchema = 1;

nlohmann::ordered_json to_json(const Finding& finding);

// `about`: what the findings are about, by name ("trace", "program", "seed" …). `remarks`: what
// detectors say about the analysis as a whole.
std::string json(std::span<const Finding> findings,
                 const std::map<std::string, std::string>& about = {},
                 const std::vector<std::string>& remarks = {});

}  // namespace heddle::report
