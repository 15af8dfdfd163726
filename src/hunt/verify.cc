#include "hunt/verify.h"

#include "abi/status.h"
#include "trace/text.h"

#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace heddle::hunt {
namespace {

// One event at a time.
class Reader {
 public:
  explicit Reader(EventSource& source) : source_(source) {}

  // nullptr: the end.
  Result<const Event*> next() {
    if (at_ == batch_.size()) {
      Result<std::span<const Event>> batch = source_.next();
      if (!batch.ok()) return batch.error();
      batch_ = *batch;
      at_ = 0;
      if (batch_.empty()) return static_cast<const Event*>(nullptr);
    }
    return &batch_[at_++];
  }
  const Catalog& catalog() const { return source_.catalog(); }

 private:
  EventSource& source_;
  std::span<const Event> batch_;
  std::size_t at_ = 0;
};

bool same_site(const Catalog& a, SiteId x, const Catalog& b, SiteId y) {
  const Site& left = a.site(x);
  const Site& right = b.site(y);
  return left.line == right.line && left.column == right.column &&
         a.text(left.file) == b.text(right.file);
}

// Ids of functions, segments and strings are those of the trace; names are not.
bool same_value(const Catalog& a, const Event& x, const Catalog& b, const Event& y) {
  switch (x.kind) {
    case EventKind::kEnter:
    case EventKind::kLeave:
      return a.text(a.function(static_cast<FunctionId>(x.value)).linkage_name) ==
             b.text(b.function(static_cast<FunctionId>(y.value)).linkage_name);
    case EventKind::kFork:
    case EventKind::kJoin:
    case EventKind::kThreadBegin:
      return x.value == y.value;
    default:
      return true;
  }
}

bool same(const Catalog& a, const Event& x, const Catalog& b, const Event& y) {
  return x.kind == y.kind && x.thread == y.thread && x.outcome == y.outcome && x.mode == y.mode &&
         x.size == y.size && same_site(a, x.site, b, y.site) && same_value(a, x, b, y);
}

// The event's line in the text notation.
std::string in_words(const Catalog& catalog, const Event* event) {
  if (event == nullptr) return "the end";
  std::string text;
  TextPrinter(catalog).print(*event, text);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const std::size_t last = text.rfind('\n');
  return last == std::string::npos ? text : text.substr(last + 1);
}

}  // namespace

Result<std::optional<Difference>> first_difference(EventSource& first, EventSource& second) {
  Reader left(first);
  Reader right(second);
  for (EventOrdinal ordinal = 0;; ++ordinal) {
    const Result<const Event*> x = left.next();
    if (!x.ok()) return x.error();
    const Result<const Event*> y = right.next();
    if (!y.ok()) return y.error();
    if (*x == nullptr && *y == nullptr) return std::optional<Difference>();
    if (*x != nullptr && *y != nullptr && same(left.catalog(), **x, right.catalog(), **y)) continue;
    return std::optional<Difference>(
        Difference{ordinal, in_words(left.catalog(), *x), in_words(right.catalog(), *y)});
  }
}

std::string name_sources(std::uint32_t sources) {
  static constexpr std::pair<std::uint32_t, std::string_view> kNames[] = {
      {HEDDLE_SOURCE_OUTSIDE, "input from outside"},
      {HEDDLE_SOURCE_RANDOM, "random bytes from the kernel"},
      {HEDDLE_SOURCE_CLOCK, "a clock that is not virtual"},
      {HEDDLE_SOURCE_KERNEL, "calls that sleep in the kernel, whose end the kernel decides"},
      {HEDDLE_SOURCE_SIGNAL, "signals from outside"},
  };
  std::string text;
  for (const auto& [bit, name] : kNames) {
    if ((sources & bit) == 0) continue;
    if (!text.empty()) text += ", ";
    text += name;
  }
  if (text.empty()) {
    text =
        "nothing known; suspect an order that depends on addresses (a set of pointers, a hash of "
        "one), or an instruction such as rdtsc or rdrand";
  }
  return text;
}

}  // namespace heddle::hunt
