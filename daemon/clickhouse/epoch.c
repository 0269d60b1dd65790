/* Epochs of builds and lists, for ETags: sums of what writers have counted in table version. */
#include <string.h>

#include "clickhouse/catalogue.h"
#include "store/scope.h"

/* The salt of the tables, drawn when they were made and after each restore, and the epochs of the users of a scope: one
 * row each, the salt first. Deletions are counted, too: one that reached some shards only counts, and has failed before
 * it was counted in table version. */
static void print_epoch(struct clickhouse_store *s, const struct store_scope *scope, const char *build)
{
    struct buffer *b = &s->statement;
    char all[ENGINE_UNION_SIZE];
    engine_begin(s);
    buffer_add_text(b, "SELECT kind, uid, sum(n), max(value) FROM (SELECT toUInt8(0) AS kind, toUInt32(0) AS uid, "
                       "toUInt64(0) AS n, argMax(value, number) AS value FROM state WHERE name = 'salt' UNION ALL "
                       "SELECT toUInt8(1) AS kind, uid, sum(c) AS n, '' AS value FROM (SELECT uid, writer, "
                       "max(count) AS c FROM version WHERE build = ");
    engine_put_quoted(b, build);
    buffer_add_text(b, " AND ");
    engine_put_scope(b, scope);
    buffer_add_format(b,
                      " GROUP BY uid, writer) GROUP BY uid UNION ALL SELECT toUInt8(1) AS kind, uid, "
                      "toUInt64(sum(g)) AS n, '' AS value FROM (SELECT program, uid, max(generation) AS g FROM %s "
                      "WHERE ",
                      engine_name_union(s, "deletion", all));
    engine_put_scope(b, scope);
    buffer_add_text(b, " GROUP BY program, uid) GROUP BY uid) GROUP BY kind, uid ORDER BY kind, uid");
}

/* Is there an hour of a series with the build that was not deleted? */
static enum profd_status is_visible(struct clickhouse_store *s, const struct store_scope *scope, const char *build,
                                    bool *visible, struct profd_error *e)
{
    struct engine_catalogue c;
    struct arena *a = arena_new(0);
    enum profd_status status = a ? engine_load_series(s, a, scope, ENGINE_BUILD, build, &c, e) : profd_no_memory(e);
    if (status == PROFD_OK) {
        status = engine_keep_visible(s, &c, e);
    }
    *visible = status == PROFD_OK && c.count > 0;
    arena_free(a);
    return status;
}

/* Of all users together the number is the sum. */
static enum profd_status make_epoch(struct clickhouse_store *s, const struct store_scope *scope, const char *build,
                                    struct store_epoch *epoch, struct profd_error *e)
{
    struct row_reader rows;
    struct store_epoch out = {.salt = s->base.salt};
    bool salted = false;
    print_epoch(s, scope, build);
    enum profd_status status = engine_query_printed(s, &rows, e);
    if (status != PROFD_OK) {
        return status;
    }
    while (rows_more(&rows)) {
        const bool is_user = rows_u8(&rows) != 0;
        const uint32_t uid = rows_u32(&rows);
        const uint64_t sum = rows_u64(&rows);
        size_t n;
        const char *value = rows_string(&rows, &n);
        uint64_t drawn = 0;
        memcpy(&drawn, value, n < sizeof drawn ? n : sizeof drawn);
        out.salt ^= drawn;
        salted |= n > 0;
        if (is_user) {
            out.number = scope->all ? out.number + sum : store_scope_mix(scope, out.number, uid, sum);
        }
    }
    status = engine_rows_check(&rows, "an epoch", e);
    if (status == PROFD_OK && !salted) {
        status = engine_check_complete(s, e);
    }
    rows_close(&rows);
    if (status == PROFD_OK) {
        *epoch = out;
    }
    return status;
}

enum profd_status engine_epoch(struct store *base, const struct store_scope *scope, const char *build_id,
                               struct store_epoch *epoch, struct profd_error *e)
{
    struct store_epoch out;
    bool visible = false;
    enum profd_status status = is_visible(engine_self(base), scope, build_id, &visible, e);
    if (status == PROFD_OK) {
        status = make_epoch(engine_self(base), scope, build_id, &out, e);
    }
    if (status == PROFD_OK) {
        *epoch = visible ? out : (struct store_epoch){.number = 0, .salt = out.salt};
    }
    return status;
}

enum profd_status engine_epoch_all(struct store *base, const struct store_scope *scope, struct store_epoch *epoch,
                                   struct profd_error *e)
{
    return make_epoch(engine_self(base), scope, "", epoch, e);
}
