/* Deletes the segments of a program. The new row of table deletion alone does so, for every daemon: rows of earlier
 * generations do not count. What they take is returned by retire.c. */
#include <string.h>
#include <time.h>

#include "clickhouse/catalogue.h"
#include "core/sum.h"

struct deleting {
    struct clickhouse_store *s;
    struct arena *a;
    const struct store_scope *scope;
    const char *build_id;
    struct engine_catalogue c; /* series of the program that have something */
    struct hashmap uids;       /* of which the program is deleted → generation */
    uint64_t uploads;
};

/* Why there is nothing to delete. */
static enum profd_status refuse(struct deleting *d, struct profd_error *e)
{
    struct engine_catalogue c;
    enum profd_status status = engine_load_series(d->s, d->a, d->scope, ENGINE_BUILD, d->build_id, &c, e);
    if (status == PROFD_OK) {
        status = engine_keep_visible(d->s, &c, e);
    }
    if (status == PROFD_OK && c.count == 0) {
        status = profd_error_set(e, PROFD_NOT_FOUND, "no build %s has been uploaded", d->build_id);
    } else if (status == PROFD_OK) {
        status =
            profd_error_set(e, PROFD_REFUSED,
                            "build %s is not a program but a library; delete the programs that use it, such as %s (%s)",
                            d->build_id, c.list[0].program, c.list[0].names[c.list[0].program_at]);
    }
    return status;
}

static enum profd_status add_uid(struct deleting *d, uint32_t uid, uint32_t generation, struct profd_error *e)
{
    uint32_t *known = hashmap_find(&d->uids, &uid, sizeof uid);
    if (known) {
        *known = generation > *known ? generation : *known;
        return PROFD_OK;
    }
    return hashmap_put(&d->uids, &uid, sizeof uid, &generation, sizeof generation) ? PROFD_OK : profd_no_memory(e);
}

/* Adds the uids that a query gives, with their generations. */
static enum profd_status add_query(struct deleting *d, struct profd_error *e)
{
    struct row_reader r = {.bytes = NULL};
    enum profd_status status = engine_query_printed(d->s, &r, e);
    while (status == PROFD_OK && rows_more(&r)) {
        const uint32_t uid = rows_u32(&r), generation = rows_u32(&r);
        status = engine_rows_check(&r, "users", e);
        if (status == PROFD_OK && store_scope_has(d->scope, uid)) {
            status = add_uid(d, uid, generation, e);
        }
    }
    rows_close(&r);
    return status;
}

/* All users of the scope: hosts of each may send some of it later. */
static enum profd_status find_uids(struct deleting *d, struct profd_error *e)
{
    char all[ENGINE_UNION_SIZE];
    enum profd_status status = PROFD_OK;
    if (d->scope->all) {
        status = add_uid(d, STORE_TENANT, 0, e);
    } else {
        status = add_uid(d, d->scope->uid, 0, e);
    }
    for (uint32_t i = 0; i < d->scope->other_count && status == PROFD_OK; i++) {
        status = add_uid(d, d->scope->others[i], 0, e);
    }
    if (status == PROFD_OK) {
        engine_begin(d->s);
        buffer_add_format(&d->s->statement,
                          "SELECT toUInt32(%u - (id - 1)) AS uid, toUInt32(0) AS generation FROM tenant GROUP BY uid "
                          "UNION ALL SELECT uid, toUInt32(0) AS generation FROM series WHERE program = ",
                          (unsigned)STORE_TENANT);
        engine_put_quoted(&d->s->statement, d->build_id);
        buffer_add_format(&d->s->statement,
                          " GROUP BY uid UNION ALL SELECT uid, max(generation) AS generation FROM %s WHERE program = ",
                          engine_name_union(d->s, "deletion", all));
        engine_put_quoted(&d->s->statement, d->build_id);
        buffer_add_text(&d->s->statement, " GROUP BY uid");
        status = add_query(d, e);
    }
    return status;
}

static enum profd_status insert_deletion(struct deleting *d, struct profd_error *e)
{
    struct buffer rows;
    size_t position = 0;
    const void *uid;
    const uint32_t *generation;
    const int64_t now = (int64_t)time(NULL) * INT64_C(1000000000);
    buffer_init(&rows, 1 << 24);
    while ((generation = hashmap_next(&d->uids, &position, &uid))) {
        uint32_t n;
        memcpy(&n, uid, sizeof n);
        rows_put_text(&rows, d->build_id);
        rows_put_u32(&rows, n);
        rows_put_u32(&rows, *generation + 1);
        rows_put_i64(&rows, now);
    }
    const enum profd_status status = engine_insert(d->s, "deletion (program, uid, generation, before)", &rows, e);
    buffer_done(&rows);
    return status;
}

static enum profd_status touch_builds(struct deleting *d, struct profd_error *e)
{
    size_t n = 0;
    for (size_t i = 0; i < d->c.count; i++) {
        n += d->c.list[i].build_count;
    }
    struct engine_touch *list = ARENA_ARRAY(d->a, n + 1, struct engine_touch);
    if (!list) {
        return profd_no_memory(e);
    }
    n = 0;
    for (size_t i = 0; i < d->c.count; i++) {
        for (size_t k = 0; k < d->c.list[i].build_count; k++) {
            list[n++] = (struct engine_touch){.build = d->c.list[i].builds[k], .uid = d->c.list[i].uid};
        }
    }
    return engine_touch(d->s, list, n, e);
}

/* Removes the objects of the program if nothing else names it. */
static enum profd_status forget_objects(struct deleting *d, struct profd_error *e)
{
    static const struct store_scope every = {.all = true};
    struct engine_catalogue c;
    enum profd_status status = engine_load_series(d->s, d->a, &every, ENGINE_BUILD, d->build_id, &c, e);
    if (status == PROFD_OK) {
        status = engine_keep_visible(d->s, &c, e);
    }
    return status == PROFD_OK && c.count == 0 ? engine_forget_objects(d->s, d->build_id, e) : status;
}

static enum profd_status delete_program(struct deleting *d, struct profd_error *e)
{
    bool ignored = false;
    enum profd_status status = engine_load_series(d->s, d->a, d->scope, ENGINE_PROGRAM, d->build_id, &d->c, e);
    if (status == PROFD_OK) {
        status = engine_keep_visible(d->s, &d->c, e);
    }
    if (status == PROFD_OK && d->c.count == 0) {
        return refuse(d, e);
    }
    struct engine_sums *sums = ARENA_ARRAY(d->a, d->c.count + 1, struct engine_sums);
    if (status == PROFD_OK) {
        status = sums ? engine_load_sums(d->s, d->a, &d->c, NULL, sums, e) : profd_no_memory(e);
    }
    for (size_t i = 0; i < d->c.count && status == PROFD_OK; i++) {
        sum_add(&d->uploads, sums[i].uploads, &ignored);
    }
    if (status == PROFD_OK) {
        status = find_uids(d, e);
    }
    /* Twice: if the second fails, answers from before the first are still known to be old. */
    if (status == PROFD_OK) {
        status = touch_builds(d, e);
    }
    if (status == PROFD_OK) {
        status = insert_deletion(d, e);
    }
    if (status == PROFD_OK) {
        status = touch_builds(d, e);
    }
    return status == PROFD_OK ? forget_objects(d, e) : status;
}

enum profd_status engine_delete_build(struct store *base, const struct store_scope *scope, const char *build_id,
                                      uint64_t *uploads, struct profd_error *e)
{
    struct deleting d = {.s = engine_self(base), .a = arena_new(0), .scope = scope, .build_id = build_id};
    hashmap_init(&d.uids, 0);
    const enum profd_status status = d.a ? delete_program(&d, e) : profd_no_memory(e);
    if (status == PROFD_OK) {
        *uploads = d.uploads;
    }
    hashmap_clear(&d.uids);
    arena_free(d.a);
    return status;
}
