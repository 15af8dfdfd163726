#include "report/json.h"

#include "report/words.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace heddle::report {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Place& place) {
  Json out = Json::object();
  if (!place.function.empty()) out["function"] = place.function;
  if (!place.file.empty()) out["file"] = place.file;
  if (place.line != 0) out["line"] = place.line;
  if (place.column != 0) out["column"] = place.column;
  if (place.is_definition) out["is_definition"] = true;
  return out;
}

Json to_json(const VariableName& variable) {
  Json out{{"name", variable.name}};
  if (!variable.storage.empty()) out["storage"] = variable.storage;
  if (variable.declared.line != 0) out["declared"] = to_json(variable.declared);
  out["address"] = fmt::format("{:#x}", variable.address);
  out["size"] = variable.size;
  return out;
}

Json to_json(const HeldLock& lock) {
  return {{"name", lock.name},
          {"mode", lock.mode == LockMode::kShared ? "shared" : "exclusive"},
          {"acquired", to_json(lock.acquired)}};
}

Json to_json(const Step& step) {
  Json out = Json::object();
  if (!step.role.empty()) out["role"] = step.role;
  out["thread"] = step.thread;
  if (!step.thread_name.empty()) out["thread_name"] = step.thread_name;
  out["kind"] = name(step.kind);
  if (step.order != MemoryOrder::kPlain) out["order"] = name(step.order);
  if (step.size != 0) out["size"] = step.size;
  out["place"] = to_json(step.place);
  if (step.ordinal != kNoEvent) out["ordinal"] = step.ordinal;
  if (step.value) out["value"] = fmt::format("{:#x}", *step.value);
  if (!step.variable.name.empty()) out["variable"] = to_json(step.variable);
  if (!step.locks.empty()) {
    for (const HeldLock& lock : step.locks) out["locks"].push_back(to_json(lock));
  }
  if (!step.stack.empty()) {
    for (const Place& frame : step.stack) out["stack"].push_back(to_json(frame));
  }
  if (!step.note.empty()) out["note"] = step.note;
  return out;
}

}  // namespace

Json to_json(const Finding& finding) {
  Json out;
  out["fingerprint"] = finding.fingerprint;
  out["kind"] = name(finding.kind);
  out["label"] = name(finding.label);
  out["rank"] = finding.rank;
  out["count"] = finding.count;
  out["detectors"] = finding.detectors;
  out["summary"] = finding.summary;
  out["in_words"] = finding.in_words;
  out["variables"] = Json::array();
  for (const VariableName& variable : finding.variables)
    out["variables"].push_back(to_json(variable));
  out["steps"] = Json::array();
  for (const Step& step : finding.steps) out["steps"].push_back(to_json(step));
  out["notes"] = finding.notes;
  if (!finding.replay.empty()) out["replay"] = finding.replay;
  return out;
}

std::string json(std::span<const Finding> findings, const std::map<std::string, std::string>& about,
                 const std::vector<std::string>& remarks) {
  Json out;
  out["schema"] = kSchema;
  out["about"] = about;
  out["findings"] = Json::array();
  for (const Finding& finding : findings) out["findings"].push_back(to_json(finding));
  if (!remarks.empty()) out["remarks"] = remarks;
  // Names come from the traced program and need not be UTF-8.
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace heddle::report
