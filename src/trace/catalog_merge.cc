#include "trace/catalog_merge.h"

#include <algorithm>
#include <utility>

namespace heddle {
namespace {

// Where equal segments meet in the index. Never 0: that stands for "do not look for its equal".
std::uint64_t segment_key(const Catalog& catalog, const Segment& segment) {
  if (catalog.functions[segment.function].key == 0) return 0;
  std::uint64_t h = segment.function;
  for (const std::uint64_t part :
       {std::uint64_t{segment.block}, std::uint64_t{segment.index}, segment.items.size()}) {
    h = (h ^ part) * 0x9e3779b97f4a7c15ull;
    h ^= h >> 32;
  }
  return h | 1;
}

}  // namespace

CatalogMerger::CatalogMerger(Catalog& into) : into_(into) {
  const auto fill = [](Index& index, std::uint64_t key, std::size_t id) {
    if (key != 0) index[key].push_back(static_cast<std::uint32_t>(id));
  };
  for (std::size_t id = 1; id < into.functions.size(); ++id) {
    fill(functions_, into.functions[id].key, id);
  }
  for (std::size_t id = 1; id < into.sites.size(); ++id) fill(sites_, into.sites[id].key, id);
  for (std::size_t id = 1; id < into.segments.size(); ++id) {
    fill(segments_, segment_key(into, into.segments[id]), id);
  }
  for (std::size_t id = 0; id < into.symbols.size(); ++id) {
    fill(symbols_, into.symbols[id].address, id);
  }
}

template <typename Entry>
std::uint32_t CatalogMerger::place(std::vector<Entry>& table, Index& index, std::uint64_t key,
                                   Entry entry) {
  if (key != 0) {
    std::vector<std::uint32_t>& same_key = index[key];
    for (const std::uint32_t id : same_key) {
      if (table[id] == entry) return id;
    }
    same_key.push_back(static_cast<std::uint32_t>(table.size()));
  }
  table.push_back(std::move(entry));
  return static_cast<std::uint32_t>(table.size() - 1);
}

CatalogRemap CatalogMerger::add(const Catalog& unit) {
  CatalogRemap map;
  map.strings.reserve(unit.strings.size());
  for (std::size_t id = 0; id < unit.strings.size(); ++id) {
    map.strings.push_back(into_.strings.intern(unit.strings[static_cast<StringId>(id)]));
  }
  const auto text = [&](StringId& id) { id = map.strings[id]; };

  map.functions.assign(1, 0);
  for (std::size_t id = 1; id < unit.functions.size(); ++id) {
    Function function = unit.functions[id];
    text(function.name);
    text(function.linkage_name);
    text(function.file);
    text(function.class_name);
    map.functions.push_back(place(into_.functions, functions_, function.key, function));
  }

  map.sites.assign(1, 0);
  for (std::size_t id = 1; id < unit.sites.size(); ++id) {
    Site site = unit.sites[id];
    site.function = map.functions[site.function];
    text(site.file);
    text(site.variable);
    text(site.type);
    text(site.field);
    map.sites.push_back(place(into_.sites, sites_, site.key, site));
  }

  map.segments.assign(1, 0);
  for (std::size_t id = 1; id < unit.segments.size(); ++id) {
    Segment segment = unit.segments[id];
    segment.function = map.functions[segment.function];
    text(segment.callee);
    for (AccessItem& item : segment.items) item.site = map.sites[item.site];
    const std::uint64_t key = segment_key(into_, segment);
    map.segments.push_back(place(into_.segments, segments_, key, std::move(segment)));
  }

  for (Symbol symbol : unit.symbols) {
    text(symbol.name);
    text(symbol.file);
    map.symbols.push_back(place(into_.symbols, symbols_, symbol.address, symbol));
  }

  for (Module module : unit.modules) {
    text(module.path);
    text(module.build_id);
    if (std::find(into_.modules.begin(), into_.modules.end(), module) == into_.modules.end()) {
      into_.modules.push_back(module);
    }
  }
  return map;
}

}  // namespace heddle
