#include <string.h>

#include "proto/sort.h"
#include "render/render_internal.h"

/* format=tree: the tree of stacks in columns, for the dashboard's flame graph and call tree. A node precedes its
 * children, which descend by time. limit cuts the nodes with least time; theirs is added to the self time of the node
 * above them, and to its `cut`. */

struct tree_work {
    const struct render_input *in;
    struct arena *arena;
    struct name_list names;
    struct stacks stacks;
    uint32_t *place;         /* of each node among those that are kept; STACKS_NONE */
    uint32_t *kept;          /* nodes, in their order */
    double *self, *cut;      /* of kept nodes */
    uint32_t *frame, frames; /* of each kept node: its place among the frames */
    uint32_t *listed;        /* frames in order of first use */
    uint32_t count;
    double cut_all;
};

/* The `most` nodes with most time, 0: all. No node has more time than its parent, which stands before it. */
static void choose(struct tree_work *w, uint32_t most)
{
    uint32_t n = w->stacks.count;
    struct sort_item *items = ARENA_ARRAY(w->arena, n, struct sort_item);
    struct sort_item *scratch = ARENA_ARRAY(w->arena, n, struct sort_item);
    for (uint32_t i = 0; i < n; i++) {
        const struct stack_node *node = &w->stacks.nodes[i];
        const double above = node->parent == STACKS_NONE ? node->total : w->stacks.nodes[node->parent].total;
        items[i] = (struct sort_item){~sort_key_double(node->total < above ? node->total : above), i};
        w->place[i] = STACKS_NONE;
    }
    sort_radix(items, scratch, n);
    for (uint32_t i = 0; i < n && (most == 0 || i < most); i++) {
        w->place[items[i].value] = 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t parent = w->stacks.nodes[i].parent;
        bool below = parent != STACKS_NONE && w->place[parent] == STACKS_NONE;
        w->place[i] = w->place[i] == STACKS_NONE || below ? STACKS_NONE : w->count;
        if (w->place[i] != STACKS_NONE) {
            w->kept[w->count++] = i;
        }
    }
}

/* Time of nodes that are not kept goes to the nearest one above that is. */
static void add_times(struct tree_work *w)
{
    uint32_t at;
    for (uint32_t i = 0; i < w->stacks.count; i++) {
        const struct stack_node *node = &w->stacks.nodes[i];
        if (w->place[i] != STACKS_NONE) {
            w->self[w->place[i]] += node->self;
            continue;
        }
        for (at = node->parent; at != STACKS_NONE && w->place[at] == STACKS_NONE;) {
            at = w->stacks.nodes[at].parent;
        }
        w->cut_all += node->self;
        if (at != STACKS_NONE) {
            w->self[w->place[at]] += node->self;
            w->cut[w->place[at]] += node->self;
        }
    }
}

/* Numbers the frames of kept nodes. Positions, cycles, then what was cut. */
static void number_frames(struct tree_work *w)
{
    const uint32_t functions = w->in->report->function_count, all = functions + w->in->report->cycle_count + 1;
    uint32_t *number = ARENA_ARRAY(w->arena, all, uint32_t);
    w->listed = ARENA_ARRAY(w->arena, all, uint32_t);
    w->frame = ARENA_ARRAY(w->arena, w->count, uint32_t);
    for (uint32_t i = 0; i < w->count; i++) {
        const uint32_t frame = w->stacks.nodes[w->kept[i]].frame;
        const uint32_t at = frame == STACKS_CUT    ? all - 1
                            : frame & REPORT_CYCLE ? functions + (frame & ~REPORT_CYCLE)
                                                   : frame;
        if (number[at] == 0) {
            w->listed[w->frames] = frame;
            number[at] = ++w->frames;
        }
        w->frame[i] = number[at] - 1;
    }
}

/* Code of the kernel: it and its modules have names in brackets, "[kernel]", "[ext4]"; and so has the vDSO, which is
 * code of processes. */
static bool is_kernel(const struct report *r, const struct report_function *f)
{
    const char *name = f->build < r->build_count ? r->build_names[f->build] : "";
    return name[0] == '[' && strcmp(name, "[vdso]") != 0;
}

static void add_frame(struct tree_work *w, struct buffer *out, uint32_t frame)
{
    const struct report *r = w->in->report;
    const char *name = stacks_frame_name(&w->names, r, frame, w->arena);
    json_begin(out, NULL);
    json_add_text(out, "name", name);
    if (frame != STACKS_CUT && !(frame & REPORT_CYCLE)) {
        const struct report_function *f = &r->functions[frame];
        if (w->in->show.short_names && strcmp(w->names.text[frame], f->name) != 0) {
            json_add_text(out, "full_name", f->name);
        }
        json_add_text(out, "build_id", json_find_build(r, f->build));
        json_add_address(out, "address", f->address);
        json_add_count(out, "index", f->index);
        if (is_kernel(r, f)) {
            JSON_ADD(out, ",\"kernel\":true");
        }
    }
    JSON_ADD(out, "}");
}

static void add_column(struct buffer *out, const struct tree_work *w, const char *key, const double *values)
{
    json_list(out, key);
    for (uint32_t i = 0; i < w->count && !out->failed; i++) {
        json_next(out);
        buffer_add_shortest(out, values[i]);
    }
    JSON_ADD(out, "]");
}

static void add_nodes(struct tree_work *w, struct buffer *out)
{
    json_list(out, "parent");
    for (uint32_t i = 0; i < w->count && !out->failed; i++) {
        const uint32_t parent = w->stacks.nodes[w->kept[i]].parent;
        json_next(out);
        if (parent == STACKS_NONE) {
            JSON_ADD(out, "-1");
        } else {
            buffer_add_u64(out, w->place[parent], 0);
        }
    }
    JSON_ADD(out, "]");
    json_list(out, "frame");
    for (uint32_t i = 0; i < w->count && !out->failed; i++) {
        json_next(out);
        buffer_add_u64(out, w->frame[i], 0);
    }
    JSON_ADD(out, "]");
    json_list(out, "inferred");
    for (uint32_t i = 0; i < w->count && !out->failed; i++) {
        json_next(out);
        buffer_add_char(out, w->stacks.nodes[w->kept[i]].inferred ? '1' : '0');
    }
    JSON_ADD(out, "]");
    add_column(out, w, "self_seconds", w->self);
    add_column(out, w, "cut", w->cut);
}

static void add_all(struct tree_work *w, struct buffer *out)
{
    const struct report *r = w->in->report;
    json_begin(out, NULL);
    json_add_text(out, "schema", "profd-tree-1");
    json_add_text(out, "build_id", w->in->build_id);
    json_add_flag(out, "synthetic", w->stacks.synthetic);
    json_add_text(out, "dimension", r->dimension);
    json_add_text(out, "unit", r->in_seconds ? "seconds" : "units");
    json_add_number(out, "seconds", r->total);
    json_add_count(out, "ticks", r->ticks);
    json_add_stacks(out, r);
    json_add_number(out, "total_seconds", w->stacks.total);
    json_add_count(out, "nodes", w->count);
    json_begin(out, "left_out");
    json_add_count(out, "nodes", w->stacks.count - w->count);
    json_add_number(out, "seconds", w->cut_all);
    JSON_ADD(out, "}");
    json_list(out, "frames");
    for (uint32_t i = 0; i < w->frames && !out->failed; i++) {
        add_frame(w, out, w->listed[i]);
    }
    JSON_ADD(out, "]");
    add_nodes(w, out);
    JSON_ADD(out, "}\n");
}

enum profd_status tree_render(const struct render_input *in, struct arena *a, struct buffer *out, struct profd_error *e)
{
    (void)e;
    struct tree_work w = {.in = in, .arena = a};
    name_list_make(in->report, in->show.short_names, a, &w.names);
    stacks_make(in->report, a, &w.stacks);
    w.place = ARENA_ARRAY(a, w.stacks.count, uint32_t);
    w.kept = ARENA_ARRAY(a, w.stacks.count, uint32_t);
    w.self = ARENA_ARRAY(a, w.stacks.count, double);
    w.cut = ARENA_ARRAY(a, w.stacks.count, double);
    choose(&w, in->show.limit);
    add_times(&w);
    number_frames(&w);
    add_all(&w, out);
    return PROFD_OK;
}
