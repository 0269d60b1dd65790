#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/sum.h"
#include "proto/message.h"
#include "store/sqlite_verify.h"

/* Names of the compared rows: a row and those below it. */
struct floor {
    int level; /* of the row */
    int64_t at;
    int64_t from, to; /* of the rows below */
    char where[80];
};

static bool same_histograms(const struct rollup *x, const struct rollup *y)
{
    if (x->histogram_count != y->histogram_count) {
        return false;
    }
    for (uint32_t i = 0; i < x->histogram_count; i++) {
        const struct rollup_histogram *a = &x->histograms[i], *b = &y->histograms[i];
        if (a->build != b->build || a->bins != b->bins || a->low != b->low || a->high != b->high ||
            a->rate != b->rate || strcmp(a->dimension, b->dimension) != 0 || a->abbreviation != b->abbreviation ||
            a->first != b->first || a->used != b->used || a->order.commit != b->order.commit ||
            a->order.rank != b->order.rank) {
            return false;
        }
    }
    return true;
}

static bool same_bytes(const void *x, const void *y, size_t n)
{
    return n == 0 || memcmp(x, y, n) == 0;
}

static bool same_counts(const struct rollup *x, const struct rollup *y)
{
    size_t bins = x->bin_count, arcs = x->arc_count;
    return bins == y->bin_count && arcs == y->arc_count && x->saturated == y->saturated && same_histograms(x, y) &&
           same_bytes(x->bin_index, y->bin_index, bins * sizeof *x->bin_index) &&
           same_bytes(x->bin_ticks, y->bin_ticks, bins * sizeof *x->bin_ticks) &&
           same_bytes(x->from_build, y->from_build, arcs * sizeof *x->from_build) &&
           same_bytes(x->to_build, y->to_build, arcs * sizeof *x->to_build) &&
           same_bytes(x->from, y->from, arcs * sizeof *x->from) && same_bytes(x->to, y->to, arcs * sizeof *x->to) &&
           same_bytes(x->calls, y->calls, arcs * sizeof *x->calls) &&
           same_bytes(x->commit, y->commit, arcs * sizeof *x->commit) &&
           same_bytes(x->rank, y->rank, arcs * sizeof *x->rank);
}

static void compare_rows(struct sqlite_verifying *v, const char *where, const struct sqlite_rolled *row,
                         const struct sqlite_rolled *sum)
{
    static const char in_row[] = "sum's row", in_parts[] = "rows below it";
    sqlite_verify_equal(v, where, "uploads", in_row, row->uploads, in_parts, sum->uploads);
    sqlite_verify_equal(v, where, "processes", in_row, row->processes, in_parts, sum->processes);
    sqlite_verify_equal(v, where, "first upload", in_row, (uint64_t)row->number, in_parts, (uint64_t)sum->number);
    sqlite_verify_equal(v, where, "earliest start", in_row, (uint64_t)row->first, in_parts, (uint64_t)sum->first);
    sqlite_verify_equal(v, where, "latest end", in_row, (uint64_t)row->last, in_parts, (uint64_t)sum->last);
    sqlite_verify_equal(v, where, "reasons for inexactness", in_row, row->inexact, in_parts, sum->inexact);
    uint64_t ticks, calls;
    rollup_totals(&row->counts, &ticks, &calls);
    sqlite_verify_equal(v, where, "ticks", "column", row->ticks, "sum itself", ticks);
    sqlite_verify_equal(v, where, "calls", "column", row->calls, "sum itself", calls);
    if (memcmp(&row->groups, &sum->groups, sizeof row->groups) != 0 && row->processes < SUM_MAX) {
        sqlite_verify_tell(v, "%s: its processes by group are not those of the rows below it", where);
    }
    if (row->host_count != sum->host_count ||
        !same_bytes(row->hosts, sum->hosts, row->host_count * sizeof *row->hosts)) {
        sqlite_verify_tell(v, "%s: its hosts are not those of the rows below it", where);
    }
    if (!same_counts(&row->counts, &sum->counts)) {
        sqlite_verify_tell(v, "%s: its counts are not those of the rows below it", where);
    } else if (!same_bytes(row->spread.bins, sum->spread.bins,
                           (size_t)row->counts.bin_count * ROLLUP_GROUPS * sizeof(uint64_t)) ||
               !same_bytes(row->spread.arcs, sum->spread.arcs,
                           (size_t)row->counts.arc_count * ROLLUP_GROUPS * sizeof(uint64_t))) {
        sqlite_verify_tell(v, "%s: its groups are not those of the rows below it", where);
    }
}

/* Adds up the folded rows below. *complete is false if one could not be read. */
static enum profd_status add_below(struct sqlite_verifying *v, const struct sqlite_identity *series,
                                   const struct floor *fl, struct sqlite_folding *f, bool *complete,
                                   struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    struct arena *outer = v->arena, *scratch = arena_new(0);
    int64_t at = fl->from;
    *complete = true;
    if (!scratch) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to verify the store");
    }
    for (bool found = true; status == PROFD_OK && found && at <= fl->to;) {
        struct sqlite_rolled row;
        status = sqlite_find(v->s, SQL_ROLLUP_FOLDED_AT,
                             VALUES(INTEGER(series->id), INTEGER(fl->level - 1), INTEGER(at), INTEGER(fl->to)), &at,
                             &found, e);
        if (status != PROFD_OK || !found) {
            break;
        }
        v->arena = scratch;
        arena_reset(scratch);
        status = sqlite_verify_load(v, series, fl->level - 1, at, &row, &found, e);
        v->arena = outer;
        *complete &= found;
        if (status == PROFD_OK && found) {
            status = sqlite_folding_add(f, &row, e);
        }
        found = true;
        at++;
    }
    arena_free(scratch);
    return status;
}

static enum profd_status verify_floor(struct sqlite_verifying *v, const struct sqlite_identity *series,
                                      const struct floor *fl, struct profd_error *e)
{
    struct sqlite_rolled row;
    struct sqlite_folding f;
    bool found, complete = true, exists = false;
    int64_t one;
    enum profd_status status = sqlite_folding_begin(&f, v->arena, e);
    if (status == PROFD_OK) {
        status = sqlite_find(v->s, SQL_ROLLUP_EXISTS, VALUES(INTEGER(series->id), INTEGER(fl->level), INTEGER(fl->at)),
                             &one, &exists, e);
    }
    if (status == PROFD_OK) {
        status = add_below(v, series, fl, &f, &complete, e);
    }
    if (status == PROFD_OK) {
        status = sqlite_folding_finish(&f, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    if (!exists && f.out.uploads == 0) {
        return PROFD_OK;
    }
    if (!exists) {
        sqlite_verify_tell(v, "%s is missing, but rows below are marked as being in it", fl->where);
        return PROFD_OK;
    }
    status = sqlite_verify_load(v, series, fl->level, fl->at, &row, &found, e);
    if (status == PROFD_OK && found && complete) {
        compare_rows(v, fl->where, &row, &f.out);
    }
    return status;
}

enum profd_status sqlite_verify_day(struct sqlite_verifying *v, const struct sqlite_identity *series, int64_t day,
                                    struct profd_error *e)
{
    struct floor fl = {.level = SQLITE_LEVEL_DAY, .at = day, .from = 24 * day, .to = 24 * day + 23};
    snprintf(fl.where, sizeof fl.where, "series %" PRId64 ", sum of day %" PRId64, series->id, day);
    return verify_floor(v, series, &fl, e);
}

enum profd_status sqlite_verify_all(struct sqlite_verifying *v, const struct sqlite_identity *series,
                                    struct profd_error *e)
{
    struct floor fl = {.level = SQLITE_LEVEL_ALL, .from = INT64_MIN, .to = INT64_MAX - 1};
    snprintf(fl.where, sizeof fl.where, "series %" PRId64 ", sum of all time", series->id);
    return verify_floor(v, series, &fl, e);
}
