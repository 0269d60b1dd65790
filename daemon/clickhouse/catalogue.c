#include "clickhouse/catalogue.h"

#include <stdlib.h>
#include <string.h>

#define NAMED_MOST 500u /* series, and programs, that a condition names one by one: a statement has at most 256 KiB */
#define GENERATION_KEY (sizeof(uint32_t) + BUILDID_TEXT_SIZE)

/* --- Generations --- */

static void make_key(uint8_t key[GENERATION_KEY], uint32_t uid, const char *program)
{
    memset(key, 0, GENERATION_KEY);
    memcpy(key, &uid, sizeof uid);
    memcpy(key + sizeof uid, program, strnlen(program, BUILDID_TEXT_SIZE - 1));
}

static enum profd_status load_generations(struct clickhouse_store *s, struct arena *a, struct hashmap *out,
                                          struct profd_error *e)
{
    struct row_reader r = {.bytes = NULL};
    char all[ENGINE_UNION_SIZE];
    enum profd_status status =
        engine_query(s, &r, e, "SELECT program, uid, max(generation) FROM %s GROUP BY program, uid",
                     engine_name_union(s, "deletion", all));
    while (status == PROFD_OK && rows_more(&r)) {
        uint8_t key[GENERATION_KEY];
        const char *program = rows_copy(&r, a);
        const uint32_t uid = rows_u32(&r), generation = rows_u32(&r);
        status = engine_rows_check(&r, "deleted programs", e);
        if (status == PROFD_OK && program) {
            make_key(key, uid, program);
        }
        if (status == PROFD_OK && (!program || !hashmap_put(out, key, sizeof key, &generation, sizeof generation))) {
            status = profd_no_memory(e);
        }
    }
    rows_close(&r);
    return status;
}

/* --- Series --- */

/* Array(String); NULL: out of memory, or cut. */
static const char **read_texts(struct row_reader *r, struct arena *a, size_t *n)
{
    *n = rows_length(r, 1);
    const char **list = ARENA_ARRAY(a, *n + 1, const char *);
    for (size_t i = 0; list && i < *n; i++) {
        list[i] = rows_copy(r, a);
        if (!list[i]) {
            return NULL;
        }
    }
    return list;
}

static bool read_labels(struct row_reader *r, struct arena *a, struct engine_series *x)
{
    size_t names, values;
    const char **name = read_texts(r, a, &names), **value = read_texts(r, a, &values);
    x->labels = name && value ? ARENA_ARRAY(a, names + 1, struct store_label) : NULL;
    x->label_count = names < values ? names : values;
    for (size_t i = 0; x->labels && i < x->label_count; i++) {
        x->labels[i] = (struct store_label){.name = name[i], .value = value[i]};
    }
    return x->labels != NULL;
}

static enum profd_status read_series(struct row_reader *r, struct arena *a, const struct hashmap *generations,
                                     struct engine_series *x, struct profd_error *e)
{
    uint8_t key[GENERATION_KEY];
    size_t names;
    rows_fixed(r, x->hash, sizeof x->hash);
    x->uid = rows_u32(r);
    x->number = rows_u64(r);
    x->program = rows_copy(r, a);
    x->builds = read_texts(r, a, &x->build_count);
    x->names = read_texts(r, a, &names);
    const bool fine = read_labels(r, a, x);
    const enum profd_status status = engine_rows_check(r, "series", e);
    if (status != PROFD_OK) {
        return status;
    }
    if (!fine || !x->program || !x->builds || !x->names) {
        return profd_no_memory(e);
    }
    while (x->program_at < x->build_count && strcmp(x->builds[x->program_at], x->program) != 0) {
        x->program_at++;
    }
    if (names != x->build_count || x->program_at == x->build_count) {
        return profd_error_set(e, PROFD_BUSY, "store: a series in ClickHouse has %zu builds and %zu names, program %s",
                               x->build_count, names, x->program);
    }
    make_key(key, x->uid, x->program);
    const uint32_t *generation = hashmap_find(generations, key, sizeof key);
    x->generation = generation ? *generation : 0;
    return PROFD_OK;
}

static void put_choice(struct buffer *b, enum engine_choice choice, const char *text)
{
    static const char *const before[] = {[ENGINE_EVERY] = "",
                                         [ENGINE_PROGRAM] = " AND program = ",
                                         [ENGINE_BUILD] = " AND has(builds, ",
                                         [ENGINE_PREFIX] = " AND arrayExists(x -> startsWith(x, "};
    static const char *const behind[] = {
        [ENGINE_EVERY] = "", [ENGINE_PROGRAM] = "", [ENGINE_BUILD] = ")", [ENGINE_PREFIX] = "), builds)"};
    buffer_add_text(b, before[choice]);
    if (choice != ENGINE_EVERY) {
        engine_put_quoted(b, text);
    }
    buffer_add_text(b, behind[choice]);
}

static int compare_series(const void *a, const void *b)
{
    return memcmp(((const struct engine_series *)a)->hash, ((const struct engine_series *)b)->hash, ENGINE_SERIES_SIZE);
}

const struct engine_series *engine_find_series(const struct engine_catalogue *c, const uint8_t hash[ENGINE_SERIES_SIZE])
{
    struct engine_series wanted = {.uid = 0};
    memcpy(wanted.hash, hash, sizeof wanted.hash);
    return c->count == 0 ? NULL : bsearch(&wanted, c->list, c->count, sizeof *c->list, compare_series);
}

enum profd_status engine_load_series(struct clickhouse_store *s, struct arena *a, const struct store_scope *scope,
                                     enum engine_choice choice, const char *text, struct engine_catalogue *out,
                                     struct profd_error *e)
{
    struct row_reader r = {.bytes = NULL};
    struct hashmap generations;
    uint32_t count = 0, capacity = 0;
    hashmap_init(&generations, 0);
    *out = (struct engine_catalogue){.list = NULL};
    enum profd_status status = load_generations(s, a, &generations, e);
    if (status == PROFD_OK) {
        engine_begin(s);
        buffer_add_text(&s->statement, "SELECT series, any(uid), min(number) AS made, any(program), any(builds), "
                                       "argMin(names, number), any(label_names), any(label_values) FROM series WHERE ");
        engine_put_scope(&s->statement, scope);
        put_choice(&s->statement, choice, text);
        buffer_add_text(&s->statement, " GROUP BY series");
        status = engine_query_printed(s, &r, e);
    }
    while (status == PROFD_OK && rows_more(&r)) {
        struct engine_series *longer = arena_extend(a, out->list, count, &capacity, sizeof *longer);
        if (!longer) {
            status = profd_no_memory(e);
            break;
        }
        out->list = longer;
        out->list[count] = (struct engine_series){.uid = 0};
        status = read_series(&r, a, &generations, &out->list[count], e);
        count++;
    }
    out->count = count;
    if (count > 0) {
        qsort(out->list, count, sizeof *out->list, compare_series);
    }
    rows_close(&r);
    hashmap_clear(&generations);
    return status == PROFD_OK && count == 0 ? engine_check_complete(s, e) : status;
}

/* --- Hours --- */

static void put_programs(struct buffer *b, const struct engine_catalogue *c)
{
    struct hashmap seen;
    const size_t before = b->size;
    hashmap_init(&seen, 0);
    buffer_add_text(b, "program IN ('-'");
    for (size_t i = 0; i < c->count && seen.count <= NAMED_MOST; i++) {
        const char *program = c->list[i].program;
        if (hashmap_find(&seen, program, strlen(program))) {
            continue;
        }
        b->failed |= !hashmap_put(&seen, program, strlen(program), "", 1);
        buffer_add_char(b, ',');
        engine_put_quoted(b, program);
    }
    buffer_add_char(b, ')');
    if (seen.count > NAMED_MOST) {
        b->size = before;
        buffer_add_text(b, "1");
    }
    hashmap_clear(&seen);
}

void engine_put_selection(struct buffer *b, const struct engine_catalogue *c)
{
    put_programs(b, c);
    for (size_t i = 0; i < c->count && c->count <= NAMED_MOST; i++) {
        buffer_add_text(b, i == 0 ? " AND series IN (" : ",");
        engine_put_unhex(b, c->list[i].hash, sizeof c->list[i].hash);
    }
    if (c->count > 0 && c->count <= NAMED_MOST) {
        buffer_add_char(b, ')');
    }
}

void engine_put_hours(struct buffer *b, const char *where)
{
    buffer_add_format(
        b,
        "(SELECT program, series, hour, generation, sum(c) AS version, min(f) AS sent_from, max(t) AS sent_to FROM "
        "(SELECT program, series, hour, generation, writer, max(count) AS c, min(sent_from) AS f, max(sent_to) AS t "
        "FROM change WHERE %s GROUP BY program, series, hour, generation, writer) "
        "GROUP BY program, series, hour, generation)",
        where);
}

enum profd_status engine_keep_visible(struct clickhouse_store *s, struct engine_catalogue *c, struct profd_error *e)
{
    struct row_reader r = {.bytes = NULL};
    size_t kept = 0;
    if (c->count == 0) {
        return PROFD_OK;
    }
    bool *seen = calloc(c->count, sizeof *seen);
    if (!seen) {
        return profd_no_memory(e);
    }
    engine_begin(s);
    buffer_add_text(&s->statement, "SELECT series, generation FROM change WHERE ");
    engine_put_selection(&s->statement, c);
    buffer_add_text(&s->statement, " GROUP BY series, generation");
    enum profd_status status = engine_query_printed(s, &r, e);
    while (status == PROFD_OK && rows_more(&r)) {
        uint8_t hash[ENGINE_SERIES_SIZE];
        rows_fixed(&r, hash, sizeof hash);
        const uint32_t generation = rows_u32(&r);
        const struct engine_series *x = engine_find_series(c, hash);
        status = engine_rows_check(&r, "hours", e);
        if (x && x->generation == generation) {
            seen[x - c->list] = true;
        }
    }
    for (size_t i = 0; i < c->count && status == PROFD_OK; i++) {
        if (seen[i]) {
            c->list[kept++] = c->list[i];
        }
    }
    c->count = status == PROFD_OK ? kept : c->count;
    rows_close(&r);
    free(seen);
    return status;
}

/* --- Ids of builds --- */

static int compare_ids(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

enum profd_status engine_collect_ids(struct arena *a, const struct engine_catalogue *c, const char *after,
                                     const char *prefix, struct engine_ids *out, struct profd_error *e)
{
    size_t n = 0, kept = 0;
    for (size_t i = 0; i < c->count; i++) {
        n += c->list[i].build_count;
    }
    out->list = ARENA_ARRAY(a, n + 1, const char *);
    if (!out->list) {
        return profd_no_memory(e);
    }
    n = 0;
    for (size_t i = 0; i < c->count; i++) {
        for (size_t k = 0; k < c->list[i].build_count; k++) {
            const char *id = c->list[i].builds[k];
            if (strcmp(id, after) > 0 && strncmp(id, prefix, strlen(prefix)) == 0) {
                out->list[n++] = id;
            }
        }
    }
    if (n > 0) {
        qsort(out->list, n, sizeof *out->list, compare_ids);
    }
    for (size_t i = 0; i < n; i++) {
        if (kept == 0 || strcmp(out->list[kept - 1], out->list[i]) != 0) {
            out->list[kept++] = out->list[i];
        }
    }
    out->count = kept;
    return PROFD_OK;
}

size_t engine_find_id(const struct engine_ids *ids, const char *id)
{
    const char **found = bsearch(&id, ids->list, ids->count, sizeof *ids->list, compare_ids);
    return found ? (size_t)(found - ids->list) : ids->count;
}
