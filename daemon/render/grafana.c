/* What Grafana's panels read through its Infinity data source: format=flamegraph (the nested set of the flame graph
 * panel: rows depth first with level, value, self, label) and format=nodegraph (the two frames of the node graph
 * panel). */
#include "render/formats.h"
#include "render/json_function.h"
#include "render/json_write.h"
#include "render/select.h"
#include "render/stacks.h"

static void add_level(struct buffer *out, uint32_t level, double value, double self, const char *label)
{
    buffer_add_text(out, level > 0 ? ",{\"level\":" : "{\"level\":");
    buffer_add_u64(out, level, 0);
    json_add_number(out, "value", value);
    json_add_number(out, "self", self);
    json_add_text(out, "label", label);
    JSON_ADD(out, "}");
}

enum profd_status flamegraph_render_rows(const struct render_input *in, struct arena *a, struct buffer *out,
                                         struct profd_error *e)
{
    struct name_list names;
    struct stacks s;
    enum profd_status status = name_list_make(in->report, a, &names, e);
    if (status == PROFD_OK) {
        status = stacks_make(in->report, a, &s, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    JSON_ADD(out, "{\"synthetic\":true");
    json_add_text(out, "unit", in->report->in_seconds ? "s" : "short");
    json_add_text(out, "dimension", in->report->dimension);
    json_add_text(out, "build_id", in->build_id);
    json_add_number(out, "not_followed", s.cut);
    JSON_ADD(out, ",\"rows\":[");
    add_level(out, 0, s.total, 0, "total (synthetic stacks)");
    for (uint32_t i = 0; i < s.count && !out->failed; i++) {
        const struct stack_node *n = &s.nodes[i];
        add_level(out, n->depth + 1, n->total, n->self, stacks_frame_name(&names, in->report, n->frame, a));
    }
    JSON_ADD(out, "]}\n");
    return status;
}

/* id, title, the two numbers in the circle, and the two arcs around it: a function's own part of its time, and the
 * rest. */
static void add_node(struct buffer *out, const struct report *r, const struct name_list *names, uint32_t position)
{
    const struct report_function *f = &r->functions[position];
    double total = f->self + f->children, own = total > 0 ? f->self / total : 1;
    JSON_ADD(out, "{\"id\":\"");
    buffer_add_u64(out, position, 0);
    JSON_ADD(out, "\"");
    json_add_text(out, "title", names->text[position]);
    json_add_text(out, "subtitle", f->build < r->build_count ? name_find_base(r->build_names[f->build]) : "");
    json_add_number(out, "mainstat", total);
    json_add_count(out, "secondarystat", f->calls);
    json_add_number(out, "arc__self", own);
    json_add_number(out, "arc__children", 1 - own);
    json_add_number(out, "detail__self_seconds", f->self);
    json_add_number(out, "detail__children_seconds", f->children);
    json_add_number(out, "detail__percent", f->percent);
    json_add_count(out, "detail__self_calls", f->self_calls);
    json_add_count(out, "detail__cycle", f->cycle);
    json_add_address(out, "detail__address", f->address);
    json_add_text(out, "detail__build_id", json_find_build(r, f->build));
    JSON_ADD(out, "}");
}

static void add_edges(struct buffer *out, const struct report *r, uint32_t position, const bool *shown,
                      const char **comma)
{
    const struct report_function *f = &r->functions[position];
    for (uint32_t i = 0; i < f->callee_count && !out->failed; i++) {
        const struct report_arc *arc = &f->callees[i];
        if (!shown[arc->other] || arc->other == position) {
            continue;
        }
        buffer_add_text(out, *comma);
        buffer_add_format(out, "{\"id\":\"%u-%u\",\"source\":\"%u\",\"target\":\"%u\"", position, arc->other, position,
                          arc->other);
        json_add_count(out, "mainstat", arc->calls);
        json_add_number(out, "secondarystat", arc->self + arc->children);
        json_add_flag(out, "detail__inside_cycle", arc->inside);
        JSON_ADD(out, "}");
        *comma = ",";
    }
}

enum profd_status nodegraph_render_frames(const struct render_input *in, struct arena *a, struct buffer *out,
                                          struct profd_error *e)
{
    struct selection s;
    struct name_list names;
    const char *comma = "";
    bool *shown;
    enum profd_status status = name_list_make(in->report, a, &names, e);
    if (status == PROFD_OK) {
        status = selection_make_picture(in, a, &s, &shown, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    JSON_ADD(out, "{\"nodes\":[");
    for (uint32_t i = 0; i < s.entry_count; i++) {
        if (!(s.entries[i] & REPORT_CYCLE)) {
            buffer_add_text(out, comma);
            add_node(out, in->report, &names, s.entries[i]);
            comma = ",";
        }
    }
    JSON_ADD(out, "],\"edges\":[");
    comma = "";
    for (uint32_t i = 0; i < in->report->function_count; i++) {
        if (shown[i]) {
            add_edges(out, in->report, i, shown, &comma);
        }
    }
    JSON_ADD(out, "]");
    json_add_count(out, "not_shown", s.hidden);
    json_add_text(out, "dimension", in->report->dimension);
    json_add_exact(out, in->provenance->inexact);
    json_add_exact_parts(out, in->provenance->inexact);
    JSON_ADD(out, "}\n");
    return status;
}
