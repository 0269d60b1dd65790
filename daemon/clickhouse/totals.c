/* Totals, and what each user stores. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "clickhouse/everywhere.h"
#include "clickhouse/ledger.h"
#include "clickhouse/removal.h"
#include "store/outgoing.h"
#include "store/quota.h"

/* What one user stores: of the bytes of a table's parts a share as of its rows, and objects that no other user has
 * sent. */
struct use {
    uint32_t uid;
    uint64_t bytes;
};
struct uses {
    struct use *list;
    uint32_t count, capacity;
    uint64_t total; /* of all tables, of all servers */
};

void ledger_put_parts(struct clickhouse_store *s, struct buffer *b)
{
    if (s->address.cluster[0]) {
        buffer_add_format(b, "cluster('%s', system.parts)", s->address.cluster);
    } else {
        buffer_add_text(b, "system.parts");
    }
    buffer_add_format(b, " WHERE active AND database = '%s'", s->address.database);
}

enum profd_status ledger_count_bytes(struct clickhouse_store *s, const char *table, uint64_t *out,
                                     struct profd_error *e)
{
    struct row_reader r = {.bytes = NULL};
    engine_begin(s);
    buffer_add_text(&s->statement, "SELECT toUInt64(sum(bytes_on_disk)) FROM ");
    ledger_put_parts(s, &s->statement);
    if (table) {
        buffer_add_format(&s->statement, " AND table = '%s%s'", table, engine_local(s, table));
    }
    enum profd_status status = engine_query_printed(s, &r, e);
    if (status == PROFD_OK) {
        *out = rows_u64(&r);
        status = engine_rows_check(&r, "bytes of tables", e);
    }
    rows_close(&r);
    return status;
}

static enum profd_status add_use(struct arena *a, struct uses *u, uint32_t uid, uint64_t bytes, struct profd_error *e)
{
    uint32_t at = 0;
    while (at < u->count && u->list[at].uid != uid) {
        at++;
    }
    if (at == u->count) {
        struct use *longer = arena_extend(a, u->list, u->count, &u->capacity, sizeof *longer);
        if (!longer) {
            return profd_no_memory(e);
        }
        u->list = longer;
        u->list[u->count++] = (struct use){.uid = uid};
    }
    u->list[at].bytes += bytes;
    return PROFD_OK;
}

/* Adds rows of uid and a number, of which each unit takes this number of bytes. */
static enum profd_status add_query(struct clickhouse_store *s, struct arena *a, struct uses *u, double unit,
                                   const char *query, struct profd_error *e)
{
    struct row_reader r = {.bytes = NULL};
    enum profd_status status = engine_query(s, &r, e, "%s", query);
    while (status == PROFD_OK && rows_more(&r)) {
        const uint32_t uid = rows_u32(&r);
        const uint64_t n = rows_u64(&r);
        status = engine_rows_check(&r, "what users store", e);
        if (status == PROFD_OK) {
            status = add_use(a, u, uid, (uint64_t)((double)n * unit), e);
        }
    }
    rows_close(&r);
    return status;
}

static enum profd_status add_table(struct clickhouse_store *s, struct arena *a, struct uses *u, const char *table,
                                   struct profd_error *e)
{
    char query[128];
    uint64_t bytes, rows;
    enum profd_status status = ledger_count_bytes(s, table, &bytes, e);
    if (status == PROFD_OK) {
        status = engine_query_number(s, &rows, e, "SELECT toUInt64(count()) FROM %s", table);
    }
    (void)snprintf(query, sizeof query, "SELECT uid, toUInt64(count()) FROM %s GROUP BY uid", table);
    return status == PROFD_OK && rows > 0 ? add_query(s, a, u, (double)bytes / (double)rows, query, e) : status;
}

static enum profd_status load_uses(struct clickhouse_store *s, struct arena *a, struct uses *out, struct profd_error *e)
{
    static const char objects[] =
        "SELECT uid, sum(size) FROM (SELECT build, variant, content, any(uid) AS uid FROM (SELECT build, variant, "
        "content, uid, gone FROM object_sender ORDER BY number DESC LIMIT 1 BY build, variant, content, uid) WHERE "
        "gone = 0 GROUP BY build, variant, content HAVING count() = 1) ANY INNER JOIN (SELECT build, variant, content, "
        "toUInt64(max(length(encoded))) AS size FROM object GROUP BY build, variant, content) USING (build, variant, "
        "content) GROUP BY uid";
    *out = (struct uses){.list = NULL};
    enum profd_status status = ledger_count_bytes(s, NULL, &out->total, e);
    if (status == PROFD_OK) {
        status = add_table(s, a, out, "segment_group", e);
    }
    if (status == PROFD_OK) {
        status = add_table(s, a, out, "rollup", e);
    }
    return status == PROFD_OK ? add_query(s, a, out, 1, objects, e) : status;
}

enum profd_status engine_get_use(struct store *base, uint32_t uid, uint64_t *bytes, uint64_t *total,
                                 struct profd_error *e)
{
    struct uses u;
    struct arena *a = arena_new(0);
    enum profd_status status = a ? load_uses(engine_self(base), a, &u, e) : profd_no_memory(e);
    if (status == PROFD_OK) {
        *bytes = 0;
        *total = u.total;
        for (uint32_t i = 0; i < u.count; i++) {
            *bytes += u.list[i].uid == uid ? u.list[i].bytes : 0;
        }
    }
    arena_free(a);
    return status;
}

/* Builds of which no object with names is there. */
static enum profd_status count_unnamed(struct clickhouse_store *s, const struct ledger_stored *stored, uint64_t *out,
                                       struct profd_error *e)
{
    struct row_reader r = {.bytes = NULL};
    size_t at = 0;
    *out = stored->builds.count;
    enum profd_status status =
        engine_query(s, &r, e,
                     "SELECT build FROM (SELECT build, variant, content, has_names, gone FROM object "
                     "ORDER BY number DESC LIMIT 1 BY build, variant, content) WHERE has_names = 1 AND gone = 0 "
                     "GROUP BY build ORDER BY build");
    while (status == PROFD_OK && rows_more(&r)) {
        size_t n;
        const char *build = rows_string(&r, &n);
        status = engine_rows_check(&r, "objects with names", e);
        while (status == PROFD_OK && at < stored->builds.count &&
               (strncmp(stored->builds.list[at], build, n) < 0 ||
                (strncmp(stored->builds.list[at], build, n) == 0 && strlen(stored->builds.list[at]) < n))) {
            at++;
        }
        *out -= status == PROFD_OK && at < stored->builds.count && strlen(stored->builds.list[at]) == n &&
                memcmp(stored->builds.list[at], build, n) == 0;
    }
    rows_close(&r);
    return status;
}

enum profd_status engine_get_totals(struct store *base, struct store_totals *out, struct profd_error *e)
{
    struct clickhouse_store *s = engine_self(base);
    struct store_totals t = {.builds = 0};
    struct ledger l;
    struct ledger_stored stored;
    struct uses uses;
    struct arena *a = arena_new(0);
    enum profd_status status = a ? ledger_load(s, a, &l, e) : profd_no_memory(e);
    if (status == PROFD_OK) {
        status = ledger_load_stored(s, a, &stored, e);
    }
    if (status == PROFD_OK) {
        status = load_uses(s, a, &uses, e);
    }
    if (status == PROFD_OK) {
        status = count_unnamed(s, &stored, &t.builds_without_names, e);
    }
    if (status == PROFD_OK) {
        status = engine_query_number(s, &t.rollups, e, "SELECT toUInt64(count()) FROM rollup WHERE " ENGINE_REAL);
    }
    if (status == PROFD_OK) {
        struct store_amount accepted = stored.amount;
        outgoing_amount_add(&accepted, &l.removed);
        t.builds = stored.builds.count;
        t.uploads = accepted.uploads;
        t.ticks = accepted.ticks;
        t.calls = accepted.calls;
        t.retired_uploads = l.removed.uploads;
        t.retired_ticks = l.removed.ticks;
        t.retired_calls = l.removed.calls;
        t.raw_uploads = stored.single;
        t.file_bytes = uses.total;
        for (uint32_t i = 0; i < uses.count; i++) {
            t.user_bytes += uses.list[i].bytes;
            quota_add_user(&t, uses.list[i].uid, uses.list[i].bytes);
        }
        *out = t;
    }
    arena_free(a);
    return status;
}
