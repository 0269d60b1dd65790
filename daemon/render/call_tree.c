#include <inttypes.h>
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
    struct stack_tree stacks;
    uint32_t *place;    /* of each node among those that are kept; STACKS_NONE */
    uint32_t *kept;     /* nodes, in their order */
    double *self, *cut; /* of kept nodes */
    uint32_t count;
    double cut_all;
};

static void add_frame(struct tree_work *w, struct buffer *out, uint32_t frame)
{
    const struct report *r = w->in->report;
    const char *name = stacks_frame_name(&w->names, r, frame, w->arena);
    json_begin(out, NULL);
    json_add_text(out, "name", name);
    if (frame != STACKS_CUT && !(frame & REPORT_CYCLE)) {
        const struct report_function *f = &r->functions[frame];
        const char *build = f->build < r->build_count ? r->build_names[f->build] : "";
        if (w->in->show.short_names && strcmp(w->names.text[frame], f->name) != 0) {
            json_add_text(out, "full_name", f->name);
        }
        json_add_text(out, "build_id", json_find_build(r, f->build));
        json_add_address(out, "address", f->address);
        json_add_count(out, "index", f->index);
        /* The kernel and its modules have names in brackets, "[kernel]", "[ext4]". So has the vDSO, which is code of
         * processes. */
        if (build[0] == '[' && strcmp(build, "[vdso]") != 0) {
            JSON_ADD(out, ",\"kernel\":true");
        }
    }
    JSON_ADD(out, "}");
}

#define UNDIVIDED_CALLERS 5u /* named callers of a cycle */

/* The cycles that do not divide their time among their callers, and where they stand instead. */
static void add_undivided(const struct tree_work *w, struct buffer *out)
{
    const struct report *r = w->in->report;
    const struct stacks_flow *flow = w->stacks.flow;
    json_list(out, "undivided");
    for (uint32_t i = 0; i < r->cycle_count && !out->failed; i++) {
        const struct report_cycle *c = &r->cycles[i];
        const uint32_t entity = r->function_count + i, below = flow->dominator[entity], n = c->caller_count;
        if (!flow->undivided[entity] || !(flow->total[entity] > 0)) {
            continue;
        }
        json_begin(out, NULL);
        json_add_count(out, "cycle", c->number);
        json_add_number(out, "total_seconds", flow->total[entity]);
        json_list(out, "callers");
        for (uint32_t k = 0; k < n && k < UNDIVIDED_CALLERS; k++) {
            json_add_item(out, w->names.text[c->callers[k].other]);
        }
        JSON_ADD(out, "]");
        json_add_count(out, "callers_not_named", n > UNDIVIDED_CALLERS ? n - UNDIVIDED_CALLERS : 0);
        json_add_text(out, "below",
                      below == STACKS_ROOT ? NULL
                      : below < r->function_count
                          ? w->names.text[below]
                          : arena_format(w->arena, "cycle %" PRIu32, r->cycles[below - r->function_count].number));
        JSON_ADD(out, "}");
    }
    JSON_ADD(out, "]");
    json_add_number(out, "not_followed", w->stacks.cut);
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

/* Chooses the `most` nodes with most time, 0: all. Time of the others goes to the nearest node above them that is kept.
 * No node has more time than its parent, which stands before it. */
static void choose(struct tree_work *w, uint32_t most)
{
    const uint32_t n = w->stacks.count;
    const struct stack_node *nodes = w->stacks.nodes;
    struct sort_item *items = ARENA_ARRAY(w->arena, n, struct sort_item);
    struct sort_item *scratch = ARENA_ARRAY(w->arena, n, struct sort_item);
    for (uint32_t i = 0; i < n; i++) {
        const double above = nodes[i].parent == STACKS_NONE ? nodes[i].total : nodes[nodes[i].parent].total;
        items[i] = (struct sort_item){~sort_key_double(nodes[i].total < above ? nodes[i].total : above), i};
        w->place[i] = STACKS_NONE;
    }
    sort_radix(items, scratch, n);
    for (uint32_t i = 0; i < n && (most == 0 || i < most); i++) {
        w->place[items[i].value] = 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = nodes[i].parent;
        if (w->place[i] != STACKS_NONE && (at == STACKS_NONE || w->place[at] != STACKS_NONE)) {
            w->place[i] = w->count;
            w->kept[w->count] = i;
            w->self[w->count++] = nodes[i].self;
            continue;
        }
        w->place[i] = STACKS_NONE;
        w->cut_all += nodes[i].self;
        while (at != STACKS_NONE && w->place[at] == STACKS_NONE) {
            at = nodes[at].parent;
        }
        if (at != STACKS_NONE) {
            w->self[w->place[at]] += nodes[i].self;
            w->cut[w->place[at]] += nodes[i].self;
        }
    }
}

enum profd_status tree_render(const struct render_input *in, struct arena *a, struct buffer *out, struct profd_error *e)
{
    (void)e;
    const struct report *r = in->report;
    struct tree_work w = {.in = in, .arena = a};
    name_list_make(r, in->show.short_names, a, &w.names);
    stacks_make(r, a, &w.stacks);
    w.place = ARENA_ARRAY(a, w.stacks.count, uint32_t);
    w.kept = ARENA_ARRAY(a, w.stacks.count, uint32_t);
    w.self = ARENA_ARRAY(a, w.stacks.count, double);
    w.cut = ARENA_ARRAY(a, w.stacks.count, double);
    choose(&w, in->show.limit);
    json_begin(out, NULL);
    json_add_text(out, "schema", "profd-tree-1");
    json_add_text(out, "build_id", in->build_id);
    json_add_flag(out, "synthetic", w.stacks.synthetic);
    json_add_text(out, "dimension", r->dimension);
    json_add_text(out, "unit", r->in_seconds ? "seconds" : "units");
    json_add_number(out, "seconds", r->total);
    json_add_count(out, "ticks", r->ticks);
    json_add_stacks(out, r);
    json_add_number(out, "total_seconds", w.stacks.total);
    json_add_count(out, "nodes", w.count);
    json_begin(out, "left_out");
    json_add_count(out, "nodes", w.stacks.count - w.count);
    json_add_number(out, "seconds", w.cut_all);
    JSON_ADD(out, "}");
    if (w.stacks.synthetic) {
        add_undivided(&w, out);
    }
    json_list(out, "builds");
    for (uint32_t i = 0; i < r->build_count && !out->failed; i++) {
        json_begin(out, NULL);
        json_add_text(out, "build_id", r->builds[i]);
        json_add_text(out, "name", r->build_names[i] ? r->build_names[i] : "");
        JSON_ADD(out, "}");
    }
    JSON_ADD(out, "]");

    /* Frames are listed in order of first use. number: by position, then cycle, then that of what was cut; 0: none. */
    const uint32_t all = r->function_count + r->cycle_count + 1;
    uint32_t *number = ARENA_ARRAY(a, all, uint32_t), *frame_of = ARENA_ARRAY(a, w.count, uint32_t), frames = 0;
    json_list(out, "frames");
    for (uint32_t i = 0; i < w.count && !out->failed; i++) {
        const uint32_t frame = w.stacks.nodes[w.kept[i]].frame;
        const uint32_t at = frame == STACKS_CUT    ? all - 1
                            : frame & REPORT_CYCLE ? r->function_count + (frame & ~REPORT_CYCLE)
                                                   : frame;
        if (number[at] == 0) {
            number[at] = ++frames;
            add_frame(&w, out, frame);
        }
        frame_of[i] = number[at] - 1;
    }
    JSON_ADD(out, "]");
    json_list(out, "parent");
    for (uint32_t i = 0; i < w.count && !out->failed; i++) {
        const uint32_t parent = w.stacks.nodes[w.kept[i]].parent;
        json_next(out);
        if (parent == STACKS_NONE) {
            JSON_ADD(out, "-1");
        } else {
            buffer_add_u64(out, w.place[parent], 0);
        }
    }
    JSON_ADD(out, "]");
    json_list(out, "frame");
    for (uint32_t i = 0; i < w.count && !out->failed; i++) {
        json_next(out);
        buffer_add_u64(out, frame_of[i], 0);
    }
    JSON_ADD(out, "]");
    json_list(out, "inferred");
    for (uint32_t i = 0; i < w.count && !out->failed; i++) {
        json_next(out);
        buffer_add_char(out, w.stacks.nodes[w.kept[i]].inferred ? '1' : '0');
    }
    JSON_ADD(out, "]");
    add_column(out, &w, "self_seconds", w.self);
    add_column(out, &w, "cut", w.cut);
    JSON_ADD(out, "}\n");
    return PROFD_OK;
}
