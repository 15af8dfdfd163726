// Turns the payload of an Events chunk back into events (trace/shapes.h explains how). The payload
// is not trusted: whatever it holds, decoding ends, stays within its memory and refers to nothing
// that the catalog does not have.
#pragma once

#include "trace/file_format.h"
#include "trace/shapes.h"

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace heddle {

class ChunkDecoder {
 public:
  // Bytes behind the payload that must be readable, because varints are read in whole words.
  static constexpr std::size_t kPadding = 16;

  // `payload` is the plain payload followed by kPadding bytes of any content. Returns what is wrong
  // with it, or null.
  const char* start(const ChunkHeader& header, std::vector<std::uint8_t> payload,
                    const Catalog& catalog);

  // The stamp of the run that comes next (or goes on).
  std::uint64_t stamp() const { return stamp_; }
  bool done() const { return done_; }
  const char* error() const { return error_; }  // once done

  // Writes events of runs whose stamp is below `limit` into `out`, and returns how many. Fewer than
  // fit means: the next run is not below the limit, or done().
  std::size_t decode(std::span<Event> out, std::uint64_t limit);

  // The memory of the last payload, for the next one.
  std::vector<std::uint8_t> take_buffer() { return std::move(payload_); }

 private:
  struct Input {
    const std::uint8_t* at = nullptr;
    const std::uint8_t* end = nullptr;
  };

  bool fail(const char* what);
  bool take(Stream stream, std::uint64_t& value);
  bool special(std::uint8_t op);
  bool begin_run(std::uint64_t slot);
  bool define_shape();
  Event* predicted(Event* out, std::uint64_t count);
  void finish();

  const Catalog* catalog_ = nullptr;
  std::vector<std::uint8_t> payload_;
  std::array<Input, kStreams> inputs_;
  std::vector<Shape> shapes_;
  std::vector<ThreadId> threads_;    // by slot
  std::vector<StreamPlace> places_;  // by slot
  StreamPlace place_;                // of the current slot, kept here while it runs
  std::uint64_t slot_ = 0;
  SiteId last_site_ = 0;
  std::uint64_t left_ = 0;       // events that the header still allows
  std::uint64_t followers_ = 0;  // predicted events still to come
  std::uint64_t stamp_ = 0;
  std::uint64_t last_stamp_ = 0;
  bool done_ = true;
  const char* error_ = nullptr;
};

}  // namespace heddle
