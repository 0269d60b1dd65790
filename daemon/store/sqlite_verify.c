/* Compares the stored data with the ledger, hour by hour. */
#include "store/sqlite_interval.h"
#include "store/sqlite_verify.h"

#include <inttypes.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/sum.h"
#include "proto/message.h"

#define SLICE_NANOSECONDS 100000000
#define PAGES_A_STEP 256

/* Stored data of an hour. */
struct found_hour {
    struct sqlite_sums sums;
    uint64_t rounding; /* nanoseconds by which the ledger may be lower for a build, because it rounds every upload */
    bool clocks_full;  /* a sum has stacks of as many clocks as fit: those of further clocks were left out of it */
};

/* The upload of a live process is among the slices, too. */
static enum profd_status verify_slice(struct sqlite_verifying *v, const struct sqlite_slice *slice, const char *where,
                                      struct profd_error *e)
{
    bool found = false;
    TRY(sqlite_slice_find(v->s, slice, &found, e));
    if (!found) {
        sqlite_verify_tell(v, "%s: upload %" PRId64 " of a live process has no slice of %d minutes", where,
                           slice->upload, slice->width);
    }
    return PROFD_OK;
}

/* Adds a row of SQL_RAW_EACH. */
static enum profd_status add_raw(struct sqlite_verifying *v, sqlite3_stmt *q, const struct sqlite_identity *series,
                                 struct found_hour *h, const char *where, struct profd_error *e)
{
    struct sqlite_sums one;
    struct counts c;
    struct profd_error why;
    size_t n;
    int64_t start = sqlite3_column_int64(q, 2);
    const uint8_t *counts = sqlite_blob(q, 7, &n);
    sqlite_sums_init(&one, series->build_count);
    one.uploads = one.raw_uploads = (uint64_t)sqlite3_column_int64(q, 9);
    one.raw_bytes = n;
    one.live_bytes = sqlite3_column_int(q, 8) > 0 ? n : 0;
    one.processes = (uint64_t)sqlite3_column_int64(q, 5);
    one.first = start;
    one.last = start + sqlite3_column_int64(q, 3);
    one.inexact = (uint32_t)sqlite3_column_int64(q, 4);
    enum profd_status status = counts_decode(counts, n, (uint32_t)series->build_count, &c, &why);
    if (status == PROFD_OK) {
        counts_totals(&c, &one.ticks, &one.calls);
        one.stack_ticks = sum_all(c.node_ticks, c.node_count);
        (void)share_add_counts(one.shares, &c);
        h->rounding += one.uploads > 1 ? one.uploads * c.histogram_count : 0;
        counts_done(&c);
    } else if (status == PROFD_NO_MEMORY) {
        if (e) {
            *e = why;
        }
        return status;
    } else {
        sqlite_verify_tell(v, "%s: upload %" PRId64 " cannot be read: %s", where, (int64_t)sqlite3_column_int64(q, 0),
                           why.sentence);
    }
    sqlite_sums_add(&h->sums, &one);
    v->uploads += one.uploads;
    const struct sqlite_slice slice = {series->id, sqlite3_column_int(q, 8), one.last, sqlite3_column_int64(q, 10),
                                       sqlite3_column_int64(q, 0)};
    return slice.width > 0 ? verify_slice(v, &slice, where, e) : PROFD_OK;
}

static enum profd_status add_raws(struct sqlite_verifying *v, const struct sqlite_identity *series, int64_t hour,
                                  struct found_hour *h, const char *where, struct profd_error *e)
{
    sqlite3_stmt *q;
    TRY(sqlite_start(v->s, SQL_RAW_EACH, VALUES(INTEGER(series->id), INTEGER(hour), INTEGER(-1)), &q, e));
    enum profd_status status = PROFD_OK;
    while (sqlite_row(v->s, q, &status, e)) {
        status = add_raw(v, q, series, h, where, e);
    }
    return status;
}

/* Checks that each number of a sum is the sum of its 16 groups. */
static bool spread_fits(const uint64_t *totals, const uint64_t *spread, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint64_t sum = 0;
        bool saturated = false;
        for (uint32_t g = 0; g < COUNTS_GROUPS; g++) {
            sum_add(&sum, spread[(size_t)i * COUNTS_GROUPS + g], &saturated);
        }
        if (sum != totals[i]) {
            return false;
        }
    }
    return true;
}

/* Adds a sum of the hour or of a slice, and compares its columns with its counts. */
static enum profd_status add_sum(struct sqlite_verifying *v, const struct sqlite_identity *series, int level,
                                 int64_t at, struct found_hour *h, const char *where, struct profd_error *e)
{
    struct folded row;
    struct sqlite_sums one;
    bool found;
    sqlite_sums_init(&one, series->build_count);
    TRY(sqlite_verify_load(v, series, level, at, &row, &found, e));
    if (!found) {
        return PROFD_OK;
    }
    one.uploads = row.uploads;
    one.processes = row.processes;
    if (row.processes < SUM_MAX) {
        sqlite_verify_equal(v, where, "processes", "column of the hour's sum", row.processes, "sum of its groups",
                            random_groups_known(&row.groups) + row.groups.unknown);
    }
    one.first = row.first;
    one.last = row.last;
    one.inexact = row.inexact;
    counts_totals(&row.counts, &one.ticks, &one.calls);
    one.stack_ticks = sum_all(row.counts.node_ticks, row.counts.node_count);
    h->clocks_full |= row.counts.tree_count == LIMIT_STACK_TREES;
    (void)share_add_rollup(one.shares, &row.counts);
    sqlite_verify_equal(v, where, "ticks", "column of the hour's sum", row.ticks, "sum itself", one.ticks);
    sqlite_verify_equal(v, where, "calls", "column of the hour's sum", row.calls, "sum itself", one.calls);
    if (!spread_fits(row.counts.bin_ticks, row.spread.bins, row.counts.bin_count) ||
        !spread_fits(row.counts.calls, row.spread.arcs, row.counts.arc_count) ||
        !spread_fits(row.counts.node_ticks, row.spread.nodes, row.counts.node_count)) {
        sqlite_verify_tell(v, "%s: the groups of the hour's sum do not add up to it", where);
    }
    sqlite_sums_add(&h->sums, &one);
    h->rounding += row.uploads * row.counts.histogram_count;
    v->uploads += row.uploads;
    return PROFD_OK;
}

/* Adds the hour's sum and those of its slices. */
static enum profd_status add_sums(struct sqlite_verifying *v, const struct sqlite_identity *series, int64_t hour,
                                  struct found_hour *h, const char *where, struct profd_error *e)
{
    TRY(add_sum(v, series, SQLITE_LEVEL_HOUR, hour, h, where, e));
    for (int level = SQLITE_LEVEL_SLICE; level < SQLITE_LEVEL_SLICES; level++) {
        const int64_t each = SQLITE_SLICE_WIDE / sqlite_level_minutes(level);
        int64_t at = hour * each;
        for (bool found = true; found; at++) {
            TRY(sqlite_find(v->s, SQL_ROLLUP_OPEN_AT,
                            VALUES(INTEGER(series->id), INTEGER(level), INTEGER(at), INTEGER(hour * each + each - 1)),
                            &at, &found, e));
            if (found) {
                TRY(add_sum(v, series, level, at, h, where, e));
            }
        }
    }
    return PROFD_OK;
}

static void compare_shares(struct sqlite_verifying *v, const struct found_hour *h, const struct sqlite_sums *ledger,
                           const char *where)
{
    for (size_t i = 0; i < ledger->build_count; i++) {
        const struct share *stored = &h->sums.shares[i], *said = &ledger->shares[i];
        if (stored->nanoseconds >= SUM_MAX || stored->calls >= SUM_MAX) {
            continue;
        }
        if (stored->calls != said->calls) {
            sqlite_verify_tell(v, "%s: calls of build %zu: %" PRIu64 " by the ledger, %" PRIu64 " by the counts", where,
                               i, said->calls, stored->calls);
        }
        if (said->nanoseconds > stored->nanoseconds || stored->nanoseconds - said->nanoseconds > h->rounding) {
            sqlite_verify_tell(v, "%s: nanoseconds of build %zu: %" PRIu64 " by the ledger, %" PRIu64 " by the counts",
                               where, i, said->nanoseconds, stored->nanoseconds);
        }
    }
}

/* Folding keeps the ticks of stacks; only those of too many clocks are left out. */
static void compare_stacks(struct sqlite_verifying *v, const struct found_hour *h, const struct sqlite_sums *ledger,
                           const char *where)
{
    const uint64_t stored = h->sums.stack_ticks, said = ledger->stack_ticks;
    const bool fewer_may_be = h->clocks_full && stored < said;
    if (stored < SUM_MAX && !fewer_may_be) {
        sqlite_verify_equal(v, where, "ticks of stacks", "ledger", said, "stored rows", stored);
    }
}

static void compare_hour(struct sqlite_verifying *v, const struct found_hour *h, const struct sqlite_sums *l,
                         const char *where)
{
    static const char in_ledger[] = "ledger", in_rows[] = "stored rows";
    const struct sqlite_sums *x = &h->sums;
    uint32_t mask = ~(uint32_t)INEXACT_SATURATED; /* a saturated sum of the ledger may be correct */
    sqlite_verify_equal(v, where, "uploads", in_ledger, l->uploads, in_rows, x->uploads);
    sqlite_verify_equal(v, where, "processes", in_ledger, l->processes, in_rows, x->processes);
    sqlite_verify_equal(v, where, "ticks", in_ledger, l->ticks, in_rows, x->ticks);
    sqlite_verify_equal(v, where, "calls", in_ledger, l->calls, in_rows, x->calls);
    sqlite_verify_equal(v, where, "earliest start", in_ledger, (uint64_t)l->first, in_rows, (uint64_t)x->first);
    sqlite_verify_equal(v, where, "latest end", in_ledger, (uint64_t)l->last, in_rows, (uint64_t)x->last);
    sqlite_verify_equal(v, where, "reasons for inexactness", in_ledger, l->inexact & mask, in_rows, x->inexact & mask);
    sqlite_verify_equal(v, where, "single uploads", in_ledger, l->raw_uploads, in_rows, x->raw_uploads);
    sqlite_verify_equal(v, where, "bytes of single uploads", in_ledger, l->raw_bytes, in_rows, x->raw_bytes);
    sqlite_verify_equal(v, where, "bytes of live processes", in_ledger, l->live_bytes, in_rows, x->live_bytes);
    if (l->raw_uploads == 0 && l->raw_since != INT64_MAX) {
        sqlite_verify_tell(v, "%s: the ledger waits for single uploads that it does not have", where);
    }
    compare_shares(v, h, l, where);
    compare_stacks(v, h, l, where);
}

/* If there are totals by host, they are the ledger's together. */
static enum profd_status verify_totals(struct sqlite_verifying *v, int64_t series, int64_t hour,
                                       const struct sqlite_sums *ledger, const char *where, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    enum profd_status status =
        sqlite_first(v->s, SQL_HOST_TOTAL_SUM, VALUES(INTEGER(series), INTEGER(hour)), &q, &row, e);
    if (row) {
        const struct store_amount said = {ledger->uploads, ledger->ticks, ledger->calls},
                                  sum = {(uint64_t)sqlite3_column_int64(q, 0), (uint64_t)sqlite3_column_int64(q, 1),
                                         (uint64_t)sqlite3_column_int64(q, 2)};
        sqlite_finish(q);
        if (sum.uploads > 0) {
            sqlite_verify_amounts(v, where, "ledger", &said, "totals by host", &sum);
        }
    }
    return status;
}

/* Adds up what is stored of an hour. */
static enum profd_status add_hour(struct sqlite_verifying *v, const struct sqlite_identity *series, int64_t hour,
                                  struct found_hour *h, const char *where, struct profd_error *e)
{
    *h = (struct found_hour){.rounding = 0};
    sqlite_sums_init(&h->sums, series->build_count);
    TRY(add_raws(v, series, hour, h, where, e));
    return add_sums(v, series, hour, h, where, e);
}

static enum profd_status verify_hour(struct sqlite_verifying *v, const struct sqlite_identity *series, int64_t hour,
                                     struct profd_error *e)
{
    struct found_hour h;
    struct sqlite_sums ledger;
    char where[64];
    bool found;
    snprintf(where, sizeof where, "series %" PRId64 ", hour %" PRId64, series->id, hour);
    TRY(add_hour(v, series, hour, &h, where, e));
    TRY(sqlite_ledger_load(v->s, series->id, hour, series->build_count, &ledger, &found, e));
    compare_hour(v, &h, &ledger, where);
    return verify_totals(v, series->id, hour, &ledger, where, e);
}

/* Checks that the sums of the series are those of its hours. */
static enum profd_status verify_series(struct sqlite_verifying *v, const struct sqlite_identity *series,
                                       struct profd_error *e)
{
    static const char in_series[] = "series", in_ledger[] = "ledger";
    struct sqlite_sums said, sum;
    char where[64];
    bool found;
    uint32_t mask = ~(uint32_t)INEXACT_SATURATED;
    snprintf(where, sizeof where, "series %" PRId64, series->id);
    TRY(sqlite_ledger_sum(v->s, series->id, INT64_MIN, INT64_MAX, series->build_count, &sum, e));
    TRY(sqlite_series_load(v->s, series->id, series->build_count, &said, &found, e));
    sqlite_verify_equal(v, where, "uploads", in_series, said.uploads, in_ledger, sum.uploads);
    sqlite_verify_equal(v, where, "processes", in_series, said.processes, in_ledger, sum.processes);
    sqlite_verify_equal(v, where, "ticks", in_series, said.ticks, in_ledger, sum.ticks);
    sqlite_verify_equal(v, where, "calls", in_series, said.calls, in_ledger, sum.calls);
    sqlite_verify_equal(v, where, "earliest start", in_series, (uint64_t)said.first, in_ledger, (uint64_t)sum.first);
    sqlite_verify_equal(v, where, "latest end", in_series, (uint64_t)said.last, in_ledger, (uint64_t)sum.last);
    sqlite_verify_equal(v, where, "reasons for inexactness", in_series, said.inexact & mask, in_ledger,
                        sum.inexact & mask);
    sqlite_verify_equal(v, where, "single uploads", in_series, said.raw_uploads, in_ledger, sum.raw_uploads);
    sqlite_verify_equal(v, where, "bytes of single uploads", in_series, said.raw_bytes, in_ledger, sum.raw_bytes);
    sqlite_verify_equal(v, where, "bytes of live processes", in_series, said.live_bytes, in_ledger, sum.live_bytes);
    if (memcmp(said.shares, sum.shares, series->build_count * sizeof said.shares[0]) != 0) {
        sqlite_verify_tell(v, "%s: time and calls of its builds differ from the ledger", where);
    }
    sqlite_verify_equal(v, where, "ticks of stacks", in_series, said.stack_ticks, in_ledger, sum.stack_ticks);
    return sqlite_verify_all(v, series, e);
}

/* Finds the next hour of a series with data, and the day that ends before it; or the end of the series. */
static enum profd_status verify_next(struct sqlite_verifying *v, const struct sqlite_identity *series,
                                     struct store_cursor *c, struct profd_error *e)
{
    int64_t hour = 0, next = 0;
    bool found = false, more = false;
    enum profd_status status =
        sqlite_find(v->s, SQL_LEDGER_NEXT, VALUES(INTEGER(series->id), INTEGER(c->hour)), &hour, &found, e);
    if (status == PROFD_OK && !found) {
        status = verify_series(v, series, e);
        c->series = (uint64_t)series->id + 1;
        c->hour = 0;
        return status;
    }
    if (status == PROFD_OK) {
        status = verify_hour(v, series, hour, e);
    }
    if (status == PROFD_OK) {
        status = sqlite_find(v->s, SQL_LEDGER_NEXT, VALUES(INTEGER(series->id), INTEGER(hour + 1)), &next, &more, e);
    }
    if (status == PROFD_OK && (!more || next / 24 != hour / 24)) {
        status = sqlite_verify_day(v, series, hour / 24, e);
    }
    c->hour = hour + 1;
    return status;
}

static enum profd_status verify_pages(struct sqlite_verifying *v, struct store_cursor *c, struct profd_error *e)
{
    int64_t bad = 0;
    enum profd_status status = sqlite_seal_scan(v->s, PAGES_A_STEP, &c->page, &bad, e);
    if (status == PROFD_OK && bad != 0) {
        sqlite_verify_tell(v, "page %" PRId64 " of the file is damaged: it does not have its checksum", bad);
    }
    c->pages_done = c->page == 0;
    return status;
}

static enum profd_status verify_object(struct sqlite_verifying *v, struct store_cursor *c, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    uint8_t *bytes = NULL;
    size_t size;
    struct profd_error why = {""};
    enum profd_status status = sqlite_first(v->s, SQL_OBJECT_EVERY, VALUES(INTEGER(c->object)), &q, &row, e);
    c->objects_done = !row;
    if (status != PROFD_OK || !row) {
        return status;
    }
    c->object = sqlite3_column_int64(q, 2) + 1;
    status = sqlite_take_content(v->s, q, &bytes, &size, &why);
    free(bytes);
    if (status == PROFD_DAMAGED) {
        sqlite_verify_tell(v, "the symbols of build %s are damaged: %s", sqlite_text(q, 3), why.sentence);
        status = PROFD_OK;
    } else if (status != PROFD_OK) {
        status = profd_error_set(e, status, "%s", why.sentence);
    }
    sqlite_finish(q);
    return status;
}

static enum profd_status verify_step(struct sqlite_verifying *v, struct store_cursor *c, struct profd_error *e)
{
    if (!c->pages_done) {
        return verify_pages(v, c, e);
    }
    if (!c->objects_done) {
        return verify_object(v, c, e);
    }
    struct sqlite_identity series;
    int64_t id = 0;
    bool found = false;
    arena_reset(v->arena);
    TRY(sqlite_find(v->s, SQL_SERIES_NEXT, VALUES(INTEGER(c->series)), &id, &found, e));
    if (!found) {
        TRY(sqlite_verify_round(v, e));
        *c = (struct store_cursor){.done = true};
        return PROFD_OK;
    }
    if ((uint64_t)id != c->series) {
        *c = (struct store_cursor){.series = (uint64_t)id, .pages_done = true, .objects_done = true};
    }
    TRY(sqlite_series_identify(v->s, v->arena, id, &series, &found, e));
    if (!found) {
        sqlite_verify_tell(v, "series %" PRId64 " has no set of builds", id);
        c->series++;
        return PROFD_OK;
    }
    return verify_next(v, &series, c, e);
}

static int64_t work_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

enum profd_status store_verify(struct store *s, struct store_cursor *cursor,
                               void (*mismatch)(void *context, const char *sentence), void *context,
                               uint64_t *uploads_checked, struct profd_error *e)
{
    struct sqlite_verifying v = {.s = s, .arena = arena_new(0), .mismatch = mismatch, .context = context};
    struct store_cursor c = *cursor;
    bool began = false;
    int64_t deadline = work_now() + SLICE_NANOSECONDS;
    if (!v.arena) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to verify the store");
    }
    c.done = false;
    enum profd_status status = sqlite_read_begin(v.s, &began, e);
    if (status == PROFD_OK) {
        do {
            status = verify_step(&v, &c, e);
        } while (status == PROFD_OK && !c.done && work_now() < deadline);
        status = sqlite_read_end(v.s, began, status, e);
    }
    arena_free(v.arena);
    if (status == PROFD_OK) {
        *cursor = c;
        *uploads_checked = v.uploads;
    }
    return status;
}
