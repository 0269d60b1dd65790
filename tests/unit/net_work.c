/* Bounded queues: limits, fairness, order, stop. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>

#include "net/loop.h"
#include "net/work.h"

#define MANY 600

struct job {
    struct work_item item; /* first */
    int number;
};

static struct {
    struct loop *loop;
    struct work *work;
    struct job jobs[MANY];
    int ran[MANY], ran_count, batches, largest;
    int finished, wanted;
    pthread_mutex_t gate;
} bed = {.gate = PTHREAD_MUTEX_INITIALIZER};

static void run(void *context, struct work_item *const *items, size_t n)
{
    (void)context;
    pthread_mutex_lock(&bed.gate); /* the test holds it while it fills the queue */
    for (size_t i = 0; i < n; i++)
        bed.ran[bed.ran_count++] = ((struct job *)(void *)items[i])->number;
    bed.batches++;
    if ((int)n > bed.largest)
        bed.largest = (int)n;
    pthread_mutex_unlock(&bed.gate);
}

static void done(void *context, struct work_item *item)
{
    (void)context;
    (void)item;
    if (++bed.finished == bed.wanted)
        loop_stop(bed.loop);
}

static void start(size_t queue_max, size_t queue_max_uid, size_t batch_max, size_t weight)
{
    const struct work_config config = {
        .name = "test",
        .threads = 1,
        .queue_max = queue_max,
        .queue_max_uid = queue_max_uid,
        .batch_max = batch_max,
        .batch_weight = weight,
        .run = run,
        .done = done,
    };
    struct profd_error e;

    for (int i = 0; i < MANY; i++)
        bed.jobs[i].number = i;
    cr_assert_eq(loop_new(&bed.loop, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(work_new(bed.loop, &config, &bed.work, &e), PROFD_OK, "%s", e.sentence);
}

static void finish(void)
{
    work_free(bed.work);
    loop_free(bed.loop);
}

static bool put(int i, uint32_t uid, size_t weight)
{
    bed.jobs[i].item.uid = uid;
    bed.jobs[i].item.weight = weight;
    return work_put(bed.work, &bed.jobs[i].item);
}

/* Waits until the only thread has taken the first item and stands before the gate. */
static void occupy(void)
{
    pthread_mutex_lock(&bed.gate);
    cr_assert(put(0, 1, 0));
    while (work_pending(bed.work) == 1 && !put(1, 2, 0))
        ;
}

Test(work, full_says_so_at_once_and_recovers)
{
    int accepted = 0;

    start(10, 10, 4, 1000);
    pthread_mutex_lock(&bed.gate);
    /* One batch of at most 4 may already be with the thread; the rest is bounded by 10. */
    for (int i = 0; i < 100; i++)
        accepted += put(i, 1, 0);
    cr_assert(accepted >= 10 && accepted <= 14, "%d accepted", accepted);
    cr_assert_eq(work_pending(bed.work), (size_t)accepted);
    bed.wanted = accepted;
    pthread_mutex_unlock(&bed.gate);
    loop_run(bed.loop);
    cr_assert_eq(work_pending(bed.work), 0);
    cr_assert(put(100, 1, 0));
    bed.wanted++;
    loop_run(bed.loop);
    cr_assert_eq(bed.ran_count, accepted + 1);
    finish();
}

Test(work, one_user_cannot_take_the_whole_queue)
{
    int flood = 0;

    start(100, 60, 1, 1000);
    pthread_mutex_lock(&bed.gate);
    for (int i = 0; i < 200; i++)
        flood += put(i, 7, 0);
    cr_assert(flood >= 60 && flood <= 61, "%d of the flood accepted", flood);
    for (int i = 0; i < 30; i++)
        cr_assert(put(300 + i, 8, 0), "job %d of the other user", i);
    bed.wanted = flood + 30;
    pthread_mutex_unlock(&bed.gate);
    loop_run(bed.loop);
    finish();
}

Test(work, users_take_turns)
{
    int seen_eight = 0, position[MANY];

    start(1000, 1000, 1, 1000);
    occupy();
    for (int i = 10; i < 210; i++)
        cr_assert(put(i, 7, 0));
    for (int i = 300; i < 310; i++)
        cr_assert(put(i, 8, 0));
    bed.wanted = 212;
    pthread_mutex_unlock(&bed.gate);
    loop_run(bed.loop);
    cr_assert_eq(bed.ran_count, 212);
    for (int i = 0; i < bed.ran_count; i++)
        position[bed.ran[i]] = i;
    /* Ten jobs of user 8 behind 200 of user 7 are run within the first 20 turns, each user's in his own order. */
    for (int i = 300; i < 310; i++) {
        cr_assert(position[i] < 2 + 21, "job %d ran at place %d", i, position[i]);
        seen_eight++;
        if (i > 300)
            cr_assert(position[i] > position[i - 1]);
    }
    for (int i = 11; i < 210; i++)
        cr_assert(position[i] > position[i - 1]);
    cr_assert_eq(seen_eight, 10);
    finish();
}

Test(work, batches_adapt_and_are_bounded_by_count_and_weight)
{
    start(1000, 1000, 16, 1000);
    occupy();
    for (int i = 10; i < 110; i++)
        cr_assert(put(i, 7, 0));
    bed.wanted = 102;
    pthread_mutex_unlock(&bed.gate);
    loop_run(bed.loop);
    cr_assert_eq(bed.largest, 16);
    bed.largest = 0;
    bed.wanted += 101;
    pthread_mutex_lock(&bed.gate);
    cr_assert(put(200, 1, 0));
    for (int i = 210; i < 310; i++)
        cr_assert(put(i, 7, 400));
    pthread_mutex_unlock(&bed.gate);
    loop_run(bed.loop);
    /* 400 + 400 + 400: the third would cross 1000, at most one weightless item stands before them. */
    cr_assert(bed.largest >= 2 && bed.largest <= 3, "a batch of %d", bed.largest);
    cr_assert_eq(work_batches(bed.work), (uint64_t)bed.batches);
    finish();
}

Test(work, stop_runs_what_waits_and_takes_nothing_new)
{
    start(1000, 1000, 8, 1000);
    occupy();
    for (int i = 10; i < 60; i++)
        cr_assert(put(i, (uint32_t)i % 3, 0));
    work_stop(bed.work);
    cr_assert_not(put(70, 1, 0));
    pthread_mutex_unlock(&bed.gate);
    bed.wanted = 1000; /* the loop does not run: joining delivers what is finished */
    work_free(bed.work);
    cr_assert_eq(bed.ran_count, 52);
    cr_assert_eq(bed.finished, 52);
    loop_free(bed.loop);
}

static void drop(void *context, struct work_item *item)
{
    (void)item;
    ++*(int *)context;
}

Test(work, drop_gives_back_what_was_not_begun)
{
    int dropped = 0;

    start(1000, 1000, 1, 1000);
    occupy();
    for (int i = 10; i < 60; i++)
        cr_assert(put(i, (uint32_t)i % 3, 0));
    work_drop(bed.work, drop, &dropped);
    pthread_mutex_unlock(&bed.gate);
    cr_assert(dropped >= 50 && dropped <= 52, "%d dropped", dropped);
    work_free(bed.work);
    cr_assert_eq(bed.ran_count + dropped, 52);
    cr_assert_eq(bed.finished, bed.ran_count);
    loop_free(bed.loop);
}

Test(work, absurd_sizes_are_refused)
{
    struct work_config config = {
        .name = "test", .threads = 17, .queue_max = 1, .batch_max = 1, .run = run, .done = done};
    struct profd_error e;

    cr_assert_eq(loop_new(&bed.loop, &e), PROFD_OK);
    cr_assert_eq(work_new(bed.loop, &config, &bed.work, &e), PROFD_INTERNAL);
    config.threads = 1;
    config.batch_max = 5000;
    cr_assert_eq(work_new(bed.loop, &config, &bed.work, &e), PROFD_INTERNAL);
    loop_free(bed.loop);
}

struct posted {
    struct loop_task task; /* first */
    int number;
};
static int posted_order[100], posted_count;

static void on_posted(struct loop_task *task)
{
    posted_order[posted_count++] = ((struct posted *)(void *)task)->number;
    if (posted_count == 100)
        loop_stop(bed.loop);
}

static void *post_all(void *argument)
{
    struct posted *p = argument;

    for (int i = 0; i < 100; i++)
        loop_post(bed.loop, &p[i].task);
    return NULL;
}

Test(loop, tasks_of_another_thread_come_in_order)
{
    static struct posted p[100];
    pthread_t thread;

    cr_assert_eq(loop_new(&bed.loop, NULL), PROFD_OK);
    for (int i = 0; i < 100; i++)
        p[i] = (struct posted){.task.run = on_posted, .number = i};
    cr_assert_eq(pthread_create(&thread, NULL, post_all, p), 0);
    loop_run(bed.loop);
    pthread_join(thread, NULL);
    for (int i = 0; i < 100; i++)
        cr_assert_eq(posted_order[i], i);
    loop_free(bed.loop);
}
