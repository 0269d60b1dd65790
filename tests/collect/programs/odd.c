/* odd MODE: what programs do that a collector must survive. Prints "good" or what is wrong. */
#define _GNU_SOURCE
#include "cpu.h"
#include "truth.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>

uint64_t (*truth)[TRUTH_FUNCTIONS];
__thread unsigned truth_slot;

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

__attribute__((noinline)) void handler_free(void)
{
    COUNT(child);
}

/* Its own code and the library's differ in address by 4 GiB exactly. */
static QUIET const char *twice(void)
{
    char path[512];
    snprintf(path, sizeof path, "%s/libtwice.so", getenv("PLUGINS"));
    void *handle = dlopen(path, RTLD_NOW);
    void (*run)(long) = handle ? (void (*)(long))dlsym(handle, "plugin_a") : NULL;
    if (!run) {
        return dlerror();
    }
    for (int i = 0; i < 1000; i++) {
        middle();
        run(1);
    }
    return "good";
}

static QUIET void burn(double seconds)
{
    for (double end = cpu() + seconds; cpu() < end;) {
        for (int i = 0; i < 1000; i++) {
            middle();
        }
    }
}

/* --- vector registers --- */
static QUIET const char *registers(void)
{
    char path[512];
    snprintf(path, sizeof path, "%s/libregisters.so", getenv("PLUGINS"));
    void *handle = dlopen(path, RTLD_NOW);
    unsigned (*check)(unsigned) = handle ? (unsigned (*)(unsigned))dlsym(handle, "registers_check") : NULL;
    if (!check) {
        return "no libregisters.so";
    }
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned kind = 0; kind < 2; kind++) {
            if (check(kind)) {
                return round ? "a register was lost by a later call" : "a register was lost by the first call";
            }
        }
    }
    return "good";
}

/* --- the program's own SIGPROF --- */
static volatile int ticks;
static QUIET void own_tick(int number)
{
    (void)number;
    ticks++;
}

static QUIET const char *sigprof(void)
{
    burn(0.1);
    struct sigaction old, act = {.sa_handler = own_tick, .sa_flags = SA_RESTART};
    if (sigaction(SIGPROF, NULL, &old) != 0 || old.sa_handler != SIG_DFL) {
        return "SIGPROF does not look untouched";
    }
    sigaction(SIGPROF, &act, &old);
    if (old.sa_handler != SIG_DFL) {
        return "the old handler shows";
    }
    burn(0.3);
    if (ticks) {
        return "foreign ticks came";
    }
    struct itimerval every = {{0, 10000}, {0, 10000}};
    setitimer(ITIMER_PROF, &every, NULL);
    burn(0.3);
    return ticks > 5 ? "good" : "own ticks did not come";
}

static QUIET const char *sigprof_signal(void)
{
    if (signal(SIGPROF, own_tick) != SIG_DFL) {
        return "the old handler shows";
    }
    burn(0.1);
    if (ticks) {
        return "foreign ticks came";
    }
    if (signal(SIGPROF, SIG_DFL) != own_tick) {
        return "the program's own handler is gone";
    }
    burn(0.1);
    return "good";
}

/* Back to the default while other threads have ticks under way: that must not end the process. */
static QUIET void *burner(void *context)
{
    burn(0.3);
    return context;
}

static QUIET const char *sigprof_default(void)
{
    pthread_t ids[4];
    struct sigaction old, act = {.sa_handler = SIG_DFL};
    for (int i = 0; i < 4; i++) {
        pthread_create(&ids[i], NULL, burner, NULL);
    }
    burn(0.1);
    sigaction(SIGPROF, &act, &old);
    if (old.sa_handler != SIG_DFL) {
        return "the old handler shows";
    }
    sigaction(SIGPROF, NULL, &old);
    if (old.sa_handler != SIG_DFL) {
        return "the handler shows";
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(ids[i], NULL);
    }
    return "good";
}

/* --- a borrowed stack: no frame may be read beyond it --- */
static ucontext_t home, away;
static QUIET void wander(void)
{
#if defined __x86_64__
    for (double end = cpu() + 0.5; cpu() < end;) { /* rbp as a number */
        __asm__ volatile(
            "push %%rbp\n mov $0x7ffe00000008, %%rbp\n mov $2000000, %%ecx\n 1: dec %%ecx\n jnz 1b\n pop %%rbp" ::
                : "rcx", "cc", "memory");
    }
#endif
    burn(0.3);
    swapcontext(&away, &home);
}

static QUIET const char *coroutine(void)
{
    static char *stack;
    stack = malloc(1 << 18);
    getcontext(&away);
    away.uc_stack.ss_sp = stack;
    away.uc_stack.ss_size = 1 << 18;
    away.uc_link = &home;
    makecontext(&away, wander, 0);
    swapcontext(&home, &away);
    return "good";
}

static QUIET void *small_thread(void *slot)
{
    truth_slot = (unsigned)(uintptr_t)slot;
    burn(0.1);
    return NULL;
}

static QUIET const char *small_stack(void)
{
    pthread_attr_t attr;
    pthread_t id;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN);
    if (pthread_create(&id, &attr, small_thread, NULL) != 0) {
        return "no thread";
    }
    pthread_join(id, NULL);
    return "good";
}

/* --- a filter that refuses what it does not know --- */
/* Threads that cannot know their number count at the same time. */
static QUIET const char *four_threads(void)
{
    pthread_t ids[4];
    for (int i = 0; i < 4; i++) {
        if (pthread_create(&ids[i], NULL, small_thread, (void *)(uintptr_t)(i + 1)) != 0) {
            return "no thread";
        }
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(ids[i], NULL);
    }
    return "good";
}

static QUIET const char *seccomp(void)
{
    static const int refused[] = {SYS_memfd_create, SYS_timer_create, SYS_timer_settime, SYS_socket,
                                  SYS_connect,      SYS_mmap,         SYS_gettid,        SYS_getrandom};
    struct sock_filter code[32];
    unsigned n = 0;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (unsigned i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        if (refused[i] == SYS_mmap) {
            continue;
        }
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)refused[i], 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    for (double end = cpu() + 0.1; cpu() < end;) { /* ticks come before the first call */
    }
    struct sock_fprog filter = {(unsigned short)n, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
        return "no seccomp";
    }
    burn(0.2);
    if (fork() == 0) { /* cannot have a region of its own: must neither die nor count into ours */
        truth_open();
        for (int i = 0; i < 1000; i++) {
            middle();
        }
        _exit(7);
    }
    int status;
    wait(&status);
    return status == 7 << 8 ? four_threads() : "the child died";
}

/* --- 200 depths of a nested function that need its static chain --- */
__attribute__((noinline)) QUIET static int apply(int (*f)(int), int n)
{
    return f(n);
}

static QUIET const char *nested(void)
{
    int base = 3;
    __attribute__((noinline)) int inner(int n)
    {
        COUNT(late);
        return n == 0 ? base : inner(n - 1) + base;
    }
    return apply(inner, 200) == 603 ? "good" : "wrong sum";
}

/* --- moncontrol --- */
extern void moncontrol(int mode) __attribute__((weak));
static QUIET const char *paused(void)
{
    if (!moncontrol) {
        return "no moncontrol";
    }
    for (int i = 0; i < 1000; i++) {
        middle();
    }
    moncontrol(0);
    uint64_t before = truth[0][T_middle], leaves = truth[0][T_leaf];
    for (int i = 0; i < 1000; i++) {
        middle();
    }
    truth[0][T_middle] = before, truth[0][T_leaf] = leaves;
    moncontrol(1);
    for (int i = 0; i < 500; i++) {
        middle();
    }
    return "good";
}

/* --- destructors of thread keys that call, after everybody's turn --- */
static pthread_key_t last;
__attribute__((noinline)) void late(void *value)
{
    COUNT(late);
    if ((uintptr_t)value < 3) {
        pthread_setspecific(last, (void *)((uintptr_t)value + 1));
    }
}
static QUIET void *keyed(void *context)
{
    pthread_setspecific(last, (void *)1);
    middle();
    return context;
}
static QUIET const char *keys(void)
{
    pthread_t id;
    pthread_key_create(&last, late);
    for (int i = 0; i < 200; i++) {
        pthread_create(&id, NULL, keyed, NULL);
        pthread_join(id, NULL);
    }
    return "good";
}

static QUIET const char *limits(void)
{
    burn(0.1);
    return "good";
}

static QUIET void *sleeper(void *context)
{
    middle();
    pthread_barrier_wait(context);
    pthread_barrier_wait(context);
    return NULL;
}

/* Two thousand threads at once. */
static QUIET const char *crowd(void)
{
    static pthread_t ids[2000];
    pthread_barrier_t both;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 65536);
    pthread_barrier_init(&both, NULL, 2001);
    for (unsigned i = 0; i < 2000; i++) {
        if (pthread_create(&ids[i], &attr, sleeper, &both) != 0) {
            return "no 2000 threads";
        }
    }
    truth[0][T_middle] = truth[0][T_leaf] = 2000;
    pthread_barrier_wait(&both);
    pthread_barrier_wait(&both);
    for (unsigned i = 0; i < 2000; i++) {
        pthread_join(ids[i], NULL);
    }
    truth[0][T_middle] = truth[0][T_leaf] = 2000;
    return "good";
}

/* A child that no handler of fork() hears of. */
static QUIET const char *cloned(void)
{
    for (int i = 0; i < 1000; i++) {
        middle();
    }
    long pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) {
        truth_open();
        handler_free();
        for (int i = 0; i < 500; i++) {
            middle();
        }
        _exit(0);
    }
    waitpid((pid_t)pid, NULL, 0);
    return "good";
}

static const struct {
    const char *name;
    const char *(*run)(void);
} modes[] = {{"registers", registers}, {"sigprof", sigprof},   {"signal", sigprof_signal}, {"default", sigprof_default},
             {"coroutine", coroutine}, {"small", small_stack}, {"seccomp", seccomp},       {"nested", nested},
             {"paused", paused},       {"keys", keys},         {"limits", limits},         {"crowd", crowd},
             {"cloned", cloned},       {"twice", twice}};

QUIET int main(int argc, char **argv)
{
    truth_open();
    for (unsigned i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        if (argc > 1 && strcmp(modes[i].name, argv[1]) == 0) {
            puts(modes[i].run());
        }
    }
    return 0;
}
