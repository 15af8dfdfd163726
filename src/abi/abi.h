/* The contract between instrumented code, the runtime and the collector.
 *
 * Instrumented code writes 64-bit words into the block that the thread's cursor points into. A
 * record is one header word followed by the words it announces:
 *
 *   slot record     header = the address of a slot (top byte 0). The slot says what it is (a
 * segment, an enter, a leave …) and how many words follow: the addresses that the segment's
 *                   descriptor could not derive statically, in program order.
 *   runtime record  top byte = HEDDLE_REC_*: written by the runtime (locks, threads, memory,
 * switches).
 *
 * One thread runs at a time and owns the cursor; a hand-over passes it on with a HEDDLE_REC_SWITCH
 * record. So the words of the ring of blocks are in the one total order of the run, and no record
 * needs a time stamp. A thread without the baton has cursor > limit, so its first segment
 * takes the slow path, which waits for the baton; an uninitialised thread, a signal handler on a
 * blocked thread and a thread that outlived the runtime are caught by the same test.
 *
 * Inline code of a segment (base lives in a register):
 *
 *   base = tls.cursor; if (base > tls.limit) base = __heddle_refill(base);
 *   base[0] = &slot;
 *   for each access, before the access:
 *     if (site is atomic or volatile, or its sled was turned into a jump)
 *       base = __heddle_point(base, &flag, address);
 *     if (its address is dynamic) base[k] = address;
 *   tls.cursor = base + 1 + words;            after the segment's last access
 *
 * A record ends with storing the cursor, so base is tls.cursor wherever inline code leaves the
 * function, also in the middle of a record, and need not be passed. What it calls may replace r11,
 * which holds the base, memory and the flags, and nothing else (runtime/inline_entry.cc). The test
 * of the limit is a compare and a jump to a call, which a jump of five bytes follows:
 *
 *     cmpq limit, %r11;  ja …      call __heddle_refill_inline;  jmp (go on)
 *
 * Sleds. Before an access that is not atomic, and in a segment that only the flow level records,
 * stands a sled: a no-operation of five bytes, HEDDLE_SLED_BYTES. A run that wants the scheduling
 * points or the flow level turns the sleds into jumps while the module loads (runtime/sleds.h);
 * others pay for nothing. The sections HEDDLE_POINTS_SECTION and HEDDLE_FLOWS_SECTION of a module
 * say where they are and what they stand for, as packed entries:
 *
 *     point   .long sled - .;  .long flag - .;  .byte n;  n bytes: leaq address, %r11
 *     flow    .long sled - .;  .long slot - .
 *
 * Atomic and volatile accesses and fences call __heddle_point itself.
 *
 * Implied segments. Half of what the flow level would have to record are blocks that touch no
 * memory and only decide where to go on: heads of loops, chains of comparisons. Where every block
 * that can follow such a block follows no other and writes a record at its beginning, that record
 * says enough: the block writes nothing, and the slots of those that follow it have its distance in
 * `before`. The segment happened right before theirs, and so in turn did what is before it.
 *
 * Joined records. Calls of small functions that call nothing themselves are copied to where they
 * are called (instrument/joined.h). One slot record, HEDDLE_SLOT_JOINED, stands for everything from
 * there to the next thing that needs a record of its own: segments, and calls with Enter, the one
 * segment of their function, and Leave. Its words are those of the parts in their order: of a
 * segment, its own; of a call, the object if its function is a method, and the words of its
 * segment. It is paused and continued like a segment.
 *
 * A record may be taken up again (instrument/extended.h): the block that runs next moves the cursor
 * back to its begin, replaces its header by that of a joined one with more parts, and writes more
 * words behind those that are there. Whoever sees the record in between sees the one that had
 * ended, or the new one without some of its words.
 *
 * Words. The section HEDDLE_WORDS_SECTION says where words of records are stored, or memory for
 * them is asked for ahead, so that a run that records nothing can turn these instructions into
 * no-operations; what is left of a record then is the test of the limit and the moving cursor. An
 * entry is
 *
 *     word    .long instruction - .     movq register, offset(register), or the same of prefetchw
 *
 * __heddle_point is a scheduling point. When it switches threads in the middle of a segment it
 * closes the record as *paused*: bit 0 of the header word is set, and one more word follows the
 * record's words: the address of the flag of the access it paused before (0: unknown; the access is
 * then the one of the first zero word). Back in possession of the baton it opens a
 * HEDDLE_REC_CONTINUE record, which holds a whole slot record again (the words known so far
 * repeated), and returns its base, so that base[k] is again where the next address belongs.
 *
 * After one comparison with the limit, instrumented code may write several slot records, together
 * at most HEDDLE_SEGMENT_WORDS, before it compares again, as long as it calls nothing in between
 * but __heddle_point. The base that __heddle_point returns therefore has the same room as the one
 * that __heddle_refill returns, unless it is the base that it was given.
 *
 * Loops. An innermost loop that runs straight through, that knows how often it will run before it
 * does, and whose addresses move by the same distance in every round, exists twice: instrumented
 * as above, and *plain*, as the program has it (instrument/loops.h). The plain one is preceded by
 * one slot record (HEDDLE_SLOT_LOOP) from which all its accesses follow:
 *
 *   rounds, then the addresses of the first round and the distances that are not known statically,
 *   in the order that abi/layout.h says
 *
 * Gathering. Where data decides some of the addresses (a[index[i]]), the plain loop writes those
 * words, and no others, in every round: as many as the slot's `round_words`, of which the last
 * round, if it ends at the loop's test, writes those before it. They follow the words above. A
 * block is soon full of them; then the record ends after a whole round, with a header of its own
 * (the slot of the loop's pieces, whose last round is like the others), and the next one begins. So
 * records of such loops have one more word, behind the rounds: how many rounds of the loop came
 * before. All other words are as they were at the loop's entry.
 *
 * While the loop runs, `rounds` is written as its complement and the cursor stays before the
 * record; both are put right after its last round. So a record with the complement is of a loop
 * that never ended. One that ended in a fault is closed as paused, and the additional word is the
 * page that faulted, with HEDDLE_FAULT_KNOWN, and HEDDLE_FAULT_WRITE if only writing to it is
 * forbidden; its accesses are those up to the first one of that page. Of a gathering loop that
 * faulted, `rounds` becomes the complement of the rounds that were begun, so that all but the last
 * of them are whole, and the additional word follows the words of the last. Of a loop that ended
 * otherwise (kill -9) is known that some of its first rounds were run, and the collector delivers
 * none.
 *
 * Which one runs is decided at the loop's entry: the plain one if the number of rounds minus
 * HEDDLE_LOOP_FEWEST is less than a word of heddle_unit::loop_rounds, which is HEDDLE_LOOP_MOST
 * unless the runtime sets it to 0: when plain accesses are scheduling points, when one of the
 * unit's is watched, and at the flow level that of loops of which more is known there than their
 * accesses (enum heddle_loop_kind). Of all others the segments of a round follow, too: the layout
 * names their slots. A plain loop has no scheduling point and takes no signals, unless
 * it gathers: then where a record of it ends. What the instrumented one would have written is added
 * to heddle_tls::skipped.
 *
 * Blocks are zero before use. A block that was never submitted (the target was killed) is therefore
 * valid up to its first zero header word, and a segment up to its first zero address.
 *
 * This header is C, because the runtime serves C programs; it is the only thing that the three
 * share.
 */
#ifndef HEDDLE_ABI_H
#define HEDDLE_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bumped when anything in this file changes meaning. A module and a runtime that disagree say so.
 */
#define HEDDLE_ABI_VERSION 9

/* ---- what a translation unit carries ------------------------------------------------------- */

/* What a slot stands for. */
enum heddle_slot_kind {
  HEDDLE_SLOT_SEGMENT = 1, /* index = segment in the unit's catalog */
  /* index = function; words: call, which is what heddle_tls::call held; [this] when the function is
   * a method; [frame] when it has the flag kCatchesJumps. The frame is a token: the same in the
   * Enter and the Resync of one activation. */
  HEDDLE_SLOT_ENTER = 2,
  HEDDLE_SLOT_LEAVE = 3, /* index = function */
  /* index = function; words: frame. After a setjmp (first and second return alike) and at every
   * landing pad: the activations above the one with this function and frame are gone. Functions
   * without a landing pad write no Leave when an exception passes through them. */
  HEDDLE_SLOT_RESYNC = 4,
  HEDDLE_SLOT_FLOW_SEGMENT = 5, /* a segment without accesses: written at the flow level only */
  HEDDLE_SLOT_LIBCALL =
      6, /* index = site; the ranges that the wrapped libc call reports belong to it */
  HEDDLE_SLOT_LOOP = 7, /* index = loop in the unit's layout; words: see "loops" above */
  /* index = how many slots after this one say what it is joined from; words: see "joined records"
   * above. No record has one of those slots as its header: */
  HEDDLE_SLOT_JOINED = 8,
  HEDDLE_SLOT_PART = 9,       /* index = the slot of a segment, with accesses or without */
  HEDDLE_SLOT_CALL_PART = 10, /* index = the slot of an Enter; followed by a … */
  HEDDLE_SLOT_CALL_SITE = 11, /* index = site of the call */
};

/* Loops, by what their records leave out. */
enum heddle_loop_kind {
  HEDDLE_LOOP_WHOLE = 0,    /* nothing */
  HEDDLE_LOOP_ACCESSES = 1, /* segments without accesses, which the flow level wants */
  HEDDLE_LOOP_KINDS = 2
};

#define HEDDLE_LOOP_FEWEST 4u         /* rounds of a plain loop: fewer would not pay … */
#define HEDDLE_LOOP_MOST (1ull << 36) /* … and as many more the collector would not believe */
#define HEDDLE_LOOP_GATHERED 8u       /* words of a round at most */
#define HEDDLE_FAULT_KNOWN 1u
#define HEDDLE_FAULT_WRITE 2u
#define HEDDLE_FAULT_PAGE 4096u

#define HEDDLE_MOST_IMPLIED 16u /* segments that one record implies */

struct heddle_slot {
  uint32_t index; /* into the unit's catalog table for its kind */
  uint8_t kind;   /* enum heddle_slot_kind */
  uint8_t words;  /* dynamic words after the header */
  union {
    int16_t before; /* of a segment: slots from this one to that of the one it implies; 0: none */
    uint16_t round_words; /* of a loop: what every round adds; 0: it does not gather */
  };
} __attribute__((aligned(8))); /* bit 0 of a slot's address is free: see "paused" above */

/* How the address of a segment's access is known: one entry per segment in the unit's layout blob
 * (abi/layout.h): from the record, from a static symbol plus offset, or from an earlier access of
 * the same segment plus offset. A fence is an item of a segment too, without address and with an
 * unconditional scheduling point (address 0). */

/* Registered by a constructor of the unit before any other of its constructors runs. */
struct heddle_unit {
  uint32_t abi_version;
  uint32_t flags;
  const struct heddle_slot* slots;
  uint64_t slot_count;
  const uint8_t* catalog; /* serialised Catalog of the unit (src/trace/catalog_codec.h) */
  uint64_t catalog_size;
  const uint8_t* layout; /* how the items of each segment get their addresses and sizes */
  uint64_t layout_size;
  const void* const* symbols; /* addresses of the static variables that the layout refers to; filled
                                 by relocation; symbol k of the catalog is at symbols[k] */
  uint64_t symbol_count;
  uint8_t* site_flags; /* one byte per site; not zero: a scheduling point stands before it */
  uint64_t site_count;
  const char* name;      /* of the source file */
  const uint8_t* points; /* the sleds of the whole module */
  const uint8_t* points_end;
  const uint8_t* flows;
  const uint8_t* flows_end;
  const uint8_t* words; /* the stores of words of the whole module */
  const uint8_t* words_end;
  uint64_t* loop_rounds; /* HEDDLE_LOOP_KINDS: which loops run plain: see "loops" above */
};

#define HEDDLE_POINTS_SECTION "heddle_points"
#define HEDDLE_FLOWS_SECTION "heddle_flows"
#define HEDDLE_WORDS_SECTION "heddle_words"
#define HEDDLE_SLED_BYTES {0x0f, 0x1f, 0x44, 0x00, 0x08} /* nopl 8(%rax,%rax) */

/* The section of an object file that holds the catalogs and layouts of its units, for tools that
 * read object files: for each unit this header, the catalog and the layout, each padded to 8 bytes.
 */
#define HEDDLE_SECTION "heddle_catalog"
#define HEDDLE_SECTION_MAGIC 0x746163656c646468ull /* "hddlecat" */
struct heddle_section_header {
  uint64_t magic;
  uint64_t catalog_size;
  uint64_t layout_size;
};

/* ---- what instrumented code touches --------------------------------------------------------- */

struct heddle_tls {
  uint64_t* cursor;
  uint64_t* limit; /* cursor <= limit: at least HEDDLE_SEGMENT_WORDS words are free */
  /* The call under way, as the address of its site's flag: stored before every call, taken by the
   * Enter that it leads to. 0: none, or none that instrumented code has made. */
  const uint8_t* call;
  /* Words that plain loops did not write, since the runtime last looked: code without scheduling
   * points loses its turn after so many words. */
  uint64_t skipped;
};

#define HEDDLE_SEGMENT_WORDS 256 /* the longest slot record, header included */

#if defined(HEDDLE_RUNTIME)
#define HEDDLE_EXPORT __attribute__((visibility("default")))
#define HEDDLE_PRESERVE __attribute__((preserve_most))

extern HEDDLE_EXPORT __thread struct heddle_tls __heddle_tls
    __attribute__((tls_model("initial-exec")));

HEDDLE_EXPORT void __heddle_register(const struct heddle_unit* unit);
HEDDLE_EXPORT void __heddle_unregister(const struct heddle_unit* unit);
HEDDLE_EXPORT HEDDLE_PRESERVE uint64_t* __heddle_refill(uint64_t* cursor);
HEDDLE_EXPORT HEDDLE_PRESERVE uint64_t* __heddle_point(uint64_t* base, uint8_t* flag,
                                                       const void* address);
#endif

/* ---- runtime records --------------------------------------------------------------------------
 */

/* Header word of a runtime record:
 *   63..56 HEDDLE_REC_*   55..48 EventKind or 0   47..40 words that follow
 *   39..36 mode           35..32 outcome          31..0  a small number (thread id, memory order,
 * size) */
enum heddle_record {
  HEDDLE_REC_EVENT =
      0x81, /* an event of trace/event.h; words: address, value, return address (0 = none). Of an
               access, `mode` is the memory order, and without a return address its site is that of
               the last HEDDLE_SLOT_LIBCALL of the thread */
  HEDDLE_REC_SWITCH = 0x82, /* the records that follow are of thread `small` */
  HEDDLE_REC_CONTINUE =
      0x83, /* the segment that the current thread left paused goes on; words: the address of the
               flag where it paused. The record that follows is the segment's slot record; its
               accesses from that flag's site on are new */
  HEDDLE_REC_UNIT = 0x84,   /* a unit was registered; words: address of the heddle_unit, then offset
                               and length of its copy (struct heddle_unit_copy) in the side region */
  HEDDLE_REC_UNLOAD = 0x85, /* words: address of the heddle_unit that is gone */
  HEDDLE_REC_SKIP = 0x86,   /* the rest of this block is unused */
  HEDDLE_REC_TEXT =
      0x87, /* a text (thread name, mark, assertion): words: kind, length, bytes padded to 8. Of a
               name, `small` is the thread plus one; 0: the current thread */
  HEDDLE_REC_DECISION = 0x88, /* the scheduler chose: words: number of the point, chosen thread */
  HEDDLE_REC_STACK =
      0x89, /* a native call stack (deadlock, crash): words: thread, then return addresses */
  HEDDLE_REC_MODULE = 0x8a, /* a loaded module: words: load bias, first address, last address,
                               length of its path, the path padded to 8 */
};

#define HEDDLE_HEADER(rec, kind, words, mode, outcome, small)                       \
  (((uint64_t)(rec) << 56) | ((uint64_t)(kind) << 48) | ((uint64_t)(words) << 40) | \
   ((uint64_t)(mode) << 36) | ((uint64_t)(outcome) << 32) | (uint64_t)(uint32_t)(small))

/* ---- the shared region ------------------------------------------------------------------------
 */

/* A memfd that the runtime creates and sends to the collector over a Unix socket. It outlives the
 * target, which is why kill -9 loses nothing. Layout: this header (one page), the ring of blocks,
 * then the side region for copies of the units' catalogs (grown by ftruncate; the collector maps it
 * on demand). */
#define HEDDLE_SHARED_MAGIC 0x6c646465682d6d68ull /* "hm-heddl" */
#define HEDDLE_BLOCK_WORDS 8192u
#define HEDDLE_END_TEXT 2048u
#define HEDDLE_HEADER_BYTES 4096u
#define HEDDLE_BLOCK_SLACK 64u /* words after the last segment, for a pause and a continuation */

/* A copy of a unit in the side region: this, then slots, catalog, layout, symbols (as addresses)
 * and name, each as long as `unit` says, each starting at a multiple of 8. */
struct heddle_unit_copy {
  struct heddle_unit unit; /* pointers are those of the target */
  uint64_t name_size;
};

struct heddle_shared {
  uint64_t magic;
  uint32_t abi_version;
  uint32_t pid;
  uint32_t block_words;
  uint32_t block_count;
  uint64_t ring_offset;
  uint64_t side_offset;

  /* Blocks are handed over in ring order. submitted: by the target; released: by the collector.
   * Both are futex words (low 32 bits) for the side that waits. */
  uint64_t submitted __attribute__((aligned(64)));
  uint64_t released __attribute__((aligned(64)));
  uint64_t side_used __attribute__((aligned(64)));
  uint64_t lost_words; /* records dropped because nobody could take them */
  uint32_t collector_gone;
  uint32_t ended;            /* the target has said its last word; end_* hold */
  uint32_t collector_sleeps; /* a wake-up is wanted when `submitted` moves … */
  uint32_t target_sleeps;    /* … and when `released` moves */
  uint32_t level;            /* enum heddle_level */
  uint32_t parent_pid;       /* of a forked child: the process it was forked from, else 0 */
  uint32_t foreign_units;    /* there are units of another interface version: the user was told */

  /* How the run ended, as far as the target can tell. It stands here and not in the ring because a
   * watchdog or a crashing thread may have to say it while another thread owns the ring. */
  uint32_t end_kind; /* RunEnd of trace/event.h */
  uint32_t end_thread;
  uint64_t end_value;
  uint64_t end_pc; /* the faulting instruction, or 0 */
  uint64_t end_text_size;
  char end_text[HEDDLE_END_TEXT];
};

/* The first message on the socket, from the target, with the memfd as SCM_RIGHTS. The collector
 * answers with one byte: 1 = welcome, 0 = not (it has told the user why). */
struct heddle_hello {
  uint64_t magic; /* HEDDLE_SHARED_MAGIC */
  uint32_t abi_version;
  uint32_t pid;
};

enum heddle_level { HEDDLE_LEVEL_OFF = 0, HEDDLE_LEVEL_ACCESSES = 1, HEDDLE_LEVEL_FLOW = 2 };

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEDDLE_ABI_H */
