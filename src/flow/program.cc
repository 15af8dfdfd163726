#include "flow/program.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace heddle {
namespace {

// Itanium C++ ABI: C1, C2, C3 and D0, D1, D2 before the E of the nested name stand for the variants
// of one constructor or destructor. Where they do the same, the compiler makes one an alias.
bool variants_of_one(std::string_view a, std::string_view b) {
  if (a.size() != b.size() || !a.starts_with("_ZN")) return false;
  std::size_t differs = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    const bool variant = i > 0 && i + 1 < a.size() && (a[i - 1] == 'C' || a[i - 1] == 'D') &&
                         a[i + 1] == 'E' && std::isdigit(static_cast<unsigned char>(a[i])) != 0 &&
                         std::isdigit(static_cast<unsigned char>(b[i])) != 0;
    if (!variant) return false;
    ++differs;
  }
  return differs == 1;
}

// Nothing that comes after its last access belongs to it.
bool ends_at_once(const FlowSegment& segment) {
  return segment.end == SegmentEnd::kBranch || segment.end == SegmentEnd::kFallThrough;
}

// Whether a segment that has read there stores there.
bool stores_there(const LiveItem& store, const LiveItem& read) {
  return store.kind == EventKind::kWrite && store.base == read.base &&
         store.offset == read.offset && store.event.size == read.event.size &&
         store.size_word == 0 && read.size_word == 0;
}

}  // namespace

bool FlowPrograms::calls_variant(StringId callee, StringId name) {
  const auto [known, is_new] =
      variants_.try_emplace((static_cast<std::uint64_t>(callee) << 32) | name, false);
  if (is_new) known->second = variants_of_one(catalog_.text(callee), catalog_.text(name));
  return known->second;
}

FlowList FlowPrograms::list(const std::vector<std::uint32_t>& numbers) {
  if (numbers.empty()) return {};
  std::vector<std::uint32_t>& out = lists_.emplace_back();
  out.reserve(numbers.size() + 1);
  out.push_back(static_cast<std::uint32_t>(numbers.size()));
  out.insert(out.end(), numbers.begin(), numbers.end());
  return FlowList(out.data());
}

FlowList FlowPrograms::registers(const Sources& sources, const Carriers& carriers) {
  std::vector<std::uint32_t> known;
  for (const Register reg : sources) {
    if (reg < carriers.size() && carriers[reg]) known.push_back(reg);
  }
  return list(known);
}

const FlowPrograms::Carriers& FlowPrograms::carriers_of(FunctionId id) {
  for (; segments_seen_ < catalog_.segments.size(); ++segments_seen_) {
    segments_of_[catalog_.segments[segments_seen_].function].push_back(
        static_cast<SegmentId>(segments_seen_));
  }
  const auto [known, is_new] = carriers_.try_emplace(id);
  if (is_new) known->second = find_carriers(id);
  return known->second;
}

// Nothing gets into a register that is defined by phis only, all of whose sources are such. Of a
// register that no known segment defines anything may be true.
FlowPrograms::Carriers FlowPrograms::find_carriers(FunctionId id) const {
  const Function& function = catalog_.function(id);
  Carriers carriers(std::min(function.registers, kMaxRegisters), true);
  const auto known = segments_of_.find(id);
  if (choices_ || known == segments_of_.end()) return carriers;
  const auto set = [&](Register reg, bool carries) {
    if (reg < carriers.size()) carriers[reg] = carries;
  };
  const auto for_each_segment = [&](auto visit) {
    for (const SegmentId segment : known->second) visit(catalog_.segments[segment]);
  };
  for_each_segment([&](const Segment& segment) {
    for (const heddle::Phi& phi : segment.phis) set(phi.defines, false);
  });
  for_each_segment([&](const Segment& segment) {
    for (const AccessItem& item : segment.items) set(item.defines, true);
    set(segment.defines, true);
  });
  for (Register reg = 0; reg < function.parameters && reg < carriers.size(); ++reg) set(reg, true);
  const auto carries = [&](Register reg) { return reg < carriers.size() && carriers[reg]; };
  for (bool changed = true; changed;) {
    changed = false;
    for_each_segment([&](const Segment& segment) {
      for (const heddle::Phi& phi : segment.phis) {
        if (phi.defines >= carriers.size() || carriers[phi.defines]) continue;
        for (const heddle::Phi::Incoming& edge : phi.incoming) {
          if (!std::any_of(edge.sources.begin(), edge.sources.end(), carries)) continue;
          carriers[phi.defines] = changed = true;
          break;
        }
      }
    });
  }
  return carriers;
}

// Whether no phi reads what one before it defines: then they need not be taken all at once.
bool FlowPrograms::are_independent(std::span<const Phi> phis) {
  for (std::size_t i = 1; i < phis.size(); ++i) {
    for (std::uint32_t k = 0; k < phis[i].sources.size(); ++k) {
      const Register source = phis[i].sources[k];
      if (std::any_of(phis.begin(), phis.begin() + static_cast<std::ptrdiff_t>(i),
                      [&](const Phi& before) { return before.defines == source; })) {
        return false;
      }
    }
  }
  return true;
}

// The phis by edge: a block is entered on one. What moves on by itself (`p = p + 8` around a loop)
// stays what it is.
void FlowPrograms::compile_phis(const Segment& from, const Carriers& carriers, FlowSegment& out) {
  std::vector<const heddle::Phi*> phis;
  std::vector<std::uint32_t> blocks;
  for (const heddle::Phi& phi : from.phis) {
    if (phi.defines >= carriers.size() || !carriers[phi.defines]) continue;
    phis.push_back(&phi);
    for (const heddle::Phi::Incoming& edge : phi.incoming) {
      if (std::find(blocks.begin(), blocks.end(), edge.block) == blocks.end())
        blocks.push_back(edge.block);
    }
  }
  out.first_edge = static_cast<std::uint32_t>(edges_.size());
  out.edge_count = 0;
  if (phis.empty()) return;
  const auto add_edge = [&](std::uint32_t block, bool known_block) {
    const auto first = static_cast<std::uint32_t>(phis_.size());
    for (const heddle::Phi* phi : phis) {
      const auto edge = std::find_if(phi->incoming.begin(), phi->incoming.end(),
                                     [&](const auto& one) { return one.block == block; });
      const bool known = known_block && edge != phi->incoming.end();
      const FlowList sources = known ? registers(edge->sources, carriers) : FlowList();
      if (!choices_ && sources.size() == 1 && sources[0] == phi->defines) continue;
      phis_.push_back({phi->defines, known, sources});
    }
    edges_.push_back({block, first, static_cast<std::uint32_t>(phis_.size()) - first});
    edges_.back().one_by_one = are_independent(std::span(phis_).subspan(first));
    ++out.edge_count;
  };
  for (const std::uint32_t block : blocks) add_edge(block, true);
  add_edge(0, false);
}

const FlowSegment* FlowPrograms::compile(SegmentId id) {
  if (id == 0 || id >= catalog_.segments.size()) return nullptr;
  const Segment& from = catalog_.segments[id];
  const Function& function = catalog_.function(from.function);
  const Carriers& carriers = carriers_of(from.function);
  const auto limit = static_cast<std::uint32_t>(carriers.size());
  const auto defined = [&](Register reg) { return reg < limit ? reg : limit; };

  FlowSegment out;
  out.function = from.function;
  out.block = std::min(from.block, kMaxBlocks);
  out.enters_function = from.block == 0 && from.index == 0;
  out.enters_block = from.index == 0;
  out.end = from.end;
  out.registers = limit;
  out.parameters = std::min(function.parameters, limit);
  out.function_name = function.linkage_name;
  out.first_item = static_cast<std::uint32_t>(items_.size());
  out.item_count = static_cast<std::uint32_t>(from.items.size());
  for (const AccessItem& item : from.items) {
    items_.push_back({item.site, defined(item.defines), registers(item.address_from, carriers),
                      registers(item.value_from, carriers)});
  }
  out.parents = list(from.control_parents);
  out.from = registers(from.end_from, carriers);
  out.defines = defined(from.defines);
  out.callee = from.callee;
  out.first_argument = static_cast<std::uint32_t>(arguments_.size());
  out.argument_count = static_cast<std::uint32_t>(from.arguments.size());
  for (const Sources& argument : from.arguments)
    arguments_.push_back(registers(argument, carriers));
  if (out.enters_block) compile_phis(from, carriers, out);

  if (id >= compiled_.size()) compiled_.resize(catalog_.segments.size(), nullptr);
  segments_.push_back(out);
  compiled_[id] = &segments_.back();
  return compiled_[id];
}

// They are of the same activation as the segment that implies them, and over when it begins.
void FlowPrograms::compile_before(const RecordShape& shape, LiveSegment& out) {
  std::vector<LiveBefore>& all = live_before_.emplace_back();
  for (const SegmentId id : shape.before)
    all.push_back({.flow = find(id), .next = nullptr, .id = id});
  out.before = all.data();
  out.before_count = static_cast<std::uint32_t>(all.size());
  for (std::size_t i = 0; i < all.size() && out.fits; ++i) {
    LiveBefore& before = all[i];
    before.next = i + 1 < all.size() ? all[i + 1].flow : out.flow;
    out.fits = before.flow != nullptr && before.next != nullptr && before.flow->item_count == 0 &&
               before.flow->enters_block && !before.flow->enters_function &&
               ends_at_once(*before.flow) && before.next->enters_block &&
               !before.next->enters_function && before.next->function == before.flow->function;
    if (!out.fits) break;
    before.branches = before.flow->end == SegmentEnd::kBranch;
    before.asks = before.branches && before.flow->from.size() != 0;
    const FlowList parents = before.next->parents;
    for (std::uint32_t k = 0; k < parents.size(); ++k) {
      if (parents[k] == before.flow->block && parents[k] < kMaxBlocks)
        before.controls_next = before.branches;
    }
  }
}

// nullptr: no phi is taken.
const FlowPrograms::Edge* FlowPrograms::edge_into(const FlowSegment& segment,
                                                  std::uint32_t block) const {
  if (segment.edge_count == 0) return nullptr;
  const Edge* edge = &edges_[segment.first_edge];
  const Edge* const last = edge + segment.edge_count - 1;
  while (edge != last && edge->block != block) ++edge;
  return edge->phi_count == 0 ? nullptr : edge;
}

// Phis are taken at the beginning of a round only: who takes it need not stop in the middle.
void FlowPrograms::compile_round(LiveSegment& out) const {
  if (!out.fits || choices_ || !out.ends_now || out.before_count > kMostBefore) return;
  const FlowSegment& first = out.before_count == 0 ? *out.flow : *out.before[0].flow;
  if (!first.enters_block || first.enters_function || out.flow->block >= kMaxBlocks) return;
  for (const LiveBefore& before : std::span(out.before, out.before_count)) {
    if (before.flow->block >= kMaxBlocks) return;
    if (edge_into(*before.next, before.flow->block) != nullptr) return;
  }
  out.repeats = true;
  out.asks = out.flow->end == SegmentEnd::kBranch && out.flow->from.size() != 0;
  if (const Edge* edge = edge_into(first, out.flow->block); edge != nullptr) {
    out.has_phis = true;
    out.own_edge = static_cast<std::uint32_t>(edge - edges_.data());
  }
}

std::span<LiveItem> FlowPrograms::compile(ShapeId id, const RecordShape& shape) {
  LiveSegment out;
  out.known = true;
  out.id = shape.id;
  out.flow = find(shape.id);
  out.fits = out.flow != nullptr && out.flow->item_count == shape.items.size();
  if (out.flow != nullptr) {
    out.continues = out.flow->enters_function ? 0 : out.flow->function;
    out.ends_now = ends_at_once(*out.flow);
  }
  std::vector<LiveItem>& items = live_items_.emplace_back();
  for (std::uint32_t i = 0; i < shape.items.size(); ++i) {
    const ShapeItem& from = shape.items[i];
    LiveItem item;
    item.event = from.event;
    item.base = from.base;
    item.offset = from.event.address;
    item.kind = from.event.kind;
    item.size_word = from.size_word;
    if (out.fits) {
      const FlowItem& flow = items_[out.flow->first_item + i];
      out.fits = flow.site == from.event.site && is_access(from.event.kind);
      item.defines = flow.defines;
      item.address = flow.address;
      item.value = flow.value;
    }
    items.push_back(item);
  }
  for (auto item = items.begin(); item != items.end(); ++item) {
    item->stored_soon = item->kind == EventKind::kRead &&
                        std::any_of(item, items.end(), [&](const LiveItem& later) {
                          return stores_there(later, *item);
                        });
  }
  out.items = items.data();
  out.item_count = static_cast<std::uint32_t>(items.size());
  compile_before(shape, out);
  compile_round(out);
  live_[id] = out;
  return items;
}

}  // namespace heddle
