#include "writer/verifier.h"

#include <stdlib.h>

#include "base/log.h"
#include "core/container.h"
#include "net/loop.h"

#define SENTENCES_MAX (1u << 20)
#define ROUND_MS UINT64_C(86400000)
#define PAUSE_MS_MIN 1000u
#define PAUSE_MS_MAX 60000u

void verify_init(struct verify *v, uint64_t kept_max)
{
    *v = (struct verify){.kept_max = kept_max};
    buffer_init(&v->sentences, SENTENCES_MAX);
}

void verify_done(struct verify *v)
{
    buffer_done(&v->sentences);
}

static void verify_note(void *context, const char *sentence)
{
    struct verify *v = context;
    const size_t n = strlen(sentence);

    v->mismatches++;
    if (v->kept >= v->kept_max || v->sentences.size + n + 1 > SENTENCES_MAX) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        buffer_add_char(&v->sentences, sentence[i] == '\n' ? ' ' : sentence[i]);
    }
    buffer_add_char(&v->sentences, '\n');
    v->kept++;
}

enum profd_status verify_step(struct verify *v, struct store *store, struct profd_error *e)
{
    struct store_totals totals;
    uint64_t uploads = 0;
    enum profd_status status = PROFD_OK;

    if (v->steps % 64 == 0) {
        status = store_get_totals(store, &totals, e);
        if (!status) {
            v->total = totals.uploads - totals.retired_uploads;
        }
    }
    TRY(status ? status : store_verify(store, &v->cursor, verify_note, v, &uploads, e));
    v->uploads += uploads;
    v->steps++;
    return PROFD_OK;
}

/* Returns the milliseconds until the next step of a round that may take a day and has taken ms: one second to one
 * minute. */
static uint64_t verify_pause(const struct verify *v, uint64_t ms)
{
    const uint64_t left = ms < ROUND_MS ? ROUND_MS - ms : 0;
    const uint64_t uploads = v->total > v->uploads ? v->total - v->uploads : 0;
    const uint64_t each = v->steps ? v->uploads / v->steps : 0;

    if (!each) {
        return PAUSE_MS_MAX;
    }
    uint64_t pause = left / (uploads / each + 1);
    if (pause > PAUSE_MS_MAX) {
        return PAUSE_MS_MAX;
    }
    return pause < PAUSE_MS_MIN ? PAUSE_MS_MIN : pause;
}

#define FIRST_MS 30000
#define FAILED_MS 60000
#define QUEUE 64u
#define NICE 19
#define KEPT_A_ROUND 100u /* sentences in the log; the others are counted */

struct verifier {
    struct verifier_config config;
    struct verification round; /* the one that goes on by itself */
    struct loop_timer *timer;
    struct store *store;
    struct work *work;
    bool running, stopped;
    uint64_t round_began; /* ms of loop_now; 0: none has begun */
    struct verifier_counts counts;
};

/* The round that goes on by itself is the verifier's own. */
static struct verifier *verifier_of(struct verification *round)
{
    return container_of(round, struct verifier, round);
}

static void verifier_run(void *context, struct work_item *const *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct verification *round = container_of(items[i], struct verification, item);

        round->status = round->run ? round->run(round, context, &round->error)
                                   : verify_step(&round->verify, context, &round->error);
    }
}

static void verifier_finished(void *context, struct work_item *item)
{
    struct verification *round = container_of(item, struct verification, item);
    struct verifier *v = context;

    if (round->status == PROFD_DAMAGED || round->status == PROFD_IO) {
        v->config.failed(v->config.context, round->error.sentence);
    }
    round->done(round);
}

static void verifier_dropped(void *context, struct work_item *item)
{
    struct verification *round = container_of(item, struct verification, item);

    (void)context;
    round->status = profd_error_set(&round->error, PROFD_STOPPING, "the daemon is stopping");
    round->done(round);
}

bool verifier_put(struct verifier *v, struct verification *round)
{
    return !v->stopped && work_put(v->work, &round->item);
}

void verifier_note(struct verifier *v, struct verification *round)
{
    const struct buffer *sentences = &round->verify.sentences;

    while (round->logged < sentences->size) {
        const char *line = (const char *)sentences->data + round->logged;
        const char *end = memchr(line, '\n', sentences->size - round->logged);
        const size_t n = end ? (size_t)(end - line) : sentences->size - round->logged;

        log_write(LOG_LEVEL_ERROR, "verification", "verification found a difference: %.*s", (int)n, line);
        round->logged += n + 1;
    }
    v->counts.mismatches += round->verify.mismatches - round->counted;
    round->counted = round->verify.mismatches;
}

static void verifier_step(void *context)
{
    struct verifier *v = context;

    if (v->running || v->stopped) {
        return;
    }
    if (!v->round_began) {
        verify_done(&v->round.verify);
        verify_init(&v->round.verify, KEPT_A_ROUND);
        v->round_began = loop_now();
        v->round.logged = 0;
        v->round.counted = 0;
    }
    v->running = verifier_put(v, &v->round);
    if (!v->running) {
        loop_timer_set(v->timer, FAILED_MS);
    }
}

static void verifier_step_done(struct verification *round)
{
    struct verifier *v = verifier_of(round);
    const uint64_t began = v->round_began;

    v->running = false;
    verifier_note(v, round);
    if (round->status == PROFD_STOPPING) {
        return;
    }
    if (round->status) {
        v->counts.mismatches += round->status == PROFD_DAMAGED;
        log_write(LOG_LEVEL_ERROR, "verification", "verification: %s", round->error.sentence);
        v->round_began = 0;
        loop_timer_set(v->timer, FAILED_MS);
        return;
    }
    uint64_t pause = verify_pause(&round->verify, loop_now() - began);
    if (round->verify.cursor.done) {
        v->counts.rounds++;
        v->counts.ended = (double)loop_clock() / 1e9;
        v->counts.uploads = round->verify.uploads;
        v->counts.round_mismatches = round->verify.mismatches;
        v->round_began = 0;
        log_write(round->verify.mismatches ? LOG_LEVEL_ERROR : LOG_LEVEL_INFO, "verification",
                  "%llu uploads verified, %llu mismatches", (unsigned long long)round->verify.uploads,
                  (unsigned long long)round->verify.mismatches);
        pause = FAILED_MS; /* a small store is verified about every minute */
    }
    loop_timer_set(v->timer, pause);
}

enum profd_status verifier_start(const struct verifier_config *config, struct verifier **out, struct profd_error *e)
{
    struct verifier *v = calloc(1, sizeof *v);
    void *contexts[1];
    const struct work_config work = {.name = "profd-verify",
                                     .threads = 1,
                                     .contexts = contexts,
                                     .queue_max = QUEUE,
                                     .queue_max_uid = QUEUE / 2,
                                     .batch_max = 1,
                                     .nice = NICE,
                                     .run = verifier_run,
                                     .done = verifier_finished,
                                     .done_context = v};

    if (v) {
        v->config = *config;
        v->timer = loop_timer_new(config->loop, verifier_step, v);
    }
    if (!v || !v->timer) {
        free(v);
        return profd_no_memory(e);
    }
    v->round = (struct verification){.done = verifier_step_done};
    v->round.item.uid = UINT32_MAX; /* not charged to any user's part of the queue */
    verify_init(&v->round.verify, KEPT_A_ROUND);
    enum profd_status status = store_sqlite_open_reader(config->database, &v->store, e);
    if (!status) {
        store_set_archive(v->store, config->archive);
        contexts[0] = v->store;
        status = work_new(config->loop, &work, &v->work, e);
    }
    if (status) {
        verifier_free(v);
        return status;
    }
    loop_timer_set(v->timer, FIRST_MS);
    *out = v;
    return PROFD_OK;
}

bool verifier_is_idle(const struct verifier *v)
{
    return !work_pending(v->work);
}

bool verifier_is_stopped(const struct verifier *v)
{
    return v->stopped;
}

void verifier_stop(struct verifier *v)
{
    v->stopped = true;
    work_drop(v->work, verifier_dropped, NULL);
}

void verifier_free(struct verifier *v)
{
    if (!v) {
        return;
    }
    if (v->work) {
        verifier_stop(v);
    }
    work_free(v->work);
    store_close(v->store);
    verify_done(&v->round.verify);
    loop_timer_free(v->timer);
    free(v);
}

void verifier_get_counts(const struct verifier *v, struct verifier_counts *out)
{
    *out = v->counts;
}
