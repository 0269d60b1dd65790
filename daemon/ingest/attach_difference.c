#include <stdlib.h>
#include <string.h>

#include "proto/sum.h"
#include "ingest/attach_internal.h"
#include "proto/utf8.h"

/* The objects of a process become builds. */

struct listed_module {
    struct attach_module module;
    uint32_t number;
    uint32_t first; /* the module under which its build is listed */
};

static int compare_listed(const void *a, const void *b)
{
    const struct listed_module *x = *(const struct listed_module *const *)a,
                               *y = *(const struct listed_module *const *)b;
    int order = strcmp(x->module.id.text, y->module.id.text);
    return order != 0 ? order : (x->number > y->number) - (x->number < y->number);
}

enum profd_status attach_builds_list(const struct attach_image *image, struct arena *a, struct attach_builds *out,
                                     struct profd_error *e)
{
    struct attach_builds b = {.module_count = image->module_count};
    const size_t n = (size_t)image->module_count + 1;
    uint32_t count = 0;
    struct listed_module *listed = ARENA_ARRAY(a, n, struct listed_module);
    struct listed_module **sorted = ARENA_ARRAY(a, n, struct listed_module *);
    b.of_module = ARENA_ARRAY(a, n, uint32_t);
    b.build = ARENA_ARRAY(a, n < LIMIT_BUILDS ? n : LIMIT_BUILDS, struct attach_build);
    if (!listed || !sorted || !b.of_module || !b.build) {
        return profd_no_memory(e);
    }
    for (size_t i = 0; i < n; i++) {
        b.of_module[i] = COUNTS_NOWHERE;
    }
    for (uint32_t id = 1; id <= image->module_count; id++) { /* modules that have a row and a build-id */
        bool bad;
        struct listed_module *m = &listed[count];
        if (attach_module_get(image, id, &m->module, &bad)) {
            m->number = id;
            count += m->module.has_id;
            b.nameless += !m->module.has_id;
            FAIL_IF(id == 1 && !m->module.has_id, e, PROFD_REFUSED,
                    "the program has no build-id: link it with -Wl,--build-id");
        } else if (bad) {
            return profd_error_set(e, PROFD_MALFORMED,
                                   "shared counts, module %u: its range, build-id or name is impossible", id);
        }
    }
    if (count == 0 || listed[0].number != 1) { /* before the program has its row, there is nothing to call the others */
        *out = b;
        return PROFD_OK;
    }

    for (uint32_t i = 0; i < count; i++) {
        sorted[i] = &listed[i];
    }
    qsort(sorted, count, sizeof *sorted, compare_listed);
    for (uint32_t i = 0; i < count; i++) {
        const bool twin = i > 0 && strcmp(sorted[i]->module.id.text, sorted[i - 1]->module.id.text) == 0;
        sorted[i]->first = twin ? sorted[i - 1]->first : (uint32_t)(sorted[i] - listed);
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct attach_module *m = &listed[i].module;
        if (listed[i].first != i) {
            b.of_module[listed[i].number] = b.of_module[listed[listed[i].first].number];
            continue;
        }
        if (b.count == LIMIT_BUILDS) {
            b.unlisted++;
            continue;
        }
        char *name = arena_copy(a, m->name, m->name_size);
        if (!name) {
            return profd_no_memory(e);
        }
        for (size_t k = 0; k < m->name_size; k++) { /* any bytes become text */
            name[k] = name[k] == 0 ? '?' : name[k];
        }
        utf8_scrub(name);
        b.build[b.count] = (struct attach_build){.id = m->id, .name = name, .low = m->low, .high = m->high};
        b.of_module[listed[i].number] = b.count++;
    }
    *out = b;
    return PROFD_OK;
}

/* What a harvest adds up: arcs by their ends, ticks by address. */

#define PROBES 16u

/* The slot of an arc, or a free one; NULL if neither is near. */
static uint32_t *slot_find(const struct attach_arcs *s, const struct attach_arc *arc)
{
    uint64_t x =
        arc->from * UINT64_C(0x9e3779b97f4a7c15) ^ (arc->to + ((uint64_t)arc->from_build << 32 | arc->to_build));
    x = (x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    uint32_t at = (uint32_t)(x >> 32);
    for (uint32_t i = 0; i < PROBES; i++, at++) {
        uint32_t *slot = &s->slots[at & s->mask];
        const struct attach_arc *known = *slot > 0 ? &s->arc[*slot - 1] : NULL;
        if (!known || (known->from == arc->from && known->to == arc->to && known->from_build == arc->from_build &&
                       known->to_build == arc->to_build)) {
            return slot;
        }
    }
    return NULL;
}

static enum profd_status no_memory(uint32_t n, struct profd_error *e)
{
    return profd_error_set(e, PROFD_NO_MEMORY, "no memory to add up more than %u counts", n);
}

/* NO_MEMORY or OK. O(1) amortized. */
static enum profd_status attach_arcs_add(struct attach_arcs *s, struct arena *a, const struct attach_arc *arc,
                                         struct profd_error *e)
{
    bool saturated = false;
    if (s->count == s->capacity) {
        const bool grown = ARENA_EXTEND(a, s->arc, s->count, s->capacity);
        s->slots = grown ? ARENA_ARRAY(a, 2 * (size_t)s->capacity, uint32_t) : NULL;
        TRY(s->slots ? PROFD_OK : no_memory(s->count, e));
        s->mask = 2 * s->capacity - 1; /* the capacity is a power of two */
        for (uint32_t i = 0; i < s->count; i++) {
            uint32_t *slot = slot_find(s, &s->arc[i]);
            if (slot && *slot == 0) {
                *slot = i + 1;
            }
        }
    }
    uint32_t *slot = slot_find(s, arc);
    if (slot && *slot) {
        sum_add(&s->arc[*slot - 1].calls, arc->calls, &saturated);
        return PROFD_OK;
    }
    s->arc[s->count++] = *arc;
    if (slot) {
        *slot = s->count;
    }
    return PROFD_OK;
}

static int compare_ticks(const void *a, const void *b)
{
    const struct attach_tick *x = a, *y = b;
    return x->build != y->build ? (x->build > y->build) - (x->build < y->build)
                                : (x->index > y->index) - (x->index < y->index);
}

void attach_ticks_sort(struct attach_ticks *s)
{
    uint32_t kept = 0;
    bool saturated = false;
    if (s->count == 0) {
        return;
    }
    qsort(s->tick, s->count, sizeof *s->tick, compare_ticks);
    for (uint32_t i = 1; i < s->count; i++) {
        if (compare_ticks(&s->tick[kept], &s->tick[i]) == 0) {
            sum_add(&s->tick[kept].ticks, s->tick[i].ticks, &saturated);
        } else {
            s->tick[++kept] = s->tick[i];
        }
    }
    s->count = kept + 1;
}

/* The stacks of a process: its tree of nodes becomes a tree of counts, and sampled arcs. */

static enum profd_status no_memory_for_nodes(uint32_t nodes, struct profd_error *e)
{
    return profd_error_set(e, PROFD_NO_MEMORY, "no memory for %u nodes of stacks", nodes);
}

/* Judges a node and those between it and the first judged one. The children of a node that waits do so, too: they were
 * written while the memory was copied. */
static void node_judge(struct attach_stacks *s, uint32_t number)
{
    uint32_t path[LIMIT_STACK_DEPTH], n = 0, at = number, depth = 0;
    enum attach_node_state state = ATTACH_NODE_GOOD;
    while (at > 0 && at < s->count && s->node[at].state == ATTACH_NODE_UNJUDGED && n < LIMIT_STACK_DEPTH) {
        path[n++] = at;
        at = s->node[at].frame.parent;
    }
    if (at >= s->count || (at > 0 && s->node[at].state == ATTACH_NODE_UNJUDGED)) { /* a cycle, or too deep */
        state = ATTACH_NODE_BAD;
    } else if (at > 0) {
        bool pc = s->node[at].frame.kind == ATTACH_NODE_PC;
        state = s->node[at].state == ATTACH_NODE_GOOD && pc ? ATTACH_NODE_BAD : s->node[at].state;
        depth = s->node[at].depth + 1u;
    }
    for (uint32_t i = n; i > 0; i--) {
        struct attach_stack_node *node = &s->node[path[i - 1]];
        state = state == ATTACH_NODE_GOOD && depth >= LIMIT_STACK_DEPTH ? ATTACH_NODE_BAD : state;
        node->state = state;
        node->depth = (uint8_t)depth++;
        state = state == ATTACH_NODE_GOOD && node->frame.kind == ATTACH_NODE_PC ? ATTACH_NODE_BAD : state;
    }
}

/* Reads and judges all nodes. MALFORMED values are BAD nodes. NO_MEMORY, IO or OK. O(nodes). */
static enum profd_status attach_stacks_read(struct attach_reading *r, struct arena *a, struct attach_stacks *s,
                                            struct profd_error *e)
{
    struct attach_cursor cursor = {0};
    uint64_t size;
    if (r->image.nodes == 0) {
        return PROFD_OK;
    }
    s->count = r->image.nodes + 1;
    s->node = ARENA_ARRAY(a, s->count, struct attach_stack_node);
    TRY(s->node ? PROFD_OK : no_memory_for_nodes(s->count, e));
    while (attach_table_next(&r->image, &cursor, &size)) {
        uint32_t slots, number;
        if (attach_table_kind(&r->image, &cursor, &slots) != ATTACH_KIND_STACKS) {
            continue;
        }
        TRY(attach_reading_load(r, cursor.at, size, e));
        for (uint32_t i = 0; i < slots; i++) {
            struct attach_frame frame;
            enum attach_there there = attach_node_get(&r->image, &cursor, i, &number, &frame);
            s->node[number].frame = frame;
            s->node[number].state = there == ATTACH_THERE ? ATTACH_NODE_UNJUDGED
                                    : there == ATTACH_BAD ? ATTACH_NODE_BAD
                                                          : ATTACH_NODE_WAITS;
        }
    }
    for (uint32_t i = 1; i < s->count; i++) {
        if (s->node[i].state == ATTACH_NODE_UNJUDGED) {
            node_judge(s, i);
        }
    }
    return PROFD_OK;
}

/* A frame outside the range of its build is outside. */
static struct counts_frame frame_make(const struct attach_builds *b, const struct attach_frame *f)
{
    struct counts_frame made = {.build = attach_builds_of(b, f->module),
                                .address = f->address,
                                .kind = f->kind == ATTACH_NODE_PC ? COUNTS_NODE_PC : COUNTS_NODE_RETURN};
    if (made.build != COUNTS_NOWHERE &&
        (f->address < b->build[made.build].low || f->address >= b->build[made.build].high)) {
        made.build = COUNTS_NOWHERE;
    }
    if (made.build == COUNTS_NOWHERE) {
        made.address = f->incomplete ? COUNTS_FRAME_INCOMPLETE : COUNTS_FRAME_OUTSIDE;
    }
    return made;
}

/* A caller that the unwind information led to, both in known objects. */
static bool is_pair(const struct attach_stacks *s, uint32_t i)
{
    return s->tree[i].parent != COUNTS_NOWHERE && s->frame[i]->has_begin && s->frame[i]->module != ATTACH_MODULE_NONE &&
           s->frame[s->tree[i].parent]->module != ATTACH_MODULE_NONE;
}

/* Recursion counts a pair once for each stack: it is the outermost that counts. */
static bool is_repeated(const struct attach_stacks *s, uint32_t i)
{
    for (uint32_t at = s->tree[i].parent; at != COUNTS_NOWHERE; at = s->tree[at].parent) {
        if (!is_pair(s, at)) {
            continue;
        }
        const struct counts_frame *x = &s->tree[s->tree[i].parent].frame, *y = &s->tree[s->tree[at].parent].frame;
        if (x->address == y->address && x->build == y->build && s->frame[i]->begin == s->frame[at]->begin &&
            s->tree[i].frame.build == s->tree[at].frame.build) {
            return true;
        }
    }
    return false;
}

enum profd_status attach_stacks_list(struct attach_stacks *s, const struct attach_builds *b, uint64_t most,
                                     struct attach_arcs *pairs, struct arena *a, struct profd_error *e)
{
    if (s->count == 0) {
        return PROFD_OK;
    }
    s->tree = ARENA_ARRAY(a, s->count, struct counts_node);
    s->frame = ARENA_ARRAY(a, s->count, const struct attach_frame *);
    TRY(s->tree && s->frame ? PROFD_OK : no_memory_for_nodes(s->count, e));
    for (uint32_t i = 1; i < s->count; i++) {
        /* A tick outside every build is in no histogram, and its stack in no tree. */
        const struct attach_stack_node *node = &s->node[i];
        const uint64_t news = node->news < most ? node->news : most;
        if (news == 0 || (node->frame.kind == ATTACH_NODE_PC && frame_make(b, &node->frame).build == COUNTS_NOWHERE)) {
            continue;
        }
        /* A node is listed behind those above it. */
        uint32_t path[LIMIT_STACK_DEPTH], n = 0;
        for (uint32_t at = i; at > 0 && s->node[at].place == 0 && n < LIMIT_STACK_DEPTH;
             at = s->node[at].frame.parent) {
            path[n++] = at;
        }
        for (; n > 0; n--) {
            struct attach_stack_node *above = &s->node[path[n - 1]];
            const uint32_t parent = above->frame.parent;
            s->tree[s->tree_count] = (struct counts_node){.parent = parent ? s->node[parent].place - 1 : COUNTS_NOWHERE,
                                                          .frame = frame_make(b, &above->frame)};
            s->frame[s->tree_count] = &above->frame;
            above->place = ++s->tree_count;
        }
        s->tree[node->place - 1].ticks = news;
        most -= news;
    }
    if (s->tree_count <= 0) {
        return PROFD_OK;
    }

    bool saturated = false;
    uint64_t *below = ARENA_ARRAY(a, (size_t)s->tree_count + 1, uint64_t); /* ticks at a node and below */
    TRY(below ? PROFD_OK : no_memory_for_nodes(s->tree_count, e));
    for (uint32_t i = s->tree_count; i-- > 0;) {
        sum_add(&below[i], s->tree[i].ticks, &saturated);
        if (s->tree[i].parent != COUNTS_NOWHERE) {
            sum_add(&below[s->tree[i].parent], below[i], &saturated);
        }
    }
    for (uint32_t i = 0; i < s->tree_count; i++) {
        if (is_pair(s, i) && !is_repeated(s, i)) {
            const struct counts_frame *from = &s->tree[s->tree[i].parent].frame, *to = &s->tree[i].frame;
            struct attach_arc arc = {.from_build = from->build,
                                     .to_build = to->build,
                                     .from = from->address,
                                     .to = to->build == COUNTS_NOWHERE ? 0 : s->frame[i]->begin,
                                     .calls = below[i]};
            TRY(attach_arcs_add(pairs, a, &arc, e));
        }
    }
    return PROFD_OK;
}

/* Two snapshots of one process: what lies between them. Both are walked in the order of tables and slots. */

#define PLACES_FIRST 256u

/* A walk through the older one while the newer one is made. */
struct snapshot_walk {
    struct attach_reading *reading;
    struct attach_builds *builds;
    const struct attach_places *before;
    uint32_t table, entry; /* of before: all places up to here are in d->places */
    uint32_t table_capacity, capacity;
    uint32_t news;
    struct attach_difference *d;
};

static enum profd_status places_put(struct snapshot_walk *w, uint32_t page, uint32_t slot, uint64_t count,
                                    struct profd_error *e)
{
    struct attach_places *p = &w->d->places;
    FAIL_IF(p->count == LIMIT_ATTACH_SLOTS, e, PROFD_TOO_LARGE, "shared counts have more than %u slots that count",
            LIMIT_ATTACH_SLOTS);
    uint32_t capacity = w->capacity; /* of both columns */
    FAIL_IF(!ARENA_EXTEND(w->d->arena, p->slots, p->count, capacity) ||
                !ARENA_EXTEND(w->d->arena, p->counts, p->count, w->capacity) ||
                !ARENA_EXTEND(w->d->arena, p->tables, p->table_count, w->table_capacity),
            e, PROFD_NO_MEMORY, "no memory for %u slots of a snapshot", p->count);
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
static enum profd_status walk_to(struct snapshot_walk *w, uint32_t page, uint32_t slot, uint64_t *old,
                                 struct profd_error *e)
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

/* Adds what is new of a slot to the difference. */
static enum profd_status walk_add(struct snapshot_walk *w, const struct attach_count *c, uint64_t n,
                                  struct profd_error *e)
{
    const uint32_t build = attach_builds_of(w->builds, c->self_module);
    if (c->kind != ATTACH_KIND_SAMPLES) {
        struct attach_arc arc = {
            .from_build = attach_builds_of(w->builds, c->from_module), .to_build = build, .calls = n};
        arc.from = arc.from_build == COUNTS_NOWHERE ? 0 : c->from;
        arc.to = build == COUNTS_NOWHERE ? 0 : c->self;
        return attach_arcs_add(&w->d->calls, w->d->arena, &arc, e);
    }
    if (build == COUNTS_NOWHERE) {
        bool saturated = false;
        sum_add(&w->d->outside, n, &saturated);
        return PROFD_OK;
    }
    const struct attach_build *b = &w->builds->build[build];
    if (c->self < b->low || c->self - b->low > UINT32_MAX || c->self >= b->high) { /* not in the range of its build */
        w->d->bad++;
        return PROFD_OK;
    }
    struct attach_ticks *t = &w->d->ticks;
    TRY(ARENA_EXTEND(w->d->arena, t->tick, t->count, t->capacity) ? PROFD_OK : no_memory(t->capacity, e));
    t->tick[t->count++] = (struct attach_tick){build, (uint32_t)(c->self - b->low), n};
    return PROFD_OK;
}

/* One slot. What is too much for one harvest stays as it was: the next one takes it. Each process has at most
 * ATTACH_NODES_MAX nodes of stacks, so that these are never too much. */
static enum profd_status walk_count(struct snapshot_walk *w, const struct attach_count *c, struct profd_error *e)
{
    uint64_t old;
    bool saturated = false;
    struct attach_stack_node *node = c->kind == ATTACH_KIND_STACKS ? &w->d->stacks.node[c->from] : NULL;
    if (node && node->state != ATTACH_NODE_GOOD) {
        w->d->not_yet += node->state == ATTACH_NODE_WAITS;
        w->d->bad += node->state == ATTACH_NODE_BAD;
        return PROFD_OK;
    }
    TRY(walk_to(w, c->table, c->slot, &old, e));
    uint64_t keep = c->count > old ? c->count : old;
    if (node) {
        node->news = keep - old;
        return places_put(w, c->table, c->slot, keep, e);
    }
    if (c->kind == ATTACH_KIND_ARCS) {
        sum_add(&w->d->calls_total, keep, &saturated);
        uint32_t build = attach_builds_of(w->builds, c->self_module);
        if (build != COUNTS_NOWHERE) {
            w->builds->build[build].counted = true;
        }
    }
    if (keep > old && w->news == LIMIT_ATTACH_NEWS) {
        w->d->more = true;
        keep = old;
    } else if (keep > old) {
        w->news++;
        TRY(walk_add(w, c, keep - old, e));
    }
    return keep > 0 ? places_put(w, c->table, c->slot, keep, e) : PROFD_OK;
}

enum profd_status attach_difference_make(struct attach_reading *r, struct attach_builds *builds,
                                         const struct attach_places *before, struct attach_difference *d,
                                         struct profd_error *e)
{
    struct snapshot_walk w = {.reading = r, .builds = builds, .before = before, .d = d};
    struct attach_cursor cursor = {0};
    struct attach_count c;
    uint64_t size, old;
    uint32_t slots;
    w.capacity = before->count + PLACES_FIRST;
    d->places.slots = ARENA_ARRAY(d->arena, w.capacity, uint32_t);
    d->places.counts = ARENA_ARRAY(d->arena, w.capacity, uint64_t);
    TRY(d->places.slots && d->places.counts ? PROFD_OK : no_memory(w.capacity, e));
    TRY(attach_stacks_read(r, d->arena, &d->stacks, e));
    while (attach_table_next(&r->image, &cursor, &size)) {
        enum attach_kind kind = attach_table_kind(&r->image, &cursor, &slots);
        TRY(kind == ATTACH_KIND_SAMPLES  ? attach_reading_refresh(r, cursor.at, size, e)
            : kind != ATTACH_KIND_STACKS ? attach_reading_load(r, cursor.at, size, e)
                                         : PROFD_OK); /* attach_stacks_read has it */
        while (attach_table_count(&r->image, &cursor, &c)) {
            TRY(walk_count(&w, &c, e));
        }
        attach_reading_drop(r, cursor.at, size);
    }
    d->bad += cursor.bad;
    d->not_yet += cursor.not_yet;
    return walk_to(&w, UINT32_MAX, UINT32_MAX, &old, e);
}
