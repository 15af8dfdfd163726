#include "trace/chunk_decoder.h"

#include "trace/bytes.h"
#include "trace/catalog_codec.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace heddle {
namespace {

// Which base an address code counts from: 0 the shape's last address, k the k-th last access.
constexpr std::uint8_t kBaseOf[8] = {0, 0, 1, 0, 1, 2, 3, 4};

inline Address base_of(const Shape& shape, const StreamPlace& place, unsigned base) {
  return base == 0 ? shape.event.address : place.history[(place.count - base) % kHistory];
}

// The parts are copied one by one: reading the event back as a whole would wait for the store of
// its address to finish.
inline void write(Event* out, const Shape& shape, Address address) {
  std::memcpy(static_cast<void*>(out), &shape.event, 16);
  out->address = address;
  out->value = shape.event.value;
}

}  // namespace

const char* ChunkDecoder::start(const ChunkHeader& header, std::vector<std::uint8_t> payload,
                                const Catalog& catalog) {
  catalog_ = &catalog;
  payload_ = std::move(payload);
  shapes_.clear();
  threads_.clear();
  places_.clear();
  place_ = {};
  last_site_ = 0;
  left_ = header.events;
  followers_ = 0;
  stamp_ = header.first_stamp;
  last_stamp_ = header.last_stamp;
  done_ = false;
  error_ = nullptr;

  const std::span<const std::uint8_t> bytes(payload_);
  ByteReader in(bytes.first(bytes.size() - kPadding));
  const std::uint64_t streams = in.varint();
  if (streams < kStreams || streams > 64) return "a number of streams that cannot be";
  std::uint64_t lengths[64] = {};
  for (std::uint64_t i = 0; i < streams; ++i) lengths[i] = in.varint();
  for (std::uint64_t i = 0; i < streams; ++i) {
    const std::span<const std::uint8_t> stream = in.raw(lengths[i]);
    if (i < kStreams) inputs_[i] = {stream.data(), stream.data() + stream.size()};
  }
  if (!in.ok() || !in.at_end()) return "streams that do not fit the chunk";
  --stamp_;  // the first run's op counts it up
  const Input& ops = inputs_[kOps];
  if (header.events != 0 && (ops.at == ops.end || *ops.at != kThreadOp)) {
    return "a chunk that does not start with a thread";
  }
  if (ops.at != ops.end) {
    ++inputs_[kOps].at;
    if (!special(kThreadOp)) return error_;
  }
  return nullptr;
}

bool ChunkDecoder::fail(const char* what) {
  error_ = what;
  done_ = true;
  return false;
}

bool ChunkDecoder::take(Stream stream, std::uint64_t& value) {
  Input& input = inputs_[stream];
  if (input.at >= input.end) return fail("a stream that ends too early");
  value = get_varint(input.at);
  return true;
}

bool ChunkDecoder::begin_run(std::uint64_t slot) {
  if (slot >= threads_.size()) return fail("a thread that was not introduced");
  if (stamp_ >= last_stamp_ && stamp_ + 1 != 0) return fail("a stamp beyond the chunk's last");
  ++stamp_;
  places_[slot_] = place_;
  slot_ = slot;
  place_ = places_[slot];
  return true;
}

bool ChunkDecoder::special(std::uint8_t op) {
  if (op < kFirstSpecial + kDirectSlots) return begin_run(op - kFirstSpecial);
  std::uint64_t value = 0;
  switch (op) {
    case kSwitchOp:
      return take(kDefinitions, value) && begin_run(value);
    case kThreadOp:
      if (!take(kDefinitions, value)) return false;
      if (value >= kMaxThreads) return fail("a thread number that is too large");
      if (shapes_.size() >= kMaxShapes) return fail("more shapes than there can be");
      threads_.push_back(static_cast<ThreadId>(value));
      places_.emplace_back().shape = static_cast<std::uint32_t>(shapes_.size());
      shapes_.emplace_back().deliver = 0;
      return begin_run(threads_.size() - 1);
    case kGapOp:
      if (!take(kDefinitions, value)) return false;
      if (value > last_stamp_ - stamp_) return fail("a stamp beyond the chunk's last");
      stamp_ += value;
      return true;
    case kShapeOp:
      return define_shape();
    default: {  // of a later version
      if (!take(kOps, value)) return false;
      Input& ops = inputs_[kOps];
      if (ops.at > ops.end || value > static_cast<std::uint64_t>(ops.end - ops.at)) {
        return fail("a stream that ends too early");
      }
      ops.at += value;
      return true;
    }
  }
}

bool ChunkDecoder::define_shape() {
  Input& in = inputs_[kDefinitions];
  if (in.end - in.at < 2) return fail("a stream that ends too early");
  Event event;
  event.kind = static_cast<EventKind>(*in.at++);
  const std::uint8_t fields = *in.at++;
  std::uint64_t site = 0;
  std::uint64_t size = 0;
  if (!take(kDefinitions, site) || !take(kDefinitions, size)) return false;
  if ((fields & ~kKnownFields) != 0) return fail("a shape with fields that do not exist");
  if ((fields & kOrdered) != 0) {
    if (in.end - in.at < 3) return fail("a stream that ends too early");
    event.order = static_cast<MemoryOrder>(*in.at++);
    event.mode = static_cast<LockMode>(*in.at++);
    event.outcome = static_cast<OpOutcome>(*in.at++);
  }
  if ((fields & kFixedValue) != 0 && !take(kDefinitions, event.value)) return false;
  site = last_site_ + unzigzag(site);
  if (site > 0xffffffffu || size > 0x7fffffffu) return fail("a shape with numbers too large");
  last_site_ = event.site = static_cast<SiteId>(site);
  event.size = static_cast<std::uint32_t>(size) & 0x7fffffffu;
  event.has_value = (fields & kHasValue) != 0;
  event.thread = threads_[slot_];

  const auto index = static_cast<std::uint32_t>(shapes_.size());
  if (index >= kMaxShapes - kMaxPrimedItems) return fail("more shapes than there can be");
  if (is_known(event.kind)) {
    if (const char* bad = bad_reference(event, *catalog_)) return fail(bad);
    if (has_varying_value(event) != ((fields & kVaryingValue) != 0)) {
      return fail("a shape whose value is of the wrong sort");
    }
    append_shapes(shapes_, event, *catalog_);
  } else {
    Shape& shape = shapes_.emplace_back();
    shape.varying = (fields & kVaryingValue) != 0;
    shape.deliver = 0;
  }
  Shape& now = shapes_[place_.shape];
  now.next[1] = now.next[0];
  now.next[0] = index;
  return true;
}

// `count` events whose shapes and addresses are as expected: the path nearly every event takes.
Event* ChunkDecoder::predicted(Event* out, std::uint64_t count) {
  Shape* const shapes = shapes_.data();
  StreamPlace place = place_;
  for (; count > 0; --count) {
    const std::uint32_t index = shapes[place.shape].next[0];
    Shape& shape = shapes[index];
    const Address address = base_of(shape, place, shape.base) + shape.offset;
    if (shape.varying != 0) {
      std::uint64_t difference = 0;
      if (!take(kValues, difference)) break;
      shape.event.value += unzigzag(difference);
    }
    write(out, shape, address);
    shape.event.address = address;
    out += shape.deliver;
    place.history[place.count % kHistory] = address;
    place.count += shape.access;
    place.shape = index;
  }
  place_ = place;
  return out;
}

std::size_t ChunkDecoder::decode(std::span<Event> space, std::uint64_t limit) {
  Event* out = space.data();
  Event* const end = out + space.size();
  Input& ops = inputs_[kOps];
  Input& addresses = inputs_[kAddresses];
  while (out != end && !done_ && stamp_ < limit) {
    if (followers_ > 0) {
      const std::uint64_t count =
          std::min<std::uint64_t>(followers_, static_cast<std::uint64_t>(end - out));
      out = predicted(out, count);
      followers_ -= count;
      continue;
    }
    if (ops.at >= ops.end) {
      finish();
      break;
    }
    const std::uint8_t op = *ops.at++;
    if (op >= kFirstSpecial) {
      special(op);
      continue;
    }
    std::uint64_t followers = op & 7;
    if (followers == kManyFollow) {
      std::uint64_t more = 0;
      if (!take(kOps, more)) break;
      if (more > kMaxChunkEvents) {
        fail("more events than the chunk has");
        break;
      }
      followers += more;
    }
    if (followers + 1 > left_) {
      fail("more events than the chunk has");
      break;
    }
    left_ -= followers + 1;
    followers_ = followers;

    Shape& now = shapes_[place_.shape];
    const auto code = static_cast<ShapeCode>(op >> 6);
    if (code == ShapeCode::kOther) {
      std::swap(now.next[0], now.next[1]);
    } else if (code == ShapeCode::kNamed) {
      std::uint64_t named = 0;
      if (!take(kIndices, named)) break;
      if (named >= shapes_.size()) {
        fail("a shape that was not defined");
        break;
      }
      now.next[1] = now.next[0];
      now.next[0] = static_cast<std::uint32_t>(named);
    }
    const unsigned how = (op >> 3) & 7;
    if (how == 0) {
      ++followers_;
      continue;
    }
    const std::uint32_t index = now.next[0];
    Shape& shape = shapes_[index];
    if (addresses.at >= addresses.end) {
      fail("a stream that ends too early");
      break;
    }
    const std::uint64_t difference = unzigzag(get_varint(addresses.at));
    const unsigned base = kBaseOf[how];
    const Address address = base_of(shape, place_, base) + difference;
    if (how >= static_cast<unsigned>(AddressCode::kStride)) {
      shape.base = static_cast<std::uint8_t>(base);
      shape.offset = difference;
    }
    if (shape.varying != 0) {
      std::uint64_t value = 0;
      if (!take(kValues, value)) break;
      shape.event.value += unzigzag(value);
    }
    write(out, shape, address);
    shape.event.address = address;
    out += shape.deliver;
    place_.history[place_.count % kHistory] = address;
    place_.count += shape.access;
    place_.shape = index;
  }
  return static_cast<std::size_t>(out - space.data());
}

void ChunkDecoder::finish() {
  done_ = true;
  if (left_ != 0) {
    error_ = "fewer events than the chunk announces";
    return;
  }
  if (stamp_ != last_stamp_) error_ = "a last stamp that is not the chunk's";
  for (const Input& input : inputs_) {
    if (input.at != input.end) error_ = "bytes that nothing refers to";
  }
}

}  // namespace heddle
