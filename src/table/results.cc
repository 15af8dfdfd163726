#include "table/results.h"

#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace heddle::table {

using Json = nlohmann::ordered_json;

// NLOHMANN's own macros do not know optional members, nor order.
namespace {

Json json_of(const Judged& judged) {
  return {{"found", judged.found},
          {"static_false", judged.false_alarms.size()},
          {"one_line_only", judged.one_line_only},
          {"dynamic_false", judged.dynamic_false},
          {"dynamic_true", judged.dynamic_true},
          {"the_bug", judged.the_bug},
          {"false_alarms", judged.false_alarms}};
}

Json json_of(const SvdFacts& svd) {
  return {{"accesses", svd.accesses},     {"segments", svd.segments},
          {"units", svd.units},           {"log_entries", svd.log_entries},
          {"log_groups", svd.log_groups}, {"log_names_bug", svd.log_names_bug}};
}

Json json_of(const Hunt& hunt) {
  return {{"schedules", hunt.schedules}, {"gave_up", hunt.gave_up}};
}

Json json_of(const Measured& measured) {
  Json out = {{"trained", measured.trained},         {"judged", measured.judged},
              {"judged_fail", measured.judged_fail}, {"detectors", Json::object()},
              {"svd", json_of(measured.svd)},        {"curve", measured.curve},
              {"random", json_of(measured.random)},  {"pct", json_of(measured.pct)},
              {"seconds", measured.seconds}};
  for (const auto& [name, judged] : measured.detectors) out["detectors"][name] = json_of(judged);
  if (measured.native_failed) out["native_failed"] = *measured.native_failed;
  if (measured.native) {
    out["native_instructions"] = {{"own", measured.native->own}, {"all", measured.native->all}};
  }
  return out;
}

Judged judged_of(const Json& json) {
  Judged out;
  out.found = json.at("found");
  out.one_line_only = json.at("one_line_only");
  out.dynamic_false = json.at("dynamic_false");
  out.dynamic_true = json.at("dynamic_true");
  out.the_bug = json.at("the_bug").get<std::set<std::string>>();
  out.false_alarms = json.at("false_alarms").get<std::map<std::string, std::string>>();
  return out;
}

Hunt hunt_of(const Json& json) {
  return {json.at("schedules").get<std::vector<unsigned>>(), json.at("gave_up")};
}

Measured measured_of(const std::string& name, const Json& json) {
  Measured out;
  out.name = name;
  out.trained = json.at("trained");
  out.judged = json.at("judged");
  out.judged_fail = json.at("judged_fail");
  for (const auto& [detector, judged] : json.at("detectors").items()) {
    out.detectors[detector] = judged_of(judged);
  }
  const Json& svd = json.at("svd");
  out.svd = {svd.at("accesses"),
             svd.at("segments"),
             svd.at("units"),
             svd.at("log_entries"),
             svd.at("log_groups").get<std::set<std::string>>(),
             svd.at("log_names_bug")};
  out.curve = json.at("curve").get<std::vector<unsigned>>();
  out.random = hunt_of(json.at("random"));
  out.pct = hunt_of(json.at("pct"));
  out.seconds = json.at("seconds");
  if (json.contains("native_failed")) out.native_failed = json["native_failed"].get<unsigned>();
  if (json.contains("native_instructions")) {
    const Json& native = json["native_instructions"];
    out.native = Instructions{native.at("own"), native.at("all")};
  }
  return out;
}

}  // namespace

std::string print_json(const Budget& budget, const Results& results) {
  Json out = {{"format", 1},
              {"budget",
               {{"training", budget.training},
                {"training_limit", budget.training_limit},
                {"judged", budget.judged},
                {"hunts", budget.hunts},
                {"hunt_limit", budget.hunt_limit},
                {"native", budget.native}}},
              {"programs", Json::object()}};
  for (const auto& [name, measured] : results) out["programs"][name] = json_of(measured);
  return out.dump(1) + "\n";
}

Result<Results> read_results(const std::string& path) {
  std::ifstream file(path);
  Json json = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.contains("programs")) {
    return Error{fmt::format("{}: holds no measurements", path)};
  }
  Results out;
  for (const auto& [name, measured] : json["programs"].items()) {
    out[name] = measured_of(name, measured);
  }
  return out;
}

}  // namespace heddle::table
