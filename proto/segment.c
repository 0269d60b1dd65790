#include "proto/segment.h"

#include <stdlib.h>
#include <string.h>

#include "proto/buildid.h"
#include "proto/collector.h"
#include "proto/counts_tree.h"
#include "proto/label.h"
#include "proto/segment_internal.h"
#include "proto/utf8.h"

enum profd_status segment_judge_sizes(const struct segment_sizes *n, struct profd_error *e)
{
    const uint64_t most = LIMIT_SEGMENT_ROWS, rows = n->bins + n->arcs + n->nodes;
    if (n->histograms > most || n->bins > most || n->arcs > most || n->trees > most || n->nodes > most ||
        (n->histograms + n->trees) * LIMIT_SEGMENT_HISTOGRAM + rows > most) {
        return profd_error_set(e, PROFD_TOO_LARGE,
                               "a segment of %llu histograms, %llu bins, %llu arcs, and %llu trees of stacks with %llu "
                               "nodes: they count as more than %u rows",
                               (unsigned long long)n->histograms, (unsigned long long)n->bins,
                               (unsigned long long)n->arcs, (unsigned long long)n->trees, (unsigned long long)n->nodes,
                               LIMIT_SEGMENT_ROWS);
    }
    if (n->shares > rows * SEGMENT_GROUPS) {
        return profd_error_set(e, PROFD_MALFORMED, "a segment of %llu rows with %llu shares, at most %u in each",
                               (unsigned long long)rows, (unsigned long long)n->shares, SEGMENT_GROUPS);
    }
    return PROFD_OK;
}

static enum profd_status check_key(const struct segment *s, struct profd_error *e)
{
    if ((unsigned)s->kind >= SEGMENT_KINDS) {
        return profd_error_set(e, PROFD_MALFORMED, "a segment of kind %u: there are %u", (unsigned)s->kind,
                               SEGMENT_KINDS);
    }
    if (s->sequence < 1 || s->sequence > SEGMENT_COUNT_MAX) {
        return profd_error_set(e, PROFD_MALFORMED, "a segment with sequence %llu: it must be 1 to 2^63-1",
                               (unsigned long long)s->sequence);
    }
    if (s->hour < 0 || s->hour > SEGMENT_HOUR_MAX) {
        return profd_error_set(e, PROFD_MALFORMED, "a segment of hour %lld: it must be 0 to %lld", (long long)s->hour,
                               (long long)SEGMENT_HOUR_MAX);
    }
    return PROFD_OK;
}

static enum profd_status check_sums(const struct segment *s, struct profd_error *e)
{
    if (s->first < 0 || s->first > s->ended || s->ended > s->last || s->ended / SEGMENT_HOUR != s->hour ||
        s->last / SEGMENT_HOUR != s->hour) {
        return profd_error_set(e, PROFD_MALFORMED,
                               "a segment from %lld to %lld ns in hour %lld that ended first at %lld ns: its ends must "
                               "be in that hour, and its start not after its ends",
                               (long long)s->first, (long long)s->last, (long long)s->hour, (long long)s->ended);
    }
    if ((s->inexact & ~(uint32_t)INEXACT_SENT) != 0) {
        return profd_error_set(e, PROFD_MALFORMED, "a segment with reasons 0x%x: known are 0x%x", s->inexact,
                               (unsigned)INEXACT_SENT);
    }
    bool large = s->uploads > SEGMENT_COUNT_MAX;
    for (unsigned g = 0; g < SEGMENT_GROUPS; g++) {
        large |= s->processes[g] > SEGMENT_COUNT_MAX;
    }
    return large ? profd_error_set(e, PROFD_MALFORMED, "a segment of more than 2^63-1 uploads or processes") : PROFD_OK;
}

static int compare_builds(const void *a, const void *b)
{
    return strcmp((*(const struct message_build *const *)a)->build_id,
                  (*(const struct message_build *const *)b)->build_id);
}

static enum profd_status check_twins(const struct segment *s, struct profd_error *e)
{
    const struct message_build *sorted[LIMIT_BUILDS] = {NULL};
    for (size_t i = 0; i < s->build_count; i++) {
        sorted[i] = &s->builds[i];
    }
    qsort(sorted, s->build_count, sizeof sorted[0], compare_builds);
    for (size_t i = 1; i < s->build_count; i++) {
        if (strcmp(sorted[i - 1]->build_id, sorted[i]->build_id) == 0) {
            return profd_error_set(e, PROFD_MALFORMED, "a segment with build %s twice", sorted[i]->build_id);
        }
    }
    return PROFD_OK;
}

static enum profd_status check_builds(const struct segment *s, struct profd_error *e)
{
    if (s->build_count < 1 || s->build_count > LIMIT_BUILDS || s->program >= s->build_count) {
        return profd_error_set(e, PROFD_MALFORMED, "a segment of program %u of %zu builds: there are 1 to %u",
                               s->program, s->build_count, LIMIT_BUILDS);
    }
    for (size_t i = 0; i < s->build_count; i++) {
        struct buildid id;
        const struct message_build *b = &s->builds[i];
        size_t name = strlen(b->name);
        if (buildid_parse(b->build_id, strlen(b->build_id), &id, NULL) != PROFD_OK ||
            strcmp(id.text, b->build_id) != 0) {
            return profd_error_set(e, PROFD_MALFORMED, "build %zu of a segment: its build-id is none", i);
        }
        if (name > LIMIT_BUILD_NAME || !utf8_valid((const uint8_t *)b->name, name)) {
            return profd_error_set(e, PROFD_MALFORMED,
                                   "build %zu of a segment: a name of %zu bytes, at most %u of UTF-8", i, name,
                                   LIMIT_BUILD_NAME);
        }
    }
    return check_twins(s, e);
}

static enum profd_status check_labels(const struct segment *s, struct profd_error *e)
{
    size_t bytes = 0;
    for (size_t i = 0; i < s->label_count && i < LIMIT_LABELS; i++) {
        const struct message_label *l = &s->labels[i];
        size_t name = strlen(l->name), value = strlen(l->value);
        if (label_judge(l->name, name, l->value, value) != LABEL_GOOD || value == 0) {
            return profd_error_set(e, PROFD_MALFORMED, "label %zu of a segment breaks the rules for labels", i);
        }
        if (i > 0 && strcmp(s->labels[i - 1].name, l->name) >= 0) {
            return profd_error_set(e, PROFD_MALFORMED, "label %zu of a segment: names do not ascend", i);
        }
        bytes += name + value;
    }
    if (s->label_count > LIMIT_LABELS || bytes > LIMIT_LABEL_BYTES) {
        return profd_error_set(e, PROFD_TOO_LARGE, "a segment with %zu labels of %zu bytes, at most %u of %u",
                               s->label_count, bytes, LIMIT_LABELS, LIMIT_LABEL_BYTES);
    }
    return PROFD_OK;
}

static int compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static enum profd_status check_bins(const struct segment *s, const struct counts_histogram *h, uint32_t at,
                                    struct profd_error *e)
{
    for (uint32_t i = h->first; i < h->first + h->used; i++) {
        const uint32_t *index = s->counts.bin_index;
        if (index[i] >= h->bins || (i > h->first && index[i] <= index[i - 1])) {
            return profd_error_set(e, PROFD_MALFORMED,
                                   "histogram %u of a segment: bin %u is out of order or not below %u", at, index[i],
                                   h->bins);
        }
        if (s->counts.groups[i] == 0) {
            return profd_error_set(e, PROFD_MALFORMED, "histogram %u of a segment: bin %u is zero", at, index[i]);
        }
    }
    return PROFD_OK;
}

static enum profd_status check_histograms(const struct segment *s, struct profd_error *e)
{
    const struct segment_counts *c = &s->counts;
    uint64_t bins = 0;
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        const struct counts_histogram *h = &c->histograms[i];
        TRY(counts_judge_histogram(h, i, e));
        if (h->build >= s->build_count || (collector_is_dimension(h->dimension) && h->build != s->program)) {
            return profd_error_set(e, PROFD_MALFORMED, "histogram %u of a segment: build %u of %zu", i, h->build,
                                   s->build_count);
        }
        if (i > 0 && counts_compare_geometry(&h[-1].geometry, &h->geometry) >= 0) {
            return profd_error_set(e, PROFD_MALFORMED, "histogram %u of a segment is out of order", i);
        }
        if (h->first != bins || h->used > c->bin_count - bins) {
            return profd_error_set(e, PROFD_MALFORMED, "histogram %u of a segment: bins %u to %u of %u", i, h->first,
                                   h->first + h->used, c->bin_count);
        }
        bins += h->used;
        TRY(check_bins(s, h, i, e));
    }
    return bins == c->bin_count ? PROFD_OK
                                : profd_error_set(e, PROFD_MALFORMED, "a segment of %u bins: histograms have %llu",
                                                  c->bin_count, (unsigned long long)bins);
}

static enum profd_status check_arcs(const struct segment *s, struct profd_error *e)
{
    const struct segment_counts *c = &s->counts;
    for (uint32_t i = 0; i < c->arc_count; i++) {
        if ((c->from_build[i] >= s->build_count && c->from_build[i] != COUNTS_NOWHERE) ||
            (c->to_build[i] >= s->build_count && c->to_build[i] != COUNTS_NOWHERE)) {
            return profd_error_set(e, PROFD_MALFORMED, "arc %u of a segment: build %u or %u of %zu", i,
                                   c->from_build[i], c->to_build[i], s->build_count);
        }
        if (i == 0) {
            continue;
        }
        int order = compare_numbers(c->from_build[i - 1], c->from_build[i]);
        order = order != 0 ? order : compare_numbers(c->from[i - 1], c->from[i]);
        order = order != 0 ? order : compare_numbers(c->to_build[i - 1], c->to_build[i]);
        order = order != 0 ? order : compare_numbers(c->to[i - 1], c->to[i]);
        if (order >= 0) {
            return profd_error_set(e, PROFD_MALFORMED, "arc %u of a segment is out of order", i);
        }
    }
    return PROFD_OK;
}

/* A node has ticks if it has shares: that is what the rules on ticks need to know. */
static enum profd_status check_stacks(const struct segment *s, struct profd_error *e)
{
    const struct segment_counts *c = &s->counts;
    if (c->tree_count == 0 && c->node_count == 0) {
        return PROFD_OK;
    }
    uint64_t *ticks = calloc((size_t)c->node_count + 1, sizeof *ticks);
    if (ticks == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to check %u nodes of stacks", c->node_count);
    }
    for (uint32_t i = 0; i < c->node_count; i++) {
        ticks[i] = c->groups[c->bin_count + c->arc_count + i];
    }
    const struct counts_nodes nodes = {c->node_depth, c->node_kind, c->node_build, c->node_address, ticks};
    enum profd_status status =
        counts_judge_trees(c->trees, c->tree_count, &nodes, c->node_count, (uint32_t)s->build_count, e);
    free(ticks);
    return status == PROFD_OK ? status : profd_error_wrap(e, status, "a segment");
}

/* Each of 0 … n−1 is there once. */
static enum profd_status check_ranks(const uint32_t *ranks, uint32_t n, const char *what, struct profd_error *e)
{
    uint8_t *seen = calloc((size_t)n + 1, 1);
    bool bad = false;
    if (seen == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to check %u ranks", n);
    }
    for (uint32_t i = 0; i < n && !bad; i++) {
        bad = ranks[i] >= n || seen[ranks[i]] != 0;
        seen[bad ? n : ranks[i]] = 1;
    }
    free(seen);
    return bad ? profd_error_set(e, PROFD_MALFORMED, "the ranks of a segment's %u %s are no order of them", n, what)
               : PROFD_OK;
}

static enum profd_status check_shares(const struct segment *s, struct profd_error *e)
{
    const struct segment_counts *c = &s->counts;
    const uint32_t rows = c->bin_count + c->arc_count + c->node_count;
    uint64_t at = 0;
    bool bad = false, stopped = false;
    for (uint32_t i = 0; i < rows; i++) {
        at += (uint64_t)__builtin_popcount(c->groups[i]);
    }
    if (at != c->share_count) {
        return profd_error_set(e, PROFD_MALFORMED, "a segment of %u shares: its rows have %llu", c->share_count,
                               (unsigned long long)at);
    }
    const uint64_t *share = c->shares;
    for (uint32_t i = 0; i < rows; i++) {
        uint64_t left = SEGMENT_COUNT_MAX;
        for (unsigned groups = c->groups[i]; groups != 0; groups &= groups - 1, share++) {
            bad |= *share - 1 >= SEGMENT_COUNT_MAX;
            stopped |= *share > left;
            left -= *share > left ? left : *share;
        }
    }
    if (bad) {
        return profd_error_set(e, PROFD_MALFORMED, "a segment with a share of 0, or above 2^63-1");
    }
    return stopped && !s->saturated
               ? profd_error_set(e, PROFD_MALFORMED, "a segment stops at 2^63-1 and does not say so")
               : PROFD_OK;
}

enum profd_status segment_check(const struct segment *s, struct profd_error *e)
{
    const struct segment_counts *c = &s->counts;
    const struct segment_sizes sizes = {c->histogram_count, c->bin_count,  c->arc_count,
                                        c->share_count,     c->tree_count, c->node_count};
    TRY(check_key(s, e));
    if (s->kind != SEGMENT_COUNTS) {
        return PROFD_OK;
    }
    TRY(segment_judge_sizes(&sizes, e));
    TRY(check_sums(s, e));
    TRY(check_builds(s, e));
    TRY(check_labels(s, e));
    TRY(check_histograms(s, e));
    TRY(check_arcs(s, e));
    TRY(check_stacks(s, e));
    TRY(check_shares(s, e));
    TRY(check_ranks(c->histogram_rank, c->histogram_count, "histograms", e));
    return check_ranks(c->rank, c->arc_count, "arcs", e);
}

void segment_done(struct segment *s)
{
    free(s->block);
    free(s->text);
    *s = (struct segment){.kind = SEGMENT_COUNTS};
}
