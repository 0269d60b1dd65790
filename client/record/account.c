#include "record/account.h"

#include <sys/types.h>
#include <time.h>

void account_read(struct process *p)
{
    clockid_t clock;
    struct timespec t;
    if (p->pid != 0 && clock_getcpuclockid((pid_t)p->pid, &clock) == 0 && clock_gettime(clock, &t) == 0) {
        p->cpu_now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
        p->cpu_read = true;
    }
}

static void unclocked_add(struct process *p)
{
    if (p->sum) {
        p->sum->tally.counters[COLLECTOR_UNCLOCKED_NS] += p->ticks_ns;
    }
    p->ticks_ns = 0;
}

void account_begin(struct process *p)
{
    p->cpu_begun = p->cpu_read;
    p->cpu_before = p->cpu_now;
    p->cpu_read = false;
    p->ticks_ns = 0;
}

void account_add(struct process *p)
{
    if (p->sum && p->cpu_read && p->cpu_begun && p->cpu_now >= p->cpu_before) {
        p->sum->tally.counters[COLLECTOR_CPU_NS] += p->cpu_now - p->cpu_before;
        p->sum->tally.counters[COLLECTOR_PROCESSES] += !p->clocked;
        p->clocked = true;
    } else if (p->sum) {
        unclocked_add(p);
    } else if (p->cpu_begun) {
        p->cpu_read = false; /* the next sum gets it */
        return;
    }
    account_begin(p);
}

void account_exec(struct process *p)
{
    if (p->ticks_ns > 0) {
        unclocked_add(p);
        p->cpu_begun = false;
    }
    p->clocked = false;
}
