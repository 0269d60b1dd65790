/* Bounded queues: limits, fairness, order, stop. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

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
    for (size_t i = 0; i < n; i++) {
        bed.ran[bed.ran_count++] = ((struct job *)(void *)items[i])->number;
    }
    bed.batches++;
    if ((int)n > bed.largest) {
        bed.largest = (int)n;
    }
    pthread_mutex_unlock(&bed.gate);
}

static void done(void *context, struct work_item *item)
{
    (void)context;
    (void)item;
    if (++bed.finished == bed.wanted) {
        loop_stop(bed.loop);
    }
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

    for (int i = 0; i < MANY; i++) {
        bed.jobs[i].number = i;
    }
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
    while (work_pending(bed.work) == 1 && !put(1, 2, 0)) {
    }
}

Test(work, full_says_so_at_once_and_recovers)
{
    int accepted = 0;

    start(10, 10, 4, 1000);
    pthread_mutex_lock(&bed.gate);
    /* One batch of at most 4 may already be with the thread; the rest is bounded by 10. */
    for (int i = 0; i < 100; i++) {
        accepted += put(i, 1, 0);
    }
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
    for (int i = 0; i < 200; i++) {
        flood += put(i, 7, 0);
    }
    cr_assert(flood >= 60 && flood <= 61, "%d of the flood accepted", flood);
    for (int i = 0; i < 30; i++) {
        cr_assert(put(300 + i, 8, 0), "job %d of the other user", i);
    }
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
    for (int i = 10; i < 210; i++) {
        cr_assert(put(i, 7, 0));
    }
    for (int i = 300; i < 310; i++) {
        cr_assert(put(i, 8, 0));
    }
    bed.wanted = 212;
    pthread_mutex_unlock(&bed.gate);
    loop_run(bed.loop);
    cr_assert_eq(bed.ran_count, 212);
    for (int i = 0; i < bed.ran_count; i++) {
        position[bed.ran[i]] = i;
    }
    /* Ten jobs of user 8 behind 200 of user 7 are run within the first 20 turns, each user's in his own order. */
    for (int i = 300; i < 310; i++) {
        cr_assert(position[i] < 2 + 21, "job %d ran at place %d", i, position[i]);
        seen_eight++;
        if (i > 300) {
            cr_assert(position[i] > position[i - 1]);
        }
    }
    for (int i = 11; i < 210; i++) {
        cr_assert(position[i] > position[i - 1]);
    }
    cr_assert_eq(seen_eight, 10);
    finish();
}

Test(work, batches_adapt_and_are_bounded_by_count_and_weight)
{
    start(1000, 1000, 16, 1000);
    occupy();
    for (int i = 10; i < 110; i++) {
        cr_assert(put(i, 7, 0));
    }
    bed.wanted = 102;
    pthread_mutex_unlock(&bed.gate);
    loop_run(bed.loop);
    cr_assert_eq(bed.largest, 16);
    bed.largest = 0;
    bed.wanted += 101;
    pthread_mutex_lock(&bed.gate);
    cr_assert(put(200, 1, 0));
    for (int i = 210; i < 310; i++) {
        cr_assert(put(i, 7, 400));
    }
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
    for (int i = 10; i < 60; i++) {
        cr_assert(put(i, (uint32_t)i % 3, 0));
    }
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
    for (int i = 10; i < 60; i++) {
        cr_assert(put(i, (uint32_t)i % 3, 0));
    }
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

Test(work, threads_that_cannot_be_started_are_named)
{
    const struct rlimit none = {0, 0};
    const struct work_config config = {
        .name = "test", .threads = 1, .queue_max = 1, .batch_max = 1, .run = run, .done = done};
    struct profd_error e;

    cr_assert_eq(loop_new(&bed.loop, &e), PROFD_OK);
    cr_assert_eq(setrlimit(RLIMIT_NPROC, &none), 0);
    cr_assert(geteuid() != 0 || setuid(54321) == 0); /* root has no such limit */
    cr_assert_eq(work_new(bed.loop, &config, &bed.work, &e), PROFD_NO_MEMORY);
    cr_assert_str_eq(e.sentence, "the threads of test cannot be started");
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
    if (posted_count == 100) {
        loop_stop(bed.loop);
    }
}

static void *post_all(void *argument)
{
    struct posted *p = argument;

    for (int i = 0; i < 100; i++) {
        loop_post(bed.loop, &p[i].task);
    }
    return NULL;
}

Test(loop, tasks_of_another_thread_come_in_order)
{
    static struct posted p[100];
    pthread_t thread;

    cr_assert_eq(loop_new(&bed.loop, NULL), PROFD_OK);
    for (int i = 0; i < 100; i++) {
        p[i] = (struct posted){.task.run = on_posted, .number = i};
    }
    cr_assert_eq(pthread_create(&thread, NULL, post_all, p), 0);
    loop_run(bed.loop);
    pthread_join(thread, NULL);
    for (int i = 0; i < 100; i++) {
        cr_assert_eq(posted_order[i], i);
    }
    loop_free(bed.loop);
}

/* Two threads; a job runs until the test lets it end. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool started[MANY], may_end[MANY];
} held = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void run_held(void *context, struct work_item *const *items, size_t n)
{
    const int i = ((struct job *)(void *)items[0])->number;

    (void)context;
    (void)n;
    pthread_mutex_lock(&held.lock);
    held.started[i] = true;
    bed.ran[bed.ran_count++] = i;
    pthread_cond_broadcast(&held.changed);
    while (!held.may_end[i]) {
        pthread_cond_wait(&held.changed, &held.lock);
    }
    pthread_mutex_unlock(&held.lock);
}

static void start_held(void)
{
    const struct work_config config = {
        .name = "test",
        .threads = 2,
        .queue_max = 100,
        .queue_max_uid = 100,
        .batch_max = 1,
        .batch_weight = 1,
        .threads_max_uid = 1,
        .running_weight = 20,
        .run = run_held,
        .done = done,
    };
    struct profd_error e;

    for (int i = 0; i < MANY; i++) {
        bed.jobs[i].number = i;
    }
    cr_assert_eq(loop_new(&bed.loop, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(work_new(bed.loop, &config, &bed.work, &e), PROFD_OK, "%s", e.sentence);
}

static void await_start(int i)
{
    pthread_mutex_lock(&held.lock);
    while (!held.started[i]) {
        pthread_cond_wait(&held.changed, &held.lock);
    }
    pthread_mutex_unlock(&held.lock);
}

static void let_end(int i)
{
    pthread_mutex_lock(&held.lock);
    held.may_end[i] = true;
    pthread_cond_broadcast(&held.changed);
    pthread_mutex_unlock(&held.lock);
}

Test(work, one_user_never_occupies_all_threads)
{
    start_held();
    for (int i = 0; i < 3; i++) {
        cr_assert(put(i, 1, 5));
    }
    await_start(0);
    cr_assert(put(3, 2, 5));
    let_end(3);
    await_start(3); /* beside the first of user 1, whose others wait */
    cr_assert(!held.started[1] && !held.started[2]);
    bed.wanted = 4;
    for (int i = 0; i < 3; i++) {
        let_end(i);
    }
    loop_run(bed.loop);
    cr_assert(bed.ran[0] == 0 && bed.ran[1] == 3 && bed.ran[2] == 1 && bed.ran[3] == 2);
    finish();
}

Test(work, what_runs_together_is_bounded_by_weight)
{
    start_held();
    cr_assert(put(0, 1, 15));
    await_start(0);
    cr_assert(put(1, 2, 15)); /* too heavy beside the first */
    cr_assert(put(2, 3, 5));  /* not so */
    cr_assert(put(3, 1, 5));
    await_start(2);
    cr_assert(!held.started[1] && !held.started[3]);
    let_end(2);
    let_end(0);
    await_start(1); /* the heavy one has its place in the ring, and room is found for the last beside it */
    await_start(3);
    bed.wanted = 4;
    let_end(1);
    let_end(3);
    loop_run(bed.loop);
    finish();
}

/* A thread that found nothing it may run must hear that the others have run the rest. */
Test(work, a_stop_ends_threads_that_waited_for_their_limit)
{
    start_held();
    for (int i = 0; i < 4; i++) {
        cr_assert(put(i, 1, 5));
        held.may_end[i] = i > 0;
    }
    await_start(0);
    work_stop(bed.work);
    let_end(0);
    finish();
    cr_assert_eq(bed.finished, 4);
}
