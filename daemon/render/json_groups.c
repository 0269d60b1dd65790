/* Uploads by label: flat rows, one column for each label. */
#include "render/json_write.h"
#include "render/render.h"

static void add_row(struct buffer *out, const struct render_groups *g, const struct group_row *row)
{
    JSON_ADD(out, "{\"uploads\":");
    buffer_add_u64(out, row->uploads, 0);
    for (size_t i = 0; i < g->label_count; i++) {
        JSON_ADD(out, ",\"label_");
        buffer_add_text(out, g->labels[i]);
        JSON_ADD(out, "\":");
        render_json_string(out, row->values[i]);
    }
    if (g->step > 0) {
        json_add_time(out, "time", row->time);
        json_add_count(out, "width", (uint64_t)row->width / 1000000000u);
    }
    json_add_count(out, "processes_started", row->processes);
    json_add_count(out, "hosts", row->hosts);
    json_add_number(out, "seconds", row->seconds);
    json_add_count(out, "calls", row->calls);
    json_add_time(out, "first", row->first);
    json_add_time(out, "last", row->last);
    json_add_exact(out, row->inexact);
    JSON_ADD(out, "}");
}

void render_groups(const struct render_groups *g, struct buffer *out)
{
    JSON_ADD(out, "{\"rows\":[");
    for (size_t i = 0; i < g->row_count; i++) {
        buffer_add_text(out, i > 0 ? ",\n" : "\n");
        add_row(out, g, &g->rows[i]);
    }
    JSON_ADD(out, "]");
    json_add_text(out, "next", g->next);
    JSON_ADD(out, ",\"by\":[");
    for (size_t i = 0; i < g->label_count; i++) {
        buffer_add_text(out, i > 0 ? "," : "");
        render_json_string(out, g->labels[i]);
    }
    JSON_ADD(out, "]");
    json_add_count(out, "step", (uint64_t)g->step / 1000000000u);
    json_add_text(out, "dimension", g->dimension);
    json_add_window(out, g->since, g->until);
    JSON_ADD(out, "}\n");
}
