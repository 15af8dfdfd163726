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
  char text[HEDDLE_STATUS_TEXT]; /* of the outcome: the assertion, who waits for whom */
  char diverged_at[512];
};

#endif /* HEDDLE_STATUS_H */
