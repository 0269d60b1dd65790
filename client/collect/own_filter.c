/* prctl() and syscall() replace libc's: a program that installs a seccomp filter by them is known to have one before
 * the filter takes effect. Each behaves like libc's. */
#include <errno.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/prctl.h>

#include "client/collect/raw.h"

#define EXPORT __attribute__((visibility("default")))

uint32_t raw_denied;

static long answer_of(long answer)
{
    if (answer < 0 && answer > -4096) {
        errno = (int)-answer;
        return -1;
    }
    return answer;
}

/* For the assembly below. */
long profd_collect_failed(long answer) __attribute__((visibility("hidden")));
long profd_collect_failed(long answer)
{
    return answer_of(answer);
}

/* prctl or seccomp. A filter that was refused is none. */
long profd_collect_filter(long n, long a, long b, long c, long d, long e) __attribute__((visibility("hidden")));
long profd_collect_filter(long n, long a, long b, long c, long d, long e)
{
    const bool sets =
        n == SYS_prctl ? a == PR_SET_SECCOMP : a == SECCOMP_SET_MODE_STRICT || a == SECCOMP_SET_MODE_FILTER;
    __atomic_fetch_add(&raw_denied, sets, __ATOMIC_SEQ_CST);
    long answer = raw_call_program(n, a, b, c, d, e, 0);
    if (answer < 0 && answer > -4096) {
        __atomic_fetch_sub(&raw_denied, sets, __ATOMIC_SEQ_CST);
    }
    return answer_of(answer);
}

EXPORT int prctl(int option, ...)
{
    va_list list;
    long a[4];
    va_start(list, option);
    for (unsigned i = 0; i < 4; i++) {
        a[i] = va_arg(list, long);
    }
    va_end(list);
    return (int)profd_collect_filter(SYS_prctl, option, a[0], a[1], a[2], a[3]);
}

/* In assembly, because a child created by it on a stack of its own returns from here, too. It is not among the code of
 * the collector (profd_collect_text): time in the kernel is the program's. */
#if defined __x86_64__
__asm__(".pushsection profd_collect_syscall, \"ax\", @progbits\n"
        ".globl syscall\n"
        ".type syscall, @function\n"
        "syscall:\n"
        ".cfi_startproc\n"
        "endbr64\n"
        "cmp $317, %rdi\n" /* SYS_seccomp */
        "je profd_collect_filter\n"
        "cmp $157, %rdi\n" /* SYS_prctl */
        "je profd_collect_filter\n"
        "mov %rdi, %rax\n"
        "mov %rsi, %rdi\n"
        "mov %rdx, %rsi\n"
        "mov %rcx, %rdx\n"
        "mov %r8, %r10\n"
        "mov %r9, %r8\n"
        "mov 8(%rsp), %r9\n"
        "syscall\n"
        "cmp $-4095, %rax\n"
        "jae 1f\n"
        "ret\n"
        "1: mov %rax, %rdi\n"
        "jmp profd_collect_failed\n"
        ".cfi_endproc\n"
        ".size syscall, . - syscall\n"
        ".popsection\n");
#else
__asm__(".pushsection profd_collect_syscall, \"ax\", @progbits\n"
        ".globl syscall\n"
        ".type syscall, @function\n"
        "syscall:\n"
        ".cfi_startproc\n"
        "hint 34\n"
        "cmp x0, #277\n" /* SYS_seccomp */
        "b.eq profd_collect_filter\n"
        "cmp x0, #167\n" /* SYS_prctl */
        "b.eq profd_collect_filter\n"
        "mov x8, x0\n"
        "mov x0, x1\n"
        "mov x1, x2\n"
        "mov x2, x3\n"
        "mov x3, x4\n"
        "mov x4, x5\n"
        "mov x5, x6\n"
        "svc #0\n"
        "cmn x0, #4095\n"
        "b.cs profd_collect_failed\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size syscall, . - syscall\n"
        ".popsection\n");
#endif
