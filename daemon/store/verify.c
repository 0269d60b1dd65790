/* Verification: computes sums from the stored data and compares them with what the ledger, the series, the sums above
 * and the totals say. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/counts_tree.h"
#include "proto/hex.h"
#include "proto/limits.h"
#include "proto/message.h"
#include "proto/sum.h"
#include "store/store_internal.h"

#define SLICE_NANOSECONDS 100000000
#define PAGES_A_STEP 256

struct verifying {
    struct store *s;
    struct arena *arena; /* of one piece of work */
    void (*mismatch)(void *context, const char *sentence);
    void *context;
    uint64_t uploads; /* looked at */
};

__attribute__((format(printf, 2, 3))) static void tell(struct verifying *v, const char *format, ...)
{
    char sentence[512];
    va_list ap;
    va_start(ap, format);
    vsnprintf(sentence, sizeof sentence, format, ap);
    va_end(ap);
    v->mismatch(v->context, sentence);
}

static void compare(struct verifying *v, const char *where, const char *name, const char *in_one, uint64_t x,
                    const char *in_other, uint64_t y)
{
    if (x != y) {
        tell(v, "%s: %s: %" PRIu64 " by the %s, %" PRIu64 " by the %s", where, name, x, in_one, y, in_other);
    }
}

static void compare_amounts(struct verifying *v, const char *where, const char *in_one, const struct store_amount *x,
                            const char *in_other, const struct store_amount *y)
{
    compare(v, where, "uploads", in_one, x->uploads, in_other, y->uploads);
    if (x->ticks < SUM_MAX && y->ticks < SUM_MAX) { /* a saturated sum is unknown, and so are its parts */
        compare(v, where, "ticks", in_one, x->ticks, in_other, y->ticks);
    }
    if (x->calls < SUM_MAX && y->calls < SUM_MAX) {
        compare(v, where, "calls", in_one, x->calls, in_other, y->calls);
    }
}

static enum profd_status load_row(struct verifying *v, const struct sqlite_identity *series, int level, int64_t at,
                                  struct folded *row, bool *found, struct profd_error *e)
{
    struct profd_error why;
    enum profd_status status =
        sqlite_rollup_load(v->s, v->arena, series->id, level, at, series->build_count, row, found, &why);
    if (status == PROFD_DAMAGED && v->s->broken == PROFD_OK) {
        tell(v, "series %" PRId64 ", level %d, number %" PRId64 ": %s", series->id, level, at, why.sentence);
        *found = false;
        return PROFD_OK;
    }
    if (status != PROFD_OK && e) {
        *e = why;
    }
    return status;
}

/* --- Sums above the hours --- */

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

static void compare_rows(struct verifying *v, const char *where, const struct folded *row, const struct folded *sum)
{
    static const char in_row[] = "sum's row", in_parts[] = "rows below it";
    compare(v, where, "uploads", in_row, row->uploads, in_parts, sum->uploads);
    compare(v, where, "processes", in_row, row->processes, in_parts, sum->processes);
    compare(v, where, "first upload", in_row, (uint64_t)row->number, in_parts, (uint64_t)sum->number);
    compare(v, where, "earliest start", in_row, (uint64_t)row->first, in_parts, (uint64_t)sum->first);
    compare(v, where, "latest end", in_row, (uint64_t)row->last, in_parts, (uint64_t)sum->last);
    compare(v, where, "reasons for inexactness", in_row, row->inexact, in_parts, sum->inexact);
    uint64_t ticks, calls;
    counts_totals(&row->counts, &ticks, &calls);
    compare(v, where, "ticks", "column", row->ticks, "sum itself", ticks);
    compare(v, where, "calls", "column", row->calls, "sum itself", calls);
    if (memcmp(&row->groups, &sum->groups, sizeof row->groups) != 0 && row->processes < SUM_MAX) {
        tell(v, "%s: its processes by group are not those of the rows below it", where);
    }
    if (row->host_count != sum->host_count ||
        !same_bytes(row->hosts, sum->hosts, row->host_count * sizeof *row->hosts)) {
        tell(v, "%s: its hosts are not those of the rows below it", where);
    }
    if (folded_is_cut(&row->counts) && folded_is_cut(&sum->counts)) {
        compare(v, where, "calls", in_row, calls, in_parts, sum_all(sum->counts.calls, sum->counts.arc_count));
    } else if (!same_counts(&row->counts, &sum->counts)) {
        tell(v, "%s: its counts are not those of the rows below it", where);
    } else if (!same_bytes(row->spread.bins, sum->spread.bins,
                           (size_t)row->counts.bin_count * COUNTS_GROUPS * sizeof(uint64_t)) ||
               !same_bytes(row->spread.arcs, sum->spread.arcs,
                           (size_t)row->counts.arc_count * COUNTS_GROUPS * sizeof(uint64_t))) {
        tell(v, "%s: its groups are not those of the rows below it", where);
    }
    /* Which nodes a folded sum has depends on the order of adding; its ticks do not. A sum has folded, or one of its
     * parts has, only if it has all the nodes that a sum may have: it never gets fewer again. */
    const bool folded = row->counts.node_count == LIMIT_STACK_NODES && sum->counts.node_count == LIMIT_STACK_NODES;
    if (!folded && !same_stacks(&row->counts, &sum->counts)) {
        tell(v, "%s: its stacks are not those of the rows below it", where);
    } else if (folded ? !same_tree_sums(row, sum)
                      : !same_bytes(row->spread.nodes, sum->spread.nodes,
                                    (size_t)row->counts.node_count * COUNTS_GROUPS * sizeof(uint64_t))) {
        tell(v, "%s: the ticks or the groups of its stacks are not those of the rows below it", where);
    }
}

/* Adds up the folded rows below. *complete is false if one could not be read. */
static enum profd_status add_below(struct verifying *v, const struct sqlite_identity *series, const struct floor *fl,
                                   struct folding *f, bool *complete, struct profd_error *e)
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
        status = load_row(v, series, fl->level - 1, at, &row, &found, e);
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

static enum profd_status verify_floor(struct verifying *v, const struct sqlite_identity *series, const struct floor *fl,
                                      struct profd_error *e)
{
    struct folded row;
    struct folding f;
    bool found, complete = true, exists = false;
    int64_t one;
    TRY(folding_begin(&f, v->arena, e));
    TRY(sqlite_find(v->s, SQL_ROLLUP_EXISTS, VALUES(INTEGER(series->id), INTEGER(fl->level), INTEGER(fl->at)), &one,
                    &exists, e));
    TRY(add_below(v, series, fl, &f, &complete, e));
    TRY(folding_finish(&f, e));
    if (!exists && f.out.uploads == 0) {
        return PROFD_OK;
    }
    if (!exists) {
        tell(v, "%s is missing, but rows below are marked as being in it", fl->where);
        return PROFD_OK;
    }
    TRY(load_row(v, series, fl->level, fl->at, &row, &found, e));
    if (found && complete) {
        compare_rows(v, fl->where, &row, &f.out);
    }
    return PROFD_OK;
}

static enum profd_status verify_day(struct verifying *v, const struct sqlite_identity *series, int64_t day,
                                    struct profd_error *e)
{
    struct floor fl = {.level = SQLITE_LEVEL_DAY, .at = day, .from = 24 * day, .to = 24 * day + 23};
    snprintf(fl.where, sizeof fl.where, "series %" PRId64 ", sum of day %" PRId64, series->id, day);
    return verify_floor(v, series, &fl, e);
}

/* --- Hours --- */

/* Stored data of an hour. */
struct found_hour {
    struct sqlite_sums sums;
    uint64_t rounding; /* nanoseconds by which the ledger may be lower for a build, because it rounds every upload */
    bool sealed;       /* a part of it is in blocks: the ledger has more shares and ticks of stacks */
    struct store_amount totals; /* what has totals by host there */
    bool cut;         /* a sum has as many arcs and bins, or histograms, as fit: others have lost their builds */
    bool clocks_full; /* a sum has stacks of as many clocks as fit: those of further clocks were left out of it */
};

/* Says what differs between sums as one place says them and as another holds them. A sum at its end is unknown, and so
 * are its parts. */
static void compare_sums(struct verifying *v, const char *where, const char *in_one, const struct sqlite_sums *x,
                         const char *in_other, const struct found_hour *h)
{
    const struct sqlite_sums *y = &h->sums;
    uint32_t mask = ~(uint32_t)INEXACT_SATURATED; /* a sum at its end may be right */
    mask &= h->cut ? ~((uint32_t)INEXACT_CALLS_LOST | INEXACT_TICKS_LOST) : mask;
    const struct {
        const char *name;
        uint64_t one, other;
    } sums[] = {{"uploads", x->uploads, y->uploads},
                {"processes", x->processes, y->processes},
                {"ticks", x->ticks, h->cut && y->ticks < x->ticks ? x->ticks : y->ticks},
                {"calls", x->calls, y->calls},
                {"earliest start", (uint64_t)x->first, (uint64_t)y->first},
                {"latest end", (uint64_t)x->last, (uint64_t)y->last},
                {"reasons for inexactness", x->inexact & mask, y->inexact & mask},
                {"single uploads", x->raw_uploads, y->raw_uploads},
                {"bytes of single uploads", x->raw_bytes, y->raw_bytes},
                {"bytes of live processes", x->live_bytes, y->live_bytes}};
    for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++) {
        compare(v, where, sums[i].name, in_one, sums[i].one, in_other, sums[i].other);
    }
    for (size_t i = 0; i < x->build_count; i++) {
        const struct share *said = &x->shares[i], *held = &y->shares[i];
        const bool known = held->nanoseconds < SUM_MAX && held->calls < SUM_MAX && !h->cut && !h->sealed;
        const uint64_t lower = held->nanoseconds - said->nanoseconds;
        if (known && (said->calls != held->calls || said->nanoseconds > held->nanoseconds || lower > h->rounding)) {
            tell(v,
                 "%s: time and calls of build %zu: %" PRIu64 " nanoseconds and %" PRIu64 " calls by the %s, %" PRIu64
                 " nanoseconds and %" PRIu64 " calls by the %s",
                 where, i, said->nanoseconds, said->calls, in_one, held->nanoseconds, held->calls, in_other);
        }
    }
    /* Folding keeps the ticks of stacks; only those of too many clocks are left out. */
    if (y->stack_ticks < SUM_MAX && !((h->clocks_full || h->sealed) && y->stack_ticks < x->stack_ticks)) {
        compare(v, where, "ticks of stacks", in_one, x->stack_ticks, in_other, y->stack_ticks);
    }
}

/* Reads what the database keeps of a released sum, but for its groups: seven columns of the current row. */
static void take_sealed(sqlite3_stmt *q, int column, size_t builds, struct sqlite_sums *out)
{
    sqlite_sums_init(out, builds);
    out->uploads = (uint64_t)sqlite3_column_int64(q, column);
    out->processes = (uint64_t)sqlite3_column_int64(q, column + 1);
    out->ticks = (uint64_t)sqlite3_column_int64(q, column + 2);
    out->calls = (uint64_t)sqlite3_column_int64(q, column + 3);
    out->first = sqlite3_column_int64(q, column + 4);
    out->last = sqlite3_column_int64(q, column + 5);
    out->inexact = (uint32_t)sqlite3_column_int64(q, column + 6);
}

/* Checks that the arcs which stay of released sums of a day can be read: their encoding has checksums. */
static enum profd_status verify_kept_arcs(struct verifying *v, const struct sqlite_identity *series, int64_t day,
                                          struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    sqlite3_stmt *q;
    TRY(sqlite_start(v->s, SQL_SEALED_ARCS_OF_DAY, VALUES(INTEGER(series->id), INTEGER(day)), &q, e));
    while (sqlite_row(v->s, q, &status, e)) {
        struct counts c = {.arc_count = 0};
        struct profd_error why;
        size_t n;
        const uint8_t *arcs = sqlite_blob(q, 1, &n);
        if (counts_decode(arcs, n, (uint32_t)series->build_count, &c, &why)) {
            tell(v, "series %" PRId64 ", arcs of day %" PRId64 " in block %" PRId64 ": %s", series->id, day,
                 (int64_t)sqlite3_column_int64(q, 0), why.sentence);
            continue;
        }
        counts_done(&c);
    }
    return status;
}

/* Checks that the released sum of a day is that of its released hours, in each block. */
static enum profd_status verify_sealed(struct verifying *v, const struct sqlite_identity *series, int64_t day,
                                       struct profd_error *e)
{
    enum { BLOCK, LEVEL, NUMBER, UPLOADS, PROCESS_GROUPS = UPLOADS + 7 }; /* take_sealed reads what is between */
    const uint32_t cut =
        (uint32_t)INEXACT_CALLS_LOST | INEXACT_TICKS_LOST; /* a sum of a day may have lost them first */
    struct sqlite_sums hours;
    struct random_groups groups, of_hours;
    int64_t block = 0, number = INT64_MAX;
    enum profd_status status = PROFD_OK;
    sqlite3_stmt *q;
    TRY(sqlite_start(v->s, SQL_SEALED_OF_DAY, VALUES(INTEGER(series->id), INTEGER(day)), &q, e));
    while (sqlite_row(v->s, q, &status, e)) {
        struct sqlite_sums one;
        char where[96];
        if (sqlite3_column_int64(q, BLOCK) != block) {
            block = sqlite3_column_int64(q, BLOCK);
            sqlite_sums_init(&hours, 0);
            of_hours = (struct random_groups){.unknown = 0};
            number = INT64_MAX;
        }
        take_sealed(q, UPLOADS, 0, &one);
        status = sqlite_processes_decode(v->s, q, PROCESS_GROUPS, one.processes, &groups, e);
        if (status != PROFD_OK) {
            sqlite_finish(q);
            return status;
        }
        const int64_t first = sqlite3_column_int64(q, NUMBER);
        if (sqlite3_column_int(q, LEVEL) == SQLITE_LEVEL_HOUR) {
            sqlite_sums_add(&hours, &one);
            random_groups_add(&of_hours, &groups);
            number = first < number ? first : number;
            continue;
        }
        snprintf(where, sizeof where, "series %" PRId64 ", sum of day %" PRId64 " in block %" PRId64, series->id, day,
                 block);
        const struct found_hour h = {.sums = hours, .cut = ((one.inexact & ~hours.inexact) & cut) != 0};
        compare_sums(v, where, "day", &one, "hours", &h);
        compare(v, where, "first upload", "day", (uint64_t)first, "hours", (uint64_t)number);
        if (memcmp(&groups, &of_hours, sizeof groups) != 0 && one.processes < SUM_MAX) {
            tell(v, "%s: its processes by group are not those of its hours", where);
        }
    }
    return status ? status : verify_kept_arcs(v, series, day, e);
}

/* The upload of a live process is among the slices, too. */
static enum profd_status verify_slice(struct verifying *v, const struct sqlite_slice *slice, const char *where,
                                      struct profd_error *e)
{
    bool found = false;
    TRY(sqlite_slice_find(v->s, slice, &found, e));
    if (!found) {
        tell(v, "%s: upload %" PRId64 " of a live process has no slice of %d minutes", where, slice->upload,
             slice->width);
    }
    return PROFD_OK;
}

/* Adds a row of SQL_RAW_EACH. */
static enum profd_status add_raw(struct verifying *v, sqlite3_stmt *q, const struct sqlite_identity *series,
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
        tell(v, "%s: upload %" PRId64 " cannot be read: %s", where, (int64_t)sqlite3_column_int64(q, 0), why.sentence);
    }
    sqlite_sums_add(&h->sums, &one);
    v->uploads += one.uploads;
    const struct sqlite_slice slice = {series->id, sqlite3_column_int(q, 8), one.last, sqlite3_column_int64(q, 10),
                                       sqlite3_column_int64(q, 0)};
    return slice.width > 0 ? verify_slice(v, &slice, where, e) : PROFD_OK;
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
static enum profd_status add_sum(struct verifying *v, const struct sqlite_identity *series, int level, int64_t at,
                                 struct found_hour *h, const char *where, struct profd_error *e)
{
    struct folded row;
    struct sqlite_sums one;
    bool found;
    sqlite_sums_init(&one, series->build_count);
    TRY(load_row(v, series, level, at, &row, &found, e));
    if (!found) {
        return PROFD_OK;
    }
    one.uploads = row.uploads;
    one.processes = row.processes;
    if (row.processes < SUM_MAX) {
        compare(v, where, "processes", "column of the hour's sum", row.processes, "sum of its groups",
                random_groups_known(&row.groups) + row.groups.unknown);
    }
    one.first = row.first;
    one.last = row.last;
    one.inexact = row.inexact;
    counts_totals(&row.counts, &one.ticks, &one.calls);
    one.stack_ticks = sum_all(row.counts.node_ticks, row.counts.node_count);
    h->cut |= folded_is_cut(&row.counts);
    h->clocks_full |= row.counts.tree_count == LIMIT_STACK_TREES;
    (void)share_add_counts(one.shares, &row.counts);
    compare(v, where, "ticks", "column of the hour's sum", row.ticks, "sum itself", one.ticks);
    compare(v, where, "calls", "column of the hour's sum", row.calls, "sum itself", one.calls);
    if (!spread_fits(row.counts.bin_ticks, row.spread.bins, row.counts.bin_count) ||
        !spread_fits(row.counts.calls, row.spread.arcs, row.counts.arc_count) ||
        !spread_fits(row.counts.node_ticks, row.spread.nodes, row.counts.node_count)) {
        tell(v, "%s: the groups of the hour's sum do not add up to it", where);
    }
    sqlite_sums_add(&h->sums, &one);
    h->rounding += row.uploads * row.counts.histogram_count;
    v->uploads += row.uploads;
    return PROFD_OK;
}

/* If there are totals by host, they are the ledger's together, with those in blocks. */
static enum profd_status verify_totals(struct verifying *v, int64_t series, int64_t hour,
                                       const struct store_amount *sealed, const struct sqlite_sums *ledger,
                                       const char *where, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    enum profd_status status =
        sqlite_first(v->s, SQL_HOST_TOTAL_SUM, VALUES(INTEGER(series), INTEGER(hour)), &q, &row, e);
    if (row) {
        const struct store_amount said = {ledger->uploads, ledger->ticks, ledger->calls},
                                  here = {(uint64_t)sqlite3_column_int64(q, 0), (uint64_t)sqlite3_column_int64(q, 1),
                                          (uint64_t)sqlite3_column_int64(q, 2)};
        struct store_amount sum = *sealed;
        outgoing_amount_add(&sum, &here);
        sqlite_finish(q);
        if (sum.uploads > 0) {
            compare_amounts(v, where, "ledger", &said, "totals by host", &sum);
        }
    }
    return status;
}

/* Adds up what is stored of an hour. */
static enum profd_status add_hour(struct verifying *v, const struct sqlite_identity *series, int64_t hour,
                                  struct found_hour *h, const char *where, struct profd_error *e)
{
    *h = (struct found_hour){.rounding = 0};
    sqlite_sums_init(&h->sums, series->build_count);
    sqlite3_stmt *q;
    TRY(sqlite_start(v->s, SQL_RAW_EACH, VALUES(INTEGER(series->id), INTEGER(hour), INTEGER(-1)), &q, e));
    enum profd_status status = PROFD_OK;
    while (sqlite_row(v->s, q, &status, e)) {
        status = add_raw(v, q, series, h, where, e);
    }
    TRY(status);
    /* Adds the hour's sum and those of its slices. */
    TRY(add_sum(v, series, SQLITE_LEVEL_HOUR, hour, h, where, e));
    TRY(sqlite_start(v->s, SQL_SEALED_OF_HOUR, VALUES(INTEGER(series->id), INTEGER(hour)), &q, e));
    while (sqlite_row(v->s, q, &status, e)) {
        struct sqlite_sums one;
        take_sealed(q, 0, series->build_count, &one);
        h->sealed = true;
        h->cut |= (one.inexact & ((uint32_t)INEXACT_CALLS_LOST | INEXACT_TICKS_LOST)) != 0;
        sqlite_sums_add(&h->sums, &one);
        v->uploads += one.uploads;
        if (sqlite3_column_int64(q, 7) > 0) {
            outgoing_amount_add(&h->totals, &(struct store_amount){one.uploads, one.ticks, one.calls});
        }
    }
    TRY(status);
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

static enum profd_status verify_hour(struct verifying *v, const struct sqlite_identity *series, int64_t hour,
                                     struct profd_error *e)
{
    struct found_hour h;
    struct sqlite_sums ledger;
    char where[64];
    bool found;
    snprintf(where, sizeof where, "series %" PRId64 ", hour %" PRId64, series->id, hour);
    TRY(add_hour(v, series, hour, &h, where, e));
    TRY(sqlite_ledger_load(v->s, series->id, hour, series->build_count, &ledger, &found, e));
    compare_sums(v, where, "ledger", &ledger, "stored rows", &h);
    if (ledger.raw_uploads == 0 && ledger.raw_since != INT64_MAX) {
        tell(v, "%s: the ledger waits for single uploads that it does not have", where);
    }
    return verify_totals(v, series->id, hour, &h.totals, &ledger, where, e);
}

/* Checks that the sums of the series are those of its hours. */
static enum profd_status verify_series(struct verifying *v, const struct sqlite_identity *series, struct profd_error *e)
{
    struct found_hour hours = {.rounding = 0};
    struct sqlite_sums said;
    char where[64];
    bool found;
    snprintf(where, sizeof where, "series %" PRId64, series->id);
    TRY(sqlite_ledger_sum(v->s, series->id, INT64_MIN, INT64_MAX, series->build_count, &hours.sums, e));
    TRY(sqlite_series_load(v->s, series->id, series->build_count, &said, &found, e));
    compare_sums(v, where, "series", &said, "ledger", &hours);
    struct floor fl = {.level = SQLITE_LEVEL_ALL, .from = INT64_MIN, .to = INT64_MAX - 1};
    snprintf(fl.where, sizeof fl.where, "series %" PRId64 ", sum of all time", series->id);
    return verify_floor(v, series, &fl, e);
}

/* The next day of a series that other centres have sealed; behind the last, that its sums are those of its days. */
static enum profd_status verify_mirrored(struct verifying *v, const struct sqlite_identity *series,
                                         struct store_cursor *c, struct profd_error *e)
{
    struct found_hour days = {.rounding = 0};
    struct sqlite_sums said;
    char where[64];
    int64_t day = 0;
    bool found = false;
    TRY(sqlite_find(v->s, SQL_MIRROR_DAY_NEXT, VALUES(INTEGER(series->id), INTEGER(c->hour / 24)), &day, &found, e));
    c->hour = 24 * (day + 1);
    if (found) {
        return verify_sealed(v, series, day, e);
    }
    c->series = (uint64_t)series->id + 1;
    c->hour = 0;
    snprintf(where, sizeof where, "mirrored series %" PRId64, series->id);
    TRY(sqlite_sums_of_rows(v->s, SQL_MIRROR_DAYS, VALUES(INTEGER(series->id)), series->build_count, &days.sums, e));
    TRY(sqlite_series_load(v->s, series->id, series->build_count, &said, &found, e));
    compare_sums(v, where, "series", &said, "days", &days);
    return PROFD_OK;
}

/* Finds the next hour of a series with data, and the day that ends before it; or the end of the series. */
static enum profd_status verify_next(struct verifying *v, const struct sqlite_identity *series, struct store_cursor *c,
                                     struct profd_error *e)
{
    int64_t hour = 0, next = 0;
    bool found = false, more = false;
    if (series->mirror) {
        return verify_mirrored(v, series, c, e);
    }
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
        status = verify_day(v, series, hour / 24, e);
    }
    if (status == PROFD_OK && (!more || next / 24 != hour / 24)) {
        status = verify_sealed(v, series, hour / 24, e);
    }
    c->hour = hour + 1;
    return status;
}

/* --- Once a round --- */

/* The three sums of a statement's only row. */
static enum profd_status add_up(struct store *s, enum sqlite_sql which, struct store_amount *out, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    const struct sqlite_value tenants[] = {INTEGER(STORE_TENANT_LAST), INTEGER(STORE_TENANT)};
    enum profd_status status = sqlite_first(s, which, tenants, which == SQL_TENANT_SUMS ? 2 : 0, &q, &row, e);
    if (row) {
        const struct store_amount sum = sqlite_amount(q, 0);
        outgoing_amount_add(out, &sum);
        sqlite_finish(q);
    }
    return status;
}

static enum profd_status verify_arrivals(struct verifying *v, struct profd_error *e)
{
    struct sqlite_centre c;
    struct store_amount stored, marks = {0};
    int64_t number = 0, aside = 0;
    bool orphan = false, found;
    TRY(sqlite_centre_load(v->s, &c, e));
    stored = c.removed;
    TRY(add_up(v->s, SQL_TENANT_SUMS, &stored, e));
    TRY(add_up(v->s, SQL_ARRIVAL_SUMS, &marks, e));
    TRY(add_up(v->s, SQL_EPOCH_SUMS, &marks, e));
    TRY(sqlite_find(v->s, SQL_ARRIVAL_ORPHAN, NULL, 0, &number, &orphan, e));
    TRY(sqlite_find(v->s, SQL_ROLLUP_ASIDE_COUNT, NULL, 0, &aside, &found, e));
    if (aside > 0) {
        tell(v,
             "%" PRId64 " sums of uploads of hosts cannot be read and were put aside: their hours are marked "
             "upload-missing",
             aside);
    }
    if (orphan) {
        tell(v, "arrival %" PRId64 " is of no epoch, or is below its mark", number);
    }
    compare_amounts(v, "from hosts", "counted", &c.counted, "marks of arrivals", &marks);
    compare_amounts(v, "from hosts", "counted", &c.counted, "series and what was removed", &stored);
    return PROFD_OK;
}

/* Columns of SQL_INSTANCE_EVERY. */
enum { UID, NAME, GENERATION, UPLOAD, SERIES, HOUR, ENDED, UPLOAD_SERIES, UPLOAD_HOUR, HAS_SNAPSHOT };

static bool is_null(sqlite3_stmt *q, int column)
{
    return sqlite3_column_type(q, column) == SQLITE_NULL;
}

/* Adds the parts of a segment. *count: how many there are. */
static enum profd_status add_parts(struct verifying *v, int64_t id, struct store_amount *amount, uint64_t *stack_ticks,
                                   uint64_t *count, bool *readable, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool ignored = false;
    TRY(sqlite_start(v->s, SQL_SEGMENT_PARTS, VALUES(INTEGER(id)), &q, e));
    enum profd_status status = PROFD_OK;
    while (sqlite_row(v->s, q, &status, e)) {
        struct counts c;
        struct store_amount part = {.uploads = (uint64_t)sqlite3_column_int64(q, 4)};
        size_t n;
        const uint8_t *bytes = sqlite_blob(q, 6, &n);
        ++*count;
        if (counts_decode(bytes, n, LIMIT_BUILDS, &c, NULL) != PROFD_OK) {
            *readable = false;
            continue;
        }
        counts_totals(&c, &part.ticks, &part.calls);
        sum_add(stack_ticks, sum_all(c.node_ticks, c.node_count), &ignored);
        counts_done(&c);
        outgoing_amount_add(amount, &part);
    }
    return status;
}

/* The current row of SQL_SEGMENT_VERIFY. */
static enum profd_status compare_segment(struct verifying *v, sqlite3_stmt *q, struct profd_error *e)
{
    char where[48];
    size_t n;
    const int64_t id = sqlite3_column_int64(q, 0);
    const struct store_amount row = sqlite_amount(q, 2);
    struct store_amount found = {0};
    uint64_t parts = 0, stack_ticks = 0;
    struct profd_error why = {""};
    snprintf(where, sizeof where, "outgoing upload %" PRId64, id);
    const uint8_t *bytes = sqlite_blob(q, 6, &n);
    bool readable = outgoing_measure(bytes, n, &found, &stack_ticks, &why) == PROFD_OK;
    TRY(add_parts(v, id, &found, &stack_ticks, &parts, &readable, e));
    if (!readable) {
        tell(v, "%s cannot be read, and its counts cannot be sent: %s", where, why.sentence);
        return PROFD_OK;
    }
    compare(v, where, "parts", "row", (uint64_t)sqlite3_column_int64(q, 5), "parts", parts);
    compare_amounts(v, where, "row", &row, "bytes", &found);
    if (sqlite3_column_type(q, 7) != SQLITE_NULL && stack_ticks < SUM_MAX) {
        compare(v, where, "ticks of stacks", "row", (uint64_t)sqlite3_column_int64(q, 7), "bytes", stack_ticks);
    }
    return PROFD_OK;
}

static enum profd_status compare_all(struct verifying *v, struct profd_error *e)
{
    struct store_relay r;
    TRY(store_get_relay(v->s, &r, e));
    if (!r.active) {
        return PROFD_OK;
    }
    struct store_amount sum = r.acknowledged;
    outgoing_amount_add(&sum, &r.withdrawn);
    outgoing_amount_add(&sum, &r.sealed);
    outgoing_amount_add(&sum, &r.open);
    compare_amounts(v, "forwarded", "accepted", &r.accepted, "acknowledged, withdrawn, sealed and open", &sum);
    return PROFD_OK;
}

static enum profd_status verify_segments(struct verifying *v, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool lone = false;
    int64_t id = 0;
    TRY(sqlite_start(v->s, SQL_SEGMENT_VERIFY, NULL, 0, &q, e));
    enum profd_status status = PROFD_OK;
    while (sqlite_row(v->s, q, &status, e)) {
        status = compare_segment(v, q, e);
    }
    if (status == PROFD_OK) {
        TRY(sqlite_find(v->s, SQL_SEGMENT_ORPHAN, NULL, 0, &id, &lone, e));
    }
    if (status == PROFD_OK && lone) {
        tell(v, "bytes or parts of outgoing upload %" PRId64 " stand alone: there is no such upload", id);
    }
    return status == PROFD_OK ? compare_all(v, e) : status;
}

static enum profd_status verify_users(struct verifying *v, struct profd_error *e)
{
    sqlite3_stmt *q;
    TRY(sqlite_start(v->s, SQL_USERS_WRONG, VALUES(INTEGER(SQLITE_ROW_BYTES)), &q, e));
    enum profd_status status = PROFD_OK;
    while (sqlite_row(v->s, q, &status, e)) {
        char where[32];
        snprintf(where, sizeof where, "user %" PRId64, (int64_t)sqlite3_column_int64(q, 0));
        compare(v, where, "bytes", "list of users", (uint64_t)sqlite3_column_int64(q, 1), "stored rows",
                (uint64_t)sqlite3_column_int64(q, 2));
    }
    return status;
}

/* Compares the totals with the sums of all series. */
static enum profd_status compare_totals(struct verifying *v, struct profd_error *e)
{
    static const char accepted[] = "total accepted", parts[] = "series and what was retired";
    struct sqlite_state t;
    struct sqlite_sums all, sums;
    bool found, ignored = false;
    int64_t doomed = 0, raw = 0, rollups = 0;
    struct store *s = v->s;
    sqlite3_stmt *q;
    sqlite_sums_init(&all, 0);
    TRY(sqlite_start(s, SQL_SERIES_EVERY, NULL, 0, &q, e));
    enum profd_status status = PROFD_OK;
    while (sqlite_row(s, q, &status, e)) {
        size_t n;
        (void)sqlite_blob(q, SQLITE_SUM_COLUMNS, &n);
        status = n / 4 <= LIMIT_BUILDS
                     ? sqlite_sums_read(s, q, n / 4, &sums, e)
                     : profd_error_set(e, PROFD_DAMAGED, "database %s: a set of %zu builds", s->path, n / 4);
        if (!status) {
            sqlite_sums_add(&all, &sums);
        }
    }
    TRY(status);
    TRY(sqlite_load_state(s, &t, e));
    TRY(sqlite_find(s, SQL_DOOMED_COUNT, NULL, 0, &doomed, &found, e));
    TRY(sqlite_find(s, SQL_RAW_COUNT, NULL, 0, &raw, &found, e));
    TRY(sqlite_find(s, SQL_ROLLUP_COUNT, NULL, 0, &rollups, &found, e));
    sum_add(&all.uploads, t.retired_uploads, &ignored);
    sum_add(&all.ticks, t.retired_ticks, &ignored);
    sum_add(&all.calls, t.retired_calls, &ignored);
    compare(v, "all", "uploads", accepted, t.uploads, parts, all.uploads);
    compare(v, "all", "ticks", accepted, t.ticks, parts, all.ticks);
    compare(v, "all", "calls", accepted, t.calls, parts, all.calls);
    compare(v, "all", "single uploads", "total", t.raw_uploads, "series", all.raw_uploads);
    compare(v, "all", "bytes of single uploads", "total", t.raw_bytes, "series", all.raw_bytes);
    compare(v, "all", "bytes of live processes", "total", t.live_bytes, "series", all.live_bytes);
    compare(v, "all", "sums", "total", t.rollups, "rows", (uint64_t)rollups);
    if (doomed == 0) { /* otherwise rows of deleted series still exist */
        compare(v, "all", "single uploads", "total", t.raw_uploads, "rows", (uint64_t)raw);
    }
    return PROFD_OK;
}

/* Tells of every row of a statement that gives builds and users. */
static enum profd_status tell_builds(struct verifying *v, enum sqlite_sql which, const char *what,
                                     struct profd_error *e)
{
    sqlite3_stmt *q;
    TRY(sqlite_start(v->s, which, NULL, 0, &q, e));
    enum profd_status status = PROFD_OK;
    while (sqlite_row(v->s, q, &status, e)) {
        tell(v, "build %" PRId64 " of user %" PRId64 " %s", (int64_t)sqlite3_column_int64(q, 0),
             (int64_t)sqlite3_column_int64(q, 1), what);
    }
    return status;
}

/* Checks rows that the walk through series and hours does not reach. */
static enum profd_status find_orphans(struct verifying *v, struct profd_error *e)
{
    static const struct {
        enum sqlite_sql which;
        const char *what;
    } kinds[] = {{SQL_RAW_ORPHAN, "an upload"},
                 {SQL_ROLLUP_ORPHAN, "a sum"},
                 {SQL_LEDGER_ORPHAN, "a row of the ledger"},
                 {SQL_HOST_TOTAL_ORPHAN, "a total of a host"},
                 {SQL_ROLLUP_PROCESSES_ORPHAN, "a row of processes by group"},
                 {SQL_SEALED_ORPHAN, "a sum of a block"}};
    int64_t upload = 0, doomed = 0;
    bool lone = false, found_count;
    TRY(sqlite_find(v->s, SQL_DOOMED_COUNT, NULL, 0, &doomed, &found_count, e));
    if (doomed == 0) { /* otherwise slices of deleted series still exist */
        TRY(sqlite_find(v->s, SQL_SLICE_LONE, NULL, 0, &upload, &lone, e));
    }
    if (lone) {
        tell(v, "a slice of a live process names upload %" PRId64 ", which is none of its", upload);
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        int64_t series = 0;
        bool found = false;
        TRY(sqlite_find(v->s, kinds[i].which, NULL, 0, &series, &found, e));
        if (found) {
            tell(v, "series %" PRId64 ": %s stands alone: nothing accounts for it", series, kinds[i].what);
        }
    }
    return PROFD_OK;
}

/* The totals, the lists, the live processes, what is forwarded, what hosts have sent, and rows that belong to nothing.
 */
static enum profd_status verify_round(struct verifying *v, struct profd_error *e)
{
    TRY(compare_totals(v, e));
    TRY(tell_builds(v, SQL_BUILD_USER_ORPHAN, "is listed, but no series has it", e));
    TRY(tell_builds(v, SQL_BUILD_USER_MISSING, "has uploads and is in no list", e));
    TRY(find_orphans(v, e));
    sqlite3_stmt *q;
    struct sqlite_state state;
    bool found = false;
    int64_t one = 0;
    TRY(sqlite_load_state(v->s, &state, e));
    TRY(sqlite_start(v->s, SQL_INSTANCE_EVERY, NULL, 0, &q, e));
    enum profd_status status = PROFD_OK;
    while (sqlite_row(v->s, q, &status, e)) {
        char where[96], digits[2 * STORE_INSTANCE_SIZE + 1];
        size_t n;
        const uint8_t *name = sqlite_blob(q, NAME, &n);
        int64_t generation = sqlite3_column_int64(q, GENERATION), ended = sqlite3_column_int64(q, ENDED);
        hex_put(digits, name, n < STORE_INSTANCE_SIZE ? n : STORE_INSTANCE_SIZE);
        snprintf(where, sizeof where, "live process %s of user %" PRId64, digits,
                 (int64_t)sqlite3_column_int64(q, UID));
        if (n != STORE_INSTANCE_SIZE) {
            tell(v, "%s: its name has %zu bytes, not %d", where, n, STORE_INSTANCE_SIZE);
        }
        if (generation < 1) {
            tell(v, "%s: a snapshot without a generation: %" PRId64 ", the first is 1", where, generation);
        }
        if (sqlite3_column_int(q, HAS_SNAPSHOT) == 0) {
            tell(v, "%s: generation %" PRId64 " without a snapshot", where, generation);
        }
        if (ended != 0 && ended != 1) {
            tell(v, "%s: neither living (0) nor ended (1) but %" PRId64, where, ended);
        }
        /* Its upload may have been removed, but must not be another's. */
        int64_t upload = sqlite3_column_int64(q, UPLOAD), series = sqlite3_column_int64(q, SERIES),
                hour = sqlite3_column_int64(q, HOUR);
        if (is_null(q, UPLOAD) != is_null(q, SERIES) || is_null(q, UPLOAD) != is_null(q, HOUR)) {
            tell(v, "%s: of number, series and hour of its upload some are missing", where);
        } else if (!is_null(q, UPLOAD) && (upload < 1 || upload > state.number)) {
            tell(v, "%s: its upload is %" PRId64 ", a number that was never given; the last is %" PRId64, where, upload,
                 state.number);
        } else if (!is_null(q, UPLOAD_SERIES) &&
                   (sqlite3_column_int64(q, UPLOAD_SERIES) != series || sqlite3_column_int64(q, UPLOAD_HOUR) != hour)) {
            tell(v,
                 "%s: upload %" PRId64 " of series %" PRId64 ", hour %" PRId64 " is not its own of series %" PRId64
                 ", hour %" PRId64,
                 where, upload, (int64_t)sqlite3_column_int64(q, UPLOAD_SERIES),
                 (int64_t)sqlite3_column_int64(q, UPLOAD_HOUR), series, hour);
        }
    }
    if (status == PROFD_OK) {
        TRY(sqlite_find(v->s, SQL_INSTANCE_SHARED, NULL, 0, &one, &found, e));
    }
    if (status == PROFD_OK && found) {
        tell(v, "upload %" PRId64 " is the latest of two live processes", one);
    }
    if (status == PROFD_OK) {
        TRY(sqlite_find(v->s, SQL_SNAPSHOT_ORPHAN, NULL, 0, &one, &found, e));
    }
    if (status == PROFD_OK && found) {
        tell(v, "a snapshot is of live process %" PRId64 ", which is not there", one);
    }
    TRY(status);
    TRY(verify_users(v, e));
    TRY(verify_segments(v, e));
    return verify_arrivals(v, e);
}

/* --- Steps --- */

static enum profd_status verify_object(struct verifying *v, struct store_cursor *c, struct profd_error *e)
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
        tell(v, "the symbols of build %s are damaged: %s", sqlite_text(q, 3), why.sentence);
        status = PROFD_OK;
    } else if (status != PROFD_OK) {
        status = profd_error_set(e, status, "%s", why.sentence);
    }
    sqlite_finish(q);
    return status;
}

static enum profd_status verify_step(struct verifying *v, struct store_cursor *c, struct profd_error *e)
{
    if (!c->pages_done) {
        int64_t bad = 0;
        enum profd_status status = sqlite_seal_scan(v->s, PAGES_A_STEP, &c->page, &bad, e);
        if (status == PROFD_OK && bad != 0) {
            tell(v, "page %" PRId64 " of the file is damaged: it does not have its checksum", bad);
        }
        c->pages_done = c->page == 0;
        return status;
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
        TRY(verify_round(v, e));
        *c = (struct store_cursor){.done = true};
        return PROFD_OK;
    }
    if ((uint64_t)id != c->series) {
        *c = (struct store_cursor){.series = (uint64_t)id, .pages_done = true, .objects_done = true};
    }
    TRY(sqlite_series_identify(v->s, v->arena, id, &series, &found, e));
    if (!found) {
        tell(v, "series %" PRId64 " has no set of builds", id);
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
    struct verifying v = {.s = s, .arena = arena_new(0), .mismatch = mismatch, .context = context};
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
