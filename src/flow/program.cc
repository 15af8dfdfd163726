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

}  // namespace

bool FlowPrograms::calls(StringId callee, StringId name) {
  if (callee == name) return true;
  const auto [known, is_new] =
      variants_.try_emplace((static_cast<std::uint64_t>(callee) << 32) | name, false);
  if (is_new) known->second = variants_of_one(catalog_.text(callee), catalog_.text(name));
  return known->second;
}

FlowList FlowPrograms::list(const std::vector<std::uint32_t>& numbers) {
  if (numbers.empty()) return {};
  const FlowList out{static_cast<std::uint32_t>(numbers_.size())};
  numbers_.push_back(static_cast<std::uint32_t>(numbers.size()));
  numbers_.insert(numbers_.end(), numbers.begin(), numbers.end());
  return out;
}

FlowList FlowPrograms::registers(const Sources& sources, std::uint32_t limit) {
  std::vector<std::uint32_t> known;
  for (const Register reg : sources) {
    if (reg < limit) known.push_back(reg);
  }
  return list(known);
}

const FlowSegment* FlowPrograms::compile(SegmentId id) {
  if (id == 0 || id >= catalog_.segments.size()) return nullptr;
  const Segment& from = catalog_.segments[id];
  const Function& function = catalog_.function(from.function);
  const std::uint32_t limit = std::min(function.registers, kMaxRegisters);
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
    items_.push_back({item.site, defined(item.defines), registers(item.address_from, limit),
                      registers(item.value_from, limit)});
  }
  out.parents = list(from.control_parents);
  out.from = registers(from.end_from, limit);
  out.defines = defined(from.defines);
  out.callee = from.callee;
  out.first_argument = static_cast<std::uint32_t>(arguments_.size());
  out.argument_count = static_cast<std::uint32_t>(from.arguments.size());
  for (const Sources& argument : from.arguments) arguments_.push_back(registers(argument, limit));
  out.first_phi = static_cast<std::uint32_t>(phis_.size());
  out.phi_count = out.enters_block ? static_cast<std::uint32_t>(from.phis.size()) : 0;
  for (const heddle::Phi& phi : from.phis) {
    phis_.push_back({defined(phi.defines), static_cast<std::uint32_t>(edges_.size()),
                     static_cast<std::uint32_t>(phi.incoming.size())});
    for (const heddle::Phi::Incoming& edge : phi.incoming)
      edges_.push_back({edge.block, registers(edge.sources, limit)});
  }

  if (id >= compiled_.size()) compiled_.resize(catalog_.segments.size(), nullptr);
  segments_.push_back(out);
  compiled_[id] = &segments_.back();
  return compiled_[id];
}

}  // namespace heddle
