// Turns events into the payload of an Events chunk (trace/shapes.h explains how).
#pragma once

#include "trace/shapes.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace heddle {

class ChunkEncoder {
 public:
  // `catalog` must outlive the encoder and hold what the events refer to when they are added.
  explicit ChunkEncoder(const Catalog& catalog);

  // The next event begins a run of `thread` with this stamp, which is greater than the last one's
  // (or equal to it at the start of a chunk, when a run goes on there).
  void begin_run(ThreadId thread, std::uint64_t stamp);

  // Runs that get their stamp by themselves come after this one.
  void skip_to(std::uint64_t stamp) { floor_ = std::max(floor_, stamp); }

  // Takes events from the front until all are taken or the chunk is full. An event of another
  // thread than the one before, and the first of a chunk, begins a run with the next stamp.
  // Returns what is wrong with the first event left, or null.
  const char* add(std::span<const Event>& events);

  bool empty() const { return events_ == 0; }
  bool full() const;
  std::uint64_t events() const { return events_; }
  std::uint64_t first_stamp() const { return first_stamp_; }
  std::uint64_t last_stamp() const { return stamp_; }

  // Appends the payload and starts the next chunk.
  void finish(std::vector<std::uint8_t>& payload);

 private:
  // What the encoder saw when a shape's address was last guessed wrong: a distance that comes twice
  // is worth guessing.
  struct Miss {
    std::uint64_t stride = 0;
    std::uint64_t relative[kHistory] = {0, 0, 0, 0};
    bool valid = false;
  };
  struct Output {
    std::vector<std::uint8_t> space;
    std::uint8_t* end = nullptr;

    std::size_t size() const { return static_cast<std::size_t>(end - space.data()); }
  };

  void reset();
  void make_room();
  void put(Stream stream, std::uint64_t value);
  void put_byte(Stream stream, std::uint8_t value) { *outputs_[stream].end++ = value; }
  void close_op();
  std::uint32_t slot_of(ThreadId thread);
  ShapeCode choose_shape(const Event& event, StreamPlace& place);
  AddressCode choose_address(Shape& shape, Miss& miss, const StreamPlace& place, Address address);
  void define(const Event& event);
  std::uint32_t& index_entry(const Event& event);
  void grow_index();

  const Catalog& catalog_;
  std::array<Output, kStreams> outputs_;
  std::vector<Shape> shapes_;
  std::vector<Miss> misses_;          // by shape
  std::vector<std::uint32_t> index_;  // hash table of shapes, 0 = free (shape 0 is no event)
  std::size_t indexed_ = 0;
  std::vector<ThreadId> threads_;    // by slot
  std::vector<StreamPlace> places_;  // by slot
  StreamPlace* place_ = nullptr;     // of the current thread; null at the start of a chunk
  ThreadId thread_ = 0;
  SiteId last_site_ = 0;     // of the last definition
  std::size_t open_op_ = 0;  // 1 + the position of the op that may still get followers, or 0
  std::uint64_t followers_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t first_stamp_ = 0;
  std::uint64_t stamp_ = 0;
  std::uint64_t floor_ = 0;
};

}  // namespace heddle
