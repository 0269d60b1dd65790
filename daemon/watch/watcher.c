#include "watch/watcher.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/container.h"
#include "core/watch_list.h"
#include "log/log.h"
#include "net/loop.h"
#include "net/work.h"
#include "proto/limits.h"
#include "query/query.h"
#include "store/store.h"
#include "writer/writer.h"

#define FIRST_MS 1000
#define NICE 15
#define ARENA_MOST (64u << 20)
#define ROUNDING 1e-9 /* sums of seconds that differ by this part are the same data in another order */

struct watcher {
    struct watcher_config config;
    char *list; /* owned; NULL: nothing is watched */
    int64_t interval;
    struct loop_timer *timer;
    struct store *store;
    struct work *work;
    bool running, stopped;
    bool changed; /* the setup, while a look was running */

    /* of the look */
    struct work_item item;
    struct writer_job job;
    struct arena *arena;
    struct watch_list watches;
    json_t *stored;               /* key -> document, before the look */
    struct store_watch_row *rows; /* to be stored; in the arena */
    uint32_t row_count, row_capacity;
    int64_t now;
    enum profd_status status, failed; /* failed: of the look before, so that a failure is logged once */
    struct profd_error error;
};

static struct watcher *watcher_of(struct work_item *item)
{
    return container_of(item, struct watcher, item);
}

static struct watcher *watcher_of_job(struct writer_job *job)
{
    return container_of(job, struct watcher, job);
}

static void watch_add_encoded(struct buffer *target, const char *text, size_t n)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

    for (size_t i = 0; i < n; i++) {
        if (strchr(plain, text[i])) {
            buffer_add_char(target, text[i]);
        } else {
            buffer_add_format(target, "%%%02X", (unsigned)(unsigned char)text[i]);
        }
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

    buffer_init(&target, LIMIT_QUERY_BYTES + 1);
    buffer_add_format(&target, "/api/v1/functions?limit=0&cursor=%s", cursor);
    for (size_t i = 0; i < watch->label_count; i++) {
        const char *label = watch->labels[i];
        const size_t n = strcspn(label, "=");

        buffer_add_text(&target, "&label.");
        watch_add_encoded(&target, label, n);
        buffer_add_char(&target, '=');
        watch_add_encoded(&target, label + n + 1, strlen(label + n + 1));
    }
    for (size_t i = 0; i < watch->function_count; i++) {
        buffer_add_text(&target, "&watch=");
        watch_add_encoded(&target, watch->functions[i], strlen(watch->functions[i]));
    }
    buffer_add_char(&target, '\0');
    if (target.failed) {
        buffer_done(&target);
        return profd_error_set(e, PROFD_TOO_LARGE, "a watch is too long for one query");
    }
    request.target = target.data;
    query_run(store, &request, &answer);
    enum profd_status status = answer.status;

    if (status) {
        *e = answer.why;
    } else {
        *out = json_loadb(answer.body.data, answer.body.size, 0, NULL);
        status = *out ? PROFD_OK : profd_no_memory(e);
    }
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
        json_t *answer, *row;
        size_t i;
        enum profd_status status = watch_ask(w, store, watch, cursor, &answer, e);

        if (status) {
            return status;
        }
        json_array_foreach(json_object_get(answer, "rows"), i, row)
        {
            for (size_t k = 0; k < watch->function_count; k++) {
                if (watch_list_means(watch->functions[k], json_string_value(json_object_get(row, "name")))) {
                    counts[k].self += json_number_value(json_object_get(row, "self"));
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
static json_t *watch_advance(const json_t *old, const struct watch *watch, const char *function,
                             const struct counted *now)
{
    double self = json_number_value(json_object_get(old, "self")),
           base_self = json_number_value(json_object_get(old, "base_self"));
    int64_t calls = json_integer_value(json_object_get(old, "calls")),
            base_calls = json_integer_value(json_object_get(old, "base_calls"));
    const bool fell = now->self < json_number_value(json_object_get(old, "seen_self")) * (1 - ROUNDING) ||
                      now->calls < json_integer_value(json_object_get(old, "seen_calls"));

    if (fell) {
        base_self = self - now->self > base_self ? self - now->self : base_self;
        base_calls = calls - now->calls > base_calls ? calls - now->calls : base_calls;
    }
    self = base_self + now->self > self ? base_self + now->self : self;
    calls = base_calls + now->calls > calls ? base_calls + now->calls : calls;
    return json_pack("{ss ss sf sI sf sI sf sI sI}", "watch", watch->name, "function", function, "self", self, "calls",
                     (json_int_t)calls, "base_self", base_self, "base_calls", (json_int_t)base_calls, "seen_self",
                     now->self, "seen_calls", (json_int_t)now->calls, "removals",
                     json_integer_value(json_object_get(old, "removals")) + fell);
}

static enum profd_status watch_put(struct watcher *w, const char *key, const char *document, struct profd_error *e)
{
    struct store_watch_row *rows = arena_extend(w->arena, w->rows, w->row_count, &w->row_capacity, sizeof *rows);

    if (!rows || !key) {
        return profd_no_memory(e);
    }
    w->rows = rows;
    rows[w->row_count++] = (struct store_watch_row){.key = key, .changed = w->now, .document = document};
    return PROFD_OK;
}

/* Counts the functions of one watch; changed counters are to be stored. */
static enum profd_status watch_look(struct watcher *w, struct store *store, const struct watch *watch,
                                    struct profd_error *e)
{
    struct counted counts[WATCH_LIST_FUNCTIONS] = {{0}};
    enum profd_status status = watch_count(w, store, watch, counts, e);

    for (size_t i = 0; !status && i < watch->function_count; i++) {
        const char *key = arena_format(w->arena, "%s\n%s", watch->name, watch->functions[i]);
        const json_t *old = key ? json_object_get(w->stored, key) : NULL;
        json_t *made = watch_advance(old, watch, watch->functions[i], &counts[i]);
        char *text = made ? json_dumps(made, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;

        if (!text || !key) {
            status = profd_no_memory(e);
        } else if (!json_equal(made, old)) {
            const char *document = arena_copy(w->arena, text, strlen(text));

            status = document ? watch_put(w, key, document, e) : profd_no_memory(e);
        }
        free(text);
        json_decref(made);
    }
    return status;
}

static bool watch_is_listed(const struct watch_list *list, const char *key)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct watch *watch = &list->watches[i];
        const size_t n = strlen(watch->name);

        for (size_t k = 0; k < watch->function_count; k++) {
            if (!strncmp(key, watch->name, n) && key[n] == '\n' && !strcmp(key + n + 1, watch->functions[k])) {
                return true;
            }
        }
    }
    return false;
}

static bool watch_take_row(void *context, const struct store_watch_row *row)
{
    json_t *document = json_loads(row->document, 0, NULL);

    return !document || json_object_set_new(context, row->key, document) == 0;
}

/* One watch that fails does not hinder the others. */
static void watcher_look(struct watcher *w, struct store *store)
{
    const char *key;
    json_t *document;

    w->stored = json_object();
    w->status =
        w->stored ? store_each_watch_row(store, watch_take_row, w->stored, &w->error) : profd_no_memory(&w->error);
    json_object_foreach(w->stored, key, document)
    {
        if (!w->status && !watch_is_listed(&w->watches, key)) {
            w->status = watch_put(w, arena_copy(w->arena, key, strlen(key)), NULL, &w->error);
        }
    }
    for (size_t i = 0; w->status != PROFD_NO_MEMORY && i < w->watches.count; i++) {
        struct profd_error e;
        const enum profd_status status = watch_look(w, store, &w->watches.watches[i], &e);

        if (status && !w->status) {
            w->status = profd_error_set(&w->error, status, "watch %s: %s", w->watches.watches[i].name, e.sentence);
        }
    }
    json_decref(w->stored);
}

static void watcher_run(void *context, struct work_item *const *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        watcher_look(watcher_of(items[i]), context);
    }
}

/* Sets the time of the next look. Without a list there is none, after the one that has forgotten the counters. */
static void watcher_rest(struct watcher *w)
{
    w->running = false;
    if (w->status && w->status != w->failed) {
        log_write(LOG_LEVEL_WARNING, "watch", "the watched functions were not all looked at: %s", w->error.sentence);
    }
    w->failed = w->status;
    if (!w->stopped && (w->list || w->changed || w->status)) {
        loop_timer_set(w->timer, w->changed ? 1 : (uint64_t)w->interval / 1000000);
    }
    w->changed = false;
}

static void watcher_store(struct store *store, const struct profd_error *full, struct writer_job *const *jobs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct watcher *w = watcher_of_job(jobs[i]);

        if (full) {
            w->error = *full;
            w->status = PROFD_FULL;
        } else {
            const enum profd_status status = store_put_watch_rows(store, w->rows, w->row_count, &w->error);

            w->status = status ? status : w->status;
        }
    }
}

static void watcher_stored(struct writer_job *job)
{
    watcher_rest(watcher_of_job(job));
}

static const struct writer_job_type watcher_job = {
    .run = watcher_store, .done = watcher_stored, .drop = watcher_stored};

static void watcher_looked(void *context, struct work_item *item)
{
    struct watcher *w = watcher_of(item);

    (void)context;
    if (w->stopped || w->status == PROFD_NO_MEMORY || !w->row_count ||
        writer_submit(w->config.writer, &w->job, &watcher_job, NULL)) {
        watcher_rest(w);
    }
}

static void watcher_dropped(void *context, struct work_item *item)
{
    (void)context;
    watcher_of(item)->running = false;
}

static void watcher_begin(void *context)
{
    struct watcher *w = context;
    const char *list = NULL;

    if (w->running || w->stopped) {
        return;
    }
    arena_reset(w->arena);
    w->now = loop_clock();
    w->rows = NULL;
    w->row_count = w->row_capacity = 0;
    w->status = PROFD_OK;
    if (w->list) {
        list = arena_copy(w->arena, w->list, strlen(w->list));
        w->status = list ? PROFD_OK : profd_no_memory(&w->error);
    }
    if (!w->status) {
        w->status = watch_list_parse(list, w->arena, &w->watches, &w->error);
    }
    w->running = !w->status && work_put(w->work, &w->item);
    if (!w->running) {
        loop_timer_set(w->timer, (uint64_t)w->interval / 1000000);
    }
}

static enum profd_status watcher_open(struct watcher *w, struct profd_error *e)
{
    void *contexts[1];
    const struct work_config config = {.name = "profd-watch",
                                       .threads = 1,
                                       .contexts = contexts,
                                       .queue_max = 1,
                                       .queue_max_uid = 1,
                                       .batch_max = 1,
                                       .nice = NICE,
                                       .run = watcher_run,
                                       .done = watcher_looked,
                                       .done_context = w};
    enum profd_status status = store_sqlite_open_reader(w->config.database, &w->store, e);

    if (!status) {
        store_set_run(w->store, w->config.run);
        store_set_salt(w->store, w->config.salt);
    }
    contexts[0] = w->store;
    return status ? status : work_new(w->config.loop, &config, &w->work, e);
}

void watcher_set(struct watcher *w, const struct watcher_setup *setup)
{
    const bool same = w->interval == setup->interval &&
                      (w->list && setup->list ? !strcmp(w->list, setup->list) : !w->list && !setup->list);
    char *list = setup->list ? strdup(setup->list) : NULL;

    if (same || (setup->list && !list)) {
        free(list);
        return;
    }
    free(w->list);
    w->list = list;
    w->interval = setup->interval;
    w->changed = w->running;
    if (!w->running && !w->stopped) {
        loop_timer_set(w->timer, 1);
    }
}

enum profd_status watcher_start(const struct watcher_config *config, const struct watcher_setup *setup,
                                struct watcher **out, struct profd_error *e)
{
    struct watcher *w = calloc(1, sizeof *w);
    enum profd_status status;

    if (w) {
        w->config = *config;
        w->item = (struct work_item){.uid = UINT32_MAX}; /* not charged to any user's part of the queue */
        w->interval = setup->interval;
        w->list = setup->list ? strdup(setup->list) : NULL;
        w->arena = arena_new(ARENA_MOST);
        w->timer = loop_timer_new(config->loop, watcher_begin, w);
    }
    if (!w || !w->arena || !w->timer || (setup->list && !w->list)) {
        watcher_free(w);
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the watch list");
    }
    status = watcher_open(w, e);
    if (status) {
        watcher_free(w);
        return status;
    }
    loop_timer_set(w->timer, FIRST_MS);
    *out = w;
    return PROFD_OK;
}

bool watcher_is_idle(const struct watcher *w)
{
    return !work_pending(w->work);
}

void watcher_stop(struct watcher *w)
{
    w->stopped = true;
    loop_timer_clear(w->timer);
    work_drop(w->work, watcher_dropped, NULL);
}

void watcher_free(struct watcher *w)
{
    if (!w) {
        return;
    }
    if (w->work) {
        watcher_stop(w);
    }
    work_free(w->work);
    store_close(w->store);
    loop_timer_free(w->timer);
    arena_free(w->arena);
    free(w->list);
    free(w);
}
