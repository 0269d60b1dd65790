/* Rolls up: single uploads to sums of hours, hours to days, days to all time; and widens slices of live processes and
 * of hosts. */
#include <stdlib.h>

#include "proto/sum.h"
#include "store/store_internal.h"

enum profd_status folded_decode_hosts(struct arena *a, const uint8_t *in, size_t n, const int64_t **hosts,
                                      size_t *count, struct profd_error *e)
{
    const uint8_t *end = in + n;
    size_t k = 0;
    uint64_t id = 0, step;
    int64_t *ids = ARENA_ARRAY(a, n + 1, int64_t); /* each has at least one byte */
    TRY(ids ? PROFD_OK : profd_no_memory(e));
    while (in < end) {
        FAIL_IF(!varint_get(&in, end, &step) || step == 0 || step > SUM_MAX - id, e, PROFD_DAMAGED,
                "a sum's list of hosts breaks its rules at number %zu", k);
        id += step;
        ids[k++] = (int64_t)id;
    }
    *hosts = ids;
    *count = k;
    return PROFD_OK;
}

/* Merges two ascending sets; false when out of memory. */
static bool merge_hosts(struct arena *a, const int64_t *x, size_t nx, const int64_t *y, size_t ny, const int64_t **out,
                        size_t *count)
{
    int64_t *merged = ARENA_ARRAY(a, nx + ny + 1, int64_t);
    size_t i = 0, k = 0, n = 0;
    if (!merged) {
        return false;
    }
    while (i < nx || k < ny) {
        if (k == ny || (i < nx && x[i] < y[k])) {
            merged[n++] = x[i++];
        } else {
            i += i < nx && x[i] == y[k];
            merged[n++] = y[k++];
        }
    }
    *out = merged;
    *count = n;
    return true;
}

bool folded_is_cut(const struct counts *c)
{
    return (uint64_t)c->arc_count + c->bin_count >= LIMIT_SUM_ROWS || c->histogram_count >= LIMIT_HISTOGRAMS;
}

enum profd_status folding_begin(struct folding *f, struct arena *a, struct profd_error *e)
{
    *f = (struct folding){.arena = a, .sum = rollup_sum_new(a, ROLLUP_ALL)};
    f->out = (struct folded){.number = INT64_MAX, .first = INT64_MAX, .last = INT64_MIN};
    TRY(f->sum ? PROFD_OK : profd_no_memory(e));
    rollup_sum_limit(f->sum);
    return PROFD_OK;
}

enum profd_status folding_add(struct folding *f, const struct folded *row, struct profd_error *e)
{
    struct folded *out = &f->out;
    bool saturated = false;
    sum_add(&out->uploads, row->uploads, &saturated);
    sum_add(&out->processes, row->processes, &saturated);
    random_groups_add(&out->groups, &row->groups);
    out->number = row->number < out->number ? row->number : out->number;
    out->first = row->first < out->first ? row->first : out->first;
    out->last = row->last > out->last ? row->last : out->last;
    out->inexact |= row->inexact | (saturated ? (uint32_t)INEXACT_SATURATED : 0);
    if (!merge_hosts(f->arena, out->hosts, out->host_count, row->hosts, row->host_count, &out->hosts,
                     &out->host_count)) {
        return profd_no_memory(e);
    }
    return rollup_sum_add(f->sum, &row->counts, &row->spread, e);
}

enum profd_status folding_finish(struct folding *f, struct profd_error *e)
{
    const struct counts *c = &f->out.counts;
    TRY(rollup_sum_finish(f->sum, &f->out.counts, &f->out.spread, e));
    const uint32_t n = c->arc_count;
    const bool rest = n > 0 && c->to_build[n - 1] == COUNTS_NOWHERE && c->from[n - 1] == ROLLUP_REST;
    f->out.inexact |= (c->saturated ? (uint32_t)INEXACT_SATURATED : 0) | (rest ? (uint32_t)INEXACT_CALLS_LOST : 0) |
                      (c->histogram_count >= LIMIT_HISTOGRAMS ? (uint32_t)INEXACT_TICKS_LOST : 0);
    return PROFD_OK;
}

enum profd_status sqlite_processes_decode(const struct store *s, sqlite3_stmt *q, int column, uint64_t processes,
                                          struct random_groups *out, struct profd_error *e)
{
    size_t n;
    if (sqlite3_column_type(q, column) == SQLITE_NULL) {
        *out = (struct random_groups){.unknown = processes};
        return PROFD_OK;
    }
    const uint8_t *bytes = sqlite_blob(q, column, &n);
    FAIL_IF(!random_groups_decode(bytes, n, out), e, PROFD_DAMAGED,
            "database %s: a sum's %zu bytes of processes by group break their rules", s->path, n);
    return PROFD_OK;
}

enum profd_status sqlite_rollup_load(struct store *s, struct arena *a, int64_t series, int level, int64_t at,
                                     size_t builds, struct folded *out, bool *found, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    size_t hosts_size, counts_size, spread_size;
    enum profd_status status =
        sqlite_first(s, SQL_ROLLUP_GET, VALUES(INTEGER(series), INTEGER(level), INTEGER(at)), &q, &row, e);
    *found = row;
    if (!row) {
        return status;
    }
    *out = (struct folded){.folded = sqlite3_column_int(q, ROLLUP_FOLDED) != 0,
                           .number = sqlite3_column_int64(q, ROLLUP_NUMBER),
                           .uploads = sqlite_u64(q, ROLLUP_UPLOADS),
                           .processes = sqlite_u64(q, ROLLUP_PROCESSES),
                           .first = sqlite3_column_int64(q, ROLLUP_FIRST),
                           .last = sqlite3_column_int64(q, ROLLUP_LAST),
                           .inexact = (uint32_t)sqlite3_column_int64(q, ROLLUP_INEXACT),
                           .ticks = sqlite_u64(q, ROLLUP_AFTER + 1),
                           .calls = sqlite_u64(q, ROLLUP_AFTER + 2)};
    const uint8_t *hosts = sqlite_blob(q, ROLLUP_HOSTS, &hosts_size),
                  *counts = sqlite_blob(q, ROLLUP_COUNTS, &counts_size),
                  *spread = sqlite_blob(q, ROLLUP_AFTER, &spread_size);
    status = folded_decode_hosts(a, hosts, hosts_size, &out->hosts, &out->host_count, e);
    status = status ? status : sqlite_processes_decode(s, q, ROLLUP_AFTER + 3, out->processes, &out->groups, e);
    status = status ? status : rollup_decode(a, counts, counts_size, (uint32_t)builds, false, &out->counts, e);
    status = status ? status : rollup_decode_spread(a, &out->counts, spread, spread_size, &out->spread, e);
    if (status) {
        (void)profd_error_wrap(e, status, "database %s: row %lld of rollup", s->path,
                               (long long)sqlite3_column_int64(q, ROLLUP_ID));
    }
    sqlite_finish(q);
    return status;
}

static enum profd_status save_row(struct store *s, struct arena *a, int64_t series, int level, int64_t at,
                                  const struct folded *row, bool exists, struct profd_error *e)
{
    uint8_t *counts = NULL, *spread = NULL, groups[RANDOM_GROUPS_BYTES];
    size_t counts_size = 0, spread_size = 0;
    uint64_t ticks, calls;
    int64_t before = 0;
    uint8_t *hosts = ARENA_ARRAY(a, row->host_count * VARINT_MAX + 1, uint8_t), *end = hosts;
    for (size_t i = 0; hosts && i < row->host_count; i++) {
        end = varint_put(end, (uint64_t)(row->hosts[i] - before));
        before = row->hosts[i];
    }
    enum profd_status status = hosts ? counts_encode(&row->counts, &counts, &counts_size, e) : profd_no_memory(e);
    status = status ? status : counts_encode_shares(&row->counts, &row->spread, &spread, &spread_size, e);
    counts_totals(&row->counts, &ticks, &calls);
    if (!status) {
        s->state.version++;
        s->state.rollups += !exists;
        status =
            sqlite_run(s, exists ? SQL_ROLLUP_SET : SQL_ROLLUP_ADD,
                       VALUES(INTEGER(series), INTEGER(level), INTEGER(at), INTEGER(s->state.version),
                              INTEGER(row->number), INTEGER(row->uploads), INTEGER(row->processes), INTEGER(ticks),
                              INTEGER(calls), INTEGER(row->first), INTEGER(row->last), INTEGER(row->inexact),
                              BLOB(hosts, (size_t)(end - hosts)), BLOB(counts, counts_size), BLOB(spread, spread_size)),
                       e);
    }
    free(counts);
    free(spread);
    TRY(status);
    const size_t n = random_groups_encode(&row->groups, groups);
    return sqlite_run(s, SQL_ROLLUP_PROCESSES_SET,
                      VALUES(INTEGER(series), INTEGER(level), INTEGER(at), BLOB(groups, n)), e);
}

/* Adds more to a row, which is made if it does not exist. *folded: the level above contains the row, so more must be
 * added there, too. Inside a write transaction. The arena grows by the size of the row. */
static enum profd_status rollup_add(struct store *s, struct arena *a, const struct sqlite_identity *series, int level,
                                    int64_t at, const struct folded *more, bool *folded, struct profd_error *e)
{
    struct folded row;
    struct folding f;
    bool found;
    TRY(sqlite_rollup_load(s, a, series->id, level, at, series->build_count, &row, &found, e));
    *folded = found && row.folded && level != SQLITE_LEVEL_ALL;
    if (!found) {
        return save_row(s, a, series->id, level, at, more, false, e);
    }
    TRY(folding_begin(&f, a, e));
    TRY(folding_add(&f, &row, e));
    TRY(folding_add(&f, more, e));
    TRY(folding_finish(&f, e));
    return save_row(s, a, series->id, level, at, &f.out, true, e);
}

/* Adds more to a row of the pyramid, and to those above that contain it. */
static enum profd_status add_upward(struct store *s, struct arena *a, const struct sqlite_identity *series, int level,
                                    int64_t at, const struct folded *more, struct profd_error *e)
{
    for (bool folded = true; folded; level++) {
        TRY(rollup_add(s, a, series, level, at, more, &folded, e));
        at = level == SQLITE_LEVEL_HOUR ? at / 24 : 0;
    }
    return PROFD_OK;
}

const int sqlite_slice_widths[SQLITE_SLICE_WIDTHS] = {SQLITE_SLICE_NARROW, 5, 15, SQLITE_SLICE_WIDE};

#define SLICE(x)                                                                                                       \
    VALUES(INTEGER((x)->series), INTEGER((x)->width), INTEGER(sqlite_slice_at((x)->width, (x)->end)),                  \
           INTEGER((x)->instance), INTEGER((x)->upload))

enum profd_status sqlite_slice_add(struct store *s, const struct sqlite_slice *x, struct profd_error *e)
{
    return sqlite_run(s, SQL_SLICE_ADD, SLICE(x), e);
}

enum profd_status sqlite_slice_find(struct store *s, const struct sqlite_slice *x, bool *found, struct profd_error *e)
{
    int64_t one;
    return sqlite_find(s, SQL_SLICE_FIND, SLICE(x), &one, found, e);
}

static enum profd_status slice_remove(struct store *s, const struct sqlite_slice *x, struct profd_error *e)
{
    return sqlite_run(s, SQL_SLICE_REMOVE, SLICE(x), e);
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

/* An upload of a slice, or several that were merged into the first. */
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

/* Slices of an instance that become one slice. */
struct widening {
    struct store *s;
    struct arena *scratch;
    struct sqlite_identity series;
    int64_t instance;
    int width, wide;
    bool any; /* there is a head: the upload that the next ones are merged into */
    struct merged head;
};

static void merged_done(struct merged *m)
{
    if (m->readable) {
        counts_done(&m->counts);
        free(m->bytes);
    }
    m->readable = false;
}

/* Writes the head over its first upload and into the wide slice. */
static enum profd_status flush_head(struct widening *w, struct profd_error *e)
{
    struct merged *m = &w->head;
    struct store *s = w->s;
    if (!w->any) {
        return PROFD_OK;
    }
    w->any = false;
    enum profd_status status =
        m->merges == 0
            ? sqlite_run(s, SQL_UPLOAD_WIDEN, VALUES(INTEGER(m->number), INTEGER(w->wide), INTEGER(w->instance)), e)
            : sqlite_run(s, SQL_UPLOAD_MERGE,
                         VALUES(INTEGER(m->number), INTEGER(m->start), INTEGER(m->end - m->start), INTEGER(m->inexact),
                                INTEGER(m->started), BLOB(m->bytes, m->bytes_size), INTEGER(w->wide),
                                INTEGER(m->parts)),
                         e);
    if (!status && m->merges > 0) {
        const uint64_t grown = m->bytes_size - m->old_bytes; /* modulo 2^64: it may have shrunk */
        struct sqlite_sums of_hour, of_series;
        bool has_hour = false, has_series = false;
        status = sqlite_ledger_load(s, w->series.id, m->hour, w->series.build_count, &of_hour, &has_hour, e);
        status =
            status ? status : sqlite_series_load(s, w->series.id, w->series.build_count, &of_series, &has_series, e);
        if (!status && (!has_hour || !has_series)) {
            status =
                profd_error_set(e, PROFD_DAMAGED,
                                "database %s: series %lld, hour %lld: the ledger does not know a live process's upload",
                                s->path, (long long)w->series.id, (long long)m->hour);
        }
        if (!status) {
            of_hour.raw_bytes += grown;
            of_hour.live_bytes += grown;
            of_series.raw_bytes += grown;
            of_series.live_bytes += grown;
            s->state.raw_bytes += grown;
            s->state.live_bytes += grown;
            status = sqlite_ledger_save(s, w->series.id, m->hour, &of_hour, e);
        }
        status = status ? status : sqlite_series_save(s, w->series.id, &of_series, e);
    }
    const struct sqlite_slice slice = {w->series.id, w->wide, m->end, w->instance, m->number};
    status = status ? status : sqlite_slice_add(s, &slice, e);
    merged_done(m);
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
    status = status ? status : counts_encode(&sum, &bytes, &size, &why);
    struct counts kept = {0}; /* the sum is in scratch memory */
    if (!status && !sum.saturated && size <= STORE_GROWN_MOST) {
        status = counts_decode(bytes, size, (uint32_t)w->series.build_count, &kept, &why);
    }
    if (status || !kept.block) {
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

/* Takes the first upload out of a narrow slice: merges it into the head, or makes it the head. *row: there was one. */
static enum profd_status widen_upload(struct widening *w, int64_t at, bool *row, struct profd_error *e)
{
    enum { NUMBER, HOUR, HOST, START, LENGTH, INEXACT, STARTED, GROUP, COUNTS, PARTS };
    sqlite3_stmt *q;
    struct profd_error why;
    size_t n;
    bool done = false;
    TRY(sqlite_first(w->s, SQL_SLICE_UPLOADS,
                     VALUES(INTEGER(w->series.id), INTEGER(w->width), INTEGER(at), INTEGER(w->instance)), &q, row, e));
    if (!*row) {
        return PROFD_OK;
    }
    const uint8_t *bytes = sqlite_blob(q, COUNTS, &n);
    struct merged m = {.number = sqlite3_column_int64(q, NUMBER),
                       .hour = sqlite3_column_int64(q, HOUR),
                       .host = sqlite3_column_int64(q, HOST),
                       .start = sqlite3_column_int64(q, START),
                       .end = sqlite3_column_int64(q, START) + sqlite3_column_int64(q, LENGTH),
                       .inexact = (uint32_t)sqlite3_column_int64(q, INEXACT),
                       .started = sqlite_u64(q, STARTED),
                       .group = sqlite_u64(q, GROUP),
                       .parts = sqlite_u64(q, PARTS),
                       .old_bytes = n};
    enum profd_status status = counts_decode(bytes, n, (uint32_t)w->series.build_count, &m.counts, &why);
    sqlite_finish(q);
    m.readable = !status; /* otherwise verification reports it */
    FAIL_IF(status == PROFD_NO_MEMORY, e, status, "%s", why.sentence);
    const struct sqlite_slice narrow = {w->series.id, w->width, m.end, w->instance, m.number};
    status = slice_remove(w->s, &narrow, e);
    if (!status && w->any) {
        status = merge(w, &m, &done, e);
    }
    if (!status && done) {
        status = sqlite_run(w->s, SQL_UPLOAD_REMOVE, VALUES(INTEGER(m.number)), e);
        status = status ? status
                        : sqlite_run(w->s, SQL_INSTANCE_MOVE,
                                     VALUES(INTEGER(w->instance), INTEGER(m.number), INTEGER(w->head.number)), e);
    } else if (!status) {
        status = flush_head(w, e);
        w->head = m;
        m.readable = false; /* the head has its counts now */
        w->any = true;
    }
    merged_done(&m);
    return status;
}

/* Makes the oldest of the narrowest slices part of one of the next width: uploads of one process in it become one
 * upload. *found is false if there is none. Uploads that cannot be decoded, or are too large together, stay apart in
 * the wider slice. Inside a transaction of upkeep. */
static enum profd_status widen_slice(struct store *s, bool *found, struct store_progress *progress,
                                     struct profd_error *e)
{
    struct widening w = {.s = s};
    sqlite3_stmt *q;
    *found = false;
    for (size_t i = 0; !*found && i + 1 < SQLITE_SLICE_WIDTHS; i++) {
        w.width = sqlite_slice_widths[i];
        w.wide = sqlite_slice_widths[i + 1];
        TRY(sqlite_first(s, SQL_SLICE_OLDEST, VALUES(INTEGER(w.width)), &q, found, e));
    }
    if (!*found) {
        return PROFD_OK;
    }
    const int64_t series = sqlite3_column_int64(q, 0), at = sqlite3_column_int64(q, 1), each = w.wide / w.width;
    w.instance = sqlite3_column_int64(q, 2);
    sqlite_finish(q);
    struct arena *a = arena_new(0);
    w.scratch = arena_new(0);
    enum profd_status status =
        a && w.scratch ? sqlite_series_need(s, a, series, "the slices", &w.series, e) : profd_no_memory(e);
    for (int64_t i = at / each * each; !status && i < at / each * each + each; i++) {
        for (bool row = true; !status && row;) {
            status = widen_upload(&w, i, &row, e);
        }
    }
    status = status ? status : flush_head(&w, e);
    if (w.any) {
        merged_done(&w.head);
    }
    arena_free(a);
    arena_free(w.scratch);
    progress->rows++;
    return status;
}

/* --- Slices of hosts, which become sums of hours --- */

#define CHECK_AFTER SQLITE_MINUTE /* ns: interval between additions of the sizes of slices */

int sqlite_level_of(int64_t minutes)
{
    int level = SQLITE_LEVEL_SLICE;
    while (level < SQLITE_LEVEL_SLICES && sqlite_level_minutes(level) < minutes) {
        level++;
    }
    return level < SQLITE_LEVEL_SLICES ? level : SQLITE_LEVEL_HOUR;
}

enum profd_status sqlite_frozen_day(struct store *s, int64_t *day, int64_t *block, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    TRY(sqlite_first(s, SQL_BLOCK_FROZEN, NULL, 0, &q, &row, e));
    *day = row ? sqlite3_column_int64(q, 0) : -1;
    *block = row ? sqlite3_column_int64(q, 1) : 0;
    sqlite_finish(q);
    return PROFD_OK;
}

enum profd_status sqlite_rollup_remove(struct store *s, int64_t series, int level, int64_t from, int64_t to,
                                       uint64_t *removed, struct profd_error *e)
{
    const struct sqlite_value which[] = {INTEGER(series), INTEGER(level), INTEGER(from), INTEGER(to)};
    TRY(sqlite_run(s, SQL_ROLLUP_PROCESSES_REMOVE, which, sizeof which / sizeof which[0], e));
    TRY(sqlite_users_remove_sums(s, series, which, sizeof which / sizeof which[0], removed, e));
    s->state.rollups -= *removed < s->state.rollups ? *removed : s->state.rollups;
    return PROFD_OK;
}

enum profd_status sqlite_rollup_remove_all(struct store *s, int64_t series, uint64_t *removed, struct profd_error *e)
{
    uint64_t all = 0;
    TRY(sqlite_rollup_remove(s, series, SQLITE_LEVEL_ALL, 0, 0, &all, e));
    *removed += all;
    return all > 0 ? sqlite_run(s, SQL_ROLLUP_UNFOLD, VALUES(INTEGER(series)), e) : PROFD_OK;
}

/* Puts a row of an hour or slice that cannot be read where no query sees it, and marks its hour. */
static enum profd_status put_aside(struct store *s, int64_t series, int level, int64_t at, struct profd_error *e)
{
    const int64_t hour = at * sqlite_level_minutes(level) / SQLITE_SLICE_WIDE;
    bool changed = false;
    TRY(sqlite_run(s, SQL_ROLLUP_PROCESSES_REMOVE, VALUES(INTEGER(series), INTEGER(level), INTEGER(at), INTEGER(at)),
                   e));
    TRY(sqlite_run(s, SQL_ROLLUP_ASIDE,
                   VALUES(INTEGER(series), INTEGER(level), INTEGER(at), INTEGER(SQLITE_LEVEL_ASIDE), INTEGER(hour)),
                   e));
    TRY(sqlite_hour_mark(s, hour, SQLITE_MARK_HOSTS, (uint32_t)INEXACT_SEGMENT_MISSING, &changed, e));
    return sqlite_centre_touch(s, ++s->state.number, STORE_TENANT_LAST, STORE_TENANT, e);
}

/* Returns whether only stored data could not be read, so that nothing was written. */
static bool is_unreadable(const struct store *s, enum profd_status status)
{
    return status == PROFD_DAMAGED && !s->broken;
}

enum profd_status sqlite_interval_add(struct store *s, struct arena *a, const struct sqlite_identity *series, int level,
                                      int64_t at, const struct folded *more, struct profd_error *e)
{
    bool folded = false;
    uint64_t removed = 0;
    enum profd_status status = rollup_add(s, a, series, level, at, more, &folded, e);
    if (is_unreadable(s, status)) {
        TRY(put_aside(s, series->id, level, at, e));
        status = rollup_add(s, a, series, level, at, more, &folded, e);
    }
    if (status || !folded) {
        return status;
    }
    const int64_t day = at / 24;
    status = rollup_add(s, a, series, SQLITE_LEVEL_DAY, day, more, &folded, e);
    const bool no_day = is_unreadable(s, status);
    if (!status && folded) {
        status = rollup_add(s, a, series, SQLITE_LEVEL_ALL, 0, more, &folded, e);
    }
    if (!is_unreadable(s, status)) {
        return status;
    }

    /* A sum of other rows cannot be read: these are added up anew. */
    TRY(sqlite_rollup_remove_all(s, series->id, &removed, e));
    if (!no_day) {
        return PROFD_OK;
    }
    TRY(sqlite_rollup_remove(s, series->id, SQLITE_LEVEL_DAY, day, day, &removed, e));
    return sqlite_run(s, SQL_ROLLUP_UNFOLD_HOURS,
                      VALUES(INTEGER(series->id), INTEGER(24 * day), INTEGER(24 * day + 23)), e);
}

/* Finds the oldest row of a level before `before` that is in no other sum, outside of the frozen day. */
static enum profd_status find_open(struct store *s, int level, int64_t before, int64_t *series, int64_t *at,
                                   bool *found, struct profd_error *e)
{
    sqlite3_stmt *q;
    const int64_t in_day = level == SQLITE_LEVEL_DAY ? 1 : 24 * SQLITE_SLICE_WIDE / sqlite_level_minutes(level);
    int64_t frozen, block;
    TRY(sqlite_frozen_day(s, &frozen, &block, e));
    TRY(sqlite_first(s, SQL_ROLLUP_TO_FOLD, VALUES(INTEGER(level), INTEGER(before), INTEGER(in_day), INTEGER(frozen)),
                     &q, found, e));
    if (*found) {
        *series = sqlite3_column_int64(q, 0);
        *at = sqlite3_column_int64(q, 1);
        sqlite_finish(q);
    }
    return PROFD_OK;
}

/* Rows of a series that are added to a row above. */
struct gathering {
    struct store *s;
    struct arena *arena, *scratch;
    struct sqlite_identity series;
    struct folding folding;
};

static enum profd_status gathering_begin(struct gathering *g, struct store *s, int64_t series, struct profd_error *e)
{
    *g = (struct gathering){.s = s, .arena = arena_new(0), .scratch = arena_new(0)};
    TRY(g->arena && g->scratch ? sqlite_series_need(s, g->arena, series, "the sums", &g->series, e)
                               : profd_no_memory(e));
    return folding_begin(&g->folding, g->arena, e);
}

static void gathering_end(struct gathering *g)
{
    arena_free(g->arena);
    arena_free(g->scratch);
}

/* Loads the next row from *at to last that is in no other sum. *found: it exists, even if it cannot be read. */
static enum profd_status gather(struct gathering *g, int level, int64_t *at, int64_t last, struct folded *row,
                                bool *found, struct profd_error *e)
{
    *found = false;
    TRY(sqlite_find(g->s, SQL_ROLLUP_OPEN_AT,
                    VALUES(INTEGER(g->series.id), INTEGER(level), INTEGER(*at), INTEGER(last)), at, found, e));
    if (!*found) {
        return PROFD_OK;
    }
    arena_reset(g->scratch);
    const enum profd_status status =
        sqlite_rollup_load(g->s, g->scratch, g->series.id, level, *at, g->series.build_count, row, found, e);
    *found = *found || status;
    return status;
}

/* Moves the oldest slice of a level that is before that time (minutes), if there is one, into the row of level wide
 * that contains it, with the others there of its series: of this level, or of every level if all. */
static enum profd_status merge_oldest(struct store *s, int level, int64_t before, int wide, bool all, bool *found,
                                      struct profd_error *e)
{
    struct gathering g;
    struct folded row;
    int64_t series = 0, oldest = 0;
    TRY(find_open(s, level, before / sqlite_level_minutes(level), &series, &oldest, found, e));
    if (!*found) {
        return PROFD_OK;
    }
    const int64_t to = oldest * sqlite_level_minutes(level) / sqlite_level_minutes(wide);
    const int end = all ? SQLITE_LEVEL_SLICES : level + 1;
    enum profd_status status = gathering_begin(&g, s, series, e);
    for (int i = all ? SQLITE_LEVEL_SLICE : level; !status && i < end; i++) {
        const int64_t each = sqlite_level_minutes(wide) / sqlite_level_minutes(i);
        bool more = true;
        for (int64_t at = to * each; !status && more; at++) {
            uint64_t removed = 0;
            status = gather(&g, i, &at, to * each + each - 1, &row, &more, e);
            if (more && is_unreadable(s, status)) { /* if the search failed, at is no row */
                status = put_aside(s, series, i, at, e);
            } else if (!status && more) {
                status = folding_add(&g.folding, &row, e);
                status = status ? status : sqlite_rollup_remove(s, series, i, at, at, &removed, e);
            }
        }
    }
    status = status ? status : folding_finish(&g.folding, e);
    if (!status && g.folding.out.uploads > 0) {
        status = sqlite_interval_add(s, g.arena, &g.series, wide, to, &g.folding.out, e);
    }
    gathering_end(&g);
    return status;
}

/* Does one piece of upkeep: adds the slices of a series and hour that ended an hour ago to the hour's sum; or, while
 * slices take more than their share, widens the oldest and narrowest. */
static enum profd_status compact_slices(struct store *s, const struct store_policy *policy, int64_t now, bool *found,
                                        struct store_progress *progress, struct profd_error *e)
{
    const int64_t before = (now / SQLITE_HOUR - 1) * SQLITE_SLICE_WIDE;
    enum profd_status status = PROFD_OK;
    *found = false;
    for (int level = SQLITE_LEVEL_SLICE; !status && !*found && level < SQLITE_LEVEL_SLICES; level++) {
        status = merge_oldest(s, level, before, SQLITE_LEVEL_HOUR, true, found, e);
    }

    /* Adding up the sizes reads every slice: once a minute, and after each widening. */
    if (!status && !*found &&
        (s->intervals_large || now < s->intervals_checked || now - s->intervals_checked >= CHECK_AFTER)) {
        const uint64_t most = policy->raw_bytes / STORE_LIVE_PART;
        uint64_t bytes = 0;
        sqlite3_stmt *q;
        status = sqlite_start(s, SQL_ROLLUP_SIZES,
                              VALUES(INTEGER(SQLITE_LEVEL_SLICE), INTEGER(SQLITE_LEVEL_SLICES - 1)), &q, e);
        while (bytes <= most && sqlite_row(s, q, &status, e)) {
            bytes += sqlite_u64(q, 0);
        }
        sqlite_finish(q);
        s->intervals_checked = now;
        s->intervals_large = bytes > most;
    }
    for (int level = SQLITE_LEVEL_SLICE; !status && !*found && s->intervals_large && level < SQLITE_LEVEL_SLICES;
         level++) {
        const int wide = level + 1 < SQLITE_LEVEL_SLICES ? level + 1 : SQLITE_LEVEL_HOUR;
        status = merge_oldest(s, level, INT64_MAX, wide, false, found, e);
    }
    progress->rows += *found;
    return status;
}

/* --- Single uploads, which become sums of hours --- */

/* The number of nodes of stacks after which no further upload is added: all may be different, and adding them up takes
 * longer than reading them. */
#define NODES_MAX LIMIT_STACK_NODES

/* Uploads of one series and hour that are being rolled up. */
struct rolling {
    struct store *s;
    struct arena *arena;
    struct folding folding;
    uint64_t bytes, live_bytes, nodes; /* nodes: of stacks */
    int64_t last_number;
};

/* Adds a row of SQL_RAW_EACH to the sum. */
static enum profd_status take_raw(struct rolling *r, sqlite3_stmt *q, const struct sqlite_identity *series,
                                  struct profd_error *e)
{
    struct counts c;
    size_t n;
    struct folded *out = &r->folding.out;
    bool saturated = false;
    const int64_t number = sqlite3_column_int64(q, 0), host = sqlite3_column_int64(q, 1),
                  start = sqlite3_column_int64(q, 2), end = start + sqlite3_column_int64(q, 3);
    const uint64_t started = sqlite_u64(q, 5);
    const uint32_t group = (uint32_t)sqlite3_column_int(q, 6);
    const struct sqlite_slice slice = {series->id, sqlite3_column_int(q, 8), end, sqlite3_column_int64(q, 10), number};
    const uint8_t *bytes = sqlite_blob(q, 7, &n);
    enum profd_status status = counts_decode(bytes, n, (uint32_t)series->build_count, &c, e);
    if (status) {
        return profd_error_wrap(e, status == PROFD_NO_MEMORY ? status : PROFD_DAMAGED, "database %s: upload %lld",
                                r->s->path, (long long)number);
    }
    status = rollup_sum_add_upload(r->folding.sum, &c, (uint64_t)number, group, e);
    r->nodes += c.node_count;
    counts_done(&c);
    TRY(status);
    out->uploads += sqlite_u64(q, 9);
    struct random_groups groups = {.unknown = 0};
    groups.of[group & (RANDOM_GROUPS - 1)] = started;
    random_groups_add(&out->groups, &groups);
    sum_add(&out->processes, started, &saturated);
    out->inexact |= (uint32_t)sqlite3_column_int64(q, 4) | (saturated ? (uint32_t)INEXACT_SATURATED : 0);
    out->number = number < out->number ? number : out->number;
    out->first = start < out->first ? start : out->first;
    out->last = end > out->last ? end : out->last;
    r->bytes += n;
    r->live_bytes += slice.width > 0 ? n : 0;
    r->last_number = number;
    const bool known = out->host_count > 0 && out->hosts[out->host_count - 1] == host; /* most come from one host */
    if (!known && !merge_hosts(r->arena, out->hosts, out->host_count, &host, 1, &out->hosts, &out->host_count)) {
        return profd_no_memory(e);
    }
    return slice.width > 0 ? slice_remove(r->s, &slice, e) : PROFD_OK;
}

/* Adds the uploads to the rows of their hour and above, removes them, and updates the ledger, the series and the
 * totals, by which fewer uploads are single. */
static enum profd_status roll(struct rolling *r, const struct sqlite_identity *series, int64_t hour,
                              struct sqlite_budget *budget, struct profd_error *e)
{
    struct store *s = r->s;
    struct sqlite_state *t = &s->state;
    struct sqlite_sums sums;
    sqlite3_stmt *q;
    bool found;
    enum profd_status status = PROFD_OK;
    const uint64_t limit = budget->uploads > 0 ? budget->uploads : 1;
    TRY(folding_begin(&r->folding, r->arena, e));
    TRY(sqlite_start(s, SQL_RAW_EACH, VALUES(INTEGER(series->id), INTEGER(hour), INTEGER(limit)), &q, e));
    while (sqlite_row(s, q, &status, e)) {
        status = take_raw(r, q, series, e);
        budget->uploads -= budget->uploads > 0;
        if (sqlite_budget_spent(budget) || r->nodes >= NODES_MAX) {
            break;
        }
    }
    sqlite_finish(q);
    TRY(status);
    const uint64_t uploads = r->folding.out.uploads;
    FAIL_IF(uploads == 0, e, PROFD_DAMAGED,
            "database %s: series %lld, hour %lld: the ledger names uploads that are not there", s->path,
            (long long)series->id, (long long)hour);
    TRY(folding_finish(&r->folding, e));
    TRY(add_upward(s, r->arena, series, SQLITE_LEVEL_HOUR, hour, &r->folding.out, e));
    TRY(sqlite_run(s, SQL_RAW_REMOVE,
                   VALUES(INTEGER(series->id), INTEGER(hour), INTEGER(hour), INTEGER(r->last_number)), e));

    TRY(sqlite_ledger_load(s, series->id, hour, series->build_count, &sums, &found, e));
    if (!found || sums.raw_uploads < uploads || sums.raw_bytes < r->bytes || sums.live_bytes < r->live_bytes ||
        t->raw_uploads < uploads || t->raw_bytes < r->bytes || t->live_bytes < r->live_bytes) {
        return profd_error_set(e, PROFD_DAMAGED,
                               "database %s: series %lld, hour %lld: the ledger knows fewer uploads than are stored",
                               s->path, (long long)series->id, (long long)hour);
    }
    sums.raw_uploads -= uploads;
    sums.raw_bytes -= r->bytes;
    sums.live_bytes -= r->live_bytes;
    t->raw_uploads -= uploads;
    t->raw_bytes -= r->bytes;
    t->live_bytes -= r->live_bytes;
    TRY(sqlite_ledger_save(s, series->id, hour, &sums, e));
    if (sums.raw_uploads == 0) {
        TRY(sqlite_run(s, SQL_LEDGER_SINCE, VALUES(INTEGER(series->id), INTEGER(hour), NOTHING), e));
    }
    TRY(sqlite_series_load(s, series->id, series->build_count, &sums, &found, e));
    if (!found) {
        return PROFD_OK;
    }
    sums.raw_uploads -= uploads;
    sums.raw_bytes -= r->bytes;
    sums.live_bytes -= r->live_bytes;
    return sqlite_series_save(s, series->id, &sums, e);
}

enum profd_status sqlite_roll_hour(struct store *s, int64_t series, int64_t hour, struct sqlite_budget *budget,
                                   bool *readable, struct store_progress *progress, struct profd_error *e)
{
    struct rolling r = {.s = s, .arena = arena_new(0)};
    struct sqlite_identity identity;
    const struct sqlite_state before = s->state;
    *readable = true;
    /* What the transaction has changed before is written first, because only the following may be rolled back. */
    enum profd_status status = r.arena ? sqlite_users_flush(s, e) : profd_no_memory(e);
    status = status ? status : sqlite_run(s, SQL_ROLL_BEGIN, NULL, 0, e);
    if (status) {
        arena_free(r.arena);
        return status;
    }
    status = sqlite_series_need(s, r.arena, series, "the ledger", &identity, e);
    status = status ? status : roll(&r, &identity, hour, budget, e);
    arena_free(r.arena);
    if (!is_unreadable(s, status)) {
        progress->uploads += r.folding.out.uploads;
        progress->rows++;
        return status ? status : sqlite_run(s, SQL_ROLL_DONE, NULL, 0, e);
    }

    /* Excludes these uploads until another one arrives in their hour. */
    *readable = false;
    s->state = before;
    status = sqlite_run(s, SQL_ROLL_UNDO, NULL, 0, e);
    sqlite_users_discard(s);
    TRY(status);
    TRY(sqlite_run(s, SQL_ROLL_DONE, NULL, 0, e));
    return sqlite_run(s, SQL_LEDGER_SINCE, VALUES(INTEGER(series), INTEGER(hour), NOTHING), e);
}

/* --- What is rolled up next: hours from uploads, days from hours, all time from days --- */

enum profd_status sqlite_reclaim(struct store *s, const struct sqlite_budget *budget, bool *left,
                                 struct store_progress *progress, struct profd_error *e)
{
    int64_t series = 0;
    TRY(sqlite_find(s, SQL_DOOMED_NEXT, NULL, 0, &series, left, e));
    while (*left && !sqlite_budget_spent(budget)) {
        /* Removes a slice of one table of a deleted series. removed is 0 if nothing of the series is left. */
        static const enum sqlite_sql tables[] = {SQL_DOOMED_RAW,    SQL_DOOMED_ROLLUPS, SQL_DOOMED_PROCESSES,
                                                 SQL_SEALED_DOOMED, SQL_SLICE_DOOMED,   SQL_HOST_TOTAL_DOOMED,
                                                 SQL_DOOMED_LEDGER};
        uint64_t removed = 0;
        for (size_t i = 0; removed == 0 && i < sizeof tables / sizeof tables[0]; i++) {
            TRY(sqlite_run(s, tables[i], VALUES(INTEGER(series)), e));
            removed = (uint64_t)sqlite3_changes(s->db);
            if (tables[i] == SQL_DOOMED_ROLLUPS) {
                s->state.rollups -= removed < s->state.rollups ? removed : s->state.rollups;
                progress->rows += removed;
            }
        }
        if (removed == 0) {
            TRY(sqlite_run(s, SQL_DOOMED_REMOVE, VALUES(INTEGER(series)), e));
            TRY(sqlite_run(s, SQL_BLOCKS_GONE, NULL, 0, e));
            TRY(sqlite_find(s, SQL_DOOMED_NEXT, NULL, 0, &series, left, e));
        }
    }
    return PROFD_OK;
}

/* Adds hours to their day (and to all time, if it contains the day), or days to all time: as many as the budget allows,
 * but at least one. */
static enum profd_status fold(struct store *s, int64_t series, int level, int64_t first,
                              const struct sqlite_budget *budget, struct profd_error *e)
{
    struct gathering g;
    struct folded row;
    const bool hours = level == SQLITE_LEVEL_HOUR;
    const int64_t last = hours ? first / 24 * 24 + 23 : INT64_MAX;
    bool found = true;
    enum profd_status status = gathering_begin(&g, s, series, e);
    for (int64_t at = first; !status && found && (at == first || !sqlite_budget_spent(budget)); at++) {
        status = gather(&g, level, &at, last, &row, &found, e);
        if (!status && found) {
            status = folding_add(&g.folding, &row, e);
            status = status ? status
                            : sqlite_run(s, SQL_ROLLUP_FOLD, VALUES(INTEGER(series), INTEGER(level), INTEGER(at)), e);
        }
    }
    status = status ? status : folding_finish(&g.folding, e);
    status = status ? status : add_upward(s, g.arena, &g.series, level + 1, hours ? first / 24 : 0, &g.folding.out, e);
    gathering_end(&g);
    return status;
}

/* Does one piece of work. *found is false if there is none. */
static enum profd_status work_once(struct store *s, const struct store_policy *policy, int64_t now,
                                   struct sqlite_budget *budget, bool *found, struct store_progress *progress,
                                   struct profd_error *e)
{
    int64_t series = 0, at = 0, frozen, block;
    int level = SQLITE_LEVEL_HOUR;
    bool readable;
    sqlite3_stmt *q;
    *found = false;
    TRY(sqlite_frozen_day(s, &frozen, &block, e));
    TRY(sqlite_first(s, SQL_LEDGER_RAW, VALUES(INTEGER(frozen)), &q, found, e));
    if (*found) {
        *found = sqlite3_column_int64(q, 0) < (now - policy->raw_age) / SQLITE_SECOND ||
                 s->state.raw_bytes > policy->raw_bytes;
        series = sqlite3_column_int64(q, 1);
        at = sqlite3_column_int64(q, 2);
        sqlite_finish(q);
    }
    if (*found) {
        return sqlite_roll_hour(s, series, at, budget, &readable, progress, e);
    }

    enum profd_status status = PROFD_OK;
    if (s->state.live_bytes > policy->raw_bytes / STORE_LIVE_PART && !s->no_widening) {
        status = widen_slice(s, found, progress, e);
        s->no_widening = is_unreadable(s, status);
    }
    if (status || *found || s->no_folding) {
        return status;
    }
    status = compact_slices(s, policy, now, found, progress, e);
    if (!status && !*found) {
        /* If all uploads of a day are old enough to be rolled up, the day has all of its hours. Later uploads are
         * added. */
        TRY(find_open(s, level, (now - policy->raw_age) / SQLITE_DAY * 24, &series, &at, found, e));
        if (!*found && !s->tier) {
            level = SQLITE_LEVEL_DAY;
            TRY(find_open(s, level, INT64_MAX, &series, &at, found, e));
        }
        progress->rows += *found;
        status = *found ? fold(s, series, level, at, budget, e) : PROFD_OK;
    }
    s->no_folding = is_unreadable(s, status);
    return status;
}

enum profd_status store_compact(struct store *s, const struct store_policy *policy, int64_t now,
                                struct store_progress *out, struct profd_error *e)
{
    struct sqlite_budget budget = sqlite_budget_begin();
    struct store_progress progress = {.more = false};
    bool found = true, doomed = false;
    TRY(sqlite_upkeep_begin(s, e));
    enum profd_status status = sqlite_reclaim(s, &budget, &doomed, &progress, e);
    while (!status && found && !doomed && !sqlite_budget_spent(&budget)) {
        status = work_once(s, policy, now, &budget, &found, &progress, e);
    }
    if (is_unreadable(s, status) && (s->no_folding || s->no_widening)) {
        sqlite_write_undo(s); /* the rest of the work can continue */
        progress = (struct store_progress){.more = false};
        status = PROFD_OK;
    } else {
        status = sqlite_upkeep_end(s, status, e);
    }
    progress.more = found || doomed;
    if (!status) {
        *out = progress;
    }
    return status;
}
