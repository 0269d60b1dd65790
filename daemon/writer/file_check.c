#include "writer/file_check.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/container.h"
#include "net/loop.h"
#include "writer/writer.h"

#define LOOK_MS 2000

/* Databases that stand aside. */
struct file_check_aside {
    size_t count;
    char latest[ASIDE_NAME_SIZE];
};

struct file_check {
    struct writer_job job;
    struct writer *writer;
    struct loop_timer *timer;
    const char *state_dir;
    bool running, stopped;
    struct file_check_aside found, shown; /* found: the job's */
};

static struct file_check *file_check_of(struct writer_job *job)
{
    return container_of(job, struct file_check, job);
}

static void file_check_run(struct store *store, const struct profd_error *full, struct writer_job *const *jobs,
                           size_t n)
{
    (void)full;
    for (size_t i = 0; i < n; i++) {
        struct file_check *c = file_check_of(jobs[i]);

        (void)store_look(store, NULL); /* the store's health says what it found */
        c->found.count = aside_count_damaged(c->state_dir, c->found.latest);
    }
}

static void file_check_done(struct writer_job *job)
{
    struct file_check *c = file_check_of(job);

    c->running = false;
    c->shown = c->found;
}

static void file_check_drop(struct writer_job *job)
{
    file_check_of(job)->running = false;
}

static const struct writer_job_type file_check_type = {
    .run = file_check_run, .done = file_check_done, .drop = file_check_drop};

static void file_check_on_timer(void *context)
{
    struct file_check *c = context;

    if (c->stopped || writer_check(c->writer, NULL)) {
        return;
    }
    if (!c->running) {
        c->running = writer_put(c->writer, &c->job);
    }
    loop_timer_set(c->timer, LOOK_MS);
}

enum profd_status file_check_start(struct loop *loop, struct writer *writer, const char *state_dir,
                                   struct file_check **out, struct profd_error *e)
{
    struct file_check *c = calloc(1, sizeof *c);

    if (c) {
        c->timer = loop_timer_new(loop, file_check_on_timer, c);
    }
    if (!c || !c->timer) {
        free(c);
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to look at the store's files");
    }
    c->job = (struct writer_job){.item = {.uid = WRITER_UID_NONE, .weight = 1}, .type = &file_check_type};
    c->writer = writer;
    c->state_dir = state_dir;
    c->shown.count = aside_count_damaged(state_dir, c->shown.latest);
    loop_timer_set(c->timer, LOOK_MS);
    *out = c;
    return PROFD_OK;
}

void file_check_stop(struct file_check *c)
{
    c->stopped = true;
    loop_timer_clear(c->timer);
}

void file_check_free(struct file_check *c)
{
    if (c) {
        loop_timer_free(c->timer);
    }
    free(c);
}

size_t file_check_count_damaged(const struct file_check *c, const char **latest)
{
    *latest = c->shown.latest;
    return c->shown.count;
}
