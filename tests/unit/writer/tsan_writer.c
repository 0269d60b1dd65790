/* The writer under the thread sanitizer: jobs of three types, prepared beside the thread that runs them, while another
 * thread reads the generations as reports do. Every job must be run and done once. Exits 0 when all is well. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#include "core/container.h"
#include "net/loop.h"
#include "tests/scratch_store.h"
#include "writer/health.h"
#include "writer/writer.h"

#define JOBS 6000

struct job {
    struct writer_job job;
    unsigned prepared, run, done; /* by three threads, one after another: the queue must order them */
};

static struct {
    struct loop *loop;
    struct store *store;
    struct health *health;
    struct writer *writer;
    struct job jobs[JOBS];
    size_t done;
    bool wrong;
    atomic_bool ended;
} bed;

static struct job *job_of(struct writer_job *job)
{
    return container_of(job, struct job, job);
}

static void prepare(struct writer_job *job)
{
    job_of(job)->prepared++;
    (void)writer_objects_generation(bed.writer);
}

static void run(struct store *store, struct writer_job *const *jobs, size_t n)
{
    (void)store_look(store, NULL);
    for (size_t i = 0; i < n; i++) {
        job_of(jobs[i])->run++;
    }
}

static void done(struct writer_job *job)
{
    job_of(job)->done++;
    bed.wrong = bed.wrong || job->status || writer_check(bed.writer, NULL);
    if (++bed.done == JOBS) {
        loop_stop(bed.loop);
    }
}

static void failed(void *context, bool damaged)
{
    (void)context;
    (void)damaged;
    bed.wrong = true;
}

static void *read_generations(void *context)
{
    uint64_t latest = 0;

    (void)context;
    while (!atomic_load(&bed.ended)) {
        const uint64_t now = writer_generation(bed.writer);

        if (now < latest) {
            fprintf(stderr, "a generation went back\n");
            return (void *)1;
        }
        latest = now;
        (void)writer_batches(bed.writer);
    }
    return NULL;
}

static const struct writer_job_type types[] = {
    {.prepare = prepare, .run_all = run, .done = done},
    {.run_all = run, .done = done, .changes_objects = true},
    {.prepare = prepare, .run_all = run, .done = done, .changes_objects = true}};

int main(void)
{
    struct writer_config config = {.failed = failed};
    pthread_t reader;
    void *result = NULL;

    if (loop_new(&bed.loop, NULL) || scratch_store_open(&bed.store, NULL) || health_new("", &bed.health, NULL)) {
        return 1;
    }
    config.loop = bed.loop;
    config.store = bed.store;
    config.health = bed.health;
    if (writer_new(&config, &bed.writer, NULL) || pthread_create(&reader, NULL, read_generations, NULL)) {
        return 1;
    }
    for (size_t i = 0; i < JOBS; i++) {
        bed.jobs[i].job = (struct writer_job){.item = {.uid = (uint32_t)(i % 5), .weight = 1}, .type = &types[i % 3]};
        bed.wrong = bed.wrong || !writer_put(bed.writer, &bed.jobs[i].job);
    }
    loop_run(bed.loop);
    atomic_store(&bed.ended, true);
    pthread_join(reader, &result);
    writer_free(bed.writer);
    for (size_t i = 0; i < JOBS; i++) {
        const struct job *j = &bed.jobs[i];

        bed.wrong = bed.wrong || j->run != 1 || j->done != 1 || j->prepared != (j->job.type->prepare ? 1 : 0);
    }
    health_free(bed.health);
    store_close(bed.store);
    loop_free(bed.loop);
    printf("%s 1 - %d jobs of three types beside a reader of generations, each run once and done once\n1..1\n",
           bed.wrong || result ? "not ok" : "ok", JOBS);
    return bed.wrong || result;
}
