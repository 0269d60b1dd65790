/* Preparation beside the thread that runs: once for each item, in order, before it is run, while the batch before it
 * runs. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "net/loop.h"
#include "net/work.h"

#define MANY 3000

struct job {
    struct work_item item; /* first */
    int number, prepared, runs, dones;
    bool dropped; /* written and read with the gate closed */
};

static struct {
    struct loop *loop;
    struct work *work;
    struct job jobs[MANY];
    int order[MANY], order_count, ran, batches, largest, finished, wanted;
    atomic_int preparing, prepared, inside, most_inside, before_run;
    pthread_mutex_t gate;
    bool wrong;
} bed = {.gate = PTHREAD_MUTEX_INITIALIZER};

static void prepare(void *context, struct work_item *const *items, size_t n)
{
    bed.wrong |= context != &bed || atomic_fetch_add(&bed.preparing, 1) != 0; /* never two at a time */
    for (size_t i = 0; i < n; i++) {
        struct job *j = (struct job *)(void *)items[i];

        bed.wrong |= j->prepared++ != 0 || j->runs != 0;
        bed.order[bed.order_count++] = j->number;
    }
    atomic_fetch_sub(&bed.preparing, 1);
    atomic_fetch_add(&bed.prepared, (int)n);
}

static void run(void *context, struct work_item *const *items, size_t n)
{
    (void)context;
    pthread_mutex_lock(&bed.gate);
    for (size_t i = 0; i < n; i++) {
        struct job *j = (struct job *)(void *)items[i];

        while (bed.jobs[bed.order[bed.ran]].dropped) {
            bed.ran++; /* prepared, and given back before it could run */
        }
        bed.wrong |= j->prepared != 1 || j->runs++ != 0 || j->number != bed.order[bed.ran++];
    }
    bed.batches++;
    bed.largest = (int)n > bed.largest ? (int)n : bed.largest;
    pthread_mutex_unlock(&bed.gate);
}

static void done(void *context, struct work_item *item)
{
    struct job *j = (struct job *)(void *)item;

    (void)context;
    bed.wrong |= j->runs != 1 || j->dones++ != 0;
    if (++bed.finished == bed.wanted) {
        loop_stop(bed.loop);
    }
}

static enum profd_status start(unsigned threads, size_t batch_max, size_t weight, struct profd_error *e)
{
    const struct work_config config = {
        .name = "test",
        .threads = threads,
        .queue_max = MANY,
        .queue_max_uid = MANY,
        .batch_max = batch_max,
        .batch_weight = weight,
        .prepare = prepare,
        .prepare_context = &bed,
        .run = run,
        .done = done,
    };

    for (int i = 0; i < MANY; i++) {
        bed.jobs[i].number = i;
    }
    if (!bed.loop) {
        cr_assert_eq(loop_new(&bed.loop, e), PROFD_OK, "%s", e->sentence);
    }
    return work_new(bed.loop, &config, &bed.work, e);
}

static void finish(void)
{
    work_free(bed.work);
    loop_free(bed.loop);
    cr_assert_not(bed.wrong);
}

static bool put(int i, uint32_t uid, size_t weight)
{
    bed.jobs[i].item.uid = uid;
    bed.jobs[i].item.weight = weight;
    return work_put(bed.work, &bed.jobs[i].item);
}

/* Waits until so many are prepared. */
static void await(int n)
{
    while (atomic_load(&bed.prepared) < n) {
        sched_yield();
    }
}

Test(work_prepare, goes_on_while_a_batch_runs_as_far_as_one_batch)
{
    struct profd_error e;

    cr_assert_eq(start(1, 40, 1 << 20, &e), PROFD_OK, "%s", e.sentence);
    pthread_mutex_lock(&bed.gate); /* the disk is slow */
    for (int i = 0; i < 200; i++) {
        cr_assert(put(i, 1 + (uint32_t)i % 3, 1));
    }
    /* What runs (at most what was prepared in one go) and a batch more. */
    await(41);
    for (int i = 0; i < 2000; i++) {
        sched_yield();
    }
    cr_assert_leq(atomic_load(&bed.prepared), 16 + 40 + 16);
    bed.wanted = 200;
    pthread_mutex_unlock(&bed.gate);
    loop_run(bed.loop);
    cr_assert_eq(bed.finished, 200);
    cr_assert_leq(bed.largest, 40);
    cr_assert_gt(bed.largest, 16, "batches grow while the disk is slow");
    finish();
}

Test(work_prepare, a_lone_item_does_not_wait_for_company)
{
    struct profd_error e;

    cr_assert_eq(start(1, 2048, 1 << 20, &e), PROFD_OK, "%s", e.sentence);
    for (int i = 0; i < 50; i++) {
        bed.wanted = i + 1;
        cr_assert(put(i, 1, 1));
        loop_run(bed.loop);
        cr_assert_eq(bed.finished, i + 1);
    }
    cr_assert_eq(bed.batches, 50);
    finish();
}

Test(work_prepare, weight_bounds_what_waits_prepared)
{
    struct profd_error e;

    cr_assert_eq(start(1, 1000, 100, &e), PROFD_OK, "%s", e.sentence);
    pthread_mutex_lock(&bed.gate);
    for (int i = 0; i < 30; i++) {
        cr_assert(put(i, 1, i % 10 == 9 ? 500 : 60)); /* two of 60 are too much, one of 500 goes alone */
    }
    await(2); /* one runs, one more fits */
    for (int i = 0; i < 2000; i++) {
        sched_yield();
    }
    cr_assert_leq(atomic_load(&bed.prepared), 2);
    bed.wanted = 30;
    pthread_mutex_unlock(&bed.gate);
    loop_run(bed.loop);
    cr_assert_eq(bed.finished, 30);
    cr_assert_eq(bed.largest, 1);
    finish();
}

Test(work_prepare, everything_once_whatever_the_pace)
{
    struct profd_error e;
    int sent = 0;

    cr_assert_eq(start(1, 64, 500, &e), PROFD_OK, "%s", e.sentence);
    while (sent < MANY) {
        const int burst = 1 + sent * 7 % 90;

        for (int i = 0; i < burst && sent < MANY; i++, sent++) {
            cr_assert(put(sent, (uint32_t)(sent % 5), (size_t)(sent % 40)));
        }
        if (sent % 4 == 0) {
            sched_yield();
        }
    }
    bed.wanted = MANY;
    loop_run(bed.loop);
    cr_assert_eq(bed.finished, MANY);
    cr_assert_eq(bed.ran, MANY);
    finish();
}

Test(work_prepare, stop_finishes_prepared_and_waiting)
{
    struct profd_error e;

    cr_assert_eq(start(1, 20, 1 << 20, &e), PROFD_OK, "%s", e.sentence);
    pthread_mutex_lock(&bed.gate);
    for (int i = 0; i < 100; i++) {
        cr_assert(put(i, 1, 1));
    }
    await(21);
    work_stop(bed.work);
    cr_assert_not(put(100, 1, 1));
    pthread_mutex_unlock(&bed.gate);
    finish(); /* joins, and delivers what is finished */
    cr_assert_eq(bed.ran, 100);
    cr_assert_eq(bed.finished, 100);
}

static int dropped;

static void drop(void *context, struct work_item *item)
{
    struct job *j = (struct job *)(void *)item;

    (void)context;
    bed.wrong |= j->runs != 0 || j->dones++ != 0;
    j->dropped = true;
    dropped++;
}

Test(work_prepare, drop_gives_back_prepared_ones_too)
{
    struct profd_error e;

    cr_assert_eq(start(1, 30, 1 << 20, &e), PROFD_OK, "%s", e.sentence);
    pthread_mutex_lock(&bed.gate);
    for (int i = 0; i < 300; i++) {
        cr_assert(put(i, (uint32_t)i % 2, 1));
    }
    await(31);
    /* The preparer may hold a few at this moment: they are prepared and run, or dropped by a later call. */
    work_drop(bed.work, drop, NULL);
    cr_assert_geq(dropped, 300 - 16 - 16);
    pthread_mutex_unlock(&bed.gate);
    finish();
    cr_assert_eq(bed.finished + dropped, 300);
}

Test(work_prepare, serves_one_thread_only)
{
    struct profd_error e = {""};

    cr_assert_eq(start(2, 10, 10, &e), PROFD_INTERNAL);
    cr_assert_str_eq(e.sentence, "test: 2 threads with preparation, which serves one");
    loop_free(bed.loop);
}
