/* Retention: whole days go, oldest first, by dropping partitions; then objects of builds that nothing names.
 *
 * A day in which something counts is removed so: it is announced (removal.h), and what daemons may have on their way is
 * waited for; what the day adds up to is added to table removed; its hours are dropped from table change, and with them
 * it is gone from all answers; then what is left of it in other tables is dropped. The row `retiring` of table state
 * says which day that is, until all of it is done: a call that ended in between is completed by the next. What arrives
 * meanwhile for the day, or an earlier one, counts as accepted and removed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clickhouse/everywhere.h"
#include "clickhouse/ledger.h"
#include "clickhouse/removal.h"
#include "core/sum.h"
#include "store/outgoing.h"

#define PATIENCE_S 60 /* after a deletion, for batches that were on their way */
#define OBJECTS_AT_ONCE 100u

struct retiring {
    struct clickhouse_store *s;
    struct arena *a;
    const struct store_policy *policy;
    int64_t now;
    struct store_progress progress;
};

static enum profd_status drop_day(struct retiring *r, const char *table, uint32_t day, struct profd_error *e)
{
    r->progress.rows++;
    return engine_drop_day(r->s, table, day, e);
}

/* --- What deleted programs take --- */

/* Removes the rows of deleted generations up to the number. Rows of a rollup or a segment that are there for longer
 * count nowhere, and go with their day. */
static enum profd_status purge_program(struct retiring *r, const struct ledger_deletion *x, struct profd_error *e)
{
    char statement[320 + BUILDID_TEXT_SIZE];
    (void)snprintf(statement, sizeof statement,
                   "ALTER TABLE segment_group%s DELETE WHERE program = '%s' AND uid = %" PRIu32
                   " AND generation < %" PRIu32 " AND number <= %" PRIu64,
                   engine_local(r->s, "segment_group"), x->program, x->uid, x->generation, x->last);
    enum profd_status status = engine_run_everywhere(r->s, statement, e);
    if (status == PROFD_OK) {
        (void)snprintf(statement, sizeof statement,
                       "ALTER TABLE rollup%s DELETE WHERE program = '%s' AND uid = %" PRIu32
                       " AND generation < %" PRIu32,
                       engine_local(r->s, "rollup"), x->program, x->uid, x->generation);
        status = engine_run_everywhere(r->s, statement, e);
    }
    return status;
}

/* Enters the segments of deleted programs in table removed, and removes them. *young: one was deleted just now, and
 * waits. */
static enum profd_status purge(struct retiring *r, bool *young, struct profd_error *e)
{
    struct ledger l;
    enum profd_status status = ledger_load(r->s, r->a, &l, e);
    *young = false;
    for (uint32_t i = 0; i < l.deletion_count && status == PROFD_OK; i++) {
        const struct ledger_deletion *x = &l.deletions[i];
        if (x->last == 0) {
            continue;
        }
        if (x->before / INT64_C(1000000000) + PATIENCE_S > (int64_t)time(NULL)) {
            *young = true;
            continue;
        }
        struct ledger_row row = {.uid = x->uid, .day = LEDGER_DELETED, .number = x->last, .amount = x->removed};
        memcpy(row.program, x->program, sizeof row.program);
        outgoing_amount_add(&row.amount, &x->pending);
        status = ledger_put(r->s, &row, 1, e);
        if (status == PROFD_OK) {
            status = purge_program(r, x, e);
        }
        r->progress.rows++;
    }
    return status;
}

/* --- Days --- */

/* The oldest day in which something has arrived. */
static enum profd_status find_oldest(struct clickhouse_store *s, uint32_t *day, bool *any, struct profd_error *e)
{
    struct row_reader r = {.bytes = NULL};
    enum profd_status status = engine_query(s, &r, e,
                                            "SELECT toUInt64(count()), toUInt32(min(hour)) FROM "
                                            "change WHERE " ENGINE_REAL);
    if (status == PROFD_OK) {
        *any = rows_u64(&r) > 0;
        *day = rows_u32(&r) / 24;
        status = engine_rows_check(&r, "the oldest day", e);
    }
    rows_close(&r);
    return status;
}

/* Is there a day to remove, and which? */
static enum profd_status choose_day(struct retiring *r, uint32_t *day, bool *found, struct profd_error *e)
{
    const struct store_policy *p = r->policy;
    const int64_t limit = p->keep_age > 0 && r->now > p->keep_age ? (r->now - p->keep_age) / ENGINE_DAY : 0;
    uint64_t bytes = 0;
    enum profd_status status = find_oldest(r->s, day, found, e);
    if (status != PROFD_OK || !*found || (int64_t)*day < limit) {
        return status;
    }
    if (p->keep_bytes > 0) {
        status = ledger_count_bytes(r->s, NULL, &bytes, e);
    }
    *found = p->keep_bytes > 0 && bytes > p->keep_bytes && (int64_t)*day < r->now / ENGINE_DAY;
    return status;
}

/* What is removed with a day: sums by program, user and generation. */
struct day_sums {
    struct engine_catalogue c; /* series that have something in it */
    struct ledger_row *rows;
    uint32_t count, capacity;
};

static struct ledger_row *find_sum(const struct day_sums *d, const struct engine_series *x)
{
    uint32_t at = 0;
    while (at < d->count && (d->rows[at].uid != x->uid || d->rows[at].generation != x->generation ||
                             strcmp(d->rows[at].program, x->program) != 0)) {
        at++;
    }
    return at < d->count ? &d->rows[at] : NULL;
}

static enum profd_status sum_day(struct retiring *r, uint32_t day, struct day_sums *out, struct profd_error *e)
{
    static const struct store_scope every = {.all = true};
    char where[80];
    struct engine_sums *sums = NULL;
    uint64_t last = 0;
    size_t kept = 0;
    (void)snprintf(where, sizeof where, "hour >= %" PRIu32 " AND hour <= %" PRIu32, day * 24, day * 24 + 23);
    *out = (struct day_sums){.rows = NULL};
    enum profd_status status = engine_load_series(r->s, r->a, &every, ENGINE_EVERY, NULL, &out->c, e);
    if (status == PROFD_OK) {
        status =
            engine_query_number(r->s, &last, e, "SELECT max(number) FROM segment_group WHERE head = 1 AND %s", where);
    }
    if (status == PROFD_OK) {
        sums = ARENA_ARRAY(r->a, out->c.count + 1, struct engine_sums);
        status = sums ? engine_load_sums(r->s, r->a, &out->c, where, sums, e) : profd_no_memory(e);
    }
    for (size_t i = 0; i < out->c.count && status == PROFD_OK; i++) {
        const struct engine_series *x = &out->c.list[i];
        const struct store_amount amount = {sums[i].uploads, sums[i].ticks, sums[i].calls};
        if (sums[i].hours == 0) {
            continue;
        }
        struct ledger_row *row = find_sum(out, x);
        if (!row) {
            struct ledger_row *longer = arena_extend(r->a, out->rows, out->count, &out->capacity, sizeof *longer);
            if (!longer) {
                return profd_no_memory(e);
            }
            out->rows = longer;
            row = &out->rows[out->count++];
            *row = (struct ledger_row){.uid = x->uid, .generation = x->generation, .day = day, .number = last};
            (void)snprintf(row->program, sizeof row->program, "%s", x->program);
        }
        outgoing_amount_add(&row->amount, &amount);
        out->c.list[kept++] = *x;
    }
    out->c.count = kept;
    return status;
}

/* Some of the day was removed before: what came later is added to that. */
static enum profd_status add_later(struct retiring *r, const struct ledger_row *before, struct ledger_row *row,
                                   struct profd_error *e)
{
    char where[256 + BUILDID_TEXT_SIZE];
    uint64_t last = 0;
    (void)snprintf(where, sizeof where,
                   "program = '%s' AND uid = %" PRIu32 " AND generation = %" PRIu32 " AND hour >= %" PRIu32
                   " AND hour <= %" PRIu32 " AND number > %" PRIu64,
                   row->program, row->uid, row->generation, row->day * 24, row->day * 24 + 23, before->number);
    const enum profd_status status = ledger_sum_segments(r->s, where, &row->amount, &last, e);
    if (status == PROFD_OK) {
        r->progress.uploads += row->amount.uploads;
        row->number = last > before->number ? last : before->number;
        outgoing_amount_add(&row->amount, &before->amount);
    }
    return status;
}

static enum profd_status enter_day(struct retiring *r, struct day_sums *d, struct profd_error *e)
{
    struct ledger l;
    enum profd_status status = ledger_load(r->s, r->a, &l, e);
    for (uint32_t i = 0; i < d->count && status == PROFD_OK; i++) {
        struct ledger_row *row = &d->rows[i];
        const struct ledger_row *before = ledger_find_day(&l, row->program, row->uid, row->generation, row->day);
        if (before) {
            status = add_later(r, before, row, e);
        } else {
            r->progress.uploads += row->amount.uploads;
        }
    }
    return status == PROFD_OK ? ledger_put(r->s, d->rows, d->count, e) : status;
}

/* Drops the partitions of the days that a query names, with the last hour or day of each, if that is not beyond `to`.
 */
static enum profd_status drop_some(struct retiring *r, const char *table, uint32_t to, const char *query,
                                   struct profd_error *e)
{
    struct row_reader rows = {.bytes = NULL};
    enum profd_status status = engine_query(r->s, &rows, e, "%s", query);
    while (status == PROFD_OK && rows_more(&rows)) {
        const uint32_t day = rows_u32(&rows), last = rows_u32(&rows);
        status = engine_rows_check(&rows, "partitions", e);
        if (status == PROFD_OK && last <= to) {
            status = drop_day(r, table, day, e);
        }
    }
    rows_close(&rows);
    return status;
}

/* Drops what no row of table change refers to any more. */
static enum profd_status drop_rest(struct retiring *r, uint32_t day, bool *done, struct profd_error *e)
{
    char query[200];
    enum profd_status status = drop_day(r, "rollup", day, e);
    if (status == PROFD_OK) {
        (void)snprintf(query, sizeof query,
                       "SELECT toUInt32(intDiv(toUInt32(sent), 86400)) AS d, max(hour) FROM segment_group WHERE sent < "
                       "toDateTime(%" PRIu64 ", 'UTC') AND " ENGINE_REAL " GROUP BY d",
                       ((uint64_t)day + 1) * 86400);
        status = drop_some(r, "segment_group", day * 24 + 23, query, e);
    }
    if (status == PROFD_OK) {
        (void)snprintf(query, sizeof query,
                       "SELECT min(day), max(day) FROM host_day WHERE day <= %" PRIu32 " + %u AND " ENGINE_REAL
                       " GROUP BY intDiv(day, %u)",
                       day, ENGINE_HOST_DAYS, ENGINE_HOST_DAYS);
        status = drop_some(r, "host_day", day, query, e);
    }
    if (status == PROFD_OK) {
        status = engine_delete_day(r->s, "segment_group", day, done, e);
    }
    return status == PROFD_OK && *done ? engine_delete_day(r->s, "host_day", day, done, e) : status;
}

static enum profd_status touch_builds(struct retiring *r, const struct engine_catalogue *c, struct profd_error *e)
{
    size_t n = 0;
    for (size_t i = 0; i < c->count; i++) {
        n += c->list[i].build_count;
    }
    struct engine_touch *list = ARENA_ARRAY(r->a, n + 1, struct engine_touch);
    if (!list) {
        return profd_no_memory(e);
    }
    n = 0;
    for (size_t i = 0; i < c->count; i++) {
        for (size_t k = 0; k < c->list[i].build_count; k++) {
            list[n++] = (struct engine_touch){.build = c->list[i].builds[k], .uid = c->list[i].uid};
        }
    }
    return engine_touch(r->s, list, n, e);
}

/* x->begun: an earlier call has begun with it. The lock's row is on every shard, so the address names a server of each.
 */
static enum profd_status remove_day(struct retiring *r, struct engine_removal *x, struct profd_error *e)
{
    static const struct store_scope every = {.all = true};
    const bool again = x->begun;
    bool done = false;
    struct day_sums d;
    enum profd_status status = sum_day(r, x->day, &d, e);
    if (status == PROFD_OK) {
        status = enter_day(r, &d, e);
    }
    if (status == PROFD_OK && !again) {
        x->begun = true;
        status = engine_put_removal(r->s, x, e);
    }
    if (status == PROFD_OK) {
        status = drop_day(r, "change", x->day, e);
    }
    if (status == PROFD_OK) {
        status = drop_rest(r, x->day, &done, e);
    }
    if (status == PROFD_OK && again) { /* nothing says any more what it had */
        status = engine_load_series(r->s, r->a, &every, ENGINE_EVERY, NULL, &d.c, e);
    }
    if (status == PROFD_OK) {
        status = touch_builds(r, &d.c, e);
    }
    r->progress.more = status == PROFD_OK && done;
    return status == PROFD_OK && done ? engine_put_removal(r->s, &(struct engine_removal){.any = false}, e) : status;
}

/* Announces a day, and removes it if nothing for it can be on its way: else a later call does. */
static enum profd_status announce_day(struct retiring *r, struct engine_removal *x, struct profd_error *e)
{
    bool quiet = x->begun;
    enum profd_status status = PROFD_OK;
    if (!x->any) {
        x->any = true;
        status = engine_servers_now(r->s, &x->since, e);
        if (status == PROFD_OK) {
            status = engine_put_removal(r->s, x, e);
        }
    }
    if (status == PROFD_OK && !quiet) {
        status = engine_check_quiet(r->s, x, &quiet, e);
    }
    return status == PROFD_OK && quiet ? remove_day(r, x, e) : status;
}

/* Tables of which days are removed here. A replicated one that an earlier call left unreadable is readable again. */
static enum profd_status prepare_tables(struct retiring *r, bool locked, struct profd_error *e)
{
    static const char *const tables[] = {"change", "rollup", "segment_group", "host_day"};
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0] && status == PROFD_OK; i++) {
        status = engine_complete_drop(r->s, tables[i], locked, e);
    }
    return status;
}

/* --- Objects --- */

/* Removes objects that were delivered before then, of builds that no series with data has. */
static enum profd_status remove_objects(struct retiring *r, int64_t before, struct profd_error *e)
{
    static const struct store_scope every = {.all = true};
    struct engine_catalogue c;
    struct engine_ids seen;
    struct row_reader rows = {.bytes = NULL};
    unsigned removed = 0;
    enum profd_status status =
        engine_query(r->s, &rows, e,
                     "SELECT build FROM (SELECT build, variant, content, uid, received, gone FROM object_sender "
                     "ORDER BY number DESC LIMIT 1 BY build, variant, content, uid) WHERE gone = 0 GROUP BY build "
                     "HAVING max(received) < %" PRId64 " ORDER BY build",
                     before);
    if (status != PROFD_OK || !rows_more(&rows)) {
        rows_close(&rows);
        return status;
    }
    status = engine_load_series(r->s, r->a, &every, ENGINE_EVERY, NULL, &c, e);
    if (status == PROFD_OK) {
        status = engine_keep_visible(r->s, &c, e);
    }
    if (status == PROFD_OK) {
        status = engine_collect_ids(r->a, &c, "", "", &seen, e);
    }
    while (status == PROFD_OK && rows_more(&rows) && removed < OBJECTS_AT_ONCE) {
        const char *build = rows_copy(&rows, r->a);
        status = engine_rows_check(&rows, "objects", e);
        if (status == PROFD_OK && !build) {
            status = profd_no_memory(e);
        }
        if (status == PROFD_OK && engine_find_id(&seen, build) == seen.count) {
            status = engine_forget_objects(r->s, build, e);
            removed++;
        }
    }
    rows_close(&rows);
    r->progress.rows += removed;
    r->progress.more |= removed == OBJECTS_AT_ONCE;
    return status;
}

static enum profd_status work_once(struct retiring *r, struct profd_error *e)
{
    struct engine_removal removal = {.any = false};
    bool found = false, young = false;
    uint64_t bytes = 0;
    enum profd_status status = prepare_tables(r, true, e);
    if (status == PROFD_OK) {
        status = purge(r, &young, e);
    }
    if (status == PROFD_OK) {
        status = engine_load_removal(r->s, &removal, e);
    }
    if (status == PROFD_OK && !removal.any) {
        status = choose_day(r, &removal.day, &found, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    if (removal.any || found) {
        return young ? PROFD_OK : announce_day(r, &removal, e);
    }
    int64_t before = r->policy->keep_age > 0 ? r->now - r->policy->keep_age : INT64_MIN;
    if (r->policy->keep_bytes > 0) {
        status = ledger_count_bytes(r->s, NULL, &bytes, e);
        before = bytes > r->policy->keep_bytes && r->now - ENGINE_DAY > before ? r->now - ENGINE_DAY : before;
    }
    return status == PROFD_OK && before > 0 ? remove_objects(r, before, e) : status;
}

enum profd_status engine_retire(struct store *base, const struct store_policy *policy, int64_t now,
                                struct store_progress *out, struct profd_error *e)
{
    struct retiring r = {.s = engine_self(base), .a = arena_new(0), .policy = policy, .now = now};
    struct engine_lock lock;
    if (!r.a) {
        return profd_no_memory(e);
    }
    /* A daemon that died may have the lock: for a minute, in which answers are wanted. */
    enum profd_status status = prepare_tables(&r, false, e);
    if (status == PROFD_OK) {
        status = engine_lock_take(r.s, "retire", &lock, e);
    }
    if (status == PROFD_OK) {
        status = engine_lock_give(r.s, &lock, work_once(&r, e));
    }
    arena_free(r.a);
    if (status == PROFD_OK) {
        *out = r.progress;
    }
    return status;
}
