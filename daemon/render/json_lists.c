/* Lists of flat rows, and one build. */
#include <string.h>

#include "core/buffer.h"
#include "core/rows.h"
#include "proto/hex.h"
#include "render/json_function.h"
#include "render/json_write.h"
#include "render/name_short.h"
#include "render/render.h"

static void add_series_row(struct buffer *out, const struct series_row *row)
{
    JSON_ADD(out, "{\"width\":");
    buffer_add_u64(out, (uint64_t)row->width / 1000000000u, 0);
    json_add_time(out, "time", row->time);
    json_add_times(out, row->self, row->children);
    if (row->has_stacks) {
        json_add_text(out, "time_shown", row->time_measured ? "measured" : "calls");
    }
    json_add_measured(out, row->is_measured ? &row->measured : NULL);
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
        add_series_row(out, &s->rows[i]);
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

static void add_groups_row(struct buffer *out, const struct render_groups *g, const struct group_row *row)
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
        add_groups_row(out, g, &g->rows[i]);
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

static void add_joined_row(struct buffer *out, const struct joined_row *row, const char *short_name, double seconds)
{
    JSON_ADD(out, "{\"name\":");
    render_json_string(out, row->name);
    if (short_name != NULL && short_name != row->name) {
        json_add_text(out, "short_name", short_name);
    }
    json_add_text(out, "file", row->file);
    json_add_number(out, "self_seconds", row->self);
    json_add_number(out, "total_seconds", row->total);
    json_add_number(out, "percent", seconds > 0 ? 100 * row->self / seconds : 0);
    json_add_number(out, "total_percent", seconds > 0 ? 100 * row->total / seconds : 0);
    json_add_count(out, "calls", row->calls);
    json_add_count(out, "self_calls", row->self_calls);
    json_add_count(out, "programs", row->programs);
    json_add_count(out, "builds", row->builds);
    JSON_ADD(out, "}");
}

/* Short names of the rows; a row has no symbol, so that :: and < tell a name of C++. */
static const char **make_short(const struct render_joined *j)
{
    const char **whole = ARENA_ARRAY(j->arena, j->row_count + 1, const char *);
    bool *cplusplus = ARENA_ARRAY(j->arena, j->row_count + 1, bool);
    for (size_t i = 0; i < j->row_count; i++) {
        whole[i] = j->rows[i].name;
        cplusplus[i] = strstr(whole[i], "::") != NULL || strchr(whole[i], '<') != NULL;
    }
    return name_short_list(whole, cplusplus, (uint32_t)j->row_count, j->arena);
}

void render_joined(const struct render_joined *j, struct buffer *out)
{
    const char *const *shorts = j->short_names ? make_short(j) : NULL;
    JSON_ADD(out, "{\"rows\":[");
    for (size_t i = 0; i < j->row_count; i++) {
        buffer_add_text(out, i > 0 ? ",\n" : "\n");
        add_joined_row(out, &j->rows[i], shorts != NULL ? shorts[i] : NULL, j->rest->seconds);
    }
    JSON_ADD(out, "]");
    json_add_text(out, "next", j->next);
    json_add_text(out, "sort", j->sort);
    json_add_text(out, "dimension", j->dimension);
    json_add_count(out, "names", j->names);
    json_add_count(out, "programs", j->rest->programs);
    json_add_count(out, "uploads", j->rest->uploads);
    json_add_count(out, "processes_started", j->rest->processes);
    json_add_number(out, "seconds", j->rest->seconds);
    json_add_count(out, "ticks", j->rest->ticks);
    json_add_count(out, "calls", j->rest->calls);
    json_add_exact(out, j->rest->inexact);
    JSON_ADD(out, ",\"not_joined\":{\"unnamed_builds\":");
    buffer_add_u64(out, j->rest->unnamed_builds, 0);
    json_add_count(out, "unnamed_functions", j->rest->unnamed_functions);
    json_add_number(out, "unnamed_seconds", j->rest->unnamed_seconds);
    json_add_count(out, "ambiguous_names", j->rest->ambiguous_names);
    json_add_count(out, "ambiguous_functions", j->rest->ambiguous_functions);
    json_add_number(out, "ambiguous_seconds", j->rest->ambiguous_seconds);
    json_add_number(out, "other_seconds", j->rest->other_seconds);
    json_add_count(out, "programs", j->rest->programs_left);
    JSON_ADD(out, "}");
    json_add_window(out, j->since, j->until);
    JSON_ADD(out, "}\n");
}

#define INSTANCE_SIZE 16

static void add_instance(struct buffer *out, const uint8_t *instance)
{
    char digits[2 * INSTANCE_SIZE + 1];
    if (instance == NULL) {
        JSON_ADD(out, "null");
        return;
    }
    hex_put(digits, instance, INSTANCE_SIZE);
    buffer_add_format(out, "\"%s\"", digits);
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
    json_add_known(out, "overhead", row->overhead, row->overhead >= 0);
    json_add_known(out, "overhead_below", row->overhead_below, row->overhead_below > 0);
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

static void add_load(struct buffer *out, const struct render_loads *l, const struct load_row *row)
{
    JSON_ADD(out, "{\"build_id\":");
    render_json_string(out, row->build_id);
    json_add_text(out, "dimension", row->dimension);
    JSON_ADD(out, ",\"seconds\":[");
    for (size_t i = 0; i < l->step_count; i++) {
        buffer_add_text(out, i > 0 ? "," : "");
        buffer_add_shortest(out, row->seconds[i]);
    }
    JSON_ADD(out, "],\"labels\":{");
    for (size_t i = 0; i < l->label_count; i++) {
        buffer_add_text(out, i > 0 ? "," : "");
        render_json_string(out, l->labels[i]);
        JSON_ADD(out, ":[");
        for (const char *const *value = row->values[i]; *value != NULL; value++) {
            buffer_add_text(out, value > row->values[i] ? "," : "");
            render_json_string(out, *value);
        }
        JSON_ADD(out, "]");
    }
    JSON_ADD(out, "}");
    json_add_count(out, "hosts", row->hosts);
    JSON_ADD(out, "}");
}

void render_loads(const struct render_loads *l, struct buffer *out)
{
    JSON_ADD(out, "{\"rows\":[");
    for (size_t i = 0; i < l->row_count; i++) {
        buffer_add_text(out, i > 0 ? ",\n" : "\n");
        add_load(out, l, &l->rows[i]);
    }
    JSON_ADD(out, "]");
    json_add_text(out, "next", l->next);
    json_add_count(out, "step", (uint64_t)l->step / 1000000000u);
    json_add_window(out, l->begin, l->begin + (int64_t)l->step_count * l->step);
    JSON_ADD(out, "}\n");
}

static void add_host(struct buffer *out, const struct fleet_row *h, int64_t now)
{
    JSON_ADD(out, "{\"name\":");
    render_json_string(out, h->name);
    json_add_text(out, "identity", h->identity);
    json_add_text(out, "tenant", h->tenant);
    json_add_text(out, "machine_id", h->machine);
    json_add_text(out, "version", h->version);
    json_add_time(out, "first_seen", h->first);
    json_add_time(out, "last_seen", h->last);
    json_add_time(out, "last_upload", h->delivered);
    json_add_count(out, "lag_seconds", now > h->last ? (uint64_t)(now - h->last) / 1000000000u : 0);
    json_add_time(out, "restored", h->restored);
    json_add_time(out, "two_machines_seen", h->two_machines);
    JSON_ADD(out, "}");
}

void render_hosts(const struct fleet_row *rows, size_t n, int64_t now, const char *next, struct buffer *out)
{
    JSON_ADD(out, "{\"rows\":[");
    for (size_t i = 0; i < n; i++) {
        buffer_add_text(out, i > 0 ? ",\n" : "\n");
        add_host(out, &rows[i], now);
    }
    json_add_end(out, next);
}

void render_versions(const struct version_row *rows, size_t n, const char *next, struct buffer *out)
{
    JSON_ADD(out, "{\"rows\":[");
    for (size_t i = 0; i < n; i++) {
        buffer_add_text(out, i > 0 ? ",\n{\"program\":" : "\n{\"program\":");
        render_json_string(out, rows[i].program);
        json_add_text(out, "version", rows[i].version[0] != '\0' ? rows[i].version : NULL);
        json_add_text(out, "build_id", rows[i].build_id);
        json_add_time(out, "first", rows[i].first);
        json_add_time(out, "last", rows[i].last);
        json_add_count(out, "uploads", rows[i].uploads);
        JSON_ADD(out, "}");
    }
    json_add_end(out, next);
}

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

void render_labels(const struct label_row *rows, size_t n, const char *next, struct buffer *out)
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
    json_add_end(out, next);
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
        json_add_times(out, f->self, f->children);
        json_add_number(out, "percent", f->percent);
        json_add_count(out, "calls", f->calls);
        json_add_count(out, "self_calls", f->self_calls);
        json_add_count(out, "cycle", f->cycle);
        JSON_ADD(out, "}");
    }
    json_add_end(out, next);
}
