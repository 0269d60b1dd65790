#include "client/collect/sample.h"

#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#include "client/collect/collect.h"
#include "client/collect/handover.h"
#include "client/collect/handover_page.h"
#include "client/collect/kin.h"
#include "client/collect/module.h"
#include "client/collect/option.h"
#include "client/collect/pause.h"
#include "client/collect/raw.h"
#include "client/collect/rewrite.h"
#include "client/collect/stack.h"
#include "client/collect/stub.h"
#include "client/collect/count_table.h"
#include "client/collect/vdso.h"

#define TIMERS_MAX 65536u  /* timers with remembered ids, to delete them when sampling is given up */
#define KEY_NOWHERE 2      /* of all ticks outside every object */
#define SECOND 1000000000u /* ns */
#define IDLE_RATE 10u      /* ticks per second during a pause, or if no ticks are wanted */
#define LOOK_MS 1000u      /* ms between two checks for the daemon */
#define ANSWER_MS 10u      /* ms until the first check for an answer */

extern int __sigaction(int number, const struct sigaction *act, struct sigaction *old);
extern void *__libc_stack_end __attribute__((weak));
extern const char __start_profd_collect_text[]
    __attribute__((visibility("hidden"))); /* defined by the linker: all of the collector's code */
extern const char __stop_profd_collect_text[] __attribute__((visibility("hidden")));

static uint32_t on;             /* ticks come */
static uint32_t owned;          /* SIGPROF's handler is tick() */
static struct sigaction theirs; /* what the program wants with signals that are no ticks, while that is so */
static uint64_t ticked_ms;      /* CPU time of all threads, as ticks show it: the clock of a process without a vDSO */
static uint64_t look_at;        /* ms: the next check for the daemon; 0: at the next tick */
static uint64_t look_wait; /* ms between the latest check and the next: soon after ATTACH, then at growing intervals */
static uint32_t timer_set[TIMERS_MAX / 32];

/* Setting of the calling thread's timer: its period in periods of the header's rate, which is the weight of one of its
 * ticks. Idle: during a pause, ticks only check whether it continues. */
static _Thread_local struct timing {
    uint32_t periods;
    bool idle;
} armed;
static _Thread_local uint64_t due; /* CPU time of the calling thread, in ns, at which its next tick is due */

bool sample_is_on(void)
{
    return __atomic_load_n(&on, __ATOMIC_RELAXED) != 0;
}

bool sample_has_signal(void)
{
    return __atomic_load_n(&owned, __ATOMIC_RELAXED) != 0;
}

static void timer_note(int32_t id, bool there)
{
    if (id < 0 || (uint32_t)id >= TIMERS_MAX) {
        return;
    }
    uint32_t bit = 1u << (id & 31);
    if (there) {
        __atomic_fetch_or(&timer_set[id / 32], bit, __ATOMIC_RELAXED);
    } else {
        __atomic_fetch_and(&timer_set[id / 32], ~bit, __ATOMIC_RELAXED);
    }
}

static void signal_lost_note(void)
{
    if (collect.header->rate) {
        collect.header->counters[ATTACH_COUNTER_FOREIGN_SIGPROF] = 1;
    }
}

int sample_set_action(const struct sigaction *act)
{
    if (act->sa_handler == SIG_DFL || (raw_denied && sample_is_on())) {
        theirs = *act;
        return 0;
    }
    if (__atomic_exchange_n(&on, 0, __ATOMIC_ACQ_REL)) { /* the program has the signal from now on */
        for (int32_t id = 0; id < (int32_t)TIMERS_MAX; id++) {
            if (timer_set[id / 32] == 0) {
                id |= 31;
            } else if (timer_set[id / 32] >> (id & 31) & 1u) {
                timer_note(id, false);
                raw_call(SYS_timer_delete, id, 0, 0, 0);
            }
        }
        signal_lost_note();
    }
    int failed = __sigaction(SIGPROF, act, NULL);
    if (!failed) {
        __atomic_store_n(&owned, 0, __ATOMIC_RELAXED);
    }
    return failed;
}

void sample_get_action(struct sigaction *out)
{
    *out = theirs;
}

/* ns of CPU time between two ticks at the header's rate; if that is 0, ticks only check for the daemon. */
static uint64_t period_ns(void)
{
    uint32_t rate = collect.header->rate;
    return SECOND / (rate ? rate : IDLE_RATE);
}

/* Whole multiples of the period, so that a weighted count is at the header's rate; the requested rate is rounded down.
 * Pauses by the program may be shorter than an idle period, and change nothing here. */
static struct timing timing_wanted(void)
{
    bool paused;
    uint32_t asked, rate = collect.header->rate;
    handover_page_get(&paused, &asked);
    if (rate == 0) {
        return (struct timing){1, true};
    }
    struct timing t = {asked && asked < rate ? (rate + asked - 1) / asked : 1, paused};
    if (t.idle && t.periods < rate / IDLE_RATE) {
        t.periods = rate / IDLE_RATE;
    }
    return t;
}

static uint64_t thread_cpu_now(void)
{
    struct timespec t = {0, 0};
    raw_call(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &t, 0, 0);
    return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static void timer_set_going(int id, struct timing t, uint64_t first)
{
    uint64_t every = period_ns() * t.periods;
    struct itimerspec spec = {{(time_t)(every / SECOND), (long)(every % SECOND)},
                              {(time_t)(first / SECOND), (long)(first % SECOND)}};
    armed = t;
    due = thread_cpu_now() + first;
    raw_call(SYS_timer_settime, id, 0, &spec, 0);
}

static bool is_counting(void)
{
    return sample_is_on() && __atomic_load_n(&collect.stage, __ATOMIC_ACQUIRE) == COLLECT_RUNNING && !armed.idle &&
           __atomic_load_n(&collect.on, __ATOMIC_RELAXED);
}

/* The kernel compares timers of CPU time with the clock in the scheduler's tick only, so that a thread ends before its
 * latest ticks come. On an overcommitted virtual machine, they are those of more than 0.1 s. Call it while the timer
 * is off: a signal that is on its way comes before. */
static void undelivered_count(void)
{
    uint64_t now = thread_cpu_now(), every = period_ns() * armed.periods;
    if (now >= due && is_counting()) {
        collect_counter_add(ATTACH_COUNTER_TICKS_UNDELIVERED, ((now - due) / every + 1) * armed.periods);
    }
}

static void tick_count(const void *context, uint64_t weight)
{
    /* The number of periods, of weight, that were spent here. Ticks that are more than 80 ms late were blocked, and do
     * not belong here. */
    uint64_t cap = collect.header->rate / 12, least = 2ull * armed.periods;
    cap = cap < 8 ? 8 : cap;
    cap = cap < least ? least : cap;
    uint64_t here = weight < cap ? weight : cap;
    if (kin_tell(collect.header)) {
        handover_look();
    }
    uintptr_t pc = stack_get_pc(context);
    collect_counter_add(ATTACH_COUNTER_TICKS, weight);
    collect_counter_add(ATTACH_COUNTER_SAMPLES, 1);
    if (weight > here) {
        collect_counter_add(ATTACH_COUNTER_TICKS_BLOCKED, weight - here);
    }
    if ((pc >= (uintptr_t)__start_profd_collect_text && pc < (uintptr_t)__stop_profd_collect_text) ||
        rewrite_contains(pc)) {
        collect_counter_add(ATTACH_COUNTER_TICKS_INSIDE, here);
        return;
    }
    struct module_place place = module_find(pc);
    struct count_table_entry entry = {pc, {0, place.offset, 0, place.module}};
    if (place.module == ATTACH_MODULE_NONE) {
        entry.key = KEY_NOWHERE;
    }
    if (!count_table_add_shared(ATTACH_KIND_SAMPLES, &entry, here)) {
        collect_counter_add(ATTACH_COUNTER_TICKS_DROPPED, here);
        return;
    }
    stack_count(context, profd_collect_thread.stack_low, profd_collect_thread.stack_high, here);
}

/* Checks the daemon's socket if its page does not say that this is unnecessary, and it is time. The clock is
 * the wall clock: a process that uses little CPU time has few ticks, and each may be the only one for minutes. */
static void tick_listen(uint64_t passed)
{
    uint32_t asked;
    uint64_t now = __atomic_add_fetch(&ticked_ms, passed, __ATOMIC_RELAXED), wait = LOOK_MS;
    uint64_t at = __atomic_load_n(&look_at, __ATOMIC_RELAXED);
    vdso_now_ms(&now);
    if (handover_page_is_quiet(now, &asked) || raw_denied || now < at ||
        !__atomic_compare_exchange_n(&look_at, &at, now + LOOK_MS, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        return;
    }
    handover_page_answer(asked);
    if (handover_look()) {
        wait = look_wait >= LOOK_MS ? ANSWER_MS : look_wait * 2 + ANSWER_MS;
        wait = wait < LOOK_MS ? wait : LOOK_MS;
        __atomic_store_n(&look_at, now + wait, __ATOMIC_RELAXED);
    }
    look_wait = wait;
}

/* Applies the request of the daemon's page at every tick. */
static void tick_look(uint64_t passed)
{
    bool paused;
    uint32_t rate;
    tick_listen(passed);
    if (handover_page_get(&paused, &rate)) {
        pause_set(PAUSE_BY_DAEMON, paused);
    }
    struct timing wanted = timing_wanted();
    if (profd_collect_thread.timer > 0 && !raw_denied &&
        (wanted.periods != armed.periods || wanted.idle != armed.idle)) {
        timer_set_going(profd_collect_thread.timer - 1, wanted, period_ns() * wanted.periods);
    }
}

/* The signal is no tick. The default action, which ends the process, is the kernel's: the signal is sent again, and
 * comes when tick() returns. */
static void signal_pass(int number, siginfo_t *info, void *context)
{
    const struct kernel_action {
        void (*handler)(int);
        unsigned long flags;
        void (*restorer)(void);
        unsigned long mask;
    } end = {SIG_DFL, 0, NULL, 0};
    if (theirs.sa_handler == SIG_DFL) {
        long pid = raw_call_program(SYS_getpid, 0, 0, 0, 0, 0, 0), tid = raw_call_program(SYS_gettid, 0, 0, 0, 0, 0, 0);
        raw_call_program(SYS_rt_sigaction, number, (long)&end, 0, sizeof end.mask, 0, 0);
        raw_call_program(SYS_tgkill, pid, tid, number, 0, 0, 0);
    } else if (theirs.sa_handler != SIG_IGN) {
        theirs.sa_sigaction(number, info, context);
    }
}

static void tick(int number, siginfo_t *info, void *context)
{
    if (info->si_code != SI_TIMER || info->si_value.sival_ptr != &on) {
        signal_pass(number, info, context);
        return;
    }
    if (!sample_is_on() || __atomic_load_n(&collect.stage, __ATOMIC_ACQUIRE) != COLLECT_RUNNING) {
        return;
    }
    uint64_t weight = (1 + (info->si_overrun > 0 ? (uint64_t)info->si_overrun : 0)) * armed.periods;
    uint64_t passed = weight * period_ns();
    due += passed;
    /* It is unknown which part of an idle period was counted. */
    if (is_counting()) {
        tick_count(context, weight);
    }
    tick_look(passed / (SECOND / 1000));
}

/* Random time of the first tick: threads that live shorter than a tick must get their share of ticks, too. */
static uint64_t phase_draw(void)
{
    static uint64_t state;
    struct timespec t = {0, 0};
    raw_call(SYS_clock_gettime, CLOCK_MONOTONIC, &t, 0, 0);
    uint64_t x = __atomic_add_fetch(&state, 0x9e3779b97f4a7c15u, __ATOMIC_RELAXED) ^ (uint64_t)t.tv_nsec << 20 ^
                 (uintptr_t)&profd_collect_thread;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static void timer_make(void)
{
    struct kernel_event { /* struct sigevent of the kernel */
        void *value;
        int signal, notify, tid, pad[11];
    } event;
    int id = -1;
    raw_zero(&event, sizeof event);
    event.value = &on;
    event.signal = SIGPROF;
    event.notify = 4; /* SIGEV_THREAD_ID */
    event.tid = (int)raw_call(SYS_gettid, 0, 0, 0, 0);
    profd_collect_thread.timer = -1;
    if (raw_call(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, &event, &id, 0) < 0) {
        if (collect.header->rate) {
            collect_counter_add(ATTACH_COUNTER_THREADS_UNTIMED, 1);
        }
        return;
    }
    struct timing t = timing_wanted();
    timer_note(id, true);
    profd_collect_thread.timer = id + 1;
    timer_set_going(id, t, 1 + phase_draw() % (period_ns() * t.periods));
}

void sample_arm(uintptr_t stack_low, uintptr_t stack_high)
{
    profd_collect_thread.stack_low = stack_low;
    profd_collect_thread.stack_high = stack_high;
    if (profd_collect_thread.timer == 0 && sample_is_on()) {
        timer_make();
    }
}

void sample_arm_late(void)
{
    if (profd_collect_thread.timer == 0 && sample_is_on()) {
        timer_make();
    }
}

void sample_disarm(void)
{
    int32_t id = profd_collect_thread.timer - 1;
    profd_collect_thread.timer = -1;
    if (id < 0) {
        return;
    }
    timer_note(id, false);
    raw_call(SYS_timer_delete, id, 0, 0, 0);
    undelivered_count();
}

void sample_settle(void)
{
    const struct itimerspec off = {{0, 0}, {0, 0}};
    int32_t id = profd_collect_thread.timer - 1;
    if (id < 0) {
        return;
    }
    raw_call(SYS_timer_settime, id, 0, &off, 0);
    undelivered_count();
    timer_set_going(id, armed, period_ns() * armed.periods);
}

void sample_prepare(void)
{
    struct sigaction old, ours;
    raw_zero(&ours, sizeof ours);
    ours.sa_sigaction = tick;
    /* All signals are blocked in tick(). A handler of the program that interrupted tick() would run with SIGPROF
     * blocked, and its ticks would count for the code that tick() had interrupted. */
    for (size_t i = 0; i < sizeof ours.sa_mask / sizeof(long); i++) {
        ((unsigned long *)&ours.sa_mask)[i] = ~0UL;
    }
    ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    if (!option.timers) {
        return;
    }
    vdso_prepare();
    if (__sigaction(SIGPROF, NULL, &old) != 0 || old.sa_handler != SIG_DFL || __sigaction(SIGPROF, &ours, NULL) != 0) {
        signal_lost_note();
        return;
    }
    __atomic_store_n(&owned, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&on, 1, __ATOMIC_RELEASE);
    struct rlimit limit = {0, 0};
    uintptr_t high = &__libc_stack_end ? (uintptr_t)__libc_stack_end : 0;
    uint64_t size = 8u << 20;
    if (raw_call(SYS_prlimit64, 0, RLIMIT_STACK, 0, &limit) == 0 && limit.rlim_cur < size) {
        size = limit.rlim_cur;
    }
    sample_arm(high > size ? high - size : 0, high > size ? high : 0);
}

void sample_arm_child(void)
{
    uintptr_t low = profd_collect_thread.stack_low, high = profd_collect_thread.stack_high;
    for (unsigned i = 0; i < TIMERS_MAX / 32; i++) {
        if (timer_set[i]) {
            timer_set[i] = 0;
        }
    }
    profd_collect_thread.timer = 0;
    look_at = look_wait = 0;
    sample_arm(low, high);
}
