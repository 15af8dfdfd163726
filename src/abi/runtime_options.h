// The text of HEDDLE_OPTIONS: key=value, separated by colons; a backslash before a colon or a
// backslash in a value. The runtime takes it apart (runtime/options.h).
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace heddle {

inline std::string options_text(const std::vector<std::pair<std::string, std::string>>& options) {
  std::string text;
  for (const auto& [key, value] : options) {
    if (!text.empty()) text += ':';
    text += key;
    text += '=';
    for (const char c : value) {
      if (c == ':' || c == '\\') text += '\\';
      text += c;
    }
  }
  return text;
}

}  // namespace heddle
