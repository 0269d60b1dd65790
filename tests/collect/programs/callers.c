/* callers SECONDS: uses that much CPU time, and at least 1,000 rounds, in spin(), which main reaches by outer, varies
 * and inner, or by quiet. (Where a virtual machine stands still, the kernel may count that as CPU time.) While spin()
 * runs, the register of the frame pointer points at what looks like a frame of innocent(), which calls nothing: code
 * without frame pointers may keep anything there, if only its unwind information says where the caller's is. */
#include <alloca.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define APART __attribute__((noinline, noclone))

APART void innocent(void)
{
    __asm__ volatile("nop\n nop\n nop\n nop\n nop\n nop\n nop\n nop");
}

extern void spin(void);
#if defined __x86_64__
__asm__(".text\n .globl spin\n .type spin,@function\n spin:\n .cfi_startproc\n push %rbp\n .cfi_def_cfa_offset 16\n"
        " .cfi_offset 6, -16\n sub $16, %rsp\n .cfi_def_cfa_offset 32\n movq $0, (%rsp)\n lea innocent+4(%rip), %rax\n"
        " mov %rax, 8(%rsp)\n mov %rsp, %rbp\n mov $200000, %eax\n 1: dec %eax\n jnz 1b\n add $16, %rsp\n"
        " .cfi_def_cfa_offset 16\n pop %rbp\n .cfi_restore 6\n .cfi_def_cfa_offset 8\n ret\n .cfi_endproc\n"
        " .size spin, . - spin");
#else
__asm__(
    ".text\n .globl spin\n .type spin,@function\n spin:\n .cfi_startproc\n stp x29, x30, [sp, -32]!\n"
    " .cfi_def_cfa_offset 32\n .cfi_offset 29, -32\n .cfi_offset 30, -24\n adr x0, innocent\n add x0, x0, 4\n"
    " str xzr, [sp, 16]\n str x0, [sp, 24]\n add x29, sp, 16\n movz w0, 0x0003, lsl 16\n 1: subs w0, w0, 1\n b.ne 1b\n"
    " ldp x29, x30, [sp], 32\n .cfi_restore 29\n .cfi_restore 30\n .cfi_def_cfa_offset 0\n ret\n .cfi_endproc\n"
    " .size spin, . - spin");
#endif

APART void inner(void)
{
    spin();
    __asm__ volatile("");
}

/* Its frame is as large as its argument says: its unwind information goes by the frame pointer, always. */
APART void varies(unsigned n)
{
    char *bytes = alloca(n);
    __asm__ volatile("" : : "r"(bytes) : "memory");
    inner();
    __asm__ volatile("");
}

APART void outer(unsigned n)
{
    varies(n);
    __asm__ volatile("");
}

APART void quiet(void)
{
    spin();
    __asm__ volatile("");
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 0.1;
    for (unsigned i = 0; i < 1000 || (double)clock() / CLOCKS_PER_SEC < seconds; i++) {
        outer(i % 512);
        quiet();
    }
    puts("done");
    return 0;
}
