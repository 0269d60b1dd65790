#include "store/sqlite_rollup.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/sum.h"
#include "proto/message.h"
#include "proto/varint.h"

#define SLICE_NANOSECONDS 20000000 /* uploads wait this long for a slice */
#define SLICE_UPLOADS 512

static int64_t work_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

struct sqlite_budget sqlite_budget_begin(void)
{
    return (struct sqlite_budget){.deadline = work_now() + SLICE_NANOSECONDS, .uploads = SLICE_UPLOADS};
}

bool sqlite_budget_spent(const struct sqlite_budget *b)
{
    return b->uploads == 0 || work_now() >= b->deadline;
}

enum profd_status sqlite_upkeep_begin(struct store *s, struct profd_error *e)
{
    enum profd_status status = sqlite_write_begin(s, e);
    s->before = s->state;
    return status;
}

enum profd_status sqlite_upkeep_end(struct store *s, enum profd_status status, struct profd_error *e)
{
    if (status == PROFD_OK && memcmp(&s->before, &s->state, sizeof s->state) != 0) {
        status = sqlite_save_state(s, e);
    }
    return sqlite_write_end(s, status, e);
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
    if (!random_groups_decode(bytes, n, out)) {
        return profd_error_set(e, PROFD_DAMAGED,
                               "database %s: a sum's %zu bytes of processes by group break their rules", s->path, n);
    }
    return PROFD_OK;
}

static enum profd_status read_row(struct store *s, struct arena *a, sqlite3_stmt *q, size_t builds, struct folded *out,
                                  struct profd_error *e)
{
    size_t hosts_size, counts_size, spread_size;
    *out = (struct folded){.folded = sqlite3_column_int(q, ROLLUP_FOLDED) != 0,
                           .number = sqlite3_column_int64(q, ROLLUP_NUMBER),
                           .uploads = (uint64_t)sqlite3_column_int64(q, ROLLUP_UPLOADS),
                           .processes = (uint64_t)sqlite3_column_int64(q, ROLLUP_PROCESSES),
                           .first = sqlite3_column_int64(q, ROLLUP_FIRST),
                           .last = sqlite3_column_int64(q, ROLLUP_LAST),
                           .inexact = (uint32_t)sqlite3_column_int64(q, ROLLUP_INEXACT),
                           .ticks = (uint64_t)sqlite3_column_int64(q, ROLLUP_AFTER + 1),
                           .calls = (uint64_t)sqlite3_column_int64(q, ROLLUP_AFTER + 2)};
    const uint8_t *hosts = sqlite_blob(q, ROLLUP_HOSTS, &hosts_size),
                  *counts = sqlite_blob(q, ROLLUP_COUNTS, &counts_size),
                  *spread = sqlite_blob(q, ROLLUP_AFTER, &spread_size);
    enum profd_status status = folded_decode_hosts(a, hosts, hosts_size, &out->hosts, &out->host_count, e);
    if (status == PROFD_OK) {
        status = sqlite_processes_decode(s, q, ROLLUP_AFTER + 3, out->processes, &out->groups, e);
    }
    if (status == PROFD_OK) {
        status = rollup_decode(a, counts, counts_size, (uint32_t)builds, false, &out->counts, e);
    }
    if (status == PROFD_OK) {
        status = rollup_decode_spread(a, &out->counts, spread, spread_size, &out->spread, e);
    }
    return status == PROFD_OK ? status
                              : profd_error_wrap(e, status, "database %s: row %lld of rollup", s->path,
                                                 (long long)sqlite3_column_int64(q, ROLLUP_ID));
}

enum profd_status sqlite_rollup_load(struct store *s, struct arena *a, int64_t series, int level, int64_t at,
                                     size_t builds, struct folded *out, bool *found, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    enum profd_status status =
        sqlite_first(s, SQL_ROLLUP_GET, VALUES(INTEGER(series), INTEGER(level), INTEGER(at)), &q, &row, e);
    *found = row;
    if (!row) {
        return status;
    }
    status = read_row(s, a, q, builds, out, e);
    sqlite_finish(q);
    return status;
}

static enum profd_status save_processes(struct store *s, int64_t series, int level, int64_t at,
                                        const struct random_groups *groups, struct profd_error *e)
{
    uint8_t bytes[RANDOM_GROUPS_BYTES];
    size_t n = random_groups_encode(groups, bytes);
    return sqlite_run(s, SQL_ROLLUP_PROCESSES_SET, VALUES(INTEGER(series), INTEGER(level), INTEGER(at), BLOB(bytes, n)),
                      e);
}

static enum profd_status save_row(struct store *s, struct arena *a, int64_t series, int level, int64_t at,
                                  const struct folded *row, bool exists, struct profd_error *e)
{
    uint8_t *counts = NULL, *spread = NULL;
    size_t counts_size = 0, spread_size = 0, hosts_size;
    uint64_t ticks, calls;
    uint8_t *hosts = folded_encode_hosts(a, row->hosts, row->host_count, &hosts_size);
    enum profd_status status = hosts ? counts_encode(&row->counts, &counts, &counts_size, e) : profd_no_memory(e);
    if (status == PROFD_OK) {
        status = counts_encode_shares(&row->counts, &row->spread, &spread, &spread_size, e);
    }
    counts_totals(&row->counts, &ticks, &calls);
    if (status == PROFD_OK) {
        s->state.version++;
        s->state.rollups += !exists;
        status = sqlite_run(s, exists ? SQL_ROLLUP_SET : SQL_ROLLUP_ADD,
                            VALUES(INTEGER(series), INTEGER(level), INTEGER(at), INTEGER(s->state.version),
                                   INTEGER(row->number), INTEGER(row->uploads), INTEGER(row->processes), INTEGER(ticks),
                                   INTEGER(calls), INTEGER(row->first), INTEGER(row->last), INTEGER(row->inexact),
                                   BLOB(hosts, hosts_size), BLOB(counts, counts_size), BLOB(spread, spread_size)),
                            e);
    }
    free(counts);
    free(spread);
    return status == PROFD_OK ? save_processes(s, series, level, at, &row->groups, e) : status;
}

enum profd_status sqlite_rollup_add(struct store *s, struct arena *a, const struct sqlite_identity *series, int level,
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
    TRY(folding_begin(&f, a, true, e));
    TRY(folding_add(&f, &row, e));
    TRY(folding_add(&f, more, e));
    TRY(folding_finish(&f, e));
    return save_row(s, a, series->id, level, at, &f.out, true, e);
}

enum profd_status sqlite_pyramid_add(struct store *s, struct arena *a, const struct sqlite_identity *series,
                                     int64_t hour, const struct folded *more, struct profd_error *e)
{
    bool folded;
    TRY(sqlite_rollup_add(s, a, series, SQLITE_LEVEL_HOUR, hour, more, &folded, e));
    if (folded) {
        TRY(sqlite_rollup_add(s, a, series, SQLITE_LEVEL_DAY, hour / 24, more, &folded, e));
    }
    if (folded) {
        TRY(sqlite_rollup_add(s, a, series, SQLITE_LEVEL_ALL, 0, more, &folded, e));
    }
    return PROFD_OK;
}
