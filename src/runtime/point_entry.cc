// __heddle_point: where an atomic or volatile access enters the runtime (abi/abi.h).
//
// The short way is quick_point_passes of sched_point.h for an atomic access, instruction by
// instruction: programs that live on atomics come here for every few instructions of their own, and
// what they lose is less the time that this takes than the cache misses that the processor could
// have started meanwhile. A compiler's version is half as long again, because it saves a register
// and makes frames. Of the registers only rax, where the result goes, and r11 are free.
#include "runtime/sched_point.h"

#include <stddef.h>

using namespace heddle::rt;

// record.cc
extern "C" HEDDLE_PRESERVE uint64_t* heddle_point_at_length(uint64_t* base, uint8_t* flag,
                                                            const void* address);

extern "C" __attribute__((used, visibility("hidden"))) const uint64_t heddle_hash_factor =
    kHashFactor;

// rdi: base, rsi: flag, rdx: address.
extern "C" __attribute__((naked)) HEDDLE_EXPORT HEDDLE_PRESERVE uint64_t* __heddle_point(
    uint64_t*, uint8_t*, const void*) {
  __asm__(
      R"(
	cmpb	$0, (%%rsi)
	jne	2f
	movq	_ZN6heddle2rt6t_selfE@GOTTPOFF(%%rip), %%rax
	movq	%%fs:(%%rax), %%r11
	cmpq	_ZN6heddle2rt7g_schedE+%c[quick](%%rip), %%r11
	jne	2f
	movq	_ZN6heddle2rt8t_insideE@GOTTPOFF(%%rip), %%rax
	cmpl	$0, %%fs:(%%rax)
	jne	2f
	movq	_ZN6heddle2rt7g_schedE+%c[points](%%rip), %%rax
	incq	%%rax
	cmpq	_ZN6heddle2rt7g_schedE+%c[next_action](%%rip), %%rax
	jae	2f
	cmpq	%%rdx, %c[spin_object](%%r11)
	je	3f
1:
	movq	%%rax, _ZN6heddle2rt7g_schedE+%c[points](%%rip)
	movq	%%rdx, %c[spin_object](%%r11)
	movq	%%rsi, %c[spin_pc](%%r11)
	movl	$0, %c[spin_count](%%r11)
	incq	%c[steps](%%r11)
	movq	_ZN6heddle2rt7g_schedE+%c[hash](%%rip), %%rax
	xorq	%c[atomic_mark](%%r11), %%rax
	imulq	heddle_hash_factor(%%rip), %%rax
	movq	%%rax, _ZN6heddle2rt7g_schedE+%c[hash](%%rip)
	movq	%%rdi, %%rax
	retq
3:
	cmpq	%%rsi, %c[spin_pc](%%r11)
	jne	1b
2:
	jmp	heddle_point_at_length
)"
      :
      : [quick] "i"(offsetof(Sched, quick)), [points] "i"(offsetof(Sched, points)),
        [next_action] "i"(offsetof(Sched, next_action)), [hash] "i"(offsetof(Sched, hash)),
        [spin_object] "i"(offsetof(Thread, spin_object)), [spin_pc] "i"(offsetof(Thread, spin_pc)),
        [spin_count] "i"(offsetof(Thread, spin_count)), [steps] "i"(offsetof(Thread, steps)),
        [atomic_mark] "i"(offsetof(Thread, atomic_mark)));
}
