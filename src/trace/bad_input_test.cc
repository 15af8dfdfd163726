// Files that are cut off, damaged, hostile, of another version, or no files at all: one line that
// says what and where, no crash, no hang, no large allocation; with salvage, everything before.
#include "trace/bytes.h"
#include "trace/catalog_codec.h"
#include "trace/checksum.h"
#include "trace/file_format.h"
#include "trace/memory.h"
#include "trace/random_trace.h"
#include "trace/reader.h"
#include "trace/shapes.h"
#include "trace/temp_file.h"
#include "trace/writer.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

namespace heddle {
namespace {

using Bytes = std::vector<std::uint8_t>;
using testing::RandomTrace;
using testing::TempDir;

// What comes of reading a file.
struct Reading {
  std::vector<Event> events;
  std::string error;
  std::string warning;
};

Reading read(const std::string& path, bool salvage) {
  Reading reading;
  auto source = open_trace(path, {.salvage = salvage});
  if (!source.ok()) {
    reading.error = source.error().message;
    return reading;
  }
  while (true) {
    const Result<std::span<const Event>> batch = (*source)->next();
    if (!batch.ok()) {
      reading.error = batch.error().message;
      // The end is an end: asking again gives the same.
      EXPECT_EQ((*source)->next().error().message, reading.error);
      break;
    }
    if (batch->empty()) break;
    reading.events.insert(reading.events.end(), batch->begin(), batch->end());
  }
  reading.warning = (*source)->warning();
  return reading;
}

bool is_prefix(const std::vector<Event>& events, const std::vector<Event>& all) {
  return events.size() <= all.size() && std::equal(events.begin(), events.end(), all.begin());
}

// A small trace of several chunks, and where each of its chunks starts.
class SmallTrace {
 public:
  SmallTrace() {
    RandomTrace random(5);
    Catalog catalog;
    auto writer = TraceWriter::create(dir.file("t"), catalog);
    for (int step = 0; step < 3; ++step) {
      random.grow(catalog, 2);
      const std::vector<Event> more = random.events(catalog, 20, 3);
      EXPECT_TRUE((*writer)->add(more).ok());
      events.insert(events.end(), more.begin(), more.end());
      chunk_ends.push_back({(*writer)->bytes(), before});
      EXPECT_TRUE((*writer)->flush().ok());
      before = events.size();
      chunk_ends.push_back({(*writer)->bytes(), before});
    }
    EXPECT_TRUE((*writer)->finish().ok());
    bytes = testing::bytes_of(dir.file("t"));
  }

  // How many events the whole chunks of the first `size` bytes have.
  std::size_t events_within(std::size_t size) const {
    std::size_t count = 0;
    for (const auto& [end, events_before] : chunk_ends) {
      if (end <= size) count = events_before;
    }
    return count;
  }

  TempDir dir;
  std::vector<Event> events;
  Bytes bytes;

 private:
  std::vector<std::pair<std::uint64_t, std::size_t>> chunk_ends;
  std::size_t before = 0;
};

TEST(BadInput, CutOffAtEveryByte) {
  const SmallTrace trace;
  const std::string path = trace.dir.file("cut");
  for (std::size_t size = 0; size < trace.bytes.size(); ++size) {
    SCOPED_TRACE("cut off at byte " + std::to_string(size));
    testing::write_bytes(path, std::span(trace.bytes).first(size));
    const Reading strict = read(path, false);
    ASSERT_EQ(strict.error.substr(0, path.size() + 2), path + ": ");
    ASSERT_TRUE(size == 0 || strict.error.find("byte ") != std::string::npos) << strict.error;
    ASSERT_TRUE(is_prefix(strict.events, trace.events));
    const Reading salvaged = read(path, true);
    ASSERT_TRUE(is_prefix(salvaged.events, trace.events));
    ASSERT_EQ(salvaged.events.size(), trace.events_within(size));
    if (size >= kFileHeaderSize) {
      ASSERT_EQ(salvaged.error, "");
      ASSERT_NE(salvaged.warning, "");
    }
  }
}

TEST(BadInput, EveryFlippedBitIsNoticed) {
  const SmallTrace trace;
  const std::string path = trace.dir.file("flipped");
  Bytes bytes = trace.bytes;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    SCOPED_TRACE("byte " + std::to_string(at));
    for (const int change : {1 << (at % 8), 0xff}) {
      bytes[at] = static_cast<std::uint8_t>(trace.bytes[at] ^ change);
      testing::write_bytes(path, bytes);
      const Reading strict = read(path, false);
      ASSERT_NE(strict.error, "");
      ASSERT_TRUE(is_prefix(strict.events, trace.events));
      if (at < kFileHeaderSize) continue;
      const Reading salvaged = read(path, true);
      ASSERT_TRUE(is_prefix(salvaged.events, trace.events));
      ASSERT_GE(salvaged.events.size(), trace.events_within(at));
      ASSERT_NE(salvaged.warning, "");
    }
    bytes[at] = trace.bytes[at];
  }
}

// ---- files made by hand
// ---------------------------------------------------------------------------

// A file of chunks with any content, whose checksums are right.
class Forger {
 public:
  explicit Forger(const std::function<void(std::uint8_t*)>& change = [](std::uint8_t*) {}) {
    bytes_.resize(kFileHeaderSize);
    write_file_header(std::span<std::uint8_t, kFileHeaderSize>(bytes_));
    change(bytes_.data());
    const auto check = static_cast<std::uint32_t>(checksum64(std::span(bytes_).first(20)));
    std::memcpy(bytes_.data() + 20, &check, sizeof check);
  }

  Forger& chunk(ChunkHeader header, const Bytes& payload) {
    if (header.stored_size == 0) header.stored_size = static_cast<std::uint32_t>(payload.size());
    if (header.plain_size == 0) header.plain_size = static_cast<std::uint32_t>(payload.size());
    header.payload_checksum = checksum64(payload);
    std::array<std::uint8_t, kChunkHeaderSize> head;
    write_chunk_header(header, head);
    bytes_.insert(bytes_.end(), head.begin(), head.end());
    bytes_.insert(bytes_.end(), payload.begin(), payload.end());
    ++chunks_;
    events_ += header.kind == 2 ? header.events : 0;
    return *this;
  }
  Forger& events(std::uint64_t count, const Bytes& payload) {
    ChunkHeader header;
    header.kind = static_cast<std::uint8_t>(ChunkKind::kEvents);
    header.events = count;
    return chunk(header, payload);
  }
  Forger& catalog(const Catalog& catalog) {
    ChunkHeader header;
    header.kind = static_cast<std::uint8_t>(ChunkKind::kCatalog);
    return chunk(header, encode_catalog(catalog));
  }
  Reading read(bool salvage = false) {
    ChunkHeader header;
    header.kind = static_cast<std::uint8_t>(ChunkKind::kEnd);
    header.events = events_;
    ByteWriter count;
    count.varint(chunks_);
    chunk(header, count.bytes());
    testing::write_bytes(dir_.file("t"), bytes_);
    Reading reading = heddle::read(dir_.file("t"), salvage);
    for (std::string* text : {&reading.error, &reading.warning}) {
      if (text->starts_with(dir_.file("t"))) *text = text->substr(dir_.file("t").size());
      if (const auto tail = text->find("; --salvage"); tail != std::string::npos) {
        text->resize(tail);
      }
    }
    return reading;
  }

 private:
  TempDir dir_;
  Bytes bytes_;
  std::uint64_t chunks_ = 0;
  std::uint64_t events_ = 0;
};

Bytes payload(const std::array<Bytes, kStreams>& streams) {
  ByteWriter out;
  out.varint(kStreams);
  for (const Bytes& stream : streams) out.varint(stream.size());
  for (const Bytes& stream : streams) out.raw(stream);
  return out.take();
}

constexpr std::uint8_t v(unsigned value) {
  return static_cast<std::uint8_t>(value << 1 | 1);  // a varint of one byte
}

const Bytes kThread0 = {v(0)};
const Bytes kRead4 = {1, 0, v(0), v(4)};

Bytes join(std::initializer_list<Bytes> parts) {
  Bytes all;
  for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// One read of address 8, then `followers` of the same shape.
Bytes reads(std::uint8_t followers = 0) {
  return payload({Bytes{kThreadOp, kShapeOp, static_cast<std::uint8_t>(0x08 | followers)}, Bytes{},
                  Bytes{v(16)}, Bytes{}, join({kThread0, kRead4})});
}

TEST(BadInput, TheForgerMakesValidFiles) {
  const Reading reading = Forger().events(1, reads()).read();
  EXPECT_EQ(reading.error, "");
  ASSERT_EQ(reading.events.size(), 1u);
  EXPECT_EQ(reading.events[0].kind, EventKind::kRead);
  EXPECT_EQ(reading.events[0].address, 8u);
}

TEST(BadInput, AnotherVersion) {
  EXPECT_EQ(Forger([](std::uint8_t* h) { h[8] = 2; }).events(1, reads()).read().error,
            ": made by another version of Heddle: trace format 2.0 (byte 8), this one reads 1.x");
  EXPECT_EQ(Forger([](std::uint8_t* h) { h[10] = 9; }).events(1, reads()).read().error, "");
  EXPECT_EQ(Forger([](std::uint8_t* h) { h[12] = 1; }).events(1, reads()).read().error,
            ": made by a newer Heddle: it uses features (byte 12) that this one does not know");
}

TEST(BadInput, WhatALaterVersionAddsIsPassedOver) {
  ChunkHeader unknown;
  unknown.kind = 99;
  unknown.codec = static_cast<ChunkCodec>(7);
  EXPECT_EQ(Forger().chunk(unknown, Bytes(100, 1)).events(1, reads()).read().events.size(), 1u);

  // An op with three bytes of its own.
  const Bytes op = payload({Bytes{kThreadOp, 0xfe, v(3), 1, 2, 3, kShapeOp, 0x08}, Bytes{},
                            Bytes{v(16)}, Bytes{}, join({kThread0, kRead4})});
  EXPECT_EQ(Forger().events(1, op).read().events.size(), 1u);

  // A kind of event, with an order that does not exist yet either, between two that we know.
  const Bytes kind = payload({Bytes{kThreadOp, kShapeOp, 0x08, kShapeOp, 0x08, 0x80}, Bytes{v(1)},
                              Bytes{v(16), v(16)}, Bytes{},
                              join({kThread0, kRead4, {200, 4, v(0), v(0), 77, 0, 0}})});
  const Reading reading = Forger().events(3, kind).read();
  EXPECT_EQ(reading.error, "");
  EXPECT_EQ(reading.events.size(), 2u);

  // A sixth stream.
  ByteWriter stream;
  stream.varint(kStreams + 1);
  const Bytes five = reads();
  stream.raw(std::span(five).subspan(1, kStreams));
  stream.varint(2);
  stream.raw(std::span(five).subspan(1 + kStreams));
  stream.raw(Bytes{1, 2});
  EXPECT_EQ(Forger().events(1, stream.bytes()).read().events.size(), 1u);
}

TEST(BadInput, AbsurdSizesAndCounts) {
  const auto error = [](auto change) {
    ChunkHeader header;
    header.kind = static_cast<std::uint8_t>(ChunkKind::kEvents);
    header.events = 1;
    change(header);
    return Forger().events(1, reads()).chunk(header, reads()).read().error;
  };
  const std::string at = ": damaged at byte 95: ";
  EXPECT_EQ(error([](ChunkHeader& h) { h.plain_size = 0xffffffff; }),
            at + "a chunk of 4294967295 bytes, more than there can be");
  EXPECT_EQ(error([](ChunkHeader& h) { h.stored_size = 0x7fffffff; }),
            at + "a chunk of 2147483647 bytes, more than there can be");
  EXPECT_EQ(error([](ChunkHeader& h) { h.stored_size = 4000; }), at + "cut off inside a chunk");
  EXPECT_EQ(error([](ChunkHeader& h) { h.events = std::uint64_t{1} << 60; }),
            at + "a chunk of 1152921504606846976 events, more than there can be");
  EXPECT_EQ(error([](ChunkHeader& h) { h.first_stamp = 1; }), at + "stamps that cannot be");
  EXPECT_EQ(error([](ChunkHeader& h) { h.last_stamp = ~std::uint64_t{0}; }),
            at + "stamps that cannot be");
  EXPECT_EQ(error([](ChunkHeader& h) { h.codec = static_cast<ChunkCodec>(9); }),
            at + "a compression that does not exist");
  EXPECT_EQ(error([](ChunkHeader& h) { h.events = 2; }),
            at + "fewer events than the chunk announces");
  EXPECT_EQ(error([](ChunkHeader& h) { h.last_stamp = 5; }),
            at + "a last stamp that is not the chunk's");
  EXPECT_EQ(error([](ChunkHeader& h) { h.plain_size = 40; }),
            at + "sizes of a chunk that do not agree");
}

TEST(BadInput, ChunksOfALaneThatGoBack) {
  ChunkHeader header;
  header.kind = static_cast<std::uint8_t>(ChunkKind::kEvents);
  header.events = 1;
  header.first_stamp = header.last_stamp = 5;
  ChunkHeader earlier = header;
  earlier.first_stamp = earlier.last_stamp = 4;
  Forger forger;
  EXPECT_EQ(forger.chunk(header, reads()).chunk(earlier, reads()).read().error,
            ": damaged at byte 95: a chunk that goes back in time");
  earlier.lane = 1;
  Forger lanes;
  EXPECT_EQ(lanes.chunk(header, reads()).chunk(earlier, reads()).read().error, "");
}

Bytes compressed(const Bytes& plain) {
  Bytes packed(ZSTD_compressBound(plain.size()));
  packed.resize(ZSTD_compress(packed.data(), packed.size(), plain.data(), plain.size(), 1));
  return packed;
}

TEST(BadInput, ChunksThatWouldExpandToGigabytes) {
  // 64 MiB of zeros, announced as 4 MiB: decompression stops there.
  const Bytes bomb = compressed(Bytes(64u << 20, 0));
  ChunkHeader header;
  header.kind = static_cast<std::uint8_t>(ChunkKind::kEvents);
  header.codec = ChunkCodec::kZstd;
  header.events = 1;
  header.plain_size = kMaxEventBytes;
  EXPECT_EQ(Forger().chunk(header, bomb).read().error,
            ": damaged at byte 24: a chunk that does not decompress to its size");
  header.plain_size = 0x80000000u;
  EXPECT_EQ(Forger().chunk(header, bomb).read().error,
            ": damaged at byte 24: a chunk of 2147483648 bytes, more than there can be");
  // A catalog is kept, so it may not expand much at all.
  header.kind = static_cast<std::uint8_t>(ChunkKind::kCatalog);
  header.plain_size = kMaxCatalogBytes;
  EXPECT_EQ(Forger().chunk(header, compressed(Bytes(kMaxCatalogBytes, 0))).read().error,
            ": damaged at byte 24: a catalog that expands more than it can");
}

// Each chunk says it has four million predicted events; they are delivered without being stored.
TEST(BadInput, AChunkThatPredictsMoreThanItHas) {
  ByteWriter ops;
  ops.raw(Bytes{kThreadOp, kShapeOp, 0x0f});
  ops.varint(std::uint64_t{1} << 60);
  const Bytes many =
      payload({ops.bytes(), Bytes{}, Bytes{v(16)}, Bytes{}, join({kThread0, kRead4})});
  EXPECT_EQ(Forger().events(kMaxChunkEvents, many).read().error,
            ": damaged at byte 24: more events than the chunk has");
  EXPECT_EQ(Forger().events(3, reads(3)).read().error,
            ": damaged at byte 24: more events than the chunk has");
}

TEST(BadInput, ReferencesToWhatDoesNotExist) {
  const auto error = [](const Bytes& definition, const Bytes& thread = kThread0) {
    const Bytes chunk = payload({Bytes{kThreadOp, kShapeOp, 0x08}, Bytes{}, Bytes{v(16)}, Bytes{},
                                 join({thread, definition})});
    Catalog catalog;
    catalog.strings.intern("only");
    const std::string text = Forger().catalog(catalog).events(1, chunk).read().error;
    return text.empty() ? text : text.substr(text.rfind(": ") + 2);
  };
  const auto kind = [](EventKind k) { return static_cast<std::uint8_t>(k); };
  EXPECT_EQ(error(kRead4), "");
  EXPECT_EQ(error({1, 0, v(2), v(4)}), "a site that is not in the catalog");
  EXPECT_EQ(error({1, 0, v(1), v(4)}), "a shape with numbers too large");  // site -1
  EXPECT_EQ(error({kind(EventKind::kEnter), 8, v(0), v(0), v(1)}),
            "a function that is not in the catalog");
  EXPECT_EQ(error({kind(EventKind::kSegment), 8, v(0), v(0), v(1)}),
            "a segment that is not in the catalog");
  EXPECT_EQ(error({kind(EventKind::kMark), 8, v(0), v(0), v(1)}), "");
  EXPECT_EQ(error({kind(EventKind::kMark), 8, v(0), v(0), v(2)}),
            "a string that is not in the catalog");
  EXPECT_EQ(error({1, 4, v(0), v(4), 9, 0, 0}), "a memory order that does not exist");
  EXPECT_EQ(error({1, 16, v(0), v(4)}), "a shape with fields that do not exist");
  EXPECT_EQ(error({1, 1, v(0), v(4)}), "a shape whose value is of the wrong sort");
  EXPECT_EQ(error({1, 0, v(0)}), "a stream that ends too early");
  ByteWriter large;
  large.varint(kMaxThreads);
  EXPECT_EQ(error(kRead4, large.bytes()), "a thread number that is too large");
  EXPECT_EQ(error({kind(EventKind::kFork), 8, v(0), v(0), 0, 0, 0, 0, 0, 0, 0, 0, 1}),
            "a thread number that is too large");
}

TEST(BadInput, OpsThatReferToNothing) {
  const auto error = [](const Bytes& ops, const Bytes& indices = {}) {
    const Bytes chunk =
        payload({ops, indices, Bytes{v(16)}, Bytes{}, join({kThread0, kRead4, {v(9)}})});
    const std::string text = Forger().events(1, chunk).read().error;
    return text.empty() ? text : text.substr(text.rfind(": ") + 2);
  };
  EXPECT_EQ(error({kShapeOp}), "a chunk that does not start with a thread");
  EXPECT_EQ(error({}), "a chunk that does not start with a thread");
  EXPECT_EQ(error({kThreadOp, kShapeOp, 0x88}, {v(2)}), "a shape that was not defined");
  EXPECT_EQ(error({kThreadOp, kShapeOp, kFirstSpecial + 1}), "a thread that was not introduced");
  EXPECT_EQ(error({kThreadOp, kShapeOp, kSwitchOp}), "a thread that was not introduced");
  EXPECT_EQ(error({kThreadOp, kShapeOp, kFirstSpecial}), "a stamp beyond the chunk's last");
  EXPECT_EQ(error({kThreadOp, kShapeOp, kGapOp}), "a stamp beyond the chunk's last");
  EXPECT_EQ(error({kThreadOp, kShapeOp, 0x08}), "bytes that nothing refers to");
  EXPECT_EQ(error({kThreadOp, kShapeOp, 0xff, v(60)}), "a stream that ends too early");
}

// A definition of two bytes that makes thousands of shapes, over and over.
TEST(BadInput, TooManyShapes) {
  Catalog catalog;
  Site site;
  site.kind = EventKind::kRead;
  catalog.sites.push_back(site);
  Segment segment;
  segment.items.resize(kMaxPrimedItems, {1, kNoRegister, {}, {}});
  catalog.segments.push_back(segment);
  const Bytes define = {static_cast<std::uint8_t>(EventKind::kSegment), 8, v(0), v(0), v(1)};
  Bytes ops = {kThreadOp};
  Bytes definitions = kThread0;
  for (int i = 0; i < 1000; ++i) {
    ops.push_back(kShapeOp);
    definitions.insert(definitions.end(), define.begin(), define.end());
  }
  const std::string error = Forger()
                                .catalog(catalog)
                                .events(0, payload({ops, Bytes{}, Bytes{}, Bytes{}, definitions}))
                                .read()
                                .error;
  EXPECT_NE(error.find("more shapes than there can be"), std::string::npos) << error;
}

// Any change to a payload, with checksums that are right: no crash (the asan build looks closely),
// and whatever is delivered refers to what exists.
TEST(BadInput, RandomChangesOfPayloads) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomTrace random(seed);
    Catalog catalog;
    random.grow(catalog, 8);
    ChunkEncoder encoder(catalog);
    const std::vector<Event> events = random.events(catalog, 200, 3);
    std::span<const Event> rest = events;
    ASSERT_EQ(encoder.add(rest), nullptr);
    ChunkHeader header;
    header.kind = static_cast<std::uint8_t>(ChunkKind::kEvents);
    header.events = encoder.events();
    header.first_stamp = encoder.first_stamp();
    header.last_stamp = encoder.last_stamp();
    Bytes original;
    encoder.finish(original);
    for (int i = 0; i < 100; ++i) {
      Bytes changed = original;
      for (std::uint64_t n = 1 + random.below(4); n > 0; --n) {
        changed[random.below(changed.size())] = static_cast<std::uint8_t>(random.any());
      }
      changed.insert(changed.end(), ChunkDecoder::kPadding, 0xff);
      ChunkDecoder decoder;
      if (decoder.start(header, changed, catalog) != nullptr) continue;
      std::vector<Event> out(random.one_in(2) ? 7 : 300);
      std::size_t total = 0;
      while (!decoder.done()) {
        const std::size_t count =
            decoder.decode(out, random.one_in(9) ? decoder.stamp() + 1 : kMaxStamp + 1);
        total += count;
        for (std::size_t k = 0; k < count; ++k) {
          ASSERT_TRUE(is_known(out[k].kind));
          ASSERT_EQ(bad_reference(out[k], catalog), nullptr);
        }
      }
      ASSERT_LE(total, header.events);
    }
  }
}

// ---- no files at all
// ------------------------------------------------------------------------------

TEST(BadInput, WhatIsNoTraceFile) {
  const TempDir dir;
  const auto error = [](const std::string& path) { return read(path, false).error; };
  EXPECT_EQ(error(dir.file("none")), dir.file("none") + ": cannot open: No such file or directory");
  EXPECT_EQ(error(dir.file("")), dir.file("") + ": is a directory, not a trace file");
  testing::write_bytes(dir.file("empty"), {});
  EXPECT_EQ(error(dir.file("empty")), dir.file("empty") + ": is empty, there is no trace in it");
  ASSERT_EQ(::mkfifo(dir.file("fifo").c_str(), 0600), 0);
  EXPECT_EQ(error(dir.file("fifo")), dir.file("fifo") + ": is a pipe, not a trace file");
  EXPECT_EQ(error("/dev/zero"), "/dev/zero: is a device, not a trace file");
  if (::geteuid() != 0) {  // nothing is unreadable for root
    testing::write_bytes(dir.file("secret"), Bytes{1});
    ASSERT_EQ(::chmod(dir.file("secret").c_str(), 0), 0);
    EXPECT_EQ(error(dir.file("secret")), dir.file("secret") + ": cannot open: Permission denied");
  }
}

TEST(BadInput, SomethingBehindTheEnd) {
  const SmallTrace trace;
  Bytes bytes = trace.bytes;
  bytes.push_back(0);
  testing::write_bytes(trace.dir.file("longer"), bytes);
  const Reading reading = read(trace.dir.file("longer"), false);
  EXPECT_NE(reading.error.find("something follows the end"), std::string::npos) << reading.error;
  EXPECT_EQ(reading.events, trace.events);
}

}  // namespace
}  // namespace heddle
