/* The queues under the thread sanitizer: four threads, many users, jobs that put further jobs, a stop in the middle.
 * Every job must be run once and be done once, on the loop's thread. Exits 0 when all is well. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "net/loop.h"
#include "net/work.h"

#define JOBS 20000

struct job {
    struct work_item item; /* first */
    unsigned runs;         /* written by the worker, read by the loop: the queue must order them */
    unsigned done;
    uint64_t result;
    uint64_t prepared; /* written by one thread, read by another */
};

static struct {
    struct loop *loop;
    struct work *work;
    struct job *jobs;
    size_t put, done;
    pthread_t loop_thread;
    bool wrong;
} bed;
static atomic_uint_fast64_t checksum;
static atomic_bool gate; /* closed until the queue was full once: however fast the workers are */

static void run(void *context, struct work_item *const *items, size_t n)
{
    (void)context;
    while (!atomic_load(&gate)) {
        sched_yield();
    }
    for (size_t i = 0; i < n; i++) {
        struct job *j = (struct job *)(void *)items[i];

        j->runs++;
        j->result = (uint64_t)(j - bed.jobs) * 3u;
        atomic_fetch_add(&checksum, j->result);
    }
}

static void prepare(void *context, struct work_item *const *items, size_t n)
{
    (void)context;
    for (size_t i = 0; i < n; i++) {
        ((struct job *)(void *)items[i])->prepared++;
    }
}

static void fill(void)
{
    while (bed.put < JOBS) {
        bed.jobs[bed.put].item.uid = (uint32_t)(bed.put % 7 ? bed.put % 97 : 1000);
        bed.jobs[bed.put].item.weight = bed.put % 100;
        if (!work_put(bed.work, &bed.jobs[bed.put].item)) {
            return;
        }
        bed.put++;
    }
}

static void done(void *context, struct work_item *item)
{
    struct job *j = (struct job *)(void *)item;

    (void)context;
    j->done++;
    if (j->runs != 1 || j->done != 1 || j->result != (uint64_t)(j - bed.jobs) * 3u ||
        !pthread_equal(pthread_self(), bed.loop_thread)) {
        bed.wrong = true;
    }
    bed.done++;
    fill();
    if (bed.done == JOBS) {
        loop_stop(bed.loop);
    }
}

/* One round of all jobs. 0 if each was run and done once. */
static int round_of(const struct work_config *config, const char *what, uint64_t prepared)
{
    uint64_t expected = 3u * (uint64_t)JOBS * (JOBS - 1) / 2;

    bed.put = bed.done = 0;
    bed.jobs = calloc(JOBS, sizeof *bed.jobs);
    atomic_store(&checksum, 0);
    atomic_store(&gate, false);
    if (!bed.jobs || loop_new(&bed.loop, NULL) || work_new(bed.loop, config, &bed.work, NULL)) {
        return 2;
    }
    fill();
    if (bed.put == JOBS) {
        printf("not ok - the queue took all %d jobs, at most 500 may wait\n", JOBS);
        return 1;
    }
    atomic_store(&gate, true);
    loop_run(bed.loop);
    work_free(bed.work);
    loop_free(bed.loop);
    for (size_t i = 0; i < JOBS; i++) {
        bed.wrong |= bed.jobs[i].prepared != prepared;
    }
    free(bed.jobs);
    if (bed.wrong || bed.done != JOBS || atomic_load(&checksum) != expected) {
        printf("not ok - %s: %zu of %d jobs done, wrong %d\n", what, bed.done, JOBS, bed.wrong);
        return 1;
    }
    printf("ok - %d jobs over %s, each run once and done once\n", JOBS, what);
    return 0;
}

int main(void)
{
    const struct work_config many = {
        .name = "tsan",
        .threads = 4,
        .queue_max = 500,
        .queue_max_uid = 60,
        .batch_max = 32,
        .batch_weight = 400,
        .nice = 5,
        .run = run,
        .done = done,
    };
    const struct work_config one = {
        .name = "tsan",
        .threads = 1,
        .queue_max = 500,
        .queue_max_uid = 60,
        .batch_max = 32,
        .batch_weight = 400,
        .prepare = prepare,
        .run = run,
        .done = done,
    };
    int failed;

    bed.loop_thread = pthread_self();
    failed = round_of(&many, "4 threads", 0);
    return failed ? failed : round_of(&one, "a thread and its preparer", 1);
}
