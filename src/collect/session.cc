#include "collect/session.h"

#include "trace/event.h"
#include "trace/loop_walk.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace heddle::collect {
namespace {

constexpr std::uint64_t kMostBlocks = 1u << 16;
constexpr std::uint64_t kMostSideBytes = std::uint64_t{1} << 32;

long futex(std::uint64_t* word, int operation, std::uint32_t value, const timespec* timeout) {
  return syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(word), operation, value, timeout,
                 nullptr, 0);
}

struct Hello {
  heddle_hello message{};
  int memory_fd = -1;
};

Result<Hello> receive_hello(int socket_fd) {
  Hello hello;
  iovec data{&hello.message, sizeof hello.message};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got;
  do {
    got = recvmsg(socket_fd, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
      std::memcpy(&hello.memory_fd, CMSG_DATA(header), sizeof hello.memory_fd);
    }
  }
  if (got != static_cast<ssize_t>(sizeof hello.message) ||
      hello.message.magic != HEDDLE_SHARED_MAGIC || hello.memory_fd < 0) {
    if (hello.memory_fd >= 0) close(hello.memory_fd);
    return Error{"a connection that is not from a program built with heddle-cc or heddle-c++"};
  }
  if (hello.message.abi_version != HEDDLE_ABI_VERSION) {
    close(hello.memory_fd);
    return Error{fmt::format(
        "process {} runs with a runtime of interface version {}, this command has version {}; "
        "use the command and the runtime library of one installation",
        hello.message.pid, hello.message.abi_version, HEDDLE_ABI_VERSION)};
  }
  return hello;
}

void answer(int socket_fd, char word) {
  (void)send(socket_fd, &word, 1, MSG_NOSIGNAL);
}

}  // namespace

// The mapped memfd. The target can write to it at any time, so every number in its header is read
// once, checked, and kept here.
class Session::Region {
 public:
  static Result<std::unique_ptr<Region>> map(int memory_fd) {
    struct stat status{};
    heddle_shared header{};
    if (fstat(memory_fd, &status) != 0 ||
        pread(memory_fd, &header, sizeof header, 0) != static_cast<ssize_t>(sizeof header) ||
        header.magic != HEDDLE_SHARED_MAGIC || header.abi_version != HEDDLE_ABI_VERSION) {
      close(memory_fd);
      return Error{"the program's shared memory is not what it says"};
    }
    const std::uint64_t ring =
        std::uint64_t{header.block_count} * header.block_words * sizeof(std::uint64_t);
    if (header.block_count < 2 || header.block_count > kMostBlocks ||
        header.block_words != HEDDLE_BLOCK_WORDS || header.ring_offset != HEDDLE_HEADER_BYTES ||
        header.side_offset != header.ring_offset + ring ||
        static_cast<std::uint64_t>(status.st_size) < header.side_offset) {
      close(memory_fd);
      return Error{"the program's shared memory has an impossible shape"};
    }
    const std::uint64_t bytes = header.side_offset;
    void* mapping = mmap(nullptr, bytes + kBehind, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED || mmap(mapping, bytes, PROT_READ | PROT_WRITE,
                                      MAP_SHARED | MAP_FIXED, memory_fd, 0) == MAP_FAILED) {
      const std::string reason = std::strerror(errno);
      if (mapping != MAP_FAILED) munmap(mapping, bytes + kBehind);
      close(memory_fd);
      return Error{fmt::format("cannot map the program's shared memory: {}", reason)};
    }
    auto region = std::unique_ptr<Region>(new Region);
    region->fd_ = memory_fd;
    region->bytes_ = bytes;
    region->shared_ = static_cast<heddle_shared*>(mapping);
    region->block_count_ = header.block_count;
    region->pid_ = header.pid;
    region->parent_pid_ = header.parent_pid;
    region->flow_ = header.level == HEDDLE_LEVEL_FLOW;
    return region;
  }

  ~Region() {
    munmap(shared_, bytes_ + kBehind);
    close(fd_);
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  heddle_shared* shared() { return shared_; }
  std::uint32_t pid() const { return pid_; }
  std::uint32_t parent_pid() const { return parent_pid_; }
  bool flow() const { return flow_; }

  std::span<const std::uint64_t> block(std::uint64_t number) const {
    const auto* words = reinterpret_cast<const std::uint64_t*>(
        reinterpret_cast<const char*>(shared_) + HEDDLE_HEADER_BYTES);
    return {words + (number % block_count_) * HEDDLE_BLOCK_WORDS, HEDDLE_BLOCK_WORDS};
  }

  // How many blocks the target has handed over, as far as that can be true.
  std::uint64_t submitted(std::uint64_t next) const {
    const std::uint64_t count = __atomic_load_n(&shared_->submitted, __ATOMIC_ACQUIRE);
    return std::clamp(count, next, next + block_count_);
  }

  // A target that sleeps found the ring full, and is woken when half of it is free.
  void release(std::uint64_t count) {
    __atomic_store_n(&shared_->released, count, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&shared_->target_sleeps, __ATOMIC_SEQ_CST) != 0 &&
        submitted(count) - count <= block_count_ / 2) {
      futex(&shared_->released, FUTEX_WAKE, 1, nullptr);
    }
  }

  std::vector<std::uint8_t> read_side(std::uint64_t offset, std::uint64_t length) const {
    if (offset < bytes_ || length > kMostSideBytes) return {};
    std::vector<std::uint8_t> bytes(length);
    std::size_t done = 0;
    while (done < length) {
      const ssize_t got =
          pread(fd_, bytes.data() + done, length - done, static_cast<off_t>(offset + done));
      if (got <= 0) return {};
      done += static_cast<std::size_t>(got);
    }
    return bytes;
  }

 private:
  // What a record of the last block may seem to reach while the target changes it (loop_walk.h).
  static constexpr std::uint64_t kBehind =
      (LoopWalk::kMostGathered + HEDDLE_BLOCK_WORDS) * sizeof(std::uint64_t);

  Region() = default;

  int fd_ = -1;
  std::uint64_t bytes_ = 0;
  heddle_shared* shared_ = nullptr;
  std::uint32_t block_count_ = 0;
  std::uint32_t pid_ = 0;
  std::uint32_t parent_pid_ = 0;
  bool flow_ = false;
};

Session::Session(int socket_fd, SessionOptions options)
    : socket_fd_(socket_fd), options_(std::move(options)) {}

Session::~Session() {
  abandon();
  hang_up();
  if (process_fd_ >= 0) close(process_fd_);
}

Result<std::unique_ptr<Session>> Session::accept(int socket_fd, SessionOptions options) {
  auto session = std::unique_ptr<Session>(new Session(socket_fd, std::move(options)));
  Result<Hello> hello = receive_hello(socket_fd);
  Status status = hello.ok() ? session->open(hello->memory_fd) : Status(hello.error());
  answer(socket_fd, status.ok() ? 1 : 0);
  if (!status.ok()) return status.error();
  return session;
}

Status Session::open(int memory_fd) {
  Result<std::unique_ptr<Region>> region = Region::map(memory_fd);
  if (!region.ok()) return region.error();
  region_ = std::move(*region);
  flow_ = region_->flow();
  // The peer's own word about its number may be of another namespace; the socket's is of ours.
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(socket_fd_, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid > 0 &&
      peer.pid != getpid()) {
    process_fd_ = static_cast<int>(syscall(SYS_pidfd_open, peer.pid, 0));
  }
  Region* raw = region_.get();
  decoder_ = std::make_unique<Decoder>(
      catalog_, flow_,
      [raw](std::uint64_t offset, std::uint64_t length) { return raw->read_side(offset, length); });
  return Done{};
}

std::uint32_t Session::pid() const {
  return region_->pid();
}
std::uint32_t Session::parent_pid() const {
  return region_->parent_pid();
}

bool Session::saw_units() const {
  return decoder_->saw_units() ||
         __atomic_load_n(&region_->shared()->foreign_units, __ATOMIC_RELAXED) != 0;
}

bool Session::target_gone() {
  pollfd waiting[2] = {{socket_fd_, POLLIN, 0}, {process_fd_, POLLIN, 0}};
  const int ready = poll(waiting, process_fd_ >= 0 ? 2 : 1, 0);
  if (ready <= 0) return false;
  if ((waiting[0].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) return true;
  return process_fd_ >= 0 && (waiting[1].revents & POLLIN) != 0;
}

// True: there is a block to decode. False: the target will not hand over another.
bool Session::wait_for_block() {
  heddle_shared* shared = region_->shared();
  for (;;) {
    if (region_->submitted(next_block_) > next_block_) return true;
    if (__atomic_load_n(&shared->ended, __ATOMIC_ACQUIRE) != 0 || target_gone()) {
      return region_->submitted(next_block_) > next_block_;
    }
    __atomic_store_n(&shared->collector_sleeps, 1, __ATOMIC_SEQ_CST);
    const std::uint64_t seen = __atomic_load_n(&shared->submitted, __ATOMIC_SEQ_CST);
    if (seen == next_block_ && __atomic_load_n(&shared->ended, __ATOMIC_SEQ_CST) == 0) {
      const timespec timeout{0, 20'000'000};
      futex(&shared->submitted, FUTEX_WAIT, static_cast<std::uint32_t>(seen), &timeout);
    }
    __atomic_store_n(&shared->collector_sleeps, 0, __ATOMIC_RELAXED);
  }
}

// What follows in the block cannot be read; the next block starts afresh.
void Session::note_damage(const Status& status) {
  if (status.ok() || !damage_.empty()) return;
  damage_ = fmt::format("process {}, block {}: {}", pid(), next_block_, status.error().message);
}

// The current block, from where decoding stopped the last time; true: all of it is decoded.
bool Session::decode_block() {
  const auto words = region_->block(next_block_);
  note_damage(
      decoder_->decode(words, *block_is_whole_ ? Tail::kWhole : Tail::kCut, buffer_, position_));
  return position_ == words.size();
}

void Session::deliver(EventTaker& taker) {
  for (EventOrdinal ordinal = 0;;) {
    const ExecutionBatch batch = next_executions();
    if (batch.empty()) return;
    ordinal = taker.on_executions(batch, ordinal);
  }
}

void Session::deliver_shared(SharedFilter& filter) {
  if (flow_) {
    deliver(filter);
    return;
  }
  decoder_->filter_into(&filter);
  for (;;) {
    give_back_block();
    if (over_) return;
    if (!block_is_whole_.has_value()) {
      block_is_whole_ = wait_for_block();
      position_ = 0;
    }
    if (decode_block() && !*block_is_whole_) {
      add_outcome();
      filter.take(buffer_.events());
    }
    filter.hand_over();  // it refers to words of the block
  }
}

Result<std::span<const Event>> Session::next() {
  buffer_.clear();
  while (!over_ && buffer_.events().empty()) {
    if (!block_is_whole_.has_value()) {
      block_is_whole_ = wait_for_block();
      position_ = 0;
    }
    if (!decode_block()) continue;
    const bool whole = *std::exchange(block_is_whole_, std::nullopt);
    if (whole) {
      region_->release(++next_block_);
      continue;
    }
    over_ = true;
    add_outcome();
  }
  return buffer_.events();
}

// The block that was decoded, if one was, is behind us.
void Session::give_back_block() {
  if (!block_is_whole_.has_value() || position_ != HEDDLE_BLOCK_WORDS) return;
  const bool whole = *std::exchange(block_is_whole_, std::nullopt);
  if (whole) {
    region_->release(++next_block_);
  } else {
    over_ = true;
  }
}

// Executions refer to the words of their block: it is given back when the next ones are asked for.
ExecutionBatch Session::next_executions() {
  buffer_.clear();
  executions_.resize(0);
  decoder_->execute_into(&executions_);
  while (executions_.size() == 0) {
    give_back_block();
    if (over_) break;
    if (!block_is_whole_.has_value()) {
      block_is_whole_ = wait_for_block();
      position_ = 0;
    }
    if (!decode_block() || *block_is_whole_) continue;
    add_outcome();
    executions_.add(Execution::events(1));
  }
  return {executions_.executions(), buffer_.events(), decoder_->shapes(), flow_};
}

void Session::add_outcome() {
  heddle_shared* shared = region_->shared();
  Event event;
  event.kind = EventKind::kOutcome;
  event.thread = decoder_->thread();
  RunEnd end = RunEnd::kLost;
  std::string text;
  if (__atomic_load_n(&shared->ended, __ATOMIC_ACQUIRE) != 0) {
    end = shared->end_kind <= static_cast<std::uint32_t>(RunEnd::kLost)
              ? static_cast<RunEnd>(shared->end_kind)
              : RunEnd::kLost;
    event.value = shared->end_value;
    event.thread = shared->end_thread < catalog_.threads.size() ? shared->end_thread : 0;
    text.assign(shared->end_text, std::min<std::uint64_t>(shared->end_text_size, HEDDLE_END_TEXT));
    if (shared->end_pc != 0) {
      event.site = decoder_->native_sites().site(shared->end_pc + 1, EventKind::kOutcome);
    }
  }
  if (text.empty()) text = decoder_->outcome_text();
  const std::optional<ProcessEnd> seen =
      options_.process_end ? options_.process_end(pid()) : std::nullopt;
  // Of an exit, whoever waited knows best: the program may have left without a word to anybody.
  if (seen.has_value() && (end == RunEnd::kLost || end == RunEnd::kExit)) {
    end = seen->signalled ? RunEnd::kSignal : RunEnd::kExit;
    event.value = static_cast<std::uint64_t>(seen->value);
  }
  for (const NativeStack& stack : decoder_->stacks()) {
    text += fmt::format("{}thread {}", text.empty() ? "" : "\n", stack.thread);
    for (const std::uint64_t frame : stack.frames) {
      // How the runtime waits is nobody's business.
      if (decoder_->native_sites().in_runtime(frame)) continue;
      text += "\n  " + decoder_->native_sites().describe(frame);
    }
  }
  if (!damage_.empty()) text += (text.empty() ? "" : "\n") + damage_;
  event.size = static_cast<std::uint32_t>(end) & 0x7fffffffu;
  event.address = text.empty() ? 0 : catalog_.strings.intern(text);
  buffer_.add(event);
}

void Session::abandon() {
  if (region_ == nullptr) return;
  heddle_shared* shared = region_->shared();
  __atomic_store_n(&shared->collector_gone, 1, __ATOMIC_SEQ_CST);
  futex(&shared->released, FUTEX_WAKE, INT_MAX, nullptr);
}

void Session::hang_up() {
  if (socket_fd_ >= 0) close(socket_fd_);
  socket_fd_ = -1;
}

}  // namespace heddle::collect
