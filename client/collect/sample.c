#include "client/collect/sample.h"

#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#include "client/collect/collect.h"
#include "client/collect/handover.h"
#include "client/collect/option.h"
#include "client/collect/raw.h"
#include "client/collect/sample_stack.h"
#include "client/collect/stub.h"
#include "client/collect/table.h"
#include "client/collect/module.h"

#define TIMERS_MAX 65536u /* timers whose ids are remembered for giving up */
#define KEY_NOWHERE 2     /* of all ticks outside every object */

extern int __sigaction(int number, const struct sigaction *act, struct sigaction *old);
extern void *__libc_stack_end __attribute__((weak));
extern const char __start_profd_collect_text[] __attribute__((visibility("hidden"))); /* the linker's: all code of ours */
extern const char __stop_profd_collect_text[] __attribute__((visibility("hidden")));

static uint32_t on;         /* ticks come */
static uint32_t owned;      /* SIGPROF's handler is tick() */
static uint32_t tick_count; /* since the daemon was last looked at */
static uint32_t timer_set[TIMERS_MAX / 32];

bool sample_is_on(void)
{
    return __atomic_load_n(&on, __ATOMIC_RELAXED) != 0;
}

bool sample_has_signal(void)
{
    return __atomic_load_n(&owned, __ATOMIC_RELAXED) != 0;
}

void sample_lose_signal(void)
{
    __atomic_store_n(&owned, 0, __ATOMIC_RELAXED);
}

static void timer_note(int32_t id, bool there)
{
    if (id < 0 || (uint32_t)id >= TIMERS_MAX)
        return;
    uint32_t bit = 1u << (id & 31);
    if (there)
        __atomic_fetch_or(&timer_set[id / 32], bit, __ATOMIC_RELAXED);
    else
        __atomic_fetch_and(&timer_set[id / 32], ~bit, __ATOMIC_RELAXED);
}

/* Where a tick fell becomes a count. */
static void tick_place(uintptr_t pc, uint64_t weight)
{
    struct module_place place = module_find(pc);
    struct table_entry entry = {pc, {0, place.offset, 0, place.module}};
    if (place.module == ATTACH_MODULE_NONE)
        entry.key = KEY_NOWHERE;
    if (table_count_shared(ATTACH_KIND_SAMPLES, &entry, weight))
        return;
    collect_word_add(ATTACH_WORD_TICKS_DROPPED, weight);
}

static bool is_inside(uintptr_t pc)
{
    return pc >= (uintptr_t)__start_profd_collect_text && pc < (uintptr_t)__stop_profd_collect_text;
}

/* More ticks at once than 80 ms hold came late: the signal was blocked, and here is not where they belong. */
static uint64_t weight_cap(void)
{
    uint64_t cap = collect.header->rate / 12;
    return cap < 8 ? 8 : cap;
}

static void tick(int number, siginfo_t *info, void *context)
{
    (void)number;
    if (info->si_code != SI_TIMER || info->si_value.sival_ptr != &on)
        return; /* somebody's kill() */
    if (!sample_is_on() || __atomic_load_n(&collect.stage, __ATOMIC_ACQUIRE) != COLLECT_RUNNING)
        return;
    uint64_t weight = 1 + (info->si_overrun > 0 ? (uint64_t)info->si_overrun : 0), cap = weight_cap();
    if (__atomic_load_n(&collect.on, __ATOMIC_RELAXED)) {
        uintptr_t pc = sample_stack_pc(context);
        collect_word_add(ATTACH_WORD_TICKS, weight);
        if (weight > cap) {
            collect_word_add(ATTACH_WORD_TICKS_BLOCKED, weight - cap);
        }
        uint64_t here = weight > cap ? cap : weight;
        if (is_inside(pc)) {
            collect_word_add(ATTACH_WORD_TICKS_INSIDE, here);
        } else {
            tick_place(pc, here);
            sample_stack_pairs(context, profd_collect_thread.stack_low, profd_collect_thread.stack_high, here);
        }
    }
    uint32_t n = __atomic_add_fetch(&tick_count, (uint32_t)(weight > cap ? cap : weight), __ATOMIC_RELAXED);
    if (n >= collect.header->rate) {
        __atomic_store_n(&tick_count, 0, __ATOMIC_RELAXED);
        handover_look();
    }
}

/* A number for the moment of the first tick: threads that live shorter than a tick must get their share of ticks, too. */
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
    struct kernel_event { /* struct sigevent as the kernel has it */
        void *value;
        int signal, notify, tid, pad[11];
    } event;
    int id = -1;
    long clock = collect.header->mode == ATTACH_MODE_WALL ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID;
    raw_zero(&event, sizeof event);
    event.value = &on;
    event.signal = SIGPROF;
    event.notify = 4; /* SIGEV_THREAD_ID */
    event.tid = (int)raw_call(SYS_gettid, 0, 0, 0, 0);
    profd_collect_thread.timer = -1;
    if (raw_call(SYS_timer_create, clock, &event, &id, 0) < 0) {
        collect_word_add(ATTACH_WORD_THREADS_UNTIMED, 1);
        return;
    }
    uint64_t every = 1000000000u / collect.header->rate, first = 1 + phase_draw() % every;
    struct itimerspec spec = {{(time_t)(every / 1000000000u), (long)(every % 1000000000u)}, {0, (long)first}};
    if (first >= 1000000000u)
        spec.it_value = (struct timespec){1, 0};
    timer_note(id, true);
    profd_collect_thread.timer = id + 1;
    raw_call(SYS_timer_settime, id, 0, &spec, 0);
}

void sample_arm(uintptr_t stack_low, uintptr_t stack_high)
{
    profd_collect_thread.stack_low = stack_low;
    profd_collect_thread.stack_high = stack_high;
    if (profd_collect_thread.timer == 0 && sample_is_on())
        timer_make();
}

void sample_arm_late(void)
{
    if (profd_collect_thread.timer == 0 && sample_is_on())
        timer_make();
}

void sample_disarm(void)
{
    int32_t id = profd_collect_thread.timer - 1;
    profd_collect_thread.timer = -1;
    if (id < 0)
        return;
    timer_note(id, false);
    raw_call(SYS_timer_delete, id, 0, 0, 0);
}

void sample_give_up(void)
{
    if (!__atomic_exchange_n(&on, 0, __ATOMIC_ACQ_REL))
        return;
    for (int32_t id = 0; id < (int32_t)TIMERS_MAX; id++) {
        if (timer_set[id / 32] == 0) {
            id |= 31;
        } else if (timer_set[id / 32] >> (id & 31) & 1u) {
            timer_note(id, false);
            raw_call(SYS_timer_delete, id, 0, 0, 0);
        }
    }
    collect.header->words[ATTACH_WORD_FOREIGN_SIGPROF] = 1;
}

static void main_arm(void)
{
    struct rlimit limit = {0, 0};
    uintptr_t high = &__libc_stack_end ? (uintptr_t)__libc_stack_end : 0;
    uint64_t room = 8u << 20;
    if (raw_call(SYS_prlimit64, 0, RLIMIT_STACK, 0, &limit) == 0 && limit.rlim_cur < room)
        room = limit.rlim_cur;
    sample_arm(high > room ? high - room : 0, high > room ? high : 0);
}

void sample_prepare(void)
{
    struct sigaction old, ours;
    raw_zero(&ours, sizeof ours);
    ours.sa_sigaction = tick;
    ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    if (collect.header->mode == ATTACH_MODE_OFF)
        return;
    if (__sigaction(SIGPROF, NULL, &old) != 0 || old.sa_handler != SIG_DFL || __sigaction(SIGPROF, &ours, NULL) != 0) {
        collect.header->words[ATTACH_WORD_FOREIGN_SIGPROF] = 1;
        return;
    }
    __atomic_store_n(&owned, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&on, 1, __ATOMIC_RELEASE);
    main_arm();
}

void sample_arm_child(void)
{
    uintptr_t low = profd_collect_thread.stack_low, high = profd_collect_thread.stack_high;
    for (unsigned i = 0; i < TIMERS_MAX / 32; i++)
        if (timer_set[i])
            timer_set[i] = 0;
    profd_collect_thread.timer = 0;
    tick_count = 0;
    sample_arm(low, high);
}
