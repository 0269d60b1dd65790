/* One function over time: flat rows. */
#include "render/json_write.h"
#include "render/render.h"

static void add_row(struct buffer *out, const struct series_row *row)
{
    JSON_ADD(out, "{\"width\":");
    buffer_add_u64(out, (uint64_t)row->width / 1000000000u, 0);
    json_add_time(out, "time", row->time);
    json_add_number(out, "self", row->self);
    json_add_number(out, "children", row->children);
    json_add_number(out, "total", row->self + row->children);
    json_add_count(out, "calls", row->calls);
    json_add_count(out, "self_calls", row->self_calls);
    json_add_flag(out, "in_cycle", row->cycle != 0);
    json_add_number(out, "seconds", row->seconds);
    json_add_count(out, "uploads", row->uploads);
    json_add_count(out, "processes_started", row->processes);
    json_add_exact(out, row->inexact);
    JSON_ADD(out, "}");
}

void render_series(const struct render_series *s, struct buffer *out)
{
    JSON_ADD(out, "{\"rows\":[");
    for (size_t i = 0; i < s->row_count; i++) {
        buffer_add_text(out, i > 0 ? ",\n" : "\n");
        add_row(out, &s->rows[i]);
    }
    JSON_ADD(out, "]");
    json_add_text(out, "next", NULL);
    json_add_text(out, "build_id", s->build_id);
    json_add_address(out, "address", s->address);
    json_add_text(out, "name", s->name);
    json_add_text(out, "dimension", s->dimension);
    json_add_count(out, "step", (uint64_t)s->step / 1000000000u);
    json_add_window(out, s->since, s->until);
    JSON_ADD(out, "}\n");
}
