#include "requests/watcher.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/container.h"
#include "core/watch_list.h"
#include "base/log.h"
#include "net/loop.h"
#include "proto/limits.h"
#include "query/answer.h"
#include "store/store.h"
#include "writer/verifier.h"
#include "requests/requests.h"
#include "writer/writer.h"

#define FIRST_MS 1000
#define ARENA_MOST (64u << 20)
#define ROUNDING 1e-9 /* sums of seconds that differ by this part are the same data in another order */

struct watcher {
    struct watcher_config config;
    char *list; /* owned; NULL: nothing is watched */
    int64_t interval;
    struct loop_timer *timer;
    bool running, stopped;
    bool changed; /* list or interval, while a look was running */

    /* of the look */
    struct verification look;
    struct writer_job job;
    struct arena *arena;
    struct watch_list watches;
    json_t *stored;               /* key -> document, before the look */
    struct store_watch_row *rows; /* to be stored; in the arena */
    uint32_t row_count, row_capacity;
    int64_t now;
    enum profd_status failed; /* of the look before, so that a failure is logged once */
};

static void watch_add_parameter(struct buffer *target, const char *name, const char *text, size_t n)
{
    buffer_add_text(target, name);
    for (size_t i = 0; i < n; i++) {
        buffer_add_format(target, "%%%02X", (unsigned)(unsigned char)text[i]);
    }
}

/* Asks the daemon's own interface: what a watch counts is what any reader of all profiles would be shown. */
static enum profd_status watch_ask(const struct watcher *w, struct store *store, const struct watch *watch,
                                   const char *cursor, json_t **out, struct profd_error *e)
{
    struct query_request request = {
        .if_none_match = "", .scope = {.all = true}, .now = w->now, .cache = w->config.cache};
    struct query_answer answer;
    struct buffer target;
    enum profd_status status;

    buffer_init(&target, LIMIT_QUERY_BYTES + 1);
    buffer_add_format(&target, "/api/v1/functions?limit=0&cursor=%s", cursor);
    for (size_t i = 0; i < watch->label_count; i++) {
        const char *value = strchr(watch->labels[i], '=');

        watch_add_parameter(&target, "&label.", watch->labels[i], (size_t)(value - watch->labels[i]));
        watch_add_parameter(&target, "=", value + 1, strlen(value + 1));
    }
    for (size_t i = 0; i < watch->function_count; i++) {
        watch_add_parameter(&target, "&watch=", watch->functions[i], strlen(watch->functions[i]));
    }
    buffer_add_char(&target, '\0');
    if (target.failed) {
        buffer_done(&target);
        return profd_error_set(e, PROFD_TOO_LARGE, "a watch is too long for one query");
    }
    request.target = target.data;
    query_run(store, &request, &answer);
    *e = answer.why;
    *out = answer.status ? NULL : json_loadb(answer.body.data, answer.body.size, 0, NULL);
    status = answer.status ? answer.status : *out ? PROFD_OK : profd_no_memory(e);
    query_answer_done(&answer);
    buffer_done(&target);
    return status;
}

/* What all functions of one name have. */
struct counted {
    double self;
    int64_t calls;
};

/* Sums over all pages. */
static enum profd_status watch_count(const struct watcher *w, struct store *store, const struct watch *watch,
                                     struct counted *counts, struct profd_error *e)
{
    const char *cursor = "0";

    while (cursor) {
        json_t *answer = NULL, *row;
        size_t i;
        TRY(watch_ask(w, store, watch, cursor, &answer, e));
        json_array_foreach(json_object_get(answer, "rows"), i, row)
        {
            for (size_t k = 0; k < watch->function_count; k++) {
                if (watch_list_means(watch->functions[k], json_string_value(json_object_get(row, "name")))) {
                    counts[k].self += json_number_value(json_object_get(row, "self_seconds"));
                    counts[k].calls += json_integer_value(json_object_get(row, "calls")) +
                                       json_integer_value(json_object_get(row, "self_calls"));
                }
            }
        }
        const char *next = json_string_value(json_object_get(answer, "next"));

        cursor = next && *next ? arena_copy(w->arena, next, strlen(next)) : NULL;
        json_decref(answer);
    }
    return PROFD_OK;
}

/* The next state of a counter; old may be NULL. */
static json_t *watch_advance(json_t *old, const struct watch *watch, const char *function, const struct counted *now)
{
    double self = 0, seen_self = 0;
    json_int_t calls = 0, seen_calls = 0, removals = 0;

    (void)json_unpack(old, "{sF sF sI sI sI}", "self", &self, "seen_self", &seen_self, "calls", &calls, "seen_calls",
                      &seen_calls, "removals", &removals);
    const bool fell = now->self < seen_self * (1 - ROUNDING) || now->calls < seen_calls;

    self += now->self > seen_self ? now->self - seen_self : 0;
    calls += now->calls > seen_calls ? now->calls - seen_calls : 0;
    seen_self = fell || now->self > seen_self ? now->self : seen_self;
    return json_pack("{ss ss sf sI sf sI sI}", "watch", watch->name, "function", function, "self", self, "calls", calls,
                     "seen_self", seen_self, "seen_calls", (json_int_t)now->calls, "removals", removals + fell);
}

static enum profd_status watch_put(struct watcher *w, const char *key, const char *document, struct profd_error *e)
{
    const char *key_copy = arena_copy(w->arena, key, strlen(key)),
               *copy = document ? arena_copy(w->arena, document, strlen(document)) : NULL;

    if (!key_copy || (document && !copy) || !ARENA_EXTEND(w->arena, w->rows, w->row_count, w->row_capacity)) {
        return profd_no_memory(e);
    }
    w->rows[w->row_count++] = (struct store_watch_row){.key = key_copy, .changed = w->now, .document = copy};
    return PROFD_OK;
}

/* Counts the functions of one watch; changed counters are to be stored. What it speaks of leaves w->stored. */
static enum profd_status watch_look(struct watcher *w, struct store *store, const struct watch *watch,
                                    struct profd_error *e)
{
    struct counted counts[WATCH_LIST_FUNCTIONS] = {{0}};
    enum profd_status status = watch_count(w, store, watch, counts, e);

    for (size_t i = 0; i < watch->function_count; i++) {
        const char *key = arena_format(w->arena, "%s\n%s", watch->name, watch->functions[i]);
        json_t *old = key ? json_object_get(w->stored, key) : NULL;
        json_t *made = watch_advance(old, watch, watch->functions[i], &counts[i]);
        char *text = made && key ? json_dumps(made, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;

        if (!text) {
            status = profd_no_memory(e);
        } else if (!status && !json_equal(made, old)) {
            status = watch_put(w, key, text, e);
        }
        (void)(key && json_object_del(w->stored, key));
        free(text);
        json_decref(made);
    }
    return status;
}

static bool watch_take_row(void *context, const struct store_watch_row *row)
{
    json_t *document = json_loads(row->document, 0, NULL);

    return !document || json_object_set_new(context, row->key, document) == 0;
}

/* One watch that fails does not hinder the others. Counters that no watch speaks of any more are removed. */
static enum profd_status watcher_look(struct verification *look, struct store *store, struct profd_error *e)
{
    struct watcher *w = container_of(look, struct watcher, look);
    const char *key;
    json_t *document;

    w->stored = json_object();
    enum profd_status status =
        w->stored ? store_each_watch_row(store, watch_take_row, w->stored, e) : profd_no_memory(e);
    const bool known = !status;

    for (size_t i = 0; known && i < w->watches.count; i++) {
        struct profd_error why;
        const enum profd_status failed = watch_look(w, store, &w->watches.watches[i], &why);

        if (failed && !status) {
            status = profd_error_set(e, failed, "watch %s: %s", w->watches.watches[i].name, why.sentence);
        }
    }
    json_object_foreach(w->stored, key, document)
    {
        status = status ? status : watch_put(w, key, NULL, e);
    }
    json_decref(w->stored);
    return status;
}

/* Sets the time of the next look. Without a list there is none, after the one that has forgotten the counters. */
static void watcher_rest(struct watcher *w)
{
    const enum profd_status status = w->look.status;

    w->running = false;
    /* The verifier's owner has already been told of a damaged database, and has said it. */
    if (status && status != w->failed && status != PROFD_STOPPING && status != PROFD_DAMAGED && status != PROFD_IO) {
        log_write(LOG_LEVEL_WARNING, "watch", "the watched functions were not all looked at: %s",
                  w->look.error.sentence);
    }
    w->failed = status;
    if (!w->stopped && (w->list || w->changed || status)) {
        loop_timer_set(w->timer, w->changed ? 1 : (uint64_t)w->interval / 1000000);
    }
    w->changed = false;
}

static enum profd_status watcher_store(struct writer_job *job, struct store *store, struct profd_error *e)
{
    const struct watcher *w = container_of(job, struct watcher, job);

    TRY(writer_job_check_space(job, e));
    return store_put_watch_rows(store, w->rows, w->row_count, e);
}

static void watcher_stored(struct writer_job *job)
{
    struct watcher *w = container_of(job, struct watcher, job);

    if (job->status) {
        w->look.status = job->status;
        w->look.error = job->error;
    }
    watcher_rest(w);
}

static const struct writer_job_type watcher_job = {.run = watcher_store, .done = watcher_stored};

static void watcher_looked(struct verification *look)
{
    struct watcher *w = container_of(look, struct watcher, look);

    if (w->stopped || look->status == PROFD_NO_MEMORY || !w->row_count ||
        writer_submit(w->config.shared->writer, &w->job, &watcher_job, NULL)) {
        watcher_rest(w);
    }
}

static void watcher_begin(void *context)
{
    struct watcher *w = context;

    if (w->running || w->stopped) {
        return;
    }
    arena_reset(w->arena);
    w->now = loop_clock();
    w->rows = NULL;
    w->row_count = w->row_capacity = 0;
    w->running = !watch_list_parse(w->list, w->arena, &w->watches, NULL) && verifier_put(w->config.verifier, &w->look);
    if (!w->running) {
        loop_timer_set(w->timer, (uint64_t)w->interval / 1000000);
    }
}

void watcher_set(struct watcher *w, const char *list, int64_t interval)
{
    char *copy = list ? strdup(list) : NULL;

    if (list && !copy) {
        return;
    }
    free(w->list);
    w->list = copy;
    w->interval = interval;
    w->changed = w->running;
    if (!w->running && !w->stopped) {
        loop_timer_set(w->timer, FIRST_MS);
    }
}

enum profd_status watcher_start(const struct watcher_config *config, struct watcher **out, struct profd_error *e)
{
    struct watcher *w = calloc(1, sizeof *w);

    if (w) {
        w->config = *config;
        w->look = (struct verification){.item = {.uid = UINT32_MAX}, /* not charged to any user's part of the queue */
                                        .run = watcher_look,
                                        .done = watcher_looked};
        w->arena = arena_new(ARENA_MOST);
        w->timer = loop_timer_new(config->shared->loop, watcher_begin, w);
    }
    if (!w || !w->arena || !w->timer) {
        watcher_free(w);
        return profd_no_memory(e);
    }
    *out = w;
    return PROFD_OK;
}

void watcher_stop(struct watcher *w)
{
    w->stopped = true;
    loop_timer_clear(w->timer);
}

void watcher_free(struct watcher *w)
{
    if (w) {
        loop_timer_free(w->timer);
        arena_free(w->arena);
        free(w->list);
    }
    free(w);
}
