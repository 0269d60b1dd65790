/* The writer with fake jobs: what runs together and in which order, what is dropped, what a failure of the store does.
 */
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/container.h"
#include "net/loop.h"
#include "tests/scratch_store.h"
#include "writer/health.h"
#include "writer/writer.h"

#define JOBS 64

struct fake {
    struct writer_job job;
    char name;
    unsigned prepared, run, done, dropped;
    uint64_t generation; /* of the writer, while the job ran */
};

static struct {
    struct loop *loop;
    struct store *store;
    struct health *health;
    struct writer *writer;
    struct fake jobs[JOBS];
    size_t put, done;
    char ran[256], ended[256]; /* names in the order of run, " " between two calls, and of done */
    atomic_bool closed, open;  /* a job of type gate sets the one and waits for the other */
    unsigned failures;
    bool damaged;
    size_t done_at_failure;
    char directory[64], path[96];
} bed;

static struct fake *fake_of(struct writer_job *job)
{
    return container_of(job, struct fake, job);
}

static void fake_prepare(struct writer_job *job)
{
    fake_of(job)->prepared++;
}

static void fake_run(struct store *store, struct writer_job *const *jobs, size_t n)
{
    cr_assert_eq(store, bed.store);
    for (size_t i = 0; i < n; i++) {
        struct fake *f = fake_of(jobs[i]);

        cr_assert_null(jobs[i]->full);
        f->run++;
        f->generation = writer_generation(bed.writer);
        strncat(bed.ran, &f->name, 1);
    }
    strcat(bed.ran, " ");
}

static void fake_done(struct writer_job *job)
{
    if (job->status == PROFD_STOPPING) {
        fake_of(job)->dropped++;
        return;
    }
    fake_of(job)->done++;
    strncat(bed.ended, &fake_of(job)->name, 1);
    if (++bed.done == bed.put) {
        loop_stop(bed.loop);
    }
}

static void gate_prepare(struct writer_job *job)
{
    fake_prepare(job);
    atomic_store(&bed.closed, true);
    while (!atomic_load(&bed.open)) {
        usleep(1000);
    }
}

/* The database loses its file, and the store finds out. */
static void lose_run(struct store *store, struct writer_job *const *jobs, size_t n)
{
    unlink(bed.path);
    (void)store_look(store, NULL);
    fake_run(store, jobs, n);
}

/* One job by itself. */
static enum profd_status single_run(struct writer_job *job, struct store *store, struct profd_error *e)
{
    fake_run(store, &job, 1);
    return profd_error_set(e, PROFD_REFUSED, "job %c", fake_of(job)->name);
}

static const struct writer_job_type one = {.prepare = fake_prepare, .run_all = fake_run, .done = fake_done};
static const struct writer_job_type other = {.run_all = fake_run, .done = fake_done, .changes_objects = true};
static const struct writer_job_type gate = {.prepare = gate_prepare, .run_all = fake_run, .done = fake_done};
static const struct writer_job_type lose = {.run_all = lose_run, .done = fake_done};
static const struct writer_job_type single = {.run = single_run, .done = fake_done};

static void on_failed(void *context, bool damaged)
{
    cr_assert_eq(context, &bed);
    bed.failures++;
    bed.damaged = damaged;
    bed.done_at_failure = bed.done;
}

static void start(void)
{
    const struct writer_config config = {
        .loop = bed.loop, .store = bed.store, .health = bed.health, .failed = on_failed, .context = &bed};

    cr_assert_eq(writer_new(&config, &bed.writer, NULL), PROFD_OK);
}

static void setup(void)
{
    cr_assert_eq(loop_new(&bed.loop, NULL), PROFD_OK);
    cr_assert_eq(scratch_store_open(&bed.store, NULL), PROFD_OK);
    cr_assert_eq(health_new("/nowhere", &bed.health, NULL), PROFD_OK);
    start();
}

static void teardown(void)
{
    writer_free(bed.writer);
    health_free(bed.health);
    store_close(bed.store);
    loop_free(bed.loop);
}

TestSuite(writer, .init = setup, .fini = teardown);

static struct fake *put(char name, const struct writer_job_type *type)
{
    struct fake *f = &bed.jobs[bed.put++];

    f->name = name;
    f->job = (struct writer_job){.item = {.uid = 1, .weight = 1}, .type = type};
    cr_assert(writer_put(bed.writer, &f->job));
    return f;
}

/* The writer is busy until the gate opens: what is put meanwhile is the next batch. It is the preparation of a job that
 * waits, because while a job runs another thread takes those behind it, and holds a few, to prepare them. */
static void close_gate(void)
{
    put('!', &gate);
    while (!atomic_load(&bed.closed)) {
        usleep(1000);
    }
}

Test(writer, jobs_of_one_type_run_together_and_are_done_in_the_queues_order)
{
    close_gate();
    put('a', &one);
    put('x', &other);
    put('b', &one);
    put('y', &other);
    put('c', &one);
    cr_assert_eq(writer_pending(bed.writer), 6);
    atomic_store(&bed.open, true);
    loop_run(bed.loop);
    cr_assert_str_eq(bed.ran, "! abc xy ");
    cr_assert_str_eq(bed.ended, "!axbyc");
    cr_assert_eq(writer_pending(bed.writer), 0);
    for (size_t i = 0; i < bed.put; i++) {
        const struct fake *f = &bed.jobs[i];

        cr_assert_eq(f->run, 1);
        cr_assert_eq(f->done, 1);
        cr_assert_eq(f->dropped, 0);
        cr_assert_eq(f->prepared, f->job.type != &other);
    }
}

Test(writer, a_job_that_is_run_by_itself_keeps_what_its_run_returned)
{
    close_gate();
    put('a', &single);
    put('b', &single);
    atomic_store(&bed.open, true);
    loop_run(bed.loop);
    cr_assert_str_eq(bed.ran, "! a b ");
    cr_assert_eq(bed.jobs[2].job.status, PROFD_REFUSED);
    cr_assert_str_eq(bed.jobs[1].job.error.sentence, "job a");
    cr_assert_str_eq(bed.jobs[2].job.error.sentence, "job b");
}

Test(writer, generations_say_when_something_may_have_changed)
{
    const uint64_t objects = writer_objects_generation(bed.writer), before = writer_generation(bed.writer);
    struct fake *first = put('a', &one), *second;

    loop_run(bed.loop);
    cr_assert_eq(first->generation % 2, 1, "odd while the writer is at it");
    cr_assert_eq(writer_generation(bed.writer), before + 2);
    cr_assert_eq(writer_objects_generation(bed.writer), objects);
    second = put('x', &other);
    loop_run(bed.loop);
    cr_assert_eq(second->generation, before + 3);
    cr_assert_eq(writer_generation(bed.writer), before + 4);
    cr_assert_gt(writer_objects_generation(bed.writer), objects);
}

Test(writer, what_waits_can_be_dropped)
{
    close_gate();
    put('a', &one);
    put('x', &other);
    writer_drop_waiting(bed.writer);
    cr_assert_eq(bed.jobs[1].dropped + bed.jobs[2].dropped, 2);
    atomic_store(&bed.open, true);
    bed.put = 1;
    loop_run(bed.loop);
    cr_assert_str_eq(bed.ran, "! ");
    cr_assert_eq(bed.jobs[1].run + bed.jobs[1].done + bed.jobs[2].run + bed.jobs[2].done, 0);
}

Test(writer, a_users_part_of_the_queue_is_bounded)
{
    static struct fake many[30000];
    size_t taken = 0;

    close_gate();
    while (taken < 30000) {
        many[taken].job = (struct writer_job){.item = {.uid = 7, .weight = 1}, .type = &one};
        if (!writer_put(bed.writer, &many[taken].job)) {
            break;
        }
        taken++;
    }
    cr_assert_lt(taken, 30000);
    many[taken].job.item.uid = 8;
    cr_assert(writer_put(bed.writer, &many[taken].job), "another user has a part of its own");
    writer_drop_waiting(bed.writer);
    atomic_store(&bed.open, true);
    loop_run(bed.loop);
}

static void setup_disk(void)
{
    strcpy(bed.directory, "/tmp/profd-writer-XXXXXX");
    cr_assert_not_null(mkdtemp(bed.directory));
    snprintf(bed.path, sizeof bed.path, "%s/profd.db", bed.directory);
    cr_assert_eq(loop_new(&bed.loop, NULL), PROFD_OK);
    cr_assert_eq(store_sqlite_open_writer(bed.path, &bed.store, NULL), PROFD_OK);
    cr_assert_eq(health_new(bed.directory, &bed.health, NULL), PROFD_OK);
    start();
}

static void teardown_disk(void)
{
    char command[128];

    teardown();
    snprintf(command, sizeof command, "rm -rf %s", bed.directory);
    cr_assert_eq(system(command), 0);
}

TestSuite(writer_disk, .init = setup_disk, .fini = teardown_disk);

Test(writer_disk, a_failure_of_the_store_ends_writing_once_and_after_the_answer)
{
    struct profd_error e = {""};

    cr_assert_eq(writer_check(bed.writer, &e), PROFD_OK);
    put('l', &lose);
    loop_run(bed.loop);
    while (!bed.failures) { /* done stopped the loop before the writer went on */
        cr_assert_eq(writer_check(bed.writer, NULL), PROFD_IO, "the owner of the job knows it already");
        loop_run(bed.loop);
    }
    cr_assert_eq(bed.done_at_failure, 1, "the job was answered first");
    cr_assert_eq(writer_check(bed.writer, &e), PROFD_IO);
    cr_assert_not_null(strstr(e.sentence, "nothing is written any more"), "%s", e.sentence);
    put('m', &lose);
    put('n', &one);
    loop_run(bed.loop);
    cr_assert_eq(bed.failures, 1);
    cr_assert_not(bed.damaged);
}
