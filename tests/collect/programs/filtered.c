/* filtered HOW WHAT: a program that works under a seccomp filter. HOW it is installed: prctl, syscall, or raw, by an
 * instruction of its own after SIGUSR1. WHAT: strict; list (read, write, exit and rt_sigreturn are allowed, else the
 * program is killed); exits (exit_group, too: it ends by exit()); trap and errno as list, with other consequences; live
 * as exits, until a second SIGUSR1. Prints "good". */
#define _GNU_SOURCE
#include "cpu.h"
#include "truth.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

uint64_t (*truth)[TRUTH_FUNCTIONS];
__thread unsigned truth_slot;
static volatile sig_atomic_t told;

__attribute__((noinline)) void leaf(void)
{
    COUNT(leaf);
}

__attribute__((noinline)) void middle(void)
{
    COUNT(middle);
    leaf();
    __asm__ volatile("");
}

static QUIET void tell(int number)
{
    (void)number;
    told++;
}

static QUIET void trapped(int number)
{
    (void)number;
    static const char text[] = "trapped\n";
    (void)!write(1, text, sizeof text - 1);
}

static QUIET long raw(long n, long a, long b, long c)
{
#if defined __x86_64__
    long answer;
    __asm__ volatile("syscall" : "=a"(answer) : "0"(n), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return answer;
#else
    register long x8 __asm__("x8") = n;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
    return x0;
#endif
}

static QUIET void work(long rounds)
{
    for (long i = 0; i < rounds; i++) {
        middle();
    }
}

/* Rounds of a fifth of a second of CPU time. Under the filter no clock may be read. */
static QUIET long calibrate(void)
{
    long rounds = 0;
    for (const double end = cpu() + 0.05; cpu() < end; rounds += 10000) {
        work(10000);
    }
    return rounds * 4;
}

static QUIET int install(const char *how, const char *what)
{
    const int exits = strcmp(what, "exits") == 0 || strcmp(what, "live") == 0;
    const unsigned other = strcmp(what, "trap") == 0    ? SECCOMP_RET_TRAP
                           : strcmp(what, "errno") == 0 ? SECCOMP_RET_ERRNO | 1
                                                        : SECCOMP_RET_KILL_PROCESS;
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_read, 5, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, exits ? SYS_exit_group : SYS_exit, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, other),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof code / sizeof code[0], code};
    const int strict = strcmp(what, "strict") == 0;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return -1;
    }
    if (strcmp(how, "prctl") == 0) {
        return prctl(PR_SET_SECCOMP, strict ? SECCOMP_MODE_STRICT : SECCOMP_MODE_FILTER, &filter);
    }
    long (*call)(long, long, long, long) = raw;
    const long mode = strict ? SECCOMP_SET_MODE_STRICT : SECCOMP_SET_MODE_FILTER;
    return (int)(strcmp(how, "raw") == 0 ? call(SYS_seccomp, mode, 0, strict ? 0 : (long)&filter)
                                         : syscall(SYS_seccomp, mode, 0, strict ? NULL : &filter));
}

int main(int argc, char **argv)
{
    static char buffer[64];
    struct sigaction act = {.sa_handler = trapped};
    if (argc != 3) {
        return 64;
    }
    truth_open();
    sigaction(SIGSYS, &act, NULL);
    act.sa_handler = tell;
    sigaction(SIGUSR1, &act, NULL);
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    const long rounds = calibrate();
    const int waits = strcmp(argv[1], "raw") == 0;
    if (waits) {
        (void)!write(1, "ready\n", 6);
    }
    while (waits && !told) {
        work(1000);
    }
    const int failed = install(argv[1], argv[2]);
    work(rounds);
    while (strcmp(argv[2], "live") == 0 && told < 2) {
        work(1000);
    }
    if (strcmp(argv[2], "exits") == 0 || strcmp(argv[2], "live") == 0) {
        puts(failed ? "no filter" : "good");
        exit(0);
    }
    (void)!write(1, failed ? "bad\n" : "good\n", failed ? 4 : 5);
    syscall(SYS_exit, 0);
}
