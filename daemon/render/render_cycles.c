#include "render/render_cycles.h"

#include "core/sum.h"
#include "render/json_write.h"

static const char *name_of(const struct report *r, const struct report_cycle *cycle, uint32_t member)
{
    return r->functions[cycle->members[member].other].name;
}

static void add_arcs(struct buffer *out, const struct report *r, const struct render_cycle *x, bool breaks,
                     size_t limit)
{
    size_t n = 0;
    for (uint32_t i = 0; i < x->arc_count && n < limit; i++) {
        if (breaks && !x->arcs[i].breaks) {
            continue;
        }
        buffer_add_text(out, n++ > 0 ? ",{\"caller\":" : "{\"caller\":");
        render_json_string(out, name_of(r, x->cycle, x->arcs[i].from));
        json_add_text(out, "callee", name_of(r, x->cycle, x->arcs[i].to));
        json_add_count(out, "calls", x->arcs[i].calls);
        JSON_ADD(out, "}");
    }
}

static void add_cycle(struct buffer *out, const struct report *r, const struct render_cycle *x, size_t limit)
{
    const struct report_cycle *c = x->cycle;
    uint64_t calls = 0;
    uint32_t breaking = 0;
    bool saturated = false;
    for (uint32_t i = 0; i < x->arc_count; i++) {
        breaking += x->arcs[i].breaks;
        sum_add(&calls, x->arcs[i].breaks ? x->arcs[i].calls : 0, &saturated);
    }
    JSON_ADD(out, "{\"number\":");
    buffer_add_u64(out, c->number, 0);
    json_add_times(out, c->self, c->children);
    json_add_number(out, "percent", c->percent);
    json_add_count(out, "calls_outside", c->calls_outside);
    json_add_count(out, "calls_inside", c->calls_inside);
    json_add_count(out, "member_count", c->member_count);
    json_add_count(out, "arc_count", x->arc_count);
    json_add_count(out, "break_count", breaking);
    json_add_count(out, "break_calls", calls);
    JSON_ADD(out, ",\"members\":[");
    for (uint32_t i = 0; i < c->member_count && i < limit; i++) {
        const struct report_function *f = &r->functions[c->members[i].other];
        buffer_add_text(out, i > 0 ? ",{\"name\":" : "{\"name\":");
        render_json_string(out, f->name);
        json_add_text(out, "raw_name", f->raw);
        json_add_address(out, "address", f->address);
        json_add_times(out, f->self, f->children);
        json_add_count(out, "calls_outside", f->calls_outside);
        json_add_count(out, "calls_inside", f->calls_inside);
        JSON_ADD(out, "}");
    }
    JSON_ADD(out, "],\"arcs\":[");
    add_arcs(out, r, x, false, limit);
    JSON_ADD(out, "],\"break\":[");
    add_arcs(out, r, x, true, limit);
    JSON_ADD(out, "]}");
}

void render_cycles(const struct render_input *in, const struct render_cycle *cycles, uint32_t count, size_t limit,
                   struct buffer *out)
{
    const struct report *r = in->report->shown;
    JSON_ADD(out, "{\"rows\":[");
    for (uint32_t i = 0; i < count; i++) {
        buffer_add_text(out, i > 0 ? ",\n" : "\n");
        add_cycle(out, r, &cycles[i], limit);
    }
    JSON_ADD(out, "]");
    json_add_count(out, "count", r->cycle_count);
    json_add_text(out, "build_id", in->build_id);
    json_add_text(out, "name", in->build_name);
    json_add_text(out, "scope", in->scope);
    json_add_text(out, "dimension", r->dimension);
    json_add_text(out, "time", r->time_measured ? "measured" : "calls");
    json_add_count(out, "ticks", r->ticks);
    json_add_number(out, "seconds", r->total);
    json_add_exact(out, in->provenance->inexact);
    json_add_window(out, in->used_since, in->used_until);
    JSON_ADD(out, "}\n");
}
