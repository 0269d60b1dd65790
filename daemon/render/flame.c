/* A flame graph of many reports, in the form of Grafana and Pyroscope: one level of depth after the other. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/row_table.h"
#include "proto/sort.h"
#include "render/render_internal.h"

struct flame_node {
    uint32_t parent, name, depth;
    bool on_path; /* it lies above or below the call site, or there is none */
    double self[FLAME_SIDES], total[FLAME_SIDES];
};

struct flame {
    struct arena *arena;
    const char *const *site;
    size_t site_count;
    struct table by_text, by_place; /* of texts; of nodes by parent and name */
    const char **texts;
    struct flame_node *nodes; /* parents stand before their children */
    uint32_t text_count, text_capacity, node_count, node_capacity;
};

static uint64_t hash_text(const void *context, uint32_t i)
{
    const struct flame *f = context;
    return table_hash_text(f->texts[i], '\0', (uintptr_t)f);
}

static uint64_t hash_place(const struct flame *f, uint32_t parent, uint32_t name)
{
    return table_mix((uint64_t)parent << 32 | name, (uintptr_t)f);
}

static uint64_t hash_node(const void *context, uint32_t i)
{
    const struct flame *f = context;
    return hash_place(f, f->nodes[i].parent, f->nodes[i].name);
}

/* The number of a text, which is copied if it is new. */
static uint32_t find_text(struct flame *f, const char *text)
{
    table_reserve(&f->by_text, f->arena, hash_text, f);
    uint32_t at = table_slot(&f->by_text, table_hash_text(text, '\0', (uintptr_t)f));
    while (f->by_text.slots[at] != 0 && strcmp(f->texts[f->by_text.slots[at] - 1], text) != 0) {
        at = (at + 1) & f->by_text.mask;
    }
    if (f->by_text.slots[at] == 0) {
        f->texts = arena_extend(f->arena, f->texts, f->text_count, &f->text_capacity, sizeof *f->texts);
        f->texts[f->text_count++] = arena_copy(f->arena, text, strlen(text));
        f->by_text.slots[at] = ++f->by_text.used;
    }
    return f->by_text.slots[at] - 1;
}

/* The node of that name below a parent. */
static uint32_t find_node(struct flame *f, uint32_t parent, uint32_t name)
{
    table_reserve(&f->by_place, f->arena, hash_node, f);
    uint32_t at = table_slot(&f->by_place, hash_place(f, parent, name));
    for (; f->by_place.slots[at] != 0; at = (at + 1) & f->by_place.mask) {
        const struct flame_node *n = &f->nodes[f->by_place.slots[at] - 1];
        if (n->parent == parent && n->name == name) {
            return f->by_place.slots[at] - 1;
        }
    }
    f->nodes = arena_extend(f->arena, f->nodes, f->node_count, &f->node_capacity, sizeof *f->nodes);
    const struct flame_node *above = parent == STACKS_NONE ? NULL : &f->nodes[parent];
    const uint32_t depth = above ? above->depth + 1 : 0;
    const bool on_path =
        !above || (above->on_path && (depth > f->site_count || strcmp(f->texts[name], f->site[depth - 1]) == 0));
    f->nodes[f->node_count] = (struct flame_node){.parent = parent, .name = name, .depth = depth, .on_path = on_path};
    f->by_place.slots[at] = ++f->by_place.used;
    return f->node_count++;
}

struct flame *flame_new(struct arena *a, const char *const *site, size_t site_count)
{
    struct flame *f = ARENA_NEW(a, struct flame);
    *f = (struct flame){.arena = a, .site = site, .site_count = site_count};
    find_node(f, STACKS_NONE, find_text(f, "total"));
    return f;
}

void flame_add(struct flame *f, const struct report *report, unsigned side, struct arena *scratch)
{
    const struct report *r = report->shown;
    const double scale = r->in_seconds ? 1e9 : 1;
    struct name_list names;
    struct stack_tree s;
    name_list_make(r, false, scratch, &names);
    stacks_make(r, scratch, &s);
    const uint32_t all = r->function_count + r->cycle_count + 1, top = s.synthetic && s.count > 0 ? 1 : 0;
    const uint32_t base = top ? find_node(f, 0, find_text(f, FLAME_DERIVED)) : 0;
    uint32_t *place = ARENA_ARRAY(scratch, (size_t)s.count + 1, uint32_t);
    uint32_t *text = ARENA_ARRAY(scratch, all, uint32_t); /* 1 + the number of each frame's text */
    for (uint32_t i = 0; i < s.count; i++) {
        const struct stack_node *n = &s.nodes[i];
        const uint32_t frame = n->frame == STACKS_CUT    ? all - 1
                               : n->frame & REPORT_CYCLE ? r->function_count + (n->frame & ~REPORT_CYCLE)
                                                         : n->frame;
        if (text[frame] == 0) {
            text[frame] = 1 + find_text(f, stacks_frame_name(&names, r, n->frame, scratch));
        }
        place[i] = find_node(f, n->parent == STACKS_NONE ? base : place[n->parent], text[frame] - 1);
        struct flame_node *node = &f->nodes[place[i]];
        if (node->on_path && node->depth >= f->site_count) {
            node->self[side] += n->self * scale;
        }
    }
}

/* A node that is shown, in whole numbers. */
struct shown_node {
    uint32_t parent, name; /* the parent's place among those that are shown */
    int64_t self[FLAME_SIDES], total[FLAME_SIDES];
    int64_t at[FLAME_SIDES]; /* where it begins */
};

#define WHOLE_MOST 0x1.fffffp61 /* two such sums are an int64_t */

/* Rounds self times so that they add up to the rounded whole, WHOLE_MOST at most, and adds up totals. */
static void add_totals(struct flame *f, struct shown_node *whole)
{
    for (unsigned side = 0; side < FLAME_SIDES; side++) {
        double exact = 0, said = 0;
        for (uint32_t i = 0; i < f->node_count; i++) {
            exact += f->nodes[i].self[side];
            const double count = fmax(0, floor(fmin(exact, WHOLE_MOST) - said + 0.5));
            said += count;
            whole[i].self[side] = whole[i].total[side] = (int64_t)count;
        }
        for (uint32_t i = f->node_count; i-- > 1;) {
            whole[f->nodes[i].parent].total[side] += whole[i].total[side];
        }
    }
}

static double both(const struct shown_node *n)
{
    return (double)n->total[0] + (double)n->total[1];
}

/* Of nodes in the order of their time, how many are shown: as many as are at most `most` together with the nodes
 * "other" that they need, but the root with its "other" in any case. A parent stands before its children. */
static uint32_t count_kept(const struct flame *f, const struct shown_node *whole, const struct sort_item *order,
                           uint32_t most)
{
    uint32_t *hidden = ARENA_ARRAY(f->arena, f->node_count, uint32_t), shown = 0, kept = 0; /* children with time */
    for (uint32_t i = 1; i < f->node_count; i++) {
        hidden[f->nodes[i].parent] += both(&whole[i]) > 0;
    }
    for (uint32_t k = 0; k < f->node_count && both(&whole[order[k].value]) > 0; k++) {
        const uint32_t node = (uint32_t)order[k].value;
        shown += hidden[node] > 0 ? 2 : 1;
        shown -= node > 0 && --hidden[f->nodes[node].parent] == 0;
        kept = shown <= most || k == 0 ? k + 1 : kept;
    }
    return kept;
}

/* The nodes with most time, and below each the sum of its other children as a node "other". No node has more time than
 * its parent, which stands before it. */
static struct shown_node *choose(struct flame *f, uint32_t most, uint32_t *count)
{
    const uint32_t n = f->node_count, other = find_text(f, "other");
    struct shown_node *whole = ARENA_ARRAY(f->arena, n, struct shown_node);
    struct shown_node *shown = ARENA_ARRAY(f->arena, n, struct shown_node);
    struct sort_item *items = ARENA_ARRAY(f->arena, n, struct sort_item);
    struct sort_item *scratch = ARENA_ARRAY(f->arena, n, struct sort_item);
    uint32_t *place = ARENA_ARRAY(f->arena, n, uint32_t), *rest = ARENA_ARRAY(f->arena, n, uint32_t), kept = 0;
    add_totals(f, whole);
    for (uint32_t i = 0; i < n; i++) {
        items[i] = (struct sort_item){~sort_key_double(both(&whole[i])), i};
        place[i] = STACKS_NONE;
    }
    sort_radix(items, scratch, n);
    for (uint32_t i = count_kept(f, whole, items, most); i-- > 0;) {
        place[items[i].value] = 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t parent = f->nodes[i].parent, above = i == 0 ? STACKS_NONE : place[parent];
        struct shown_node node = whole[i];
        node.parent = above;
        node.name = f->nodes[i].name;
        if (place[i] != STACKS_NONE) {
            place[i] = kept;
            shown[kept++] = node;
        } else if (above != STACKS_NONE && both(&node) > 0) {
            if (rest[parent] == 0) {
                shown[kept] = (struct shown_node){.parent = above, .name = other};
                rest[parent] = ++kept;
            }
            for (unsigned side = 0; side < FLAME_SIDES; side++) {
                shown[rest[parent] - 1].total[side] += node.total[side];
                shown[rest[parent] - 1].self[side] += node.total[side];
            }
        }
    }
    *count = kept;
    return shown;
}

struct name_order {
    const struct shown_node *nodes;
    const char *const *texts;
};

static int compare_shown(const void *left, const void *right, void *context)
{
    const struct name_order *o = context;
    const struct shown_node *a = &o->nodes[*(const uint32_t *)left], *b = &o->nodes[*(const uint32_t *)right];
    return a->parent != b->parent ? (a->parent < b->parent ? -1 : 1) : strcmp(o->texts[a->name], o->texts[b->name]);
}

bool flame_draw(struct flame *f, uint32_t most, unsigned sides, struct flame_picture *out)
{
    uint32_t n;
    struct shown_node *nodes = choose(f, most, &n);
    struct name_order by_name = {nodes, f->texts};
    const size_t width = 3 * sides + 1;
    *out = (struct flame_picture){.levels = NULL};
    if (n == 0) {
        return false;
    }
    /* Children of a node, by name: order[first[i]] … order[first[i + 1] − 1]; those of the root come behind it. */
    uint32_t *order = ARENA_ARRAY(f->arena, n, uint32_t), *first = ARENA_ARRAY(f->arena, (size_t)n + 1, uint32_t);
    for (uint32_t i = 0; i < n; i++) {
        order[i] = i;
        first[nodes[i].parent == STACKS_NONE ? n : nodes[i].parent]++;
    }
    qsort_r(order + 1, n - 1, sizeof *order, compare_shown, &by_name);
    for (uint32_t i = 0, sum = 1; i <= n; i++) {
        const uint32_t here = first[i];
        first[i] = sum;
        sum += i < n ? here : 0;
    }

    out->names = ARENA_ARRAY(f->arena, n, const char *);
    out->levels = ARENA_ARRAY(f->arena, n, struct flame_level);
    uint32_t *level = ARENA_ARRAY(f->arena, n, uint32_t), *next = ARENA_ARRAY(f->arena, n, uint32_t), count = 1;
    uint32_t *number = ARENA_ARRAY(f->arena, f->text_count, uint32_t);
    level[0] = 0;
    while (count > 0) {
        int64_t *values = ARENA_ARRAY(f->arena, count * width, int64_t), end[FLAME_SIDES] = {0, 0};
        out->levels[out->level_count++] = (struct flame_level){values, count * width};
        uint32_t children = 0;
        for (uint32_t i = 0; i < count; i++) {
            struct shown_node *node = &nodes[level[i]];
            int64_t at[FLAME_SIDES], self = 0;
            for (unsigned side = 0; side < sides; side++) {
                *values++ = node->at[side] - end[side];
                *values++ = node->total[side];
                *values++ = node->self[side];
                end[side] = node->at[side] + node->total[side];
                at[side] = node->at[side] + node->self[side];
                self += node->self[side];
            }
            if (number[node->name] == 0) {
                out->names[out->name_count++] = f->texts[node->name];
                number[node->name] = out->name_count;
            }
            *values++ = number[node->name] - 1;
            out->max_self = self > out->max_self ? self : out->max_self;
            for (uint32_t k = first[level[i]]; k < first[level[i] + 1]; k++) {
                for (unsigned side = 0; side < sides; side++) {
                    nodes[order[k]].at[side] = at[side];
                    at[side] += nodes[order[k]].total[side];
                }
                next[children++] = order[k];
            }
        }
        uint32_t *empty = level;
        level = next;
        next = empty;
        count = children;
    }
    for (unsigned side = 0; side < sides; side++) {
        out->ticks[side] = nodes[0].total[side];
        out->total += nodes[0].total[side];
    }
    return true;
}

/* "startTime", "samples" and so on of a course over time. */
static void add_timeline(struct buffer *out, const char *key, const struct render_flamebearer *in, const double *values)
{
    json_next(out);
    render_json_string(out, key);
    JSON_ADD(out, ":{");
    json_add_count(out, "startTime", (uint64_t)in->start);
    json_list(out, "samples");
    for (size_t i = 0; i < in->step_count && !out->failed; i++) {
        json_next(out);
        buffer_add_shortest(out, values ? values[i] : 0);
    }
    JSON_ADD(out, "]");
    json_add_count(out, "durationDelta", (uint64_t)in->step);
    JSON_ADD(out, ",\"watermarks\":null}");
}

void render_flamebearer(const struct render_flamebearer *in, struct buffer *out)
{
    const struct flame_picture *p = in->picture;
    json_begin(out, NULL);
    json_add_count(out, "version", 1);
    json_begin(out, "flamebearer");
    json_list(out, "names");
    for (uint32_t i = 0; i < p->name_count && !out->failed; i++) {
        json_add_item(out, p->names[i]);
    }
    JSON_ADD(out, "]");
    json_list(out, "levels");
    for (uint32_t i = 0; i < p->level_count && !out->failed; i++) {
        json_next(out);
        JSON_ADD(out, "[");
        for (size_t k = 0; k < p->levels[i].count; k++) {
            json_next(out);
            buffer_add_format(out, "%lld", (long long)p->levels[i].values[k]);
        }
        JSON_ADD(out, "]");
    }
    JSON_ADD(out, "]");
    buffer_add_format(out, ",\"numTicks\":%lld,\"maxSelf\":%lld}", (long long)p->total, (long long)p->max_self);
    json_begin(out, "metadata");
    json_add_text(out, "format", in->sides == 1 ? "single" : "double");
    json_add_text(out, "spyName", "");
    json_add_count(out, "sampleRate", in->is_time ? 1000000000 : 1);
    json_add_text(out, "units", in->is_time ? "samples" : "objects");
    json_add_text(out, "name", in->name);
    JSON_ADD(out, "}");
    if (in->sides == 1) {
        add_timeline(out, "timeline", in, in->samples);
        if (in->group_count == 0) {
            JSON_ADD(out, ",\"groups\":null,\"heatmap\":null}\n");
            return;
        }
        json_begin(out, "groups");
        for (size_t i = 0; i < in->group_count; i++) {
            add_timeline(out, in->groups[i], in, in->group_samples[i]);
        }
        JSON_ADD(out, "},\"heatmap\":null}\n");
        return;
    }
    buffer_add_format(out,
                      ",\"timeline\":null,\"groups\":null,\"heatmap\":null,\"leftTicks\":%lld,\"rightTicks\":%lld}\n",
                      (long long)p->ticks[0], (long long)p->ticks[1]);
}
