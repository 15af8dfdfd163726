// The tokens of one line of the text notation.
#pragma once

#include "trace/text_grammar.h"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace heddle::text {

class Cursor {
 public:
  explicit Cursor(std::string_view line) : rest_(line) {}

  // Skips blanks; true when nothing but a comment is left.
  bool at_end() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\t' || rest_[0] == '\r')) {
      rest_.remove_prefix(1);
    }
    return rest_.empty() || rest_[0] == '#';
  }
  char peek() const { return rest_.empty() ? '\0' : rest_[0]; }
  std::string_view rest() const { return rest_; }

  // Takes `c` if it is next; no blanks are skipped.
  bool take(char c) {
    if (peek() != c || rest_.empty()) return false;
    rest_.remove_prefix(1);
    return true;
  }
  // Takes a whole word if it is next, after blanks.
  bool take_word(std::string_view word) {
    if (at_end() || rest_.substr(0, word.size()) != word) return false;
    if (rest_.size() > word.size() && continues_name(rest_[word.size()])) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  // The longest run of characters that are not blank and satisfy `in`.
  template <typename Predicate>
  std::string_view run(Predicate in) {
    std::size_t n = 0;
    while (n < rest_.size() && in(rest_[n])) ++n;
    const std::string_view token = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return token;
  }

  // Decimal, 0x hexadecimal, or negative (two's complement). Nothing is taken on failure.
  bool number(std::uint64_t& value) {
    std::string_view text = rest_;
    const bool negative = !text.empty() && text[0] == '-';
    if (negative) text.remove_prefix(1);
    unsigned base = 10;
    if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
      base = 16;
      text.remove_prefix(2);
    }
    std::uint64_t result = 0;
    std::size_t n = 0;
    for (; n < text.size(); ++n) {
      const int digit = digit_of(text[n], base);
      if (digit < 0) break;
      const auto d = static_cast<std::uint64_t>(digit);
      if (result > (std::numeric_limits<std::uint64_t>::max() - d) / base) return false;
      result = result * base + d;
    }
    if (n == 0 || (n < text.size() && starts_name(text[n]))) return false;
    value = negative ? 0 - result : result;
    rest_ = text.substr(n);
    return true;
  }

  // A bare name, or any text in double quotes. The view is into the line or into `buffer`.
  bool name(std::string_view& value, std::string& buffer) {
    if (peek() == '"') return quoted(value, buffer);
    const std::size_t n = bare_name_length(rest_);
    if (n == 0) return false;
    value = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return true;
  }
  bool quoted(std::string_view& value, std::string& buffer) {
    if (peek() != '"') return false;
    buffer.clear();
    for (std::size_t i = 1; i < rest_.size(); ++i) {
      const char c = rest_[i];
      if (c == '"') {
        rest_.remove_prefix(i + 1);
        value = buffer;
        return true;
      }
      if (c != '\\') {
        buffer.push_back(c);
        continue;
      }
      if (++i == rest_.size()) return false;
      switch (rest_[i]) {
        case 'n':
          buffer.push_back('\n');
          break;
        case 't':
          buffer.push_back('\t');
          break;
        case 'x': {
          if (i + 2 >= rest_.size()) return false;
          const int high = digit_of(rest_[i + 1], 16);
          const int low = digit_of(rest_[i + 2], 16);
          if (high < 0 || low < 0) return false;
          buffer.push_back(static_cast<char>(high * 16 + low));
          i += 2;
          break;
        }
        default:
          buffer.push_back(rest_[i]);
      }
    }
    return false;
  }

 private:
  static int digit_of(char c, unsigned base) {
    if (c >= '0' && c <= '9') return c - '0';
    if (base == 16 && c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (base == 16 && c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  }

  std::string_view rest_;
};

}  // namespace heddle::text
