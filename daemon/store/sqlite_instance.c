/* Rows of live processes. */
#include <stdlib.h>
#include <string.h>

#include "core/rollup.h"
#include "core/sum.h"
#include "proto/message.h"
#include "store/labels.h"
#include "store/sqlite.h"
#include "store/sqlite_batch.h"
#include "store/sqlite_slice.h"
#include "store/sqlite_users.h"

#define FORGET_SLICE 2000 /* instances removed in one transaction */

/* Reads the current row of SQL_SNAPSHOT_GET. */
static enum profd_status copy_snapshot(struct store *s, sqlite3_stmt *q, uint32_t uid, uint64_t *generation,
                                       uint8_t **snapshot, size_t *size, struct profd_error *e)
{
    size_t n;
    if (sqlite3_column_type(q, 1) == SQLITE_NULL) {
        return profd_error_set(e, PROFD_DAMAGED, "database %s: an instance of user %u has no snapshot", s->path, uid);
    }
    const uint8_t *bytes = sqlite_blob(q, 1, &n);
    uint8_t *copy = malloc(n + 1);
    if (!copy) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a snapshot of %zu bytes", n);
    }
    memcpy(copy, bytes, n);
    *generation = (uint64_t)sqlite3_column_int64(q, 0);
    *snapshot = copy;
    *size = n;
    return PROFD_OK;
}

enum profd_status store_get_instance(struct store *s, uint32_t uid, const uint8_t instance[STORE_INSTANCE_SIZE],
                                     uint64_t *generation, uint8_t **snapshot, size_t *size, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    TRY(sqlite_first(s, SQL_SNAPSHOT_GET, VALUES(INTEGER(uid), BLOB(instance, STORE_INSTANCE_SIZE)), &q, &row, e));
    if (!row) {
        *generation = 0;
        *snapshot = NULL;
        *size = 0;
        return PROFD_OK;
    }
    enum profd_status status = copy_snapshot(s, q, uid, generation, snapshot, size, e);
    sqlite_finish(q);
    return status;
}

/* name NULL: store_each_instance; otherwise store_each_namesake. */
static enum profd_status each_found(struct store *s, const uint8_t *name,
                                    bool (*each)(void *context, const struct store_instance *i), void *context,
                                    struct profd_error *e)
{
    sqlite3_stmt *q;
    TRY(name ? sqlite_start(s, SQL_INSTANCE_NAMESAKES, VALUES(BLOB(name, STORE_INSTANCE_SIZE)), &q, e)
             : sqlite_start(s, SQL_INSTANCE_EACH, NULL, 0, &q, e));
    enum profd_status status = PROFD_OK;
    while (sqlite_row(s, q, &status, e)) {
        size_t n, size;
        struct store_instance i = {.uid = (uint32_t)sqlite3_column_int64(q, 0),
                                   .generation = (uint64_t)sqlite3_column_int64(q, 2),
                                   .seen = sqlite3_column_int64(q, 3),
                                   .ended = sqlite3_column_int(q, 5) != 0,
                                   .missing_since = sqlite3_column_int64(q, 6)};
        const uint8_t *bytes = sqlite_blob(q, 1, &n);
        i.snapshot = sqlite_blob(q, 4, &size);
        i.snapshot_size = size;
        memcpy(i.instance, bytes, n < sizeof i.instance ? n : sizeof i.instance);
        if (!each(context, &i)) {
            sqlite_finish(q);
            break;
        }
    }
    return status;
}

enum profd_status store_each_instance(struct store *s, bool (*each)(void *context, const struct store_instance *i),
                                      void *context, struct profd_error *e)
{
    return each_found(s, NULL, each, context, e);
}

enum profd_status store_each_namesake(struct store *s, const uint8_t instance[STORE_INSTANCE_SIZE],
                                      bool (*each)(void *context, const struct store_instance *i), void *context,
                                      struct profd_error *e)
{
    return each_found(s, instance, each, context, e);
}

enum profd_status store_get_living(struct store *s, enum store_living_kind kind, const struct store_scope *scope,
                                   const struct store_filter *filter, struct store_living *out, struct profd_error *e)
{
    const char *build = filter->build_id ? filter->build_id : "";
    char users[SQLITE_SCOPE_TEXT];
    sqlite3_stmt *q;
    *out = (struct store_living){.processes = 0};
    if (s->run == 0) {
        return PROFD_OK;
    }
    TRY(sqlite_start(s, kind == STORE_READ ? SQL_INSTANCE_READ : SQL_INSTANCE_UNREAD,
                     VALUES(INTEGER(s->run), INTEGER(filter->until), INTEGER(scope->all),
                            TEXT(sqlite_scope_format(scope, users)), TEXT(build), INTEGER(filter->as_program),
                            INTEGER(kind == STORE_READ ? filter->since : 0)),
                     &q, e));
    enum profd_status status = PROFD_OK;
    while (sqlite_row(s, q, &status, e)) {
        size_t n;
        const uint8_t *labels = sqlite_blob(q, 0, &n);
        int64_t earliest = sqlite3_column_int64(q, 2), latest = sqlite3_column_int64(q, 3);
        if (!labels_match((const char *)labels, n, filter->matchers, filter->matcher_count)) {
            continue;
        }
        out->earliest = out->processes == 0 || earliest < out->earliest ? earliest : out->earliest;
        out->latest = latest > out->latest ? latest : out->latest;
        out->processes += (uint64_t)sqlite3_column_int64(q, 1);
    }
    return status;
}

/* What a harvest of the instance with this id says of its children and its parent. first: it was not known; before: ns,
 * when it was harvested last. */
static enum profd_status sqlite_put_kin(struct store *s, const struct store_upload *u, int64_t id, bool first,
                                        int64_t before, struct profd_error *e)
{
    if (first) {
        /* Children that were read before their parent are not missing. */
        TRY(sqlite_run(s, SQL_INSTANCE_ADOPT, VALUES(BLOB(u->instance, sizeof u->instance), INTEGER(u->uid)), e));
        int found = sqlite3_changes(s->db);
        TRY(found > 0 ? sqlite_run(s, SQL_INSTANCE_BEAR, VALUES(INTEGER(id), INTEGER(-found), INTEGER(0)), e)
                      : PROFD_OK);
    }
    if (u->children > 0) {
        TRY(sqlite_run(s, SQL_INSTANCE_BEAR, VALUES(INTEGER(id), INTEGER(u->children), INTEGER(before)), e));
    }
    for (size_t i = 0; i < u->parent_count; i++) {
        const struct sqlite_value parent = BLOB(u->parents + i * STORE_INSTANCE_SIZE, STORE_INSTANCE_SIZE);
        const struct sqlite_value uid = INTEGER(u->uid);
        TRY(sqlite_run(s, SQL_INSTANCE_FOUND, VALUES(parent, uid), e));
        if (sqlite3_changes(s->db) == 0) {
            TRY(sqlite_run(s, SQL_INSTANCE_WAIT, VALUES(parent, INTEGER(id), uid), e));
        }
    }
    return u->told ? sqlite_run(s, SQL_INSTANCE_TELL, VALUES(INTEGER(id)), e) : PROFD_OK;
}

enum profd_status sqlite_remove_instances(struct store *s, int64_t before, struct profd_error *e)
{
    TRY(sqlite_run(s, SQL_INSTANCE_WAIT_REMOVE, VALUES(INTEGER(before), INTEGER(FORGET_SLICE)), e));
    TRY(sqlite_run(s, SQL_SNAPSHOT_REMOVE, VALUES(INTEGER(before), INTEGER(FORGET_SLICE)), e));
    return sqlite_run(s, SQL_INSTANCE_REMOVE, VALUES(INTEGER(before), INTEGER(FORGET_SLICE)), e);
}

/* A row of table instance. */
struct instance {
    bool known;
    int64_t id;
    uint64_t generation; /* 0: not known */
    bool has_upload;
    int64_t upload, series, hour;
    int64_t seen;
};

/* An upload that may grow. */
struct growing {
    int64_t start, end;
    uint32_t inexact, group;
    uint64_t started;
    int64_t host;
    size_t size; /* of its counts, encoded */
    int width;   /* number of the upload of its slice; 0: it has none yet */
    struct counts counts;
};

static enum profd_status load_instance(struct store *s, const struct store_upload *u, struct instance *out,
                                       struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    *out = (struct instance){.known = false};
    enum profd_status status =
        sqlite_first(s, SQL_INSTANCE_GET, VALUES(INTEGER(u->uid), BLOB(u->instance, sizeof u->instance)), &q, &row, e);
    if (!row) {
        return status;
    }
    *out = (struct instance){.known = true,
                             .id = sqlite3_column_int64(q, 0),
                             .generation = (uint64_t)sqlite3_column_int64(q, 1),
                             .has_upload = sqlite3_column_type(q, 2) != SQLITE_NULL,
                             .upload = sqlite3_column_int64(q, 2),
                             .series = sqlite3_column_int64(q, 3),
                             .hour = sqlite3_column_int64(q, 4),
                             .seen = sqlite3_column_int64(q, 5)};
    sqlite_finish(q);
    return PROFD_OK;
}

/* Its row, which uploads name. */
static enum profd_status add_instance(struct store *s, const struct store_upload *u, struct instance *i,
                                      struct profd_error *e)
{
    enum profd_status status = sqlite_run(s, SQL_INSTANCE_ADD,
                                          VALUES(INTEGER(u->uid), BLOB(u->instance, sizeof u->instance),
                                                 INTEGER(u->base + 1), INTEGER(u->received), INTEGER(u->ended)),
                                          e);
    i->id = sqlite3_last_insert_rowid(s->db);
    i->known = true;
    return status;
}

static enum profd_status save_instance(struct store *s, const struct store_upload *u, const struct instance *i,
                                       struct profd_error *e)
{
    struct sqlite_value upload = i->has_upload ? INTEGER(i->upload) : NOTHING,
                        series = i->has_upload ? INTEGER(i->series) : NOTHING,
                        hour = i->has_upload ? INTEGER(i->hour) : NOTHING;
    TRY(sqlite_run(s, SQL_INSTANCE_SET,
                   VALUES(INTEGER(i->id), INTEGER(u->base + 1), upload, series, hour, INTEGER(u->received),
                          INTEGER(u->ended), INTEGER(s->run)),
                   e));
    return sqlite_run(s, SQL_SNAPSHOT_SET, VALUES(INTEGER(i->id), BLOB(u->snapshot, u->snapshot_size)), e);
}

/* The upload of the instance in its hour and series, if it is still single and can be read. */
static enum profd_status load_growing(struct store *s, const struct instance *i, size_t builds, struct growing *g,
                                      bool *found, struct profd_error *e)
{
    sqlite3_stmt *q;
    size_t n;
    struct profd_error why;
    *found = false;
    enum profd_status status = sqlite_start(
        s, SQL_UPLOAD_GROWING,
        VALUES(INTEGER(i->upload), INTEGER(i->series), INTEGER(i->hour), INTEGER(STORE_GROWN_MOST)), &q, e);
    if (status == PROFD_OK) {
        status = sqlite_next(s, q, found, e);
    }
    if (!*found) {
        return status;
    }
    *g = (struct growing){.host = sqlite3_column_int64(q, 0),
                          .start = sqlite3_column_int64(q, 1),
                          .end = sqlite3_column_int64(q, 1) + sqlite3_column_int64(q, 2),
                          .inexact = (uint32_t)sqlite3_column_int64(q, 3),
                          .started = (uint64_t)sqlite3_column_int64(q, 4),
                          .group = (uint32_t)sqlite3_column_int64(q, 5)};
    const uint8_t *bytes = sqlite_blob(q, 6, &n);
    g->size = n;
    g->width = sqlite3_column_int(q, 7);
    status = counts_decode(bytes, n, (uint32_t)builds, &g->counts, &why);
    *found = status == PROFD_OK;
    if (status == PROFD_NO_MEMORY && e) {
        *e = why;
    }
    sqlite_finish(q);
    return status == PROFD_NO_MEMORY ? status : PROFD_OK; /* verification reports what cannot be read */
}

/* Difference between the counts now and before, as if they had arrived at once. */
static void judge_gain(const struct counts *before, const struct counts *now, struct sqlite_sums *one)
{
    uint64_t ticks, calls;
    struct share was[LIMIT_BUILDS] = {{0}};
    counts_totals(now, &one->ticks, &one->calls);
    counts_totals(before, &ticks, &calls);
    one->ticks -= ticks;
    one->calls -= calls;
    one->stack_ticks = sum_all(now->node_ticks, now->node_count) - sum_all(before->node_ticks, before->node_count);
    bool saturated = share_add_counts(one->shares, now);
    (void)share_add_counts(was, before);
    for (size_t i = 0; i < one->build_count; i++) {
        one->shares[i].nanoseconds -= was[i].nanoseconds;
        one->shares[i].calls -= was[i].calls;
    }
    one->inexact |= saturated ? (uint32_t)INEXACT_SATURATED : 0;
}

/* Replaces the row by the sum, and adds the difference to all sums. */
static enum profd_status save_grown(struct sqlite_batch *b, const struct store_upload *u,
                                    const struct sqlite_series *series, const struct instance *i,
                                    const struct growing *g, const struct counts *sum, const uint8_t *bytes,
                                    size_t size, struct profd_error *e)
{
    struct sqlite_sums one;
    bool full = sum->saturated;
    uint64_t started = g->started;
    int64_t start = u->start < g->start ? u->start : g->start, end = u->end > g->end ? u->end : g->end;
    sum_add(&started, u->processes_started, &full);
    sqlite_sums_init(&one, series->build_count);
    one.processes = started - g->started;
    one.first = u->start;
    one.last = u->end;
    one.inexact = g->inexact | u->inexact | (full ? (uint32_t)INEXACT_SATURATED : 0);
    one.raw_bytes = one.live_bytes = (uint64_t)size - g->size;
    judge_gain(&g->counts, sum, &one);
    (void)sqlite_batch_number(b); /* no row has this number; it only advances the epochs */
    TRY(sqlite_run(b->s, SQL_UPLOAD_GROW,
                   VALUES(INTEGER(i->upload), INTEGER(start), INTEGER(end - start), INTEGER(one.inexact),
                          INTEGER(started), BLOB(bytes, size)),
                   e));
    return sqlite_batch_add(b, u, series, &one, e);
}

/* Adds the difference to the row. *done is false if both together exceed the limits of an upload. */
static enum profd_status grow(struct sqlite_batch *b, const struct store_upload *u, const struct sqlite_series *series,
                              const struct instance *i, const struct growing *g, bool *done, struct profd_error *e)
{
    struct counts more, sum = {0};
    struct profd_error why;
    uint8_t *bytes = NULL;
    size_t size = 0;
    enum profd_status status = counts_decode(u->counts, u->counts_size, series->build_count, &more, &why);
    if (status != PROFD_OK) {
        return profd_error_set(e, status == PROFD_NO_MEMORY ? status : PROFD_INTERNAL, "a harvest's counts: %s",
                               why.sentence);
    }
    struct arena *scratch = arena_new(0);
    status = scratch ? rollup_grow(scratch, &g->counts, &more, &sum, &why) : profd_no_memory(&why);
    if (status == PROFD_OK) {
        status = counts_encode(&sum, &bytes, &size, &why);
    }
    counts_done(&more);
    *done = status == PROFD_OK;
    if (status == PROFD_OK) {
        status = save_grown(b, u, series, i, g, &sum, bytes, size, e);
    } else if (status == PROFD_TOO_LARGE) {
        status = PROFD_OK;
    } else {
        (void)profd_error_set(e, status, "%s", why.sentence);
    }
    arena_free(scratch);
    free(bytes);
    return status;
}

/* Adds the difference to the instance's upload, or creates one; i then has its number. */
static enum profd_status put_counts(struct sqlite_batch *b, const struct store_upload *u, struct instance *i,
                                    struct profd_error *e)
{
    int64_t host = 0;
    const struct sqlite_series *series = NULL;
    struct growing g = {0};
    bool found = false, done = false;
    struct store *s = b->s;
    TRY(sqlite_intern_host(s, u->host, &host, e));
    TRY(sqlite_intern_series(s, u, &series, e));
    enum profd_status status = PROFD_OK;
    if (i->has_upload && i->series == series->id && i->hour == u->end / SQLITE_HOUR) {
        status = load_growing(s, i, series->build_count, &g, &found, e);
    }
    if (found) {
        bool same_slice = g.width > 0 && sqlite_slice_at(g.width, g.end) == sqlite_slice_at(g.width, u->end);
        if (g.host == host && g.group == u->group && same_slice) {
            status = grow(b, u, series, i, &g, &done, e);
        }
        counts_done(&g.counts);
    }
    if (status != PROFD_OK || done) {
        return status;
    }
    i->has_upload = true;
    i->series = series->id;
    i->hour = u->end / SQLITE_HOUR;
    return sqlite_batch_put(b, u, host, series, i->id, &i->upload, e);
}

enum profd_status sqlite_put_harvest(struct sqlite_batch *b, const struct store_upload *u, enum store_outcome *outcome,
                                     struct profd_error *e)
{
    struct instance i;
    bool may = true;
    if (u->counts_size > 0 && (u->ticks > 0 || u->calls > 0)) {
        TRY(sqlite_share_take(b->s, &b->shares, u->uid, u->counts_size + (u->base == 0 ? u->snapshot_size : 0), &may,
                              e));
    }
    if (!may) { /* it counts as one that this run has not read */
        *outcome = STORE_OVER_SHARE;
        return sqlite_run(b->s, SQL_INSTANCE_PUT_OFF, VALUES(INTEGER(u->uid), BLOB(u->instance, sizeof u->instance)),
                          e);
    }
    TRY(load_instance(b->s, u, &i, e));
    *outcome = i.generation == u->base ? STORE_STORED : STORE_STALE;
    if (*outcome == STORE_STALE) {
        return PROFD_OK;
    }
    const bool first = !i.known;
    if (first) {
        TRY(add_instance(b->s, u, &i, e));
    }
    if (u->counts_size > 0) {
        TRY(put_counts(b, u, &i, e));
    } else if (i.has_upload) { /* it is read again or has ended, and reports state that */
        (void)sqlite_batch_number(b);
        sqlite_batch_touch(b, i.series);
    }
    TRY(save_instance(b->s, u, &i, e));
    return sqlite_put_kin(b->s, u, i.id, first, !first ? i.seen : u->counts_size > 0 ? u->start : u->received, e);
}
