#include "detect/outcome/outcome_text.h"

#include <algorithm>
#include <charconv>

namespace heddle::outcome {
namespace {

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

template <typename T>
bool take_number(std::string_view& text, T& value, int base = 10) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (problem != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

// "waits for mutex 0x55d0 held by thread 2"
void parse_wait(ThreadAtEnd& thread) {
  std::string_view rest = thread.doing;
  if (!take(rest, "waits for ")) return;
  const std::size_t address = rest.find(" 0x");
  if (address == std::string_view::npos) {
    if (take(rest, "the end of thread ")) {
      thread.what = "end of thread";
      ThreadId holder{};
      if (take_number(rest, holder)) thread.holder = holder;
    }
    return;
  }
  thread.what = rest.substr(0, address);
  rest.remove_prefix(address + 3);
  ThreadId holder{};
  if (take_number(rest, thread.object, 16) && take(rest, " held by thread ") &&
      take_number(rest, holder)) {
    thread.holder = holder;
  }
}

// "transfer(int) /home/me/shop.cc:14"; the name of a function may hold blanks.
Place parse_frame(std::string_view frame) {
  Place place;
  const std::size_t blank = frame.rfind(' ');
  const std::size_t colon = frame.rfind(':');
  if (blank != std::string_view::npos && colon != std::string_view::npos && colon > blank) {
    std::string_view number = frame.substr(colon + 1);
    if (take_number(number, place.line) && number.empty()) {
      place.function = frame.substr(0, blank);
      place.file = frame.substr(blank + 1, colon - blank - 1);
      return place;
    }
    place.line = 0;
  }
  if (!frame.starts_with("0x")) place.function = frame;
  return place;
}

ThreadAtEnd& of_thread(OutcomeText& out, ThreadId thread) {
  const auto known = std::find_if(out.threads.begin(), out.threads.end(),
                                  [&](const ThreadAtEnd& t) { return t.thread == thread; });
  if (known != out.threads.end()) return *known;
  ThreadAtEnd& made = out.threads.emplace_back();
  made.thread = thread;
  return made;
}

}  // namespace

OutcomeText parse_outcome(std::string_view text) {
  OutcomeText out;
  std::optional<ThreadId> stack_of;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    std::string_view rest = line;
    ThreadId thread{};
    if (take(rest, "thread ") && take_number(rest, thread) && (rest.empty() || rest[0] == ' ')) {
      ThreadAtEnd& at_end = of_thread(out, thread);
      stack_of.reset();
      if (rest.empty()) {
        stack_of = thread;
      } else {
        at_end.doing = rest.substr(1);
        parse_wait(at_end);
      }
    } else if (line.starts_with("    #")) {
      continue;  // a module and an offset: the stack below has names
    } else if (line.starts_with("  ") && stack_of.has_value()) {
      of_thread(out, *stack_of).stack.push_back(parse_frame(line.substr(2)));
    } else if (out.message.empty()) {
      out.message = line;
    }
  }
  return out;
}

}  // namespace heddle::outcome
