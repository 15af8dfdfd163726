#include "detect/outcome/outcome.h"

#include "finding/fingerprint.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace heddle::outcome {
namespace {

std::string signal_name(std::uint64_t number) {
  const char* name = sigabbrev_np(static_cast<int>(number));
  return name == nullptr ? fmt::format("signal {}", number) : fmt::format("SIG{}", name);
}

// Which thread has which number is chance, and so must not be part of the identity.
std::string identity(Finding finding) {
  std::sort(finding.steps.begin(), finding.steps.end(), [](const Step& a, const Step& b) {
    return std::tie(a.place.function, a.place.file) < std::tie(b.place.function, b.place.file);
  });
  for (Step& step : finding.steps) step.role = "at";
  return fingerprint(finding);
}

// Where a program dies that gives up, and where none of it is to blame.
bool is_way_to_abort(std::string_view function) {
  static constexpr std::string_view kNames[] = {"raise", "gsignal", "abort", "pthread_kill"};
  static constexpr std::string_view kPrefixes[] = {
      "__pthread_kill", "__GI_",  "__assert",       "std::terminate",  "__cxxabiv1::",
      "__gnu_cxx::",    "__cxa_", "__libc_message", "malloc_printerr", "__fortify_fail"};
  const std::string_view name = function.substr(0, function.find('('));
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames) ||
         std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

// The innermost line of the program itself.
const Place* own_line(const std::vector<Place>& stack) {
  const Place* first = nullptr;
  for (const Place& frame : stack) {
    if (frame.line == 0 || is_way_to_abort(frame.function)) continue;
    if (first == nullptr) first = &frame;
    if (!in_library(frame)) return &frame;
  }
  return first;
}

}  // namespace

void OutcomeDetector::on(std::span<const Event> batch, EventOrdinal first) {
  for (std::size_t i = 0; i < batch.size(); ++i) {
    narrator_.on(batch[i]);
    if (batch[i].kind != EventKind::kOutcome) continue;
    outcome_ = batch[i];
    ordinal_ = first + i;
  }
}

// Where the thread is: the first line of its native stack that has a source, or, without one, the
// function that instrumented code entered last.
Step OutcomeDetector::step_of(const ThreadAtEnd& thread, std::string role) const {
  Step step;
  step.role = std::move(role);
  step.thread = thread.thread;
  step.thread_name = narrator_.describe().thread(thread.thread);
  step.kind = EventKind::kOutcome;
  step.ordinal = ordinal_;
  step.note = thread.doing;
  step.locks = narrator_.locks(narrator_.locks_held().current(thread.thread));
  step.stack = thread.stack;
  if (step.stack.empty()) {
    const StackId stack = narrator_.stacks().current(thread.thread);
    step.stack = narrator_.describe().stack(narrator_.stacks(), stack, 0);
  }
  if (const Place* line = own_line(step.stack)) step.place = *line;
  return step;
}

std::string OutcomeDetector::sentence(const ThreadAtEnd& thread) const {
  if (thread.object == 0) return fmt::format("thread {} {}", thread.thread, thread.doing);
  std::string out = fmt::format("thread {} waits for the {} {}", thread.thread, thread.what,
                                narrator_.describe().object(thread.object));
  if (!thread.holder.has_value()) return out;
  out += fmt::format(", held by thread {}", *thread.holder);
  const LocksHeld& held = narrator_.locks_held();
  for (const HeldLockRef& lock : held.locks(held.current(*thread.holder))) {
    if (lock.lock != thread.object) continue;
    const Place taken = narrator_.describe().place(lock.acquired);
    if (taken.line == 0) continue;
    out += fmt::format(" since {}:{}", taken.file.substr(taken.file.rfind('/') + 1), taken.line);
  }
  return out;
}

Finding OutcomeDetector::stuck(FindingKind kind, const OutcomeText& text) const {
  Finding out;
  out.kind = kind;
  std::vector<std::string> kinds;
  std::set<Address> objects;
  for (const ThreadAtEnd& thread : text.threads) {
    out.steps.push_back(step_of(thread, std::to_string(out.steps.size() + 1)));
    out.notes.push_back(sentence(thread));
    if (!thread.what.empty()) kinds.push_back(thread.what);
    if (thread.object == 0 || !objects.insert(thread.object).second) continue;
    VariableName variable;
    variable.name = narrator_.describe().object(thread.object);
    variable.address = thread.object;
    out.variables.push_back(std::move(variable));
  }
  std::sort(kinds.begin(), kinds.end());
  for (const std::string& each : kinds) out.summary += (out.summary.empty() ? "" : " – ") + each;
  // "deadlock: every thread waits for another": the kind is said already.
  const std::size_t colon = text.message.find(": ");
  out.in_words = colon == std::string::npos ? text.message : text.message.substr(colon + 2);
  return out;
}

Finding OutcomeDetector::crash(const Event& outcome, const OutcomeText& text) const {
  Finding out;
  out.kind = FindingKind::kCrash;
  const bool assertion = outcome.size == static_cast<std::uint32_t>(RunEnd::kAssertion);
  out.summary = assertion ? "assertion" : signal_name(outcome.value);
  out.in_words = text.message;
  ThreadAtEnd thread;
  thread.thread = outcome.thread;
  for (const ThreadAtEnd& each : text.threads) {
    if (each.thread == outcome.thread) thread = each;
  }
  thread.doing = assertion ? "the assertion fails" : "dies of " + signal_name(outcome.value);
  Step step = step_of(thread, "1");
  if (step.place.line == 0 && outcome.site != 0) {
    step.place = narrator_.describe().place(outcome.site);
  }
  out.steps.push_back(std::move(step));
  return out;
}

std::vector<Finding> OutcomeDetector::finish() {
  if (!outcome_.has_value()) return {};
  const auto end = static_cast<RunEnd>(std::uint32_t{outcome_->size});
  if (end == RunEnd::kExit || end == RunEnd::kLost) return {};
  const OutcomeText text = parse_outcome(catalog_.text(static_cast<StringId>(outcome_->address)));
  Finding out = end == RunEnd::kDeadlock ? stuck(FindingKind::kDeadlock, text)
                : end == RunEnd::kHang   ? stuck(FindingKind::kHang, text)
                                         : crash(*outcome_, text);
  out.detectors = {"outcome"};
  out.rank = 1000;
  out.fingerprint = identity(out);
  std::vector<Finding> all;
  all.push_back(std::move(out));
  return all;
}

}  // namespace heddle::outcome
