// A program that was started once and forks for every run (runtime/server.h): most of what a short
// run costs is the dynamic linker's work before it.
#pragma once

#include "base/result.h"
#include "hunt/controlled_run.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace heddle::hunt {

class ForkServer {
 public:
  // Starts the program up to its first constructor. Nothing when the program does not allow it: it
  // is a script, has threads before main, or is not under control at all.
  static std::optional<ForkServer> start(const RunRequest& request, const StatusPage& page);

  ForkServer(ForkServer&& other) noexcept;
  ForkServer(const ForkServer&) = delete;
  ForkServer& operator=(const ForkServer&) = delete;
  ~ForkServer();

  // One run, with these options besides those of `request`; the page is the one given to start().
  // An error: the server is gone.
  Result<RunReport> run(const std::vector<std::pair<std::string, std::string>>& options,
                        unsigned timeout, StatusPage& page);

 private:
  ForkServer() = default;

  int socket_ = -1;
  int process_ = -1;
};

}  // namespace heddle::hunt
