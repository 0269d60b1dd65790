#include <string.h>

#include "core/sum.h"
#include "proto/message.h"
#include "store/sqlite_sums.h"

#define SECOND INT64_C(1000000000)

/* What a batch adds to one build as one user sees it. */
struct build_key {
    int64_t build, uid;
};
struct build_delta {
    const char *name; /* of the first upload */
    int64_t added;    /* its number */
    bool is_program;
    int64_t first, last;
    uint64_t uploads, processes, nanoseconds, calls;
    uint32_t inexact;
};

/* One transaction's worth of uploads. */
struct batch {
    struct sqlite_store *s;
    struct intern builds; /* build_key → build_delta */
    struct sqlite_tally tally;
    bool changed;
};

static enum profd_status no_memory(struct profd_error *e)
{
    return profd_error_set(e, PROFD_NO_MEMORY, "no memory to sum up a batch of uploads");
}

static void add_to_delta(struct build_delta *d, const struct store_upload *u, const struct store_build *build, bool program)
{
    bool saturated = false;
    sum_add(&d->uploads, 1, &saturated);
    sum_add(&d->processes, u->processes_started, &saturated);
    sum_add(&d->nanoseconds, build->nanoseconds, &saturated);
    sum_add(&d->calls, build->calls, &saturated);
    d->inexact |= u->inexact | (saturated ? (uint32_t)INEXACT_SATURATED : 0);
    d->is_program |= program;
    if (u->start < d->first)
        d->first = u->start;
    if (u->end > d->last)
        d->last = u->end;
}

static enum profd_status add_to_builds(struct batch *b, const struct store_upload *u, const struct sqlite_series *series,
                                       struct profd_error *e)
{
    for (uint32_t i = 0; i < series->build_count; i++) {
        struct build_key key = {.build = series->builds[i], .uid = u->uid};
        struct build_delta *d = intern_find(&b->builds, &key, sizeof key);
        if (!d) {
            struct build_delta fresh = {
                .name = u->builds[i].name, .added = b->s->state.number, .first = u->start, .last = u->end};
            d = intern_put(&b->builds, &key, sizeof key, &fresh, sizeof fresh);
        }
        if (!d)
            return no_memory(e);
        add_to_delta(d, u, &u->builds[i], i == u->program);
    }
    return PROFD_OK;
}

static enum profd_status sum_up(struct batch *b, const struct store_upload *u, const struct sqlite_series *series,
                                struct profd_error *e)
{
    bool saturated = false;
    struct sqlite_sums *sums = sqlite_tally_sums(&b->tally, series->id, u->end / SQLITE_HOUR, series->build_count);
    if (!sums)
        return no_memory(e);
    sum_add(&sums->uploads, 1, &saturated);
    sum_add(&sums->processes, u->processes_started, &saturated);
    sum_add(&sums->ticks, u->ticks, &saturated);
    sum_add(&sums->calls, u->calls, &saturated);
    sums->raw_uploads++;
    sums->raw_bytes += u->counts_size;
    for (uint32_t i = 0; i < series->build_count; i++) {
        sum_add(&sums->shares[i].nanoseconds, u->builds[i].nanoseconds, &saturated);
        sum_add(&sums->shares[i].calls, u->builds[i].calls, &saturated);
    }
    sums->inexact |= u->inexact | (saturated ? (uint32_t)INEXACT_SATURATED : 0);
    sums->first = u->start < sums->first ? u->start : sums->first;
    sums->last = u->end > sums->last ? u->end : sums->last;
    sums->raw_since = u->received / SECOND < sums->raw_since ? u->received / SECOND : sums->raw_since;
    struct sqlite_state *t = &b->s->state;
    sum_add(&t->uploads, 1, &saturated);
    sum_add(&t->ticks, u->ticks, &saturated);
    sum_add(&t->calls, u->calls, &saturated);
    t->raw_uploads++;
    t->raw_bytes += u->counts_size;
    return add_to_builds(b, u, series, e);
}

static enum profd_status put_upload(struct batch *b, const struct store_upload *u, enum store_outcome *outcome,
                                    struct profd_error *e)
{
    int64_t host;
    const struct sqlite_series *series;
    enum profd_status status = sqlite_intern_host(b->s, u->host, &host, e);
    if (status == PROFD_OK)
        status = sqlite_take_id(b->s, u, host, outcome, e);
    if (status != PROFD_OK || *outcome != STORE_STORED)
        return status;
    status = sqlite_intern_series(b->s, u, &series, e);
    if (status != PROFD_OK)
        return status;
    b->changed = true;
    b->s->state.number++;
    status = sqlite_run(b->s, SQL_UPLOAD_ADD,
                        VALUES(INTEGER(b->s->state.number), INTEGER(series->id), INTEGER(u->end / SQLITE_HOUR), INTEGER(host),
                               INTEGER(u->start), INTEGER(u->end - u->start), INTEGER(u->inexact),
                               INTEGER(u->processes_started), INTEGER(u->group), BLOB(u->counts, u->counts_size)),
                        e);
    return status == PROFD_OK ? sum_up(b, u, series, e) : status;
}

/* Adds what the table says already. */
static enum profd_status add_stored(struct batch *b, const struct build_key *key, struct build_delta *d,
                                    struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false, saturated = false;
    enum profd_status status = sqlite_start(b->s, SQL_BUILD_USER_FIND, VALUES(INTEGER(key->build), INTEGER(key->uid)), &q, e);
    if (status == PROFD_OK)
        status = sqlite_next(b->s, q, &row, e);
    if (status != PROFD_OK || !row)
        return status;
    d->is_program |= sqlite3_column_int(q, 0) != 0;
    if (sqlite3_column_int64(q, 1) < d->first)
        d->first = sqlite3_column_int64(q, 1);
    if (sqlite3_column_int64(q, 2) > d->last)
        d->last = sqlite3_column_int64(q, 2);
    sum_add(&d->uploads, (uint64_t)sqlite3_column_int64(q, 3), &saturated);
    sum_add(&d->processes, (uint64_t)sqlite3_column_int64(q, 4), &saturated);
    sum_add(&d->nanoseconds, (uint64_t)sqlite3_column_int64(q, 5), &saturated);
    sum_add(&d->calls, (uint64_t)sqlite3_column_int64(q, 6), &saturated);
    d->inexact |= (uint32_t)sqlite3_column_int64(q, 7) | (saturated ? (uint32_t)INEXACT_SATURATED : 0);
    sqlite_finish(q);
    return PROFD_OK;
}

static enum profd_status flush_build(struct batch *b, const struct build_key *key, struct build_delta *d,
                                     struct profd_error *e)
{
    int64_t epoch = b->s->state.number;
    enum profd_status status = add_stored(b, key, d, e);
    if (status == PROFD_OK)
        status = sqlite_run(b->s, SQL_BUILD_USER_SET,
                            VALUES(INTEGER(key->build), INTEGER(key->uid), INTEGER(epoch), INTEGER(d->added),
                                   INTEGER(d->is_program), INTEGER(d->first), INTEGER(d->last), INTEGER(d->uploads),
                                   INTEGER(d->processes), INTEGER(d->nanoseconds), INTEGER(d->calls), INTEGER(d->inexact),
                                   TEXT(d->name)),
                            e);
    if (status == PROFD_OK)
        status = sqlite_run(b->s, SQL_BUILD_EPOCH_SET, VALUES(INTEGER(key->build), INTEGER(epoch)), e);
    if (status == PROFD_OK)
        status = sqlite_run(b->s, SQL_USER_EPOCH_SET, VALUES(INTEGER(key->uid), INTEGER(epoch)), e);
    return status;
}

static enum profd_status flush(struct batch *b, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    size_t position = 0;
    const void *key;
    if (!b->changed)
        return PROFD_OK;
    for (struct build_delta *d;
         status == PROFD_OK && (d = intern_next(&b->builds, &position, &key, NULL, NULL));) {
        struct build_key copy; /* keys stand unaligned in the table */
        memcpy(&copy, key, sizeof copy);
        status = flush_build(b, &copy, d, e);
    }
    if (status == PROFD_OK)
        status = sqlite_tally_flush(b->s, &b->tally, e);
    b->s->state.list_epoch = b->s->state.number;
    return status == PROFD_OK ? sqlite_save_state(b->s, e) : status;
}

enum profd_status sqlite_put_uploads(struct store *base, const struct store_upload *uploads, size_t n,
                                     enum store_outcome *outcomes, struct profd_error *e)
{
    struct batch b = {.s = sqlite_self(base)};
    enum profd_status status = sqlite_write_begin(b.s, e);
    if (status != PROFD_OK)
        return status;
    intern_init(&b.builds, 0);
    sqlite_tally_init(&b.tally);
    for (size_t i = 0; status == PROFD_OK && i < n; i++)
        status = put_upload(&b, &uploads[i], &outcomes[i], e);
    if (status == PROFD_OK)
        status = flush(&b, e);
    status = sqlite_write_end(b.s, status, e);
    intern_clear(&b.builds);
    sqlite_tally_done(&b.tally);
    return status;
}
