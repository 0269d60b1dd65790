#include "watch/watch_verdicts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "watch/watch_versions.h"

#define LIMIT_PAGES 10u
#define MORE_DATA 2 /* times the ticks of the look before: the next look */

/* A pair of versions of one program. */
struct pair {
    const struct watch_ask *ask;
    const struct watch *watch;
    const struct watch_judging *judging;
    struct watch_rows *rows;
    const char *group, *program; /* program: that of the new version's first upload */
    struct watch_version before, after;
    bool waiting[WATCH_LIST_FUNCTIONS];
    int64_t looks, ticks; /* so far, and of the new version at the latest look */
};

static const char *make_key(const struct pair *p, const char *function)
{
    return arena_format(p->rows->arena, "%s\n%s\n%s\n%s", p->watch->name, p->program, p->after.name, function);
}

static enum profd_status fetch_versions(const struct watch_ask *ask, const struct watch *w, json_t *list,
                                        struct profd_error *e)
{
    char cursor[24] = "0";
    enum profd_status status = PROFD_OK;
    for (unsigned page = 0; status == PROFD_OK && page < LIMIT_PAGES && cursor[0] != '\0'; page++) {
        struct buffer target;
        json_t *answer = NULL;
        watch_ask_begin(&target, "/api/v1/versions");
        watch_ask_add(&target, "limit", "0");
        watch_ask_add(&target, "cursor", cursor);
        watch_ask_add_labels(&target, w);
        status = watch_ask_send(ask, &target, &answer, e);
        if (status == PROFD_OK && json_array_extend(list, json_object_get(answer, "rows")) != 0) {
            status = profd_no_memory(e);
        }
        (void)snprintf(cursor, sizeof cursor, "%s", watch_text(answer, "next"));
        json_decref(answer);
    }
    return status;
}

/* The version of a name; of several builds that with the most uploads. */
static bool find_version(const struct watch_version *list, size_t count, const char *name, struct watch_version *out)
{
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(list[i].name, name) == 0 && (!found || list[i].uploads > out->uploads)) {
            *out = list[i];
            found = true;
        }
    }
    return found;
}

/* The first row of the version that appeared last, not counting one of this name; NULL: none. A version appears with
 * its first row. */
static const struct watch_version *find_newest(const struct watch_version *list, size_t count, const char *except)
{
    const struct watch_version *newest = NULL;
    for (size_t i = 0; i < count; i++) {
        bool seen = except != NULL && strcmp(list[i].name, except) == 0;
        for (size_t k = 0; k < i && !seen; k++) {
            seen = strcmp(list[k].name, list[i].name) == 0;
        }
        newest = seen ? newest : &list[i];
    }
    return newest;
}

static enum profd_status put(const struct pair *p, const char *key, json_t *document, struct profd_error *e)
{
    return document != NULL && key != NULL ? watch_rows_put(p->rows, STORE_WATCH_VERDICT, key, p->ask->now, document, e)
                                           : profd_no_memory(e);
}

/* Versions that are not the newest any more wait for nothing. */
static enum profd_status supersede(const struct pair *p, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    const char *key;
    json_t *old;
    void *next;
    json_object_foreach_safe(p->rows->stored[STORE_WATCH_VERDICT], next, key, old)
    {
        if (status == PROFD_OK && strcmp(watch_text(old, "verdict"), "waiting") == 0 &&
            strcmp(watch_text(old, "watch"), p->watch->name) == 0 &&
            strcmp(watch_text(old, "after"), p->after.name) != 0 &&
            watch_versions_has(p->group, watch_text(old, "program"), watch_text(old, "after"),
                               watch_text(old, "build_id_after"))) {
            json_t *document = json_copy(old);
            const bool set = json_object_set_new(document, "verdict", json_string("superseded")) == 0 &&
                             json_object_set_new(document, "why", json_string("a newer version came first")) == 0 &&
                             json_object_set_new(document, "decided", json_integer(p->ask->now)) == 0;
            status = set ? put(p, arena_copy(p->rows->arena, key, strlen(key)), document, e) : profd_no_memory(e);
        }
    }
    return status;
}

/* What is stored of the pair: which functions wait, and for how many looks. True if any does. The predecessor is that
 * of the first look. */
static bool read_stored(struct pair *p, const char **before)
{
    bool any = false;
    for (size_t i = 0; i < p->watch->function_count; i++) {
        const char *key = make_key(p, p->watch->functions[i]);
        const json_t *old = key != NULL ? watch_rows_find(p->rows, STORE_WATCH_VERDICT, key) : NULL;
        const int64_t looks = watch_integer(old, "looks");
        p->waiting[i] = old == NULL || strcmp(watch_text(old, "verdict"), "waiting") == 0;
        any |= p->waiting[i];
        if (old != NULL) {
            *before = watch_text(old, "before");
        }
        if (looks >= p->looks) {
            p->looks = looks;
            p->ticks = watch_integer(old, "ticks");
        }
    }
    return any;
}

/* side: "a" or "b". A build that is a version of its own has its uploads that state none. */
static void add_side(struct buffer *target, const char *side, const struct watch_version *v)
{
    char name[24], match[24];
    (void)snprintf(name, sizeof name, "%s.label.version", side);
    (void)snprintf(match, sizeof match, "%s.match", side);
    watch_ask_add(target, side, v->build_id);
    watch_ask_add(target, v->label[0] != '\0' ? name : match, v->label[0] != '\0' ? v->label : "version=\"\"");
}

static enum profd_status compare(const struct pair *p, double confidence, json_t **out, struct profd_error *e)
{
    struct buffer target;
    char text[40];
    watch_ask_begin(&target, "/api/v1/diff");
    add_side(&target, "a", &p->before);
    add_side(&target, "b", &p->after);
    watch_ask_add_labels(&target, p->watch);
    watch_ask_add_functions(&target, p->watch);
    watch_ask_add(&target, "metric", p->judging->metric);
    (void)snprintf(text, sizeof text, "%.12f", confidence);
    watch_ask_add(&target, "confidence", text);
    return watch_ask_send(p->ask, &target, out, e);
}

static const json_t *find_row(const json_t *table, const char *function)
{
    const json_t *list = json_object_get(table, "rows");
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (watch_list_means(function, watch_text(json_array_get(list, i), "function"))) {
            return json_array_get(list, i);
        }
    }
    return NULL;
}

/* The verdict of a row, and for "waiting" the reason. */
static const char *judge(const json_t *table, const json_t *row, double threshold, const char **why)
{
    const json_t *visible = json_object_get(row, "visible");
    const char *verdict = watch_text(row, "verdict");
    *why = NULL;
    if (row == NULL || !json_is_number(json_object_get(row, "change"))) {
        const char *hindrance = watch_text(table, "not_computed");
        *why = hindrance[0] != '\0' ? hindrance
               : row == NULL        ? "not in both versions, or nothing is known of it"
                                    : "too few samples";
        return "waiting";
    }
    const bool tested = json_is_number(json_object_get(row, "p"));
    if (tested && (!json_is_number(visible) || json_number_value(visible) > threshold)) {
        *why = "the smallest visible change is above the threshold";
        return "waiting";
    }
    const bool changed = !tested && strcmp(verdict, "constant-changed") == 0;
    if (watch_real(row, "low") > 0 || (changed && watch_real(row, "change") > 0)) {
        return "increased";
    }
    return watch_real(row, "high") < 0 ? "decreased" : "no-difference";
}

static json_t *make_document(const struct pair *p, const char *function, const json_t *table, double confidence)
{
    static const char *const fields[] = {"change", "low", "high", "p", "visible", "a", "b", "ticks_a", "ticks_b"};
    const json_t *row = find_row(table, function);
    const char *why, *verdict = judge(table, row, p->judging->threshold, &why);
    json_t *d = json_pack("{ss ss ss ss ss? ss ss ss ss ss sf sf sI sI sI}", "watch", p->watch->name, "program",
                          p->program, "function", function, "verdict", verdict, "why", why, "metric",
                          p->judging->metric, "before", p->before.name, "after", p->after.name, "build_id_before",
                          p->before.build_id, "build_id_after", p->after.build_id, "threshold", p->judging->threshold,
                          "confidence", confidence, "looks", (json_int_t)p->looks, "ticks", (json_int_t)p->ticks,
                          "decided", (json_int_t)(strcmp(verdict, "waiting") == 0 ? 0 : p->ask->now));
    for (size_t i = 0; d != NULL && i < sizeof fields / sizeof *fields; i++) {
        json_t *value = json_object_get(row, fields[i]);
        if (json_object_set_new(d, fields[i], value != NULL ? json_incref(value) : json_null()) != 0) {
            json_decref(d);
            d = NULL;
        }
    }
    return d;
}

/* True if the data is to be looked at: a function that waits has an estimate, and there is enough more data. */
static bool is_look(const struct pair *p, const json_t *table, int64_t ticks)
{
    bool any = false;
    for (size_t i = 0; i < p->watch->function_count; i++) {
        const json_t *row = p->waiting[i] ? find_row(table, p->watch->functions[i]) : NULL;
        any |= json_is_number(json_object_get(row, "change"));
    }
    return any && ticks > 0 && ticks / MORE_DATA >= p->ticks;
}

/* A look: its verdicts. Before the first one, the functions are listed as waiting. */
static enum profd_status take_answer(struct pair *p, const json_t *answer, double confidence, struct profd_error *e)
{
    const json_t *table = json_array_get(json_object_get(answer, "metrics"), 0);
    const int64_t ticks = watch_integer(json_object_get(answer, "b"), "ticks");
    const bool look = is_look(p, table, ticks);
    enum profd_status status = PROFD_OK;
    if (look) {
        p->looks++;
        p->ticks = ticks;
    }
    for (size_t i = 0; status == PROFD_OK && i < p->watch->function_count; i++) {
        const char *function = p->watch->functions[i], *key = make_key(p, function);
        const bool known = key != NULL && watch_rows_find(p->rows, STORE_WATCH_VERDICT, key) != NULL;
        if (p->waiting[i] && (look || !known)) {
            status = put(p, key, make_document(p, function, table, confidence), e);
        }
    }
    return status;
}

/* The versions of one group. */
static enum profd_status look_at_group(struct pair *p, const struct watch_version *list, size_t count,
                                       struct profd_error *e)
{
    const struct watch_version *newest = find_newest(list, count, NULL),
                               *previous = newest != NULL ? find_newest(list, count, newest->name) : NULL;
    json_t *answer = NULL;
    if (previous == NULL || !find_version(list, count, newest->name, &p->after)) {
        return PROFD_OK;
    }
    const char *before = previous->name;
    p->group = newest->group;
    p->program = newest->program;
    enum profd_status status = supersede(p, e);
    if (status != PROFD_OK || !read_stored(p, &before) || !find_version(list, count, before, &p->before)) {
        return status;
    }
    const double k = (double)(p->looks + 1), n = (double)p->watch->function_count;
    const double confidence = 1 - WATCH_VERDICTS_ALPHA / (n * k * (k + 1));
    status = compare(p, confidence, &answer, e);
    if (status == PROFD_OK) {
        status = take_answer(p, answer, confidence, e);
    }
    json_decref(answer);
    return status;
}

/* A stored verdict of the watch. */
struct aged {
    int64_t decided; /* INT64_MAX: it waits */
    const char *key;
};

static int compare_aged(const void *a, const void *b)
{
    const struct aged *x = a, *y = b;
    return x->decided != y->decided ? x->decided < y->decided ? -1 : 1 : strcmp(x->key, y->key);
}

static enum profd_status remove_oldest(const struct watch *w, struct watch_rows *rows, struct profd_error *e)
{
    struct aged *list = ARENA_ARRAY(rows->arena, json_object_size(rows->stored[STORE_WATCH_VERDICT]) + 1, struct aged);
    enum profd_status status = list != NULL ? PROFD_OK : profd_no_memory(e);
    size_t n = 0;
    const char *key;
    json_t *document;
    json_object_foreach(rows->stored[STORE_WATCH_VERDICT], key, document)
    {
        if (list != NULL && strcmp(watch_text(document, "watch"), w->name) == 0) {
            const int64_t decided = watch_integer(document, "decided");
            list[n++] = (struct aged){decided != 0 ? decided : INT64_MAX, key};
        }
    }
    if (n > WATCH_VERDICTS_MOST) {
        qsort(list, n, sizeof *list, compare_aged);
    }
    for (size_t i = 0; status == PROFD_OK && i + WATCH_VERDICTS_MOST < n; i++) {
        status = watch_rows_put(rows, STORE_WATCH_VERDICT, list[i].key, 0, NULL, e);
    }
    return status;
}

enum profd_status watch_verdicts_look(const struct watch_ask *ask, const struct watch *w,
                                      const struct watch_judging *judging, struct watch_rows *rows,
                                      struct profd_error *e)
{
    json_t *fetched = json_array();
    struct watch_version *list = NULL;
    size_t count = 0;
    enum profd_status status = fetched != NULL ? fetch_versions(ask, w, fetched, e) : profd_no_memory(e);
    if (status == PROFD_OK) {
        status = watch_versions_read(fetched, rows->arena, &list, &count, e);
    }
    for (size_t begin = 0, end; status == PROFD_OK && begin < count; begin = end) {
        struct pair p = {.ask = ask, .watch = w, .judging = judging, .rows = rows};
        for (end = begin + 1; end < count && strcmp(list[end].group, list[begin].group) == 0;) {
            end++;
        }
        status = look_at_group(&p, &list[begin], end - begin, e);
    }
    json_decref(fetched);
    return status == PROFD_OK ? remove_oldest(w, rows, e) : status;
}
