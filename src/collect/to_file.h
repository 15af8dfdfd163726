// A session into a trace file.
#pragma once

#include "base/result.h"
#include "collect/session.h"

#include <cstdint>
#include <string>

namespace heddle::collect {

struct ToFileOptions {
  std::string path;
  bool shared_only = false;
};

struct ToFileResult {
  std::uint64_t events = 0;
  std::uint64_t bytes = 0;
  std::size_t threads = 0;
  bool instrumented = false;  // some translation unit registered
  std::string problem;        // why the trace does not hold everything; empty when it does
};

// Reads the session to its end. When the file cannot be written the target goes on unrecorded, and
// `problem` says what is missing.
ToFileResult write_session(Session& session, const ToFileOptions& options);

}  // namespace heddle::collect
