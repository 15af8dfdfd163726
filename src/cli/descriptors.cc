// heddle descriptors: what the compilers wrote into a program about its functions.
#include "cli/descriptors.h"

#include "instrument/descriptors.h"

#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace heddle::cli {
namespace {

struct Options {
  std::string path;
  std::string function;
};

// Lines of source files, as far as they can be read.
class SourceLines {
 public:
  std::string_view line(const std::string& path, std::uint32_t number) {
    auto [found, fresh] = files_.try_emplace(path);
    if (fresh) {
      std::ifstream in(path);
      for (std::string text; std::getline(in, text);) found->second.push_back(text);
    }
    if (number == 0 || number > found->second.size()) return {};
    const std::string_view text = found->second[number - 1];
    const std::size_t start = text.find_first_not_of(" \t");
    return start == std::string_view::npos ? std::string_view() : text.substr(start);
  }

 private:
  std::map<std::string, std::vector<std::string>> files_;
};

bool asked_for(const Catalog& catalog, const Function& function, const std::string& name) {
  const std::string_view whole = catalog.text(function.name);
  return name.empty() || whole == name || catalog.text(function.linkage_name) == name ||
         whole.substr(0, whole.find('(')) == name;
}

std::string where_from(const Catalog& catalog, const LayoutItem& item) {
  switch (item.source) {
    case LayoutItem::Source::kNone:
      return "";
    case LayoutItem::Source::kWord:
      return "recorded";
    case LayoutItem::Source::kSymbol:
      return fmt::format("{}{:+}", catalog.text(catalog.symbols[item.reference].name), item.offset);
    case LayoutItem::Source::kItem:
      return fmt::format("access {}{:+}", item.reference, item.offset);
  }
  return "";
}

void print_function(const UnitDescriptors& unit, FunctionId id, SourceLines& source) {
  const Catalog& catalog = unit.catalog;
  const Function& function = catalog.function(id);
  fmt::print("{}   {}:{}   {} parameters, {} registers\n", catalog.text(function.name),
             catalog.text(function.file), function.line, function.parameters, function.registers);
  std::uint32_t last_line = 0;
  for (std::size_t i = 1; i < catalog.segments.size(); ++i) {
    const Segment& segment = catalog.segments[i];
    if (segment.function != id) continue;
    for (std::size_t k = 0; k < segment.items.size(); ++k) {
      const Site& site = catalog.site(segment.items[k].site);
      if (site.line == last_line) continue;
      last_line = site.line;
      fmt::print("  {:>6} | {}\n", site.line,
                 source.line(std::string(catalog.text(site.file)), site.line));
    }
    fmt::print("         {}\n", segment_line(catalog, segment));
    std::string layout;
    for (std::size_t k = 0; k < unit.layouts[i].size(); ++k) {
      layout +=
          fmt::format("{}{}: {}", k == 0 ? "" : ", ", k, where_from(catalog, unit.layouts[i][k]));
    }
    if (!layout.empty()) fmt::print("             addresses {}\n", layout);
  }
  fmt::print("\n");
}

int run(const Options& options) {
  Result<std::vector<UnitDescriptors>> units = read_descriptors(options.path);
  if (!units.ok()) {
    fmt::print(stderr, "heddle: {}\n", units.error().message);
    return kUsage;
  }
  SourceLines source;
  bool any = false;
  for (const UnitDescriptors& unit : *units) {
    for (FunctionId id = 1; id < unit.catalog.functions.size(); ++id) {
      if (!asked_for(unit.catalog, unit.catalog.functions[id], options.function)) continue;
      any = true;
      print_function(unit, id, source);
    }
  }
  if (!any) {
    fmt::print(stderr, "heddle: {}: no function {}; without --function all are shown\n",
               options.path, options.function);
    return kUsage;
  }
  return kNothingNew;
}

std::function<int()> declare(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("file", options->path, "object file, shared library or executable")->required();
  app.add_option("--function", options->function, "only this function, by name or linkage name");
  return [options] { return run(*options); };
}

}  // namespace

const Verb kDescriptorsVerb = {
    .name = "descriptors",
    .summary = "Shows what the compilers wrote into a program about its functions",
    .description =
        "For each function its segments: accesses, what addresses, values, branches, arguments "
        "and results are computed from, and which branches control them, next to the source. "
        "For those who debug Heddle, or wonder why two accesses belong to one unit.",
    .example = "heddle descriptors ./shop --function deposit",
    .declare = declare,
};

}  // namespace heddle::cli
