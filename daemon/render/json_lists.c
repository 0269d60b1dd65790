/* Answers other than reports, as JSON: lists of flat rows, one build, functions by address, callers, cycles, functions
 * that were never called, and comparisons. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/sum.h"
#include "proto/hex.h"
#include "proto/limits.h"
#include "proto/message.h"
#include "render/render_internal.h"

#define INSTANCE_SIZE 16

/* Begins the list "rows". */
static void begin_rows(struct buffer *out)
{
    JSON_ADD(out, "{\"rows\":[");
}

/* Begins a row on a line of its own. */
static void begin_row(struct buffer *out)
{
    json_next(out);
    JSON_ADD(out, "\n{");
}

/* What was asked for. */
static void add_source(struct buffer *out, const struct render_input *in)
{
    json_add_text(out, "build_id", in->build_id);
    json_add_text(out, "name", in->build_name);
    json_add_text(out, "scope", in->scope);
}

/* How exact the sum is, and the window that was used; the end of an answer. */
static void add_basis(struct buffer *out, const struct render_input *in)
{
    json_add_exact_parts(out, in->provenance->inexact);
    json_add_exact(out, in->provenance->inexact);
    json_add_meanings(out, in->provenance->inexact);
    json_add_window(out, in->used_since, in->used_until);
    JSON_ADD(out, "}\n");
}

static void add_series_times(struct buffer *out, const char *key, const void *row)
{
    const struct series_row *r = row;
    (void)key;
    json_add_times(out, r->self, r->children);
    if (r->has_stacks) {
        json_add_text(out, "time_shown", r->time_measured ? "measured" : "calls");
    }
    json_add_measured(out, r->is_measured ? &r->measured : NULL);
}

static void add_in_cycle(struct buffer *out, const char *key, const void *row)
{
    json_add_flag(out, key, ((const struct series_row *)row)->cycle != 0);
}

void render_series(const struct render_series *s, struct buffer *out)
{
#define F(key, member) JSON_FIELD(struct series_row, key, member)
#define AS(key, member, as) JSON_AS(struct series_row, key, member, as)
    static const struct json_field ROW[] = {AS("width", width, JSON_SECONDS),
                                            F("time", time),
                                            JSON_WITH("", add_series_times),
                                            F("calls", calls),
                                            F("self_calls", self_calls),
                                            JSON_WITH("in_cycle", add_in_cycle),
                                            F("seconds", seconds),
                                            F("uploads", uploads),
                                            F("processes_started", processes),
                                            AS("", inexact, JSON_EXACT)};
#undef F
#undef AS
    begin_rows(out);
    json_add_rows(out, true, ROW, JSON_COUNT_OF(ROW), s->rows, s->row_count, sizeof *s->rows);
    JSON_ADD(out, "]");
    json_add_text(out, "next", NULL);
    json_add_text(out, "build_id", s->build_id);
    json_add_address(out, "address", s->address);
    json_add_text(out, "name", s->name);
    json_add_text(out, "dimension", s->dimension);
    json_add_seconds(out, "step", s->step);
    json_add_window(out, s->since, s->until);
    JSON_ADD(out, "}\n");
}

void render_groups(const struct render_groups *g, struct buffer *out)
{
#define F(key, member) JSON_FIELD(struct group_row, key, member)
    static const struct json_field FIELDS[] = {F("processes_started", processes),
                                               F("hosts", hosts),
                                               F("seconds", seconds),
                                               F("calls", calls),
                                               F("first", first),
                                               F("last", last)};
#undef F
    begin_rows(out);
    for (size_t i = 0; i < g->row_count; i++) {
        const struct group_row *row = &g->rows[i];
        begin_row(out);
        json_add_count(out, "uploads", row->uploads);
        for (size_t k = 0; k < g->label_count; k++) {
            JSON_ADD(out, ",\"label_");
            buffer_add_text(out, g->labels[k]);
            JSON_ADD(out, "\":");
            render_json_string(out, row->values[k]);
        }
        if (g->step > 0) {
            json_add_time(out, "time", row->time);
            json_add_seconds(out, "width", row->width);
        }
        json_add_fields(out, FIELDS, JSON_COUNT_OF(FIELDS), row);
        json_add_exact(out, row->inexact);
        JSON_ADD(out, "}");
    }
    JSON_ADD(out, "]");
    json_add_text(out, "next", g->next);
    json_list(out, "by");
    for (size_t i = 0; i < g->label_count; i++) {
        json_add_item(out, g->labels[i]);
    }
    JSON_ADD(out, "]");
    json_add_seconds(out, "step", g->step);
    json_add_text(out, "dimension", g->dimension);
    json_add_window(out, g->since, g->until);
    JSON_ADD(out, "}\n");
}

/* Seconds of each step. */
static void add_steps(struct buffer *out, const char *key, const double *seconds, size_t count)
{
    json_list(out, key);
    for (size_t k = 0; k < count; k++) {
        json_next(out);
        buffer_add_shortest(out, seconds[k]);
    }
    JSON_ADD(out, "]");
}

void render_joined(const struct render_joined *j, struct buffer *out)
{
#define F(key, member) JSON_FIELD(struct joined_row, key, member)
    static const struct json_field COUNTS[] = {F("calls", calls), F("self_calls", self_calls), F("programs", programs),
                                               F("builds", builds),
                                               JSON_AS(struct joined_row, "", inexact, JSON_EXACT)};
#undef F
#define F(key, member) JSON_FIELD(struct joined_rest, key, member)
    static const struct json_field SUMS[] = {
        F("programs", programs), F("uploads", uploads), F("processes_started", processes),
        F("seconds", seconds),   F("ticks", ticks),     F("calls", calls)};
    static const struct json_field NOT_JOINED[] = {F("unnamed_builds", unnamed_builds),
                                                   F("unnamed_functions", unnamed_functions),
                                                   F("unnamed_seconds", unnamed_seconds),
                                                   F("ambiguous_names", ambiguous_names),
                                                   F("ambiguous_functions", ambiguous_functions),
                                                   F("ambiguous_seconds", ambiguous_seconds),
                                                   F("other_seconds", other_seconds),
                                                   F("programs", programs_left)};
#undef F
    const char *const *shorts = NULL;
    if (j->short_names) {
        const char **whole = ARENA_ARRAY(j->arena, j->row_count + 1, const char *);
        bool *cplusplus = ARENA_ARRAY(j->arena, j->row_count + 1, bool);
        for (size_t i = 0; i < j->row_count; i++) {
            whole[i] = j->rows[i].name;
            /* A row has no symbol, so that :: and < tell a name of C++. */
            cplusplus[i] = strstr(whole[i], "::") || strchr(whole[i], '<');
        }
        shorts = name_short_list(whole, cplusplus, (uint32_t)j->row_count, j->arena);
    }
    begin_rows(out);
    for (size_t i = 0; i < j->row_count; i++) {
        const struct joined_row *row = &j->rows[i];
        const double seconds = j->rest->seconds;
        begin_row(out);
        json_add_text(out, "name", row->name);
        if (shorts && shorts[i] && shorts[i] != row->name) {
            json_add_text(out, "short_name", shorts[i]);
        }
        json_add_text(out, "file", row->file);
        json_add_text(out, "object", row->object);
        json_add_number(out, "self_seconds", row->self);
        json_add_number(out, "total_seconds", row->total);
        json_add_number(out, "percent", seconds > 0 ? 100 * row->self / seconds : 0);
        json_add_number(out, "total_percent", seconds > 0 ? 100 * row->total / seconds : 0);
        json_add_fields(out, COUNTS, JSON_COUNT_OF(COUNTS), row);
        if (j->step > 0) {
            add_steps(out, "trend", row->trend, j->steps);
        }
        JSON_ADD(out, "}");
    }
    JSON_ADD(out, "]");
    if (j->step > 0) {
        json_add_seconds(out, "step", j->step);
        json_add_time(out, "trend_since", j->begin);
    }
    json_add_text(out, "next", j->next);
    json_add_text(out, "sort", j->sort);
    json_add_text(out, "dimension", j->dimension);
    json_add_count(out, "names", j->names);
    json_add_fields(out, SUMS, JSON_COUNT_OF(SUMS), j->rest);
    json_add_time(out, "first", j->first);
    json_add_time(out, "last", j->last);
    json_add_exact(out, j->rest->inexact);
    json_begin(out, "not_joined");
    json_add_fields(out, NOT_JOINED, JSON_COUNT_OF(NOT_JOINED), j->rest);
    JSON_ADD(out, "}");
    json_add_window(out, j->since, j->until);
    JSON_ADD(out, "}\n");
}

void render_loads(const struct render_loads *l, struct buffer *out)
{
    begin_rows(out);
    for (size_t i = 0; i < l->row_count; i++) {
        const struct load_row *row = &l->rows[i];
        begin_row(out);
        json_add_text(out, "build_id", row->build_id);
        json_add_text(out, "dimension", row->dimension);
        add_steps(out, "seconds", row->seconds, l->step_count);
        json_begin(out, "labels");
        for (size_t k = 0; k < l->label_count; k++) {
            json_list(out, l->labels[k]);
            for (const char *const *value = row->values[k]; *value; value++) {
                json_add_item(out, *value);
            }
            JSON_ADD(out, "]");
        }
        JSON_ADD(out, "}");
        json_add_count(out, "hosts", row->hosts);
        json_add_count(out, "calls", row->calls);
        json_add_count(out, "processes_started", row->processes);
        JSON_ADD(out, "}");
    }
    JSON_ADD(out, "]");
    json_add_text(out, "next", l->next);
    json_add_seconds(out, "step", l->step);
    json_add_window(out, l->begin, l->begin + (int64_t)l->step_count * l->step);
    JSON_ADD(out, "}\n");
}

static void add_instance(struct buffer *out, const char *key, const void *row)
{
    const struct process_row *r = row;
    const uint8_t *instance = strcmp(key, "parent") == 0 ? r->parent : r->instance;
    char digits[2 * INSTANCE_SIZE + 1];
    if (instance) {
        hex_put(digits, instance, INSTANCE_SIZE);
    }
    json_add_text(out, key, instance ? digits : NULL);
}

static void add_labels(struct buffer *out, const char *key, const void *row)
{
    const struct process_row *r = row;
    json_begin(out, key);
    for (size_t i = 0; i < r->label_count; i++) {
        json_next(out);
        render_json_string(out, r->labels[i].name);
        JSON_ADD(out, ":");
        render_json_string(out, r->labels[i].value);
    }
    JSON_ADD(out, "}");
}

static void add_age(struct buffer *out, const char *key, const void *row)
{
    const struct process_row *r = row;
    json_add_seconds(out, key, r->now > r->started && r->started > 0 ? r->now - r->started : 0);
}

static void add_note(struct buffer *out, const char *key, const void *row)
{
    const char *note = ((const struct build_row *)row)->note;
    json_add_text(out, key, note ? note : "");
}

static void add_function_times(struct buffer *out, const char *key, const void *row)
{
    const struct function_row *r = row;
    (void)key;
    json_add_times(out, r->self, r->children);
}

#define F(key, member) JSON_FIELD(struct build_row, key, member)
#define AS(key, member, as) JSON_AS(struct build_row, key, member, as)
static const struct json_field BUILD[] = {AS("build_id", build_id.text, JSON_CHARS),
                                          F("name", name),
                                          F("is_program", is_program),
                                          F("first_seen", first_seen),
                                          F("last_seen", last_seen),
                                          F("uploads", uploads),
                                          F("processes_started", processes),
                                          AS("seconds", nanoseconds, JSON_NANOSECONDS),
                                          F("calls", calls),
                                          AS("", inexact, JSON_EXACT),
                                          F("symbols", has_names),
                                          JSON_WITH("note", add_note)};
#undef F
#undef AS
#define F(key, member) JSON_FIELD(struct label_name_row, key, member)
static const struct json_field LABEL_NAME[] = {F("name", name), F("values", values), F("uploads", uploads)};
#undef F
/* A build shows the whole row, a list of values no name. */
#define F(key, member) JSON_FIELD(struct label_row, key, member)
static const struct json_field LABEL[] = {F("name", name), F("value", value), F("uploads", uploads)};
#undef F
#define F(key, member) JSON_FIELD(struct version_row, key, member)
static const struct json_field VERSION[] = {
    F("program", program),   JSON_AS(struct version_row, "version", version, JSON_NAMED),
    F("build_id", build_id), F("first", first),
    F("last", last),         F("uploads", uploads)};
#undef F
#define F(key, member) JSON_FIELD(struct fleet_row, key, member)
static const struct json_field HOST[] = {F("name", name),
                                         F("identity", identity),
                                         F("tenant", tenant),
                                         F("machine_id", machine),
                                         F("version", version),
                                         F("first_seen", first),
                                         F("last_seen", last),
                                         F("last_upload", delivered),
                                         JSON_AS(struct fleet_row, "lag_seconds", lag, JSON_SECONDS),
                                         F("restored", restored),
                                         F("two_machines_seen", two_machines)};
#undef F
#define F(key, member) JSON_FIELD(struct process_row, key, member)
#define AS(key, member, as) JSON_AS(struct process_row, key, member, as)
static const struct json_field PROCESS[] = {JSON_WITH("instance", add_instance),
                                            JSON_WITH("parent", add_instance),
                                            F("pid", pid),
                                            F("pid_inside", pid_inside),
                                            F("uid", uid),
                                            F("build_id", build_id),
                                            F("name", name),
                                            JSON_WITH("labels", add_labels),
                                            F("started", started),
                                            JSON_WITH("age_seconds", add_age),
                                            F("state", state),
                                            F("mode", mode),
                                            F("rate", rate),
                                            F("rate_asked", rate_asked),
                                            F("calls", calls),
                                            F("ticks", ticks),
                                            F("calls_per_second", calls_per_second),
                                            AS("cpu_seconds", cpu_ns, JSON_NANOSECONDS),
                                            AS("overhead", overhead, JSON_KNOWN),
                                            AS("overhead_below", overhead_below, JSON_POSITIVE),
                                            F("exact", exact),
                                            F("calls_exact", calls_exact),
                                            F("ticks_exact", ticks_exact),
                                            F("why", why),
                                            F("memory_bytes", bytes),
                                            F("harvested", harvested)};
#undef F
#undef AS
#define F(key, member) JSON_FIELD(struct function_row, key, member)
static const struct json_field FUNCTION[] = {F("name", name),
                                             F("raw_name", raw),
                                             F("file", file),
                                             F("build_id", build_id),
                                             JSON_AS(struct function_row, "address", address, JSON_ADDRESS),
                                             F("index", index),
                                             JSON_WITH("", add_function_times),
                                             F("percent", percent),
                                             F("calls", calls),
                                             F("self_calls", self_calls),
                                             F("cycle", cycle)};
#undef F

void render_list(enum render_list list, const void *rows, size_t n, const char *next, struct buffer *out)
{
    static const struct {
        const struct json_field *fields;
        size_t count, size;
        bool lines;
    } LISTS[] = {[RENDER_BUILDS] = {BUILD, JSON_COUNT_OF(BUILD), sizeof(struct build_row), false},
                 [RENDER_LABELS] = {LABEL_NAME, JSON_COUNT_OF(LABEL_NAME), sizeof(struct label_name_row), false},
                 [RENDER_VALUES] = {LABEL + 1, JSON_COUNT_OF(LABEL) - 1, sizeof(struct label_row), false},
                 [RENDER_VERSIONS] = {VERSION, JSON_COUNT_OF(VERSION), sizeof(struct version_row), true},
                 [RENDER_HOSTS] = {HOST, JSON_COUNT_OF(HOST), sizeof(struct fleet_row), true},
                 [RENDER_PROCESSES] = {PROCESS, JSON_COUNT_OF(PROCESS), sizeof(struct process_row), false},
                 [RENDER_FUNCTIONS] = {FUNCTION, JSON_COUNT_OF(FUNCTION), sizeof(struct function_row), false}};
    begin_rows(out);
    json_add_rows(out, LISTS[list].lines, LISTS[list].fields, LISTS[list].count, rows, n, LISTS[list].size);
    JSON_ADD(out, "]");
    json_add_text(out, "next", next);
    JSON_ADD(out, "}\n");
}

void render_build(const struct build_row *row, const struct label_row *labels, size_t label_count,
                  const char *const *companion_ids, const char *const *companion_names, size_t companion_count,
                  uint32_t variants, struct buffer *out)
{
    json_begin(out, NULL);
    json_add_fields(out, BUILD, JSON_COUNT_OF(BUILD), row);
    if (variants == 0) {
        json_add_text(out, "variants", NULL);
    } else {
        json_add_count(out, "variants", variants);
    }
    json_list(out, "labels");
    json_add_rows(out, false, LABEL, JSON_COUNT_OF(LABEL), labels, label_count, sizeof *labels);
    JSON_ADD(out, "]");
    json_list(out, "companions");
    for (size_t i = 0; i < companion_count; i++) {
        json_begin(out, NULL);
        json_add_text(out, "build_id", companion_ids[i]);
        json_add_text(out, "name", companion_names[i]);
        JSON_ADD(out, "}");
    }
    JSON_ADD(out, "]}\n");
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
    for (uint32_t i = 0; o && i < what->line_count && o->digest_count > 0; i++) {
        const uint32_t file = what->lines[i].file;
        uint32_t seen = 0;
        while (what->lines[seen].file != file) {
            seen++;
        }
        const struct object_digest *d =
            seen < i ? NULL : bsearch(&file, o->digests, o->digest_count, sizeof *d, compare_file);
        while (d && d > o->digests && d[-1].file == file) {
            d--;
        }
        for (; d && d < o->digests + o->digest_count && d->file == file; d++) {
            char text[2 * OBJECT_DIGEST_BYTES + 1];
            hex_put(text, d->md5, OBJECT_DIGEST_BYTES);
            begin_row(out);
            json_add_text(out, "file", object_name(o, file));
            json_add_text(out, "md5", text);
            JSON_ADD(out, "}");
        }
    }
}

void render_addresses(const struct render_input *in, const struct render_addresses *what, struct buffer *out)
{
#define F(key, member) JSON_FIELD(struct address_ticks, key, member)
    static const struct json_field TICKS[] = {F("bytes", bytes),
                                              JSON_AS(struct address_ticks, "address", address, JSON_ADDRESS),
                                              F("ticks", ticks), F("seconds", seconds), F("shared", shared)};
#undef F
    const struct report *r = in->report;
    const struct report_function *f = what->function;
    begin_rows(out);
    json_add_rows(out, true, TICKS, JSON_COUNT_OF(TICKS), what->ticks, what->tick_count, sizeof *what->ticks);
    JSON_ADD(out, "]");
    json_list(out, "calls");
    for (uint32_t i = 0; i < what->call_count; i++) {
        const struct address_calls *c = &what->calls[i];
        begin_row(out);
        json_add_text(out, "callee", c->callee ? c->callee->name : "");
        json_add_text(out, "build_id", c->callee ? json_find_build(r, c->callee->build) : "");
        if (c->callee) {
            json_add_address(out, "callee_address", c->callee->address);
        } else {
            json_add_text(out, "callee_address", NULL);
        }
        json_add_address(out, "address", c->address);
        json_add_count(out, "calls", c->calls);
        JSON_ADD(out, "}");
    }
    JSON_ADD(out, "]");
    json_list(out, "lines");
    for (uint32_t i = 0; i < what->line_count; i++) {
        begin_row(out);
        json_add_text(out, "file", object_name(what->object, what->lines[i].file));
        json_add_count(out, "line", what->lines[i].line);
        json_add_address(out, "address", what->lines[i].low);
        json_add_count(out, "bytes", what->lines[i].high - what->lines[i].low);
        JSON_ADD(out, "}");
    }
    JSON_ADD(out, "]");
    json_list(out, "files");
    add_files(out, what);
    JSON_ADD(out, "]");
    json_list(out, "instructions");
    for (uint32_t k = 0; k < what->instruction_count; k++) {
        const struct object_instruction *i = &what->instructions[k];
        const char *written = what->object->instruction_texts + i->text;
        char text[LIMIT_INSTRUCTION_TEXT + 32];
        if (i->targeted) {
            (void)snprintf(text, sizeof text, "%s0x%" PRIx64, written, i->target);
        }
        begin_row(out);
        json_add_text(out, "text", i->targeted ? text : written);
        json_add_address(out, "address", i->address);
        json_add_count(out, "bytes", i->size);
        if (i->targeted) {
            json_add_address(out, "target", i->target);
        }
        if (what->target_names[k]) {
            json_add_text(out, "target_name", what->target_names[k]);
        }
        JSON_ADD(out, "}");
    }
    JSON_ADD(out, "]");
    json_begin(out, "function");
    json_add_text(out, "name", f->name);
    json_add_text(out, "raw_name", f->raw);
    json_add_text(out, "build_id", json_find_build(r, f->build));
    json_add_text(out, "object", f->build < r->build_count ? r->build_names[f->build] : "");
    json_add_address(out, "address", f->address);
    json_add_count(out, "bytes", f->size);
    json_add_text(out, "file", f->file ? f->file : "");
    json_add_count(out, "calls", f->calls);
    json_add_count(out, "self_calls", f->self_calls);
    json_add_number(out, "self_seconds", f->self);
    JSON_ADD(out, "}");
    json_add_count(out, "ticks", r->ticks);
    json_add_number(out, "seconds", r->total);
    json_add_number(out, "overdispersion", what->overdispersion);
    json_add_flag(out, "call_sites", (in->provenance->inexact & INEXACT_CALLER_BUCKET) == 0);
    add_source(out, in);
    json_add_text(out, "dimension", r->dimension);
    add_basis(out, in);
}

void render_callers(const struct render_input *in, const struct callers *c, size_t limit, struct buffer *out)
{
    static const char *const METHODS[] = {"none", "stacks", "calls"};
    const uint32_t inexact = in->provenance->inexact; /* of sampled calls, a ratio says nothing */
    const struct report_function *f = c->function;
    begin_rows(out);
    for (uint32_t i = 0; i < c->row_count && i < limit; i++) {
        const struct callers_row *row = &c->rows[i];
        const struct report_arc *arc = row->arc;
        const struct report_function *caller = &in->report->functions[arc->other];
        const bool timed = row->method != CALLERS_NONE, interval = timed && row->low <= row->high;
        begin_row(out);
        json_add_text(out, "caller", caller->name);
        json_add_place(out, in->report, caller);
        json_add_text(out, "file", caller->file ? caller->file : "");
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
    JSON_ADD(out, "]");
    json_begin(out, "function");
    json_add_identity(out, in->report, f);
    json_add_text(out, "file", f->file ? f->file : "");
    json_add_count(out, "calls", f->calls);
    json_add_count(out, "self_calls", f->self_calls);
    json_add_count(out, "cycle", f->cycle);
    json_add_times(out, f->self, f->children);
    json_add_known(out, "measured_total", f->measured ? f->measured->total : 0, f->measured);
    JSON_ADD(out, "}");
    json_add_count(out, "row_count", c->row_count);
    json_add_text(out, "method", METHODS[c->method]);
    json_add_text(out, "stacks_refused", c->stacks_refused);
    add_source(out, in);
    json_add_text(out, "dimension", in->report->dimension);
    add_basis(out, in);
}

/* Arcs inside a cycle, or those of them that break it. */
static void add_arcs(struct buffer *out, const char *key, const struct report *r, const struct render_cycle *x,
                     bool breaks, size_t limit)
{
    const struct report_arc *members = x->cycle->members;
    size_t n = 0;
    json_list(out, key);
    for (uint32_t i = 0; i < x->arc_count && n < limit; i++) {
        if (breaks && !x->arcs[i].breaks) {
            continue;
        }
        n++;
        json_begin(out, NULL);
        json_add_text(out, "caller", r->functions[members[x->arcs[i].from].other].name);
        json_add_text(out, "callee", r->functions[members[x->arcs[i].to].other].name);
        json_add_count(out, "calls", x->arcs[i].calls);
        JSON_ADD(out, "}");
    }
    JSON_ADD(out, "]");
}

void render_cycles(const struct render_input *in, const struct render_cycle *cycles, uint32_t count, size_t limit,
                   struct buffer *out)
{
    const struct report *r = in->report->shown;
    begin_rows(out);
    for (uint32_t i = 0; i < count; i++) {
        const struct render_cycle *x = &cycles[i];
        const struct report_cycle *c = x->cycle;
        uint64_t calls = 0;
        uint32_t breaking = 0;
        for (uint32_t k = 0; k < x->arc_count; k++) {
            breaking += x->arcs[k].breaks;
            sum_saturate(&calls, x->arcs[k].breaks ? x->arcs[k].calls : 0);
        }
        begin_row(out);
        json_add_count(out, "number", c->number);
        json_add_times(out, c->self, c->children);
        json_add_number(out, "percent", c->percent);
        json_add_count(out, "calls_outside", c->calls_outside);
        json_add_count(out, "calls_inside", c->calls_inside);
        json_add_count(out, "member_count", c->member_count);
        json_add_count(out, "arc_count", x->arc_count);
        json_add_count(out, "break_count", breaking);
        json_add_count(out, "break_calls", calls);
        json_list(out, "members");
        for (uint32_t k = 0; k < c->member_count && k < limit; k++) {
            const struct report_function *f = &r->functions[c->members[k].other];
            json_begin(out, NULL);
            json_add_text(out, "name", f->name);
            json_add_text(out, "raw_name", f->raw);
            json_add_address(out, "address", f->address);
            json_add_times(out, f->self, f->children);
            json_add_count(out, "calls_outside", f->calls_outside);
            json_add_count(out, "calls_inside", f->calls_inside);
            JSON_ADD(out, "}");
        }
        JSON_ADD(out, "]");
        add_arcs(out, "arcs", r, x, false, limit);
        add_arcs(out, "break", r, x, true, limit);
        JSON_ADD(out, "}");
    }
    JSON_ADD(out, "]");
    json_add_count(out, "count", r->cycle_count);
    add_source(out, in);
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
#define F(key, member) JSON_FIELD(struct never_row, key, member)
    static const struct json_field BEHIND[] = {F("bytes", bytes), F("copies", copies),
                                               F("entered_elsewhere", entered_elsewhere), F("inlined", inlined)};
#undef F
#define F(key, member) JSON_FIELD(struct never_called, key, member)
    static const struct json_field SUMS[] = {
        F("row_count", count),           F("functions", functions),  F("bytes", bytes),
        F("copy_bytes", copy_bytes),     F("symbols", named),        F("inlined_known", knows_inlined),
        F("counted_functions", counted), F("not_called", not_called)};
#undef F
    const struct provenance *p = in->provenance;
    begin_rows(out);
    for (uint32_t i = 0; i < never->count && i < limit; i++) {
        const struct report_function *f = never->rows[i].function;
        begin_row(out);
        json_add_text(out, "function", f->name);
        json_add_text(out, "raw_name", f->raw);
        json_add_text(out, "file", f->file);
        json_add_address(out, "address", f->address);
        json_add_fields(out, BEHIND, JSON_COUNT_OF(BEHIND), &never->rows[i]);
        JSON_ADD(out, "}");
    }
    JSON_ADD(out, "]");
    add_source(out, in);
    json_add_fields(out, SUMS, JSON_COUNT_OF(SUMS), never);
    json_add_count(out, "processes_started", p->processes);
    /* With probability 95 %, fewer than this part of all processes enters a function that none of n entered ("rule of
     * three"). Only counts that lack nothing bound anything. */
    const bool known = p->processes >= 3 && (p->inexact & INEXACT_CALLS) == 0;
    json_add_known(out, "bound", known ? 3 / (double)p->processes : 0, known);
    add_basis(out, in);
}

static void add_side(struct buffer *out, const char *key, const struct render_diff *in, uint32_t s)
{
    const struct render_input *side = &in->sides[s];
    const struct diff_side *made = in->diff->sides[s];
    const struct provenance *p = side->provenance;
    json_begin(out, key);
    add_source(out, side);
    json_add_text(out, "match", side->match);
    json_add_text(out, "version", in->versions[s]);
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

/* Begins the object of a function of the comparison, or of all together. The place of a function on a side is that of
 * the first of its clones; it is null if the side does not have the function. */
static void begin_function(struct buffer *out, const struct diff *d, uint32_t row)
{
    static const char *const NONE[] = {"function",   "file",      "object",     "clones_a",  "clones_b",
                                       "build_id_a", "address_a", "build_id_b", "address_b", "renamed_from"};
    static const char *const BUILDS[] = {"build_id_a", "build_id_b"}, *const ADDRESSES[] = {"address_a", "address_b"};
    const struct report_function *f = diff_function(d, row);
    begin_row(out);
    if (!f) {
        for (size_t i = 0; i < sizeof NONE / sizeof *NONE; i++) {
            json_add_text(out, NONE[i], NULL);
        }
        return;
    }
    const struct diff_row *r = &d->match.rows[row];
    json_add_text(out, "function", f->name);
    json_add_text(out, "file", f->file);
    json_add_text(out, "object", d->sides[r->count[1] > 0 ? 1 : 0]->build_names[f->build]);
    json_add_count(out, "clones_a", r->count[0]);
    json_add_count(out, "clones_b", r->count[1]);
    for (uint32_t s = 0; s < 2; s++) {
        if (r->count[s] == 0) {
            json_add_text(out, BUILDS[s], NULL);
            json_add_text(out, ADDRESSES[s], NULL);
        } else {
            const struct report_function *first = &d->sides[s]->functions[d->match.member[s][r->first[s]]];
            json_add_text(out, BUILDS[s], d->sides[s]->builds[first->build]);
            json_add_address(out, ADDRESSES[s], first->address);
        }
    }
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

/* True if a side has what the row speaks of. */
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
    static const char *const INLINED[] = {"inlined_a", "inlined_b"};
    const struct diff *d = in->diff;
    const bool tested = x->estimated && x->estimate.error > 0;
    const double visible = expm1(x->estimate.visible), needed = tested ? x->needed : x->testable;
    begin_function(out, d, x->row);
    json_add_text(out, "caller", x->caller == DIFF_NONE ? NULL : diff_function(d, x->caller)->name);
    json_add_text(out, "verdict", diff_verdict_name(x->verdict));
    json_add_text(out, "words", diff_words(in, metric, x));
    json_add_known(out, "a", x->ratio[0], is_there(d, x, 0));
    json_add_known(out, "b", x->ratio[1], is_there(d, x, 1));
    add_estimate(out, &x->estimate, x->estimated);
    json_add_known(out, "q", x->q, tested);
    json_add_known(out, "visible", visible, tested && visible <= VISIBLE_MOST);
    json_add_text(out, "needs", diff_needs_name(x->needs));
    json_add_known(out, "data_needed", needed,
                   x->needs == DIFF_NEEDS_DATA || (tested && x->needs == DIFF_NEEDS_NOTHING));
    json_add_number(out, "ticks_a", x->ticks[0]);
    json_add_number(out, "ticks_b", x->ticks[1]);
    json_add_number(out, "share", x->share);
    for (uint32_t s = 0; s < 2; s++) {
        json_add_known(out, s == 0 ? "seconds_a" : "seconds_b", x->seconds[s],
                       x->caller == DIFF_NONE && d->sides[s]->processes[0] > 0 && is_there(d, x, s));
    }

    /* No call of an inlined copy is counted. Sides with such copies matter where numbers of calls changed, and on the
     * side that lacks a function. */
    const bool calls = metric >= DIFF_TIME && x->verdict <= DIFF_ONLY_B && x->row < d->match.row_count;
    for (uint32_t s = 0; s < 2; s++) {
        if (calls) {
            json_add_flag(out, INLINED[s],
                          diff_match_has_inlined(&d->match, d->sides, in->request->programs, x->row, s));
        } else if (x->row < d->match.row_count && d->match.rows[x->row].count[s] == 0) {
            json_add_flag(out, INLINED[s], d->match.rows[x->row].inlined);
        } else {
            json_add_text(out, INLINED[s], NULL);
        }
    }
    JSON_ADD(out, "}");
}

static void add_only(struct buffer *out, const char *key, const struct render_diff *in, uint32_t s)
{
    const struct diff *d = in->diff;
    const double seconds = d->sides[s]->seconds[0];
    json_begin(out, key);
    json_add_count(out, "count", d->only_count[s]);
    json_list(out, "rows");
    for (uint32_t i = 0; i < d->only_count[s] && i < in->limit; i++) {
        const uint32_t row = d->only[s][i];
        const size_t at = (size_t)row * DIFF_VALUES;
        begin_function(out, d, row);
        json_add_number(out, "self_share", seconds > 0 ? d->row_self[s][at] / seconds : 0);
        json_add_number(out, "total_share", seconds > 0 ? d->row_total[s][at] / seconds : 0);
        json_add_number(out, "calls", d->row_calls[s][at]);
        json_add_flag(out, "idle", d->match.rows[row].idle);
        json_add_flag(out, "inlined", d->match.rows[row].inlined);
        JSON_ADD(out, "}");
    }
    JSON_ADD(out, "]}");
}

void render_diff(const struct render_diff *in, struct buffer *out)
{
    static const char *const JUDGEMENTS[] = {"below", "above", "cannot-tell"};
    const struct diff_request *q = in->request;
    JSON_ADD(out, "{");
    json_add_text(out, "sentence", diff_sentence(in));
    json_add_text(out, "lead", diff_metric_name(diff_lead(in)));
    add_side(out, "a", in, 0);
    add_side(out, "b", in, 1);
    json_add_text(out, "dimension", in->diff->sides[0]->dimension);
    json_add_text(out, "time", in->diff->measured[0] && in->diff->measured[1] ? "measured" : "calls");
    json_add_flag(out, "paired", q->paired);
    json_add_number(out, "fdr", q->fdr);
    json_add_number(out, "confidence", q->confidence > 0 ? q->confidence : DIFF_CONFIDENCE);
    json_add_number(out, "planned", q->threshold);
    if (q->judge) {
        json_begin(out, "judgement");
        json_add_text(out, "verdict", JUDGEMENTS[in->diff->judgement]);
        json_add_text(out, "metric", diff_metric_name(q->judge_metric));
        json_add_number(out, "threshold", q->threshold);
        json_add_count(out, "above", in->diff->above);
        json_add_count(out, "cannot_tell", in->diff->unknown);
        JSON_ADD(out, "}");
    } else {
        json_add_text(out, "judgement", NULL);
    }
    json_list(out, "watch_missing");
    for (uint32_t i = 0; i < q->watch_count; i++) {
        if (!in->diff->watched[i]) {
            json_add_item(out, q->watch[i]);
        }
    }
    JSON_ADD(out, "]");
    json_list(out, "metrics");
    for (enum diff_metric metric = 0; metric < DIFF_METRIC_COUNT; metric++) {
        const struct diff_table *t = &in->diff->tables[metric];
        if (!q->metrics[metric]) {
            continue;
        }
        begin_row(out);
        json_add_text(out, "metric", diff_metric_name(metric));
        json_add_text(out, "not_computed", t->made ? NULL : t->why_not);
        json_begin(out, "counts");
        json_add_count(out, "rows", t->count);
        for (unsigned i = 0; i < DIFF_VERDICTS; i++) {
            json_add_count(out, diff_verdict_name((enum diff_verdict)i), t->counts[i]);
        }
        JSON_ADD(out, "}");
        json_add_count(out, "tests", t->tests);
        if (t->common.functions > 0) {
            json_begin(out, "common");
            json_add_count(out, "functions", t->common.functions);
            add_estimate(out, &t->common.estimate, true);
            JSON_ADD(out, "}");
        } else {
            json_add_text(out, "common", NULL);
        }
        json_add_known(out, "visible", expm1(t->visible), t->visible > 0 && expm1(t->visible) <= VISIBLE_MOST);
        json_list(out, "rows");
        for (uint32_t i = 0; i < t->count && i < in->limit; i++) {
            add_item(out, in, metric, &t->items[i]);
        }
        JSON_ADD(out, "]}");
    }
    JSON_ADD(out, "]");
    add_only(out, "only_in_a", in, 0);
    add_only(out, "only_in_b", in, 1);
    JSON_ADD(out, "}\n");
}
