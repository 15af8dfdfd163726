#include "trace/chunk_encoder.h"

#include "base/check.h"
#include "trace/bytes.h"
#include "trace/catalog_codec.h"

#include <algorithm>
#include <cstring>

namespace heddle {
namespace {

// A chunk is full at any of these. They keep a reader's memory small (it holds one chunk per thread
// that overlaps) and what a crash can lose, while predictions have time to pay off.
constexpr std::size_t kFullBytes = 1u << 20;
constexpr std::size_t kFullShapes = 1u << 15;
constexpr std::size_t kFullThreads = 1u << 14;
constexpr std::uint64_t kFullEvents = 1u << 20;
constexpr std::size_t kBatch = 16;          // events between two looks at the streams' sizes
constexpr std::size_t kRoom = 64 * kBatch;  // more than they can write into any stream

// Everything of an event that is in its shape, as three words.
struct Head {
  std::uint64_t words[3];

  explicit Head(const Event& event) {
    std::memcpy(words, &event, 16);
    words[2] = has_varying_value(event) ? 0 : event.value;
  }
};

bool same_shape(const Shape& shape, const Event& event) {
  return std::memcmp(&shape.event, &event, 16) == 0 && shape.deliver != 0 &&
         (shape.varying != 0 || shape.event.value == event.value);
}

std::uint64_t hash(const Event& event) {
  const Head head(event);
  std::uint64_t h = 0;
  for (const std::uint64_t word : head.words) {
    h = (h ^ word) * 0x9e3779b97f4a7c15ull;
    h ^= h >> 32;
  }
  return h;
}

Address recent(const StreamPlace& place, unsigned k) {
  return place.history[(place.count - k) % kHistory];
}

Address guess(const Shape& shape, const StreamPlace& place) {
  return (shape.base == 0 ? shape.event.address : recent(place, shape.base)) + shape.offset;
}

}  // namespace

ChunkEncoder::ChunkEncoder(const Catalog& catalog) : catalog_(catalog) {
  reset();
}

void ChunkEncoder::reset() {
  for (Output& output : outputs_) output.end = output.space.data();
  shapes_.clear();
  misses_.clear();
  index_.assign(1024, 0);
  indexed_ = 0;
  threads_.clear();
  places_.clear();
  place_ = nullptr;
  last_site_ = 0;
  open_op_ = 0;
  followers_ = 0;
  events_ = 0;
}

void ChunkEncoder::put(Stream stream, std::uint64_t value) {
  outputs_[stream].end = put_varint(outputs_[stream].end, value);
}

bool ChunkEncoder::full() const {
  std::size_t bytes = 0;
  for (const Output& output : outputs_) bytes += output.size();
  return bytes >= kFullBytes || shapes_.size() >= kFullShapes || threads_.size() >= kFullThreads ||
         events_ >= kFullEvents;
}

void ChunkEncoder::make_room() {
  for (Output& output : outputs_) {
    const std::size_t size = output.size();
    if (output.space.size() - size >= kRoom) continue;
    output.space.resize(2 * size + 4 * kRoom);
    output.end = output.space.data() + size;
  }
}

void ChunkEncoder::close_op() {
  if (open_op_ == 0) return;
  outputs_[kOps].space[open_op_ - 1] |=
      static_cast<std::uint8_t>(std::min<std::uint64_t>(followers_, kManyFollow));
  if (followers_ >= kManyFollow) put(kOps, followers_ - kManyFollow);
  open_op_ = 0;
  followers_ = 0;
}

std::uint32_t ChunkEncoder::slot_of(ThreadId thread) {
  // Few threads, and most runs go back to a recent one.
  const auto found = std::find(threads_.rbegin(), threads_.rend(), thread);
  return static_cast<std::uint32_t>(threads_.rend() - found) - 1;  // wraps when there is none
}

void ChunkEncoder::begin_run(ThreadId thread, std::uint64_t stamp) {
  if (place_ == nullptr) make_room();
  close_op();
  if (place_ == nullptr) {
    first_stamp_ = stamp;
  } else if (stamp - stamp_ > 1) {
    put_byte(kOps, kGapOp);
    put(kDefinitions, stamp - stamp_ - 1);
  }
  stamp_ = stamp;
  thread_ = thread;
  std::uint32_t slot = slot_of(thread);
  if (slot < kDirectSlots) {
    put_byte(kOps, static_cast<std::uint8_t>(kFirstSpecial + slot));
  } else if (slot < threads_.size()) {
    put_byte(kOps, kSwitchOp);
    put(kDefinitions, slot);
  } else {
    put_byte(kOps, kThreadOp);
    put(kDefinitions, thread);
    slot = static_cast<std::uint32_t>(threads_.size());
    threads_.push_back(thread);
    places_.emplace_back().shape = static_cast<std::uint32_t>(shapes_.size());
    shapes_.emplace_back().deliver = 0;  // where the thread starts from
    misses_.emplace_back();
  }
  place_ = &places_[slot];
}

std::uint32_t& ChunkEncoder::index_entry(const Event& event) {
  const std::size_t mask = index_.size() - 1;
  std::size_t at = hash(event) & mask;
  while (index_[at] != 0 && !same_shape(shapes_[index_[at]], event)) at = (at + 1) & mask;
  return index_[at];
}

void ChunkEncoder::grow_index() {
  const std::vector<std::uint32_t> old = std::exchange(index_, {});
  index_.assign(old.size() * 2, 0);
  for (const std::uint32_t shape : old) {
    if (shape != 0) index_entry(shapes_[shape].event) = shape;
  }
}

void ChunkEncoder::define(const Event& event) {
  put_byte(kOps, kShapeOp);
  const bool varying = has_varying_value(event);
  const bool fixed = !varying && event.value != 0;
  const bool ordered = event.order != MemoryOrder::kPlain || event.mode != LockMode::kExclusive ||
                       event.outcome != OpOutcome::kOk;
  put_byte(kDefinitions, static_cast<std::uint8_t>(event.kind));
  put_byte(kDefinitions, static_cast<std::uint8_t>(
                             (varying ? kVaryingValue : 0) | (event.has_value ? kHasValue : 0) |
                             (ordered ? kOrdered : 0) | (fixed ? kFixedValue : 0)));
  put(kDefinitions, zigzag(std::uint64_t{event.site} - last_site_));
  put(kDefinitions, event.size);
  if (ordered) {
    put_byte(kDefinitions, static_cast<std::uint8_t>(event.order));
    put_byte(kDefinitions, static_cast<std::uint8_t>(event.mode));
    put_byte(kDefinitions, static_cast<std::uint8_t>(event.outcome));
  }
  if (fixed) put(kDefinitions, event.value);
  last_site_ = event.site;

  std::size_t shape = shapes_.size();
  append_shapes(shapes_, event, catalog_);
  misses_.resize(shapes_.size());
  for (; shape < shapes_.size(); ++shape) {
    if (shapes_[shape].deliver == 0) continue;
    if (indexed_ * 2 >= index_.size()) grow_index();
    std::uint32_t& entry = index_entry(shapes_[shape].event);
    indexed_ += entry == 0;
    entry = static_cast<std::uint32_t>(shape);
  }
}

// Makes the event's shape the first successor of the place's shape.
ShapeCode ChunkEncoder::choose_shape(const Event& event, StreamPlace& place) {
  {
    Shape& now = shapes_[place.shape];
    if (same_shape(shapes_[now.next[1]], event)) {
      std::swap(now.next[0], now.next[1]);
      return ShapeCode::kOther;
    }
  }
  std::uint32_t shape = index_entry(event);
  const bool known = shape != 0;
  if (!known) {
    shape = static_cast<std::uint32_t>(shapes_.size());
    define(event);
  } else {
    put(kIndices, shape);
  }
  Shape& now = shapes_[place.shape];  // define() may have moved it
  now.next[1] = now.next[0];
  now.next[0] = shape;
  return known ? ShapeCode::kNamed : ShapeCode::kNext;
}

AddressCode ChunkEncoder::choose_address(Shape& shape, Miss& miss, const StreamPlace& place,
                                         Address address) {
  const std::uint64_t stride = address - shape.event.address;
  std::uint64_t relative[kHistory];
  for (unsigned k = 1; k <= kHistory; ++k) relative[k - 1] = address - recent(place, k);
  auto code = AddressCode::kFromLast;
  if (miss.valid) {
    for (unsigned k = kHistory; k >= 1; --k) {
      if (relative[k - 1] == miss.relative[k - 1]) {
        code = static_cast<AddressCode>(static_cast<unsigned>(AddressCode::kRelative) + k - 1);
        shape.base = static_cast<std::uint8_t>(k);
        shape.offset = relative[k - 1];
      }
    }
    if (code == AddressCode::kFromLast && stride == miss.stride) {
      code = AddressCode::kStride;
      shape.base = 0;
      shape.offset = stride;
    }
  }
  miss.valid = true;
  miss.stride = stride;
  std::copy(std::begin(relative), std::end(relative), std::begin(miss.relative));
  std::uint64_t difference = stride;
  if (code >= AddressCode::kRelative) {
    difference = shape.offset;
  } else if (code == AddressCode::kFromLast && zigzag(relative[0]) < zigzag(stride)) {
    code = AddressCode::kFromPrevious;
    difference = relative[0];
  }
  put(kAddresses, zigzag(difference));
  return code;
}

const char* ChunkEncoder::add(std::span<const Event>& events) {
  while (!events.empty()) {
    if (full()) return nullptr;
    make_room();
    std::size_t left = std::min(events.size(), kBatch);
    for (; left > 0 && shapes_.size() < kFullShapes; --left, events = events.subspan(1)) {
      const Event& event = events.front();
      if (place_ == nullptr || event.thread != thread_) {
        if (event.thread >= kMaxThreads) return "a thread number that is too large";
        begin_run(event.thread, std::max(stamp_, floor_) + 1);
      }
      StreamPlace& place = *place_;
      auto shape_code = ShapeCode::kNext;
      std::uint32_t index = shapes_[place.shape].next[0];
      if (!same_shape(shapes_[index], event)) {
        if (!is_known(event.kind)) return "a kind of event that does not exist";
        if (const char* bad = bad_reference(event, catalog_)) return bad;
        close_op();
        shape_code = choose_shape(event, place);
        index = shapes_[place.shape].next[0];
      }
      Shape& shape = shapes_[index];
      auto address_code = AddressCode::kPredicted;
      if (guess(shape, place) != event.address) {
        address_code = choose_address(shape, misses_[index], place, event.address);
      }
      if (open_op_ != 0 && shape_code == ShapeCode::kNext &&
          address_code == AddressCode::kPredicted) {
        ++followers_;
      } else {
        close_op();
        open_op_ = outputs_[kOps].size() + 1;
        put_byte(kOps, static_cast<std::uint8_t>((static_cast<unsigned>(shape_code) << 6) |
                                                 (static_cast<unsigned>(address_code) << 3)));
      }
      if (shape.varying) {
        put(kValues, zigzag(event.value - shape.event.value));
        shape.event.value = event.value;
      }
      shape.event.address = event.address;
      place.history[place.count % kHistory] = event.address;
      place.count += shape.access;
      place.shape = index;
      ++events_;
    }
  }
  return nullptr;
}

void ChunkEncoder::finish(std::vector<std::uint8_t>& payload) {
  close_op();
  ByteWriter lengths;
  lengths.varint(kStreams);
  for (const Output& output : outputs_) lengths.varint(output.size());
  payload.insert(payload.end(), lengths.bytes().begin(), lengths.bytes().end());
  for (const Output& output : outputs_) {
    payload.insert(payload.end(), output.space.data(), output.space.data() + output.size());
  }
  reset();
}

}  // namespace heddle
