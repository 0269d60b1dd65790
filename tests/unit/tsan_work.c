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
    while (!atomic_load(&gate))
        sched_yield();
    for (size_t i = 0; i < n; i++) {
        struct job *j = (struct job *)(void *)items[i];

        j->runs++;
        j->result = (uint64_t)(j - bed.jobs) * 3u;
        atomic_fetch_add(&checksum, j->result);
    }
}

static void fill(void)
{
    while (bed.put < JOBS) {
        bed.jobs[bed.put].item.uid = (uint32_t)(bed.put % 7 ? bed.put % 97 : 1000);
        bed.jobs[bed.put].item.weight = bed.put % 100;
        if (!work_put(bed.work, &bed.jobs[bed.put].item))
            return;
        bed.put++;
    }
}

static void done(void *context, struct work_item *item)
{
    struct job *j = (struct job *)(void *)item;

    (void)context;
    j->done++;
    if (j->runs != 1 || j->done != 1 || j->result != (uint64_t)(j - bed.jobs) * 3u ||
        !pthread_equal(pthread_self(), bed.loop_thread))
        bed.wrong = true;
    bed.done++;
    fill();
    if (bed.done == JOBS)
        loop_stop(bed.loop);
}

int main(void)
{
    const struct work_config config = {
        .name = "tsan", .threads = 4, .queue_max = 500, .queue_max_uid = 60, .batch_max = 32, .batch_weight = 400,
        .run = run, .done = done,
    };
    uint64_t expected = 3u * (uint64_t)JOBS * (JOBS - 1) / 2;

    bed.jobs = calloc(JOBS, sizeof *bed.jobs);
    bed.loop_thread = pthread_self();
    if (!bed.jobs || loop_new(&bed.loop, NULL) || work_new(bed.loop, &config, &bed.work, NULL))
        return 2;
    fill();
    if (bed.put == JOBS) {
        printf("not ok 1 - the queue took all %d jobs, at most 500 may wait\n", JOBS);
        return 1;
    }
    atomic_store(&gate, true);
    loop_run(bed.loop);
    work_free(bed.work);
    loop_free(bed.loop);
    if (bed.wrong || bed.done != JOBS || atomic_load(&checksum) != expected) {
        printf("not ok 1 - %zu of %d jobs done, wrong %d\n", bed.done, JOBS, bed.wrong);
        return 1;
    }
    printf("ok 1 - %d jobs over 4 threads, each run once and done once\n", JOBS);
    free(bed.jobs);
    return 0;
}
