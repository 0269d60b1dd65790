/* Two snapshots of one process: what lies between them. Both are walked in the order of tables and slots. */
#include <stdlib.h>

#include "core/sum.h"
#include "ingest/attach_internal.h"

#define PLACES_FIRST 256u

/* A walk through the older one while the newer one is made. */
struct walk {
    struct attach_reading *reading;
    struct attach_builds *builds;
    const struct attach_places *before;
    uint32_t table, entry; /* of before: all places up to here are in d->places */
    uint32_t table_capacity, capacity;
    uint32_t news;
    struct attach_difference *d;
};

static bool extend(void **array, size_t n, size_t size)
{
    void *grown = realloc(*array, n * size);
    if (grown) {
        *array = grown;
    }
    return grown != NULL;
}

static enum profd_status places_reserve(struct walk *w, struct profd_error *e)
{
    struct attach_places *p = &w->d->places;
    if (p->count == LIMIT_ATTACH_SLOTS) {
        return profd_error_set(e, PROFD_TOO_LARGE, "shared counts have more than %u slots that count",
                               LIMIT_ATTACH_SLOTS);
    }
    if (p->count == w->capacity) {
        uint32_t capacity = w->capacity ? 2 * w->capacity : w->before->count + PLACES_FIRST;
        void *slots = p->slots, *counts = p->counts;
        bool ok = extend(&slots, capacity, sizeof *p->slots);
        p->slots = slots;
        ok = ok && extend(&counts, capacity, sizeof *p->counts);
        p->counts = counts;
        if (!ok) {
            return profd_error_set(e, PROFD_NO_MEMORY, "no memory for %u slots of a snapshot", capacity);
        }
        w->capacity = capacity;
    }
    if (p->table_count == w->table_capacity) {
        uint32_t capacity = w->table_capacity ? 2 * w->table_capacity : w->before->table_count + 16;
        void *tables = p->tables;
        if (!extend(&tables, capacity, sizeof *p->tables)) {
            return profd_error_set(e, PROFD_NO_MEMORY, "no memory for %u tables of a snapshot", capacity);
        }
        p->tables = tables;
        w->table_capacity = capacity;
    }
    return PROFD_OK;
}

static enum profd_status places_put(struct walk *w, uint32_t page, uint32_t slot, uint64_t count, struct profd_error *e)
{
    struct attach_places *p = &w->d->places;
    TRY(places_reserve(w, e));
    if (p->table_count == 0 || p->tables[p->table_count - 1].page != page) {
        p->tables[p->table_count++] = (struct attach_place){.page = page, .first = p->count};
    }
    p->tables[p->table_count - 1].used++;
    p->slots[p->count] = slot;
    p->counts[p->count++] = count;
    return PROFD_OK;
}

/* Moves on to a place, and keeps what is passed over: a count that can't be seen now is not forgotten. *old: what the
 * place had. */
static enum profd_status walk_to(struct walk *w, uint32_t page, uint32_t slot, uint64_t *old, struct profd_error *e)
{
    const struct attach_places *b = w->before;
    enum profd_status status = PROFD_OK;
    *old = 0;
    while (w->table < b->table_count && status == PROFD_OK) {
        const struct attach_place *t = &b->tables[w->table];
        if (w->entry == t->first + t->used) {
            w->table++;
            continue;
        }
        if (t->page > page || (t->page == page && b->slots[w->entry] > slot)) {
            break;
        }
        if (t->page == page && b->slots[w->entry] == slot) {
            *old = b->counts[w->entry++];
            break;
        }
        status = places_put(w, t->page, b->slots[w->entry], b->counts[w->entry], e);
        w->entry++;
    }
    return status;
}

static enum profd_status take_tick(struct walk *w, const struct attach_count *c, uint64_t n, struct profd_error *e)
{
    uint32_t build = attach_builds_of(w->builds, c->self_module);
    bool saturated = false;
    if (build == COUNTS_NOWHERE) {
        sum_add(&w->d->outside, n, &saturated);
        return PROFD_OK;
    }
    const struct attach_build *b = &w->builds->build[build];
    if (c->self < b->low || c->self - b->low > UINT32_MAX || c->self >= b->high) { /* not in the range of its build */
        w->d->bad++;
        return PROFD_OK;
    }
    return attach_ticks_add(&w->d->ticks, &(struct attach_tick){build, (uint32_t)(c->self - b->low), n}, e);
}

static enum profd_status take(struct walk *w, const struct attach_count *c, uint64_t n, struct profd_error *e)
{
    if (c->kind == ATTACH_KIND_SAMPLES) {
        return take_tick(w, c, n, e);
    }
    struct attach_arc arc = {.from_build = attach_builds_of(w->builds, c->from_module),
                             .to_build = attach_builds_of(w->builds, c->self_module),
                             .calls = n};
    arc.from = arc.from_build == COUNTS_NOWHERE ? 0 : c->from;
    arc.to = arc.to_build == COUNTS_NOWHERE ? 0 : c->self;
    return attach_arcs_add(&w->d->calls, &arc, e);
}

/* A node's ticks. Each process has at most ATTACH_NODES_MAX nodes, so they are never too much. */
static enum profd_status walk_node(struct walk *w, const struct attach_count *c, struct profd_error *e)
{
    uint64_t old;
    struct attach_stack_node *node = &w->d->stacks.node[c->from];
    if (node->state != ATTACH_NODE_GOOD) {
        w->d->not_yet += node->state == ATTACH_NODE_WAITS;
        w->d->bad += node->state == ATTACH_NODE_BAD;
        return PROFD_OK;
    }
    enum profd_status status = walk_to(w, c->table, c->slot, &old, e);
    uint64_t keep = c->count > old ? c->count : old;
    node->news = keep - old;
    return status == PROFD_OK ? places_put(w, c->table, c->slot, keep, e) : status;
}

/* One slot. What is too much for one harvest stays as it was: the next one takes it. */
static enum profd_status walk_count(struct walk *w, const struct attach_count *c, struct profd_error *e)
{
    uint64_t old;
    bool saturated = false;
    enum profd_status status = walk_to(w, c->table, c->slot, &old, e);
    uint64_t keep = c->count > old ? c->count : old;
    if (c->kind == ATTACH_KIND_ARCS) {
        sum_add(&w->d->calls_total, keep, &saturated);
        uint32_t build = attach_builds_of(w->builds, c->self_module);
        if (build != COUNTS_NOWHERE) {
            w->builds->build[build].counted = true;
        }
    }
    if (status == PROFD_OK && keep > old) {
        if (w->news == LIMIT_ATTACH_NEWS) {
            w->d->more = true;
            keep = old;
        } else {
            w->news++;
            TRY(take(w, c, keep - old, e));
        }
    }
    if (status == PROFD_OK && keep > 0) {
        TRY(places_put(w, c->table, c->slot, keep, e));
    }
    return status;
}

static enum profd_status walk_all(struct walk *w, struct profd_error *e)
{
    const struct attach_image *image = &w->reading->image;
    struct attach_cursor cursor = {0};
    struct attach_count c;
    uint64_t size, old;
    uint32_t slots;
    enum profd_status status = attach_stacks_read(w->reading, &w->d->stacks, e);
    while (status == PROFD_OK && attach_table_next(image, &cursor, &size)) {
        enum attach_kind kind = attach_table_kind(image, &cursor, &slots);
        status = kind == ATTACH_KIND_SAMPLES  ? attach_reading_refresh(w->reading, cursor.at, size, e)
                 : kind != ATTACH_KIND_STACKS ? attach_reading_load(w->reading, cursor.at, size, e)
                                              : PROFD_OK; /* attach_stacks_read has it */
        while (status == PROFD_OK && attach_table_count(image, &cursor, &c)) {
            status = c.kind == ATTACH_KIND_STACKS ? walk_node(w, &c, e) : walk_count(w, &c, e);
        }
        attach_reading_drop(w->reading, cursor.at, size);
    }
    w->d->bad += cursor.bad;
    w->d->not_yet += cursor.not_yet;
    return status == PROFD_OK ? walk_to(w, UINT32_MAX, UINT32_MAX, &old, e) : status;
}

enum profd_status attach_difference_make(struct attach_reading *r, struct attach_builds *builds,
                                         const struct attach_places *before, struct attach_difference *d,
                                         struct profd_error *e)
{
    struct attach_difference made = {.bad = 0};
    struct walk w = {.reading = r, .builds = builds, .before = before, .d = &made};
    enum profd_status status = walk_all(&w, e);
    if (status == PROFD_OK) {
        *d = made;
    } else {
        attach_difference_done(&made);
    }
    return status;
}

void attach_difference_done(struct attach_difference *d)
{
    attach_arcs_done(&d->calls);
    attach_arcs_done(&d->pairs);
    attach_ticks_done(&d->ticks);
    attach_stacks_done(&d->stacks);
    free(d->places.tables);
    free(d->places.slots);
    free(d->places.counts);
    d->places = (struct attach_places){0};
}
