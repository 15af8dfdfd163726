#include "detect/avio/invariants_file.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace heddle::avio {
namespace {

using Json = nlohmann::ordered_json;

std::string print(const RunSet& runs) {
  std::string out;
  const std::vector<std::size_t> all = runs.indices();
  for (std::size_t from = 0; from < all.size();) {
    std::size_t to = from;
    while (to + 1 < all.size() && all[to + 1] == all[to] + 1) ++to;
    if (!out.empty()) out += ',';
    out += from == to ? fmt::format("{}", all[from]) : fmt::format("{}-{}", all[from], all[to]);
    from = to + 1;
  }
  return out;
}

bool parse_number(std::string_view text, std::size_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

bool parse(std::string_view text, std::size_t runs, RunSet& out) {
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const std::size_t dash = std::min(part.find('-'), part.size());
    std::size_t from = 0;
    if (!parse_number(part.substr(0, dash), from)) return false;
    std::size_t to = from;
    if (dash != part.size() && !parse_number(part.substr(dash + 1), to)) return false;
    if (to >= runs || from > to) return false;
    for (std::size_t run = from; run <= to; ++run) out.insert(run);
  }
  return true;
}

bool parse_key(const std::string& text, SiteKey& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, 16);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

std::string text_of(const Json& line, const char* name) {
  const auto at = line.find(name);
  return at != line.end() && at->is_string() ? at->get<std::string>() : std::string();
}

// Reads the lines after the header. Runs come before the sites that refer to them.
class Reader {
 public:
  explicit Reader(Invariants& into) : into_(into) {}

  // Empty when the line is fine, else what is wrong with it.
  std::string take(const Json& line) {
    if (line.contains("run")) {
      const std::string id = text_of(line, "run");
      if (id.empty()) return "a run without an id";
      if (!into_.runs().empty() && id <= into_.runs().back()) return "runs that are not sorted";
      if (!into_.sites().empty()) return "a run after the first site";
      into_.restore_run(id,
                        {text_of(line, "build"), text_of(line, "command"), text_of(line, "seed")});
      return {};
    }
    if (line.contains("failed")) {
      into_.add_failed(text_of(line, "failed"));
      return {};
    }
    if (line.contains("site")) return take_site(line);
    return {};  // a kind of line that a later version added
  }

 private:
  std::string take_site(const Json& line) {
    SiteKey key = 0;
    if (!parse_key(text_of(line, "site"), key) || key == 0) return "a site without a key";
    Invariants::LearnedSite& site = into_.restore_site(key);
    site.text = {text_of(line, "kind"), text_of(line, "function"), text_of(line, "place"),
                 text_of(line, "variable")};
    if (!parse(text_of(line, "executed"), into_.runs().size(), site.executed)) {
      return "a list of runs that names a run which is not there";
    }
    const std::string wrong = take_pairs(line, "made", site.made);
    return wrong.empty() ? take_pairs(line, "split", site.split) : wrong;
  }

  std::string take_pairs(const Json& line, const char* name, std::map<SiteKey, RunSet>& pairs) {
    const auto list = line.find(name);
    if (list == line.end()) return {};
    if (!list->is_object()) return fmt::format("`{}` is not a list of pairs", name);
    for (const auto& [p_text, runs] : list->items()) {
      SiteKey p = 0;
      if (!parse_key(p_text, p) || !runs.is_string() ||
          !parse(runs.get<std::string>(), into_.runs().size(), pairs[p])) {
        return fmt::format("`{}` names a run which is not there", name);
      }
    }
    return {};
  }

  Invariants& into_;
};

Result<Invariants> parse_header(const Json& line, std::string_view name) {
  if (!line.is_object() || text_of(line, "heddle") != "invariants") {
    return Error{
        fmt::format("{}: not a file of learned invariants; make one with `heddle learn`", name)};
  }
  const auto version = line.find("version");
  const int number =
      version != line.end() && version->is_number_integer() ? version->get<int>() : 0;
  if (number != kInvariantsVersion) {
    return Error{
        fmt::format("{}: learned-file format {} cannot be read here (this Heddle reads "
                    "format {}); learn again with `heddle learn`",
                    name, number, kInvariantsVersion)};
  }
  const auto threshold = line.find("threshold");
  return Invariants(text_of(line, "program"),
                    threshold != line.end() && threshold->is_number_unsigned()
                        ? threshold->get<std::uint32_t>()
                        : 0);
}

}  // namespace

std::string print_invariants(const Invariants& invariants) {
  std::string out;
  const auto add = [&](const Json& line) {
    out += line.dump(-1, ' ', false, Json::error_handler_t::replace);
    out += '\n';
  };
  add({{"heddle", "invariants"},
       {"version", kInvariantsVersion},
       {"program", invariants.program()},
       {"threshold", invariants.threshold()}});
  for (const std::string& id : invariants.runs()) {
    const RunText& text = invariants.run_text(id);
    add({{"run", id}, {"build", text.build}, {"command", text.command}, {"seed", text.seed}});
  }
  for (const std::string& id : invariants.failed_runs()) add({{"failed", id}});
  for (const auto& [key, site] : invariants.sites()) {
    if (key == 0) continue;
    Json line{{"site", fmt::format("{:016x}", key)}, {"kind", site.text.kind},
              {"function", site.text.function},      {"place", site.text.place},
              {"variable", site.text.variable},      {"executed", print(site.executed)}};
    for (const auto& [p, runs] : site.made) line["made"][fmt::format("{:016x}", p)] = print(runs);
    for (const auto& [p, runs] : site.split) line["split"][fmt::format("{:016x}", p)] = print(runs);
    add(line);
  }
  return out;
}

Result<Invariants> parse_invariants(std::string_view text, std::string_view name) {
  Result<Invariants> out =
      Error{fmt::format("{}: empty; expected a file of learned invariants", name)};
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    const Json parsed = Json::parse(line, nullptr, false);
    if (number == 1) {
      out = parse_header(parsed, name);
      if (!out.ok()) return out;
      continue;
    }
    if (line.empty()) continue;
    const std::string wrong = parsed.is_object() ? Reader(*out).take(parsed) : "no JSON object";
    if (!wrong.empty()) {
      return Error{
          fmt::format("{}:{}: damaged: {}; learn again or take a copy", name, number, wrong)};
    }
  }
  return out;
}

Result<Invariants> read_invariants(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) return Error{fmt::format("{}: cannot be read: {}", path, std::strerror(errno))};
  return parse_invariants(text.str(), path);
}

// Written beside and moved into place, so that an interrupted run leaves the old file whole.
Status write_invariants(const Invariants& invariants, const std::string& path) {
  const std::string beside = path + ".new";
  std::ofstream out(beside, std::ios::binary | std::ios::trunc);
  out << print_invariants(invariants);
  out.close();
  if (!out || std::rename(beside.c_str(), path.c_str()) != 0) {
    return Error{fmt::format("{}: cannot be written: {}", path, std::strerror(errno))};
  }
  return Done{};
}

}  // namespace heddle::avio
