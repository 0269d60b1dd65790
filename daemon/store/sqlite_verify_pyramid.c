#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/sum.h"
#include "proto/counts_tree.h"
#include "proto/limits.h"
#include "proto/message.h"
#include "store/sqlite_verify.h"

/* Names of the compared rows: a row and those below it. */
struct floor {
    int level; /* of the row */
    int64_t at;
    int64_t from, to; /* of the rows below */
    char where[80];
};

static bool same_histograms(const struct counts *x, const struct counts *y)
{
    if (x->histogram_count != y->histogram_count) {
        return false;
    }
    for (uint32_t i = 0; i < x->histogram_count; i++) {
        const struct counts_histogram *a = &x->histograms[i], *b = &y->histograms[i];
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

static bool same_stacks(const struct counts *x, const struct counts *y)
{
    const size_t n = x->node_count;
    if (x->tree_count != y->tree_count || n != y->node_count) {
        return false;
    }
    for (uint32_t i = 0; i < x->tree_count; i++) {
        if (counts_compare_clocks(&x->trees[i], &y->trees[i]) != 0 || x->trees[i].used != y->trees[i].used) {
            return false;
        }
    }
    return same_bytes(x->node_depth, y->node_depth, n) && same_bytes(x->node_kind, y->node_kind, n) &&
           same_bytes(x->node_build, y->node_build, n * sizeof *x->node_build) &&
           same_bytes(x->node_address, y->node_address, n * sizeof *x->node_address) &&
           same_bytes(x->node_ticks, y->node_ticks, n * sizeof *x->node_ticks);
}

/* The ticks of a tree, and those of each group. */
struct tree_sums {
    uint64_t ticks, groups[COUNTS_GROUPS];
};

static struct tree_sums add_tree(const struct folded *row, const struct counts_tree *t)
{
    struct tree_sums s = {0};
    bool ignored = false;
    for (uint32_t i = t->first; i < t->first + t->used; i++) {
        sum_add(&s.ticks, row->counts.node_ticks[i], &ignored);
        for (uint32_t g = 0; g < COUNTS_GROUPS; g++) {
            sum_add(&s.groups[g], row->spread.nodes[(size_t)i * COUNTS_GROUPS + g], &ignored);
        }
    }
    return s;
}

static bool same_tree_sums(const struct folded *x, const struct folded *y)
{
    bool same = x->counts.tree_count == y->counts.tree_count;
    for (uint32_t i = 0; i < x->counts.tree_count && same; i++) {
        const struct tree_sums a = add_tree(x, &x->counts.trees[i]), b = add_tree(y, &y->counts.trees[i]);
        same = counts_compare_clocks(&x->counts.trees[i], &y->counts.trees[i]) == 0 && memcmp(&a, &b, sizeof a) == 0;
    }
    return same;
}

/* Which nodes a folded sum has depends on the order of adding; its ticks do not. A sum has folded, or one of its parts
 * has, only if it has all the nodes that a sum may have: it never gets fewer again. */
static void compare_stacks(struct sqlite_verifying *v, const char *where, const struct folded *row,
                           const struct folded *sum)
{
    const bool folded = row->counts.node_count == LIMIT_STACK_NODES && sum->counts.node_count == LIMIT_STACK_NODES;
    if (!folded && !same_stacks(&row->counts, &sum->counts)) {
        sqlite_verify_tell(v, "%s: its stacks are not those of the rows below it", where);
    } else if (folded ? !same_tree_sums(row, sum)
                      : !same_bytes(row->spread.nodes, sum->spread.nodes,
                                    (size_t)row->counts.node_count * COUNTS_GROUPS * sizeof(uint64_t))) {
        sqlite_verify_tell(v, "%s: the ticks or the groups of its stacks are not those of the rows below it", where);
    }
}

static bool same_counts(const struct counts *x, const struct counts *y)
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

static void compare_rows(struct sqlite_verifying *v, const char *where, const struct folded *row,
                         const struct folded *sum)
{
    static const char in_row[] = "sum's row", in_parts[] = "rows below it";
    sqlite_verify_equal(v, where, "uploads", in_row, row->uploads, in_parts, sum->uploads);
    sqlite_verify_equal(v, where, "processes", in_row, row->processes, in_parts, sum->processes);
    sqlite_verify_equal(v, where, "first upload", in_row, (uint64_t)row->number, in_parts, (uint64_t)sum->number);
    sqlite_verify_equal(v, where, "earliest start", in_row, (uint64_t)row->first, in_parts, (uint64_t)sum->first);
    sqlite_verify_equal(v, where, "latest end", in_row, (uint64_t)row->last, in_parts, (uint64_t)sum->last);
    sqlite_verify_equal(v, where, "reasons for inexactness", in_row, row->inexact, in_parts, sum->inexact);
    uint64_t ticks, calls;
    counts_totals(&row->counts, &ticks, &calls);
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
                           (size_t)row->counts.bin_count * COUNTS_GROUPS * sizeof(uint64_t)) ||
               !same_bytes(row->spread.arcs, sum->spread.arcs,
                           (size_t)row->counts.arc_count * COUNTS_GROUPS * sizeof(uint64_t))) {
        sqlite_verify_tell(v, "%s: its groups are not those of the rows below it", where);
    }
    compare_stacks(v, where, row, sum);
}

/* Adds up the folded rows below. *complete is false if one could not be read. */
static enum profd_status add_below(struct sqlite_verifying *v, const struct sqlite_identity *series,
                                   const struct floor *fl, struct folding *f, bool *complete, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    struct arena *outer = v->arena, *scratch = arena_new(0);
    int64_t at = fl->from;
    *complete = true;
    if (!scratch) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to verify the store");
    }
    for (bool found = true; status == PROFD_OK && found && at <= fl->to;) {
        struct folded row;
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
            status = folding_add(f, &row, e);
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
    struct folded row;
    struct folding f;
    bool found, complete = true, exists = false;
    int64_t one;
    TRY(folding_begin(&f, v->arena, true, e));
    TRY(sqlite_find(v->s, SQL_ROLLUP_EXISTS, VALUES(INTEGER(series->id), INTEGER(fl->level), INTEGER(fl->at)), &one,
                    &exists, e));
    TRY(add_below(v, series, fl, &f, &complete, e));
    TRY(folding_finish(&f, e));
    if (!exists && f.out.uploads == 0) {
        return PROFD_OK;
    }
    if (!exists) {
        sqlite_verify_tell(v, "%s is missing, but rows below are marked as being in it", fl->where);
        return PROFD_OK;
    }
    TRY(sqlite_verify_load(v, series, fl->level, fl->at, &row, &found, e));
    if (found && complete) {
        compare_rows(v, fl->where, &row, &f.out);
    }
    return PROFD_OK;
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
