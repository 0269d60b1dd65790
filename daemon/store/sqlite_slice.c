#include "store/sqlite_slice.h"

#include <stdlib.h>

#include "core/rollup.h"
#include "core/sum.h"
#include "proto/message.h"
#include "store/sqlite_rollup.h"

const int sqlite_slice_widths[SQLITE_SLICE_WIDTHS] = {SQLITE_SLICE_NARROW, 5, 15, SQLITE_SLICE_WIDE};

enum profd_status sqlite_slice_add(struct store *s, const struct sqlite_slice *x, struct profd_error *e)
{
    return sqlite_run(s, SQL_SLICE_ADD,
                      VALUES(INTEGER(x->series), INTEGER(x->width), INTEGER(sqlite_slice_at(x->width, x->end)),
                             INTEGER(x->instance), INTEGER(x->upload)),
                      e);
}

enum profd_status sqlite_slice_find(struct store *s, const struct sqlite_slice *x, bool *found, struct profd_error *e)
{
    int64_t one;
    return sqlite_find(s, SQL_SLICE_FIND,
                       VALUES(INTEGER(x->series), INTEGER(x->width), INTEGER(sqlite_slice_at(x->width, x->end)),
                              INTEGER(x->instance), INTEGER(x->upload)),
                       &one, found, e);
}

enum profd_status sqlite_slice_remove(struct store *s, const struct sqlite_slice *x, struct profd_error *e)
{
    return sqlite_run(s, SQL_SLICE_REMOVE,
                      VALUES(INTEGER(x->series), INTEGER(x->width), INTEGER(sqlite_slice_at(x->width, x->end)),
                             INTEGER(x->instance), INTEGER(x->upload)),
                      e);
}

enum profd_status sqlite_slice_remove_hours(struct store *s, int64_t series, int64_t from, int64_t to,
                                            struct profd_error *e)
{
    for (size_t i = 0; i < SQLITE_SLICE_WIDTHS; i++) {
        int64_t each = SQLITE_SLICE_WIDE / sqlite_slice_widths[i]; /* in an hour */
        TRY(sqlite_run(s, SQL_SLICE_REMOVE_RANGE,
                       VALUES(INTEGER(series), INTEGER(sqlite_slice_widths[i]), INTEGER(from * each),
                              INTEGER(to * each + each - 1)),
                       e));
    }
    return PROFD_OK;
}

/* Columns of SQL_SLICE_UPLOADS. */
enum { NUMBER, HOUR, HOST, START, LENGTH, INEXACT, STARTED, GROUP, COUNTS, PARTS };

/* A merged upload: the first one, and the contents of all. */
struct merged {
    int64_t number, hour, host, start, end;
    uint32_t inexact;
    uint64_t started, group, parts, old_bytes; /* old_bytes: bytes of all of them */
    size_t merges;                             /* number of uploads merged into it; 0: its counts are as stored */
    bool readable;
    struct counts counts;
    uint8_t *bytes; /* of the counts, encoded, of bytes_size; NULL if nothing was merged into it */
    size_t bytes_size;
};

/* What becomes one slice. */
struct widening {
    struct store *s;
    struct arena *scratch;
    struct sqlite_identity series;
    int64_t instance;
    int width, wide;
    bool any;
    struct merged head;
};

static enum profd_status take_row(const struct widening *w, sqlite3_stmt *q, struct merged *m, struct profd_error *e)
{
    size_t n;
    struct profd_error why;
    *m = (struct merged){.number = sqlite3_column_int64(q, NUMBER),
                         .hour = sqlite3_column_int64(q, HOUR),
                         .host = sqlite3_column_int64(q, HOST),
                         .start = sqlite3_column_int64(q, START),
                         .end = sqlite3_column_int64(q, START) + sqlite3_column_int64(q, LENGTH),
                         .inexact = (uint32_t)sqlite3_column_int64(q, INEXACT),
                         .started = (uint64_t)sqlite3_column_int64(q, STARTED),
                         .group = (uint64_t)sqlite3_column_int64(q, GROUP),
                         .parts = (uint64_t)sqlite3_column_int64(q, PARTS)};
    const uint8_t *bytes = sqlite_blob(q, COUNTS, &n);
    m->old_bytes = n;
    enum profd_status status = counts_decode(bytes, n, (uint32_t)w->series.build_count, &m->counts, &why);
    m->readable = status == PROFD_OK;
    if (status == PROFD_NO_MEMORY && e) {
        *e = why;
    }
    return status == PROFD_NO_MEMORY ? status : PROFD_OK; /* verification reports what cannot be read */
}

static void merged_done(struct merged *m)
{
    if (m->readable) {
        counts_done(&m->counts);
        free(m->bytes);
    }
    m->readable = false;
}

/* The slice of an upload that has this width now. */
static struct sqlite_slice slice_of(const struct widening *w, const struct merged *m, int width)
{
    return (struct sqlite_slice){w->series.id, width, m->end, w->instance, m->number};
}

/* Writes the merged content over its first upload, if any was merged. */
static enum profd_status save_counts(struct widening *w, struct profd_error *e)
{
    struct merged *m = &w->head;
    if (m->merges == 0) {
        return sqlite_run(w->s, SQL_UPLOAD_WIDEN, VALUES(INTEGER(m->number), INTEGER(w->wide), INTEGER(w->instance)),
                          e);
    }
    TRY(sqlite_run(w->s, SQL_UPLOAD_MERGE,
                   VALUES(INTEGER(m->number), INTEGER(m->start), INTEGER(m->end - m->start), INTEGER(m->inexact),
                          INTEGER(m->started), BLOB(m->bytes, m->bytes_size), INTEGER(w->wide), INTEGER(m->parts)),
                   e));
    const uint64_t grown = m->bytes_size - m->old_bytes;
    /* Adds to what the ledger, the series and the totals say of the bytes of single uploads and, of these, of live
     * processes. Differences may be negative: modulo 2^64. DAMAGED, and nothing is written, if they cannot be read. */
    struct sqlite_sums of_hour, of_series;
    bool has_hour = false, has_series = false;
    TRY(sqlite_ledger_load(w->s, w->series.id, m->hour, w->series.build_count, &of_hour, &has_hour, e));
    TRY(sqlite_series_load(w->s, w->series.id, w->series.build_count, &of_series, &has_series, e));
    if (!has_hour || !has_series) {
        return profd_error_set(e, PROFD_DAMAGED,
                               "database %s: series %lld, hour %lld: the ledger does not know a live process's upload",
                               w->s->path, (long long)w->series.id, (long long)m->hour);
    }
    of_hour.raw_bytes += grown;
    of_hour.live_bytes += grown;
    of_series.raw_bytes += grown;
    of_series.live_bytes += grown;
    w->s->state.raw_bytes += grown;
    w->s->state.live_bytes += grown;
    TRY(sqlite_ledger_save(w->s, w->series.id, m->hour, &of_hour, e));
    return sqlite_series_save(w->s, w->series.id, &of_series, e);
}

/* The upload at the head is complete. */
static enum profd_status flush(struct widening *w, struct profd_error *e)
{
    if (!w->any) {
        return PROFD_OK;
    }
    enum profd_status status = save_counts(w, e);
    if (status == PROFD_OK) {
        const struct sqlite_slice slice = slice_of(w, &w->head, w->wide);
        status = sqlite_slice_add(w->s, &slice, e);
    }
    merged_done(&w->head);
    w->any = false;
    return status;
}

/* Adds m's counts to the head's. *done is false, and nothing has changed, if they must stay separate. */
static enum profd_status merge(struct widening *w, const struct merged *m, bool *done, struct profd_error *e)
{
    struct merged *h = &w->head;
    struct counts sum;
    uint8_t *bytes = NULL;
    size_t size = 0;
    bool saturated = false;
    struct profd_error why;
    uint64_t started = h->started;
    sum_add(&started, m->started, &saturated);
    *done = false;
    if (!h->readable || !m->readable || saturated || h->host != m->host || h->group != m->group) {
        return PROFD_OK;
    }
    enum profd_status status = rollup_grow(w->scratch, &h->counts, &m->counts, &sum, &why);
    if (status == PROFD_OK) {
        status = counts_encode(&sum, &bytes, &size, &why);
    }
    struct counts kept = {0}; /* the sum is in scratch memory */
    if (status == PROFD_OK && !sum.saturated && size <= STORE_GROWN_MOST) {
        status = counts_decode(bytes, size, (uint32_t)w->series.build_count, &kept, &why);
    }
    if (status != PROFD_OK || kept.block == NULL) {
        free(bytes);
        return status == PROFD_NO_MEMORY ? profd_error_set(e, status, "%s", why.sentence) : PROFD_OK;
    }
    counts_done(&h->counts);
    free(h->bytes);
    h->counts = kept;
    h->bytes = bytes;
    h->bytes_size = size;
    h->start = m->start < h->start ? m->start : h->start;
    h->end = m->end > h->end ? m->end : h->end;
    h->inexact |= m->inexact;
    h->started = started;
    h->parts += m->parts;
    h->old_bytes += m->old_bytes;
    h->merges++;
    *done = true;
    return PROFD_OK;
}

/* Takes an upload from its narrow slice: merges it into the upload at the head, or makes it the head. */
static enum profd_status add_upload(struct widening *w, struct merged *m, struct profd_error *e)
{
    const struct sqlite_slice narrow = slice_of(w, m, w->width);
    bool done = false;
    enum profd_status status = sqlite_slice_remove(w->s, &narrow, e);
    if (status == PROFD_OK && w->any) {
        status = merge(w, m, &done, e);
    }
    if (status == PROFD_OK && done) {
        status = sqlite_run(w->s, SQL_UPLOAD_REMOVE, VALUES(INTEGER(m->number)), e);
        if (status == PROFD_OK) {
            status = sqlite_run(w->s, SQL_INSTANCE_MOVE,
                                VALUES(INTEGER(w->instance), INTEGER(m->number), INTEGER(w->head.number)), e);
        }
    } else if (status == PROFD_OK) {
        status = flush(w, e);
        w->head = *m;
        m->readable = false; /* the head has its counts now */
        w->any = true;
    }
    merged_done(m);
    return status;
}

/* The uploads of one narrow slice, by number. */
static enum profd_status add_slice(struct widening *w, int64_t at, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    for (bool row = true; status == PROFD_OK && row;) { /* each leaves the slice */
        struct merged m;
        sqlite3_stmt *q;
        row = false;
        TRY(sqlite_first(w->s, SQL_SLICE_UPLOADS,
                         VALUES(INTEGER(w->series.id), INTEGER(w->width), INTEGER(at), INTEGER(w->instance)), &q, &row,
                         e));
        if (row) {
            status = take_row(w, q, &m, e);
            sqlite_finish(q);
            if (status == PROFD_OK) {
                TRY(add_upload(w, &m, e));
            }
        }
    }
    return status;
}

/* Finds the slice of the next width that contains this one of the instance. */
static enum profd_status widen_once(struct store *s, struct arena *a, struct arena *scratch, int64_t series,
                                    size_t width, int64_t at, int64_t instance, struct profd_error *e)
{
    struct widening w = {.s = s,
                         .scratch = scratch,
                         .instance = instance,
                         .width = sqlite_slice_widths[width],
                         .wide = sqlite_slice_widths[width + 1]};
    bool found = false;
    int64_t each = w.wide / w.width;
    enum profd_status status = sqlite_series_identify(s, a, series, &w.series, &found, e);
    if (status == PROFD_OK && !found) {
        status = profd_error_set(e, PROFD_DAMAGED, "database %s: series %lld has slices but no row", s->path,
                                 (long long)series);
    }
    for (int64_t i = at / each * each; status == PROFD_OK && i < at / each * each + each; i++) {
        status = add_slice(&w, i, e);
    }
    if (status == PROFD_OK) {
        status = flush(&w, e);
    }
    if (w.any) {
        merged_done(&w.head);
    }
    return status;
}

enum profd_status sqlite_slice_widen(struct store *s, bool *found, struct store_progress *progress,
                                     struct profd_error *e)
{
    *found = false;
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; status == PROFD_OK && !*found && i + 1 < SQLITE_SLICE_WIDTHS; i++) {
        sqlite3_stmt *q;
        int64_t series = 0, at = 0, instance = 0;
        status = sqlite_first(s, SQL_SLICE_OLDEST, VALUES(INTEGER(sqlite_slice_widths[i])), &q, found, e);
        if (status != PROFD_OK || !*found) {
            continue;
        }
        series = sqlite3_column_int64(q, 0);
        at = sqlite3_column_int64(q, 1);
        instance = sqlite3_column_int64(q, 2);
        sqlite_finish(q);
        struct arena *a = arena_new(0), *scratch = arena_new(0);
        status = a && scratch
                     ? widen_once(s, a, scratch, series, i, at, instance, e)
                     : profd_error_set(e, PROFD_NO_MEMORY, "no memory to put slices of a live process together");
        arena_free(a);
        arena_free(scratch);
        progress->rows++;
    }
    return status;
}
