/* CPU time of sampled processes: of this one and of children that end. */
#include <criterion/criterion.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "record/record_internal.h"

#define SOME_NS UINT64_C(20000000)

static struct sums sums;
static struct sum *sum;

static void setup(void)
{
    const struct sum_origin origin = {.uid = 0};
    const uint8_t key[LIMIT_PROCESS] = {1};
    cr_assert_eq(sums_init(&sums, 99, NULL), PROFD_OK);
    sum = sums_take(&sums, 1, &origin, 3, key);
    cr_assert_not_null(sum);
    cr_assert(sums_take(&sums, 1, &origin, 3, key) == sum && sums_take(&sums, 1, &origin, 4, key) != sum,
              "a sum for each group");
    cr_assert(sums_has(&sums, 1, &origin) && !sums_has(&sums, 2, &origin));
}

static void teardown(void)
{
    sums_done(&sums);
}

TestSuite(account, .init = setup, .fini = teardown);

static uint64_t own_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void work(void)
{
    for (const uint64_t until = own_time() + SOME_NS; own_time() < until;) {
    }
}

/* A child that works; it has ended, and exists until it is waited for. */
static pid_t child_end(void)
{
    siginfo_t end;
    const pid_t child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        work();
        _exit(0);
    }
    cr_assert_eq(waitid(P_PID, (id_t)child, &end, WEXITED | WNOWAIT), 0);
    return child;
}

static uint64_t counter(enum collector_counter which)
{
    return sum->tally.counters[which];
}

Test(account, time_since_the_previous_call)
{
    struct process p = {.pid = (uint32_t)getpid(), .sum = sum};
    account_read(&p);
    const uint64_t begun = p.cpu_now;
    account_begin(&p);
    work();
    account_read(&p);
    const uint64_t now = p.cpu_now;
    account_add(&p);
    cr_assert_geq(now - begun, SOME_NS);
    cr_assert_eq(counter(COLLECTOR_CPU_NS), now - begun);
    p.sum = NULL; /* no tick found it */
    work();
    account_read(&p);
    account_add(&p);
    cr_assert_eq(counter(COLLECTOR_CPU_NS), now - begun);
    p.sum = sum;
    account_read(&p);
    const uint64_t last = p.cpu_now;
    account_add(&p);
    cr_assert_eq(counter(COLLECTOR_CPU_NS), last - begun, "what had no sum before is in the next");
    cr_assert_eq(counter(COLLECTOR_PROCESSES), 1);
}

Test(account, a_process_that_ended)
{
    struct process p = {.pid = (uint32_t)child_end(), .sum = sum, .cpu_begun = true, .ticks_ns = 5};
    account_read(&p);
    account_add(&p);
    cr_assert(counter(COLLECTOR_CPU_NS) >= SOME_NS && counter(COLLECTOR_UNCLOCKED_NS) == 0, "until it is waited for");
    const uint64_t before = counter(COLLECTOR_CPU_NS);
    waitpid((pid_t)p.pid, NULL, 0);
    p.ticks_ns = 7;
    account_read(&p);
    account_add(&p);
    cr_assert(counter(COLLECTOR_CPU_NS) == before && counter(COLLECTOR_UNCLOCKED_NS) == 7 && p.ticks_ns == 0);
}

Test(account, a_process_that_becomes_another_program)
{
    struct process p = {.pid = (uint32_t)child_end(), .sum = sum, .cpu_begun = true, .ticks_ns = 5};
    account_exec(&p);
    cr_assert_eq(counter(COLLECTOR_UNCLOCKED_NS), 5);
    account_read(&p);
    account_add(&p);
    cr_assert_eq(counter(COLLECTOR_CPU_NS), 0, "how much of its time is this program's is not known");
    account_exec(&p); /* no tick since */
    account_read(&p);
    account_add(&p);
    cr_assert_eq(counter(COLLECTOR_UNCLOCKED_NS), 5);
    waitpid((pid_t)p.pid, NULL, 0);
}

Test(account, lost_samples_count_once_for_each_program_of_a_user)
{
    const struct sum_origin other = {.uid = 5};
    const uint8_t key[LIMIT_PROCESS] = {0};
    const struct sum *second = sums_take(&sums, 1, &sum->origin, 9, key), *theirs = sums_take(&sums, 1, &other, 9, key);
    sums_add_lost(&sums, 11);
    cr_assert(counter(COLLECTOR_SAMPLES_LOST) == 11 && sum->lost);
    cr_assert(second->tally.counters[COLLECTOR_SAMPLES_LOST] == 0 && second->lost);
    cr_assert_eq(theirs->tally.counters[COLLECTOR_SAMPLES_LOST], 11);
}
