#include "core/rollup_trees_format.h"

#include <stdlib.h>

#include "core/rollup_columns.h"
#include "core/rollup_format.h"
#include "core/sum.h"
#include "proto/counts_tree.h"
#include "proto/limits.h"
#include "proto/varint.h"

static uint8_t *encode_depths(const struct rollup *r, uint64_t *scratch, uint8_t *p)
{
    for (uint32_t t = 0; t < r->tree_count; t++) {
        uint64_t before = 0; /* the depth that is possible at most */
        for (uint32_t i = r->trees[t].first; i < r->trees[t].first + r->trees[t].used; i++) {
            scratch[i] = before - r->node_depth[i];
            before = r->node_depth[i] + 1u;
        }
    }
    return rollup_column_put(p, scratch, r->node_count);
}

static uint8_t *encode_trees(const struct rollup *r, const struct rollup_ends *frames, uint64_t *scratch, uint8_t *p)
{
    uint32_t runs;
    rollup_ends_put_runs(frames->build, frames->address, frames->count, NULL, &runs);
    p = varint_put(p, r->tree_count);
    p = varint_put(p, r->node_count);
    p = varint_put(p, frames->count);
    p = varint_put(p, runs);
    p = rollup_ends_put_runs(frames->build, frames->address, frames->count, p, &runs);
    p = rollup_ends_put_gaps(frames->build, frames->address, frames->count, scratch, p);
    p = counts_encode_clocks(r->trees, r->tree_count, p);
    p = encode_depths(r, scratch, p);
    for (uint32_t i = 0; i < r->node_count; i++) {
        scratch[i] = frames->of[i] * 2 + r->node_kind[i];
    }
    p = rollup_column_put(p, scratch, r->node_count);
    return rollup_column_put(p, r->node_ticks, r->node_count);
}

enum profd_status rollup_encode_trees(const struct rollup *r, uint8_t **out, size_t *raw_size, size_t *size,
                                      struct profd_error *e)
{
    struct arena *a = arena_new(0);
    struct rollup_ends frames;
    size_t capacity = 4 * VARINT_MAX + ROLLUP_TREE_MAX * (size_t)r->tree_count +
                      4 * rollup_column_bound(r->node_count) + ROLLUP_RUN_MAX * ((size_t)LIMIT_BUILDS + 1);
    uint8_t *raw = malloc(capacity);
    uint64_t *scratch = a != NULL ? ARENA_ARRAY(a, r->node_count, uint64_t) : NULL;
    enum profd_status status = PROFD_OK;
    if (raw == NULL || scratch == NULL ||
        !rollup_ends_find(r->node_build, r->node_address, r->node_count, a, &frames)) {
        status = profd_error_set(e, PROFD_NO_MEMORY, "no memory to encode a sum of %u nodes of stacks", r->node_count);
    } else {
        *raw_size = (size_t)(encode_trees(r, &frames, scratch, raw) - raw);
        status = rollup_pack(raw, *raw_size, 0, out, size, e);
    }
    free(raw);
    arena_free(a);
    return status;
}

struct sizes {
    uint64_t trees, nodes, frames, runs;
};

static enum profd_status decode_sizes(struct rollup_reader *r, struct sizes *s, struct profd_error *e)
{
    if (!varint_get(&r->at, r->end, &s->trees) || !varint_get(&r->at, r->end, &s->nodes) ||
        !varint_get(&r->at, r->end, &s->frames) || !varint_get(&r->at, r->end, &s->runs)) {
        return rollup_decode_short("the sizes of stacks", e);
    }
    if (s->trees < 1 || s->trees > LIMIT_STACK_TREES || s->nodes > LIMIT_STACK_NODES || s->frames > s->nodes) {
        return profd_error_set(e, PROFD_DAMAGED,
                               "a sum of %llu trees, %llu nodes and %llu frames of stacks: at most %u trees and %u "
                               "nodes, each with a frame",
                               (unsigned long long)s->trees, (unsigned long long)s->nodes,
                               (unsigned long long)s->frames, LIMIT_STACK_TREES, LIMIT_STACK_NODES);
    }
    return PROFD_OK;
}

static enum profd_status decode_heads(struct rollup_reader *r, struct rollup *out, struct profd_error *e)
{
    uint64_t first = 0;
    for (uint32_t i = 0; i < out->tree_count; i++) {
        struct counts_tree *t = &out->trees[i];
        uint64_t rate, used;
        if (!counts_decode_clock(&r->at, r->end, t, &rate, &used) || rate > UINT32_MAX ||
            used > out->node_count - first) {
            return rollup_decode_short("a tree of stacks", e);
        }
        t->first = (uint32_t)first;
        t->used = (uint32_t)used;
        first += used;
    }
    return PROFD_OK;
}

/* Depths, from the column that is in node_ticks for the moment. */
static enum profd_status decode_depths(struct rollup *out, struct profd_error *e)
{
    for (uint32_t t = 0; t < out->tree_count; t++) {
        uint64_t before = 0;
        for (uint32_t i = out->trees[t].first; i < out->trees[t].first + out->trees[t].used; i++) {
            const uint64_t depth = before - out->node_ticks[i];
            if (out->node_ticks[i] > before || depth >= LIMIT_STACK_DEPTH) {
                return profd_error_set(e, PROFD_DAMAGED, "node %u of a sum's stacks: its depth is not 0 to %u", i,
                                       LIMIT_STACK_DEPTH - 1);
            }
            out->node_depth[i] = (uint8_t)depth;
            before = depth + 1;
        }
    }
    return PROFD_OK;
}

/* Builds, addresses and kinds, from the column that is in node_ticks for the moment. */
static enum profd_status decode_frames(const struct rollup_ends *frames, struct rollup *out, struct profd_error *e)
{
    for (uint32_t i = 0; i < out->node_count; i++) {
        const uint64_t frame = out->node_ticks[i] / 2;
        if (frame >= frames->count) {
            return profd_error_set(e, PROFD_DAMAGED, "node %u of a sum's stacks: frame %llu of %u", i,
                                   (unsigned long long)frame, frames->count);
        }
        out->node_build[i] = frames->build[frame];
        out->node_address[i] = frames->address[frame];
        out->node_kind[i] = out->node_ticks[i] & 1;
    }
    return PROFD_OK;
}

static enum profd_status decode_nodes(struct rollup_reader *r, const struct rollup_ends *frames, struct rollup *out,
                                      struct profd_error *e)
{
    if (!rollup_column_get(&r->at, r->end, out->node_ticks, out->node_count)) {
        return rollup_decode_short("the depths of stacks", e);
    }
    enum profd_status status = decode_depths(out, e);
    if (status == PROFD_OK && !rollup_column_get(&r->at, r->end, out->node_ticks, out->node_count)) {
        status = rollup_decode_short("the frames of stacks", e);
    }
    if (status == PROFD_OK) {
        status = decode_frames(frames, out, e);
    }
    if (status == PROFD_OK && !rollup_column_get(&r->at, r->end, out->node_ticks, out->node_count)) {
        status = rollup_decode_short("the ticks of stacks", e);
    }
    for (uint32_t i = 0; status == PROFD_OK && i < out->node_count; i++) {
        if (out->node_ticks[i] > SUM_MAX) {
            status = profd_error_set(e, PROFD_DAMAGED, "node %u of a sum's stacks: more than 2^63-1 ticks", i);
        }
    }
    return status;
}

/* The distinct frames. Their firsts are in node_ticks for the moment. */
static enum profd_status decode_places(struct rollup_reader *r, const struct sizes *s, uint32_t builds,
                                       struct rollup_ends *frames, uint64_t *firsts, struct profd_error *e)
{
    enum profd_status status =
        rollup_ends_get_runs(r, s->runs, builds, "a frame", frames->build, firsts, frames->count, e);
    if (status != PROFD_OK) {
        return status;
    }
    if (!rollup_column_get(&r->at, r->end, frames->address, frames->count)) {
        return rollup_decode_short("the list of frames", e);
    }
    return rollup_ends_add_gaps(frames->build, firsts, frames->address, frames->count, true)
               ? PROFD_OK
               : profd_error_set(e, PROFD_DAMAGED, "frames of a sum do not ascend");
}

static bool take_arrays(struct arena *a, const struct sizes *s, struct rollup_ends *frames, struct rollup *out)
{
    *frames = (struct rollup_ends){.count = (uint32_t)s->frames,
                                   .build = ARENA_ARRAY(a, s->frames, uint32_t),
                                   .address = ARENA_ARRAY(a, s->frames, uint64_t)};
    out->tree_count = (uint32_t)s->trees;
    out->node_count = (uint32_t)s->nodes;
    out->trees = ARENA_ARRAY(a, s->trees, struct counts_tree);
    out->node_depth = ARENA_ARRAY(a, s->nodes, uint8_t);
    out->node_kind = ARENA_ARRAY(a, s->nodes, uint8_t);
    out->node_build = ARENA_ARRAY(a, s->nodes, uint32_t);
    out->node_address = ARENA_ARRAY(a, s->nodes, uint64_t);
    out->node_ticks = ARENA_ARRAY(a, s->nodes, uint64_t);
    return frames->build != NULL && frames->address != NULL && out->trees != NULL && out->node_depth != NULL &&
           out->node_kind != NULL && out->node_build != NULL && out->node_address != NULL && out->node_ticks != NULL;
}

enum profd_status rollup_decode_trees(struct rollup_reader *r, uint32_t builds, struct arena *a, struct rollup *out,
                                      struct profd_error *e)
{
    struct sizes sizes = {0};
    struct rollup_ends frames;
    enum profd_status status = decode_sizes(r, &sizes, e);
    if (status == PROFD_OK && !take_arrays(a, &sizes, &frames, out)) {
        status =
            profd_error_set(e, PROFD_NO_MEMORY, "no memory for %llu nodes of stacks", (unsigned long long)sizes.nodes);
    }
    if (status == PROFD_OK) {
        status = decode_places(r, &sizes, builds, &frames, out->node_ticks, e);
    }
    if (status == PROFD_OK) {
        status = decode_heads(r, out, e);
    }
    if (status == PROFD_OK) {
        status = decode_nodes(r, &frames, out, e);
    }
    if (status == PROFD_OK && r->at != r->end) {
        status = profd_error_set(e, PROFD_DAMAGED, "%zu bytes follow the stacks of a sum", (size_t)(r->end - r->at));
    }
    if (status != PROFD_OK) {
        return status;
    }
    const struct counts_nodes nodes = COUNTS_NODES(out);
    status = counts_judge_trees(out->trees, out->tree_count, &nodes, out->node_count, builds, e);
    return status == PROFD_OK ? status : profd_error_wrap(e, PROFD_DAMAGED, "a sum");
}
