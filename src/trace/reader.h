// Reads trace files (docs/trace-format.md) as one total order.
//
// Opening reads the headers of all chunks into an index. Chunks are then decoded in the order of
// their stamps, as many at a time as overlap (one, unless threads were recorded in parallel), run
// by run. Memory holds the index, the catalog, the overlapping chunks and one batch of events.
//
// Nothing in the file is trusted. What is damaged is an error with its offset, given when the
// reading comes to it; a file without its End chunk is one that was interrupted, and damaged at its
// end. With OpenOptions::salvage the source ends there instead, and warning() says so.
#pragma once

#include "base/result.h"
#include "trace/chunk_decoder.h"
#include "trace/file.h"
#include "trace/file_format.h"
#include "trace/source.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace heddle {

// Whether a file that starts with these bytes is meant to be a binary trace.
bool is_binary_trace(std::span<const std::uint8_t> start);

class TraceReader final : public EventSource {
 public:
  // Facts about the file, from its index.
  struct Facts {
    std::uint64_t file_bytes = 0;
    std::uint64_t events = 0;  // of the whole chunks
    std::uint64_t event_chunks = 0;
    std::uint64_t event_bytes = 0;        // stored
    std::uint64_t event_plain_bytes = 0;  // before compression
    std::uint64_t catalog_bytes = 0;      // stored
    bool complete = false;                // has its End chunk
  };

  static Result<std::unique_ptr<TraceReader>> open(InputFile file, const OpenOptions& options = {});
  ~TraceReader() override;

  Result<std::span<const Event>> next() override;
  const Catalog& catalog() const override { return catalog_; }
  std::string warning() const override { return warning_; }
  std::string_view format() const override { return "binary"; }
  double fraction() const override;
  const Facts& facts() const { return facts_; }

 private:
  struct Chunk {
    std::uint64_t offset;
    ChunkHeader header;
  };
  struct Active {
    std::size_t chunk;  // its number in chunks_
    std::unique_ptr<ChunkDecoder> decoder;
  };
  struct Decompressor;

  TraceReader(InputFile file, const OpenOptions& options);

  Status read_index();
  void note_damage(std::uint64_t offset, const std::string& what);
  bool admit(const Chunk& chunk);
  Status read_payload(const Chunk& chunk, std::vector<std::uint8_t>& plain);
  Status read_catalogs_before(std::size_t chunk);
  Status open_chunk(std::size_t chunk);
  Status fill(std::size_t& filled);
  Error damaged(std::uint64_t offset, const std::string& what) const;

  InputFile file_;
  OpenOptions options_;
  Catalog catalog_;
  Facts facts_;
  std::vector<Chunk> chunks_;         // catalogs and events, as in the file
  std::vector<std::uint32_t> order_;  // Events chunks by first stamp
  std::size_t next_in_order_ = 0;
  std::size_t next_catalog_ = 0;  // chunks_ before this one have had their catalogs read
  std::unordered_map<std::uint32_t, std::uint64_t> lane_stamps_;  // while the index is read
  std::optional<Error> damage_;                                   // where the index ends
  std::vector<Active> active_;
  std::vector<std::unique_ptr<ChunkDecoder>> idle_;
  std::size_t active_bytes_ = 0;
  std::unique_ptr<Decompressor> decompressor_;
  std::vector<std::uint8_t> stored_;
  std::vector<Event> batch_;
  std::uint64_t delivered_ = 0;
  std::optional<Error> error_;
  bool ended_ = false;
  std::string warning_;
};

}  // namespace heddle
