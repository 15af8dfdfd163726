#include "finding/fingerprint.h"

#include <string_view>

#include <fmt/format.h>

namespace heddle {
namespace {

class Hash {
 public:
  // Every part ends in a separator, so that ("ab", "c") and ("a", "bc") differ.
  void add(std::string_view part) {
    for (const char c : part) mix(static_cast<unsigned char>(c));
    mix(0xff);
  }
  void add(int number) { add(fmt::format("{}", number)); }
  std::uint64_t value() const { return state_; }

 private:
  void mix(std::uint64_t byte) { state_ = (state_ ^ byte) * 0x100000001b3ull; }
  std::uint64_t state_ = 0xcbf29ce484222325ull;
};

std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// The address of an unnamed variable differs between runs; its allocation site's function does not.
std::string_view stable_name(const VariableName& variable) {
  if (variable.storage == "heap" && !variable.declared.function.empty())
    return variable.declared.function;
  return variable.name.starts_with("0x") ? std::string_view() : std::string_view(variable.name);
}

}  // namespace

std::string fingerprint(const Finding& finding) {
  Hash hash;
  hash.add(static_cast<int>(finding.kind));
  hash.add(finding.summary);
  for (const VariableName& variable : finding.variables) hash.add(stable_name(variable));
  for (const Step& step : finding.steps) {
    if (step.role.empty()) continue;
    hash.add(step.role);
    hash.add(static_cast<int>(step.kind));
    hash.add(step.place.function);
    hash.add(base_name(step.place.file));
  }
  return fmt::format("{:016x}", hash.value());
}

}  // namespace heddle
