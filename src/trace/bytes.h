// Bytes in and out: little-endian words and variable-length integers, as docs/trace-format.md
// defines them.
//
// A varint of n bytes (1 … 9) has n-1 zero bits and then a one bit at the bottom of its first byte;
// the 7·n bits above are the value. A first byte of zero announces eight whole bytes. The length
// is known from the first byte, so decoding is a load and two shifts, without a loop; that is why
// it is not LEB128.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

static_assert(std::endian::native == std::endian::little, "Heddle runs on little-endian machines");

inline constexpr std::size_t kMaxVarint = 9;

inline std::uint64_t load64(const std::uint8_t* at) {
  std::uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

constexpr std::uint64_t zigzag(std::uint64_t difference) {
  return (difference << 1) ^ (0 - (difference >> 63));
}
constexpr std::uint64_t unzigzag(std::uint64_t code) {
  return (code >> 1) ^ (0 - (code & 1));
}

constexpr unsigned varint_size(std::uint64_t value) {
  const unsigned bits = 64u - static_cast<unsigned>(std::countl_zero(value | 1));
  return bits > 56 ? 9 : (bits + 6) / 7;
}

// Writes up to kMaxVarint bytes at `at` and returns the end; all nine bytes must be writable.
inline std::uint8_t* put_varint(std::uint8_t* at, std::uint64_t value) {
  const unsigned n = varint_size(value);
  if (n == 9) {
    *at = 0;
    std::memcpy(at + 1, &value, sizeof value);
    return at + 9;
  }
  // NOLINTNEXTLINE(clang-analyzer-core.BitwiseShift): n is at least 1
  const std::uint64_t word = ((value << 1) | 1) << (n - 1);
  std::memcpy(at, &word, sizeof word);
  return at + n;
}

// Reads a varint where nine bytes are readable; never fails.
inline std::uint64_t get_varint(const std::uint8_t*& at) {
  const std::uint64_t word = load64(at);
  const unsigned n = static_cast<unsigned>(std::countr_zero(word | 0x100)) + 1;
  if (n == 9) [[unlikely]] {
    const std::uint64_t value = load64(at + 1);
    at += 9;
    return value;
  }
  at += n;
  return (word << (64 - 8 * n)) >> (64 - 7 * n);
}

// Appends to a buffer that grows.
class ByteWriter {
 public:
  void byte(std::uint8_t value) { bytes_.push_back(value); }
  void varint(std::uint64_t value) {
    std::uint8_t space[kMaxVarint];
    std::uint8_t* const end = put_varint(space, value);
    bytes_.insert(bytes_.end(), space, end);
  }
  void signed_varint(std::int64_t value) { varint(zigzag(static_cast<std::uint64_t>(value))); }
  void word64(std::uint64_t value) {
    const auto* raw = reinterpret_cast<const std::uint8_t*>(&value);
    bytes_.insert(bytes_.end(), raw, raw + sizeof value);
  }
  void raw(std::span<const std::uint8_t> data) {
    bytes_.insert(bytes_.end(), data.begin(), data.end());
  }
  void text(std::string_view text) {
    varint(text.size());
    bytes_.insert(bytes_.end(), text.begin(), text.end());
  }
  std::size_t size() const { return bytes_.size(); }
  void clear() { bytes_.clear(); }
  const std::vector<std::uint8_t>& bytes() const { return bytes_; }
  std::vector<std::uint8_t> take() { return std::move(bytes_); }

 private:
  std::vector<std::uint8_t> bytes_;
};

// Reads from bytes that nobody vouches for. After a read beyond the end every value is 0 and ok()
// is false for good, so a caller may check once per entry.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::uint8_t> bytes)
      : begin_(bytes.data()), at_(begin_), end_(begin_ + bytes.size()) {}

  bool ok() const { return ok_; }
  bool at_end() const { return at_ == end_; }
  std::size_t remaining() const { return static_cast<std::size_t>(end_ - at_); }
  std::size_t offset() const { return static_cast<std::size_t>(at_ - begin_); }

  std::uint8_t byte() {
    if (!has(1)) return 0;
    return *at_++;
  }
  std::uint64_t varint() {
    if (remaining() >= kMaxVarint) return get_varint(at_);
    std::uint8_t space[kMaxVarint] = {};
    if (remaining() > 0) std::memcpy(space, at_, remaining());
    const std::uint8_t* after = space;
    const std::uint64_t value = get_varint(after);
    if (!has(static_cast<std::size_t>(after - space))) return 0;
    at_ += after - space;
    return value;
  }
  std::int64_t signed_varint() { return static_cast<std::int64_t>(unzigzag(varint())); }
  std::uint64_t word64() {
    if (!has(8)) return 0;
    const std::uint64_t value = load64(at_);
    at_ += 8;
    return value;
  }
  std::span<const std::uint8_t> raw(std::uint64_t count) {
    if (!has(count)) return {};
    const std::span<const std::uint8_t> data(at_, static_cast<std::size_t>(count));
    at_ += count;
    return data;
  }
  std::string_view text() {
    const std::span<const std::uint8_t> data = raw(varint());
    return {reinterpret_cast<const char*>(data.data()), data.size()};
  }
  // A number of entries that each take at least `least` bytes: more than fit is damage, so that
  // nothing is allocated on the word of a damaged count.
  std::size_t count(std::size_t least) {
    const std::uint64_t n = varint();
    if (n > remaining() / least) {
      fail();
      return 0;
    }
    return static_cast<std::size_t>(n);
  }
  void fail() {
    ok_ = false;
    at_ = end_;
  }

 private:
  bool has(std::uint64_t count) {
    if (count <= remaining()) return true;
    fail();
    return false;
  }

  const std::uint8_t* begin_;
  const std::uint8_t* at_;
  const std::uint8_t* end_;
  bool ok_ = true;
};

}  // namespace heddle
