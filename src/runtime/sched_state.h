// The scheduler's own state. For the files of the scheduler, its strategies and the interceptors of
// threads; everybody else sees sched.h.
#pragma once

#include "runtime/raw.h"
#include "runtime/say.h"
#include "runtime/sched.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>

namespace heddle::rt {

enum class State : uint8_t { kUnused, kReady, kRunning, kBlocked, kOutside, kDead };

// Bits of Thread::turn, the futex word that a thread without the baton sleeps on.
enum : uint32_t {
  kTurnBit = 1,   // it is yours
  kNudgeBit = 2,  // a signal is waiting to be delivered
  kStackBit = 4,  // somebody wants your stack for a report
};

struct Moment;  // strategy.h

// A signal that another thread of the program has sent.
struct Letter {
  int signal;
  int code;     // siginfo_t::si_code
  void* value;  // of sigqueue
};

struct Thread {
  // What other threads write while this one sleeps.
  uint32_t turn;
  State state;
  ThreadId id;
  ThreadId parent;

  uint64_t steps;       // moments at which this thread had something decided: half of a position
  struct Wait* wait;    // what it is blocked on, innermost (a handler may block inside a wait)
  bool nudged;          // signals to be delivered as soon as it has the baton
  bool interrupted;     // a handler without SA_RESTART has run
  bool handled;         // a handler has run
  bool cancel_pending;  // pthread_cancel was called on it

  // Spinning: the same point again and again.
  const volatile void* spin_object;
  const void* spin_pc;
  uint32_t spin_count;
  uint64_t atomic_mark;  // what an atomic access of this thread does to Sched::hash
  uint32_t clock_reads;  // in a row, at clock_steps
  uint64_t clock_steps;

  bool busy;          // inside the scheduler: no safe point for a signal
  bool brief;         // in a call that may sleep but keeps the baton: the watchdog is silent
  bool patient;       // … and waits longer before it acts
  bool async_cancel;  // asked for asynchronous cancellation: it is tested at every point
  bool no_preempt;    // holds a stdio lock: switched only where it must be
  bool stop_due;      // the access to stop at comes after the switch that is under way
  bool detached;
  bool joined;
  bool gone;            // dead for the kernel, too
  uint8_t exit_rounds;  // of the exit key's destructor
  uint8_t stdio_depth;

  uint64_t priority;  // the strategy's

  // Signals from other threads of the program: written by the holder while this thread is not,
  // taken out by this thread when it is.
  static constexpr unsigned kMostLetters = 16;
  Letter letters[kMostLetters];
  unsigned letter_count;
  bool in_game;  // it has reached the scheduler

  // One-time initialisers this thread is running, innermost last.
  static constexpr unsigned kMaxOnce = 16;
  int* once[kMaxOnce];
  unsigned once_depth;

  pthread_t handle;
  uint32_t tid;  // the kernel's
  void* (*entry)(void*);
  void* argument;
  void* c11_entry;
  void* c11_argument;
  heddle_tls* tls;
};

// One wait of one thread; lives on the stack of the thread that waits.
struct Wait {
  Thread* thread;
  const volatile void* object;
  const char* what;
  const void* pc;
  uint64_t deadline;
  pollfd* descriptors;  // any of which ends the wait, or nullptr
  unsigned descriptor_count;
  uint64_t
      signals;  // any of which ends the wait once it is pending (sigwait), as the kernel's mask
  unsigned interrupts;
  bool done;
  WakeReason reason;
};

// Things in the order of arrival. There are hundreds at most, so removal moves the rest.
template <typename T>
struct Queue {
  T** items;
  unsigned count;

  void push(T* item) { items[count++] = item; }
  void remove(T* item) {
    unsigned at = 0;
    while (items[at] != item) ++at;
    for (--count; at < count; ++at) items[at] = items[at + 1];
  }
};

constexpr uint32_t kMaxThreads = 1u << 17;
constexpr uint64_t kSlicePoints = 10000;
constexpr uint32_t kSpinLimit = 200;
constexpr uint64_t kNever = UINT64_MAX;

struct Sched {
  // Read at every point.
  Thread* holder;
  uint64_t points;       // passed so far
  uint64_t next_action;  // the number of the point at which somebody must be asked
  uint64_t hash;
  // The holder, while next_action alone decides whether it must ask: sched_point.h. Else nobody.
  const Thread* quick;
  bool shared_only;  // accesses count only to memory that several threads touch
  bool on;           // between sched_init and sched_end
  bool alone;        // no other thread was ever created

  // Under the lock.
  uint32_t lock;
  Queue<Thread> ready;
  Queue<Wait> blocked;
  // How many of those wait for an object, by a hash of its address: most of what is unlocked has
  // nobody to wake, and that must cost nothing.
  static constexpr unsigned kWaiterGroups = 256;
  uint32_t waiters[kWaiterGroups];
  Thread** scratch;  // candidates of a wake-up
  unsigned timed;    // waits with a deadline
  unsigned outside;
  unsigned signal_waiters;  // blocked until a signal comes
  unsigned descriptor_waiters;
  Thread* threads;  // kMaxThreads of them, touched as they are used
  uint32_t thread_count;
  uint32_t live;       // not dead
  uint32_t departing;  // dead, but perhaps not yet for the kernel

  bool idling;         // somebody keeps the light on, asleep …
  uint32_t idle_word;  // … on this futex, or, while there are descriptors to watch, …
  int idle_event;      // … in poll, with this eventfd

  uint64_t slice_end;
  uint64_t switches;
  uint64_t patience;     // ticks after which code without points loses its turn
  uint64_t ticks;        // of sched_tick since the last point or switch
  uint64_t tick_points;  // `points` at the last tick
  uint32_t seized;
  uint32_t sources;  // enum heddle_source: what the run got that the schedule does not decide
  char points_mode[Options::kTextSize];
  uint32_t stop_thread;  // the position of the option stop_at; no such thread: none
  uint64_t stop_step;
  bool stop_watched;  // there are sites to stop at (sched_stop.cc)
  uint32_t forks;
  uint32_t stream_locks;  // held by flockfile, of all threads
  pthread_key_t exit_key;
};

extern Sched g_sched;
extern constinit thread_local Thread* t_self __attribute__((tls_model("initial-exec")));

inline const Thread* nobody() {
  return reinterpret_cast<const Thread*>(1);  // no thread is, not even one that is not known
}

// True when the process is scheduled and the calling thread is in the game (ready, blocked and
// outside included). False before sched_init, after sched_end, in dormant processes, on threads
// that did not come through pthread_create, and inside the runtime itself.
inline bool sched_active() {
  return t_self != nullptr && !inside() && g_sched.on;
}

// Every point asks until the holder has found that it need not.
inline void set_holder(Thread* thread) {
  __atomic_store_n(&g_sched.holder, thread, __ATOMIC_RELAXED);
  g_sched.quick = nobody();
}

inline uint32_t* waiters_for(const volatile void* object) {
  const auto address = reinterpret_cast<uint64_t>(object);
  return &g_sched.waiters[(address >> 3 ^ address >> 11) % Sched::kWaiterGroups];
}

void sched_lock();
void sched_unlock();

struct SchedLocked {
  SchedLocked() { sched_lock(); }
  ~SchedLocked() { sched_unlock(); }
};

// The calling thread is inside the scheduler: signals wait.
struct Busy {
  explicit Busy(Thread* self) : self_(self), before_(self->busy) { self_->busy = true; }
  ~Busy() { self_->busy = before_; }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  Thread* self_;
  bool before_;
};

// ---- sched.cc -----------------------------------------------------------------------------------

// With the lock held.
void end_wait(Wait* wait, WakeReason reason);  // its thread becomes ready
void enter_ready(Thread* thread);              // at the end of the queue
void arm();                                    // sets next_action after anything changed
void give_to(Thread* next);                    // `next` is ready; it becomes the holder
Thread* choose_after(const Moment& moment);    // logged; there is a candidate
void log_decision(Thread* self, PointKind kind, Thread* chosen, const void* pc);  // schedule.cc

// Without the lock: sleeps until `self` has the baton; tells `next` that it has.
void wait_turn(Thread* self);
void wake_turn(Thread* next);

// A signal is waiting for `self`: moves that from the word to the flag.
bool take_nudge(Thread* self);

// Blocks like sched_block, until one of the descriptors is ready.
WakeReason block_on_descriptors(pollfd* descriptors, unsigned count, const char* what,
                                uint64_t deadline, const void* pc);

// The same, until one of `signals` is pending for the caller (none: until a handler has run, which
// is kSignal).
WakeReason block_on_signals(uint64_t signals, const char* what, uint64_t deadline, const void* pc);

// Signals that came while the caller waited for its turn.
void deliver_if_nudged(Thread* self);

// Takes the lock as the holder; a caller in the game that has lost the baton queues for it first.
Thread* lock_as_holder();

// ---- sched_thread.cc ----------------------------------------------------------------------------

Thread* new_thread();  // with the lock held; nullptr: too many
Thread* find_thread(pthread_t handle);
Thread* find_kernel_thread(uint32_t tid);
void start_thread(Thread* thread);  // by the creator, once the real thread exists
void first_turn(Thread* self);      // by the new thread
void sched_exit_destructor(void* self);
void note_gone(Thread* thread);
void wait_for_departing();                // by the holder
bool sched_pinned_from(cpu_set_t* cpus);  // the mask before the process was pinned, if it was

// ---- thread_hash.cc -----------------------------------------------------------------------------

void note_handle(pthread_t handle);  // of a new thread

// ---- sched_points.cc ----------------------------------------------------------------------------

void points_select(const char* mode);  // as the option `points`
bool access_is_shared(const volatile void* address);
void points_thread_created(const Thread* creator);

// Calls `use` with the flags of a unit's sites that a file of lines "UNIT INDEX" names.
void each_named_site(const heddle_unit* unit, const char* path, void (*use)(uint8_t* flag));

// ---- sched_stop.cc ------------------------------------------------------------------------------

void stop_init();                                    // reads the options
bool stop_unit_registered(const heddle_unit* unit);  // true: it has flagged sites
void stop_if_at_step(const Thread* self);
void stop_here(const Thread* self);

// An access of the holder at a site's flag, before it is known whether it is a scheduling point.
enum class Watched : uint8_t { kNot, kOnly, kPoint, kStop, kStopPoint };
Watched stop_watch(const Thread* self, const void* flag);

// ---- sched_signals.cc ---------------------------------------------------------------------------

// Ends the waits of those whose signal is pending. With the lock held.
void poll_signals();

// ---- sched_idle.cc ------------------------------------------------------------------------------

// Nobody is ready. Returns, lock held again, when somebody is. `self` is the caller (blocked or
// dead). Does not return from a deadlock.
void idle(Thread* self);

// Makes threads ready whose deadline has passed, or whose descriptors are. With the lock held.
void fire_deadlines();
void poll_descriptors();
uint64_t next_deadline();  // kNoDeadline: none
void wake_idler();         // somebody is ready, or the world has changed

// Called after the program wrote, closed or otherwise may have made a descriptor ready.
void sched_descriptors_changed();

// What a thread can wait for; compared by address.
extern const char kWaitMutex[], kWaitRwlock[], kWaitSpin[], kWaitCond[], kWaitSemaphore[],
    kWaitBarrier[], kWaitOnce[], kWaitThread[], kWaitFutex[], kWaitStream[];

// ---- intercept_sync_mutex.cc --------------------------------------------------------------------

// Those who wait for a robust mutex of a thread that ends must look again.
void robust_owner_ends(Thread* owner);

// ---- intercept_sync_once.cc ---------------------------------------------------------------------

// Initialisers that were left by an exception or a cancellation: wakes those who wait for them.
void once_check(Thread* self);

// ---- sched_report.cc ----------------------------------------------------------------------------

[[noreturn]] void report_deadlock(Thread* self);
[[noreturn]] void report_hang();
void dump_own_stack(Thread* self);  // asked for by kStackBit

}  // namespace heddle::rt
