#include "store/sqlite_batch.h"

#include <string.h>

#include "core/sum.h"
#include "proto/message.h"
#include "store/sqlite_segment.h"
#include "store/sqlite_slice.h"

#define SECOND INT64_C(1000000000)

struct hour_key {
    int64_t series, hour;
};

void sqlite_batch_init(struct sqlite_batch *b, struct store *s)
{
    b->s = s;
    b->changed = false;
    hashmap_init(&b->shares, 0);
    hashmap_init(&b->hours, 0);
    buffer_init(&b->touched, SIZE_MAX);
}

void sqlite_batch_done(struct sqlite_batch *b)
{
    hashmap_clear(&b->shares);
    hashmap_clear(&b->hours);
    buffer_done(&b->touched);
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

enum profd_status sqlite_batch_add(struct sqlite_batch *b, const struct store_upload *u,
                                   const struct sqlite_series *series, const struct sqlite_sums *one,
                                   struct profd_error *e)
{
    bool saturated = false;
    TRY(b->s->relay_settled ? PROFD_OK : sqlite_relay_settle(b->s, e));
    if (b->s->relaying) {
        TRY(sqlite_segment_add(b->s, u, series->id, one, e));
    }
    const struct hour_key key = {series->id, u->end / SQLITE_HOUR};
    struct sqlite_sums none, *sums = hashmap_find(&b->hours, &key, sizeof key);
    if (!sums) {
        sqlite_sums_init(&none, series->build_count);
        sums = hashmap_put(&b->hours, &key, sizeof key, &none, SQLITE_SUMS_SIZE(series->build_count));
    }
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
    return PROFD_OK;
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

void sqlite_batch_touch(struct sqlite_batch *b, int64_t series)
{
    b->changed = true;
    buffer_add_format(&b->touched, "%c%lld", b->touched.size > 0 ? ',' : '[', (long long)series);
}

/* Adds an hour's sums to the ledger and to those of its series. */
static enum profd_status flush_hour(struct store *s, const struct hour_key *key, const struct sqlite_sums *more,
                                    struct profd_error *e)
{
    struct sqlite_sums sums;
    bool found;
    TRY(sqlite_ledger_load(s, key->series, key->hour, more->build_count, &sums, &found, e));
    const bool older = found && more->raw_since < sums.raw_since;
    sqlite_sums_add(&sums, more);
    TRY(sqlite_ledger_save(s, key->series, key->hour, &sums, e));
    if (older) {
        TRY(sqlite_run(s, SQL_LEDGER_SINCE, VALUES(INTEGER(key->series), INTEGER(key->hour), INTEGER(sums.raw_since)),
                       e));
    }
    TRY(sqlite_series_load(s, key->series, more->build_count, &sums, &found, e));
    if (!found) {
        return profd_error_set(e, PROFD_INTERNAL, "series %lld vanished", (long long)key->series);
    }
    sqlite_sums_add(&sums, more);
    return sqlite_series_save(s, key->series, &sums, e);
}

enum profd_status sqlite_batch_flush(struct sqlite_batch *b, struct profd_error *e)
{
    static const enum sqlite_sql touches[] = {SQL_TOUCH_SERIES_BUILDS, SQL_TOUCH_SERIES_BUILD_USERS,
                                              SQL_TOUCH_SERIES_USERS};
    size_t position = 0;
    const void *key;
    if (!b->changed) {
        return PROFD_OK;
    }
    for (const struct sqlite_sums *sums; (sums = hashmap_next(&b->hours, &position, &key));) {
        struct hour_key copy; /* keys are unaligned */
        memcpy(&copy, key, sizeof copy);
        TRY(flush_hour(b->s, &copy, sums, e));
        sqlite_batch_touch(b, copy.series);
    }
    buffer_add(&b->touched, "]", sizeof "]");
    if (b->touched.failed) {
        return profd_no_memory(e);
    }
    for (size_t i = 0; b->touched.size > sizeof "]" && i < sizeof touches / sizeof touches[0]; i++) {
        TRY(sqlite_run(b->s, touches[i], VALUES(TEXT(b->touched.data), INTEGER(b->s->state.number)), e));
    }
    b->s->state.list_epoch = b->s->state.number;
    return sqlite_save_state(b->s, e);
}
