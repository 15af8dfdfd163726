// The frame of a trace file: its header and the headers of its chunks. docs/trace-format.md is the
// specification; trace/shapes.h has what is inside a chunk of events.
//
// A file is a header followed by chunks. Each chunk says how long it is and carries checksums of
// its header and of its payload, so a file that was cut off anywhere is readable up to its last
// whole chunk, and one that was finished ends with an End chunk.
#pragma once

#include "base/result.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace heddle {

// The first byte is no text and the last is a line end, so that a transfer in text mode shows.
inline constexpr std::array<std::uint8_t, 8> kFileMagic = {0x8e, 'H', 'e', 'd',
                                                           'd',  'l', 'e', '\n'};
inline constexpr std::uint16_t kFormatMajor = 1;  // another one: not readable
inline constexpr std::uint16_t kFormatMinor = 0;  // a greater one: readable, unknown parts skipped
inline constexpr std::uint32_t kKnownFeatures = 0;

inline constexpr std::size_t kFileHeaderSize = 24;
inline constexpr std::size_t kChunkHeaderSize = 56;

enum class ChunkKind : std::uint8_t { kCatalog = 1, kEvents = 2, kEnd = 3 };
enum class ChunkCodec : std::uint8_t { kStored = 0, kZstd = 1 };

// Bounds that a reader holds every file to, whatever the file says.
inline constexpr std::uint32_t kMaxEventBytes = 4u << 20;     // plain payload of an Events chunk
inline constexpr std::uint32_t kMaxCatalogBytes = 16u << 20;  // plain payload of a Catalog chunk
inline constexpr std::uint32_t kMaxCatalogRatio = 64;         // plain to stored bytes of a catalog
inline constexpr std::uint64_t kMaxChunkEvents = 4u << 20;
inline constexpr std::uint64_t kMaxStamp = (std::uint64_t{1} << 63) - 1;

struct ChunkHeader {
  std::uint8_t kind{};  // ChunkKind, or one of a later version
  ChunkCodec codec{};
  std::uint32_t lane{};
  std::uint32_t stored_size{};
  std::uint32_t plain_size{};
  std::uint64_t first_stamp{};
  std::uint64_t last_stamp{};
  std::uint64_t events{};
  std::uint64_t payload_checksum{};
};

void write_file_header(std::span<std::uint8_t, kFileHeaderSize> out);
// What is wrong with a file header, in words that fit after "path: ".
Status check_file_header(std::span<const std::uint8_t> bytes);

void write_chunk_header(const ChunkHeader& header, std::span<std::uint8_t, kChunkHeaderSize> out);
// The error fits after "damaged at byte N: ".
Result<ChunkHeader> read_chunk_header(std::span<const std::uint8_t, kChunkHeaderSize> bytes);

}  // namespace heddle
