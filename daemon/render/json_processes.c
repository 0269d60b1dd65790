/* Live processes as JSON. */
#include "core/buffer.h"
#include "core/rows.h"
#include "render/json_write.h"
#include "render/render.h"

#define INSTANCE_SIZE 16

static void add_instance(struct buffer *out, const uint8_t *instance)
{
    static const char digits[] = "0123456789abcdef";
    if (instance == NULL) {
        JSON_ADD(out, "null");
        return;
    }
    buffer_add_char(out, '"');
    for (int i = 0; i < INSTANCE_SIZE; i++) {
        buffer_add_char(out, digits[instance[i] >> 4]);
        buffer_add_char(out, digits[instance[i] & 15]);
    }
    buffer_add_char(out, '"');
}

static void add_labels(struct buffer *out, const struct process_row *row)
{
    JSON_ADD(out, ",\"labels\":{");
    for (size_t i = 0; i < row->label_count; i++) {
        if (i > 0) {
            JSON_ADD(out, ",");
        }
        render_json_string(out, row->labels[i].name);
        JSON_ADD(out, ":");
        render_json_string(out, row->labels[i].value);
    }
    JSON_ADD(out, "}");
}

static void add_process(struct buffer *out, const struct process_row *row)
{
    const int64_t age = row->now > row->started && row->started > 0 ? row->now - row->started : 0;
    JSON_ADD(out, "{\"instance\":");
    add_instance(out, row->instance);
    JSON_ADD(out, ",\"parent\":");
    add_instance(out, row->parent);
    json_add_count(out, "pid", row->pid);
    json_add_count(out, "pid_inside", row->pid_inside);
    json_add_count(out, "uid", row->uid);
    json_add_text(out, "build_id", row->build_id);
    json_add_text(out, "name", row->name);
    add_labels(out, row);
    json_add_time(out, "started", row->started);
    json_add_count(out, "age_seconds", (uint64_t)age / 1000000000u);
    json_add_text(out, "state", row->state);
    json_add_text(out, "mode", row->mode);
    json_add_count(out, "rate", row->rate);
    json_add_count(out, "rate_asked", row->rate_asked);
    json_add_count(out, "calls", row->calls);
    json_add_count(out, "ticks", row->ticks);
    json_add_number(out, "calls_per_second", row->calls_per_second);
    json_add_number(out, "cpu_seconds", (double)row->cpu_ns / 1e9);
    json_add_number(out, "overhead", row->overhead);
    json_add_flag(out, "exact", row->exact);
    json_add_flag(out, "calls_exact", row->calls_exact);
    json_add_flag(out, "ticks_exact", row->ticks_exact);
    json_add_text(out, "why", row->why);
    json_add_count(out, "memory_bytes", row->bytes);
    json_add_time(out, "harvested", row->harvested);
    JSON_ADD(out, "}");
}

void render_processes(const struct process_row *rows, size_t n, const char *next, struct buffer *out)
{
    JSON_ADD(out, "{\"rows\":[");
    for (size_t i = 0; i < n; i++) {
        if (i > 0) {
            JSON_ADD(out, ",");
        }
        add_process(out, &rows[i]);
    }
    json_add_end(out, next);
}
