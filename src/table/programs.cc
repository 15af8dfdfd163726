#include "table/programs.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace heddle::table {
namespace {

using Json = nlohmann::ordered_json;

std::string path_of(const std::string& examples) {
  return examples + "/expected.json";
}

Result<Json> read_json(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Error{fmt::format("{}: cannot be read; name the folder examples/", path)};
  Json json = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.contains("programs")) {
    return Error{fmt::format("{}: is not a list of programs", path)};
  }
  return json;
}

std::string text(const Json& entry, const char* field) {
  const auto at = entry.find(field);
  return at != entry.end() && at->is_string() ? at->get<std::string>() : std::string();
}

Program program_of(const Json& entry) {
  Program out;
  out.name = text(entry, "name");
  out.source = text(entry, "source");
  out.group = text(entry, "group");
  out.origin = text(entry, "origin");
  out.remark = text(entry, "remark");
  out.symptom = text(entry, "symptom");
  out.twin = text(entry, "twin");
  out.corrects = text(entry, "corrects");
  out.bug = entry.value("bug", false);
  if (entry.contains("expected")) out.right = entry["expected"].get<bool>();
  if (entry.contains("paper")) out.paper = entry["paper"].get<Verdicts>();
  if (entry.contains("seeds")) out.seeds = entry["seeds"].get<std::vector<std::uint64_t>>();
  if (entry.contains("heddle")) out.heddle = entry["heddle"].get<Verdicts>();
  if (entry.contains("why")) out.why = entry["why"].get<std::map<std::string, std::string>>();
  return out;
}

// Two levels of lines, what is deeper on one line: the file is for people first.
std::string print(const Json& json) {
  std::string out = "{\n";
  for (auto field = json.begin(); field != json.end(); ++field) {
    out += fmt::format("  \"{}\": ", field.key());
    if (field.key() == "programs") {
      out += "[\n";
      for (std::size_t i = 0; i < field->size(); ++i) {
        out += "    {\n";
        const Json& entry = (*field)[i];
        for (auto at = entry.begin(); at != entry.end(); ++at) {
          std::string value = at->dump();
          if (at->is_object()) {
            value.clear();
            for (auto deep = at->begin(); deep != at->end(); ++deep) {
              const char* const between = at.key() == "why" ? ",\n              " : ", ";
              value += fmt::format("{}\"{}\": {}", value.empty() ? "" : between, deep.key(),
                                   deep->dump());
            }
            value = fmt::format("{{{}}}", value);
          }
          out += fmt::format("      \"{}\": {}{}\n", at.key(), value,
                             std::next(at) == entry.end() ? "" : ",");
        }
        out += i + 1 == field->size() ? "    }\n" : "    },\n";
      }
      out += "  ]";
    } else if (field->is_object()) {
      out += "{\n";
      for (auto at = field->begin(); at != field->end(); ++at) {
        out += fmt::format("    \"{}\": {}{}\n", at.key(), at->dump(),
                           std::next(at) == field->end() ? "" : ",");
      }
      out += "  }";
    } else {
      out += field->dump();
    }
    out += std::next(field) == json.end() ? "\n" : ",\n";
  }
  return out + "}\n";
}

}  // namespace

Result<std::vector<Program>> read_programs(const std::string& examples) {
  Result<Json> json = read_json(path_of(examples));
  if (!json.ok()) return json.error();
  std::vector<Program> out;
  std::map<std::string, std::string> general;  // why detectors report correct programs
  if (json->contains("why")) general = (*json)["why"].get<std::map<std::string, std::string>>();
  for (const Json& entry : (*json)["programs"]) {
    Program& program = out.emplace_back(program_of(entry));
    if (program.bug) continue;
    for (const auto& [detector, why] : general) program.why.emplace(detector, why);
  }
  return out;
}

const Program* find_program(const std::vector<Program>& programs, const std::string& name) {
  const auto at = std::find_if(programs.begin(), programs.end(),
                               [&](const Program& program) { return program.name == name; });
  return at == programs.end() ? nullptr : &*at;
}

Status update_expected(const std::string& examples, const std::vector<Program>& programs) {
  Result<Json> json = read_json(path_of(examples));
  if (!json.ok()) return json.error();
  for (Json& entry : (*json)["programs"]) {
    const Program* program = find_program(programs, text(entry, "name"));
    if (program == nullptr) continue;
    if (!program->seeds.empty()) entry["seeds"] = program->seeds;
    if (!program->heddle.empty()) entry["heddle"] = program->heddle;
    if (entry.contains("why")) {
      const Json why = entry["why"];
      entry.erase("why");  // last, being the longest
      entry["why"] = why;
    }
  }
  std::ofstream file(path_of(examples), std::ios::trunc);
  file << print(*json);
  file.close();
  if (!file) return Error{fmt::format("{}: cannot be written", path_of(examples))};
  return Done{};
}

}  // namespace heddle::table
