/* Verification: computes sums from the stored data, and compares them with the ledger, the series, the sums above and
 * the totals. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "proto/counts_tree.h"
#include "proto/hex.h"
#include "proto/sum.h"
#include "store/store_internal.h"

#define SLICE_NANOSECONDS 100000000
#define PAGES_A_STEP 256

struct verifying {
    struct store *s;
    struct arena *arena; /* of one piece of work */
    void (*mismatch)(void *context, const char *sentence);
    void *context;
    uint64_t uploads; /* that were verified */
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

/* Loads a sum. One that cannot be read is reported, and counts as not found. */
static enum profd_status load_row(struct verifying *v, const struct sqlite_identity *series, int level, int64_t at,
                                  struct arena *a, struct folded *row, bool *found, struct profd_error *e)
{
    struct profd_error why;
    enum profd_status status =
        sqlite_rollup_load(v->s, a, series->id, level, at, series->build_count, row, found, &why);
    if (status == PROFD_DAMAGED && !v->s->broken) {
        tell(v, "series %" PRId64 ", level %d, number %" PRId64 ": %s", series->id, level, at, why.sentence);
        *found = false;
        return PROFD_OK;
    }
    if (status && e) {
        *e = why;
    }
    return status;
}

/* --- Sums above the hours --- */

static bool same_bytes(const void *x, const void *y, size_t n)
{
    return n == 0 || memcmp(x, y, n) == 0;
}

static bool same_numbers(const uint64_t *x, const uint64_t *y, size_t n)
{
    return same_bytes(x, y, n * sizeof *x);
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

static bool same_histograms_and_arcs(const struct counts *x, const struct counts *y)
{
    const size_t bins = x->bin_count, arcs = x->arc_count;
    bool same = bins == y->bin_count && arcs == y->arc_count && x->saturated == y->saturated &&
                x->histogram_count == y->histogram_count;
    for (uint32_t i = 0; same && i < x->histogram_count; i++) {
        const struct counts_histogram *a = &x->histograms[i], *b = &y->histograms[i];
        same = a->build == b->build && a->bins == b->bins && a->low == b->low && a->high == b->high &&
               a->rate == b->rate && strcmp(a->dimension, b->dimension) == 0 && a->abbreviation == b->abbreviation &&
               a->first == b->first && a->used == b->used && a->order.commit == b->order.commit &&
               a->order.rank == b->order.rank;
    }
    return same && same_bytes(x->bin_index, y->bin_index, bins * sizeof *x->bin_index) &&
           same_numbers(x->bin_ticks, y->bin_ticks, bins) &&
           same_bytes(x->from_build, y->from_build, arcs * sizeof *x->from_build) &&
           same_bytes(x->to_build, y->to_build, arcs * sizeof *x->to_build) && same_numbers(x->from, y->from, arcs) &&
           same_numbers(x->to, y->to, arcs) && same_numbers(x->calls, y->calls, arcs) &&
           same_numbers(x->commit, y->commit, arcs) && same_bytes(x->rank, y->rank, arcs * sizeof *x->rank);
}

/* Compares the row of a sum with the sum of the rows below it. */
static void compare_rows(struct verifying *v, const char *where, const struct folded *row, const struct folded *sum)
{
    static const char in_row[] = "sum's row", in_parts[] = "rows below it";
    const struct counts *x = &row->counts, *y = &sum->counts;
    compare(v, where, "uploads", in_row, row->uploads, in_parts, sum->uploads);
    compare(v, where, "processes", in_row, row->processes, in_parts, sum->processes);
    compare(v, where, "first upload", in_row, (uint64_t)row->number, in_parts, (uint64_t)sum->number);
    compare(v, where, "earliest start", in_row, (uint64_t)row->first, in_parts, (uint64_t)sum->first);
    compare(v, where, "latest end", in_row, (uint64_t)row->last, in_parts, (uint64_t)sum->last);
    compare(v, where, "reasons for inexactness", in_row, row->inexact, in_parts, sum->inexact);
    uint64_t ticks, calls;
    counts_totals(x, &ticks, &calls);
    compare(v, where, "ticks", "column", row->ticks, "sum itself", ticks);
    compare(v, where, "calls", "column", row->calls, "sum itself", calls);
    if (memcmp(&row->groups, &sum->groups, sizeof row->groups) != 0 && row->processes < SUM_MAX) {
        tell(v, "%s: its processes by group are not those of the rows below it", where);
    }
    if (row->host_count != sum->host_count ||
        !same_bytes(row->hosts, sum->hosts, row->host_count * sizeof *row->hosts)) {
        tell(v, "%s: its hosts are not those of the rows below it", where);
    }
    if (folded_is_cut(x) && folded_is_cut(y)) {
        compare(v, where, "calls", in_row, calls, in_parts, sum_all(y->calls, y->arc_count));
    } else if (!same_histograms_and_arcs(x, y)) {
        tell(v, "%s: its counts are not those of the rows below it", where);
    } else if (!same_numbers(row->spread.bins, sum->spread.bins, (size_t)x->bin_count * COUNTS_GROUPS) ||
               !same_numbers(row->spread.arcs, sum->spread.arcs, (size_t)x->arc_count * COUNTS_GROUPS)) {
        tell(v, "%s: its groups are not those of the rows below it", where);
    }

    /* A sum that has folded stacks has all the nodes that a sum may have, and never gets fewer again. Which nodes these
     * are depends on the order of adding; the ticks of each tree do not. */
    const size_t nodes = x->node_count;
    const bool folded = nodes == LIMIT_STACK_NODES && y->node_count == LIMIT_STACK_NODES;
    bool same = x->tree_count == y->tree_count;
    for (uint32_t i = 0; i < x->tree_count && same; i++) {
        same = counts_compare_clocks(&x->trees[i], &y->trees[i]) == 0;
        if (folded) {
            const struct tree_sums a = add_tree(row, &x->trees[i]), b = add_tree(sum, &y->trees[i]);
            same = same && memcmp(&a, &b, sizeof a) == 0;
        } else {
            same = same && x->trees[i].used == y->trees[i].used;
        }
    }
    if (!folded &&
        !(same && nodes == y->node_count && same_bytes(x->node_depth, y->node_depth, nodes) &&
          same_bytes(x->node_kind, y->node_kind, nodes) &&
          same_bytes(x->node_build, y->node_build, nodes * sizeof *x->node_build) &&
          same_numbers(x->node_address, y->node_address, nodes) && same_numbers(x->node_ticks, y->node_ticks, nodes))) {
        tell(v, "%s: its stacks are not those of the rows below it", where);
    } else if (folded ? !same : !same_numbers(row->spread.nodes, sum->spread.nodes, nodes * COUNTS_GROUPS)) {
        tell(v, "%s: the ticks or the groups of its stacks are not those of the rows below it", where);
    }
}

/* Verifies that a sum of a day or of all time is that of the folded rows from .. to of the level below. */
static enum profd_status verify_sum(struct verifying *v, const struct sqlite_identity *series, int level, int64_t at,
                                    int64_t from, int64_t to, const char *where, struct profd_error *e)
{
    struct folded row;
    struct folding f;
    bool found = true, complete = true, exists = false;
    int64_t one;
    TRY(folding_begin(&f, v->arena, e));
    TRY(sqlite_find(v->s, SQL_ROLLUP_EXISTS, VALUES(INTEGER(series->id), INTEGER(level), INTEGER(at)), &one, &exists,
                    e));
    struct arena *scratch = arena_new(0);
    enum profd_status status = scratch ? PROFD_OK : profd_no_memory(e);
    for (int64_t below = from; !status && below <= to; below++) {
        status = sqlite_find(v->s, SQL_ROLLUP_FOLDED_AT,
                             VALUES(INTEGER(series->id), INTEGER(level - 1), INTEGER(below), INTEGER(to)), &below,
                             &found, e);
        if (status || !found) {
            break;
        }
        arena_reset(scratch);
        status = load_row(v, series, level - 1, below, scratch, &row, &found, e);
        complete &= found;
        status = status || !found ? status : folding_add(&f, &row, e);
    }
    arena_free(scratch);
    TRY(status);
    TRY(folding_finish(&f, e));
    if (!exists && f.out.uploads > 0) {
        tell(v, "%s is missing, but rows below are marked as being in it", where);
    }
    if (!exists) {
        return PROFD_OK;
    }
    TRY(load_row(v, series, level, at, v->arena, &row, &found, e));
    if (found && complete) {
        compare_rows(v, where, &row, &f.out);
    }
    return PROFD_OK;
}

/* --- Hours --- */

/* Stored data of an hour. */
struct found_hour {
    struct sqlite_sums sums;
    uint64_t rounding; /* nanoseconds by which the ledger may be lower for a build, because it rounds every upload */
    bool sealed;       /* a part of it is in blocks: the ledger has more shares and ticks of stacks */
    struct store_amount totals; /* of what has totals by host */
    bool cut;                   /* a sum has as many rows or histograms as fit: others have lost their builds */
    bool clocks_full;           /* a sum has as many clocks as fit: stacks of others were left out */
};

/* Reports the differences between the sums that one place states and those that another contains. A sum that has
 * stopped is unknown, and so are its parts. */
static void compare_sums(struct verifying *v, const char *where, const char *in_one, const struct sqlite_sums *x,
                         const char *in_other, const struct found_hour *h)
{
    const struct sqlite_sums *y = &h->sums;
    uint32_t mask = ~(uint32_t)INEXACT_SATURATED; /* a sum that has stopped may be right */
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

/* Reads what the database keeps of a released sum, except its groups: seven columns of the current row. */
static void take_sealed(sqlite3_stmt *q, int column, size_t builds, struct sqlite_sums *out)
{
    sqlite_sums_init(out, builds);
    out->uploads = sqlite_u64(q, column);
    out->processes = sqlite_u64(q, column + 1);
    out->ticks = sqlite_u64(q, column + 2);
    out->calls = sqlite_u64(q, column + 3);
    out->first = sqlite3_column_int64(q, column + 4);
    out->last = sqlite3_column_int64(q, column + 5);
    out->inexact = (uint32_t)sqlite3_column_int64(q, column + 6);
}

/* Verifies in each block that the released sum of a day is that of its released hours, and that the arcs which stay
 * here of such sums can be read: their encoding has checksums. */
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
        if (status) {
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
    TRY(status);
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

/* Adds a row of SQL_RAW_EACH. The upload of a live process must be among the slices, too. */
static enum profd_status add_raw(struct verifying *v, sqlite3_stmt *q, const struct sqlite_identity *series,
                                 struct found_hour *h, const char *where, struct profd_error *e)
{
    struct sqlite_sums one;
    struct counts c;
    struct profd_error why;
    size_t n;
    const int64_t number = sqlite3_column_int64(q, 0), start = sqlite3_column_int64(q, 2);
    const int width = sqlite3_column_int(q, 8);
    const uint8_t *counts = sqlite_blob(q, 7, &n);
    sqlite_sums_init(&one, series->build_count);
    one.uploads = one.raw_uploads = sqlite_u64(q, 9);
    one.raw_bytes = n;
    one.live_bytes = width > 0 ? n : 0;
    one.processes = sqlite_u64(q, 5);
    one.first = start;
    one.last = start + sqlite3_column_int64(q, 3);
    one.inexact = (uint32_t)sqlite3_column_int64(q, 4);
    enum profd_status status = counts_decode(counts, n, (uint32_t)series->build_count, &c, &why);
    if (!status) {
        counts_totals(&c, &one.ticks, &one.calls);
        one.stack_ticks = sum_all(c.node_ticks, c.node_count);
        (void)share_add_counts(one.shares, &c);
        h->rounding += one.uploads > 1 ? one.uploads * c.histogram_count : 0;
        counts_done(&c);
    } else if (status == PROFD_NO_MEMORY) {
        return profd_error_set(e, status, "%s", why.sentence);
    } else {
        tell(v, "%s: upload %" PRId64 " cannot be read: %s", where, number, why.sentence);
    }
    sqlite_sums_add(&h->sums, &one);
    v->uploads += one.uploads;
    if (width > 0) {
        const struct sqlite_slice slice = {series->id, width, one.last, sqlite3_column_int64(q, 10), number};
        bool found = false;
        TRY(sqlite_slice_find(v->s, &slice, &found, e));
        if (!found) {
            tell(v, "%s: upload %" PRId64 " of a live process has no slice of %d minutes", where, number, width);
        }
    }
    return PROFD_OK;
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

/* Adds the sum of an hour or of a slice, and compares its columns with its counts. */
static enum profd_status add_sum(struct verifying *v, const struct sqlite_identity *series, int level, int64_t at,
                                 struct found_hour *h, const char *where, struct profd_error *e)
{
    struct folded row;
    struct sqlite_sums one;
    bool found;
    sqlite_sums_init(&one, series->build_count);
    TRY(load_row(v, series, level, at, v->arena, &row, &found, e));
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

/* Verifies that the ledger says of an hour what is stored of it: single uploads, the sum of the hour and those of its
 * slices, here and in blocks. If there are totals by host, they must be the ledger's together. */
static enum profd_status verify_hour(struct verifying *v, const struct sqlite_identity *series, int64_t hour,
                                     struct profd_error *e)
{
    struct found_hour h = {.rounding = 0};
    struct sqlite_sums ledger;
    char where[64];
    bool found;
    enum profd_status status = PROFD_OK;
    sqlite3_stmt *q;
    snprintf(where, sizeof where, "series %" PRId64 ", hour %" PRId64, series->id, hour);
    sqlite_sums_init(&h.sums, series->build_count);
    TRY(sqlite_start(v->s, SQL_RAW_EACH, VALUES(INTEGER(series->id), INTEGER(hour), INTEGER(-1)), &q, e));
    while (sqlite_row(v->s, q, &status, e)) {
        status = add_raw(v, q, series, &h, where, e);
    }
    TRY(status);
    TRY(add_sum(v, series, SQLITE_LEVEL_HOUR, hour, &h, where, e));
    TRY(sqlite_start(v->s, SQL_SEALED_OF_HOUR, VALUES(INTEGER(series->id), INTEGER(hour)), &q, e));
    while (sqlite_row(v->s, q, &status, e)) {
        struct sqlite_sums one;
        take_sealed(q, 0, series->build_count, &one);
        h.sealed = true;
        h.cut |= (one.inexact & ((uint32_t)INEXACT_CALLS_LOST | INEXACT_TICKS_LOST)) != 0;
        sqlite_sums_add(&h.sums, &one);
        v->uploads += one.uploads;
        if (sqlite3_column_int64(q, 7) > 0) {
            const struct store_amount amount = sqlite_sums_amount(&one);
            outgoing_amount_add(&h.totals, &amount);
        }
    }
    TRY(status);
    for (int level = SQLITE_LEVEL_SLICE; level < SQLITE_LEVEL_SLICES; level++) {
        const int64_t each = SQLITE_SLICE_WIDE / sqlite_level_minutes(level);
        int64_t at = hour * each;
        for (found = true; found; at++) {
            TRY(sqlite_find(v->s, SQL_ROLLUP_OPEN_AT,
                            VALUES(INTEGER(series->id), INTEGER(level), INTEGER(at), INTEGER(hour * each + each - 1)),
                            &at, &found, e));
            TRY(found ? add_sum(v, series, level, at, &h, where, e) : PROFD_OK);
        }
    }

    TRY(sqlite_ledger_load(v->s, series->id, hour, series->build_count, &ledger, &found, e));
    compare_sums(v, where, "ledger", &ledger, "stored rows", &h);
    if (ledger.raw_uploads == 0 && ledger.raw_since != INT64_MAX) {
        tell(v, "%s: the ledger waits for single uploads that it does not have", where);
    }
    TRY(sqlite_first(v->s, SQL_HOST_TOTAL_SUM, VALUES(INTEGER(series->id), INTEGER(hour)), &q, &found, e));
    const struct store_amount said = sqlite_sums_amount(&ledger),
                              here = found ? sqlite_amount(q, 0) : (struct store_amount){0};
    sqlite_finish(q);
    outgoing_amount_add(&h.totals, &here);
    if (found && h.totals.uploads > 0) {
        compare_amounts(v, where, "ledger", &said, "totals by host", &h.totals);
    }
    return PROFD_OK;
}

/* Verifies the next hour of a series that has data, and the day that ends with it; behind the last, the sums of the
 * series and the sum of all time. Of a series that other centres have sealed, the next day, and behind the last its
 * sums. */
static enum profd_status verify_next(struct verifying *v, const struct sqlite_identity *series, struct store_cursor *c,
                                     struct profd_error *e)
{
    struct found_hour parts = {.rounding = 0};
    struct sqlite_sums said;
    char where[80];
    int64_t at = 0, next = 0;
    bool found = false, more = false;
    if (series->mirror) {
        TRY(sqlite_find(v->s, SQL_MIRROR_DAY_NEXT, VALUES(INTEGER(series->id), INTEGER(c->hour / 24)), &at, &found, e));
        c->hour = 24 * (at + 1);
        if (found) {
            return verify_sealed(v, series, at, e);
        }
    } else {
        TRY(sqlite_find(v->s, SQL_LEDGER_NEXT, VALUES(INTEGER(series->id), INTEGER(c->hour)), &at, &found, e));
    }
    if (found) {
        TRY(verify_hour(v, series, at, e));
        c->hour = at + 1;
        TRY(sqlite_find(v->s, SQL_LEDGER_NEXT, VALUES(INTEGER(series->id), INTEGER(c->hour)), &next, &more, e));
        const int64_t day = at / 24;
        if (more && next / 24 == day) {
            return PROFD_OK;
        }
        snprintf(where, sizeof where, "series %" PRId64 ", sum of day %" PRId64, series->id, day);
        TRY(verify_sum(v, series, SQLITE_LEVEL_DAY, day, 24 * day, 24 * day + 23, where, e));
        return verify_sealed(v, series, day, e);
    }

    c->series = (uint64_t)series->id + 1;
    c->hour = 0;
    snprintf(where, sizeof where, "%sseries %" PRId64, series->mirror ? "mirrored " : "", series->id);
    TRY(series->mirror
            ? sqlite_sums_of_rows(v->s, SQL_MIRROR_DAYS, VALUES(INTEGER(series->id)), series->build_count, &parts.sums,
                                  e)
            : sqlite_ledger_sum(v->s, series->id, INT64_MIN, INT64_MAX, series->build_count, &parts.sums, e));
    TRY(sqlite_series_load(v->s, series->id, series->build_count, &said, &found, e));
    compare_sums(v, where, "series", &said, series->mirror ? "days" : "ledger", &parts);
    if (series->mirror) {
        return PROFD_OK;
    }
    snprintf(where, sizeof where, "series %" PRId64 ", sum of all time", series->id);
    return verify_sum(v, series, SQLITE_LEVEL_ALL, 0, INT64_MIN, INT64_MAX - 1, where, e);
}

/* --- Once a round --- */

/* Verifies the totals, the bytes of each user, and that nothing stands alone that the walk through series and hours
 * does not reach. */
static enum profd_status verify_totals(struct verifying *v, struct profd_error *e)
{
    static const char accepted[] = "total accepted", parts[] = "series and what was retired";
    static const struct {
        enum sqlite_sql which;
        const char *what;
    } listed[] = {{SQL_BUILD_USER_ORPHAN, "is listed, but no series has it"},
                  {SQL_BUILD_USER_MISSING, "has uploads and is in no list"}},
      orphans[] = {{SQL_RAW_ORPHAN, "an upload"},
                   {SQL_ROLLUP_ORPHAN, "a sum"},
                   {SQL_LEDGER_ORPHAN, "a row of the ledger"},
                   {SQL_HOST_TOTAL_ORPHAN, "a total of a host"},
                   {SQL_ROLLUP_PROCESSES_ORPHAN, "a row of processes by group"},
                   {SQL_SEALED_ORPHAN, "a sum of a block"}};
    struct store *s = v->s;
    struct sqlite_state t;
    struct sqlite_sums all, sums;
    bool found;
    int64_t doomed = 0, raw = 0, rollups = 0, upload = 0, series = 0;
    enum profd_status status = PROFD_OK;
    sqlite3_stmt *q;
    sqlite_sums_init(&all, 0);
    TRY(sqlite_start(s, SQL_SERIES_EVERY, NULL, 0, &q, e));
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
    struct store_amount sum = sqlite_sums_amount(&all);
    outgoing_amount_add(&sum, &t.retired);
    compare(v, "all", "uploads", accepted, t.accepted.uploads, parts, sum.uploads);
    compare(v, "all", "ticks", accepted, t.accepted.ticks, parts, sum.ticks);
    compare(v, "all", "calls", accepted, t.accepted.calls, parts, sum.calls);
    compare(v, "all", "single uploads", "total", t.raw_uploads, "series", all.raw_uploads);
    compare(v, "all", "bytes of single uploads", "total", t.raw_bytes, "series", all.raw_bytes);
    compare(v, "all", "bytes of live processes", "total", t.live_bytes, "series", all.live_bytes);
    compare(v, "all", "sums", "total", t.rollups, "rows", (uint64_t)rollups);
    found = false;
    if (doomed == 0) { /* otherwise rows and slices of deleted series still exist */
        compare(v, "all", "single uploads", "total", t.raw_uploads, "rows", (uint64_t)raw);
        TRY(sqlite_find(s, SQL_SLICE_LONE, NULL, 0, &upload, &found, e));
    }
    if (found) {
        tell(v, "a slice of a live process names upload %" PRId64 ", which is none of its", upload);
    }
    for (size_t i = 0; i < sizeof listed / sizeof listed[0]; i++) {
        TRY(sqlite_start(s, listed[i].which, NULL, 0, &q, e));
        while (sqlite_row(s, q, &status, e)) {
            tell(v, "build %" PRId64 " of user %" PRId64 " %s", (int64_t)sqlite3_column_int64(q, 0),
                 (int64_t)sqlite3_column_int64(q, 1), listed[i].what);
        }
        TRY(status);
    }
    for (size_t i = 0; i < sizeof orphans / sizeof orphans[0]; i++) {
        TRY(sqlite_find(s, orphans[i].which, NULL, 0, &series, &found, e));
        if (found) {
            tell(v, "series %" PRId64 ": %s stands alone: nothing accounts for it", series, orphans[i].what);
        }
    }
    TRY(sqlite_start(s, SQL_USERS_WRONG, VALUES(INTEGER(SQLITE_ROW_BYTES)), &q, e));
    while (sqlite_row(s, q, &status, e)) {
        char where[32];
        snprintf(where, sizeof where, "user %" PRId64, (int64_t)sqlite3_column_int64(q, 0));
        compare(v, where, "bytes", "list of users", sqlite_u64(q, 1), "stored rows", sqlite_u64(q, 2));
    }
    return status;
}

static bool is_null(sqlite3_stmt *q, int column)
{
    return sqlite3_column_type(q, column) == SQLITE_NULL;
}

/* Verifies that every live process has a snapshot, and names no upload but its own. */
static enum profd_status verify_instances(struct verifying *v, struct profd_error *e)
{
    enum { UID, NAME, GENERATION, UPLOAD, SERIES, HOUR, ENDED, UPLOAD_SERIES, UPLOAD_HOUR, HAS_SNAPSHOT };
    enum profd_status status = PROFD_OK;
    sqlite3_stmt *q;
    struct sqlite_state state;
    bool found = false;
    int64_t one = 0;
    TRY(sqlite_load_state(v->s, &state, e));
    TRY(sqlite_start(v->s, SQL_INSTANCE_EVERY, NULL, 0, &q, e));
    while (sqlite_row(v->s, q, &status, e)) {
        char where[96], digits[2 * STORE_INSTANCE_SIZE + 1];
        size_t n;
        const uint8_t *name = sqlite_blob(q, NAME, &n);
        const int64_t generation = sqlite3_column_int64(q, GENERATION), ended = sqlite3_column_int64(q, ENDED),
                      upload = sqlite3_column_int64(q, UPLOAD), series = sqlite3_column_int64(q, SERIES),
                      hour = sqlite3_column_int64(q, HOUR);
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
    TRY(status);
    TRY(sqlite_find(v->s, SQL_INSTANCE_SHARED, NULL, 0, &one, &found, e));
    if (found) {
        tell(v, "upload %" PRId64 " is the latest of two live processes", one);
    }
    TRY(sqlite_find(v->s, SQL_SNAPSHOT_ORPHAN, NULL, 0, &one, &found, e));
    if (found) {
        tell(v, "a snapshot is of live process %" PRId64 ", which is not there", one);
    }
    return PROFD_OK;
}

/* Verifies that each outgoing upload holds what its row says, and that all of them are what was accepted. */
static enum profd_status verify_segments(struct verifying *v, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    struct store_relay r;
    sqlite3_stmt *q, *of_parts;
    bool lone = false, ignored = false;
    int64_t id = 0;
    TRY(sqlite_start(v->s, SQL_SEGMENT_VERIFY, NULL, 0, &q, e));
    while (sqlite_row(v->s, q, &status, e)) {
        char where[48];
        size_t n;
        const struct store_amount row = sqlite_amount(q, 2);
        struct store_amount found = {0};
        uint64_t parts = 0, stack_ticks = 0;
        struct profd_error why = {""};
        id = sqlite3_column_int64(q, 0);
        snprintf(where, sizeof where, "outgoing upload %" PRId64, id);
        const uint8_t *bytes = sqlite_blob(q, 6, &n);
        bool readable = !outgoing_measure(bytes, n, &found, &stack_ticks, &why);
        status = sqlite_start(v->s, SQL_SEGMENT_PARTS, VALUES(INTEGER(id)), &of_parts, e);
        for (; sqlite_row(v->s, of_parts, &status, e); parts++) {
            struct counts c;
            struct store_amount part = {.uploads = sqlite_u64(of_parts, 4)};
            bytes = sqlite_blob(of_parts, 6, &n);
            if (counts_decode(bytes, n, LIMIT_BUILDS, &c, NULL)) {
                readable = false;
                continue;
            }
            counts_totals(&c, &part.ticks, &part.calls);
            sum_add(&stack_ticks, sum_all(c.node_ticks, c.node_count), &ignored);
            counts_done(&c);
            outgoing_amount_add(&found, &part);
        }
        if (status) {
            continue;
        }
        if (!readable) {
            tell(v, "%s cannot be read, and its counts cannot be sent: %s", where, why.sentence);
            continue;
        }
        compare(v, where, "parts", "row", sqlite_u64(q, 5), "parts", parts);
        compare_amounts(v, where, "row", &row, "bytes", &found);
        if (!is_null(q, 7) && stack_ticks < SUM_MAX) {
            compare(v, where, "ticks of stacks", "row", sqlite_u64(q, 7), "bytes", stack_ticks);
        }
    }
    TRY(status);
    TRY(sqlite_find(v->s, SQL_SEGMENT_ORPHAN, NULL, 0, &id, &lone, e));
    if (lone) {
        tell(v, "bytes or parts of outgoing upload %" PRId64 " stand alone: there is no such upload", id);
    }
    TRY(store_get_relay(v->s, &r, e));
    if (r.active) {
        struct store_amount sum = r.acknowledged;
        outgoing_amount_add(&sum, &r.withdrawn);
        outgoing_amount_add(&sum, &r.sealed);
        outgoing_amount_add(&sum, &r.open);
        compare_amounts(v, "forwarded", "accepted", &r.accepted, "acknowledged, withdrawn, sealed and open", &sum);
    }
    return PROFD_OK;
}

/* Verifies that the marks of arrivals, and the series of tenants with what was removed, are what a centre counted. */
static enum profd_status verify_arrivals(struct verifying *v, struct profd_error *e)
{
    struct store_centre c;
    struct store_amount marks = {0};
    int64_t number = 0, aside = 0;
    bool orphan = false, found;
    TRY(sqlite_centre_load(v->s, &c, e));
    struct store_amount stored = c.removed;
    const struct {
        enum sqlite_sql which;
        struct store_amount *to;
    } sums[] = {{SQL_TENANT_SUMS, &stored}, {SQL_ARRIVAL_SUMS, &marks}, {SQL_EPOCH_SUMS, &marks}};
    for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++) {
        const struct sqlite_value tenants[] = {INTEGER(STORE_TENANT_LAST), INTEGER(STORE_TENANT)};
        sqlite3_stmt *q;
        TRY(sqlite_first(v->s, sums[i].which, tenants, sums[i].to == &stored ? 2 : 0, &q, &found, e));
        if (found) {
            const struct store_amount sum = sqlite_amount(q, 0);
            outgoing_amount_add(sums[i].to, &sum);
        }
        sqlite_finish(q);
    }
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

/* --- Steps --- */

/* Verifies some pages of the file, an object, or an hour; behind the last, what is verified once a round. */
static enum profd_status verify_step(struct verifying *v, struct store_cursor *c, struct profd_error *e)
{
    static enum profd_status (*const once_a_round[])(struct verifying *, struct profd_error *) = {
        verify_totals, verify_instances, verify_segments, verify_arrivals};
    struct sqlite_identity series;
    int64_t id = 0, bad = 0;
    bool found = false;
    if (!c->pages_done) {
        TRY(sqlite_seal_scan(v->s, PAGES_A_STEP, &c->page, &bad, e));
        if (bad != 0) {
            tell(v, "page %" PRId64 " of the file is damaged: it does not have its checksum", bad);
        }
        c->pages_done = c->page == 0;
        return PROFD_OK;
    }
    if (!c->objects_done) {
        sqlite3_stmt *q;
        uint8_t *bytes = NULL;
        size_t size;
        struct profd_error why = {""};
        TRY(sqlite_first(v->s, SQL_OBJECT_EVERY, VALUES(INTEGER(c->object)), &q, &found, e));
        c->objects_done = !found;
        if (!found) {
            return PROFD_OK;
        }
        c->object = sqlite3_column_int64(q, 2) + 1;
        const enum profd_status status = sqlite_take_content(v->s, q, &bytes, &size, &why);
        free(bytes);
        if (status == PROFD_DAMAGED) {
            tell(v, "the symbols of build %s are damaged: %s", sqlite_text(q, 3), why.sentence);
        }
        sqlite_finish(q);
        return status && status != PROFD_DAMAGED ? profd_error_set(e, status, "%s", why.sentence) : PROFD_OK;
    }
    arena_reset(v->arena);
    TRY(sqlite_find(v->s, SQL_SERIES_NEXT, VALUES(INTEGER(c->series)), &id, &found, e));
    if (!found) {
        for (size_t i = 0; i < sizeof once_a_round / sizeof once_a_round[0]; i++) {
            TRY(once_a_round[i](v, e));
        }
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

enum profd_status store_verify(struct store *s, struct store_cursor *cursor,
                               void (*mismatch)(void *context, const char *sentence), void *context,
                               uint64_t *uploads_checked, struct profd_error *e)
{
    struct verifying v = {.s = s, .arena = arena_new(0), .mismatch = mismatch, .context = context};
    struct store_cursor c = *cursor;
    bool began = false;
    const int64_t deadline = sqlite_work_now() + SLICE_NANOSECONDS;
    TRY(v.arena ? PROFD_OK : profd_no_memory(e));
    c.done = false;
    enum profd_status status = sqlite_read_begin(s, &began, e);
    if (!status) {
        do {
            status = verify_step(&v, &c, e);
        } while (!status && !c.done && sqlite_work_now() < deadline);
        status = sqlite_read_end(s, began, status, e);
    }
    arena_free(v.arena);
    if (!status) {
        *cursor = c;
        *uploads_checked = v.uploads;
    }
    return status;
}
