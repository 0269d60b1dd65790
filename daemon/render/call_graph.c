#include <inttypes.h>
#include <math.h>

#include "render/render_internal.h"

/* format=graph: the call graph of the functions with most time, as the dashboard draws it. */

static void add_statistics(struct buffer *out, uint64_t calls, double total)
{
    json_add_count(out, "calls", calls);
    json_add_number(out, "total_seconds", total);
}

/* The 95 % interval of the time that is shown, if it is measured. */
static void add_range(struct buffer *out, const struct report *r, const struct report_measured *m)
{
    if (!r->time_measured || !m) {
        return;
    }
    json_add_number(out, "low", m->low);
    json_add_number(out, "high", m->high);
    json_add_count(out, "stacks", m->samples);
}

static void add_node(struct buffer *out, const struct report *r, const struct name_list *names, uint32_t position)
{
    const struct report_function *f = &r->functions[position];
    json_next(out);
    buffer_add_format(out, "{\"id\":\"%" PRIu32 "\"", position);
    json_add_text(out, "title", names->text[position]);
    add_statistics(out, f->calls, f->self + f->children);
    json_add_number(out, "self_seconds", f->self);
    json_add_number(out, "percent", f->percent);
    json_add_count(out, "self_calls", f->self_calls);
    json_add_count(out, "cycle", f->cycle);
    json_add_address(out, "address", f->address);
    json_add_text(out, "name", f->name);
    json_add_text(out, "build_id", json_find_build(r, f->build));
    add_range(out, r, f->measured);
    JSON_ADD(out, "}");
}

#define CYCLE_ROWS 8u /* callers, and callees, of a cycle that are listed */

/* The heaviest callers or callees of a cycle, what the others have, and those listed that are no nodes yet into
 * context. */
static void add_cycle_rows(struct buffer *out, const char *key, const struct report_arc *rows, uint32_t count,
                           bool last_is_most, bool *context)
{
    uint64_t calls = 0;
    double seconds = 0;
    json_list(out, key);
    for (uint32_t i = 0; i < count && !out->failed; i++) {
        const struct report_arc *row = &rows[last_is_most ? count - 1 - i : i];
        if (i >= CYCLE_ROWS) {
            calls += row->calls;
            seconds += row->self + row->children;
            continue;
        }
        context[row->other] = true;
        json_next(out);
        buffer_add_format(out, "{\"id\":\"%" PRIu32 "\"", row->other);
        add_statistics(out, row->calls, row->self + row->children);
        JSON_ADD(out, "}");
    }
    buffer_add_format(out, "],\"more_%s\":{\"functions\":%" PRIu32, key, count > CYCLE_ROWS ? count - CYCLE_ROWS : 0);
    add_statistics(out, calls, seconds);
    JSON_ADD(out, "}");
}

/* The cycles of the nodes, and those that have more time than a node, each as a whole: its figures are the report's,
 * whatever the limit on nodes. */
static void add_cycles(struct buffer *out, const struct report *r, const bool *shown, bool *context)
{
    double least = INFINITY; /* total time of a node */
    for (uint32_t i = 0; i < r->function_count; i++) {
        least = shown[i] ? fmin(least, r->functions[i].self + r->functions[i].children) : least;
    }
    json_list(out, "cycles");
    for (uint32_t i = 0; i < r->cycle_count && !out->failed; i++) {
        const struct report_cycle *c = &r->cycles[i];
        uint32_t members = 0;
        for (uint32_t m = 0; m < c->member_count; m++) {
            members += shown[c->members[m].other];
        }
        if (members == 0 && !(c->self + c->children > least)) {
            continue;
        }
        json_begin(out, NULL);
        json_add_count(out, "cycle", c->number);
        json_add_count(out, "members", c->member_count);
        json_add_count(out, "members_shown", members);
        json_add_number(out, "self_seconds", c->self);
        json_add_number(out, "total_seconds", c->self + c->children);
        json_add_number(out, "percent", c->percent);
        json_add_count(out, "calls_outside", c->calls_outside);
        json_add_count(out, "calls_inside", c->calls_inside);
        add_cycle_rows(out, "callers", c->callers, c->caller_count, true, context);
        add_cycle_rows(out, "callees", c->callees, c->callee_count, false, context);
        JSON_ADD(out, "}");
    }
    JSON_ADD(out, "]");
}

enum profd_status graph_render(const struct render_input *in, struct arena *a, struct buffer *out,
                               struct profd_error *e)
{
    (void)e;
    const struct report *r = in->report;
    struct selection s;
    struct name_list names;
    bool *shown, *context = ARENA_ARRAY(a, (size_t)r->function_count + 1, bool);
    name_list_make(r, in->show.short_names, a, &names);
    selection_make_picture(in, a, &s, &shown);
    JSON_ADD(out, "{\"nodes\":[");
    for (uint32_t i = 0; i < s.entry_count; i++) {
        if (!(s.entries[i] & REPORT_CYCLE)) {
            add_node(out, r, &names, s.entries[i]);
        }
    }
    JSON_ADD(out, "],\"edges\":[");
    for (uint32_t i = 0; i < r->function_count; i++) {
        for (uint32_t k = 0; shown[i] && k < r->functions[i].callee_count && !out->failed; k++) {
            const struct report_arc *arc = &r->functions[i].callees[k];
            if (!shown[arc->other] || arc->other == i) {
                continue;
            }
            json_next(out);
            buffer_add_format(out, "{\"source\":\"%u\",\"target\":\"%u\"", i, arc->other);
            add_statistics(out, arc->calls, arc->self + arc->children);
            json_add_flag(out, "inside_cycle", arc->inside);
            add_range(out, r, arc->measured);
            JSON_ADD(out, "}");
        }
    }
    JSON_ADD(out, "]");
    add_cycles(out, r, shown, context);
    json_list(out, "context");
    for (uint32_t i = 0; i < r->function_count && !out->failed; i++) {
        if (context[i] && !shown[i]) {
            add_node(out, r, &names, i);
        }
    }
    JSON_ADD(out, "]");
    json_add_count(out, "not_shown", s.hidden);
    json_add_text(out, "dimension", r->dimension);
    json_add_number(out, "seconds", r->total);
    json_add_count(out, "ticks", r->ticks);
    json_add_stacks(out, r);
    json_add_exact(out, in->provenance->inexact);
    json_add_exact_parts(out, in->provenance->inexact);
    JSON_ADD(out, "}\n");
    return PROFD_OK;
}
