/* A page that the command shares with the program it started (option status_fd): how the run ended.
 *
 * The trace tells more, but a run that records nothing has none, and thousands of runs per minute
 * need something cheaper. The page is zero before the run; what is not written there (kill -9) is
 * known from the process's own status. */
#ifndef HEDDLE_STATUS_H
#define HEDDLE_STATUS_H

#include <stdint.h>

#define HEDDLE_STATUS_MAGIC 0x7375746174736d68ull
#define HEDDLE_STATUS_TEXT 3072

/* Exit statuses of a program whose run the runtime had to end. */
#define HEDDLE_EXIT_DEADLOCK 66
#define HEDDLE_EXIT_HANG 67

/* Where a run can get something from that the schedule does not decide (heddle_status.sources). */
enum heddle_source {
  HEDDLE_SOURCE_OUTSIDE = 1, /* read from a descriptor that others write to */
  HEDDLE_SOURCE_RANDOM = 2,  /* asked the kernel for random bytes */
  HEDDLE_SOURCE_CLOCK = 4,   /* read a clock that is not virtual */
  HEDDLE_SOURCE_KERNEL = 8,  /* the watchdog acted, or a thread came back from outside */
  HEDDLE_SOURCE_SIGNAL = 16, /* a signal from outside */
};

struct heddle_status {
  uint64_t magic;    /* set when the runtime has started */
  uint32_t ended;    /* the fields below are final */
  uint32_t end_kind; /* RunEnd of trace/event.h */
  uint64_t end_value;
  uint64_t points;   /* scheduling points passed */
  uint64_t switches; /* hand-overs */
  uint64_t hash;     /* of the sequence of (thread, kind) of all points */
  uint32_t threads;  /* ever created */
  uint32_t seized;   /* times the watchdog acted: the run was not wholly controlled */
  uint32_t diverged; /* a replay left its schedule; `text` starts with where */
  uint32_t pid;
  uint32_t sources; /* enum heddle_source */
  uint32_t reserved;
  char text[HEDDLE_STATUS_TEXT]; /* of the outcome: the assertion, who waits for whom */
  char diverged_at[512];
};

#endif /* HEDDLE_STATUS_H */
