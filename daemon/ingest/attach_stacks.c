/* The stacks of a process: its tree of nodes becomes a tree of counts, and sampled arcs. */
#include <stdlib.h>
#include <string.h>

#include "core/sum.h"
#include "ingest/attach_internal.h"

static enum profd_status no_memory(uint32_t nodes, struct profd_error *e)
{
    return profd_error_set(e, PROFD_NO_MEMORY, "no memory for %u nodes of stacks", nodes);
}

static enum profd_status chunk_read(struct attach_reading *r, const struct attach_cursor *cursor, uint64_t size,
                                    struct attach_stacks *s, struct profd_error *e)
{
    uint32_t slots, number;
    if (attach_table_kind(&r->image, cursor, &slots) != ATTACH_KIND_STACKS) {
        return PROFD_OK;
    }
    TRY(attach_reading_load(r, cursor->at, size, e));
    for (uint32_t i = 0; i < slots; i++) {
        struct attach_frame frame;
        enum attach_there there = attach_node_get(&r->image, cursor, i, &number, &frame);
        s->node[number].frame = frame;
        s->node[number].state = there == ATTACH_THERE ? ATTACH_NODE_UNJUDGED
                                : there == ATTACH_BAD ? ATTACH_NODE_BAD
                                                      : ATTACH_NODE_WAITS;
    }
    return PROFD_OK;
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

enum profd_status attach_stacks_read(struct attach_reading *r, struct attach_stacks *s, struct profd_error *e)
{
    struct attach_cursor cursor = {0};
    uint64_t size;
    enum profd_status status = PROFD_OK;
    if (r->image.nodes == 0) {
        *s = (struct attach_stacks){0};
        return PROFD_OK;
    }
    struct attach_stacks read = {.count = r->image.nodes + 1};
    read.node = calloc(read.count, sizeof *read.node);
    if (!read.node) {
        return no_memory(read.count, e);
    }
    while (status == PROFD_OK && attach_table_next(&r->image, &cursor, &size)) {
        status = chunk_read(r, &cursor, size, &read, e);
    }
    for (uint32_t i = 1; status == PROFD_OK && i < read.count; i++) {
        if (read.node[i].state == ATTACH_NODE_UNJUDGED) {
            node_judge(&read, i);
        }
    }
    if (status == PROFD_OK) {
        *s = read;
    } else {
        attach_stacks_done(&read);
    }
    return status;
}

void attach_stacks_done(struct attach_stacks *s)
{
    free(s->node);
    free(s->tree);
    free(s->frame);
    *s = (struct attach_stacks){0};
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

/* Lists a node behind those above it. */
static void node_list(struct attach_stacks *s, const struct attach_builds *b, uint32_t number)
{
    uint32_t path[LIMIT_STACK_DEPTH], n = 0;
    for (uint32_t at = number; at > 0 && s->node[at].place == 0 && n < LIMIT_STACK_DEPTH;
         at = s->node[at].frame.parent) {
        path[n++] = at;
    }
    for (uint32_t i = n; i > 0; i--) {
        struct attach_stack_node *node = &s->node[path[i - 1]];
        uint32_t parent = node->frame.parent;
        s->tree[s->tree_count] = (struct counts_node){.parent = parent ? s->node[parent].place - 1 : COUNTS_NOWHERE,
                                                      .frame = frame_make(b, &node->frame)};
        s->frame[s->tree_count] = &node->frame;
        node->place = ++s->tree_count;
    }
}

/* A tick outside every build is in no histogram, and its stack in no tree. `most`: the ticks of the histograms. */
static void nodes_list(struct attach_stacks *s, const struct attach_builds *b, uint64_t most)
{
    for (uint32_t i = 1; i < s->count; i++) {
        struct attach_stack_node *node = &s->node[i];
        uint64_t news = node->news < most ? node->news : most;
        if (news == 0 || (node->frame.kind == ATTACH_NODE_PC && frame_make(b, &node->frame).build == COUNTS_NOWHERE)) {
            continue;
        }
        node_list(s, b, i);
        s->tree[node->place - 1].ticks = news;
        most -= news;
    }
}

static bool same_pair(const struct attach_stacks *s, uint32_t a, uint32_t b)
{
    const struct counts_frame *x = &s->tree[s->tree[a].parent].frame, *y = &s->tree[s->tree[b].parent].frame;
    return x->address == y->address && x->build == y->build && s->frame[a]->begin == s->frame[b]->begin &&
           s->tree[a].frame.build == s->tree[b].frame.build;
}

/* A caller that the unwind information led to, both in known objects. */
static bool is_pair(const struct attach_stacks *s, uint32_t i)
{
    return s->tree[i].parent != COUNTS_NOWHERE && s->frame[i]->has_begin && s->frame[i]->module != ATTACH_MODULE_NONE &&
           s->frame[s->tree[i].parent]->module != ATTACH_MODULE_NONE;
}

/* Recursion counts a pair once a stack: it is the outermost that counts. */
static bool is_repeated(const struct attach_stacks *s, uint32_t i)
{
    for (uint32_t at = s->tree[i].parent; at != COUNTS_NOWHERE; at = s->tree[at].parent) {
        if (is_pair(s, at) && same_pair(s, i, at)) {
            return true;
        }
    }
    return false;
}

enum profd_status attach_stacks_list(struct attach_stacks *s, const struct attach_builds *b, uint64_t most,
                                     struct attach_arcs *pairs, struct profd_error *e)
{
    if (s->count == 0) {
        return PROFD_OK;
    }
    s->tree = calloc(s->count, sizeof *s->tree);
    s->frame = calloc(s->count, sizeof *s->frame);
    if (!s->tree || !s->frame) {
        return no_memory(s->count, e);
    }
    nodes_list(s, b, most);
    if (s->tree_count <= 0) {
        return PROFD_OK;
    }
    enum profd_status status = PROFD_OK;
    bool saturated = false;
    uint64_t *below = calloc((size_t)s->tree_count + 1, sizeof *below); /* ticks at a node and below */
    if (!below) {
        return no_memory(s->tree_count, e);
    }
    for (uint32_t i = s->tree_count; i-- > 0;) {
        sum_add(&below[i], s->tree[i].ticks, &saturated);
        if (s->tree[i].parent != COUNTS_NOWHERE) {
            sum_add(&below[s->tree[i].parent], below[i], &saturated);
        }
    }
    for (uint32_t i = 0; i < s->tree_count && status == PROFD_OK; i++) {
        if (is_pair(s, i) && !is_repeated(s, i)) {
            const struct counts_frame *from = &s->tree[s->tree[i].parent].frame, *to = &s->tree[i].frame;
            struct attach_arc arc = {.from_build = from->build,
                                     .to_build = to->build,
                                     .from = from->address,
                                     .to = to->build == COUNTS_NOWHERE ? 0 : s->frame[i]->begin,
                                     .calls = below[i]};
            status = attach_arcs_add(pairs, &arc, e);
        }
    }
    free(below);
    return status;
}
