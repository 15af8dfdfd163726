// Fuzz targets for everything that reads a trace from outside, in one libFuzzer program; the
// environment variable HEDDLE_FUZZ names the target:
//
//   reader   a binary trace. Checksums are made right first, so that changes get past them.
//   text     the text notation
//   std      STD
//
// Whatever the bytes are: no crash, no hang, no large allocation, and every event that is delivered
// refers to what the catalog has. What text and STD accept is also written as a binary trace and
// read back.
#include "base/check.h"
#include "trace/checksum.h"
#include "trace/file.h"
#include "trace/file_format.h"
#include "trace/memory.h"
#include "trace/reader.h"
#include "trace/shapes.h"
#include "trace/std_format.h"
#include "trace/text.h"
#include "trace/writer.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

namespace heddle {
namespace {

constexpr std::size_t kMostEvents = 1u << 20;  // a few bytes may stand for millions, which is fine

// A file in memory with a path.
class MemoryFile {
 public:
  MemoryFile() : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) { HEDDLE_CHECK(fd_ >= 0); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(fd_); }

  void set(const std::uint8_t* data, std::size_t size) {
    HEDDLE_CHECK(::ftruncate(fd_, 0) == 0);
    HEDDLE_CHECK(::pwrite(fd_, data, size, 0) == static_cast<ssize_t>(size));
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }
  InputFile open() const {
    Result<InputFile> file = InputFile::open(path());
    HEDDLE_CHECK(file.ok());
    return *std::move(file);
  }

 private:
  int fd_;
};

// Reads to the end, to an error or to kMostEvents.
std::vector<Event> drain(EventSource& source, bool& clean) {
  std::vector<Event> all;
  clean = false;
  while (all.size() < kMostEvents) {
    const Result<std::span<const Event>> batch = source.next();
    if (!batch.ok()) {
      HEDDLE_CHECK(!batch.error().message.empty());
      HEDDLE_CHECK(batch.error().message.find('\n') == std::string::npos);
      return all;
    }
    if (batch->empty()) {
      clean = true;
      return all;
    }
    for (const Event& event : *batch) {
      HEDDLE_CHECK(is_known(event.kind));
      HEDDLE_CHECK(bad_reference(event, source.catalog()) == nullptr);
    }
    all.insert(all.end(), batch->begin(), batch->end());
  }
  return all;
}

// Makes all checksums right, and the size of a last chunk that is cut off.
void repair(std::vector<std::uint8_t>& bytes) {
  if (bytes.size() < kFileHeaderSize) return;
  const auto put32 = [&](std::size_t at, std::uint32_t value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
  };
  put32(20, static_cast<std::uint32_t>(checksum64({bytes.data(), 20})));
  for (std::size_t at = kFileHeaderSize; bytes.size() - at >= kChunkHeaderSize;) {
    const std::size_t room = bytes.size() - at - kChunkHeaderSize;
    std::uint32_t stored = 0;
    std::memcpy(&stored, bytes.data() + at + 12, sizeof stored);
    if (stored > room) {
      stored = static_cast<std::uint32_t>(room);
      put32(at + 12, stored);
    }
    const std::uint64_t sum = checksum64({bytes.data() + at + kChunkHeaderSize, stored});
    std::memcpy(bytes.data() + at + 48, &sum, sizeof sum);
    put32(at + 20, 0);
    put32(at + 20, static_cast<std::uint32_t>(checksum64({bytes.data() + at, kChunkHeaderSize})));
    at += kChunkHeaderSize + stored;
  }
}

void fuzz_reader(const std::uint8_t* data, std::size_t size) {
  static MemoryFile file;
  std::vector<std::uint8_t> bytes(data, data + size);
  if (!bytes.empty() && bytes.back() % 8 != 0) repair(bytes);
  file.set(bytes.data(), bytes.size());
  std::vector<Event> before;
  for (const bool salvage : {false, true}) {
    Result<std::unique_ptr<TraceReader>> reader =
        TraceReader::open(file.open(), {.salvage = salvage});
    if (!reader.ok()) return;
    bool clean = false;
    std::vector<Event> events = drain(**reader, clean);
    // Salvage delivers the same events and ends without an error.
    if (salvage) HEDDLE_CHECK(events == before && (clean || events.size() >= kMostEvents));
    before = std::move(events);
  }
}

void round_trip(const std::vector<Event>& events, const Catalog& catalog) {
  static MemoryFile file;
  Result<std::unique_ptr<TraceWriter>> writer = TraceWriter::create(file.path(), catalog);
  HEDDLE_CHECK(writer.ok());
  HEDDLE_CHECK((*writer)->add(events).ok());
  HEDDLE_CHECK((*writer)->finish().ok());
  Result<std::unique_ptr<TraceReader>> reader = TraceReader::open(file.open());
  HEDDLE_CHECK(reader.ok());
  const Result<Trace> again = read_all(**reader);
  HEDDLE_CHECK(again.ok() && again->events == events);
}

void fuzz_text_source(std::unique_ptr<EventSource> source) {
  bool clean = false;
  const std::vector<Event> events = drain(*source, clean);
  if (clean && events.size() % 4 == 0) round_trip(events, source->catalog());
}

void fuzz_text(const std::uint8_t* data, std::size_t size) {
  static MemoryFile file;
  file.set(data, size);
  fuzz_text_source(text_source(file.open(), {}));
  const Result<Trace> trace = parse_text({reinterpret_cast<const char*>(data), size});
  if (!trace.ok()) return;
  // The numbers of strings follow their first mention, so the texts are what must be the same.
  const std::string printed = print_text(*trace);
  const Result<Trace> again = parse_text(printed);
  HEDDLE_CHECK(again.ok() && again->events.size() == trace->events.size());
  HEDDLE_CHECK(print_text(*again) == printed);
}

void fuzz_std(const std::uint8_t* data, std::size_t size) {
  static MemoryFile file;
  file.set(data, size);
  fuzz_text_source(std_source(file.open()));
}

void (*target)(const std::uint8_t*, std::size_t) = nullptr;

}  // namespace
}  // namespace heddle

// From the environment, because libFuzzer starts itself again for some jobs.
extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  const char* chosen = std::getenv("HEDDLE_FUZZ");
  const std::string_view name = chosen != nullptr ? chosen : "";
  if (name == "reader") heddle::target = heddle::fuzz_reader;
  if (name == "text") heddle::target = heddle::fuzz_text;
  if (name == "std") heddle::target = heddle::fuzz_std;
  if (heddle::target != nullptr) return 0;
  std::fprintf(stderr, "usage: HEDDLE_FUZZ=reader|text|std heddle_fuzz [options] corpus...\n");
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  heddle::target(data, size);
  return 0;
}
