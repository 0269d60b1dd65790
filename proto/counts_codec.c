#include "proto/counts.h"

#include <stdlib.h>
#include <string.h>

#include "proto/counts_tree.h"
#include "proto/deflate.h"
#include "proto/limits.h"
#include "proto/sort.h"
#include "proto/sum.h"
#include "proto/varint.h"

#define COUNTS_FORMAT 1        /* first byte of the encoding */
#define COUNTS_SHARES_FORMAT 2 /* the same of shares */
#define COUNTS_FLAG_SORTED 1u
#define COUNTS_FLAG_SATURATED 2u
#define COUNTS_FLAGS (COUNTS_FLAG_SORTED | COUNTS_FLAG_SATURATED)
#define COUNTS_SECTIONS 3u                         /* arcs, histograms, stacks */
#define COUNTS_HEAD_MAX (2 + 12 * VARINT_MAX)      /* bytes before the sections */
#define COUNTS_HISTOGRAM_MIN 8u                    /* encoded bytes of the smallest histogram, without its bins */
#define COUNTS_HISTOGRAM_MAX (32 + 7 * VARINT_MAX) /* and of the largest */
#define COUNTS_TREE_MAX 32u                        /* of the largest tree, without its nodes */

#define COUNTS_CHUNK 4096u /* numbers that share one width */

/* Most bytes that n numbers take. */
static inline size_t counts_column_bound(size_t n)
{
    return 8 * n + n / COUNTS_CHUNK + 1;
}

#define COUNTS_RUN_MAX 30u    /* bytes of the largest run */
#define COUNTS_PLACES_MAX 20u /* bytes of the two sizes before the runs */

/* The distinct places of rows, ascending by build (COUNTS_NOWHERE last) and address, and the place of each row. */
struct counts_places {
    uint32_t count;
    uint32_t *build;
    uint64_t *address;
    uint64_t *of; /* by row: its place */
};

struct counts_reader {
    const uint8_t *at, *end;
};

/* Writes n numbers: for every chunk its width w in bytes (least to 8), then the w low bytes of all its numbers, lowest
 * plane first. A column of least 1 takes a byte for each row, so that a section is not smaller than its rows. Returns
 * the end. O(n). */
static uint8_t *counts_column_put(uint8_t *out, const uint64_t *values, size_t n, unsigned least)
{
    for (size_t at = 0; at < n; at += COUNTS_CHUNK) {
        size_t count = n - at < COUNTS_CHUNK ? n - at : COUNTS_CHUNK;
        uint64_t all = 0;
        unsigned width = 0;
        for (size_t i = 0; i < count; i++) {
            all |= values[at + i];
        }
        for (; all != 0 || width < least; all >>= 8) {
            width++;
        }
        *out++ = (uint8_t)width;
        for (unsigned plane = 0; plane < width; plane++) {
            for (size_t i = 0; i < count; i++) {
                *out++ = (uint8_t)(values[at + i] >> 8 * plane);
            }
        }
    }
    return out;
}

/* The usual widths have loops of their own, which read every plane once. */
static void column_unpack(const uint8_t *p, unsigned width, uint64_t *out, size_t n)
{
    switch (width) {
    case 0:
        memset(out, 0, n * sizeof *out);
        return;
    case 1:
        for (size_t i = 0; i < n; i++) {
            out[i] = p[i];
        }
        return;
    case 2:
        for (size_t i = 0; i < n; i++) {
            out[i] = (uint64_t)p[i] | (uint64_t)p[n + i] << 8;
        }
        return;
    case 3:
        for (size_t i = 0; i < n; i++) {
            out[i] = (uint64_t)p[i] | (uint64_t)p[n + i] << 8 | (uint64_t)p[2 * n + i] << 16;
        }
        return;
    default:
        for (size_t i = 0; i < n; i++) {
            out[i] =
                (uint64_t)p[i] | (uint64_t)p[n + i] << 8 | (uint64_t)p[2 * n + i] << 16 | (uint64_t)p[3 * n + i] << 24;
        }
        for (unsigned plane = 4; plane < width; plane++) {
            for (size_t i = 0; i < n; i++) {
                out[i] |= (uint64_t)p[plane * n + i] << 8 * plane;
            }
        }
    }
}

/* Reads n numbers from *at and moves behind them. False: the bytes end first, or a width is above 8. O(n). */
static bool counts_column_get(const uint8_t **at, const uint8_t *end, uint64_t *values, size_t n)
{
    const uint8_t *p = *at;
    for (size_t i = 0; i < n; i += COUNTS_CHUNK) {
        size_t count = n - i < COUNTS_CHUNK ? n - i : COUNTS_CHUNK;
        if (p == end || *p > 8 || (size_t)(end - p) - 1 < *p * count) {
            return false;
        }
        unsigned width = *p++;
        column_unpack(p, width, values + i, count);
        p += width * count;
    }
    *at = p;
    return true;
}

/* Finds the places of n rows. out has arrays for n; items has space for 2n. O(n) if the rows ascend, as those of sums
 * and of many uploads do, else O(n) for each byte in which the places differ. */
static void counts_places_find(const uint32_t *builds, const uint64_t *addresses, uint32_t n, struct sort_item *items,
                               struct counts_places *out)
{
    bool ascend = true;
    uint32_t count = 0;
    for (uint32_t i = 1; i < n && ascend; i++) {
        ascend = builds[i] > builds[i - 1] || (builds[i] == builds[i - 1] && addresses[i] >= addresses[i - 1]);
    }
    for (uint32_t i = 0; i < n && !ascend; i++) {
        items[i] = (struct sort_item){addresses[i], i};
    }
    for (int key = 0; key < 2 && !ascend; key++) {
        sort_radix(items, items + n, n);
        for (uint32_t i = 0; i < n && key == 0; i++) {
            items[i].key = builds[items[i].value];
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t row = ascend ? i : items[i].value;
        if (count == 0 || addresses[row] != out->address[count - 1] || builds[row] != out->build[count - 1]) {
            out->address[count] = addresses[row];
            out->build[count++] = builds[row];
        }
        out->of[row] = count - 1;
    }
    out->count = count;
}

/* Writes count, number of runs, runs (length, build + 1 or 0 for nowhere, first address) and the column of the gaps;
 * the gap of the first place of a run is 0. scratch has count numbers. Returns the end. */
static uint8_t *counts_places_put(const struct counts_places *p, uint64_t *scratch, uint8_t *out)
{
    uint32_t runs = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        const bool begins = i == 0 || p->build[i] != p->build[i - 1];
        scratch[i] = begins ? 0 : p->address[i] - p->address[i - 1];
        runs += begins;
    }
    out = varint_put(out, p->count);
    out = varint_put(out, runs);
    for (uint32_t i = 0; i < p->count;) {
        const uint32_t start = i;
        while (i < p->count && p->build[i] == p->build[start]) {
            i++;
        }
        out = varint_put(out, i - start);
        out = varint_put(out, p->build[start] == COUNTS_NOWHERE ? 0 : (uint64_t)p->build[start] + 1);
        out = varint_put(out, p->address[start]);
    }
    return counts_column_put(out, scratch, p->count, 0);
}

/* MALFORMED: counts end inside what, or a number there is too long. */
static enum profd_status decode_short(const char *what, struct profd_error *e)
{
    return profd_error_set(e, PROFD_MALFORMED, "counts end inside %s, or a number there is too long", what);
}

/* Reads n single numbers of what. */
static enum profd_status take_numbers(struct counts_reader *r, const char *what, uint64_t *out, unsigned n,
                                      struct profd_error *e)
{
    for (unsigned i = 0; i < n; i++) {
        TRY(varint_get(&r->at, r->end, &out[i]) ? PROFD_OK : decode_short(what, e));
    }
    return PROFD_OK;
}

/* Reads a column of n numbers. */
static enum profd_status take_column(struct counts_reader *r, const char *what, uint64_t *out, size_t n,
                                     struct profd_error *e)
{
    return counts_column_get(&r->at, r->end, out, n) ? PROFD_OK : decode_short(what, e);
}

/* Reads places into arrays for most of them, scratch likewise. what has a place, for the sentence. MALFORMED or OK. */
static enum profd_status counts_places_get(struct counts_reader *r, uint32_t builds, const char *what, uint32_t most,
                                           uint64_t *scratch, struct counts_places *out, struct profd_error *e)
{
    uint64_t sizes[2], address = 0, least = 0; /* COUNTS_NOWHERE, written as 0, comes last */
    uint32_t at = 0;
    bool bad = false;
    TRY(take_numbers(r, "the sizes of places", sizes, 2, e));
    FAIL_IF(sizes[0] > most, e, PROFD_MALFORMED, "%llu places of %u rows", (unsigned long long)sizes[0], most);
    out->count = (uint32_t)sizes[0];
    for (uint64_t run = 0; run < sizes[1]; run++) {
        uint64_t n[3];
        TRY(take_numbers(r, "runs of builds", n, 3, e));
        const uint64_t length = n[0], build = n[1];
        FAIL_IF(length < 1 || length > out->count - at, e, PROFD_MALFORMED, "a run of %llu places where %u are left",
                (unsigned long long)length, out->count - at);
        const uint64_t value = build == 0 ? COUNTS_NOWHERE : build - 1;
        FAIL_IF(build > builds, e, PROFD_MALFORMED, "%s of build %llu: the upload has %u", what,
                (unsigned long long)value, builds);
        FAIL_IF(value < least, e, PROFD_MALFORMED, "%s of build %llu comes after one of build %llu", what,
                (unsigned long long)value, (unsigned long long)(least - 1));
        least = value + 1;
        scratch[at] = n[2]; /* the first address, at the run's first place */
        for (const uint32_t end = at + (uint32_t)length; at < end; at++) {
            out->build[at] = (uint32_t)value;
        }
    }
    FAIL_IF(at != out->count, e, PROFD_MALFORMED, "runs of builds hold %u places of %u", at, out->count);
    TRY(take_column(r, "the addresses of places", out->address, out->count, e));
    for (uint32_t i = 0; i < out->count; i++) { /* gaps become addresses in place */
        const bool begins = i == 0 || out->build[i] != out->build[i - 1];
        const uint64_t base = begins ? scratch[i] : address, gap = out->address[i];
        address = base + gap;
        bad |= address < base || begins != (gap == 0);
        out->address[i] = address;
    }
    return bad ? profd_error_set(e, PROFD_MALFORMED, "the addresses of %s do not ascend", what) : PROFD_OK;
}

/* Checks what the decoder checks, so that whatever is encoded can be decoded. *bins: those that the histograms use. */
static enum profd_status judge(const struct counts *c, uint64_t *bins, struct profd_error *e)
{
    struct counts_nodes nodes = COUNTS_NODES(c);
    uint64_t used = 0;
    if (!c->sorted) {
        TRY(counts_judge_sizes(c->histogram_count, c->bin_count, c->arc_count, e));
    }
    for (uint32_t k = 0; k < c->histogram_count; k++) {
        const struct counts_histogram *h = &c->histograms[k];
        TRY(counts_judge_histogram(h, k, e));
        FAIL_IF(h->first > c->bin_count || h->used > c->bin_count - h->first, e, PROFD_REFUSED,
                "histogram %u: bins %u to %u of %u", k, h->first, h->first + h->used, c->bin_count);
        for (uint32_t i = h->first; i < h->first + h->used; i++) {
            FAIL_IF(c->bin_index[i] >= h->bins || (i > h->first && c->bin_index[i] <= c->bin_index[i - 1]), e,
                    PROFD_REFUSED, "histogram %u: bin %u is out of order or not below %u", k, c->bin_index[i], h->bins);
            FAIL_IF(c->bin_ticks[i] == 0, e, PROFD_REFUSED, "histogram %u: bin %u is zero", k, c->bin_index[i]);
        }
        used += h->used;
    }
    *bins = used;
    if (!c->sorted) {
        TRY(counts_judge_sizes(c->histogram_count, used, c->arc_count, e));
        TRY(counts_check_collector(c, e));
    }
    for (uint32_t i = 0; i < c->arc_count; i++) { /* so that places have at most that many runs */
        FAIL_IF((c->from_build[i] >= LIMIT_BUILDS && c->from_build[i] != COUNTS_NOWHERE) ||
                    (c->to_build[i] >= LIMIT_BUILDS && c->to_build[i] != COUNTS_NOWHERE),
                e, PROFD_REFUSED, "arc %u from build %u to build %u: at most %u builds are known", i, c->from_build[i],
                c->to_build[i], LIMIT_BUILDS);
    }
    return counts_judge_trees(c->trees, c->tree_count, &nodes, c->node_count, LIMIT_BUILDS, e);
}

/* Scratch arrays for the largest of the columns. */
struct counts_encoding {
    struct sort_item *items; /* twice as many as rows */
    struct counts_places places;
    uint64_t *numbers;
    uint8_t *raw; /* a section before it is compressed */
    void *block;
};

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The places of rows and which of them each row has, as differences to the row before: rows of sums ascend. */
static uint8_t *put_ends(struct counts_encoding *w, const uint32_t *builds, const uint64_t *addresses, uint32_t n,
                         bool differences, uint8_t *p)
{
    counts_places_find(builds, addresses, n, w->items, &w->places);
    p = counts_places_put(&w->places, w->numbers, p);
    for (uint32_t i = 0; i < n; i++) {
        w->numbers[i] =
            differences ? varint_zigzag(w->places.of[i] - (i == 0 ? 0 : w->places.of[i - 1])) : w->places.of[i];
    }
    return counts_column_put(p, w->numbers, n, 0);
}

static uint8_t *put_arcs(struct counts_encoding *w, const struct counts *c, uint8_t *p)
{
    const uint32_t n = c->arc_count;
    p = put_ends(w, c->from_build, c->from, n, true, p);
    p = put_ends(w, c->to_build, c->to, n, false, p);
    if (c->sorted) {
        uint64_t lowest = n == 0 ? 0 : UINT64_MAX;
        for (uint32_t i = 0; i < n; i++) {
            lowest = c->commit[i] < lowest ? c->commit[i] : lowest;
        }
        p = varint_put(p, lowest);
        for (uint32_t i = 0; i < n; i++) {
            w->numbers[i] = c->commit[i] - lowest;
        }
        p = counts_column_put(p, w->numbers, n, 0);
        for (uint32_t i = 0; i < n; i++) {
            w->numbers[i] = varint_zigzag((uint64_t)c->rank[i] - (i == 0 ? 0 : c->rank[i - 1]));
        }
        p = counts_column_put(p, w->numbers, n, 0);
    }
    return counts_column_put(p, c->calls, n, 1);
}

static uint8_t *put_text(const char *text, size_t most_bytes, uint8_t *p)
{
    const size_t n = strnlen(text, most_bytes);
    p = varint_put(p, n);
    memcpy(p, text, n);
    return p + n;
}

static uint8_t *put_histograms(struct counts_encoding *w, const struct counts *c, uint8_t *p)
{
    size_t n = 0;
    for (uint32_t k = 0; k < c->histogram_count; k++) {
        const struct counts_histogram *h = &c->histograms[k];
        p = varint_put(p, h->build);
        p = varint_put(p, h->bins);
        p = varint_put(p, h->low);
        p = varint_put(p, h->high - h->low);
        p = varint_put(p, h->rate);
        p = put_text(h->dimension, sizeof h->dimension, p);
        *p++ = (uint8_t)h->abbreviation;
        p = varint_put(p, h->used);
        if (c->sorted) {
            p = varint_put(p, h->order.commit);
            p = varint_put(p, h->order.rank);
        }
        for (uint32_t i = h->first, next = 0; i < h->first + h->used; i++) {
            w->numbers[n++] = c->bin_index[i] - next;
            next = c->bin_index[i] + 1;
        }
    }
    p = counts_column_put(p, w->numbers, n, 0);
    n = 0;
    for (uint32_t k = 0; k < c->histogram_count; k++) {
        const struct counts_histogram *h = &c->histograms[k];
        for (uint32_t i = h->first; i < h->first + h->used; i++) {
            w->numbers[n++] = c->bin_ticks[i];
        }
    }
    return counts_column_put(p, w->numbers, n, 1);
}

/* Trees first, at most COUNTS_TREE_MAX bytes each: varint of the rate, the dimension behind its length, the
 * abbreviation, varint of the number of nodes. Then the columns of the nodes. */
static uint8_t *put_stacks(struct counts_encoding *w, const struct counts *c, uint8_t *p)
{
    for (uint32_t k = 0; k < c->tree_count; k++) {
        const struct counts_tree *t = &c->trees[k];
        uint64_t deepest = 0; /* that is possible */
        p = varint_put(p, t->rate);
        p = put_text(t->dimension, sizeof t->dimension, p);
        *p++ = (uint8_t)t->abbreviation;
        p = varint_put(p, t->used);
        for (uint32_t i = t->first; i < t->first + t->used; i++) {
            w->numbers[i] = deepest - c->node_depth[i];
            deepest = c->node_depth[i] + 1u;
        }
    }
    p = counts_column_put(p, w->numbers, c->node_count, 0);
    p = counts_column_put(p, c->node_ticks, c->node_count, 1);
    counts_places_find(c->node_build, c->node_address, c->node_count, w->items, &w->places);
    p = counts_places_put(&w->places, w->numbers, p);
    for (uint32_t i = 0; i < c->node_count; i++) {
        w->numbers[i] = w->places.of[i] * 2 + c->node_kind[i];
    }
    return counts_column_put(p, w->numbers, c->node_count, 0);
}

/* The encoding in the making: a block that grows by one compressed section after the other. */
struct counts_pack {
    uint8_t *block;
    size_t used;
    uint64_t raw[COUNTS_SECTIONS], packed[COUNTS_SECTIONS], total;
};

static enum profd_status pack_section(struct counts_pack *x, unsigned section, const uint8_t *raw, size_t n,
                                      struct profd_error *e)
{
    size_t size = 0;
    uint8_t *grown = realloc(x->block, x->used + deflate_bound(n));
    TRY(grown != NULL ? PROFD_OK : profd_no_memory(e));
    x->block = grown;
    TRY(deflate_pack(raw, n, false, x->block + x->used, deflate_bound(n), &size, e));
    x->used += size;
    x->raw[section] = n;
    x->packed[section] = size;
    x->total += n;
    return x->total <= LIMIT_COUNTS_RAW ? PROFD_OK
                                        : profd_error_set(e, PROFD_TOO_LARGE, "counts of %llu bytes, at most %u",
                                                          (unsigned long long)x->total, LIMIT_COUNTS_RAW);
}

/* Fills the pack. The caller frees both blocks, on failure, too. */
static enum profd_status encode(struct counts_encoding *w, struct counts_pack *x, const struct counts *c, uint64_t bins,
                                struct profd_error *e)
{
    const size_t rows = (size_t)most(c->arc_count, c->node_count), numbers = (size_t)most(rows, bins);
    const size_t places = COUNTS_PLACES_MAX + COUNTS_RUN_MAX * ((size_t)LIMIT_BUILDS + 1);
    const size_t arcs = 2 * places + 2 * VARINT_MAX + 7 * counts_column_bound(c->arc_count);
    const size_t histograms = (size_t)c->histogram_count * COUNTS_HISTOGRAM_MAX + 2 * counts_column_bound(bins);
    const size_t stacks = places + (size_t)c->tree_count * COUNTS_TREE_MAX + 4 * counts_column_bound(c->node_count);
    const size_t raw = (size_t)most(arcs, most(histograms, stacks));
    char *block = malloc(rows * (2 * sizeof *w->items + 2 * sizeof(uint64_t) + sizeof(uint32_t)) + 16 +
                         numbers * sizeof(uint64_t) + raw);
    TRY(block != NULL ? PROFD_OK : profd_no_memory(e));
    w->block = block;
    w->items = (struct sort_item *)(void *)block;
    w->places.address = (uint64_t *)(w->items + 2 * rows);
    w->places.of = w->places.address + rows;
    w->numbers = w->places.of + rows;
    w->places.build = (uint32_t *)(w->numbers + numbers);
    w->raw = (uint8_t *)(w->places.build + rows);
    TRY(pack_section(x, 0, w->raw, (size_t)(put_arcs(w, c, w->raw) - w->raw), e));
    TRY(pack_section(x, 1, w->raw, (size_t)(put_histograms(w, c, w->raw) - w->raw), e));
    if (c->tree_count > 0) {
        TRY(pack_section(x, 2, w->raw, (size_t)(put_stacks(w, c, w->raw) - w->raw), e));
    }

    /* The head goes in front of the sections, which leave COUNTS_HEAD_MAX bytes for it; they move down to its end. */
    uint8_t head[COUNTS_HEAD_MAX], *p = head;
    *p++ = COUNTS_FORMAT;
    p = varint_put(p, x->total);
    *p++ = (uint8_t)((c->sorted ? COUNTS_FLAG_SORTED : 0) | (c->saturated ? COUNTS_FLAG_SATURATED : 0));
    p = varint_put(p, c->arc_count);
    p = varint_put(p, c->histogram_count);
    p = varint_put(p, bins);
    p = varint_put(p, c->tree_count);
    p = varint_put(p, c->node_count);
    for (unsigned i = 0; i < (c->tree_count > 0 ? 3u : 2u); i++) {
        p = varint_put(p, x->raw[i]);
        p = varint_put(p, x->packed[i]);
    }
    const size_t n = (size_t)(p - head);
    memmove(x->block + n, x->block + COUNTS_HEAD_MAX, x->used - COUNTS_HEAD_MAX);
    memcpy(x->block, head, n);
    x->used -= COUNTS_HEAD_MAX - n;
    return PROFD_OK;
}

enum profd_status counts_encode(const struct counts *c, uint8_t **out, size_t *out_size, struct profd_error *e)
{
    struct counts_encoding w = {0};
    struct counts_pack x = {.used = COUNTS_HEAD_MAX};
    uint64_t bins = 0;
    TRY(judge(c, &bins, e));
    enum profd_status status = encode(&w, &x, c, bins, e);
    free(w.block);
    if (status) {
        free(x.block);
        return status;
    }
    uint8_t *fitted = realloc(x.block, x.used);
    *out = fitted != NULL ? fitted : x.block;
    *out_size = x.used;
    return PROFD_OK;
}

/* What precedes the sections. */
struct counts_head {
    struct counts_sizes sizes;
    bool saturated;
    unsigned sections;
    uint64_t raw[COUNTS_SECTIONS], packed[COUNTS_SECTIONS];
};

/* Takes the numbers of rows, which must fit the limits and their sections: a row takes a byte at least. */
static enum profd_status decode_sizes(const uint64_t n[5], struct counts_head *h, struct profd_error *e)
{
    const uint64_t arcs = n[0], histograms = n[1], bins = n[2], trees = n[3], nodes = n[4];
    if (!h->sizes.sorted) {
        TRY(counts_judge_sizes(histograms, bins, arcs, e));
    }
    FAIL_IF(trees > LIMIT_STACK_TREES || nodes > LIMIT_STACK_NODES, e, PROFD_TOO_LARGE,
            "stacks of %llu clocks with %llu nodes, at most %u with %u", (unsigned long long)trees,
            (unsigned long long)nodes, LIMIT_STACK_TREES, LIMIT_STACK_NODES);
    FAIL_IF(arcs > h->raw[0] || bins > h->raw[1] || histograms > h->raw[1] / COUNTS_HISTOGRAM_MIN ||
                nodes > h->raw[2] || trees > nodes || (trees == 0 && nodes > 0),
            e, PROFD_MALFORMED,
            "%llu arcs, %llu histograms with %llu bins and %llu trees with %llu nodes stated in %llu, %llu and %llu "
            "bytes",
            (unsigned long long)arcs, (unsigned long long)histograms, (unsigned long long)bins,
            (unsigned long long)trees, (unsigned long long)nodes, (unsigned long long)h->raw[0],
            (unsigned long long)h->raw[1], (unsigned long long)h->raw[2]);
    h->sizes.arcs = (uint32_t)arcs;
    h->sizes.histograms = (uint32_t)histograms;
    h->sizes.bins = (uint32_t)bins;
    h->sizes.trees = (uint32_t)trees;
    h->sizes.nodes = (uint32_t)nodes;
    return PROFD_OK;
}

static enum profd_status decode_head(struct counts_reader *r, struct counts_head *h, struct profd_error *e)
{
    uint64_t total = 0, n[5], raw = 0, packed = 0;
    const size_t size = (size_t)(r->end - r->at);
    FAIL_IF(size < 1 || *r->at != COUNTS_FORMAT, e, PROFD_MALFORMED,
            "counts of %zu bytes in format %u: only %d is known", size, size < 1 ? 0u : *r->at, COUNTS_FORMAT);
    r->at++;
    TRY(take_numbers(r, "their size", &total, 1, e));
    FAIL_IF(total > LIMIT_COUNTS_RAW, e, PROFD_TOO_LARGE, "counts of %llu bytes, at most %u", (unsigned long long)total,
            LIMIT_COUNTS_RAW);
    FAIL_IF(r->at == r->end || *r->at > COUNTS_FLAGS, e, PROFD_MALFORMED, "counts with flags %u: known are %u",
            r->at == r->end ? 0u : *r->at, COUNTS_FLAGS);
    h->sizes.sorted = *r->at & COUNTS_FLAG_SORTED;
    h->saturated = *r->at++ & COUNTS_FLAG_SATURATED;
    TRY(take_numbers(r, "their sizes", n, 5, e));

    /* The sections fill the rest. */
    h->sections = n[3] > 0 ? 3 : 2;
    for (unsigned i = 0; i < h->sections; i++) {
        TRY(take_numbers(r, "their sizes", &h->raw[i], 1, e));
        TRY(take_numbers(r, "their sizes", &h->packed[i], 1, e));
        FAIL_IF(h->raw[i] > total - raw || h->packed[i] > (size_t)(r->end - r->at), e, PROFD_MALFORMED,
                "a section of %llu bytes in %llu, of counts of %llu in %zu", (unsigned long long)h->raw[i],
                (unsigned long long)h->packed[i], (unsigned long long)total, (size_t)(r->end - r->at));
        FAIL_IF(h->raw[i] > deflate_content_max((size_t)h->packed[i]), e, PROFD_MALFORMED,
                "a section of %llu bytes stated in %llu", (unsigned long long)h->raw[i],
                (unsigned long long)h->packed[i]);
        raw += h->raw[i];
        packed += h->packed[i];
    }
    FAIL_IF(raw != total || packed != (size_t)(r->end - r->at), e, PROFD_MALFORMED,
            "sections of %llu bytes in %llu, where %llu in %zu are stated or there", (unsigned long long)raw,
            (unsigned long long)packed, (unsigned long long)total, (size_t)(r->end - r->at));
    return decode_sizes(n, h, e);
}

enum profd_status counts_decode_sizes(const uint8_t *in, size_t n, struct counts_sizes *out, uint64_t *raw,
                                      struct profd_error *e)
{
    struct counts_reader r = {in, n == 0 ? in : in + n};
    struct counts_head h = {0};
    TRY(decode_head(&r, &h, e));
    *out = h.sizes;
    *raw = h.raw[0] + h.raw[1] + h.raw[2];
    return PROFD_OK;
}

/* Arrays for the places of the largest section, and its raw bytes. */
struct counts_decoding {
    struct counts_places places;
    uint64_t *scratch;
    uint8_t *raw;
    void *block;
};

/* Sets builds and addresses of the rows from the numbers of their places. False: a number is too large. */
static bool take_places(const struct counts_places *places, const uint64_t *numbers, uint32_t n, uint32_t *builds,
                        uint64_t *addresses)
{
    bool beyond = false;
    for (uint32_t i = 0; i < n; i++) {
        beyond |= numbers[i] >= places->count;
    }
    for (uint32_t i = 0; i < n && !beyond; i++) {
        builds[i] = places->build[numbers[i]];
        addresses[i] = places->address[numbers[i]];
    }
    return !beyond;
}

static enum profd_status decode_arcs(struct counts_reader *r, uint32_t builds, struct counts_decoding *w,
                                     struct counts *c, struct profd_error *e)
{
    uint64_t *from = c->from, *to = c->calls, place = 0; /* calls are read last */
    TRY(counts_places_get(r, builds, "an arc", c->arc_count, w->scratch, &w->places, e));
    TRY(take_column(r, "the callers of arcs", w->scratch, c->arc_count, e));
    for (uint32_t i = 0; i < c->arc_count; i++) {
        place += varint_unzigzag(w->scratch[i]);
        w->scratch[i] = place;
    }
    FAIL_IF(!take_places(&w->places, w->scratch, c->arc_count, c->from_build, from), e, PROFD_MALFORMED,
            "the caller of an arc is none of %u places", w->places.count);
    /* The places of the callees replace those of the callers, and sorted arcs keep the numbers of these in commit. */
    if (c->sorted && c->arc_count > 0) {
        memcpy(c->commit, w->scratch, c->arc_count * sizeof *c->commit);
    }
    TRY(counts_places_get(r, builds, "an arc", c->arc_count, w->scratch, &w->places, e));
    TRY(take_column(r, "the callees of arcs", to, c->arc_count, e));
    FAIL_IF(!take_places(&w->places, to, c->arc_count, c->to_build, c->to), e, PROFD_MALFORMED,
            "the callee of an arc is none of %u places", w->places.count);
    if (c->sorted) {
        /* commit and to have the numbers of the places, which ascend as the places do. */
        bool ascend = true;
        for (uint32_t i = 1; i < c->arc_count; i++) {
            ascend &= c->commit[i] > c->commit[i - 1] || (c->commit[i] == c->commit[i - 1] && to[i] > to[i - 1]);
        }
        FAIL_IF(!ascend, e, PROFD_MALFORMED, "arcs of a sum do not ascend");
        /* When each arc arrived first. */
        uint64_t lowest = 0, rank = 0;
        bool bad = false;
        TRY(take_numbers(r, "the order of arcs", &lowest, 1, e));
        TRY(take_column(r, "the order of arcs", c->commit, c->arc_count, e));
        TRY(take_column(r, "the order of arcs", w->scratch, c->arc_count, e));
        for (uint32_t i = 0; i < c->arc_count; i++) {
            c->commit[i] += lowest;
            bad |= c->commit[i] < lowest;
            rank += varint_unzigzag(w->scratch[i]);
            bad |= rank > UINT32_MAX;
            c->rank[i] = (uint32_t)rank;
        }
        FAIL_IF(bad, e, PROFD_MALFORMED, "a commit or rank of an arc is out of range");
    }
    TRY(take_column(r, "the counts of arcs", c->calls, c->arc_count, e));
    for (uint32_t i = 0; c->sorted && i < c->arc_count; i++) {
        FAIL_IF(c->calls[i] > SUM_MAX, e, PROFD_MALFORMED, "arc %u of a sum has more than 2^63-1 calls", i);
    }
    return PROFD_OK;
}

/* Reads a dimension and its abbreviation. */
static enum profd_status take_dimension(struct counts_reader *r, const char *what, char dimension[16],
                                        char *abbreviation, struct profd_error *e)
{
    uint64_t n = 0;
    TRY(take_numbers(r, what, &n, 1, e));
    TRY(n < 16 && n < (size_t)(r->end - r->at) ? PROFD_OK : decode_short(what, e));
    memset(dimension, 0, 16);
    memcpy(dimension, r->at, (size_t)n);
    *abbreviation = (char)r->at[n];
    r->at += n + 1;
    return PROFD_OK;
}

static enum profd_status decode_histogram(struct counts_reader *r, uint32_t at, uint32_t builds, bool sorted,
                                          struct counts_histogram *h, struct profd_error *e)
{
    enum { BUILD, BINS, LOW, SPAN, RATE, USED, COMMIT, RANK, NUMBERS };
    uint64_t n[NUMBERS] = {0};
    *h = (struct counts_histogram){0};
    TRY(take_numbers(r, "a histogram", n, USED, e));
    TRY(take_dimension(r, "a histogram", h->dimension, &h->abbreviation, e));
    TRY(take_numbers(r, "a histogram", n + USED, sorted ? NUMBERS - USED : 1, e));
    FAIL_IF((n[BUILD] | n[BINS] | n[RATE] | n[USED] | n[RANK]) > UINT32_MAX, e, PROFD_TOO_LARGE,
            "histogram %u: a number needs more than 32 bits", at);
    h->build = (uint32_t)n[BUILD];
    h->bins = (uint32_t)n[BINS];
    h->low = n[LOW];
    h->high = n[LOW] + n[SPAN];
    h->rate = (uint32_t)n[RATE];
    h->used = (uint32_t)n[USED];
    h->order = (struct counts_order){n[COMMIT], (uint32_t)n[RANK]};
    TRY(counts_judge_histogram(h, at, e));
    FAIL_IF(h->build >= builds, e, PROFD_MALFORMED, "histogram %u of build %u: the upload has %u", at, h->build,
            builds);
    FAIL_IF(sorted && at > 0 && counts_compare_geometry(&h[-1].geometry, &h->geometry) >= 0, e, PROFD_MALFORMED,
            "histogram %u of a sum is out of order", at);
    return PROFD_OK;
}

static enum profd_status decode_histograms(struct counts_reader *r, uint32_t builds, struct counts_decoding *w,
                                           struct counts *c, struct profd_error *e)
{
    uint64_t first = 0;
    (void)w;
    for (uint32_t i = 0; i < c->histogram_count && first <= c->bin_count; i++) {
        struct counts_histogram *h = &c->histograms[i];
        TRY(decode_histogram(r, i, builds, c->sorted, h, e));
        h->first = (uint32_t)first;
        first += h->used;
    }
    FAIL_IF(first != c->bin_count, e, PROFD_MALFORMED, "histograms have %llu non-zero bins where %u were stated",
            (unsigned long long)first, c->bin_count);
    if (!c->sorted) {
        TRY(counts_check_collector(c, e));
    }
    TRY(take_column(r, "bins", c->bin_ticks, c->bin_count, e)); /* gaps, for the moment */
    for (uint32_t k = 0; k < c->histogram_count; k++) {
        const struct counts_histogram *h = &c->histograms[k];
        uint64_t next = 0;
        for (uint32_t i = h->first; i < h->first + h->used; i++) {
            const uint64_t gap = c->bin_ticks[i];
            FAIL_IF(gap >= h->bins - next, e, PROFD_MALFORMED, "histogram %u: a bin lies beyond the last of %u", k,
                    h->bins);
            c->bin_index[i] = (uint32_t)(next + gap);
            next += gap + 1;
        }
    }
    TRY(take_column(r, "ticks", c->bin_ticks, c->bin_count, e));
    bool zero = false, large = false;
    for (uint32_t i = 0; i < c->bin_count; i++) {
        zero |= c->bin_ticks[i] == 0;
        large |= c->bin_ticks[i] > SUM_MAX;
    }
    return zero                 ? profd_error_set(e, PROFD_MALFORMED, "a bin with 0 ticks: only non-zero bins are sent")
           : c->sorted && large ? profd_error_set(e, PROFD_MALFORMED, "a bin of a sum has more than 2^63-1 ticks")
                                : PROFD_OK;
}

static enum profd_status decode_stacks(struct counts_reader *r, uint32_t builds, struct counts_decoding *w,
                                       struct counts *c, struct profd_error *e)
{
    uint64_t first = 0;
    for (uint32_t i = 0; i < c->tree_count; i++) {
        struct counts_tree *t = &c->trees[i];
        uint64_t rate = 0, used = 0;
        *t = (struct counts_tree){0};
        TRY(take_numbers(r, "the clocks of stacks", &rate, 1, e));
        TRY(take_dimension(r, "the clocks of stacks", t->dimension, &t->abbreviation, e));
        TRY(take_numbers(r, "the clocks of stacks", &used, 1, e));
        FAIL_IF(rate > UINT32_MAX || used > c->node_count - first, e, PROFD_MALFORMED,
                "stacks %u: rate %llu, %llu nodes of %u", i, (unsigned long long)rate, (unsigned long long)used,
                c->node_count);
        t->rate = (uint32_t)rate;
        t->first = (uint32_t)first;
        t->used = (uint32_t)used;
        first += used;
    }
    TRY(take_column(r, "the depths of stacks", w->scratch, c->node_count, e));
    for (uint32_t k = 0; k < c->tree_count; k++) {
        const struct counts_tree *t = &c->trees[k];
        uint64_t deepest = 0; /* that is possible */
        for (uint32_t i = t->first; i < t->first + t->used; i++) {
            FAIL_IF(w->scratch[i] > deepest || deepest - w->scratch[i] >= LIMIT_STACK_DEPTH, e, PROFD_MALFORMED,
                    "node %u of stacks: %llu levels above depth %llu, at most %u", i, (unsigned long long)w->scratch[i],
                    (unsigned long long)deepest, LIMIT_STACK_DEPTH - 1);
            c->node_depth[i] = (uint8_t)(deepest - w->scratch[i]);
            deepest = deepest - w->scratch[i] + 1;
        }
    }
    TRY(take_column(r, "the ticks of stacks", c->node_ticks, c->node_count, e));
    TRY(counts_places_get(r, builds, "a frame", c->node_count, w->scratch, &w->places, e));
    TRY(take_column(r, "the frames of stacks", w->scratch, c->node_count, e));
    bool large = false;
    for (uint32_t i = 0; i < c->node_count; i++) {
        c->node_kind[i] = w->scratch[i] & 1;
        w->scratch[i] /= 2;
        large |= c->node_ticks[i] > SUM_MAX;
    }
    FAIL_IF(!take_places(&w->places, w->scratch, c->node_count, c->node_build, c->node_address), e, PROFD_MALFORMED,
            "the frame of a node is none of %u places", w->places.count);
    FAIL_IF(c->sorted && large, e, PROFD_MALFORMED, "a node of a sum has more than 2^63-1 ticks");
    struct counts_nodes nodes = COUNTS_NODES(c);
    return counts_judge_trees(c->trees, c->tree_count, &nodes, c->node_count, builds, e);
}

static const struct {
    enum profd_status (*decode)(struct counts_reader *r, uint32_t builds, struct counts_decoding *w, struct counts *c,
                                struct profd_error *e);
    const char *what;
} sections[COUNTS_SECTIONS] = {
    {decode_arcs, "arcs"},
    {decode_histograms, "histograms"},
    {decode_stacks, "stacks"},
};

/* Decodes the wanted sections. The first of all sections begins at `at`. The caller frees the block, on failure, too.
 */
static enum profd_status decode_all(const uint8_t *at, const struct counts_head *h, uint32_t builds, unsigned parts,
                                    struct counts_decoding *w, struct counts *c, struct profd_error *e)
{
    const size_t arcs = parts & COUNTS_ARCS ? h->sizes.arcs : 0, nodes = parts & COUNTS_STACKS ? h->sizes.nodes : 0;
    const size_t rows = arcs > nodes ? arcs : nodes;
    size_t raw = 1;
    for (unsigned i = 0; i < h->sections; i++) {
        raw = (parts >> i & 1) != 0 && h->raw[i] > raw ? (size_t)h->raw[i] : raw;
    }
    char *block = malloc(rows * (2 * sizeof(uint64_t) + sizeof(uint32_t)) + raw);
    TRY(block != NULL ? PROFD_OK : profd_no_memory(e));
    w->block = block;
    w->places.address = (uint64_t *)(void *)block;
    w->scratch = w->places.address + rows;
    w->places.build = (uint32_t *)(w->scratch + rows);
    w->raw = (uint8_t *)(w->places.build + rows);
    for (unsigned i = 0; i < h->sections; at += h->packed[i++]) {
        if ((parts >> i & 1) == 0) {
            continue;
        }
        TRY(deflate_unpack(at, (size_t)h->packed[i], w->raw, (size_t)h->raw[i], e));
        struct counts_reader r = {w->raw, w->raw + h->raw[i]};
        TRY(sections[i].decode(&r, builds, w, c, e));
        FAIL_IF(r.at != r.end, e, PROFD_MALFORMED, "%zu bytes follow the %s", (size_t)(r.end - r.at), sections[i].what);
    }
    return PROFD_OK;
}

enum profd_status counts_decode_parts(const uint8_t *in, size_t n, uint32_t builds, unsigned parts,
                                      const struct counts_memory *memory, struct counts *c, struct profd_error *e)
{
    struct counts_reader r = {in, n == 0 ? in : in + n};
    struct counts_head h = {0};
    struct counts result = {0};
    struct counts_decoding w = {0};
    TRY(decode_head(&r, &h, e));
    struct counts_sizes wanted = {.sorted = h.sizes.sorted};
    if (parts & COUNTS_ARCS) {
        wanted.arcs = h.sizes.arcs;
    }
    if (parts & COUNTS_HISTOGRAMS) {
        wanted.histograms = h.sizes.histograms;
        wanted.bins = h.sizes.bins;
    }
    if (parts & COUNTS_STACKS) {
        wanted.trees = h.sizes.trees;
        wanted.nodes = h.sizes.nodes;
    }
    TRY(counts_take_block(&result, &wanted, memory, e));
    result.saturated = h.saturated;
    enum profd_status status = decode_all(r.at, &h, builds, parts, &w, &result, e);
    free(w.block);
    if (status) {
        counts_done(&result);
        return status;
    }
    *c = result;
    return PROFD_OK;
}

enum profd_status counts_decode(const uint8_t *in, size_t n, uint32_t builds, struct counts *c, struct profd_error *e)
{
    return counts_decode_parts(in, n, builds, COUNTS_ALL, NULL, c, e);
}

/* The shares of the groups, beside the numbers of sorted counts. */

/* Returns how many of a row's shares are written, for a row with that number. */
static unsigned row_stored(unsigned shares, uint64_t number)
{
    return number == SUM_MAX || shares == 0 ? shares : shares - 1;
}

/* The rows of sorted counts, bins first. */
struct share_rows {
    const uint64_t *numbers;
    uint64_t *shares;
    uint32_t n;
    const char *what;
};
#define KINDS 3

static void rows_find(const struct counts *c, const struct counts_shares *s, struct share_rows out[KINDS])
{
    out[0] = (struct share_rows){c->bin_ticks, s->bins, c->bin_count, "bin"};
    out[1] = (struct share_rows){c->calls, s->arcs, c->arc_count, "arc"};
    out[2] = (struct share_rows){c->node_ticks, s->nodes, c->node_count, "node"};
}

static size_t rows_count(const struct counts *c)
{
    return (size_t)c->bin_count + c->arc_count + c->node_count;
}

/* Most bytes of the columns. */
static size_t raw_bound(size_t rows, size_t shares)
{
    return KINDS * counts_column_bound(rows) + counts_column_bound(shares);
}

/* Columns of the masks, then of the shares, in a new block of *size bytes. A mask says which groups have a share; all
 * but the last of a row are written, or all if its number has stopped. */
static enum profd_status encode_raw(const struct counts *c, const struct counts_shares *shares, uint8_t **out,
                                    size_t *size, struct profd_error *e)
{
    struct share_rows rows[KINDS];
    size_t n = rows_count(c), count = 0;
    uint64_t *masks = calloc(n + 1, sizeof *masks), *numbers = NULL, *mask = masks;
    uint8_t *raw = NULL, *p;
    rows_find(c, shares, rows);
    for (const struct share_rows *x = rows; x < rows + KINDS && masks != NULL; x++) {
        for (uint32_t i = 0; i < x->n; i++, mask++) {
            const uint64_t *row = x->shares + (size_t)i * COUNTS_GROUPS;
            unsigned bits = 0, some = 0;
            for (unsigned g = 0; g < COUNTS_GROUPS; g++) {
                const unsigned has = row[g] != 0;
                bits |= has << g;
                some += has;
            }
            *mask = bits;
            count += row_stored(some, x->numbers[i]);
        }
    }
    if (masks != NULL) {
        raw = p = malloc(raw_bound(n, count));
        numbers = calloc(count + 1, sizeof *numbers);
    }
    if (raw == NULL || numbers == NULL) {
        free(masks);
        free(raw);
        free(numbers);
        return profd_no_memory(e);
    }
    uint64_t *next = numbers;
    mask = masks;
    for (const struct share_rows *x = rows; x < rows + KINDS; mask += x++->n) {
        for (uint32_t i = 0; i < x->n; i++) {
            const uint64_t *row = x->shares + (size_t)i * COUNTS_GROUPS;
            for (uint64_t left = mask[i]; left != 0; left &= left - 1) {
                if (x->numbers[i] == SUM_MAX || (left & (left - 1)) != 0) {
                    *next++ = row[__builtin_ctzll(left)];
                }
            }
        }
        p = counts_column_put(p, mask, x->n, 0);
    }
    p = counts_column_put(p, numbers, count, 0);
    free(masks);
    free(numbers);
    *out = raw;
    *size = (size_t)(p - raw);
    return PROFD_OK;
}

enum profd_status counts_encode_shares(const struct counts *c, const struct counts_shares *shares, uint8_t **out,
                                       size_t *out_size, struct profd_error *e)
{
    uint8_t *raw = NULL;
    size_t n = 0, size = 0;
    TRY(encode_raw(c, shares, &raw, &n, e));
    enum profd_status status =
        n > LIMIT_COUNTS_RAW
            ? profd_error_set(e, PROFD_TOO_LARGE, "shares of %zu bytes, at most %u", n, LIMIT_COUNTS_RAW)
            : PROFD_OK;
    uint8_t *block = malloc(1 + VARINT_MAX + deflate_bound(n)), *p = block;
    if (!status && block == NULL) {
        status = profd_no_memory(e);
    }
    if (!status) {
        *p++ = COUNTS_SHARES_FORMAT;
        p = varint_put(p, n);
        status = deflate_pack(raw, n, false, p, deflate_bound(n), &size, e);
    }
    free(raw);
    if (status) {
        free(block);
        return status;
    }
    *out = block;
    *out_size = (size_t)(p - block) + size;
    return PROFD_OK;
}

/* The column of shares, read chunk by chunk: as an array it would be as large as all shares. */
struct shares_reader {
    struct counts_reader *in;
    size_t left;        /* shares of the chunks that are not read yet */
    unsigned at, count; /* of the chunk */
    bool ends_early;    /* the column ends before its last number */
    uint64_t chunk[COUNTS_CHUNK];
};

/* Returns the next share; 0 where there is none, which no row accepts. */
static uint64_t take_share(struct shares_reader *r)
{
    if (r->at == r->count) {
        r->at = 0;
        r->count = (unsigned)(r->left < COUNTS_CHUNK ? r->left : COUNTS_CHUNK);
        r->left -= r->count;
        if (r->count == 0 || !counts_column_get(&r->in->at, r->in->end, r->chunk, r->count)) {
            r->ends_early = true;
            r->count = 0;
            return 0;
        }
    }
    return r->chunk[r->at++];
}

/* Reads the shares of rows from their masks and the next shares. MALFORMED: they do not add up to the number. */
static enum profd_status decode_rows(const struct share_rows *rows, const uint64_t *masks, struct shares_reader *next,
                                     struct profd_error *e)
{
    uint64_t checked[COUNTS_GROUPS]; /* where shares are only checked */
    for (uint32_t i = 0; i < rows->n; i++) {
        const uint64_t number = rows->numbers[i];
        uint64_t *row = rows->shares != NULL ? rows->shares + (size_t)i * COUNTS_GROUPS : checked, sum = 0;
        unsigned left = row_stored((unsigned)__builtin_popcountll(masks[i]), number);
        bool bad = false;
        for (uint64_t mask = masks[i]; mask != 0 && !bad; mask &= mask - 1) {
            const uint64_t share = left > 0 ? take_share(next) : number - sum;
            left -= left > 0;
            bad = share == 0 || share > SUM_MAX;
            row[__builtin_ctzll(mask)] = share;
            sum_saturate(&sum, share);
        }
        if (bad || sum != number) {
            return next->ends_early
                       ? profd_error_set(e, PROFD_MALFORMED, "shares do not end with their last number")
                       : profd_error_set(e, PROFD_MALFORMED, "the groups' shares of %s %u do not add up to its %llu",
                                         rows->what, i, (unsigned long long)number);
        }
    }
    return PROFD_OK;
}

/* Decodes the masks of all rows, then their shares. masks has space for all rows. */
static enum profd_status decode_section(const struct share_rows rows[KINDS], struct counts_reader in, uint64_t *masks,
                                        struct profd_error *e)
{
    struct shares_reader next = {.in = &in};
    uint64_t *at = masks;
    for (const struct share_rows *x = rows; x < rows + KINDS; at += x++->n) {
        uint64_t all = 0;
        FAIL_IF(!counts_column_get(&in.at, in.end, at, x->n), e, PROFD_MALFORMED, "shares end inside their masks");
        for (uint32_t i = 0; i < x->n; i++) {
            all |= at[i];
            next.left += row_stored((unsigned)__builtin_popcountll(at[i]), x->numbers[i]);
        }
        FAIL_IF(all >> COUNTS_GROUPS != 0, e, PROFD_MALFORMED, "shares speak of a group that is not one of %u",
                COUNTS_GROUPS);
    }
    at = masks;
    for (const struct share_rows *x = rows; x < rows + KINDS; at += x++->n) {
        TRY(decode_rows(x, at, &next, e));
    }
    return in.at == in.end
               ? PROFD_OK
               : profd_error_set(e, PROFD_MALFORMED, "%zu bytes follow the shares", (size_t)(in.end - in.at));
}

enum profd_status counts_decode_shares(const struct counts *c, const uint8_t *in, size_t n,
                                       const struct counts_memory *memory, struct counts_shares *out,
                                       struct profd_error *e)
{
    struct counts_reader r = {in, n == 0 ? in : in + n};
    struct counts_shares result = {NULL, NULL, NULL};
    uint64_t size;
    FAIL_IF(n < 1 || *r.at++ != COUNTS_SHARES_FORMAT || !varint_get(&r.at, r.end, &size), e, PROFD_MALFORMED,
            "shares of %zu bytes in format %u: only %d is known", n, n < 1 ? 0u : in[0], COUNTS_SHARES_FORMAT);
    const size_t packed = (size_t)(r.end - r.at);
    const size_t most = raw_bound(rows_count(c), rows_count(c) * COUNTS_GROUPS);
    FAIL_IF(size > LIMIT_COUNTS_RAW || size > most || size > deflate_content_max(packed), e, PROFD_MALFORMED,
            "shares of %zu rows: %llu bytes stated in %zu", rows_count(c), (unsigned long long)size, packed);
    if (memory != NULL) {
        uint64_t *block = memory->take(memory->context, (rows_count(c) * COUNTS_GROUPS + 1) * sizeof *block);
        TRY(block != NULL ? PROFD_OK : profd_no_memory(e));
        result.bins = block;
        result.arcs = result.bins + (size_t)c->bin_count * COUNTS_GROUPS;
        result.nodes = result.arcs + (size_t)c->arc_count * COUNTS_GROUPS;
    }
    uint64_t *masks = calloc(rows_count(c) + 1, sizeof *masks);
    uint8_t *raw = malloc((size_t)size + 1);
    enum profd_status status =
        masks != NULL && raw != NULL ? deflate_unpack(r.at, packed, raw, (size_t)size, e) : profd_no_memory(e);
    if (!status) {
        struct share_rows rows[KINDS];
        rows_find(c, &result, rows);
        status = decode_section(rows, (struct counts_reader){raw, raw + size}, masks, e);
    }
    free(masks);
    free(raw);
    if (!status && memory != NULL) {
        *out = result;
    }
    return status;
}
