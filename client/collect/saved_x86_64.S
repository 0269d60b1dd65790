/* int profd_collect_call(function, a, b, mask): libc's code may use any vector register; the program's are kept.
 * mask 0: no XSAVE here, FXSAVE has all there is. */
	.section profd_collect_text, "ax", @progbits

	.globl	profd_collect_call
	.hidden	profd_collect_call
	.type	profd_collect_call, @function
profd_collect_call:
	.cfi_startproc
	push	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	mov	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	push	%rbx
	push	%r12
	.cfi_offset %rbx, -24
	.cfi_offset %r12, -32
	sub	$2704, %rsp
	and	$-64, %rsp
	mov	%rcx, %rbx
	mov	%rdi, %r12
	mov	%rsi, %rdi
	mov	%rdx, %rsi
	test	%rbx, %rbx
	jz	1f
	xor	%eax, %eax
	lea	512(%rsp), %r8
	movq	%rax, (%r8)
	movq	%rax, 8(%r8)
	movq	%rax, 16(%r8)
	movq	%rax, 24(%r8)
	movq	%rax, 32(%r8)
	movq	%rax, 40(%r8)
	movq	%rax, 48(%r8)
	movq	%rax, 56(%r8)
	mov	%ebx, %eax
	mov	%rbx, %rdx
	shr	$32, %rdx
	xsave64	(%rsp)
	jmp	2f
1:	fxsave64 (%rsp)
2:	call	*%r12
	mov	%eax, %r12d
	test	%rbx, %rbx
	jz	3f
	mov	%ebx, %eax
	mov	%rbx, %rdx
	shr	$32, %rdx
	xrstor64 (%rsp)
	jmp	4f
3:	fxrstor64 (%rsp)
4:	mov	%r12d, %eax
	lea	-16(%rbp), %rsp
	pop	%r12
	pop	%rbx
	pop	%rbp
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_endproc
	.size	profd_collect_call, . - profd_collect_call

#include "client/collect/notes.inc"
