#include "trace/reader.h"

#include "trace/bytes.h"
#include "trace/catalog_codec.h"
#include "trace/checksum.h"

#include <algorithm>
#include <utility>

#include <zstd.h>

namespace heddle {
namespace {

constexpr std::size_t kBatch = 1024;  // events; small enough to stay in the cache

// Chunks that overlap are in memory at the same time; a file that wants more than this is not one
// that Heddle wrote.
constexpr std::size_t kMaxActiveBytes = 1u << 30;

}  // namespace

struct TraceReader::Decompressor {
  ZSTD_DCtx* context = ZSTD_createDCtx();

  Decompressor() = default;
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;
  ~Decompressor() { ZSTD_freeDCtx(context); }
};

bool is_binary_trace(std::span<const std::uint8_t> start) {
  const std::size_t n = std::min(start.size(), kFileMagic.size());
  return n > 0 && std::equal(kFileMagic.begin(), kFileMagic.begin() + n, start.begin());
}

TraceReader::TraceReader(InputFile file, const OpenOptions& options)
    : file_(std::move(file)), options_(options), decompressor_(std::make_unique<Decompressor>()) {}

TraceReader::~TraceReader() = default;

Result<std::unique_ptr<TraceReader>> TraceReader::open(InputFile file, const OpenOptions& options) {
  std::unique_ptr<TraceReader> reader(new TraceReader(std::move(file), options));
  if (Status status = reader->read_index(); !status.ok()) return status.error();
  return reader;
}

Error TraceReader::damaged(std::uint64_t offset, const std::string& what) const {
  return Error{file_.path() + ": damaged at byte " + std::to_string(offset) + ": " + what +
               "; --salvage reads what comes before"};
}

void TraceReader::note_damage(std::uint64_t offset, const std::string& what) {
  damage_ = damaged(offset, what);
}

// ---- the index --------------------------------------------------------------------------------

Status TraceReader::read_index() {
  std::array<std::uint8_t, kFileHeaderSize> start;
  Result<std::size_t> got = file_.read(0, start);
  if (!got.ok()) return got.error();
  if (Status status = check_file_header(std::span(start).first(*got)); !status.ok()) {
    return Error{file_.path() + ": " + status.error().message};
  }
  facts_.file_bytes = file_.size();
  std::uint64_t offset = kFileHeaderSize;
  std::uint64_t count = 0;
  while (!damage_ && !facts_.complete) {
    if (offset == file_.size()) {
      note_damage(offset, "the trace was interrupted here, its end is missing");
      break;
    }
    std::array<std::uint8_t, kChunkHeaderSize> bytes;
    got = file_.read(offset, bytes);
    if (!got.ok()) return got.error();
    if (*got < bytes.size()) {
      note_damage(offset, "cut off inside a chunk header");
      break;
    }
    Result<ChunkHeader> header = read_chunk_header(bytes);
    if (!header.ok()) {
      note_damage(offset, header.error().message);
      break;
    }
    const Chunk chunk{offset, *header};
    const std::uint64_t end = offset + kChunkHeaderSize + header->stored_size;
    if (end > file_.size()) {
      note_damage(offset, "cut off inside a chunk");
      break;
    }
    if (header->kind == static_cast<std::uint8_t>(ChunkKind::kEnd)) {
      std::vector<std::uint8_t> plain;
      if (Status status = read_payload(chunk, plain); !status.ok()) {
        damage_ = status.error();
        break;
      }
      ByteReader in({plain.data(), header->plain_size});
      if (in.varint() != count || header->events != facts_.events || !in.ok()) {
        note_damage(offset, "chunks are missing before this end");
      } else if (end != file_.size()) {
        note_damage(end, "something follows the end");
      }
      facts_.complete = true;
      break;
    }
    if (!admit(chunk)) break;
    ++count;
    offset = end;
  }
  lane_stamps_.clear();
  const auto by_stamp = [this](std::uint32_t a, std::uint32_t b) {
    const std::uint64_t first = chunks_[a].header.first_stamp;
    const std::uint64_t second = chunks_[b].header.first_stamp;
    return first != second ? first < second : a < b;
  };
  std::sort(order_.begin(), order_.end(), by_stamp);
  return Done{};
}

// Enters a chunk into the index; one of a kind that this version does not know is passed over.
bool TraceReader::admit(const Chunk& chunk) {
  const ChunkHeader& header = chunk.header;
  if (header.kind == static_cast<std::uint8_t>(ChunkKind::kCatalog)) {
    facts_.catalog_bytes += header.stored_size;
    chunks_.push_back(chunk);
  } else if (header.kind == static_cast<std::uint8_t>(ChunkKind::kEvents)) {
    const auto [lane, fresh] = lane_stamps_.try_emplace(header.lane, header.last_stamp);
    if (!fresh) {
      if (header.first_stamp < lane->second) {
        note_damage(chunk.offset, "a chunk that goes back in time");
        return false;
      }
      lane->second = header.last_stamp;
    }
    ++facts_.event_chunks;
    facts_.events += header.events;
    facts_.event_bytes += header.stored_size;
    facts_.event_plain_bytes += header.plain_size;
    order_.push_back(static_cast<std::uint32_t>(chunks_.size()));
    chunks_.push_back(chunk);
  }
  return true;
}

// ---- chunks -----------------------------------------------------------------------------------

// `plain` gets the payload and ChunkDecoder::kPadding more bytes.
Status TraceReader::read_payload(const Chunk& chunk, std::vector<std::uint8_t>& plain) {
  const ChunkHeader& header = chunk.header;
  plain.resize(header.plain_size + ChunkDecoder::kPadding);
  const bool packed = header.codec == ChunkCodec::kZstd;
  if (!packed && header.stored_size != header.plain_size) {
    return damaged(chunk.offset, "sizes of a chunk that do not agree");
  }
  if (packed) stored_.resize(header.stored_size);
  const std::span<std::uint8_t> target = packed ? std::span(stored_) : std::span(plain);
  const std::span<std::uint8_t> stored = target.first(header.stored_size);
  Result<std::size_t> got = file_.read(chunk.offset + kChunkHeaderSize, stored);
  if (!got.ok()) return got.error();
  if (*got < stored.size()) return damaged(chunk.offset, "cut off inside a chunk");
  if (checksum64(stored) != header.payload_checksum) {
    return damaged(chunk.offset, "the checksum of the chunk does not match");
  }
  if (packed) {
    // Never writes more than the header announced, which is bounded.
    const std::size_t size = ZSTD_decompressDCtx(decompressor_->context, plain.data(),
                                                 header.plain_size, stored.data(), stored.size());
    if (ZSTD_isError(size) || size != header.plain_size) {
      return damaged(chunk.offset, "a chunk that does not decompress to its size");
    }
  }
  return Done{};
}

Status TraceReader::read_catalogs_before(std::size_t chunk) {
  for (; next_catalog_ < chunk; ++next_catalog_) {
    const Chunk& catalog = chunks_[next_catalog_];
    if (catalog.header.kind != static_cast<std::uint8_t>(ChunkKind::kCatalog)) continue;
    std::vector<std::uint8_t> plain;
    if (Status status = read_payload(catalog, plain); !status.ok()) return status;
    const Status status =
        decode_catalog(std::span(plain).first(catalog.header.plain_size), catalog_);
    if (!status.ok()) return damaged(catalog.offset, status.error().message);
  }
  return Done{};
}

Status TraceReader::open_chunk(std::size_t chunk) {
  if (Status status = read_catalogs_before(chunk); !status.ok()) return status;
  if (idle_.empty()) idle_.push_back(std::make_unique<ChunkDecoder>());
  std::unique_ptr<ChunkDecoder> decoder = std::move(idle_.back());
  idle_.pop_back();
  std::vector<std::uint8_t> plain = decoder->take_buffer();
  if (Status status = read_payload(chunks_[chunk], plain); !status.ok()) return status;
  if (const char* wrong = decoder->start(chunks_[chunk].header, std::move(plain), catalog_)) {
    return damaged(chunks_[chunk].offset, wrong);
  }
  active_bytes_ += chunks_[chunk].header.plain_size;
  if (active_bytes_ > kMaxActiveBytes) {
    return damaged(chunks_[chunk].offset, "too many chunks that overlap");
  }
  active_.push_back({chunk, std::move(decoder)});
  return Done{};
}

// ---- events -----------------------------------------------------------------------------------

// Puts events of the run that is next in the total order, and of those after it in the same chunk
// as long as nothing else comes between, behind `filled` into the batch.
Status TraceReader::fill(std::size_t& filled) {
  const auto before = [](std::uint64_t stamp, std::size_t chunk, const Active& other) {
    return stamp != other.decoder->stamp() ? stamp < other.decoder->stamp() : chunk < other.chunk;
  };
  while (true) {
    std::size_t best = 0;
    std::size_t second = active_.size();
    for (std::size_t i = 1; i < active_.size(); ++i) {
      if (before(active_[i].decoder->stamp(), active_[i].chunk, active_[best])) {
        second = std::exchange(best, i);
      } else if (second == active_.size() ||
                 before(active_[i].decoder->stamp(), active_[i].chunk, active_[second])) {
        second = i;
      }
    }
    std::uint64_t limit = kMaxStamp + 1;
    if (next_in_order_ < order_.size()) {
      const std::size_t chunk = order_[next_in_order_];
      const std::uint64_t stamp = chunks_[chunk].header.first_stamp;
      if (active_.empty() || before(stamp, chunk, active_[best])) {
        ++next_in_order_;
        if (Status status = open_chunk(chunk); !status.ok()) return status;
        continue;
      }
      // Chunks come in the file's order where stamps are equal.
      limit = stamp + (active_[best].chunk < chunk ? 1 : 0);
    }
    if (active_.empty()) return Done{};
    if (second < active_.size()) {
      const Active& other = active_[second];
      limit = std::min(limit, other.decoder->stamp() + (active_[best].chunk < other.chunk ? 1 : 0));
    }
    ChunkDecoder& decoder = *active_[best].decoder;
    filled += decoder.decode(std::span(batch_).subspan(filled), limit);
    if (!decoder.done()) {
      if (filled == batch_.size()) return Done{};
      continue;
    }
    const Chunk& chunk = chunks_[active_[best].chunk];
    if (decoder.error() != nullptr) return damaged(chunk.offset, decoder.error());
    active_bytes_ -= chunk.header.plain_size;
    idle_.push_back(std::move(active_[best].decoder));
    active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(best));
    if (filled == batch_.size()) return Done{};
  }
}

Result<std::span<const Event>> TraceReader::next() {
  std::size_t filled = 0;
  if (!error_ && !ended_) {
    batch_.resize(kBatch);
    Status status = fill(filled);
    if (status.ok() && filled < batch_.size()) {
      status = damage_ ? Status(*damage_) : read_catalogs_before(chunks_.size());
      ended_ = status.ok();
    }
    if (!status.ok()) {
      if (options_.salvage) {
        ended_ = true;
        warning_ = status.error().message;
        active_.clear();
      } else {
        error_ = status.error();
      }
    }
    delivered_ += filled;
  }
  if (filled > 0) return std::span<const Event>(batch_).first(filled);
  if (error_) return *error_;
  return std::span<const Event>();
}

double TraceReader::fraction() const {
  if (facts_.events == 0) return 1;
  return static_cast<double>(delivered_) / static_cast<double>(facts_.events);
}

}  // namespace heddle
