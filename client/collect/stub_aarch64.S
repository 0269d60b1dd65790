/* The fast path on AArch64, where _mcount is an ordinary call: x9–x15 are free, arguments are saved by the caller.
 * The load and the store of the count are exclusive: a signal handler in between makes the store fail, and nothing
 * is lost. */
#include "client/collect/stub.h"

	.section profd_collect_text, "ax", @progbits

/* x10 = from, 32 bits; self in \self. Leaves through .Lcollect_add_\@ or goes on to \slow. */
.macro COUNT self, slow
	adrp	x11, :gottprel:profd_collect_thread
	ldr	x11, [x11, :gottprel_lo12:profd_collect_thread]
	mrs	x12, tpidr_el0
	ldr	x11, [x12, x11]
	adrp	x12, profd_collect_dummy
	add	x12, x12, :lo12:profd_collect_dummy
	add	x11, x11, x12
	orr	x13, x10, \self, lsl #32
	ldr	x12, [x11, STUB_TABLE_MASK]
	and	x14, x12, x10, lsl #1
	add	x14, x14, x11
	ldr	x15, [x14, STUB_SLOTS]
	add	x14, x14, STUB_SLOTS + 8
	cmp	x15, x13
	b.ne	2f
1:	ldxr	x15, [x14]
	add	x15, x15, 1
	stxr	w12, x15, [x14]
	cbnz	w12, 1b
	ret
2:	movz	x15, #0x7c15
	movk	x15, #0x7f4a, lsl #16
	movk	x15, #0x79b9, lsl #32
	movk	x15, #0x9e37, lsl #48
	mul	x15, x13, x15
	ldp	x12, x14, [x11, STUB_TABLE_HMASK]
	and	x15, x12, x15, lsr #32
	add	x14, x14, x11
	add	x14, x14, x15
3:	ldr	x12, [x14], 8
	cmp	x12, x13
	b.eq	1b
	cbz	x12, 4f
	add	x14, x14, 8
	b	3b
4:	adrp	x12, collect
	ldr	w12, [x12, :lo12:collect]
	cbnz	w12, \slow
	ret
.endm

/* gcc -pg gives the caller in x0, clang does not; the frame has it for both. */
	.globl	mcount, _mcount, profd_collect_mcount
	.hidden	profd_collect_mcount
	.type	mcount, @function
	.type	_mcount, @function
	.p2align 6
mcount:
_mcount:
profd_collect_mcount:
	.cfi_startproc
	hint	34 /* bti c */
	ldr	w10, [x29, 8]
	COUNT	x30, .Lmcount_slow
.Lmcount_slow:
	ldr	x0, [x29, 8]
	mov	x1, x30
	b	collect_enter
	.cfi_endproc
	.size	mcount, . - mcount
	.size	_mcount, . - _mcount

/* -finstrument-functions: function in x0, call site in x1. */
	.globl	__cyg_profile_func_enter
	.type	__cyg_profile_func_enter, @function
	.p2align 6
__cyg_profile_func_enter:
	.cfi_startproc
	hint	34
	mov	w10, w1
	COUNT	x0, .Lcyg_slow
.Lcyg_slow:
	mov	x9, x0
	mov	x0, x1
	mov	x1, x9
	b	collect_enter
	.cfi_endproc
	.size	__cyg_profile_func_enter, . - __cyg_profile_func_enter

/* x0 = from, perhaps signed; x1 = self. */
	.type	collect_enter, @function
collect_enter:
	.cfi_startproc
	stp	x29, x30, [sp, -16]!
	.cfi_def_cfa_offset 16
	.cfi_offset x29, -16
	.cfi_offset x30, -8
	mov	x29, sp
	mov	x30, x0
	hint	7 /* xpaclri */
	mov	x0, x30
	bl	collect_slow
	ldp	x29, x30, [sp], 16
	.cfi_restore x29
	.cfi_restore x30
	.cfi_def_cfa_offset 0
	ret
	.cfi_endproc
	.size	collect_enter, . - collect_enter

#include "client/collect/notes.inc"
