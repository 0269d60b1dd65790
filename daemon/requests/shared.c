#include "requests/shared.h"

#include <stdlib.h>
#include <string.h>

#include "admin/revocations.h"
#include "core/container.h"
#include "log/log.h"
#include "net/loop.h"
#include "requests/readers.h"
#include "writer/writer.h"

#define READ_MS 10000

struct shared_key {
    uint8_t key[STORE_HASH_SIZE];
    int64_t revoked; /* ns */
};

struct shared {
    struct writer_job job;
    struct loop_timer *timer;
    struct writer *writer;
    struct readers *readers;
    struct revocations *revocations;
    bool running, stopped;
    /* What the job found: */
    enum profd_status status;
    struct profd_error error;
    struct reader_list list;
    struct shared_key *keys;
    size_t count, capacity;
};

static struct shared *shared_of(struct writer_job *job)
{
    return container_of(job, struct shared, job);
}

static bool note_key(void *context, const uint8_t key[STORE_HASH_SIZE], int64_t revoked)
{
    struct shared *s = context;

    if (s->count == s->capacity) {
        const size_t capacity = 2 * s->capacity + 16;
        struct shared_key *more = realloc(s->keys, capacity * sizeof *more);

        if (!more) {
            s->status = profd_no_memory(&s->error);
            return false;
        }
        s->keys = more;
        s->capacity = capacity;
    }
    s->keys[s->count] = (struct shared_key){.revoked = revoked};
    memcpy(s->keys[s->count++].key, key, STORE_HASH_SIZE);
    return true;
}

static void shared_run(struct store *store, const struct profd_error *full, struct writer_job *const *jobs, size_t n)
{
    (void)full;
    for (size_t i = 0; i < n; i++) {
        struct shared *s = shared_of(jobs[i]);

        s->count = 0;
        s->status = readers_read(store, &s->list, &s->error);
        if (!s->status && s->revocations) {
            const enum profd_status status = store_each_revoked(store, note_key, s, &s->error);

            s->status = s->status ? s->status : status;
        }
    }
}

static void shared_done(struct writer_job *job)
{
    struct shared *s = shared_of(job);

    s->running = false;
    if (s->status) { /* what is known stays */
        free(s->list.items);
        s->list = (struct reader_list){.count = 0};
        log_write(LOG_LEVEL_WARNING, "shared", "what other daemons have changed could not be read: %s",
                  s->error.sentence);
        return;
    }
    readers_replace(s->readers, &s->list);
    s->list = (struct reader_list){.count = 0};
    for (size_t i = 0; i < s->count; i++) {
        if (!revocations_has(s->revocations, REVOCATIONS_KEY, s->keys[i].key)) {
            (void)revocations_note(s->revocations, REVOCATIONS_KEY, s->keys[i].key, s->keys[i].revoked);
        }
    }
}

static void shared_drop(struct writer_job *job)
{
    shared_of(job)->running = false;
}

static const struct writer_job_type shared_type = {.run = shared_run, .done = shared_done, .drop = shared_drop};

static void shared_on_timer(void *context)
{
    struct shared *s = context;

    if (s->stopped) {
        return;
    }
    if (!s->running) {
        s->running = writer_put(s->writer, &s->job);
    }
    loop_timer_set(s->timer, READ_MS);
}

enum profd_status shared_start(struct loop *loop, struct writer *writer, struct readers *readers,
                               struct revocations *revocations, struct shared **out, struct profd_error *e)
{
    struct shared *s = calloc(1, sizeof *s);

    if (s) {
        s->timer = loop_timer_new(loop, shared_on_timer, s);
    }
    if (!s || !s->timer) {
        free(s);
        return profd_no_memory(e);
    }
    s->job = (struct writer_job){.item = {.uid = WRITER_UID_NONE, .weight = 1}, .type = &shared_type};
    s->writer = writer;
    s->readers = readers;
    s->revocations = revocations;
    loop_timer_set(s->timer, READ_MS);
    *out = s;
    return PROFD_OK;
}

void shared_stop(struct shared *s)
{
    if (s) {
        s->stopped = true;
        loop_timer_clear(s->timer);
    }
}

void shared_free(struct shared *s)
{
    if (s) {
        loop_timer_free(s->timer);
        free(s->list.items);
        free(s->keys);
    }
    free(s);
}
