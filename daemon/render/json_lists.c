/* Answers other than reports, as JSON: lists of flat rows, one build, functions by address, callers, cycles, functions
 * that were never called, and comparisons. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rows.h"
#include "core/sum.h"
#include "proto/hex.h"
#include "proto/limits.h"
#include "proto/message.h"
#include "render/render_internal.h"

/* Lists of flat rows, and one build. */

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

static void add_calls(struct buffer *out, const struct report *r, const struct address_calls *c)
{
    JSON_ADD(out, "{\"callee\":");
    render_json_string(out, c->callee != NULL ? c->callee->name : "");
    json_add_text(out, "build_id", c->callee != NULL ? json_find_build(r, c->callee->build) : "");
    if (c->callee != NULL) {
        json_add_address(out, "callee_address", c->callee->address);
    } else {
        json_add_text(out, "callee_address", NULL);
    }
    json_add_address(out, "address", c->address);
    json_add_count(out, "calls", c->calls);
    JSON_ADD(out, "}");
}

static void add_instruction(struct buffer *out, const struct object *o, const struct object_instruction *i,
                            const char *target_name)
{
    char text[LIMIT_INSTRUCTION_TEXT + 32];
    if (i->targeted) {
        (void)snprintf(text, sizeof text, "%s0x%" PRIx64, o->instruction_texts + i->text, i->target);
    } else {
        (void)snprintf(text, sizeof text, "%s", o->instruction_texts + i->text);
    }
    JSON_ADD(out, "{\"text\":");
    render_json_string(out, text);
    json_add_address(out, "address", i->address);
    json_add_count(out, "bytes", i->size);
    if (i->targeted) {
        json_add_address(out, "target", i->target);
    }
    if (target_name != NULL) {
        json_add_text(out, "target_name", target_name);
    }
    JSON_ADD(out, "}");
}

static int compare_file(const void *key, const void *member)
{
    const uint32_t file = *(const uint32_t *)key, other = ((const struct object_digest *)member)->file;
    return (file > other) - (file < other);
}

/* The MD5s of the files that lines are of, where they are known: each file where it comes first. */
static void add_files(struct buffer *out, const struct render_addresses *what)
{
    const struct object *o = what->object;
    bool any = false;
    for (uint32_t i = 0; o != NULL && i < what->line_count && o->digest_count > 0; i++) {
        const uint32_t file = what->lines[i].file;
        uint32_t seen = 0;
        while (what->lines[seen].file != file) {
            seen++;
        }
        const struct object_digest *d =
            seen < i ? NULL : bsearch(&file, o->digests, o->digest_count, sizeof *d, compare_file);
        if (d == NULL) {
            continue;
        }
        while (d > o->digests && d[-1].file == file) {
            d--;
        }
        for (; d < o->digests + o->digest_count && d->file == file; d++) {
            buffer_add_text(out, any ? ",\n{\"file\":" : "\n{\"file\":");
            render_json_string(out, object_name(o, file));
            JSON_ADD(out, ",\"md5\":\"");
            char text[2 * OBJECT_DIGEST_BYTES + 1];
            hex_put(text, d->md5, OBJECT_DIGEST_BYTES);
            buffer_add_text(out, text);
            JSON_ADD(out, "\"}");
            any = true;
        }
    }
}

void render_addresses(const struct render_input *in, const struct render_addresses *what, struct buffer *out)
{
    const struct report *r = in->report;
    const struct report_function *f = what->function;
    const uint32_t inexact = in->provenance->inexact;
    JSON_ADD(out, "{\"rows\":[");
    for (uint32_t i = 0; i < what->tick_count; i++) {
        buffer_add_text(out, i > 0 ? ",\n" : "\n");
        JSON_ADD(out, "{\"bytes\":");
        buffer_add_u64(out, what->ticks[i].bytes, 0);
        json_add_address(out, "address", what->ticks[i].address);
        json_add_count(out, "ticks", what->ticks[i].ticks);
        json_add_number(out, "seconds", what->ticks[i].seconds);
        json_add_flag(out, "shared", what->ticks[i].shared);
        JSON_ADD(out, "}");
    }
    JSON_ADD(out, "],\"calls\":[");
    for (uint32_t i = 0; i < what->call_count; i++) {
        buffer_add_text(out, i > 0 ? ",\n" : "\n");
        add_calls(out, r, &what->calls[i]);
    }
    JSON_ADD(out, "],\"lines\":[");
    for (uint32_t i = 0; i < what->line_count; i++) {
        buffer_add_text(out, i > 0 ? ",\n" : "\n");
        JSON_ADD(out, "{\"file\":");
        render_json_string(out, object_name(what->object, what->lines[i].file));
        json_add_count(out, "line", what->lines[i].line);
        json_add_address(out, "address", what->lines[i].low);
        json_add_count(out, "bytes", what->lines[i].high - what->lines[i].low);
        JSON_ADD(out, "}");
    }
    JSON_ADD(out, "],\"files\":[");
    add_files(out, what);
    JSON_ADD(out, "],\"instructions\":[");
    for (uint32_t i = 0; i < what->instruction_count; i++) {
        buffer_add_text(out, i > 0 ? ",\n" : "\n");
        add_instruction(out, what->object, &what->instructions[i], what->target_names[i]);
    }
    JSON_ADD(out, "],\"function\":{\"name\":");
    render_json_string(out, f->name);
    json_add_text(out, "raw_name", f->raw);
    json_add_text(out, "build_id", json_find_build(r, f->build));
    json_add_text(out, "object", f->build < r->build_count ? r->build_names[f->build] : "");
    json_add_address(out, "address", f->address);
    json_add_count(out, "bytes", f->size);
    json_add_text(out, "file", f->file == NULL ? "" : f->file);
    json_add_count(out, "calls", f->calls);
    json_add_count(out, "self_calls", f->self_calls);
    json_add_number(out, "self_seconds", f->self);
    JSON_ADD(out, "}");
    json_add_count(out, "ticks", r->ticks);
    json_add_number(out, "seconds", r->total);
    json_add_number(out, "overdispersion", what->overdispersion);
    json_add_flag(out, "call_sites", (inexact & INEXACT_CALLER_BUCKET) == 0);
    json_add_text(out, "build_id", in->build_id);
    json_add_text(out, "name", in->build_name);
    json_add_text(out, "scope", in->scope);
    json_add_text(out, "dimension", r->dimension);
    json_add_exact_parts(out, inexact);
    json_add_exact(out, inexact);
    json_add_meanings(out, inexact);
    json_add_window(out, in->used_since, in->used_until);
    JSON_ADD(out, "}\n");
}

static const char *const METHODS[] = {"none", "stacks", "calls"};

static void add_identity(struct buffer *out, const struct report *r, const struct report_function *f)
{
    render_json_string(out, f->name);
    json_add_text(out, "raw_name", f->raw);
    json_add_text(out, "build_id", json_find_build(r, f->build));
    json_add_address(out, "address", f->address);
    json_add_text(out, "file", f->file == NULL ? "" : f->file);
}

/* inexact: of sampled calls, a ratio says nothing. */
static void add_caller(struct buffer *out, const struct report *r, const struct callers_row *row, uint32_t inexact)
{
    const struct report_arc *arc = row->arc;
    const bool timed = row->method != CALLERS_NONE, interval = timed && row->low <= row->high;
    JSON_ADD(out, "{\"caller\":");
    add_identity(out, r, &r->functions[arc->other]);
    json_add_count(out, "calls", arc->calls);
    json_add_known(out, "calls_per_caller_call", row->per_caller,
                   row->per_caller >= 0 && (inexact & INEXACT_SAMPLED) == 0);
    json_add_text(out, "method", METHODS[row->method]);
    json_add_known(out, "total_seconds", row->seconds, timed);
    json_add_known(out, "low", row->low, interval);
    json_add_known(out, "high", row->high, interval);
    json_add_known(out, "seconds_per_call", arc->calls > 0 ? row->seconds / (double)arc->calls : 0,
                   timed && row->seconds > 0 && arc->calls > 0 && (inexact & INEXACT_CALLS) == 0);
    json_add_known(out, "seconds_by_calls", arc->self + arc->children, timed);
    json_add_flag(out, "inside", arc->inside);
    JSON_ADD(out, "}");
}

void render_callers(const struct render_input *in, const struct callers *c, size_t limit, struct buffer *out)
{
    const uint32_t inexact = in->provenance->inexact;
    const struct report_function *f = c->function;
    JSON_ADD(out, "{\"rows\":[");
    for (uint32_t i = 0; i < c->row_count && i < limit; i++) {
        buffer_add_text(out, i > 0 ? ",\n" : "\n");
        add_caller(out, in->report, &c->rows[i], inexact);
    }
    JSON_ADD(out, "],\"function\":{\"name\":");
    add_identity(out, in->report, f);
    json_add_count(out, "calls", f->calls);
    json_add_count(out, "self_calls", f->self_calls);
    json_add_count(out, "cycle", f->cycle);
    json_add_times(out, f->self, f->children);
    json_add_known(out, "measured_total", f->measured != NULL ? f->measured->total : 0, f->measured != NULL);
    JSON_ADD(out, "}");
    json_add_count(out, "row_count", c->row_count);
    json_add_text(out, "method", METHODS[c->method]);
    json_add_text(out, "stacks_refused", c->stacks_refused);
    json_add_text(out, "build_id", in->build_id);
    json_add_text(out, "name", in->build_name);
    json_add_text(out, "scope", in->scope);
    json_add_text(out, "dimension", in->report->dimension);
    json_add_exact_parts(out, inexact);
    json_add_exact(out, inexact);
    json_add_meanings(out, inexact);
    json_add_window(out, in->used_since, in->used_until);
    JSON_ADD(out, "}\n");
}

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

void render_never(const struct render_input *in, const struct never_called *never, size_t limit, struct buffer *out)
{
    const struct provenance *p = in->provenance;
    JSON_ADD(out, "{\"rows\":[");
    for (uint32_t i = 0; i < never->count && i < limit; i++) {
        const struct never_row *row = &never->rows[i];
        buffer_add_text(out, i > 0 ? ",\n{\"function\":" : "\n{\"function\":");
        render_json_string(out, row->function->name);
        json_add_text(out, "raw_name", row->function->raw);
        json_add_text(out, "file", row->function->file);
        json_add_address(out, "address", row->function->address);
        json_add_count(out, "bytes", row->bytes);
        json_add_count(out, "copies", row->copies);
        json_add_flag(out, "entered_elsewhere", row->entered_elsewhere);
        json_add_flag(out, "inlined", row->inlined);
        JSON_ADD(out, "}");
    }
    JSON_ADD(out, "]");
    json_add_text(out, "build_id", in->build_id);
    json_add_text(out, "name", in->build_name);
    json_add_text(out, "scope", in->scope);
    json_add_count(out, "row_count", never->count);
    json_add_count(out, "functions", never->functions);
    json_add_count(out, "bytes", never->bytes);
    json_add_count(out, "copy_bytes", never->copy_bytes);
    json_add_text(out, "symbols", never->named);
    json_add_flag(out, "inlined_known", never->knows_inlined);
    json_add_count(out, "counted_functions", never->counted);
    json_add_count(out, "not_called", never->not_called);
    json_add_count(out, "processes_started", p->processes);
    /* With probability 95 %, fewer than this part of all processes enters a function that none of n entered ("rule of
     * three"). Only counts that lack nothing bound anything. */
    const bool known = p->processes >= 3 && (p->inexact & INEXACT_CALLS) == 0;
    json_add_known(out, "bound", known ? 3 / (double)p->processes : 0, known);
    json_add_exact_parts(out, p->inexact);
    json_add_exact(out, p->inexact);
    json_add_meanings(out, p->inexact);
    json_add_window(out, in->used_since, in->used_until);
    JSON_ADD(out, "}\n");
}

static void add_side(struct buffer *out, const struct render_diff *in, uint32_t s)
{
    const struct render_input *side = &in->sides[s];
    const struct diff_side *made = in->diff->sides[s];
    const struct provenance *p = side->provenance;
    JSON_ADD(out, "{\"build_id\":");
    render_json_string(out, side->build_id);
    json_add_text(out, "name", side->build_name);
    json_add_text(out, "scope", side->scope);
    json_add_text(out, "match", side->match);
    json_add_window(out, side->used_since, side->used_until);
    json_add_time(out, "first", p->first);
    json_add_time(out, "last", p->last);
    json_add_count(out, "uploads", p->uploads);
    json_add_count(out, "processes_started", p->processes);
    json_add_count(out, "hosts", p->hosts);
    json_add_count(out, "groups", diff_stat_count(made->groups));
    json_add_count(out, "ticks", made->ticks_total);
    json_add_number(out, "seconds", made->seconds[0]);
    json_add_count(out, "functions", made->function_count);
    json_add_exact(out, p->inexact);
    JSON_ADD(out, "}");
}

static double row_share(const struct diff *d, uint32_t s, uint32_t row, const double *times)
{
    double seconds = d->sides[s]->seconds[0];
    return seconds > 0 ? times[(size_t)row * DIFF_VALUES] / seconds : 0;
}

/* Where a function is on a side: the first of its clones. Null if the side does not have it. */
static void add_place(struct buffer *out, const struct diff *d, uint32_t row, uint32_t s)
{
    static const char *const BUILDS[] = {"build_id_a", "build_id_b"}, *const ADDRESSES[] = {"address_a", "address_b"};
    const struct diff_row *r = &d->match.rows[row];
    if (r->count[s] == 0) {
        json_add_text(out, BUILDS[s], NULL);
        json_add_text(out, ADDRESSES[s], NULL);
        return;
    }
    const struct report_function *f = &d->sides[s]->functions[d->match.member[s][r->first[s]]];
    json_add_text(out, BUILDS[s], d->sides[s]->builds[f->build]);
    json_add_address(out, ADDRESSES[s], f->address);
}

/* Begins the object of a function of the comparison, or of all together. */
static void add_function(struct buffer *out, const struct diff *d, uint32_t row)
{
    const struct report_function *f = diff_function(d, row);
    if (f == NULL) {
        static const char *const NONE[] = {"file",      "object",     "clones_a",  "clones_b",    "build_id_a",
                                           "address_a", "build_id_b", "address_b", "renamed_from"};
        JSON_ADD(out, "{\"function\":null");
        for (size_t i = 0; i < sizeof NONE / sizeof *NONE; i++) {
            json_add_text(out, NONE[i], NULL);
        }
        return;
    }
    const struct diff_row *r = &d->match.rows[row];
    const struct diff_side *side = d->sides[r->count[1] > 0 ? 1 : 0];
    JSON_ADD(out, "{\"function\":");
    render_json_string(out, f->name);
    json_add_text(out, "file", f->file);
    json_add_text(out, "object", side->build_names[f->build]);
    json_add_count(out, "clones_a", r->count[0]);
    json_add_count(out, "clones_b", r->count[1]);
    add_place(out, d, row, 0);
    add_place(out, d, row, 1);
    json_add_text(out, "renamed_from",
                  r->renamed ? d->sides[0]->functions[d->match.member[0][r->first[0]]].name : NULL);
}

static void add_estimate(struct buffer *out, const struct diff_estimate *x, bool known)
{
    json_add_known(out, "change", expm1(x->log), known);
    json_add_known(out, "low", expm1(x->low), known);
    json_add_known(out, "high", expm1(x->high), known);
    json_add_known(out, "p", x->p, known && x->error > 0);
}

/* Which sides have inlined copies, of which no call is counted: it matters where numbers of calls changed, and on the
 * side that lacks a function. */
static void add_inlined(struct buffer *out, const struct render_diff *in, enum diff_metric metric,
                        const struct diff_item *x)
{
    static const char *const NAMES[] = {"inlined_a", "inlined_b"};
    const struct diff *d = in->diff;
    const bool calls = metric >= DIFF_TIME && x->verdict <= DIFF_ONLY_B && x->row < d->match.row_count;
    for (uint32_t s = 0; s < 2; s++) {
        if (calls) {
            json_add_flag(out, NAMES[s], diff_match_has_inlined(&d->match, d->sides, in->request->programs, x->row, s));
        } else if (x->row < d->match.row_count && d->match.rows[x->row].count[s] == 0) {
            json_add_flag(out, NAMES[s], d->match.rows[x->row].inlined);
        } else {
            json_add_text(out, NAMES[s], NULL);
        }
    }
}

/* Does a side have what the row speaks of? */
static bool is_there(const struct diff *d, const struct diff_item *x, uint32_t s)
{
    if (x->caller != DIFF_NONE || x->row == d->match.row_count) {
        return x->verdict != (s == 0 ? DIFF_ONLY_B : DIFF_ONLY_A);
    }
    return d->match.rows[x->row].count[s] > 0 || d->match.rows[x->row].idle;
}

/* An increase to more than twice is no sentence that helps. */
#define VISIBLE_MOST 1.0

static void add_item(struct buffer *out, const struct render_diff *in, enum diff_metric metric,
                     const struct diff_item *x)
{
    const struct diff *d = in->diff;
    const bool tested = x->estimated && x->estimate.error > 0;
    add_function(out, d, x->row);
    json_add_text(out, "caller", x->caller == DIFF_NONE ? NULL : diff_function(d, x->caller)->name);
    json_add_text(out, "verdict", diff_verdict_name(x->verdict));
    json_add_known(out, "a", x->ratio[0], is_there(d, x, 0));
    json_add_known(out, "b", x->ratio[1], is_there(d, x, 1));
    add_estimate(out, &x->estimate, x->estimated);
    json_add_known(out, "q", x->q, tested);
    const double visible = expm1(x->estimate.visible), needed = tested ? x->needed : x->testable;
    json_add_known(out, "visible", visible, tested && visible <= VISIBLE_MOST);
    json_add_text(out, "needs", diff_needs_name(x->needs));
    json_add_known(out, "data_needed", needed,
                   x->needs == DIFF_NEEDS_DATA || (tested && x->needs == DIFF_NEEDS_NOTHING));
    json_add_number(out, "ticks_a", x->ticks[0]);
    json_add_number(out, "ticks_b", x->ticks[1]);
    json_add_number(out, "share", x->share);
    add_inlined(out, in, metric, x);
    JSON_ADD(out, "}");
}

static void add_table(struct buffer *out, const struct render_diff *in, enum diff_metric metric)
{
    const struct diff_table *t = &in->diff->tables[metric];
    JSON_ADD(out, "{\"metric\":");
    render_json_string(out, diff_metric_name(metric));
    json_add_text(out, "not_computed", t->made ? NULL : t->why_not);
    JSON_ADD(out, ",\"counts\":{\"rows\":");
    buffer_add_u64(out, t->count, 0);
    for (unsigned i = 0; i < DIFF_VERDICTS; i++) {
        json_add_count(out, diff_verdict_name((enum diff_verdict)i), t->counts[i]);
    }
    JSON_ADD(out, "}");
    json_add_count(out, "tests", t->tests);
    if (t->common.functions > 0) {
        JSON_ADD(out, ",\"common\":{\"functions\":");
        buffer_add_u64(out, t->common.functions, 0);
        add_estimate(out, &t->common.estimate, true);
        JSON_ADD(out, "}");
    } else {
        json_add_text(out, "common", NULL);
    }
    json_add_known(out, "visible", expm1(t->visible), t->visible > 0 && expm1(t->visible) <= VISIBLE_MOST);
    JSON_ADD(out, ",\"rows\":[");
    for (uint32_t i = 0; i < t->count && i < in->limit; i++) {
        buffer_add_text(out, i > 0 ? ",\n" : "\n");
        add_item(out, in, metric, &t->items[i]);
    }
    JSON_ADD(out, "]}");
}

static void add_only(struct buffer *out, const struct render_diff *in, uint32_t s)
{
    const struct diff *d = in->diff;
    buffer_add_format(out, ",\"only_in_%c\":{\"count\":%u,\"rows\":[", s == 0 ? 'a' : 'b', d->only_count[s]);
    for (uint32_t i = 0; i < d->only_count[s] && i < in->limit; i++) {
        uint32_t row = d->only[s][i];
        buffer_add_text(out, i > 0 ? ",\n" : "\n");
        add_function(out, d, row);
        json_add_number(out, "self_share", row_share(d, s, row, d->row_self[s]));
        json_add_number(out, "total_share", row_share(d, s, row, d->row_total[s]));
        json_add_number(out, "calls", d->row_calls[s][(size_t)row * DIFF_VALUES]);
        json_add_flag(out, "idle", d->match.rows[row].idle);
        json_add_flag(out, "inlined", d->match.rows[row].inlined);
        JSON_ADD(out, "}");
    }
    JSON_ADD(out, "]}");
}

static void add_judgement(struct buffer *out, const struct render_diff *in)
{
    static const char *const WORDS[] = {"below", "above", "cannot-tell"};
    const struct diff_request *r = in->request;
    if (!r->judge) {
        json_add_text(out, "judgement", NULL);
        return;
    }
    JSON_ADD(out, ",\"judgement\":{\"verdict\":");
    render_json_string(out, WORDS[in->diff->judgement]);
    json_add_text(out, "metric", diff_metric_name(r->judge_metric));
    json_add_number(out, "threshold", r->threshold);
    json_add_count(out, "above", in->diff->above);
    json_add_count(out, "cannot_tell", in->diff->unknown);
    JSON_ADD(out, "}");
}

static void add_missing(struct buffer *out, const struct render_diff *in)
{
    bool any = false;
    JSON_ADD(out, ",\"watch_missing\":[");
    for (uint32_t i = 0; i < in->request->watch_count; i++) {
        if (!in->diff->watched[i]) {
            buffer_add_text(out, any ? "," : "");
            render_json_string(out, in->request->watch[i]);
            any = true;
        }
    }
    JSON_ADD(out, "]");
}

void render_diff(const struct render_diff *in, struct buffer *out)
{
    bool any = false;
    JSON_ADD(out, "{\"a\":");
    add_side(out, in, 0);
    JSON_ADD(out, ",\"b\":");
    add_side(out, in, 1);
    json_add_text(out, "dimension", in->diff->sides[0]->dimension);
    json_add_text(out, "time", in->diff->measured[0] && in->diff->measured[1] ? "measured" : "calls");
    json_add_flag(out, "paired", in->request->paired);
    json_add_number(out, "fdr", in->request->fdr);
    json_add_number(out, "confidence", in->request->confidence > 0 ? in->request->confidence : DIFF_CONFIDENCE);
    json_add_number(out, "planned", in->request->threshold);
    add_judgement(out, in);
    add_missing(out, in);
    JSON_ADD(out, ",\"metrics\":[");
    for (unsigned i = 0; i < DIFF_METRIC_COUNT; i++) {
        if (in->request->metrics[i]) {
            buffer_add_text(out, any ? ",\n" : "\n");
            add_table(out, in, (enum diff_metric)i);
            any = true;
        }
    }
    JSON_ADD(out, "]");
    add_only(out, in, 0);
    add_only(out, in, 1);
    JSON_ADD(out, "}\n");
}
