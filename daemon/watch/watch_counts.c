#include "watch/watch_counts.h"

#include <string.h>

#define ROUNDING 1e-9 /* sums of seconds that differ by this part are the same data in another order */

/* What all functions of one name have. */
struct counted {
    double self, total;
    int64_t calls;
};

static const char *make_key(struct watch_rows *rows, const struct watch *w, const char *function)
{
    return arena_format(rows->arena, "%s\n%s", w->name, function);
}

static void add_rows(const json_t *answer, const struct watch *w, struct counted *counts)
{
    const json_t *list = json_object_get(answer, "rows");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *row = json_array_get(list, i);
        for (size_t k = 0; k < w->function_count; k++) {
            if (watch_list_means(w->functions[k], watch_text(row, "name"))) {
                counts[k].self += watch_real(row, "self");
                counts[k].total += watch_real(row, "total");
                counts[k].calls += watch_integer(row, "calls") + watch_integer(row, "self_calls");
            }
        }
    }
}

/* Sums of all pages. */
static enum profd_status count(const struct watch_ask *ask, const struct watch *w, struct arena *a,
                               struct counted *counts, struct profd_error *e)
{
    const char *cursor = "0";
    enum profd_status status = PROFD_OK;
    while (status == PROFD_OK && cursor != NULL) {
        struct buffer target;
        json_t *answer = NULL;
        watch_ask_begin(&target, "/api/v1/functions");
        watch_ask_add(&target, "cursor", cursor);
        watch_ask_add(&target, "limit", "0");
        watch_ask_add_labels(&target, w);
        watch_ask_add_functions(&target, w);
        status = watch_ask_send(ask, &target, &answer, e);
        if (status == PROFD_OK) {
            const char *next = watch_text(answer, "next");
            add_rows(answer, w, counts);
            cursor = next[0] != '\0' ? arena_copy(a, next, strlen(next)) : NULL;
        }
        json_decref(answer);
    }
    return status;
}

static double more(double a, double b)
{
    return a > b ? a : b;
}

static int64_t more_calls(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The next state of a counter. */
static json_t *advance(const json_t *old, const struct watch *w, const char *function, const struct counted *now)
{
    struct counted shown = {watch_real(old, "self"), watch_real(old, "total"), watch_integer(old, "calls")};
    struct counted base = {watch_real(old, "base_self"), watch_real(old, "base_total"),
                           watch_integer(old, "base_calls")};
    const bool fell =
        now->self < watch_real(old, "seen_self") * (1 - ROUNDING) || now->calls < watch_integer(old, "seen_calls");
    if (fell) {
        base.self = more(base.self, shown.self - now->self);
        base.total = more(base.total, shown.total - now->total);
        base.calls = more_calls(base.calls, shown.calls - now->calls);
    }
    shown.self = more(shown.self, base.self + now->self);
    shown.total = more(shown.total, base.total + now->total);
    shown.calls = more_calls(shown.calls, base.calls + now->calls);
    return json_pack("{ss ss sf sf sI sf sf sI sf sI sI}", "watch", w->name, "function", function, "self", shown.self,
                     "total", shown.total, "calls", (json_int_t)shown.calls, "base_self", base.self, "base_total",
                     base.total, "base_calls", (json_int_t)base.calls, "seen_self", now->self, "seen_calls",
                     (json_int_t)now->calls, "removals", (json_int_t)(watch_integer(old, "removals") + fell));
}

enum profd_status watch_counts_look(const struct watch_ask *ask, const struct watch *w, struct watch_rows *rows,
                                    struct profd_error *e)
{
    struct counted counts[WATCH_LIST_FUNCTIONS];
    memset(counts, 0, sizeof counts);
    enum profd_status status = count(ask, w, rows->arena, counts, e);
    for (size_t i = 0; status == PROFD_OK && i < w->function_count; i++) {
        const char *key = make_key(rows, w, w->functions[i]);
        json_t *made =
            key != NULL ? advance(watch_rows_find(rows, STORE_WATCH_COUNT, key), w, w->functions[i], &counts[i]) : NULL;
        status = made != NULL ? watch_rows_put(rows, STORE_WATCH_COUNT, key, ask->now, made, e) : profd_no_memory(e);
    }
    return status;
}

static bool is_watched(const struct watch_list *list, const json_t *document)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct watch *w = &list->watches[i];
        for (size_t k = 0; strcmp(w->name, watch_text(document, "watch")) == 0 && k < w->function_count; k++) {
            if (strcmp(w->functions[k], watch_text(document, "function")) == 0) {
                return true;
            }
        }
    }
    return false;
}

enum profd_status watch_counts_forget(const struct watch_list *list, struct watch_rows *rows, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    const char *key;
    json_t *document;
    json_object_foreach(rows->stored[STORE_WATCH_COUNT], key, document)
    {
        if (status == PROFD_OK && !is_watched(list, document)) {
            status = watch_rows_put(rows, STORE_WATCH_COUNT, key, 0, NULL, e);
        }
    }
    return status;
}
