#include "trace/file_format.h"

#include "trace/checksum.h"

#include <algorithm>
#include <cstring>

namespace heddle {
namespace {

constexpr std::array<std::uint8_t, 4> kChunkMark = {'h', 'd', 'C', 0x1e};
constexpr std::size_t kHeaderCheckAt = 20;

template <typename T>
void put(std::uint8_t* out, T value) {
  std::memcpy(out, &value, sizeof value);
}

template <typename T>
T get(const std::uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

std::uint32_t check_of(std::span<const std::uint8_t> bytes) {
  return static_cast<std::uint32_t>(checksum64(bytes));
}

std::uint32_t chunk_check(std::span<const std::uint8_t, kChunkHeaderSize> bytes) {
  std::array<std::uint8_t, kChunkHeaderSize> copy;
  std::copy(bytes.begin(), bytes.end(), copy.begin());
  put<std::uint32_t>(copy.data() + kHeaderCheckAt, 0);
  return check_of(copy);
}

}  // namespace

void write_file_header(std::span<std::uint8_t, kFileHeaderSize> out) {
  std::uint8_t* p = out.data();
  std::copy(kFileMagic.begin(), kFileMagic.end(), p);
  put(p + 8, kFormatMajor);
  put(p + 10, kFormatMinor);
  put(p + 12, kKnownFeatures);
  put<std::uint32_t>(p + 16, 0);
  put(p + 20, check_of(out.first(20)));
}

Status check_file_header(std::span<const std::uint8_t> bytes) {
  const std::size_t magic = std::min(bytes.size(), kFileMagic.size());
  if (!std::equal(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(magic),
                  kFileMagic.begin())) {
    return Error{"not a Heddle trace (byte 0)"};
  }
  if (bytes.size() < kFileHeaderSize) {
    return Error{"cut off at byte " + std::to_string(bytes.size()) + ", inside the file header"};
  }
  const std::uint8_t* p = bytes.data();
  const auto major = get<std::uint16_t>(p + 8);
  const auto minor = get<std::uint16_t>(p + 10);
  const bool intact = get<std::uint32_t>(p + 20) == check_of(bytes.first(20));
  if (major != kFormatMajor) {
    return Error{"made by another version of Heddle: trace format " + std::to_string(major) + "." +
                 std::to_string(minor) + " (byte 8), this one reads " +
                 std::to_string(kFormatMajor) + ".x" + (intact ? "" : "; or damaged there")};
  }
  if (!intact) return Error{"damaged at byte 0: the checksum of the file header does not match"};
  if (const auto features = get<std::uint32_t>(p + 12); (features & ~kKnownFeatures) != 0) {
    return Error{"made by a newer Heddle: it uses features (byte 12) that this one does not know"};
  }
  return Done{};
}

void write_chunk_header(const ChunkHeader& header, std::span<std::uint8_t, kChunkHeaderSize> out) {
  std::uint8_t* p = out.data();
  std::copy(kChunkMark.begin(), kChunkMark.end(), p);
  put(p + 4, header.kind);
  put(p + 5, static_cast<std::uint8_t>(header.codec));
  put<std::uint16_t>(p + 6, 0);
  put(p + 8, header.lane);
  put(p + 12, header.stored_size);
  put(p + 16, header.plain_size);
  put(p + 24, header.first_stamp);
  put(p + 32, header.last_stamp);
  put(p + 40, header.events);
  put(p + 48, header.payload_checksum);
  put<std::uint32_t>(p + kHeaderCheckAt, 0);
  put(p + kHeaderCheckAt, check_of(out));
}

Result<ChunkHeader> read_chunk_header(std::span<const std::uint8_t, kChunkHeaderSize> bytes) {
  const std::uint8_t* p = bytes.data();
  if (!std::equal(kChunkMark.begin(), kChunkMark.end(), p)) {
    return Error{"no chunk starts here"};
  }
  if (get<std::uint32_t>(p + kHeaderCheckAt) != chunk_check(bytes)) {
    return Error{"the checksum of the chunk header does not match"};
  }
  ChunkHeader header;
  header.kind = p[4];
  header.codec = static_cast<ChunkCodec>(p[5]);
  header.lane = get<std::uint32_t>(p + 8);
  header.stored_size = get<std::uint32_t>(p + 12);
  header.plain_size = get<std::uint32_t>(p + 16);
  header.first_stamp = get<std::uint64_t>(p + 24);
  header.last_stamp = get<std::uint64_t>(p + 32);
  header.events = get<std::uint64_t>(p + 40);
  header.payload_checksum = get<std::uint64_t>(p + 48);

  const auto kind = static_cast<ChunkKind>(header.kind);
  const bool ours =
      kind == ChunkKind::kCatalog || kind == ChunkKind::kEvents || kind == ChunkKind::kEnd;
  if (!ours) return header;
  if (header.codec != ChunkCodec::kStored && header.codec != ChunkCodec::kZstd) {
    return Error{"a compression that does not exist"};
  }
  const std::uint32_t most = kind == ChunkKind::kEvents ? kMaxEventBytes : kMaxCatalogBytes;
  if (header.plain_size > most || header.stored_size > most + most / 128 + 1024) {
    return Error{"a chunk of " + std::to_string(std::max(header.plain_size, header.stored_size)) +
                 " bytes, more than there can be"};
  }
  if (kind == ChunkKind::kCatalog &&
      header.plain_size / kMaxCatalogRatio > std::uint64_t{header.stored_size}) {
    return Error{"a catalog that expands more than it can"};
  }
  if (kind == ChunkKind::kEvents && header.events > kMaxChunkEvents) {
    return Error{"a chunk of " + std::to_string(header.events) + " events, more than there can be"};
  }
  if (header.first_stamp > header.last_stamp || header.last_stamp > kMaxStamp) {
    return Error{"stamps that cannot be"};
  }
  return header;
}

}  // namespace heddle
