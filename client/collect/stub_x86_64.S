/* The fast path on x86-64. No register but r10 and r11 is free (r10 only because gcc's -pg saves a live static chain
 * itself), the flags are. rax and rcx wait in our red zone. The caller's vector registers are never touched.
 *
 * One call: key = self << 32 | from; the slot at from / 8 in the thread's table, or by hash in the area behind;
 * count + 1 in one instruction, so that a signal handler's counting in between is not lost. */
#include "client/collect/stub.h"

	.section profd_collect_text, "ax", @progbits

/* r10 = from, r11 = self, 32 and 64 bits: to the thread's slot, or on to the area behind it. r11 becomes the key. */
.macro LOOK miss, often
	shl	$32, %r11
	or	%r10, %r11
	add	%r10, %r10
	and	STUB_TABLE_MASK(%rax), %r10
	cmp	%r11, STUB_SLOTS(%rax, %r10)
	jne	\miss
	incq	STUB_SLOTS+8(%rax, %r10)
.ifnb \often
	cmpw	$STUB_OFTEN, STUB_SLOTS+8(%rax, %r10)
	mov	-8(%rsp), %rax
	je	\often
.else
	mov	-8(%rsp), %rax
.endif
	ret
.endm

/* The second area: up from the hash to the key or a free slot; on from the end if it is free. */
.macro PROBE often
	mov	%rcx, -16(%rsp)
	movabs	$STUB_FACTOR, %rcx
	imul	%r11, %rcx
	shr	$32, %rcx
	and	STUB_TABLE_HMASK(%rax), %rcx
	add	STUB_TABLE_HASH(%rax), %rcx
	add	%rax, %rcx
1:	cmp	%r11, (%rcx)
	je	2f
	cmpq	$0, (%rcx)
	je	3f
	add	$16, %rcx
	jmp	1b
2:	incq	8(%rcx)
.ifnb \often
	cmpw	$STUB_OFTEN, 8(%rcx)
.endif
	mov	-16(%rsp), %rcx
	mov	-8(%rsp), %rax
.ifnb \often
	je	\often
.endif
	ret
3:	mov	-16(%rsp), %rcx
.endm

/* Not there: a call that is new, or counting is off. */
.macro NONE slow
	cmpl	$0, collect(%rip)
	mov	-8(%rsp), %rax
	jne	\slow
	ret
.endm

/* The thread's table; &profd_collect_dummy for a thread that has none. */
.macro TABLE
	mov	%rax, -8(%rsp)
	mov	profd_collect_thread@gottpoff(%rip), %r11
	lea	profd_collect_dummy(%rip), %rax
	add	%fs:(%r11), %rax
.endm

/* gcc and clang -pg, after the prologue: the caller's return address is in its frame. */
	.globl	mcount, _mcount
	.type	mcount, @function
	.type	_mcount, @function
	.globl	profd_collect_mcount
	.hidden	profd_collect_mcount
	.p2align 6
mcount:
_mcount:
profd_collect_mcount:
	.cfi_startproc
	endbr64
	TABLE
	mov	8(%rbp), %r10d
	mov	(%rsp), %r11
	LOOK	.Lmcount_miss
.Lmcount_miss:
	PROBE
	NONE	.Lmcount_slow
.Lmcount_slow:
	mov	8(%rbp), %r10
	mov	(%rsp), %r11
	jmp	collect_enter
	.cfi_endproc
	.size	mcount, . - mcount
	.size	_mcount, . - _mcount

/* -mfentry, before the prologue: the caller's return address is above ours. */
	.globl	__fentry__
	.type	__fentry__, @function
	.p2align 6
__fentry__:
profd_collect_fentry:
	.cfi_startproc
	endbr64
	TABLE
	mov	8(%rsp), %r10d
	mov	(%rsp), %r11
	LOOK	.Lfentry_miss
.Lfentry_miss:
	PROBE
	NONE	.Lfentry_slow
.Lfentry_slow:
	mov	8(%rsp), %r10
	mov	(%rsp), %r11
	jmp	collect_enter
	.cfi_endproc
	.size	__fentry__, . - __fentry__

/* -finstrument-functions: an ordinary call (function, call site). */
	.globl	__cyg_profile_func_enter
	.type	__cyg_profile_func_enter, @function
	.p2align 6
__cyg_profile_func_enter:
	.cfi_startproc
	endbr64
	TABLE
	mov	%esi, %r10d
	mov	%rdi, %r11
	LOOK	.Lcyg_miss
.Lcyg_miss:
	PROBE
	NONE	.Lcyg_slow
.Lcyg_slow:
	mov	%rsi, %r10
	mov	%rdi, %r11
	jmp	collect_enter
	.cfi_endproc
	.size	__cyg_profile_func_enter, . - __cyg_profile_func_enter

/* What rewritten call sites call, if they have no thunk: copied into a page near them. The offset of the
 * thread's table is written there, and the last 8 bytes have the address of the way on. */
.macro NEAR name, from
	.p2align 6
profd_collect_near_\name:
	mov	%rax, -8(%rsp)
	mov	%fs:0x7fffffff, %rax
profd_collect_near_\name\()_offset:
	mov	\from, %r10d
	mov	(%rsp), %r11
	LOOK	.Lnear_\name\()_miss
.Lnear_\name\()_miss:
	PROBE
	jmp	*.Lnear_\name\()_none(%rip)
.Lnear_\name\()_none:
	.quad	0
profd_collect_near_\name\()_end:
profd_collect_none_\name:
	endbr64
	NONE	.L\name\()_slow
.endm
	NEAR	mcount, 8(%rbp)
	NEAR	fentry, 8(%rsp)

/* A thunk that found another caller in the first slot of its site: r10 = key, r11 = that slot less the site's place.
 * The site's second slot, then the thread's table. */
.macro SITE name, from
	.type	profd_collect_site_\name, @function
	.p2align 6
profd_collect_site_\name:
	.cfi_startproc
	endbr64
	mov	%rax, -8(%rsp)
	mov	%rcx, -16(%rsp)
	mov	(%rsp), %rcx
	xor	$16, %r11
	movslq	STUB_THUNK_PLACE-STUB_THUNK_AFTER(%rcx), %rax
	cmp	%r10, (%rax, %r11)
	jne	4f
	incq	8(%rax, %r11)
	mov	-16(%rsp), %rcx
	mov	-8(%rsp), %rax
	ret
4:	movslq	1(%rcx), %r11
	lea	5(%rcx, %r11), %r11
	mov	profd_collect_thread@gottpoff(%rip), %rcx
	lea	profd_collect_dummy(%rip), %rax
	add	%fs:(%rcx), %rax
	mov	\from, %r10d
	mov	-16(%rsp), %rcx
	LOOK	.Lsite_\name\()_miss, .Lsite_\name\()_often
.Lsite_\name\()_miss:
	PROBE	.Lsite_\name\()_often
	NONE	.Lsite_\name\()_slow
.Lsite_\name\()_slow:
	mov	(%rsp), %r11
	movslq	1(%r11), %r10
	lea	5(%r11, %r10), %r11
	mov	\from, %r10
	jmp	collect_enter
.Lsite_\name\()_often:
	mov	(%rsp), %r11
	movslq	1(%r11), %r10
	lea	5(%r11, %r10), %r11
	mov	\from, %r10
	jmp	collect_enter_often
	.cfi_endproc
	.size	profd_collect_site_\name, . - profd_collect_site_\name
.endm
	SITE	mcount, 8(%rbp)
	SITE	fentry, 8(%rsp)

/* r10 = from, r11 = self. Saves what C may change, but for vector registers: that C has none. The stack need not be
 * aligned here. */
.macro ENTER name, function
	.type	\name, @function
\name:
	.cfi_startproc
	push	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	mov	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	push	%rax
	push	%rcx
	push	%rdx
	push	%rsi
	push	%rdi
	push	%r8
	push	%r9
	push	%r10
	push	%r11
	and	$-16, %rsp
	cld
	mov	%r10, %rdi
	mov	%r11, %rsi
	call	\function
	lea	-72(%rbp), %rsp
	pop	%r11
	pop	%r10
	pop	%r9
	pop	%r8
	pop	%rdi
	pop	%rsi
	pop	%rdx
	pop	%rcx
	pop	%rax
	pop	%rbp
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_endproc
	.size	\name, . - \name
.endm
	ENTER	collect_enter, collect_slow
	ENTER	collect_enter_often, collect_often

/* struct stub_code of mcount and of __fentry__ */
.macro CODE name
	.quad	profd_collect_\name
	.quad	profd_collect_near_\name, profd_collect_near_\name\()_offset, profd_collect_near_\name\()_end
	.quad	profd_collect_none_\name, profd_collect_site_\name
.endm
	.section .data.rel.ro.local, "aw", @progbits
	.globl	profd_collect_stub
	.hidden	profd_collect_stub
	.type	profd_collect_stub, @object
	.p2align 3
profd_collect_stub:
	CODE	mcount
	CODE	fentry
	.size	profd_collect_stub, . - profd_collect_stub

#include "client/collect/notes.inc"
