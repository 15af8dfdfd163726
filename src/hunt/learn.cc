#include "hunt/learn.h"

#include "detect/avio/avio.h"

#include <cstdio>
#include <cstdlib>
#include <set>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

namespace heddle::hunt {
namespace {

// Where a run's output goes: nowhere, or where the judge will read it.
class Output {
 public:
  static Result<Output> make(bool kept) {
    Output out;
    if (!kept) {
      out.fd_ = open("/dev/null", O_WRONLY | O_CLOEXEC);
    } else {
      std::FILE* file = std::tmpfile();
      if (file != nullptr) {
        out.fd_ = fcntl(fileno(file), F_DUPFD_CLOEXEC, 3);
        std::fclose(file);
      }
    }
    if (out.fd_ < 0)
      return Error{"cannot keep the program's output; set TMPDIR to a writable folder"};
    return out;
  }
  Output(Output&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output() {
    if (fd_ >= 0) close(fd_);
  }
  int fd() const { return fd_; }

 private:
  Output() = default;
  int fd_ = -1;
};

bool judged_as_passed(const std::string& judge, const Output& output, int status) {
  lseek(output.fd(), 0, SEEK_SET);
  const std::string value = std::to_string(status);
  const pid_t child = fork();
  if (child == 0) {
    dup2(output.fd(), STDIN_FILENO);
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDOUT_FILENO);
    setenv("HEDDLE_STATUS", value.c_str(), 1);
    execl("/bin/sh", "sh", "-c", judge.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  int end = 0;
  while (child > 0 && waitpid(child, &end, 0) < 0 && errno == EINTR) continue;
  return child > 0 && WIFEXITED(end) && WEXITSTATUS(end) == 0;
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

std::string file_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

// Of the module that is the program.
std::string build_id(const Catalog& catalog, const std::string& program) {
  for (const Module& module : catalog.modules) {
    if (file_name(catalog.text(module.path)) == program) {
      return std::string(catalog.text(module.build_id));
    }
  }
  return {};
}

// Instructions (0, I) and pairs (P, I) that passing runs split too often.
using Dropped = std::set<std::pair<avio::SiteKey, avio::SiteKey>>;
Dropped dropped(const avio::Invariants& invariants) {
  Dropped out;
  for (const auto& [i, site] : invariants.sites()) {
    if (site.split.empty() || invariants.holds(site)) continue;
    out.insert({0, i});
    for (const auto& [p, runs] : site.split) {
      if (runs.size() > invariants.threshold()) out.insert({p, i});
    }
  }
  return out;
}

}  // namespace

std::string program_name(const std::string& path) {
  return file_name(path);
}

Result<LearnResult> learn(const LearnOptions& options, const avio::Invariants& known,
                          const std::function<void(const LearnProgress&)>& progress) {
  LearnResult out;
  const std::string program = program_name(options.request.command.at(0));
  out.invariants = avio::Invariants(program, options.threshold);
  if (!known.runs().empty() || !known.failed_runs().empty()) {
    const Status merged = out.invariants.merge(known);
    if (!merged.ok()) return merged.error();
  }
  Dropped gone = dropped(out.invariants);
  LearnProgress now;
  while (out.runs < options.runs) {
    now.seed = options.first_seed + out.runs;
    ObserveRequest request = options.request;
    request.runtime.emplace_back("seed", std::to_string(now.seed));
    Result<Output> output = Output::make(!options.judge.empty());
    if (!output.ok()) return output.error();
    request.output_fd = output->fd();

    avio::RunEvidence evidence;
    avio::RunText text;
    text.command = joined(request.command);
    text.seed = std::to_string(now.seed);
    Result<ObservedEnd> end = observe(
        request,
        [&](const Catalog& catalog) {
          return std::make_unique<avio::Avio>(
              catalog, avio::Options{.granule = options.granule, .learn = true});
        },
        [&](Detector& detector, const Catalog& catalog) {
          avio::RunEvidence seen = static_cast<avio::Avio&>(detector).evidence();
          evidence.executed.merge(seen.executed);
          evidence.made.merge(seen.made);
          evidence.split.merge(seen.split);
          if (text.build.empty()) text.build = build_id(catalog, program);
        });
    if (!end.ok()) return end.error();
    ++out.runs;
    if (!end->instrumented) {
      return Error{
          fmt::format("{} made no access that could be seen: build it with heddle-cc or "
                      "heddle-c++",
                      request.command[0])};
    }
    now.run = out.runs;
    now.end = describe(*end);
    now.passed = options.judge.empty() ? end->passed()
                                       : end->end == RunEnd::kExit &&
                                             judged_as_passed(options.judge, *output, end->value);
    const std::string id = evidence.id(text);
    now.dropped = 0;
    if (now.passed) {
      ++out.passed;
      out.invariants.add(id, text, evidence);
      Dropped gone_now = dropped(out.invariants);
      now.dropped = gone_now.size() - gone.size();
      now.stable_runs = now.dropped == 0 ? now.stable_runs + 1 : 0;
      gone = std::move(gone_now);
    } else {
      out.invariants.add_failed(id);
    }
    now.invariants = out.invariants.invariant_count();
    now.pairs = out.invariants.pair_count();
    if (progress) progress(now);
    if (options.until_stable != 0 && now.stable_runs >= options.until_stable) {
      out.stable = true;
      break;
    }
  }
  return out;
}

Status check_same_program(const avio::Invariants& invariants, const Catalog& catalog,
                          const std::string& file) {
  // A trace written by hand has no modules: its sites must do.
  bool known_site = false, has_modules = false;
  for (const Module& module : catalog.modules) {
    if (catalog.text(module.path).empty()) continue;
    has_modules = true;
    if (file_name(catalog.text(module.path)) == invariants.program()) return Done{};
  }
  for (const Site& site : catalog.sites) {
    known_site = known_site || (site.key != 0 && invariants.sites().contains(site.key));
  }
  if (known_site && !has_modules) return Done{};
  return Error{fmt::format(
      "{} was learned from `{}`, which is not the program of this trace; learn from this program "
      "with `heddle learn`",
      file, invariants.program())};
}

}  // namespace heddle::hunt
