#include "import/import_place_internal.h"

#include <string.h>

#include "core/compare.h"
#include "proto/sort.h"
#include "core/sum.h"
#include "core/table.h"
#include "lib/upload.h"
#include "proto/limits.h"

struct place_arcs {
    struct profd_arc *list; /* in order of arrival, each once */
    uint32_t count, capacity;
    struct table table;
};

static uint64_t arc_mix(const struct profd_arc *a)
{
    return table_mix(table_mix(a->from, a->to), (uint64_t)a->from_build << 32 | a->to_build);
}

static uint64_t arc_hash(const void *context, uint32_t index)
{
    return arc_mix(&((const struct place_arcs *)context)->list[index]);
}

static bool add_arc(struct place_arcs *arcs, struct arena *a, const struct profd_arc *arc, bool *saturated)
{
    if (!table_reserve(&arcs->table, a, arc_hash, arcs)) {
        return false;
    }
    uint32_t at = table_slot(&arcs->table, arc_mix(arc));
    for (; arcs->table.slots[at] != 0; at = (at + 1) & arcs->table.mask) {
        struct profd_arc *known = &arcs->list[arcs->table.slots[at] - 1];
        if (known->from == arc->from && known->to == arc->to && known->from_build == arc->from_build &&
            known->to_build == arc->to_build) {
            sum_add(&known->calls, arc->calls, saturated);
            return true;
        }
    }
    void *list = arena_extend(a, arcs->list, arcs->count, &arcs->capacity, sizeof *arcs->list);
    if (!list) {
        return false;
    }
    arcs->list = list;
    arcs->list[arcs->count] = *arc;
    arcs->table.slots[at] = ++arcs->count;
    arcs->table.used++;
    return true;
}

/* An end outside has address 0: its address differs from process to process. A caller's address is behind the first
 * byte of its function, where reports see the last call of the function before. */
static enum profd_status add_pairs(struct place *w, bool *saturated, struct profd_error *e)
{
    const struct import_profile *p = w->profile;
    struct place_arcs arcs = {.list = NULL};
    for (uint32_t i = 0; i < p->pair_count; i++) {
        const struct import_pair *pair = &p->pairs[i];
        const struct place_frame *from = &w->frames[pair->from], *to = &w->frames[pair->to];
        bool from_outside = from->build == PROFD_NOWHERE, to_outside = to->build == PROFD_NOWHERE;
        bool ignored = false;
        sum_add(&w->notes->calls, pair->calls, &ignored);
        sum_add(&w->notes->outside_calls, from_outside || to_outside ? pair->calls : 0, &ignored);
        if (pair->calls == 0 || (from_outside && to_outside)) {
            continue;
        }
        const struct import_binary *b = from_outside ? NULL : w->objects[p->frames[pair->from].object].binary;
        const bool inside = b && import_binary_entry(b, from->at + 1) == from->entry;
        const struct profd_arc arc = {.from_build = from->build,
                                      .to_build = to->build,
                                      .from = from_outside ? 0 : from->at + inside,
                                      .to = to_outside ? 0 : to->entry,
                                      .calls = pair->calls};
        if (!add_arc(&arcs, w->arena, &arc, saturated)) {
            return profd_no_memory(e);
        }
    }
    enum profd_status status = PROFD_OK;
    for (uint32_t i = 0; i < arcs.count && status == PROFD_OK; i++) {
        status = profd_upload_add_arc(w->upload, &arcs.list[i], e);
    }
    return status;
}

static int place_compare(const void *context, uint32_t a, uint32_t b)
{
    const struct place_frame *x = &((const struct place_frame *)context)[a],
                             *y = &((const struct place_frame *)context)[b];
    return compare_pairs(x->build, y->build, x->at, y->at);
}

/* Bins of one build: order[first … end). */
static enum profd_status add_histogram(struct place *w, const uint32_t *order, uint32_t first, uint32_t end,
                                       bool *saturated, struct profd_error *e)
{
    const struct import_profile *p = w->profile;
    uint32_t build = w->frames[order[first]].build, used = 0;
    struct place_span span = w->spans[build];
    uint64_t last = w->frames[order[end - 1]].at;
    uint32_t *index = ARENA_ARRAY(w->arena, end - first, uint32_t);
    uint64_t *ticks = ARENA_ARRAY(w->arena, end - first, uint64_t);
    if (!index || !ticks) {
        return profd_no_memory(e);
    }
    span.low = w->frames[order[first]].at < span.low ? w->frames[order[first]].at : span.low;
    span.high = last >= span.high ? last + 1 : span.high;
    if (span.high - span.low > UINT32_MAX || span.high < span.low) {
        return profd_error_set(e, PROFD_REFUSED, "the code of build %.12s spans more than 4 GiB",
                               profd_upload_build_id(w->upload, build));
    }
    for (uint32_t i = first; i < end; i++) {
        uint32_t bin = (uint32_t)(w->frames[order[i]].at - span.low);
        if (used == 0 || index[used - 1] != bin) {
            index[used++] = bin;
        }
        sum_add(&ticks[used - 1], p->frames[order[i]].ticks, saturated);
    }
    struct counts_histogram h = {.build = build,
                                 .bins = (uint32_t)(span.high - span.low),
                                 .low = span.low,
                                 .high = span.high,
                                 .rate = p->rate,
                                 .abbreviation = p->abbreviation,
                                 .first = 0,
                                 .used = used};
    memcpy(h.dimension, p->dimension, sizeof h.dimension);
    const struct counts c = {
        .histogram_count = 1, .bin_count = used, .histograms = &h, .bin_index = index, .bin_ticks = ticks};
    return upload_add_counts(w->upload, &c, e);
}

static enum profd_status add_ticks(struct place *w, bool *saturated, struct profd_error *e)
{
    const struct import_profile *p = w->profile;
    uint32_t *order = ARENA_ARRAY(w->arena, (size_t)p->frame_count * 2 + 1, uint32_t), n = 0;
    bool ignored = false;
    if (!order) {
        return profd_no_memory(e);
    }
    for (uint32_t i = 0; i < p->frame_count; i++) {
        sum_add(&w->notes->ticks, p->frames[i].ticks, &ignored);
        if (w->frames[i].build == PROFD_NOWHERE) {
            sum_add(&w->notes->outside_ticks, p->frames[i].ticks, &ignored);
            w->outside |= p->frames[i].ticks > 0;
        } else if (p->frames[i].ticks > 0) {
            order[n++] = i;
        }
    }
    sort_merge(order, order + p->frame_count, n, place_compare, w->frames);
    enum profd_status status = PROFD_OK;
    for (uint32_t first = 0, end; first < n && status == PROFD_OK; first = end) {
        for (end = first + 1; end < n && w->frames[order[end]].build == w->frames[order[first]].build; end++) {
        }
        status = add_histogram(w, order, first, end, saturated, e);
    }
    return status;
}

enum profd_status place_counts_add(struct place *w, struct profd_error *e)
{
    bool saturated = w->profile->saturated;
    enum profd_status status = add_ticks(w, &saturated, e);
    if (status == PROFD_OK) {
        status = add_pairs(w, &saturated, e);
    }
    w->saturated = saturated;
    return status;
}
