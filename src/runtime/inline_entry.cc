// Where inline code enters the runtime (abi/abi.h).
//
// Tests and sleds stand in the middle of a function, as inline assembly: the compiler knows that
// they may replace r11, change memory and the flags, and nothing else. So whatever they call saves
// every register, vector registers too, which preserve_most functions may use. What stands after
// the call instruction are its arguments; the return address on the stack is replaced by the
// place in the function where it goes on, so that a stack trace taken below shows the function.
// Calls go through the global offset table: the procedure linkage table, when it binds late,
// clobbers r10.
//
// Saving the vector registers costs as much as some hundred instructions. Where nothing is recorded
// a scratch block is full every few hundred words, so it is started over without that
// (stream.h, Scratch). And most accesses before which a thread could be switched are passed:
// heddle_access_passes (sched_points.cc) has no use for vector registers.
#include "abi/abi.h"

// XSAVE's mask: SSE, AVX and AVX-512 state. Room: 512 bytes, a header of 64, the rest in the
// standard format.
__asm__(R"(
	.set heddle_state_mask, 0xe6
	.set heddle_state_room, 2752

	.macro heddle_save_state
	subq	$heddle_state_room, %rsp
	andq	$-64, %rsp
	xorl	%eax, %eax
	movq	%rax, 512(%rsp)
	movq	%rax, 520(%rsp)
	movq	%rax, 528(%rsp)
	movq	%rax, 536(%rsp)
	movq	%rax, 544(%rsp)
	movq	%rax, 552(%rsp)
	movq	%rax, 560(%rsp)
	movq	%rax, 568(%rsp)
	xorl	%edx, %edx
	movl	$heddle_state_mask, %eax
	xsave64	(%rsp)
	.endm

	.macro heddle_restore_state
	xorl	%edx, %edx
	movl	$heddle_state_mask, %eax
	xrstor64	(%rsp)
	.endm

	.macro heddle_position register
	movq	__heddle_tls@GOTTPOFF(%rip), \register
	movq	%fs:(\register), \register
	.endm

	.text

# After the call: a jump of five bytes to where to go on, .long offset of the flag. r11: the address.
# Who passes returns to that jump, as the processor expects.
	.globl	__heddle_point_inline
	.type	__heddle_point_inline, @function
	.p2align 4
__heddle_point_inline:
	.cfi_startproc
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	pushq	%rax
	pushq	%rcx
	pushq	%rdx
	pushq	%rsi
	pushq	%rdi
	movq	8(%rbp), %rax
	movslq	5(%rax), %rsi
	leaq	5(%rax,%rsi), %rsi
	pushq	%r8
	pushq	%r9
	pushq	%r10
	pushq	%r11
	pushq	%rsi
	movq	%rsi, %rdi
	movq	%r11, %rsi
	callq	heddle_access_passes
	testb	%al, %al
	popq	%rsi
	popq	%r11
	popq	%r10
	popq	%r9
	popq	%r8
	je	2f
	heddle_position %r11
1:
	popq	%rdi
	popq	%rsi
	popq	%rdx
	popq	%rcx
	popq	%rax
	popq	%rbp
	.cfi_remember_state
	.cfi_def_cfa %rsp, 8
	retq
	.cfi_restore_state
2:
	movq	8(%rbp), %rax
	movslq	1(%rax), %rcx
	leaq	5(%rax,%rcx), %rax
	movq	%rax, 8(%rbp)
	heddle_save_state
	movq	%r11, %rdx
	heddle_position %rdi
	callq	*__heddle_point@GOTPCREL(%rip)
	movq	%rax, %r11
	heddle_restore_state
	leaq	-40(%rbp), %rsp
	jmp	1b
	.cfi_endproc
	.size	__heddle_point_inline, .-__heddle_point_inline

# After the call: a jump of five bytes to where to go on.
	.globl	__heddle_refill_inline
	.type	__heddle_refill_inline, @function
	.p2align 4
__heddle_refill_inline:
	.cfi_startproc
	pushq	%rax
	.cfi_def_cfa_offset 16
	pushq	%rdx
	.cfi_def_cfa_offset 24
	movq	__heddle_tls@GOTTPOFF(%rip), %rax
	cmpq	$0, %fs:8(%rax)
	je	1f
	movq	heddle_scratch@GOTTPOFF(%rip), %rdx
	cmpq	$0, %fs:8(%rdx)
	je	1f
	decq	%fs:8(%rdx)
	movq	%fs:(%rdx), %r11
	movq	%r11, %fs:(%rax)
	popq	%rdx
	.cfi_def_cfa_offset 16
	popq	%rax
	.cfi_def_cfa_offset 8
	retq
	.cfi_def_cfa_offset 24
1:
	popq	%rdx
	.cfi_def_cfa_offset 16
	popq	%rax
	.cfi_def_cfa_offset 8
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	pushq	%rax
	pushq	%rdx
	pushq	%rdi
	movq	8(%rbp), %rax
	movslq	1(%rax), %rdx
	leaq	5(%rax,%rdx), %rax
	movq	%rax, 8(%rbp)
	heddle_save_state
	heddle_position %rdi
	callq	*__heddle_refill@GOTPCREL(%rip)
	movq	%rax, %r11
	heddle_restore_state
	leaq	-24(%rbp), %rsp
	popq	%rdi
	popq	%rdx
	popq	%rax
	popq	%rbp
	.cfi_def_cfa %rsp, 8
	retq
	.cfi_endproc
	.size	__heddle_refill_inline, .-__heddle_refill_inline

# After the call: .long offset of the slot, .long offset of where to go on. Often taken at the flow
# level, so there is no call on its way unless the block is full.
	.globl	__heddle_flow_inline
	.type	__heddle_flow_inline, @function
	.p2align 4
__heddle_flow_inline:
	.cfi_startproc
	pushq	%rax
	.cfi_def_cfa_offset 16
	pushq	%rcx
	.cfi_def_cfa_offset 24
	pushq	%rdx
	.cfi_def_cfa_offset 32
	movq	24(%rsp), %rax
	movslq	(%rax), %rdx
	addq	%rax, %rdx
	movslq	4(%rax), %rcx
	leaq	4(%rax,%rcx), %rcx
	movq	%rcx, 24(%rsp)
	movq	__heddle_tls@GOTTPOFF(%rip), %rax
	movq	%fs:(%rax), %r11
	cmpq	%fs:8(%rax), %r11
	ja	2f
1:
	movq	%rdx, (%r11)
	addq	$8, %r11
	movq	%r11, %fs:(%rax)
	popq	%rdx
	.cfi_def_cfa_offset 24
	popq	%rcx
	.cfi_def_cfa_offset 16
	popq	%rax
	.cfi_def_cfa_offset 8
	retq
	.cfi_def_cfa_offset 32
2:
	callq	*__heddle_refill_inline@GOTPCREL(%rip)
	.byte	0xe9
	.long	1b-.-4
	.cfi_endproc
	.size	__heddle_flow_inline, .-__heddle_flow_inline
)");
