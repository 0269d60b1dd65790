#include <stdlib.h>
#include <string.h>

#include "proto/segment_internal.h"

struct reader {
    uint8_t *at;
    const uint8_t *end;
};

static enum profd_status decode_short(const char *what, struct profd_error *e)
{
    return profd_error_set(
        e, PROFD_MALFORMED,
        "a segment ends inside %s, or a number there is longer than it need be, too large, or a text breaks off", what);
}

/* A number up to most, in as few bytes as it needs: a content has one encoding. */
static bool get(struct reader *r, uint64_t most, uint64_t *value)
{
    const uint8_t *p = r->at;
    if (p < r->end && *p < 0x80) {
        *value = *r->at++;
        return *value <= most;
    }
    if (!varint_get(&p, r->end, value) || p[-1] == 0) {
        return false;
    }
    r->at += p - r->at;
    return *value <= most;
}

static bool get_32(struct reader *r, uint32_t *value)
{
    uint64_t wide = 0;
    bool found = get(r, UINT32_MAX, &wide);
    *value = (uint32_t)wide;
    return found;
}

/* A text. It stays where it is but for one byte: its length before it gives way to a NUL behind it. */
static bool get_text(struct reader *r, const char **text)
{
    uint64_t n;
    if (!get(r, UINT64_MAX, &n) || n > (uint64_t)(r->end - r->at) || memchr(r->at, 0, (size_t)n) != NULL) {
        return false;
    }
    uint8_t *moved = r->at - 1;
    r->at += n;
    memmove(moved, moved + 1, (size_t)n);
    moved[n] = 0;
    *text = (const char *)moved;
    return true;
}

static enum profd_status decode_sums(struct reader *r, struct segment *s, struct profd_error *e)
{
    uint64_t into = 0, length = 0, ends = 0, saturated = 0;
    bool found = get_32(r, &s->uid) && get(r, (uint64_t)SEGMENT_HOUR - 1, &into) &&
                 get(r, (uint64_t)(s->hour * SEGMENT_HOUR) + into, &length);
    ends = length < into ? length : into;
    found = found && get(r, ends, &ends) && get_32(r, &s->inexact) && get(r, 1, &saturated) &&
            get(r, SEGMENT_COUNT_MAX, &s->uploads);
    for (unsigned g = 0; g < SEGMENT_GROUPS && found; g++) {
        found = get(r, SEGMENT_COUNT_MAX, &s->processes[g]);
    }
    if (!found) {
        return decode_short("its sums", e);
    }
    s->last = s->hour * SEGMENT_HOUR + (int64_t)into;
    s->first = s->last - (int64_t)length;
    s->ended = s->last - (int64_t)ends;
    s->saturated = saturated == 1;
    return PROFD_OK;
}

struct names {
    struct message_build builds[LIMIT_BUILDS];
    struct message_label labels[LIMIT_LABELS];
};

static enum profd_status decode_names(struct reader *r, struct segment *s, struct names *names, struct profd_error *e)
{
    uint64_t builds = 0, labels = 0;
    bool found = get(r, LIMIT_BUILDS, &builds) && get_32(r, &s->program);
    for (uint64_t i = 0; i < builds && found; i++) {
        found = get_text(r, &names->builds[i].build_id) && get_text(r, &names->builds[i].name);
    }
    found = found && get(r, LIMIT_LABELS, &labels);
    for (uint64_t i = 0; i < labels && found; i++) {
        found = get_text(r, &names->labels[i].name) && get_text(r, &names->labels[i].value);
    }
    s->build_count = (size_t)builds;
    s->label_count = (size_t)labels;
    return found ? PROFD_OK : decode_short("its builds and labels", e);
}

static bool decode_histogram(struct reader *r, struct counts_histogram *h, uint32_t *rank)
{
    uint64_t span, n;
    memset(h->dimension, 0, sizeof h->dimension);
    if (!get_32(r, &h->build) || !get_32(r, &h->bins) || !get(r, UINT64_MAX, &h->low) || !get(r, UINT64_MAX, &span) ||
        !get_32(r, &h->rate) || !get(r, sizeof h->dimension - 1, &n) || (uint64_t)(r->end - r->at) < n + 1) {
        return false;
    }
    h->high = h->low + span;
    memcpy(h->dimension, r->at, (size_t)n);
    r->at += n;
    h->abbreviation = (char)*r->at++;
    return strlen(h->dimension) == n && get_32(r, &h->used) && get_32(r, rank);
}

static enum profd_status decode_bins(struct reader *r, struct segment_counts *c, struct profd_error *e)
{
    uint32_t first = 0;
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        struct counts_histogram *h = &c->histograms[i];
        if (!decode_histogram(r, h, &c->histogram_rank[i])) {
            return decode_short("a histogram", e);
        }
        h->first = first;
        if (h->used > c->bin_count - first) {
            return profd_error_set(e, PROFD_MALFORMED, "histogram %u of a segment has %u of %u bins", i, h->used,
                                   c->bin_count - first);
        }
        first += h->used;
    }
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        uint64_t next = 0, gap;
        for (uint32_t k = c->histograms[i].first; k < c->histograms[i].first + c->histograms[i].used; k++) {
            if (!get(r, UINT32_MAX - next, &gap)) {
                return decode_short("its bins", e);
            }
            c->bin_index[k] = (uint32_t)(next + gap);
            next += gap + 1;
            next = next > UINT32_MAX ? UINT32_MAX : next; /* the index is refused later */
        }
    }
    return PROFD_OK;
}

static bool decode_builds(struct reader *r, uint32_t *builds, uint32_t n, size_t count)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!get_32(r, &builds[i]) || builds[i] > count) {
            return false;
        }
        builds[i] = builds[i] == count ? COUNTS_NOWHERE : builds[i];
    }
    return true;
}

static bool decode_addresses(struct reader *r, uint64_t *addresses, uint32_t n)
{
    uint64_t address = 0, step;
    for (uint32_t i = 0; i < n; i++) {
        if (!get(r, UINT64_MAX, &step)) {
            return false;
        }
        address += varint_unzigzag(step);
        addresses[i] = address;
    }
    return true;
}

static bool decode_ranks(struct reader *r, uint32_t *ranks, uint32_t n)
{
    uint64_t rank = 0, step;
    for (uint32_t i = 0; i < n; i++) {
        if (!get(r, UINT64_MAX, &step)) {
            return false;
        }
        rank += varint_unzigzag(step);
        if (rank > UINT32_MAX) {
            return false;
        }
        ranks[i] = (uint32_t)rank;
    }
    return true;
}

/* A small number of each node. */
static bool decode_bytes(struct reader *r, uint8_t *bytes, uint32_t n)
{
    uint64_t value;
    for (uint32_t i = 0; i < n; i++) {
        if (!get(r, UINT8_MAX, &value)) {
            return false;
        }
        bytes[i] = (uint8_t)value;
    }
    return true;
}

static enum profd_status decode_stacks(struct reader *r, struct segment *s, struct profd_error *e)
{
    struct segment_counts *c = &s->counts;
    uint32_t first = 0;
    for (uint32_t i = 0; i < c->tree_count; i++) {
        struct counts_tree *t = &c->trees[i];
        uint64_t n = 0;
        memset(t, 0, sizeof *t);
        if (!get_32(r, &t->rate) || !get(r, sizeof t->dimension - 1, &n) || (uint64_t)(r->end - r->at) < n + 1) {
            return decode_short("a tree of its stacks", e);
        }
        memcpy(t->dimension, r->at, (size_t)n);
        r->at += n;
        t->abbreviation = (char)*r->at++;
        t->first = first;
        if (strlen(t->dimension) != n || !get_32(r, &t->used) || t->used > c->node_count - first) {
            return decode_short("a tree of its stacks", e);
        }
        first += t->used;
    }
    return decode_bytes(r, c->node_depth, c->node_count) && decode_bytes(r, c->node_kind, c->node_count) &&
                   decode_builds(r, c->node_build, c->node_count, s->build_count) &&
                   decode_addresses(r, c->node_address, c->node_count)
               ? PROFD_OK
               : decode_short("its stacks", e);
}

static bool decode_shares(struct reader *r, struct segment_counts *c)
{
    uint64_t groups;
    for (uint32_t i = 0; i < c->bin_count + c->arc_count + c->node_count; i++) {
        if (!get(r, UINT16_MAX, &groups)) {
            return false;
        }
        c->groups[i] = (uint16_t)groups;
    }
    for (uint32_t i = 0; i < c->share_count; i++) {
        if (!get(r, SEGMENT_COUNT_MAX, &c->shares[i])) {
            return false;
        }
    }
    return true;
}

static enum profd_status decode_rows(struct reader *r, struct segment *s, struct profd_error *e)
{
    struct segment_counts *c = &s->counts;
    TRY(decode_bins(r, c, e));
    if (!decode_builds(r, c->from_build, c->arc_count, s->build_count) || !decode_addresses(r, c->from, c->arc_count) ||
        !decode_builds(r, c->to_build, c->arc_count, s->build_count) || !decode_addresses(r, c->to, c->arc_count) ||
        !decode_ranks(r, c->rank, c->arc_count)) {
        return decode_short("its arcs", e);
    }
    TRY(decode_stacks(r, s, e));
    return decode_shares(r, c) ? PROFD_OK : decode_short("its shares", e);
}

static enum profd_status decode_sizes(struct reader *r, struct segment_counts *c, struct profd_error *e)
{
    struct segment_sizes n = {0};
    if (!get(r, UINT64_MAX, &n.histograms) || !get(r, UINT64_MAX, &n.bins) || !get(r, UINT64_MAX, &n.arcs) ||
        !get(r, UINT64_MAX, &n.shares) || !get(r, UINT64_MAX, &n.trees) || !get(r, UINT64_MAX, &n.nodes)) {
        return decode_short("its sizes", e);
    }
    TRY(segment_judge_sizes(&n, e));
    uint64_t least = n.histograms * SEGMENT_HISTOGRAM_LEAST + n.bins * SEGMENT_BIN_LEAST + n.arcs * SEGMENT_ARC_LEAST +
                     n.shares * SEGMENT_SHARE_LEAST + n.trees * SEGMENT_TREE_LEAST + n.nodes * SEGMENT_NODE_LEAST;
    if (least > (uint64_t)(r->end - r->at)) {
        return profd_error_set(e, PROFD_MALFORMED,
                               "%llu histograms, %llu bins, %llu arcs, %llu shares, and %llu trees with %llu nodes of "
                               "a segment in %zu bytes",
                               (unsigned long long)n.histograms, (unsigned long long)n.bins, (unsigned long long)n.arcs,
                               (unsigned long long)n.shares, (unsigned long long)n.trees, (unsigned long long)n.nodes,
                               (size_t)(r->end - r->at));
    }
    *c = (struct segment_counts){.histogram_count = (uint32_t)n.histograms,
                                 .bin_count = (uint32_t)n.bins,
                                 .arc_count = (uint32_t)n.arcs,
                                 .share_count = (uint32_t)n.shares,
                                 .tree_count = (uint32_t)n.trees,
                                 .node_count = (uint32_t)n.nodes};
    return PROFD_OK;
}

static size_t take(size_t *total, size_t count, size_t size)
{
    size_t at = *total;
    *total += (count * size + 15) & ~(size_t)15;
    return at;
}

/* All arrays in one block, with copies of the names. */
static enum profd_status take_block(struct segment *s, const struct names *names, struct profd_error *e)
{
    struct segment_counts *c = &s->counts;
    size_t total = 0, histograms = take(&total, c->histogram_count, sizeof *c->histograms),
           shares = take(&total, c->share_count, 8), from = take(&total, c->arc_count, 8),
           to = take(&total, c->arc_count, 8), bins = take(&total, c->bin_count, 4),
           from_build = take(&total, c->arc_count, 4), to_build = take(&total, c->arc_count, 4),
           trees = take(&total, c->tree_count, sizeof *c->trees), address = take(&total, c->node_count, 8),
           node_build = take(&total, c->node_count, 4), depth = take(&total, c->node_count, 1),
           kind = take(&total, c->node_count, 1), rank = take(&total, c->arc_count, 4),
           histogram_rank = take(&total, c->histogram_count, 4),
           groups = take(&total, (size_t)c->bin_count + c->arc_count + c->node_count, 2),
           builds = take(&total, s->build_count, sizeof names->builds[0]),
           labels = take(&total, s->label_count, sizeof names->labels[0]);
    char *b = malloc(total + 1);
    if (b == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a segment of %zu bytes", total);
    }
    s->block = b;
    c->histograms = (void *)(b + histograms);
    c->shares = (void *)(b + shares);
    c->from = (void *)(b + from);
    c->to = (void *)(b + to);
    c->bin_index = (void *)(b + bins);
    c->from_build = (void *)(b + from_build);
    c->to_build = (void *)(b + to_build);
    c->rank = (void *)(b + rank);
    c->histogram_rank = (void *)(b + histogram_rank);
    c->groups = (void *)(b + groups);
    c->trees = (void *)(b + trees);
    c->node_address = (void *)(b + address);
    c->node_build = (void *)(b + node_build);
    c->node_depth = (void *)(b + depth);
    c->node_kind = (void *)(b + kind);
    s->builds = memcpy(b + builds, names->builds, s->build_count * sizeof names->builds[0]);
    s->labels = memcpy(b + labels, names->labels, s->label_count * sizeof names->labels[0]);
    return PROFD_OK;
}

static enum profd_status decode_key(struct reader *r, struct segment *s, struct profd_error *e)
{
    uint64_t kind, hour = 0;
    if (!get(r, SEGMENT_KINDS - 1, &kind) || r->end - r->at < SEGMENT_EPOCH_SIZE) {
        return decode_short("its key", e);
    }
    memcpy(s->epoch, r->at, sizeof s->epoch);
    r->at += sizeof s->epoch;
    if (!get(r, SEGMENT_COUNT_MAX, &s->sequence) || !get(r, (uint64_t)SEGMENT_HOUR_MAX, &hour)) {
        return decode_short("its key", e);
    }
    s->kind = (enum segment_kind)kind;
    s->hour = (int64_t)hour;
    return PROFD_OK;
}

static enum profd_status decode_content(struct reader *r, struct segment *s, struct profd_error *e)
{
    struct names names;
    TRY(decode_key(r, s, e));
    if (s->kind == SEGMENT_COUNTS) {
        TRY(decode_sums(r, s, e));
        TRY(decode_names(r, s, &names, e));
        TRY(decode_sizes(r, &s->counts, e));
        TRY(take_block(s, &names, e));
        TRY(decode_rows(r, s, e));
    }
    if (r->at != r->end) {
        return profd_error_set(e, PROFD_MALFORMED, "%zu bytes follow a segment's content", (size_t)(r->end - r->at));
    }
    return segment_check(s, e);
}

enum profd_status segment_decode(const uint8_t *in, size_t n, struct segment *s, struct profd_error *e)
{
    struct segment result = {.kind = SEGMENT_COUNTS};
    uint8_t *content = NULL;
    size_t size;
    TRY(segment_unpack(in, n, &content, &size, e));
    struct reader r = {content, content + size};
    result.text = content;
    enum profd_status status = decode_content(&r, &result, e);
    if (status == PROFD_OK) {
        *s = result;
    } else {
        segment_done(&result);
    }
    return status;
}
