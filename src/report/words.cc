#include "report/words.h"

#include <algorithm>

#include <fmt/format.h>

namespace heddle::report {

std::string name(FindingKind kind) {
  std::string out(title(kind));
  std::replace(out.begin(), out.end(), ' ', '-');
  return out;
}

std::string_view name(FindingLabel label) {
  switch (label) {
    case FindingLabel::kUnlearned:
      return "unlearned";
    case FindingLabel::kObserved:
      return "observed";
    case FindingLabel::kPredicted:
      return "predicted";
    case FindingLabel::kConfirmed:
      return "confirmed";
    case FindingLabel::kNotReproduced:
      return "not-reproduced";
  }
  return "other";
}

std::string_view name(EventKind kind) {
  switch (kind) {
    case EventKind::kRead:
      return "read";
    case EventKind::kWrite:
      return "write";
    case EventKind::kRmw:
      return "read-modify-write";
    case EventKind::kFence:
      return "fence";
    case EventKind::kAcquire:
      return "acquire";
    case EventKind::kRelease:
      return "release";
    case EventKind::kWait:
      return "wait";
    case EventKind::kSignal:
      return "signal";
    case EventKind::kBroadcast:
      return "broadcast";
    case EventKind::kSemPost:
      return "semaphore-post";
    case EventKind::kSemWait:
      return "semaphore-wait";
    case EventKind::kBarrierArrive:
      return "barrier-arrive";
    case EventKind::kBarrierLeave:
      return "barrier-leave";
    case EventKind::kOnceBegin:
      return "once-begin";
    case EventKind::kOnceEnd:
      return "once-end";
    case EventKind::kOncePass:
      return "once-pass";
    case EventKind::kOrderRelease:
      return "order-release";
    case EventKind::kOrderAcquire:
      return "order-acquire";
    case EventKind::kFork:
      return "fork";
    case EventKind::kJoin:
      return "join";
    case EventKind::kThreadBegin:
      return "thread-begin";
    case EventKind::kThreadEnd:
      return "thread-end";
    case EventKind::kAlloc:
      return "alloc";
    case EventKind::kFree:
      return "free";
    case EventKind::kEnter:
      return "enter";
    case EventKind::kLeave:
      return "leave";
    case EventKind::kUnitBegin:
      return "unit-begin";
    case EventKind::kUnitEnd:
      return "unit-end";
    case EventKind::kSegment:
      return "segment";
    case EventKind::kBranch:
      return "branch";
    case EventKind::kIoRead:
      return "io-read";
    case EventKind::kIoWrite:
      return "io-write";
    case EventKind::kMark:
      return "mark";
    case EventKind::kOutcome:
      return "outcome";
  }
  return "other";
}

std::string_view name(MemoryOrder order) {
  switch (order) {
    case MemoryOrder::kPlain:
      return "plain";
    case MemoryOrder::kRelaxed:
      return "relaxed";
    case MemoryOrder::kConsume:
      return "consume";
    case MemoryOrder::kAcquire:
      return "acquire";
    case MemoryOrder::kRelease:
      return "release";
    case MemoryOrder::kAcqRel:
      return "acq_rel";
    case MemoryOrder::kSeqCst:
      return "seq_cst";
  }
  return "plain";
}

std::string deed(const Step& step) {
  if (!is_access(step.kind)) return step.note.empty() ? std::string(name(step.kind)) : step.note;
  const char* verb = step.kind == EventKind::kRead    ? "reads"
                     : step.kind == EventKind::kWrite ? "writes"
                                                      : "updates";
  if (step.variable.name.empty()) return verb;
  return fmt::format("{} {}", verb, step.variable.name);
}

// The signedness of a value is unknown: small negative numbers are likelier than numbers just below
// a power of two.
std::string value(const Step& step, bool with_verb) {
  if (!step.value) return {};
  std::uint64_t bits = *step.value;
  const unsigned width = step.size >= 1 && step.size < 8 ? step.size * 8 : 64;
  if (width < 64) bits &= (std::uint64_t{1} << width) - 1;
  auto number = static_cast<std::int64_t>(bits << (64 - width)) >> (64 - width);
  constexpr std::int64_t kSmall = 100'000;
  std::string text = number < 0 && number > -kSmall    ? fmt::format("{}", number)
                     : bits < (std::uint64_t{1} << 32) ? fmt::format("{}", bits)
                                                       : fmt::format("{:#x}", bits);
  return with_verb && step.kind == EventKind::kWrite ? "writes " + text : "= " + text;
}

namespace {

constexpr std::string_view kOperator = "operator";
constexpr std::size_t kLongestArguments = 24;

// Where a name ends that is `operator` and signs, like operator<<; 0 where none begins.
std::size_t end_of_operator(std::string_view text, std::size_t at) {
  if (!text.substr(at).starts_with(kOperator)) return 0;
  std::size_t end = at + kOperator.size();
  while (end < text.size() && std::string_view("<>=-").find(text[end]) != std::string_view::npos)
    ++end;
  return end;
}

// The '>' that belongs to the '<' at `open`; npos where there is none.
std::size_t end_of_arguments(std::string_view text, std::size_t open) {
  int depth = 0;
  for (std::size_t at = open; at < text.size(); ++at) {
    if (const std::size_t end = end_of_operator(text, at); end != 0) at = end;
    if (at >= text.size()) break;
    if (text[at] == '<') ++depth;
    if (text[at] == '>' && text[at - 1] != '-' && --depth == 0) return at;
  }
  return std::string_view::npos;
}

// The parameters are the last group of parentheses at the outermost level.
std::string_view without_parameters(std::string_view text) {
  const std::size_t end = text.rfind(')');
  if (end == std::string_view::npos) return text;
  int depth = 0;
  for (std::size_t at = end + 1; at-- > 0;) {
    if (text[at] == ')') ++depth;
    if (text[at] == '(' && --depth == 0) return at == 0 ? text : text.substr(0, at);
  }
  return text;
}

// A template's name begins with its result's type: what is before the last blank outside of
// brackets.
std::string_view without_result(std::string_view text) {
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (depth == 0 && end_of_operator(text, at) != 0) break;
    if (text[at] == '<' || text[at] == '(' || text[at] == '{') ++depth;
    if (text[at] == '>' || text[at] == ')' || text[at] == '}') --depth;
    if (depth == 0 && text[at] == ' ') begin = at + 1;
  }
  return text.substr(begin);
}

}  // namespace

std::string short_name(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = end_of_operator(text, at);
    if (end == 0 && text[at] == '<') {
      const std::size_t last = end_of_arguments(text, at);
      if (last == std::string_view::npos) return out.append(text.substr(at));
      if (last - at > kLongestArguments) {
        out += "<…>";
        at = last + 1;
        continue;
      }
    }
    if (end == 0) end = at + 1;
    out += text.substr(at, end - at);
    at = end;
  }
  return out;
}

std::string short_function(std::string_view name) {
  constexpr std::string_view kUnnamed[] = {"(anonymous namespace)::", "(anonymous)::"};
  std::string out(name);
  for (const std::string_view part : kUnnamed) {
    for (std::size_t at; (at = out.find(part)) != std::string::npos;) out.erase(at, part.size());
  }
  const std::string shorter(short_name(without_parameters(out)));
  return std::string(without_result(shorter));
}

std::string place(const Place& where) {
  const std::size_t slash = where.file.rfind('/');
  const std::string file = slash == std::string::npos ? where.file : where.file.substr(slash + 1);
  return where.line == 0 ? file : fmt::format("{}:{}", file, where.line);
}

}  // namespace heddle::report
