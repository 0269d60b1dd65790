/* int profd_collect_call(function, a, b, mask): vector registers are the callee's here, nothing to save. */
	.section profd_collect_text, "ax", @progbits

	.globl	profd_collect_call
	.hidden	profd_collect_call
	.type	profd_collect_call, @function
profd_collect_call:
	.cfi_startproc
	hint	34
	mov	x16, x0
	mov	x0, x1
	mov	x1, x2
	br	x16
	.cfi_endproc
	.size	profd_collect_call, . - profd_collect_call

#include "client/collect/notes.inc"
