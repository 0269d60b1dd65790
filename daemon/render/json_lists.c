/* Lists of flat rows, and one build. */
#include <string.h>

#include "render/json_function.h"
#include "render/json_write.h"
#include "render/render.h"

static void add_build_fields(struct buffer *out, const struct build_row *row)
{
    JSON_ADD(out, "{\"build_id\":");
    render_json_string(out, row->build_id.text);
    json_add_text(out, "name", row->name);
    json_add_flag(out, "is_program", row->is_program);
    json_add_time(out, "first_seen", row->first_seen);
    json_add_time(out, "last_seen", row->last_seen);
    json_add_count(out, "uploads", row->uploads);
    json_add_count(out, "processes_started", row->processes);
    json_add_number(out, "seconds", (double)row->nanoseconds / 1e9);
    json_add_count(out, "calls", row->calls);
    json_add_exact(out, row->inexact);
    json_add_flag(out, "symbols", row->has_names);
    json_add_text(out, "note", row->note == NULL ? "" : row->note);
}

void render_builds(const struct build_row *rows, size_t n, const char *next, struct buffer *out)
{
    JSON_ADD(out, "{\"rows\":[");
    for (size_t i = 0; i < n; i++) {
        if (i > 0) {
            JSON_ADD(out, ",");
        }
        add_build_fields(out, &rows[i]);
        JSON_ADD(out, "}");
    }
    json_add_end(out, next);
}

void render_build(const struct build_row *row, const struct label_row *labels, size_t label_count,
                  const char *const *companion_ids, const char *const *companion_names, size_t companion_count,
                  uint32_t variants, struct buffer *out)
{
    add_build_fields(out, row);
    if (variants == 0) {
        json_add_text(out, "variants", NULL);
    } else {
        json_add_count(out, "variants", variants);
    }
    JSON_ADD(out, ",\"labels\":[");
    for (size_t i = 0; i < label_count; i++) {
        buffer_add_text(out, i > 0 ? ",{\"name\":" : "{\"name\":");
        render_json_string(out, labels[i].name);
        json_add_text(out, "value", labels[i].value);
        json_add_count(out, "uploads", labels[i].uploads);
        JSON_ADD(out, "}");
    }
    JSON_ADD(out, "],\"companions\":[");
    for (size_t i = 0; i < companion_count; i++) {
        buffer_add_text(out, i > 0 ? ",{\"build_id\":" : "{\"build_id\":");
        render_json_string(out, companion_ids[i]);
        json_add_text(out, "name", companion_names[i]);
        JSON_ADD(out, "}");
    }
    JSON_ADD(out, "]}\n");
}

void render_labels(const struct label_row *rows, size_t n, struct buffer *out)
{
    JSON_ADD(out, "{\"rows\":[");
    for (size_t i = 0; i < n;) {
        uint64_t uploads = 0, values = 0;
        size_t first = i;
        for (; i < n && strcmp(rows[i].name, rows[first].name) == 0; i++) {
            values++;
            uploads = uploads > UINT64_MAX - rows[i].uploads ? UINT64_MAX : uploads + rows[i].uploads;
        }
        buffer_add_text(out, first > 0 ? ",{\"name\":" : "{\"name\":");
        render_json_string(out, rows[first].name);
        json_add_count(out, "values", values);
        json_add_count(out, "uploads", uploads);
        JSON_ADD(out, "}");
    }
    json_add_end(out, NULL);
}

void render_values(const struct label_row *rows, size_t n, const char *next, struct buffer *out)
{
    JSON_ADD(out, "{\"rows\":[");
    for (size_t i = 0; i < n; i++) {
        buffer_add_text(out, i > 0 ? ",{\"value\":" : "{\"value\":");
        render_json_string(out, rows[i].value);
        json_add_count(out, "uploads", rows[i].uploads);
        JSON_ADD(out, "}");
    }
    json_add_end(out, next);
}

void render_functions(const struct report *report, const uint32_t *positions, size_t n, const char *next,
                      struct buffer *out)
{
    JSON_ADD(out, "{\"rows\":[");
    for (size_t i = 0; i < n; i++) {
        const struct report_function *f = &report->functions[positions[i]];
        buffer_add_text(out, i > 0 ? ",{\"name\":" : "{\"name\":");
        render_json_string(out, f->name);
        json_add_text(out, "raw_name", f->raw);
        json_add_text(out, "build_id", json_find_build(report, f->build));
        json_add_address(out, "address", f->address);
        json_add_count(out, "index", f->index);
        json_add_number(out, "self", f->self);
        json_add_number(out, "children", f->children);
        json_add_number(out, "total", f->self + f->children);
        json_add_number(out, "percent", f->percent);
        json_add_count(out, "calls", f->calls);
        json_add_count(out, "self_calls", f->self_calls);
        json_add_count(out, "cycle", f->cycle);
        JSON_ADD(out, "}");
    }
    json_add_end(out, next);
}
