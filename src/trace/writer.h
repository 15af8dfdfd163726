// Writes trace files (docs/trace-format.md), while a program runs or from another trace.
//
//   Catalog catalog;                       // grows while events come
//   auto writer = TraceWriter::create("run.heddle", catalog);
//   if (!writer.ok()) …
//   if (Status s = (*writer)->add(events); !s.ok()) …
//   if (Status s = (*writer)->finish(); !s.ok()) …
//
// The file grows by whole chunks. Whenever writing fails (full disk, size limit), the error comes
// back from this call and from every later one, and the file ends with its last whole chunk. A file
// that was not finished, because of that or because the process died, reads as interrupted:
// OpenOptions::salvage delivers what it has.
#pragma once

#include "base/result.h"
#include "trace/catalog_codec.h"
#include "trace/chunk_encoder.h"
#include "trace/file.h"
#include "trace/file_format.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace heddle {

class TraceWriter {
 public:
  // `catalog` must outlive the writer. Entries may be added at any time before the events that
  // refer to them; those that are there must stay as they are (but a thread may get its name late).
  static Result<std::unique_ptr<TraceWriter>> create(const std::string& path,
                                                     const Catalog& catalog);
  ~TraceWriter();

  // Events that follow, in the one total order, everything that was added before.
  Status add(std::span<const Event> events);

  // A run: a stretch of one thread, at `stamp` in the total order. Runs of one thread come with
  // ascending stamps; those of different threads may come in any order, and readers sort them. For
  // recorders of threads that run in parallel.
  Status add_run(std::uint64_t stamp, std::span<const Event> events);

  // Writes what is still in memory: after this, a crash loses nothing that was added before. Each
  // call ends the chunks that are being filled, so it should not be called more than about once a
  // second.
  Status flush();

  // Flushes, marks the trace as complete and closes it.
  Status finish();

  std::uint64_t events() const { return events_; }
  std::uint64_t bytes() const { return file_.size(); }

 private:
  TraceWriter(OutputFile file, const Catalog& catalog);

  Status add_to(std::uint32_t lane, ChunkEncoder& encoder, std::span<const Event> events,
                std::optional<std::uint64_t> stamp);
  Status write_events(std::uint32_t lane, ChunkEncoder& encoder);
  Status write_catalog();
  Status write_chunk(ChunkHeader header, std::span<const std::uint8_t> payload);
  Status fail(Error error);

  struct Compressor;

  OutputFile file_;
  const Catalog& catalog_;
  CatalogMark mark_;
  std::unique_ptr<Compressor> compressor_;
  ChunkEncoder ordered_;                                         // lane 0: add()
  std::map<ThreadId, std::unique_ptr<ChunkEncoder>> by_thread_;  // lane thread + 1: add_run()
  std::vector<std::uint8_t> payload_;
  std::uint64_t last_stamp_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t chunks_ = 0;
  std::optional<Error> error_;
  bool finished_ = false;
};

}  // namespace heddle
