// replay: follows a schedule file (schedule.h).
//
// Every line names a position (thread, step) and who runs, or wakes, there; between the lines the
// default schedule applies. So each thread has a list of its own lines, in the order of the file.
//
// A line does not fit when its thread passes the position without deciding anything, decides
// something of another kind or at another place, or when the chosen thread cannot run. With the
// same binary that is a divergence: it is reported with its place, and the run goes on at random
// from the seed. A schedule of another build is followed as far as its lines fit; lines that do not
// are skipped, which is said once.
#include "runtime/modules.h"
#include "runtime/schedule.h"
#include "runtime/strategy.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace heddle::rt {
namespace {

struct Line {
  uint32_t thread;
  uint32_t chosen;
  uint64_t step;
  PointKind kind;
  uint32_t number;       // in the file
  unsigned long offset;  // of the place in its module; 0: none given
  uint32_t next;         // of the same thread, as index + 1
};

Line* g_lines;
uint32_t g_line_count;
uint32_t* g_first;  // per thread: its next line, as index + 1
uint64_t g_end_points;
uint64_t g_end_hash;
bool g_other_build;
unsigned g_skipped;

template <typename T>
T* allocate(size_t count) {
  return reinterpret_cast<T*>(raw_syscall(SYS_mmap, 0, static_cast<long>(count * sizeof(T) + 4096),
                                          PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
}

// ---- reading --------------------------------------------------------------------------------

bool skip_word(const char** at, const char* word) {
  const size_t length = strlen(word);
  if (strncmp(*at, word, length) != 0) return false;
  *at += length;
  return true;
}

bool take_number(const char** at, unsigned base, uint64_t* value) {
  *value = 0;
  const char* start = *at;
  for (;; ++*at) {
    const char c = **at;
    unsigned digit;
    if (c >= '0' && c <= '9') {
      digit = static_cast<unsigned>(c - '0');
    } else if (base == 16 && c >= 'a' && c <= 'f') {
      digit = static_cast<unsigned>(c - 'a') + 10;
    } else {
      return *at != start;
    }
    *value = *value * base + digit;
  }
}

bool take_kind(const char** at, PointKind* kind) {
  for (unsigned k = 1; k <= static_cast<unsigned>(PointKind::kMemory); ++k) {
    const char* name = point_kind_name(static_cast<PointKind>(k));
    const size_t length = strlen(name);
    if (strncmp(*at, name, length) == 0 && (*at)[length] == ' ') {
      *at += length + 1;
      *kind = static_cast<PointKind>(k);
      return true;
    }
  }
  return false;
}

// at THREAD.STEP KIND CHOSEN [MODULE+0xOFFSET]
bool parse_at(const char* at, Line* line) {
  uint64_t thread, chosen;
  if (!take_number(&at, 10, &thread) || *at++ != '.' || !take_number(&at, 10, &line->step) ||
      *at++ != ' ' || !take_kind(&at, &line->kind) || !take_number(&at, 10, &chosen) ||
      thread >= kMaxThreads || chosen >= kMaxThreads) {
    return false;
  }
  line->thread = static_cast<uint32_t>(thread);
  line->chosen = static_cast<uint32_t>(chosen);
  const char* offset = strstr(at, "+0x");
  uint64_t value = 0;
  if (offset != nullptr) {
    offset += 3;
    take_number(&offset, 16, &value);
  }
  line->offset = value;
  return true;
}

void parse_line(const char* at, uint32_t number) {
  if (*at == '#' || *at == '\0') return;
  if (skip_word(&at, "at ")) {
    Line* line = &g_lines[g_line_count];
    if (parse_at(at, line)) {
      line->number = number;
      ++g_line_count;
    } else {
      say("%s:%u: not `at THREAD.STEP KIND THREAD`; ignored", rt_option(schedule_in), number);
    }
  } else if (skip_word(&at, "build-id ")) {
    g_other_build = strcmp(at, program_build_id()) != 0;
  } else if (skip_word(&at, "points ")) {
    points_select(at);  // steps mean the same only where the same accesses are points
  } else if (skip_word(&at, "strategy ")) {
    const char* seed = strstr(at, "seed ");
    uint64_t value;
    if (seed != nullptr) {
      seed += 5;
      if (take_number(&seed, 10, &value)) g_random.seed(value);
    }
  } else if (skip_word(&at, "end ")) {
    if (take_number(&at, 10, &g_end_points) && skip_word(&at, " points hash ")) {
      take_number(&at, 16, &g_end_hash);
    }
  } else if (strncmp(at, "heddle-schedule 1", 17) != 0 && strncmp(at, "program ", 8) != 0 &&
             strncmp(at, "command ", 8) != 0) {
    say("%s:%u: unknown line `%s`; ignored", rt_option(schedule_in), number, at);
  }
}

void link_lines() {
  g_first = allocate<uint32_t>(kMaxThreads);
  for (uint32_t i = g_line_count; i > 0; --i) {
    Line* line = &g_lines[i - 1];
    line->next = g_first[line->thread];
    g_first[line->thread] = i;
  }
}

void read_file() {
  g_line_count = 0;
  g_lines = nullptr;
  const long fd = raw_syscall(SYS_open, as_long(rt_option(schedule_in)), O_RDONLY | O_CLOEXEC);
  struct stat status = {};
  if (fd < 0 || raw_syscall(SYS_fstat, fd, as_long(&status)) < 0) {
    say("cannot read the schedule %s; running the default schedule", rt_option(schedule_in));
    if (fd >= 0) raw_close(static_cast<int>(fd));
    return;
  }
  const auto size = static_cast<size_t>(status.st_size);
  char* text = allocate<char>(size + 1);
  size_t got = 0;
  while (got < size) {
    const long part = raw_syscall(SYS_read, fd, as_long(text + got), static_cast<long>(size - got));
    if (part <= 0) break;
    got += static_cast<size_t>(part);
  }
  raw_close(static_cast<int>(fd));
  size_t lines = 1;
  for (size_t i = 0; i < got; ++i) lines += text[i] == '\n';
  g_lines = allocate<Line>(lines);
  uint32_t number = 1;
  for (char* at = text; *at != '\0'; ++number) {
    char* newline = strchr(at, '\n');
    if (newline != nullptr) *newline = '\0';
    parse_line(at, number);
    if (newline == nullptr) break;
    at = newline + 1;
  }
}

// ---- following --------------------------------------------------------------------------------

void start() {
  if (g_first != nullptr) return;  // a forked child follows nothing: the file is its parent's
  if (schedule_is_ours()) read_file();
  link_lines();
  if (g_other_build) {
    say("%s was made by another build of the program: followed as far as it fits",
        rt_option(schedule_in));
  }
}

void skip(Thread* self, const Line& line, const char* why) {
  g_first[self->id] = line.next;
  if (g_other_build) {
    ++g_skipped;
    return;
  }
  schedule_diverged("%s:%u: thread %u, step %lu: %s", rt_option(schedule_in), line.number,
                    line.thread, line.step, why);
}

// The line for this very moment, or nullptr. Lines that were passed without effect do not fit.
const Line* line_for(Thread* self) {
  while (g_first[self->id] != 0) {
    const Line* line = &g_lines[g_first[self->id] - 1];
    if (line->step > self->steps) return nullptr;
    if (line->step == self->steps) return line;
    skip(self, *line, "nothing was decided there");
    if (schedule_has_diverged()) return nullptr;
  }
  return nullptr;
}

Thread* follow(const Moment& moment, Thread* otherwise) {
  if (schedule_has_diverged()) return nullptr;
  const Line* line = line_for(moment.self);
  if (schedule_has_diverged()) return nullptr;
  if (line == nullptr) return otherwise;
  const char* name;
  if (line->kind != moment.kind) {
    skip(moment.self, *line, "another kind of operation than the schedule names");
  } else if (line->offset != 0 && moment.pc != nullptr && !g_other_build &&
             place_offset(moment.pc, &name) != line->offset) {
    skip(moment.self, *line, "another place in the program than the schedule names");
  } else {
    for (unsigned i = 0; i < moment.count; ++i) {
      if (moment.candidates[i]->id != line->chosen) continue;
      g_first[moment.self->id] = line->next;
      return moment.candidates[i];
    }
    skip(moment.self, *line, "the thread that should run next cannot");
  }
  return schedule_has_diverged() ? nullptr : otherwise;
}

// After a divergence: at random, with the default rate of the strategy `random`.
bool coin() {
  return g_random.below(rt_option(switch_every) == 0 ? 1 : rt_option(switch_every)) == 0;
}

uint64_t next_point(Thread* holder) {
  if (schedule_has_diverged()) return g_sched.points + 1;
  const uint32_t first_line = g_first[holder->id];
  if (first_line == 0) return kNever;
  const Line& line = g_lines[first_line - 1];
  return line.step > holder->steps ? g_sched.points + (line.step - holder->steps)
                                   : g_sched.points + 1;
}

Thread* at_point(const Moment& moment) {
  if (Thread* choice = follow(moment, moment.self)) return choice;
  return moment.count != 0 && coin() ? any(moment) : moment.self;
}

Thread* after(const Moment& moment) {
  if (Thread* choice = follow(moment, moment.candidates[0])) return choice;
  return any(moment);
}

void finish() {
  if (schedule_has_diverged() || g_lines == nullptr) return;
  if (g_skipped != 0) {
    schedule_diverged("%s: %u of %u lines did not fit this build", rt_option(schedule_in),
                      g_skipped, g_line_count);
  }
  if (g_other_build || g_end_points == 0) return;
  if (g_end_points != g_sched.points || g_end_hash != g_sched.hash) {
    schedule_diverged(
        "%s: the run ended after %lu scheduling points, not after %lu of the same kinds",
        rt_option(schedule_in), g_sched.points, g_end_points);
  }
}

}  // namespace

static const Strategy kReplay = {
    .name = "replay",
    .help = "follow the schedule file schedule_in",
    .start = start,
    .next_point = next_point,
    .at_point = at_point,
    .after = after,
    .wake = after,
    .created = no_note,
    .yielded = no_note,
    .finish = finish,
};
HEDDLE_STRATEGY(kReplay)

}  // namespace heddle::rt
