/* Which series a filter selects. Labels are matched here, not by the server: PCRE2 knows more than RE2. */
#include "clickhouse/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clickhouse/catalogue.h"
#include "store/labels.h"

#define LABELS_MOST 65536
#define NAMED_MOST 4000u /* builds that a statement names: it has at most 256 KiB */

static bool is_host_label(const struct store_label *l)
{
    return strcmp(l->name, "host") == 0;
}

/* Is it of hosts, and has no label `host`? */
static bool is_apart(const struct plan_series *x)
{
    bool named = false;
    for (size_t i = 0; i < x->label_count; i++) {
        named |= is_host_label(&x->labels[i]);
    }
    return store_is_tenant(x->uid) && !named;
}

/* Is it selected by its labels? Totals are selected later, each by its host. */
static bool is_selected(struct plan *p, struct plan_series *x, bool *failed)
{
    const bool apart = is_apart(x);
    struct buffer text;
    x->totals = apart && p->filter->by_host;
    if (x->totals) {
        return true;
    }
    if (apart && labels_are_asked(p->filter, "host")) {
        return false;
    }
    buffer_init(&text, LABELS_MOST);
    labels_encode(x->labels, x->label_count, &text);
    *failed |= text.failed;
    const bool selected =
        !text.failed && labels_match(text.data, text.size, p->filter->matchers, p->filter->matcher_count);
    buffer_done(&text);
    return selected;
}

/* Takes a series over, if it is selected. */
static enum profd_status take_series(struct plan *p, const struct engine_series *from, struct profd_error *e)
{
    bool failed = false;
    struct plan_series x = {.uid = from->uid,
                            .generation = from->generation,
                            .program = from->program_at,
                            .build_count = from->build_count,
                            .builds = ARENA_ARRAY(p->arena, from->build_count + 1, struct store_build),
                            .label_count = from->label_count,
                            .labels = from->labels};
    if (!x.builds) {
        return profd_no_memory(e);
    }
    memcpy(x.hash, from->hash, sizeof x.hash);
    memcpy(&x.number, x.hash, sizeof x.number);
    x.number &= INT64_MAX;
    for (size_t i = 0; i < x.build_count; i++) {
        x.builds[i].name = "";
        (void)snprintf(x.builds[i].id.text, sizeof x.builds[i].id.text, "%s", from->builds[i]);
    }
    if (!is_selected(p, &x, &failed)) {
        return failed ? profd_no_memory(e) : PROFD_OK;
    }
    if (!hashmap_put(&p->by_hash, x.hash, sizeof x.hash, &p->series_count, sizeof p->series_count)) {
        return profd_no_memory(e);
    }
    p->series[p->series_count++] = x;
    return PROFD_OK;
}

enum profd_status plan_init(struct plan *p, struct clickhouse_store *s, const struct store_scope *scope,
                            const struct store_filter *filter, struct profd_error *e)
{
    const enum engine_choice choice = filter->build_id == NULL ? ENGINE_EVERY
                                      : filter->as_program     ? ENGINE_PROGRAM
                                                               : ENGINE_BUILD;
    struct engine_catalogue c;
    *p = (struct plan){.s = s,
                       .arena = arena_new(0),
                       .filter = filter,
                       .since = filter->since,
                       .until = filter->until,
                       .sliced = filter->since > 0 || filter->until > 0};
    hashmap_init(&p->by_hash, 0);
    if (!p->arena) {
        return profd_no_memory(e);
    }
    enum profd_status status = engine_load_series(s, p->arena, scope, choice, filter->build_id, &c, e);
    p->series = status == PROFD_OK ? ARENA_ARRAY(p->arena, c.count + 1, struct plan_series) : NULL;
    if (status == PROFD_OK && !p->series) {
        status = profd_no_memory(e);
    }
    for (size_t i = 0; status == PROFD_OK && i < c.count; i++) {
        status = take_series(p, &c.list[i], e);
    }
    return status;
}

void plan_done(struct plan *p)
{
    hashmap_clear(&p->by_hash);
    arena_free(p->arena);
}

struct plan_series *plan_find_series(const struct plan *p, const uint8_t hash[ENGINE_SERIES_SIZE])
{
    const uint32_t *at = hashmap_find(&p->by_hash, hash, ENGINE_SERIES_SIZE);
    return at ? &p->series[*at] : NULL;
}

struct store_row plan_begin_row(const struct plan_series *x)
{
    return (struct store_row){.rolled = true,
                              .uid = x->uid,
                              .label_count = x->label_count,
                              .labels = x->labels,
                              .program = x->program,
                              .build_count = x->build_count,
                              .builds = x->builds,
                              .series = x->number};
}

/* The key of a name: build NUL uid. */
static size_t make_name_key(const char *build, size_t n, uint32_t uid, char key[BUILDID_TEXT_SIZE + 4])
{
    memcpy(key, build, n);
    key[n] = '\0';
    memcpy(key + n + 1, &uid, sizeof uid);
    return n + 1 + sizeof uid;
}

/* Reads names: build, uid, name. Values are pointers into the arena. */
static enum profd_status read_names(struct plan *p, struct row_reader *rows, struct hashmap *names,
                                    struct profd_error *e)
{
    char key[BUILDID_TEXT_SIZE + 4];
    while (rows_more(rows)) {
        size_t n;
        const char *build = rows_string(rows, &n);
        const uint32_t uid = rows_u32(rows);
        const char *name = rows_copy(rows, p->arena);
        if (rows->cut || n >= BUILDID_TEXT_SIZE) {
            rows->cut = true;
            return engine_rows_check(rows, "names of builds", e);
        }
        const size_t size = make_name_key(build, n, uid, key);
        if (!name || !hashmap_put(names, key, size, &name, sizeof name)) {
            return profd_no_memory(e);
        }
    }
    return PROFD_OK;
}

/* A query for the names of all builds of the plan. */
static enum profd_status ask_names(struct plan *p, struct row_reader *rows, struct profd_error *e)
{
    struct buffer *b = &p->s->statement;
    struct hashmap seen;
    bool failed = false;
    hashmap_init(&seen, 0);
    engine_begin(p->s);
    buffer_add_text(b,
                    "SELECT build, uid, argMin(name, number) FROM series ARRAY JOIN builds AS build, names AS name ");
    const size_t all = b->size;
    buffer_add_text(b, "WHERE build IN (");
    for (uint32_t i = 0; i < p->series_count; i++) {
        for (size_t k = 0; k < p->series[i].build_count; k++) {
            const char *id = p->series[i].builds[k].id.text;
            if (!hashmap_find(&seen, id, strlen(id))) {
                buffer_add_text(b, seen.count > 0 ? "," : "");
                engine_put_quoted(b, id);
                failed |= !hashmap_put(&seen, id, strlen(id), "", 1);
            }
        }
    }
    buffer_add_text(b, ") ");
    b->size = seen.count > NAMED_MOST && !b->failed ? all : b->size;
    buffer_add_text(b, "GROUP BY build, uid");
    hashmap_clear(&seen);
    return failed ? profd_no_memory(e) : engine_query_printed(p->s, rows, e);
}

enum profd_status plan_find_names(struct plan *p, struct profd_error *e)
{
    struct row_reader rows;
    struct hashmap names;
    char key[BUILDID_TEXT_SIZE + 4];
    if (p->series_count == 0) {
        return PROFD_OK;
    }
    enum profd_status status = ask_names(p, &rows, e);
    if (status != PROFD_OK) {
        return status;
    }
    hashmap_init(&names, 0);
    status = read_names(p, &rows, &names, e);
    for (uint32_t i = 0; status == PROFD_OK && i < p->series_count; i++) {
        struct plan_series *x = &p->series[i];
        for (size_t k = 0; k < x->build_count; k++) {
            const char *id = x->builds[k].id.text;
            const size_t size = make_name_key(id, strlen(id), x->uid, key);
            const char *const *name = hashmap_find(&names, key, size);
            x->builds[k].name = name ? *name : "";
        }
    }
    hashmap_clear(&names);
    rows_close(&rows);
    return status;
}

/* Appends the programs of the series that are wanted; nothing if these are many. */
static void put_programs(const struct plan *p, const bool *wanted, struct buffer *b)
{
    struct hashmap seen;
    const size_t before = b->size;
    hashmap_init(&seen, 0);
    buffer_add_text(b, "program IN (");
    for (uint32_t i = 0; i < p->series_count && seen.count <= PLAN_SERIES_MOST; i++) {
        const char *id = p->series[i].builds[p->series[i].program].id.text;
        if ((!wanted || wanted[i]) && !hashmap_find(&seen, id, strlen(id))) {
            buffer_add_text(b, seen.count > 0 ? "," : "");
            engine_put_quoted(b, id);
            b->failed |= !hashmap_put(&seen, id, strlen(id), "", 1);
        }
    }
    buffer_add_char(b, ')');
    if (seen.count > PLAN_SERIES_MOST && !b->failed) {
        b->size = before;
        buffer_add_char(b, '1');
    }
    hashmap_clear(&seen);
}

void plan_put_series(const struct plan *p, const bool *wanted, struct buffer *b)
{
    uint32_t n = 0;
    put_programs(p, wanted, b);
    for (uint32_t i = 0; i < p->series_count; i++) {
        n += !wanted || wanted[i];
    }
    if (n > PLAN_SERIES_MOST) {
        return;
    }
    buffer_add_text(b, " AND series IN (");
    for (uint32_t i = 0, k = 0; i < p->series_count; i++) {
        if (!wanted || wanted[i]) {
            buffer_add_text(b, k++ > 0 ? "," : "");
            engine_put_unhex(b, p->series[i].hash, sizeof p->series[i].hash);
        }
    }
    buffer_add_char(b, ')');
}
