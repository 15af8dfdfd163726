#include "trace/writer.h"

#include "trace/checksum.h"

#include <algorithm>
#include <utility>

#include <zstd.h>

namespace heddle {
namespace {

constexpr int kLevel = 1;  // the predictions have done most of the work
constexpr std::size_t kCatalogPiece = 4u << 20;

}  // namespace

struct TraceWriter::Compressor {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  std::vector<std::uint8_t> space;

  Compressor() = default;
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;
  ~Compressor() { ZSTD_freeCCtx(context); }

  // Empty when compressing does not pay.
  std::span<const std::uint8_t> compress(std::span<const std::uint8_t> plain) {
    space.resize(ZSTD_compressBound(plain.size()));
    const std::size_t size =
        ZSTD_compressCCtx(context, space.data(), space.size(), plain.data(), plain.size(), kLevel);
    if (ZSTD_isError(size) || size >= plain.size()) return {};
    return std::span(space).first(size);
  }
};

TraceWriter::TraceWriter(OutputFile file, const Catalog& catalog)
    : file_(std::move(file)),
      catalog_(catalog),
      compressor_(std::make_unique<Compressor>()),
      ordered_(catalog) {}

TraceWriter::~TraceWriter() = default;

Result<std::unique_ptr<TraceWriter>> TraceWriter::create(const std::string& path,
                                                         const Catalog& catalog) {
  Result<OutputFile> file = OutputFile::create(path);
  if (!file.ok()) return file.error();
  std::array<std::uint8_t, kFileHeaderSize> header;
  write_file_header(header);
  if (Status status = file->append(header, {}); !status.ok()) return status.error();
  return std::unique_ptr<TraceWriter>(new TraceWriter(*std::move(file), catalog));
}

Status TraceWriter::fail(Error error) {
  error_ = std::move(error);
  return *error_;
}

Status TraceWriter::add(std::span<const Event> events) {
  if (error_) return *error_;
  if (!by_thread_.empty()) {
    // Behind whatever came with stamps of its own.
    ordered_.skip_to(last_stamp_);
  }
  return add_to(0, ordered_, events, std::nullopt);
}

Status TraceWriter::add_run(std::uint64_t stamp, std::span<const Event> events) {
  if (error_) return *error_;
  if (events.empty()) return Done{};
  const ThreadId thread = events.front().thread;
  if (thread >= kMaxThreads || stamp > kMaxStamp) {
    return fail(Error{file_.path() + ": cannot write a run of thread " + std::to_string(thread) +
                      " at stamp " + std::to_string(stamp) + ": too large"});
  }
  for (const Event& event : events) {
    if (event.thread != thread) {
      return fail(Error{file_.path() + ": cannot write a run that has events of two threads"});
    }
  }
  std::unique_ptr<ChunkEncoder>& encoder = by_thread_[thread];
  if (encoder == nullptr) {
    encoder = std::make_unique<ChunkEncoder>(catalog_);
  } else if (stamp <= encoder->last_stamp()) {
    return fail(Error{file_.path() + ": cannot write a run of thread " + std::to_string(thread) +
                      " at stamp " + std::to_string(stamp) + ", it is at " +
                      std::to_string(encoder->last_stamp())});
  }
  return add_to(thread + 1, *encoder, events, stamp);
}

Status TraceWriter::add_to(std::uint32_t lane, ChunkEncoder& encoder, std::span<const Event> events,
                           std::optional<std::uint64_t> stamp) {
  if (stamp && !events.empty()) encoder.begin_run(events.front().thread, *stamp);
  while (!events.empty()) {
    const std::size_t before = events.size();
    const char* wrong = encoder.add(events);
    events_ += before - events.size();
    if (wrong != nullptr) {
      return fail(Error{file_.path() + ": cannot write event " + std::to_string(events_) +
                        ": it refers to " + wrong});
    }
    if (!encoder.full()) continue;
    if (Status status = write_events(lane, encoder); !status.ok()) return status;
    if (stamp && !events.empty()) encoder.begin_run(events.front().thread, *stamp);
  }
  last_stamp_ = std::max(last_stamp_, encoder.last_stamp());
  return Done{};
}

Status TraceWriter::write_events(std::uint32_t lane, ChunkEncoder& encoder) {
  if (encoder.empty()) return Done{};
  if (Status status = write_catalog(); !status.ok()) return status;
  ChunkHeader header;
  header.kind = static_cast<std::uint8_t>(ChunkKind::kEvents);
  header.lane = lane;
  header.first_stamp = encoder.first_stamp();
  header.last_stamp = encoder.last_stamp();
  header.events = encoder.events();
  payload_.clear();
  encoder.finish(payload_);
  return write_chunk(header, payload_);
}

Status TraceWriter::write_catalog() {
  while (!mark_.covers(catalog_)) {
    ByteWriter blob;
    encode_catalog_since(catalog_, mark_, kCatalogPiece, blob);
    if (blob.size() > kMaxCatalogBytes) {
      return fail(Error{file_.path() + ": cannot write a catalog entry of " +
                        std::to_string(blob.size()) + " bytes"});
    }
    ChunkHeader header;
    header.kind = static_cast<std::uint8_t>(ChunkKind::kCatalog);
    if (Status status = write_chunk(header, blob.bytes()); !status.ok()) return status;
  }
  return Done{};
}

Status TraceWriter::write_chunk(ChunkHeader header, std::span<const std::uint8_t> payload) {
  std::span<const std::uint8_t> stored = compressor_->compress(payload);
  // A catalog must not expand beyond a bound, since a reader keeps it: rather store it plain.
  const bool is_catalog = header.kind == static_cast<std::uint8_t>(ChunkKind::kCatalog);
  const bool plain =
      stored.empty() || (is_catalog && payload.size() / kMaxCatalogRatio > stored.size());
  if (plain) stored = payload;
  header.codec = plain ? ChunkCodec::kStored : ChunkCodec::kZstd;
  header.stored_size = static_cast<std::uint32_t>(stored.size());
  header.plain_size = static_cast<std::uint32_t>(payload.size());
  header.payload_checksum = checksum64(stored);
  std::array<std::uint8_t, kChunkHeaderSize> bytes;
  write_chunk_header(header, bytes);
  if (Status status = file_.append(bytes, stored); !status.ok()) return fail(status.error());
  ++chunks_;
  return Done{};
}

Status TraceWriter::flush() {
  if (error_) return *error_;
  if (Status status = write_events(0, ordered_); !status.ok()) return status;
  for (auto& [thread, encoder] : by_thread_) {
    if (Status status = write_events(thread + 1, *encoder); !status.ok()) return status;
  }
  return write_catalog();
}

Status TraceWriter::finish() {
  if (finished_) return Done{};
  if (Status status = flush(); !status.ok()) return status;
  ChunkHeader header;
  header.kind = static_cast<std::uint8_t>(ChunkKind::kEnd);
  header.events = events_;
  ByteWriter facts;
  facts.varint(chunks_);
  if (Status status = write_chunk(header, facts.bytes()); !status.ok()) return status;
  if (Status status = file_.close(); !status.ok()) return fail(status.error());
  finished_ = true;
  return Done{};
}

}  // namespace heddle
