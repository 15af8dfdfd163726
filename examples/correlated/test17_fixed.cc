// Test 17 put right: one lock for the text and for the lengths of its words, held for both.
#include "../example.h"

#include <cstdint>
#include <mutex>

namespace {

std::mutex m;
std::uint64_t mCont = 0;  // the text, a byte per character
std::uint64_t mLen = 0;   // the lengths of its words, a decimal digit per word

char word_a[] = "ab";
char word_b[] = "xyz";

std::uint64_t f(std::uint64_t content, const char* s) {
  for (; *s != '\0'; ++s) content = content << 8 | static_cast<unsigned char>(*s);
  return content;
}

std::uint64_t g(std::uint64_t lengths, const char* s) {
  std::uint64_t length = 0;
  while (s[length] != '\0') ++length;
  return lengths * 10 + length;
}

void append(const char* s) {
  mCont = f(mCont, s);
}

void reflow(const char* s) {
  mLen = g(mLen, s);
}

void add_word(const char* s) {
  const std::lock_guard guard(m);
  append(s);
  reflow(s);
}

}  // namespace

int main() {
  example::in_parallel([] { add_word(word_a); }, [] { add_word(word_b); });
  const std::uint64_t expected = mCont == f(f(0, word_a), word_b) ? 23 : 32;
  if (mLen != expected) {
    example::fail("the words have lengths %d, the lengths say %d", static_cast<int>(expected),
                  static_cast<int>(mLen));
  }
}
