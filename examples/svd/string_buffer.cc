// JDK 1.4, java.lang.StringBuffer: append(StringBuffer), every method synchronized.
// Named in SVD section 2.1. The story is in string_buffer.md.
#include "../example.h"

#include <cstddef>
#include <mutex>
#include <stdexcept>

namespace {

class StringBuffer {
 public:
  static constexpr std::size_t kCapacity = 64;

  std::size_t length() const {
    const std::lock_guard guard(monitor_);
    return count_;  // heddle: P
  }

  void set_length(std::size_t length) {
    const std::lock_guard guard(monitor_);
    for (std::size_t i = count_; i < length; ++i) value_[i] = ' ';
    count_ = length;  // heddle: R
  }

  void get_chars(std::size_t begin, std::size_t end, char* target) const {
    const std::lock_guard guard(monitor_);
    if (end > count_) {  // heddle: I
      throw std::out_of_range("get_chars");
    }
    for (std::size_t i = begin; i < end; ++i) *target++ = value_[i];
  }

  void append(const StringBuffer& other) {
    const std::lock_guard guard(monitor_);
    const std::size_t length = other.length();
    if (count_ + length > kCapacity) count_ = 0;
    other.get_chars(0, length, &value_[count_]);
    count_ += length;
  }

 private:
  mutable std::mutex monitor_;
  std::size_t count_ = 0;
  char value_[kCapacity] = {};
};

}  // namespace

int main(int argc, char** argv) {
  const int rounds = example::rounds(argc, argv, 3);
  StringBuffer source;
  source.set_length(6);
  int failures = 0;
  example::in_parallel(
      [&] {
        for (int i = 0; i < rounds; ++i) {
          StringBuffer copy;
          try {
            copy.append(source);
          } catch (const std::out_of_range&) {
            ++failures;
          }
        }
      },
      [&] {
        for (int i = 0; i < rounds; ++i) source.set_length(5 - i % 6);
      });

  if (failures > 0) {
    example::fail("append: index out of range, %d of %d times; the source had shrunk", failures,
                  rounds);
  }
}
