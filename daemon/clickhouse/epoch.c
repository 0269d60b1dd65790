/* Epochs of builds and lists, for ETags: sums of what writers have counted in table version. */
#include <string.h>

#include "clickhouse/catalogue.h"
#include "store/scope.h"

/* The salt of the tables, drawn when they were made and after each restore. */
static enum profd_status read_salt(struct clickhouse_store *s, uint64_t *salt, struct profd_error *e)
{
    struct row_reader rows;
    size_t n = 0;
    uint64_t drawn = 0;
    enum profd_status status = engine_query(s, &rows, e, "SELECT argMax(value, number) FROM state WHERE name = 'salt'");
    if (status != PROFD_OK) {
        return status;
    }
    const char *text = rows_string(&rows, &n);
    status = engine_rows_check(&rows, "the salt", e);
    if (status == PROFD_OK) {
        memcpy(&drawn, text, n < sizeof drawn ? n : sizeof drawn);
        *salt = drawn ^ s->base.salt;
    }
    rows_close(&rows);
    return status;
}

/* The epochs of the users of a scope; of all users together the sum. */
static enum profd_status read_number(struct clickhouse_store *s, const struct store_scope *scope, const char *build,
                                     uint64_t *number, struct profd_error *e)
{
    struct row_reader rows;
    struct buffer *b = &s->statement;
    engine_begin(s);
    buffer_add_text(b, "SELECT uid, sum(c) FROM (SELECT uid, writer, max(count) AS c FROM version WHERE build = ");
    engine_put_quoted(b, build);
    buffer_add_text(b, " AND ");
    engine_put_scope(b, scope);
    buffer_add_text(b, " GROUP BY uid, writer) GROUP BY uid ORDER BY uid");
    enum profd_status status = engine_query_printed(s, &rows, e);
    if (status != PROFD_OK) {
        return status;
    }
    *number = 0;
    while (rows_more(&rows)) {
        const uint32_t uid = rows_u32(&rows);
        const uint64_t sum = rows_u64(&rows);
        *number = scope->all ? *number + sum : store_scope_mix(scope, *number, uid, sum);
    }
    status = engine_rows_check(&rows, "an epoch", e);
    rows_close(&rows);
    return status;
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

static enum profd_status make_epoch(struct clickhouse_store *s, const struct store_scope *scope, const char *build,
                                    struct store_epoch *epoch, struct profd_error *e)
{
    struct store_epoch out;
    enum profd_status status = read_salt(s, &out.salt, e);
    if (status == PROFD_OK) {
        status = read_number(s, scope, build, &out.number, e);
    }
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
