/* rewrite MODE [N [ROUNDS]]: functions whose call sites are rewritten, switched off and on while they run, and looked
 * at. Calls are counted by the program itself as in truth.c. Prints what it saw. */
#define _GNU_SOURCE
#include "truth.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

extern int moncontrol(int mode);

uint64_t (*truth)[TRUTH_FUNCTIONS];
__thread unsigned truth_slot;
static long rounds = 100000;
static unsigned threads;
static pthread_barrier_t barrier;
static volatile int stop;

__attribute__((noinline)) void leaf(void)
{
    COUNT(leaf);
}

__attribute__((noinline)) void middle(void)
{
    COUNT(middle);
    leaf();
    leaf();
    __asm__ volatile("");
}

__attribute__((noinline)) void outer(void)
{
    COUNT(outer);
    middle();
    leaf();
    __asm__ volatile("");
}

/* Called in the last phase only. */
__attribute__((noinline)) void late(void)
{
    COUNT(late);
}

__attribute__((noinline)) void handler(int number)
{
    COUNT(handler);
    (void)number;
    leaf();
    __asm__ volatile("");
}

/* How a function calls the collector now. */
static QUIET const char *form_of(void (*function)(void))
{
    const uint8_t *b = (const uint8_t *)function;
    for (unsigned i = 0; i < 40; i++, b++) {
        if (b[0] == 0xe9) {
            return "thunk";
        }
        if (b[0] == 0xa9) {
            return "off";
        }
        if (b[0] == 0xe8) {
            return "call";
        }
        if (b[0] == 0xff && b[1] == 0x15) {
            return "got";
        }
    }
    return "none";
}

static QUIET const char *forms(void)
{
    outer();
    printf("%s ", form_of(leaf));
    moncontrol(0);
    printf("%s ", form_of(leaf));
    moncontrol(1);
    for (long i = 0; i < rounds; i++) {
        outer();
    }
    return form_of(leaf);
}

static QUIET void *runner(void *slot)
{
    truth_slot = (unsigned)(uintptr_t)slot;
    while (!stop) {
        for (int i = 0; i < 100; i++) {
            outer();
        }
    }
    pthread_barrier_wait(&barrier); /* nobody counts any more: the switch is on for good */
    pthread_barrier_wait(&barrier);
    for (long i = 0; i < rounds; i++) {
        late();
    }
    return NULL;
}

static QUIET const char *toggle(void)
{
    pthread_t ids[64];
    pthread_barrier_init(&barrier, NULL, threads + 1);
    for (unsigned i = 0; i < threads; i++) {
        pthread_create(&ids[i], NULL, runner, (void *)(uintptr_t)(i + 1));
    }
    for (int i = 0, n = getenv("SWITCHES") ? atoi(getenv("SWITCHES")) : 1500; i < n; i++) {
        moncontrol(0);
        if (i % 64 == 0) {
            sched_yield();
        }
        moncontrol(1);
        if (i % 32 == 0) {
            sched_yield();
        }
    }
    stop = 1;
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
    }
    return form_of(leaf);
}

static volatile sig_atomic_t switches;

/* The handler switches, on whatever instruction it came. */
static QUIET void switcher(int number)
{
    moncontrol(++switches % 2 == 0);
    handler(number);
}

static QUIET const char *storm(void)
{
    struct sigaction act = {.sa_handler = switcher, .sa_flags = SA_RESTART};
    sig_atomic_t seen = -1;
    sigaction(SIGALRM, &act, NULL);
    for (long i = 0; i < rounds; i++) {
        if (seen != switches) { /* an interval could be shorter than the handler, and the loop would stand */
            seen = switches;
            setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 50}}, NULL);
        }
        outer();
        if (i % 64 == 0) {
            raise(SIGALRM);
        }
    }
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
    signal(SIGALRM, SIG_IGN);
    moncontrol(1);
    for (long i = 0; i < rounds; i++) {
        late();
    }
    return form_of(leaf);
}

/* Children inherit rewritten code, on or off, even from the middle of a switch. */
static QUIET void *forker(void *context)
{
    (void)context;
    while (!stop) {
        moncontrol(0);
        moncontrol(1);
    }
    return NULL;
}

static QUIET const char *forks(void)
{
    pthread_t id;
    pthread_create(&id, NULL, forker, NULL);
    bool good = true;
    for (unsigned i = 0; i < threads; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            truth_open();
            moncontrol(1);
            for (long j = 0; j < rounds; j++) {
                late();
            }
            moncontrol(0);
            late();
            truth[0][T_late]--;
            moncontrol(1);
            outer();
            _exit(strcmp(form_of(leaf), "thunk") != 0);
        }
        int status = 1;
        good = good && waitpid(pid, &status, 0) == pid && status == 0;
    }
    stop = 1;
    pthread_join(id, NULL);
    return good ? "good" : "a child was not";
}

/* The library's functions, before and behind its first call, with threads or without. */
static QUIET void *plugin_idle(void *context)
{
    while (!stop) {
        usleep(1000);
    }
    return context;
}

static QUIET const char *plugin(void)
{
    char path[512];
    pthread_t id;
    for (unsigned i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/libplugin_a.so", getenv("PLUGINS"));
        if (i == 2 && threads) {
            pthread_create(&id, NULL, plugin_idle, NULL);
        }
        void *handle = dlopen(path, RTLD_NOW);
        void (*run)(long) = handle ? (void (*)(long))dlsym(handle, "plugin_a") : NULL;
        if (!run) {
            return dlerror();
        }
        run(1);
        for (long j = 0; j < rounds; j++) {
            run(1);
        }
        printf("%s ", form_of((void (*)(void))run));
        moncontrol(0);
        printf("%s ", form_of((void (*)(void))run));
        run(1);
        truth[truth_slot][T_plugin_a]--;
        moncontrol(1);
        run(1);
        dlclose(handle);
        moncontrol(0);
        moncontrol(1);
    }
    stop = 1;
    if (threads) {
        pthread_join(id, NULL);
    }
    return "good";
}

/* --- code that holds data which looks like calls --- */
#if defined __PIC__ && defined __x86_64__
#define PATTERN ".byte 0xff, 0x15\n .long mcount@GOTPCREL-4\n"
extern const uint8_t trick_behind[], trick_jumped[], trick_alone[], trick_inside[];
extern uint64_t trick_one(void), trick_two(void), trick_three(void);
__asm__(
    ".text\n"
    ".type trick_one,@function\n trick_one:\n .cfi_startproc\n push %rbp\n mov %rsp,%rbp\n call "
    "*mcount@GOTPCREL(%rip)\n pop %rbp\n ret\n"
    "trick_behind: " PATTERN ".cfi_endproc\n .size trick_one, . - trick_one\n"
    ".type trick_two,@function\n trick_two:\n .cfi_startproc\n jmp 1f\n trick_jumped: " PATTERN
    "1: push %rbp\n mov %rsp,%rbp\n call *mcount@GOTPCREL(%rip)\n pop %rbp\n ret\n .cfi_endproc\n .size trick_two, . - "
    "trick_two\n"
    "trick_alone: " PATTERN ".type trick_three,@function\n trick_three:\n .cfi_startproc\n push %rbp\n mov %rsp,%rbp\n "
    ".byte 0x48, 0xb8\n trick_inside: " PATTERN
    ".byte 0, 0\n call *mcount@GOTPCREL(%rip)\n pop %rbp\n ret\n .cfi_endproc\n .size trick_three, . - trick_three\n");

static QUIET const char *tricks(void)
{
    const uint8_t *all[] = {trick_behind, trick_jumped, trick_alone, trick_inside};
    uint64_t value, seen;
    memcpy(&value, trick_inside, sizeof value);
    for (long i = 0; i < rounds; i++) {
        trick_one();
        trick_two();
        seen = trick_three();
    }
    for (unsigned i = 0; i < 4; i++) {
        if (all[i][0] != 0xff || all[i][1] != 0x15) {
            return "data was changed";
        }
    }
    if (value != seen || (value & 0xffff) != 0x15ff) {
        return "a constant was changed";
    }
    printf("%s %s %s ", form_of((void (*)(void))trick_one),
           form_of((void (*)(void))trick_two) /* reached by its jump only */,
           trick_inside[8] == 0x67 && trick_inside[9] == 0xe9 ? "thunk" : "other");
    return "good";
}
#else
static QUIET const char *tricks(void)
{
    return "none";
}
#endif

/* --- registers: the library's first calls, and later ones --- */
static QUIET const char *registers(void)
{
    char path[512];
    snprintf(path, sizeof path, "%s/libregisters.so", getenv("PLUGINS"));
    void *handle = dlopen(path, RTLD_NOW);
    unsigned (*check)(unsigned) = handle ? (unsigned (*)(unsigned))dlsym(handle, "registers_check") : NULL;
    if (!check) {
        return "no libregisters.so";
    }
    for (unsigned round = 0; round < 400; round++) {
        for (unsigned kind = 0; kind < 2; kind++) {
            if (check(kind)) {
                printf("%u ", round);
                return "lost a register";
            }
        }
    }
    printf("%s ", form_of((void (*)(void))dlsym(handle, "call_mcount")));
    printf("%s ", form_of((void (*)(void))dlsym(handle, "call_fentry")));
    return "good";
}

/* --- a program's own use of SIGTRAP, and a trap that somebody put on a call site --- */
static volatile int traps;
static QUIET void own_trap(int number)
{
    (void)number;
    traps++;
}

static QUIET const char *trap(void)
{
    signal(SIGTRAP, own_trap);
    for (int i = 0; i < 100; i++) {
        moncontrol(0);
        outer();
        moncontrol(1);
        outer();
        raise(SIGTRAP);
    }
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    moncontrol(0);
    outer();
    moncontrol(1);
    outer();
    return traps == 100 ? "good" : "traps were lost or came from nowhere";
}

/* Refuses PROT_EXEC to mprotect() and new executable memory, as sandboxes do, then becomes `rewrite MODE`. */
static QUIET int confined(char **argv)
{
    if (strcmp(argv[2], "mdwe") == 0) {
        if (prctl(65 /* PR_SET_MDWE */, 1, 0, 0, 0) != 0) {
            return puts("no mdwe"), 0;
        }
    } else {
        unsigned refused = strcmp(argv[2], "exec") == 0 ? PROT_EXEC : PROT_WRITE | PROT_EXEC;
        struct sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                     BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 4),
                                     BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
                                     BPF_STMT(BPF_ALU | BPF_AND | BPF_K, refused),
                                     BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, refused, 0, 1),
                                     BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                                     BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
        struct sock_fprog filter = {sizeof code / sizeof code[0], code};
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
            return puts("no seccomp"), 0;
        }
    }
    if (strcmp(argv[2], "late") != 0) {
        execv("/proc/self/exe", argv + 2); /* the mode is that one's first word */
    }
    return 1;
}

/* Protection cannot be changed any more: off is off all the same. */
static QUIET const char *locked(void)
{
    char *words[] = {"", "", "late"};
    uint64_t before[TRUTH_FUNCTIONS];
    for (long i = 0; i < rounds; i++) {
        outer();
    }
    confined(words);
    moncontrol(0);
    memcpy(before, truth[0], sizeof before);
    for (long i = 0; i < rounds; i++) {
        outer();
    }
    printf("%s ", form_of(leaf));
    memcpy(truth[0], before, sizeof before);
    moncontrol(1);
    for (long i = 0; i < rounds; i++) {
        outer();
    }
    return form_of(leaf);
}

static const struct {
    const char *name;
    const char *(*run)(void);
} modes[] = {{"forms", forms},   {"toggle", toggle},       {"storm", storm}, {"forks", forks},  {"plugin", plugin},
             {"tricks", tricks}, {"registers", registers}, {"trap", trap},   {"locked", locked}};

QUIET int main(int argc, char **argv)
{
    if (argc > 3 && strcmp(argv[1], "confined") == 0) {
        return confined(argv);
    }
    truth_open();
    threads = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    rounds = argc > 3 ? atol(argv[3]) : rounds;
    for (unsigned i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        if (argc > 1 && strcmp(modes[i].name, argv[1]) == 0) {
            puts(modes[i].run());
        }
    }
    return 0;
}
