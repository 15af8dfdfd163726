#include "hunt/try_seeds.h"

#include "hunt/fork_server.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <mutex>
#include <thread>

#include <absl/container/flat_hash_set.h>
#include <fmt/format.h>
#include <sched.h>

namespace heddle::hunt {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<unsigned> usable_processors() {
  std::vector<unsigned> processors;
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) {
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &mask)) processors.push_back(cpu);
    }
  }
  if (processors.empty()) processors.push_back(0);
  return processors;
}

// What the workers share. Runs are handed out in the order of their seeds.
class Campaign {
 public:
  Campaign(const TryOptions& options, const std::function<void(const TryResult&)>& progress)
      : options_(options), progress_(progress), start_(Clock::now()), told_(start_) {}

  Result<TryResult> run() {
    const std::vector<unsigned> processors = usable_processors();
    if (options_.strategy == "pct" && options_.pct_length == 0) measure(processors[0]);
    const unsigned workers =
        options_.processes != 0 ? options_.processes : static_cast<unsigned>(processors.size());
    std::vector<std::thread> threads;
    threads.reserve(workers);
    for (unsigned i = 0; i < workers; ++i) {
      threads.emplace_back([this, cpu = processors[i % processors.size()]] { work(cpu); });
    }
    for (std::thread& thread : threads) thread.join();
    if (error_.has_value()) return *error_;
    result_.different = hashes_.size();
    result_.seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    std::sort(result_.failures.begin(), result_.failures.end(),
              [](const TriedSeed& a, const TriedSeed& b) { return a.seed < b.seed; });
    return result_;
  }

 private:
  // The changes of priority must fall within the run: how long is one?
  void measure(unsigned cpu) {
    Result<StatusPage> page = StatusPage::make();
    if (!page.ok()) return;
    RunRequest request = request_for(options_.first_seed, cpu);
    request.runtime.emplace_back("schedule", "fifo");
    const Result<RunReport> report = run_controlled(request, *page);
    if (report.ok() && report->points != 0) result_.pct_length = report->points;
  }

  RunRequest request_for(std::uint64_t seed, unsigned cpu) const {
    RunRequest request = options_.request;
    for (const auto& option : options_for(seed, cpu)) request.runtime.push_back(option);
    return request;
  }

  std::vector<std::pair<std::string, std::string>> options_for(std::uint64_t seed,
                                                               unsigned cpu) const {
    std::vector<std::pair<std::string, std::string>> options = {
        {"schedule", options_.strategy},
        {"seed", std::to_string(seed)},
        {"processor", std::to_string(cpu + 1)}};
    const std::uint64_t length =
        options_.pct_length != 0 ? options_.pct_length : result_.pct_length;
    if (length != 0) options.emplace_back("pct_length", std::to_string(length));
    return options;
  }

  std::optional<std::uint64_t> next_seed() {
    const std::lock_guard lock(mutex_);
    if (stop_ || handed_out_ == options_.runs) return std::nullopt;
    return options_.first_seed + handed_out_++;
  }

  void work(unsigned cpu) {
    Result<StatusPage> page = StatusPage::make();
    if (!page.ok()) return fail(page.error());
    std::optional<ForkServer> server;
    constexpr std::uint64_t kWorthwhile = 8;
    if (options_.fork_server && options_.runs >= kWorthwhile) {
      if (auto started = ForkServer::start(options_.request, *page)) {
        server.emplace(std::move(*started));
      }
    }
    while (const std::optional<std::uint64_t> seed = next_seed()) {
      Result<RunReport> report = run_seed(server, *seed, cpu, *page);
      if (!report.ok()) return fail(report.error());
      if (!report->controlled) {
        return fail(Error{fmt::format(
            "{} does not run under control: it is not built with heddle-cc or heddle-c++, or is "
            "static; build it with them, or try --preload",
            options_.request.command[0])});
      }
      TriedSeed tried{*seed, *std::move(report), {}, {}};
      if (tried.report.result != RunResult::kPassed && claim_schedule()) keep(&tried, cpu, *page);
      note(std::move(tried));
    }
  }

  Result<RunReport> run_seed(std::optional<ForkServer>& server, std::uint64_t seed, unsigned cpu,
                             StatusPage& page) {
    if (server.has_value()) {
      Result<RunReport> report =
          server->run(options_for(seed, cpu), options_.request.timeout, page);
      if (report.ok()) return report;
      server.reset();
    }
    return run_controlled(request_for(seed, cpu), page);
  }

  bool claim_schedule() {
    const std::lock_guard lock(mutex_);
    if (kept_ >= options_.keep || options_.schedule_prefix.empty()) return false;
    ++kept_;
    return true;
  }

  // Runs the seed again with its schedule written, and the schedule once: what does not end the
  // same way depends on something that is not controlled.
  void keep(TriedSeed* tried, unsigned cpu, StatusPage& page) {
    const std::string path = fmt::format("{}.{}.schedule", options_.schedule_prefix, tried->seed);
    RunRequest again = request_for(tried->seed, cpu);
    again.runtime.emplace_back("schedule_out", path);
    const Result<RunReport> written = run_controlled(again, page);
    if (!written.ok()) return;
    tried->schedule = path;
    if (written->result != tried->report.result || written->hash != tried->report.hash) {
      tried->note = fmt::format(
          "the same seed ended as {} the second time: something is not under "
          "control",
          describe(*written));
      return;
    }
    RunRequest replay = request_for(tried->seed, cpu);
    replay.runtime.emplace_back("schedule", "replay");
    replay.runtime.emplace_back("schedule_in", path);
    const Result<RunReport> replayed = run_controlled(replay, page);
    if (!replayed.ok()) return;
    if (replayed->result != tried->report.result || !replayed->diverged_at.empty()) {
      tried->note = fmt::format("its replay ended as {}{}{}", describe(*replayed),
                                replayed->diverged_at.empty() ? "" : "; ", replayed->diverged_at);
    }
  }

  void note(TriedSeed tried) {
    const std::lock_guard lock(mutex_);
    const auto index = static_cast<std::size_t>(tried.report.result);
    ++result_.runs;
    ++result_.counts[index];
    hashes_.insert(tried.report.hash);
    if (tried.report.seized != 0) ++result_.seized;
    std::optional<TriedSeed>& first = result_.first[index];
    if (!first.has_value() || tried.seed < first->seed) first = tried;
    if (tried.report.result != RunResult::kPassed) {
      if (options_.until_failure) stop_ = true;
      result_.failures.push_back(std::move(tried));
    }
    constexpr auto kInterval = std::chrono::milliseconds(100);
    const Clock::time_point now = Clock::now();
    if (progress_ && now - told_ >= kInterval) {
      told_ = now;
      result_.seconds = std::chrono::duration<double>(now - start_).count();
      progress_(result_);
    }
  }

  void fail(const Error& error) {
    const std::lock_guard lock(mutex_);
    if (!error_.has_value()) error_ = error;
    stop_ = true;
  }

  const TryOptions& options_;
  const std::function<void(const TryResult&)>& progress_;
  const Clock::time_point start_;

  std::mutex mutex_;
  Clock::time_point told_;
  std::uint64_t handed_out_ = 0;
  unsigned kept_ = 0;
  bool stop_ = false;
  std::optional<Error> error_;
  TryResult result_;
  absl::flat_hash_set<std::uint64_t> hashes_;
};

std::string escape(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        // Other control characters are not allowed in XML, not even escaped.
        if (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t') escaped += c;
    }
  }
  return escaped;
}

}  // namespace

Result<TryResult> try_seeds(const TryOptions& options,
                            const std::function<void(const TryResult&)>& progress) {
  return Campaign(options, progress).run();
}

Status write_junit(const TryOptions& options, const TryResult& result, const std::string& path) {
  std::ofstream file(path, std::ios::trunc);
  const std::string name =
      escape(options.request.command.empty() ? "" : options.request.command[0]);
  file << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  file << fmt::format(
      "<testsuite name=\"heddle try {}\" tests=\"{}\" failures=\"{}\" errors=\"0\" "
      "time=\"{:.3f}\">\n",
      name, result.runs, result.failures.size(), result.seconds);
  const std::uint64_t passed = result.counts[static_cast<std::size_t>(RunResult::kPassed)];
  std::size_t at = 0;
  std::uint64_t seed = options.first_seed;
  for (std::uint64_t i = 0; i < passed + result.failures.size(); ++i, ++seed) {
    const bool failed = at < result.failures.size() && result.failures[at].seed == seed;
    file << fmt::format("  <testcase classname=\"{}\" name=\"seed {}\"", name, seed);
    if (!failed) {
      file << "/>\n";
      continue;
    }
    const TriedSeed& tried = result.failures[at++];
    file << fmt::format(
        ">\n    <failure type=\"{}\" message=\"{}\">{}\n{}</failure>\n  </testcase>\n",
        run_result_name(tried.report.result), escape(describe(tried.report)),
        escape(tried.report.text), escape(tried.schedule));
  }
  file << "</testsuite>\n";
  file.close();
  if (!file) return Error{fmt::format("cannot write {}: {}", path, std::strerror(errno))};
  return Done{};
}

}  // namespace heddle::hunt
