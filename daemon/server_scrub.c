/* Everything stored is verified again and again, a round a day, by a thread that yields to all others; and at once when
 * somebody asks. */
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "server_parts.h"
#include "server_upkeep.h"

#define FIRST_MS 30000
#define FAILED_MS 60000
#define QUEUE 64u
#define NICE 19
#define KEPT_A_ROUND 100u /* sentences in the log; the others are counted */

struct server_scrub {
    struct server_check check; /* first */
    struct loop_timer *timer;
    struct store *store;
    struct work *work;
    bool running;
    uint64_t round_began; /* ms of loop_now */
    size_t from;
    uint64_t counted;
    struct server_upkeep_view view;
};

static void server_scrub_run(void *context, struct work_item *const *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct server_check *c = (struct server_check *)(void *)items[i];

        c->status = verify_step(&c->verify, context, &c->error);
    }
}

static void server_scrub_finished(void *context, struct work_item *item)
{
    struct server_check *c = (struct server_check *)(void *)item;

    (void)context;
    c->done(c);
}

static void server_scrub_dropped(void *context, struct work_item *item)
{
    struct server_check *c = (struct server_check *)(void *)item;

    (void)context;
    c->drop(c);
}

bool server_scrub_put(struct server *s, struct server_check *c)
{
    c->server = s;
    return !s->stopping && work_put(s->scrub->work, &c->item);
}

void server_scrub_note(struct server *s, struct server_check *c, size_t *from, uint64_t *counted)
{
    const struct verify *v = &c->verify;
    const char *at = v->sentences.data;

    while (*from < v->sentences.size) {
        const char *line = at + *from, *end = memchr(line, '\n', v->sentences.size - *from);
        const size_t n = end ? (size_t)(end - line) : v->sentences.size - *from;

        log_write(LOG_LEVEL_ERROR, "verification", "what is stored does not add up: %.*s", (int)n, line);
        *from += n + 1;
    }
    s->metrics.ledger_mismatches += v->mismatches - *counted;
    *counted = v->mismatches;
}

static void server_scrub_step(struct server *s)
{
    struct server_scrub *r = s->scrub;

    if (r->running || s->stopping)
        return;
    if (!r->round_began) {
        verify_done(&r->check.verify);
        verify_init(&r->check.verify, KEPT_A_ROUND);
        r->round_began = loop_now();
        r->from = 0;
        r->counted = 0;
    }
    r->running = server_scrub_put(s, &r->check);
    if (!r->running)
        loop_timer_set(r->timer, FAILED_MS);
}

static void server_scrub_end_round(struct server *s)
{
    struct server_scrub *r = s->scrub;
    const struct verify *v = &r->check.verify;

    r->view.rounds++;
    r->view.round_ended = (double)server_clock() / 1e9;
    r->view.round_uploads = v->uploads;
    r->view.round_mismatches = v->mismatches;
    r->round_began = 0;
    log_write(v->mismatches ? LOG_LEVEL_ERROR : LOG_LEVEL_INFO, "verification",
              "%llu uploads verified, %llu mismatches", (unsigned long long)v->uploads,
              (unsigned long long)v->mismatches);
}

static void server_scrub_done(struct server_check *c)
{
    struct server *s = c->server;
    struct server_scrub *r = s->scrub;
    const uint64_t began = r->round_began;
    uint64_t pause;

    r->running = false;
    server_scrub_note(s, c, &r->from, &r->counted);
    r->view.round_done = c->verify.uploads;
    r->view.round_total = c->verify.total;
    if (c->status) {
        if (c->status == PROFD_DAMAGED)
            s->metrics.ledger_mismatches++;
        log_write(LOG_LEVEL_ERROR, "verification", "verification: %s", c->error.sentence);
        r->round_began = 0;
        loop_timer_set(r->timer, FAILED_MS);
        return;
    }
    pause = verify_pause(&c->verify, loop_now() - began);
    if (c->verify.cursor.done) {
        server_scrub_end_round(s);
        /* What is left of the day; a small store is looked at every minute or so all the same. */
        pause = FAILED_MS;
    }
    loop_timer_set(r->timer, pause);
}

static void server_scrub_drop(struct server_check *c)
{
    c->server->scrub->running = false;
}

static void server_scrub_on_timer(void *context)
{
    server_scrub_step(context);
}

static enum profd_status server_scrub_open(struct server *s, struct server_scrub *r, struct profd_error *e)
{
    void *contexts[1];
    struct work_config config = {.name = "profd-verify",
                                 .threads = 1,
                                 .contexts = contexts,
                                 .queue_max = QUEUE,
                                 .queue_max_uid = QUEUE / 2,
                                 .batch_max = 1,
                                 .nice = NICE,
                                 .run = server_scrub_run,
                                 .done = server_scrub_finished,
                                 .done_context = s};
    char path[4096];
    enum profd_status status = server_database_path(s, path, sizeof path, e);

    if (!status)
        status = store_sqlite_open_reader(path, &r->store, e);
    contexts[0] = r->store;
    if (!status)
        status = work_new(s->loop, &config, &r->work, e);
    return status;
}

enum profd_status server_scrub_start(struct server *s, struct profd_error *e)
{
    struct server_scrub *r = calloc(1, sizeof *r);

    if (r)
        r->timer = loop_timer_new(s->loop, server_scrub_on_timer, s);
    if (!r || !r->timer) {
        free(r);
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for verification");
    }
    s->scrub = r;
    r->check = (struct server_check){.server = s, .done = server_scrub_done, .drop = server_scrub_drop};
    r->check.item.uid = UINT32_MAX; /* nobody's turn is taken */
    verify_init(&r->check.verify, KEPT_A_ROUND);
    loop_timer_set(r->timer, FIRST_MS);
    return server_scrub_open(s, r, e);
}

void server_scrub_stop(struct server *s)
{
    if (s->scrub && s->scrub->work)
        work_drop(s->scrub->work, server_scrub_dropped, s);
}

void server_scrub_end(struct server *s)
{
    struct server_scrub *r = s->scrub;

    if (!r)
        return;
    server_scrub_stop(s);
    work_free(r->work);
    store_close(r->store);
    verify_done(&r->check.verify);
    loop_timer_free(r->timer);
    free(r);
    s->scrub = NULL;
}

bool server_scrub_is_idle(const struct server *s)
{
    return !s->scrub || !s->scrub->work || !work_pending(s->scrub->work);
}

void server_scrub_view(const struct server *s, struct server_upkeep_view *out)
{
    const struct server_scrub *r = s->scrub;

    if (!r)
        return;
    out->mismatches = s->metrics.ledger_mismatches;
    out->rounds = r->view.rounds;
    out->round_ended = r->view.round_ended;
    out->round_uploads = r->view.round_uploads;
    out->round_mismatches = r->view.round_mismatches;
    out->round_done = r->view.round_done;
    out->round_total = r->view.round_total;
}
