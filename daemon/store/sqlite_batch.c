#include "store/sqlite_batch.h"

#include <string.h>

#include "core/sum.h"
#include "proto/message.h"
#include "store/sqlite_segment.h"
#include "store/sqlite_slice.h"

#define SECOND INT64_C(1000000000)

/* Sums that a batch adds to one build as one user sees it. */
struct build_key {
    int64_t build, uid;
};
struct build_delta {
    const char *name; /* of the first upload */
    int64_t added;    /* its number */
    struct sqlite_shown more;
};

void sqlite_batch_init(struct sqlite_batch *b, struct store *s)
{
    b->s = s;
    b->changed = false;
    b->since = 0;
    hashmap_init(&b->builds, 0);
    hashmap_init(&b->shares, 0);
    sqlite_tally_init(&b->tally);
}

void sqlite_batch_done(struct sqlite_batch *b)
{
    hashmap_clear(&b->builds);
    hashmap_clear(&b->shares);
    sqlite_tally_done(&b->tally);
}

int64_t sqlite_batch_number(struct sqlite_batch *b)
{
    b->changed = true;
    return ++b->s->state.number;
}

enum profd_status sqlite_judge_upload(const struct store_upload *u, struct profd_error *e)
{
    if (u->program >= u->build_count) {
        return profd_error_set(e, PROFD_INTERNAL, "program %u is not one of the upload's %zu builds", u->program,
                               u->build_count);
    }
    if (u->start > u->end || u->start < 0) {
        return profd_error_set(e, PROFD_INTERNAL, "an upload's window ends before it starts");
    }
    if (u->group >= COUNTS_GROUPS) {
        return profd_error_set(e, PROFD_INTERNAL, "an upload of group %u; there are %u", u->group, COUNTS_GROUPS);
    }
    return PROFD_OK;
}

static void add_to_delta(struct sqlite_shown *x, const struct sqlite_sums *one, size_t place, bool program)
{
    bool saturated = false;
    sum_add(&x->uploads, one->uploads, &saturated);
    sum_add(&x->processes, one->processes, &saturated);
    sum_add(&x->nanoseconds, one->shares[place].nanoseconds, &saturated);
    sum_add(&x->calls, one->shares[place].calls, &saturated);
    x->inexact |= one->inexact | (saturated ? (uint32_t)INEXACT_SATURATED : 0);
    x->is_program |= program;
    x->first = one->first < x->first ? one->first : x->first;
    x->last = one->last > x->last ? one->last : x->last;
}

static enum profd_status add_to_builds(struct sqlite_batch *b, const struct store_upload *u,
                                       const struct sqlite_series *series, const struct sqlite_sums *one,
                                       struct profd_error *e)
{
    for (uint32_t i = 0; i < series->build_count; i++) {
        struct build_key key = {.build = series->builds[i], .uid = u->uid};
        struct build_delta *d = hashmap_find(&b->builds, &key, sizeof key);
        if (!d) {
            struct build_delta fresh = {.name = u->builds[i].name,
                                        .added = b->s->state.number,
                                        .more = {.first = INT64_MAX, .last = INT64_MIN}};
            d = hashmap_put(&b->builds, &key, sizeof key, &fresh, sizeof fresh);
        }
        if (!d) {
            return profd_no_memory(e);
        }
        add_to_delta(&d->more, one, i, i == u->program);
    }
    return PROFD_OK;
}

enum profd_status sqlite_batch_add(struct sqlite_batch *b, const struct store_upload *u,
                                   const struct sqlite_series *series, const struct sqlite_sums *one,
                                   struct profd_error *e)
{
    bool saturated = false;
    TRY(b->s->relay_settled ? PROFD_OK : sqlite_relay_settle(b->s, e));
    if (b->s->relaying) {
        TRY(sqlite_segment_add(b->s, u, series->id, one, b->since, e));
    }
    struct sqlite_sums *sums = sqlite_tally_sums(&b->tally, series->id, u->end / SQLITE_HOUR, series->build_count);
    if (!sums) {
        return profd_no_memory(e);
    }
    sqlite_sums_add(sums, one);
    struct sqlite_state *t = &b->s->state;
    sum_add(&t->uploads, one->uploads, &saturated);
    sum_add(&t->ticks, one->ticks, &saturated);
    sum_add(&t->calls, one->calls, &saturated);
    t->raw_uploads += one->raw_uploads;
    t->raw_bytes += one->raw_bytes; /* modulo 2^64, as in sqlite_sums_add */
    t->live_bytes += one->live_bytes;
    return add_to_builds(b, u, series, one, e);
}

/* Sums of one upload, by its own statements. */
static void sum_up(const struct store_upload *u, size_t builds, struct sqlite_sums *one)
{
    sqlite_sums_init(one, builds);
    one->uploads = one->raw_uploads = 1;
    one->processes = u->processes_started;
    one->ticks = u->ticks;
    one->calls = u->calls;
    one->stack_ticks = u->stack_ticks;
    one->first = u->start;
    one->last = u->end;
    one->inexact = u->inexact;
    one->raw_bytes = u->counts_size;
    one->raw_since = u->received / SECOND;
    for (size_t i = 0; i < builds; i++) {
        one->shares[i] = (struct share){.nanoseconds = u->builds[i].nanoseconds, .calls = u->builds[i].calls};
    }
}

enum profd_status sqlite_batch_put(struct sqlite_batch *b, const struct store_upload *u, int64_t host,
                                   const struct sqlite_series *series, int64_t instance, int64_t *number,
                                   struct profd_error *e)
{
    struct sqlite_sums one;
    *number = sqlite_batch_number(b);
    TRY(sqlite_run(b->s, SQL_UPLOAD_ADD,
                   VALUES(INTEGER(*number), INTEGER(series->id), INTEGER(u->end / SQLITE_HOUR), INTEGER(host),
                          INTEGER(u->start), INTEGER(u->end - u->start), INTEGER(u->inexact),
                          INTEGER(u->processes_started), INTEGER(u->group), BLOB(u->counts, u->counts_size),
                          INTEGER(instance != 0 ? SQLITE_SLICE_NARROW : 0), INTEGER(instance)),
                   e));
    sum_up(u, series->build_count, &one);
    one.live_bytes = instance != 0 ? u->counts_size : 0;
    if (instance != 0) {
        TRY(sqlite_slice_add(b->s, &(struct sqlite_slice){series->id, SQLITE_SLICE_NARROW, u->end, instance, *number},
                             e));
    }
    return sqlite_batch_add(b, u, series, &one, e);
}

/* Adds the present values of the table. */
static enum profd_status add_stored(struct sqlite_batch *b, const struct build_key *key, struct sqlite_shown *x,
                                    struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false, saturated = false;
    TRY(sqlite_first(b->s, SQL_BUILD_USER_FIND, VALUES(INTEGER(key->build), INTEGER(key->uid)), &q, &row, e));
    if (!row) {
        return PROFD_OK;
    }
    x->is_program |= sqlite3_column_int(q, 0) != 0;
    if (sqlite3_column_int64(q, 1) < x->first) {
        x->first = sqlite3_column_int64(q, 1);
    }
    if (sqlite3_column_int64(q, 2) > x->last) {
        x->last = sqlite3_column_int64(q, 2);
    }
    sum_add(&x->uploads, (uint64_t)sqlite3_column_int64(q, 3), &saturated);
    sum_add(&x->processes, (uint64_t)sqlite3_column_int64(q, 4), &saturated);
    sum_add(&x->nanoseconds, (uint64_t)sqlite3_column_int64(q, 5), &saturated);
    sum_add(&x->calls, (uint64_t)sqlite3_column_int64(q, 6), &saturated);
    x->inexact |= (uint32_t)sqlite3_column_int64(q, 7) | (saturated ? (uint32_t)INEXACT_SATURATED : 0);
    sqlite_finish(q);
    return PROFD_OK;
}

static enum profd_status flush_build(struct sqlite_batch *b, const struct build_key *key, struct build_delta *d,
                                     struct profd_error *e)
{
    int64_t epoch = b->s->state.number;
    struct sqlite_shown *x = &d->more;
    TRY(add_stored(b, key, x, e));
    TRY(sqlite_run(b->s, SQL_BUILD_USER_SET,
                   VALUES(INTEGER(key->build), INTEGER(key->uid), INTEGER(epoch), INTEGER(d->added),
                          INTEGER(x->is_program), INTEGER(x->first), INTEGER(x->last), INTEGER(x->uploads),
                          INTEGER(x->processes), INTEGER(x->nanoseconds), INTEGER(x->calls), INTEGER(x->inexact),
                          TEXT(d->name)),
                   e));
    TRY(sqlite_run(b->s, SQL_BUILD_EPOCH_SET, VALUES(INTEGER(key->build), INTEGER(epoch)), e));
    return sqlite_run(b->s, SQL_USER_EPOCH_SET, VALUES(INTEGER(key->uid), INTEGER(epoch)), e);
}

enum profd_status sqlite_batch_flush(struct sqlite_batch *b, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    size_t position = 0;
    const void *key;
    if (!b->changed) {
        return PROFD_OK;
    }
    for (struct build_delta *d; status == PROFD_OK && (d = hashmap_next(&b->builds, &position, &key));) {
        struct build_key copy; /* keys are unaligned */
        memcpy(&copy, key, sizeof copy);
        status = flush_build(b, &copy, d, e);
    }
    if (status == PROFD_OK) {
        status = sqlite_tally_flush(b->s, &b->tally, e);
    }
    b->s->state.list_epoch = b->s->state.number;
    return status == PROFD_OK ? sqlite_save_state(b->s, e) : status;
}
