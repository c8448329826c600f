/*
 * dlsym(handle, name), exported. spill_dlsym_find(handle, name, return address) returns our stub,
 * or sets spill_dlsym_real and returns NULL. Then this jumps to it, so that glibc sees the caller's
 * return address and can resolve RTLD_NEXT and RTLD_DEFAULT. A C wrapper breaks these for every
 * other library (pitfall 2).
 */
#if defined(__x86_64__)

/* A note that this file keeps to a shadow stack and has landing pads, without which the linker drops it for the whole library. */
#ifdef __CET__
#include <cet.h>
#endif

	.text
	.globl	dlsym
	.type	dlsym, @function
	.p2align 4
dlsym:
	.cfi_startproc
	endbr64
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	movq	16(%rsp), %rdx
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	spill_dlsym_find
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	testq	%rax, %rax
	jz	1f
	ret
1:
	jmp	*spill_dlsym_real(%rip)
	.cfi_endproc
	.size	dlsym, .-dlsym

#elif defined(__aarch64__)

/* The compiler signs return addresses on the stack (-mbranch-protection), so this does. Only with key A, as usual. */
#if defined(__ARM_FEATURE_PAC_DEFAULT) && (__ARM_FEATURE_PAC_DEFAULT & 1)
#define SIGN hint #25 /* paciasp */; .cfi_negate_ra_state
#define CHECK hint #29 /* autiasp */; .cfi_negate_ra_state
#define MARK_SIGNED 2
#else
#define SIGN
#define CHECK
#define MARK_SIGNED 0
#endif
/* Calls and returns are in pairs, as a guarded control stack wants them. */
#ifdef __ARM_FEATURE_GCS_DEFAULT
#define MARK_PAIRED 4
#else
#define MARK_PAIRED 0
#endif

	.text
	.globl	dlsym
	.type	dlsym, %function
	.p2align 4
dlsym:
	.cfi_startproc
	hint	#34 /* bti c */
	mov	x2, x30
	SIGN
	stp	x29, x30, [sp, #-32]!
	.cfi_def_cfa_offset 32
	.cfi_offset 29, -32
	.cfi_offset 30, -24
	mov	x29, sp
	stp	x0, x1, [sp, #16]
	bl	spill_dlsym_find
	mov	x16, x0
	ldp	x0, x1, [sp, #16]
	ldp	x29, x30, [sp], #32
	.cfi_def_cfa_offset 0
	.cfi_restore 29
	.cfi_restore 30
	CHECK
	cbz	x16, 1f
	mov	x0, x16
	ret
1:
	adrp	x16, spill_dlsym_real
	ldr	x16, [x16, :lo12:spill_dlsym_real]
	br	x16
	.cfi_endproc
	.size	dlsym, .-dlsym

/* As cet.h does on x86: GNU_PROPERTY_AARCH64_FEATURE_1_AND with BTI, PAC and GCS. */
#ifdef __ARM_FEATURE_BTI_DEFAULT
	.section .note.gnu.property, "a"
	.p2align 3
	.word	4, 16, 5
	.asciz	"GNU"
	.word	0xc0000000, 4, 1 | MARK_SIGNED | MARK_PAIRED, 0
#endif

#else
#error "dlsym needs a tail jump for this architecture"
#endif

	.section .note.GNU-stack,"",%progbits
