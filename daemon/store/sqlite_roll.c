/* Rolls up the single uploads of an hour. */
#include "core/sum.h"
#include "proto/limits.h"
#include "proto/message.h"
#include "store/sqlite_rollup.h"
#include "store/sqlite_slice.h"
#include "store/sqlite_users.h"

/* Nodes of stacks after which no further upload is taken: each may be another one, and adding them up takes longer than
 * reading them. */
#define NODES_MAX LIMIT_STACK_NODES

/* Uploads of one series and hour that are being rolled up. */
struct rolling {
    struct store *s;
    struct arena *arena;
    struct folding folding;
    uint64_t bytes, live_bytes, nodes; /* nodes: of stacks */
    int64_t last_number;
    bool all; /* no upload of the hour is left */
};

/* Adds a row of SQL_RAW_EACH. */
static enum profd_status take_raw(struct rolling *r, sqlite3_stmt *q, const struct sqlite_identity *series,
                                  struct profd_error *e)
{
    struct counts c;
    size_t n;
    struct folded *out = &r->folding.out;
    bool saturated = false;
    int64_t number = sqlite3_column_int64(q, 0), host = sqlite3_column_int64(q, 1), start = sqlite3_column_int64(q, 2);
    int64_t end = start + sqlite3_column_int64(q, 3), parts = sqlite3_column_int64(q, 9);
    const struct sqlite_slice slice = {series->id, sqlite3_column_int(q, 8), end, sqlite3_column_int64(q, 10), number};
    const uint8_t *bytes = sqlite_blob(q, 7, &n);
    enum profd_status status = counts_decode(bytes, n, (uint32_t)series->build_count, &c, e);
    if (status != PROFD_OK) {
        return profd_error_wrap(e, status == PROFD_NO_MEMORY ? status : PROFD_DAMAGED, "database %s: upload %lld",
                                r->s->path, (long long)number);
    }
    status = rollup_sum_add_upload(r->folding.sum, &c, (uint64_t)number, (uint32_t)sqlite3_column_int(q, 6), e);
    const uint32_t nodes = c.node_count;
    counts_done(&c);
    out->uploads += (uint64_t)parts;
    struct random_groups started = {.unknown = 0};
    started.of[sqlite3_column_int(q, 6) & (int)(RANDOM_GROUPS - 1)] = (uint64_t)sqlite3_column_int64(q, 5);
    random_groups_add(&out->groups, &started);
    sum_add(&out->processes, (uint64_t)sqlite3_column_int64(q, 5), &saturated);
    out->inexact |= (uint32_t)sqlite3_column_int64(q, 4) | (saturated ? (uint32_t)INEXACT_SATURATED : 0);
    out->number = number < out->number ? number : out->number;
    out->first = start < out->first ? start : out->first;
    out->last = end > out->last ? end : out->last;
    r->bytes += n;
    r->nodes += nodes;
    r->live_bytes += slice.width > 0 ? n : 0;
    r->last_number = number;
    bool known = out->host_count > 0 && out->hosts[out->host_count - 1] == host; /* most come from one host */
    if (status == PROFD_OK && !known &&
        !folded_merge_hosts(r->arena, out->hosts, out->host_count, &host, 1, &out->hosts, &out->host_count)) {
        return profd_no_memory(e);
    }
    return status == PROFD_OK && slice.width > 0 ? sqlite_slice_remove(r->s, &slice, e) : status;
}

/* Updates the ledger, the series and the totals: fewer uploads are single. */
static enum profd_status enter_rolled(struct rolling *r, const struct sqlite_identity *series, int64_t hour,
                                      struct profd_error *e)
{
    struct sqlite_sums sums;
    bool found;
    uint64_t uploads = r->folding.out.uploads;
    struct sqlite_state *t = &r->s->state;
    TRY(sqlite_ledger_load(r->s, series->id, hour, series->build_count, &sums, &found, e));
    if (!found || sums.raw_uploads < uploads || sums.raw_bytes < r->bytes || sums.live_bytes < r->live_bytes ||
        t->raw_uploads < uploads || t->raw_bytes < r->bytes || t->live_bytes < r->live_bytes) {
        return profd_error_set(e, PROFD_DAMAGED,
                               "database %s: series %lld, hour %lld: the ledger knows fewer uploads than are stored",
                               r->s->path, (long long)series->id, (long long)hour);
    }
    sums.raw_uploads -= uploads;
    sums.raw_bytes -= r->bytes;
    sums.live_bytes -= r->live_bytes;
    r->all = sums.raw_uploads == 0;
    t->raw_uploads -= uploads;
    t->raw_bytes -= r->bytes;
    t->live_bytes -= r->live_bytes;
    TRY(sqlite_ledger_save(r->s, series->id, hour, &sums, e));
    if (r->all) {
        TRY(sqlite_run(r->s, SQL_LEDGER_SINCE, VALUES(INTEGER(series->id), INTEGER(hour), NOTHING), e));
    }
    TRY(sqlite_series_load(r->s, series->id, series->build_count, &sums, &found, e));
    if (!found) {
        return PROFD_OK;
    }
    sums.raw_uploads -= uploads;
    sums.raw_bytes -= r->bytes;
    sums.live_bytes -= r->live_bytes;
    return sqlite_series_save(r->s, series->id, &sums, e);
}

static enum profd_status roll(struct rolling *r, const struct sqlite_identity *series, int64_t hour,
                              struct sqlite_budget *budget, struct profd_error *e)
{
    TRY(folding_begin(&r->folding, r->arena, true, e));
    sqlite3_stmt *q;
    uint64_t limit = budget->uploads > 0 ? budget->uploads : 1;
    TRY(sqlite_start(r->s, SQL_RAW_EACH, VALUES(INTEGER(series->id), INTEGER(hour), INTEGER(limit)), &q, e));
    enum profd_status status = PROFD_OK;
    while (sqlite_row(r->s, q, &status, e)) {
        status = take_raw(r, q, series, e);
        budget->uploads -= budget->uploads > 0;
        if (status != PROFD_OK || sqlite_budget_spent(budget) || r->nodes >= NODES_MAX) {
            sqlite_finish(q);
            break;
        }
    }
    TRY(status);
    if (r->folding.out.uploads == 0) {
        return profd_error_set(e, PROFD_DAMAGED,
                               "database %s: series %lld, hour %lld: the ledger names uploads that are not there",
                               r->s->path, (long long)series->id, (long long)hour);
    }
    TRY(folding_finish(&r->folding, e));
    TRY(sqlite_pyramid_add(r->s, r->arena, series, hour, &r->folding.out, e));
    TRY(sqlite_run(r->s, SQL_RAW_REMOVE,
                   VALUES(INTEGER(series->id), INTEGER(hour), INTEGER(hour), INTEGER(r->last_number)), e));
    return enter_rolled(r, series, hour, e);
}

/* Excludes the uploads from the search until another one arrives in their hour. */
static enum profd_status set_aside(struct store *s, int64_t series, int64_t hour, const struct sqlite_state *before,
                                   struct profd_error *e)
{
    s->state = *before;
    enum profd_status status = sqlite_run(s, SQL_ROLL_UNDO, NULL, 0, e);
    sqlite_users_discard(s);
    if (status == PROFD_OK) {
        TRY(sqlite_run(s, SQL_ROLL_DONE, NULL, 0, e));
    }
    return status == PROFD_OK ? sqlite_run(s, SQL_LEDGER_SINCE, VALUES(INTEGER(series), INTEGER(hour), NOTHING), e)
                              : status;
}

enum profd_status sqlite_roll_hour(struct store *s, int64_t series, int64_t hour, struct sqlite_budget *budget,
                                   bool *readable, struct store_progress *progress, struct profd_error *e)
{
    struct rolling r = {.s = s, .arena = arena_new(0)};
    struct sqlite_identity identity;
    struct sqlite_state before = s->state;
    bool found;
    *readable = true;
    enum profd_status status =
        r.arena ? sqlite_users_flush(s, e) : profd_no_memory(e); /* only the following may be rolled back */
    if (status == PROFD_OK) {
        status = sqlite_run(s, SQL_ROLL_BEGIN, NULL, 0, e);
    }
    if (status != PROFD_OK) {
        arena_free(r.arena);
        return status;
    }
    status = sqlite_series_identify(s, r.arena, series, &identity, &found, e);
    if (status == PROFD_OK && !found) {
        status = profd_error_set(e, PROFD_DAMAGED, "database %s: series %lld has uploads but no row", s->path,
                                 (long long)series);
    }
    if (status == PROFD_OK) {
        status = roll(&r, &identity, hour, budget, e);
    }
    arena_free(r.arena);
    if (status == PROFD_DAMAGED && s->broken == PROFD_OK) {
        *readable = false;
        return set_aside(s, series, hour, &before, e);
    }
    progress->uploads += r.folding.out.uploads;
    progress->rows++;
    return status == PROFD_OK ? sqlite_run(s, SQL_ROLL_DONE, NULL, 0, e) : status;
}
