// Where a debugger stops: at a position of the schedule (option stop_at), or before an access
// (stop_access, stop_sites), which need not be a scheduling point.
//
// An access is named by its thread, its site and how many times that thread was there before. The
// site's flag brings the inline code here; the schedule does not change, because an access that is
// no point without being watched is none when it is.
#include "runtime/sched_state.h"

#include <signal.h>
#include <string.h>

namespace heddle::rt {
namespace {

// A site of a header is in several units.
constexpr unsigned kMostFlags = 64;
struct Flag {
  const uint8_t* address;
  bool point;  // it would be tested without us, too
};
Flag g_flags[kMostFlags];
unsigned g_flag_count;
uint32_t g_thread;
uint64_t g_left;  // accesses until the one to stop at, which is the last
bool g_plain;

// Takes "NUMBER" and what follows it, `end`.
bool take_number(const char** at, uint64_t* value, char end) {
  *value = 0;
  const char* start = *at;
  for (; **at >= '0' && **at <= '9'; ++*at)
    *value = *value * 10 + static_cast<uint64_t>(**at - '0');
  if (*at == start || **at != end) return false;
  if (end != '\0') ++*at;
  return true;
}

void parse_step(const char* text) {
  uint64_t thread, step;
  const char* at = text;
  if (!take_number(&at, &thread, '.') || !take_number(&at, &step, '\0')) {
    say("stop_at=%s is not THREAD.STEP; ignored", text);
    return;
  }
  g_sched.stop_thread = static_cast<uint32_t>(thread);
  g_sched.stop_step = step;
}

void parse_access(const char* text) {
  uint64_t thread;
  const char* at = text;
  const bool numbers = take_number(&at, &thread, '.') && take_number(&at, &g_left, '.');
  g_plain = numbers && strcmp(at, "plain") == 0;
  if (!numbers || g_left == 0 || (!g_plain && strcmp(at, "atomic") != 0)) {
    say("stop_access=%s is neither THREAD.COUNT.plain nor THREAD.COUNT.atomic; ignored", text);
    return;
  }
  g_thread = static_cast<uint32_t>(thread);
  g_sched.stop_watched = true;
}

}  // namespace

void stop_init() {
  g_sched.stop_thread = ~0u;
  if (*rt_option(stop_at) != '\0') parse_step(rt_option(stop_at));
  if (*rt_option(stop_access) != '\0') parse_access(rt_option(stop_access));
}

bool stop_unit_registered(const heddle_unit* unit) {
  if (!g_sched.stop_watched) return false;
  const unsigned before = g_flag_count;
  each_named_site(unit, rt_option(stop_sites), [](uint8_t* flag) {
    if (g_flag_count == kMostFlags) return;
    g_flags[g_flag_count++] = {flag, !g_plain || *flag != 0};
    if (g_plain) *flag = 1;
  });
  return g_flag_count != before;
}

// Here a debugger stops, with the thread's own stack above.
void stop_here(const Thread* self) {
  say("thread %u stops here", self->id);
  raw_syscall(SYS_tgkill, raw_getpid(), raw_gettid(), SIGTRAP);
}

void stop_if_at_step(const Thread* self) {
  if (self->id == g_sched.stop_thread && self->steps == g_sched.stop_step) stop_here(self);
}

Watched stop_watch(const Thread* self, const void* flag) {
  for (unsigned i = 0; i < g_flag_count; ++i) {
    if (g_flags[i].address != flag) continue;
    const bool stop = self->id == g_thread && g_left != 0 && --g_left == 0;
    if (g_flags[i].point) return stop ? Watched::kStopPoint : Watched::kPoint;
    return stop ? Watched::kStop : Watched::kOnly;
  }
  return Watched::kNot;
}

}  // namespace heddle::rt
