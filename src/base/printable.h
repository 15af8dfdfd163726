// Text that came from a trace, on its way to a terminal.
//
// Names of threads, variables and files are whatever the traced program, or a stranger who sent the
// trace, made them. Control characters among them would be orders to the reader's terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace heddle {

// How many bytes the control character at the start of `text` has; 0 when there is none. Line ends
// and tabs are harmless.
inline std::size_t control_character(std::string_view text) {
  const auto byte = [&](std::size_t n) { return static_cast<unsigned char>(text[n]); };
  if (byte(0) == '\n' || byte(0) == '\t') return 0;
  if (byte(0) < 0x20 || byte(0) == 0x7f) return 1;
  // U+0080 to U+009F as UTF-8: the 8-bit forms of escape sequences.
  return byte(0) == 0xc2 && text.size() > 1 && byte(1) >= 0x80 && byte(1) < 0xa0 ? 2 : 0;
}

// Control characters become `\x1b`, the rest stays.
inline std::string printable(std::string_view text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = control_character(text);
    if (length == 0) {
      out += text.front();
      text.remove_prefix(1);
      continue;
    }
    const auto code = static_cast<unsigned char>(text[length - 1]);
    out += {'\\', 'x', kDigits[code >> 4], kDigits[code & 15]};
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace heddle
