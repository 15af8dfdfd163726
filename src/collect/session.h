// One recorded process: the collector's end of its shared region, as a source of events.
//
// next() waits for the target to hand over a block, decodes it and gives the block back. When the
// target is gone (its end of the socket is closed, or its process is) what it wrote and did not
// hand over is decoded too, up to its last whole word, and the run's outcome is the last event. So
// the trace of a target that was killed lacks nothing that it had written.
#pragma once

#include "abi/abi.h"
#include "base/result.h"
#include "collect/decoder.h"
#include "trace/source.h"
#include "trace/taker.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace heddle::collect {

// How a process ended, from the one who waited for it.
struct ProcessEnd {
  bool signalled{};
  int value{};  // exit status or signal number
};

struct SessionOptions {
  // Asked once, after the target is gone: how did it end? May wait. Empty or no answer: nobody
  // knows.
  std::function<std::optional<ProcessEnd>(std::uint32_t pid)> process_end;
};

class Session : public EventSource {
 public:
  // Takes over a connection on which the target's hello is about to arrive. Answers it. An error is
  // for the user; the target has been told to go on unrecorded.
  static Result<std::unique_ptr<Session>> accept(int socket_fd, SessionOptions options);
  ~Session() override;

  Result<std::span<const Event>> next() override;

  const Catalog& catalog() const override { return catalog_; }

  // The same with executions (trace/execution.h). One of the two is used throughout. Valid until
  // the next call.
  ExecutionBatch next_executions();

  // Everything, to the end, to this taker, as executions.
  void deliver(EventTaker& taker);
  // … or through this filter.
  void deliver_shared(SharedFilter& filter);

  std::uint32_t pid() const;
  std::uint32_t parent_pid() const;
  bool flow() const { return flow_; }
  bool saw_units() const;  // instrumented code, be it of a version that cannot be recorded
  const Decoder& decoder() const { return *decoder_; }

  // The consumer gives up (full disk, say): the target goes on unrecorded.
  void abandon();

  // Ends the connection: a target that waits for its trace to be closed goes on.
  void hang_up();

 private:
  class Region;

  Session(int socket_fd, SessionOptions options);
  Status open(int memory_fd);
  bool wait_for_block();
  bool target_gone();
  void give_back_block();
  bool decode_block();
  void note_damage(const Status& status);
  void add_outcome();

  int socket_fd_;
  int process_fd_ = -1;
  SessionOptions options_;
  std::unique_ptr<Region> region_;
  Catalog catalog_;
  std::unique_ptr<Decoder> decoder_;
  EventBuffer buffer_;
  ExecutionBuffer executions_;
  std::uint64_t next_block_ = 0;
  std::optional<bool> block_is_whole_;  // while it is being decoded; cut: the last one
  std::size_t position_ = 0;            // within it
  bool flow_ = false;
  bool over_ = false;
  std::string damage_;
};

}  // namespace heddle::collect
