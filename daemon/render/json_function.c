#include "render/json_function.h"

#include "render/json_write.h"
#include "render/name_short.h"
#include "render/render.h"
#include "render/select.h"

#define NAMES_BYTES_MAX ((size_t)4 << 30)

/* What a row says about the other end is made once a function: the functions themselves do not fit a cache. */
static void make_other(const struct report *r, struct json_names *names, uint32_t position)
{
    const struct report_function *f = &r->functions[position];
    struct buffer *out = &names->other;
    JSON_ADD(out, "{\"index\":");
    buffer_add_u64(out, f->index, 0);
    JSON_ADD(out, ",\"name\":");
    buffer_add(out, names->text.data + names->start[position], names->text.size - names->start[position]);
    if (f->cycle != 0) {
        JSON_ADD(out, ",\"cycle\":");
        buffer_add_u64(out, f->cycle, 0);
    }
}

static void names_free(void *names)
{
    buffer_done(&((struct json_names *)names)->text);
    buffer_done(&((struct json_names *)names)->other);
}

void json_names_make(const struct report *report, bool is_short, struct arena *a, struct json_names *names)
{
    uint32_t n = report->function_count;
    size_t *start = ARENA_ARRAY(a, (size_t)n + 1, size_t), *other_start = ARENA_ARRAY(a, (size_t)n + 1, size_t);
    uint32_t *build = ARENA_ARRAY(a, (size_t)n + 1, uint32_t);
    double *calls = ARENA_ARRAY(a, (size_t)n + 1, double);
    *names =
        (struct json_names){.start = start, .other_start = other_start, .build = build, .calls = calls, .arena = a};
    buffer_init(&names->text, NAMES_BYTES_MAX);
    buffer_init(&names->other, NAMES_BYTES_MAX);
    arena_defer(a, &names->deferred, names_free, names);
    const char *const *shorts = is_short ? name_short_functions(report, a) : NULL;
    for (uint32_t i = 0; i < n; i++) {
        start[i] = names->text.size;
        other_start[i] = names->other.size;
        build[i] = report->functions[i].build;
        calls[i] = report_all_calls(&report->functions[i]);
        render_json_string(&names->text, report->functions[i].name);
        if (shorts != NULL && shorts[i] != report->functions[i].name) {
            json_add_text(&names->text, "short_name", shorts[i]);
        }
        make_other(report, names, i);
    }
    if (names->text.failed || names->other.failed) {
        arena_fail(a);
    }
    start[n] = names->text.size;
    other_start[n] = names->other.size;
}

void json_names_done(struct json_names *names)
{
    arena_undefer(names->arena, &names->deferred);
}

const char *json_find_build(const struct report *report, uint32_t build)
{
    return build < report->build_count ? report->builds[build] : "";
}

/* index, name and cycle of the other end, and its build where that is not the entry's. */
static void add_other(struct buffer *out, const struct report *r, const struct json_names *names, uint32_t other,
                      uint32_t build)
{
    if (other == REPORT_SPONTANEOUS) {
        JSON_ADD(out, "{\"index\":0,\"name\":\"<spontaneous>\"");
        return;
    }
    size_t start = names->other_start[other];
    buffer_add(out, names->other.data + start, names->other_start[other + 1] - start);
    if (names->build[other] != build) {
        json_add_text(out, "build_id", json_find_build(r, names->build[other]));
    }
}

/* A list of rows; what kind they are of. */
struct row_list {
    const char *key;
    const struct report_arc *arcs;
    uint32_t count;
    bool last_is_heaviest, is_static;
    double caller_calls; /* CALLERS: of each row's other end; 0: not known */
};
#define CALLERS (-1.0)

void json_add_measured(struct buffer *out, const struct report_measured *m)
{
    if (m == NULL) {
        return;
    }
    json_add_number(out, "measured_self", m->self);
    json_add_number(out, "measured_total", m->total);
    json_add_number(out, "measured_low", m->low);
    json_add_number(out, "measured_high", m->high);
    json_add_count(out, "measured_samples", m->samples);
    json_add_text(out, "measured_by", m->by_groups ? "groups" : "samples");
    json_add_flag(out, "measured_differs", m->differs);
}

void json_add_stacks(struct buffer *out, const struct report *report)
{
    const struct report_stack_facts *s = report->stacks;
    if (s == NULL) {
        return;
    }
    json_add_text(out, "time", report->time_measured ? "measured" : "calls");
    JSON_ADD(out, ",\"stacks\":{\"coverage\":");
    buffer_add_shortest(out, s->coverage);
    json_add_count(out, "count", s->ticks);
    json_add_count(out, "inferred", s->inferred);
    json_add_count(out, "cut", s->cut);
    json_add_count(out, "folded", s->folded);
    json_add_count(out, "incomplete", s->incomplete);
    json_add_flag(out, "by_groups", s->by_groups);
    json_add_count(out, "groups", s->groups);
    json_add_number(out, "overdispersion", s->overdispersion);
    JSON_ADD(out, "}");
}

static void add_row(struct buffer *out, const struct report *r, const struct json_names *names,
                    const struct row_list *list, const struct report_arc *arc, uint32_t build)
{
    const bool callers = list->caller_calls < 0 && arc->other != REPORT_SPONTANEOUS;
    const double caller_calls = callers ? names->calls[arc->other] : list->caller_calls;
    add_other(out, r, names, arc->other, build);
    json_add_count(out, "calls", arc->calls);
    json_add_count(out, "of_calls", arc->of_calls);
    if (arc->calls > 0 && caller_calls > 0 && !names->calls_sampled) {
        json_add_number(out, "calls_per_caller_call", (double)arc->calls / caller_calls);
    }
    json_add_number(out, "self_seconds", arc->self);
    json_add_number(out, "children_seconds", arc->children);
    json_add_measured(out, arc->measured);
    if (arc->measured != NULL && !arc->inside && arc->calls > 0 && names->calls_exact) {
        json_add_number(out, "measured_per_call", arc->measured->total / (double)arc->calls);
    }
    if (arc->inside) {
        JSON_ADD(out, ",\"inside\":true");
    }
    if (list->is_static) {
        JSON_ADD(out, ",\"static\":true");
    }
    if (arc->by_name) {
        JSON_ADD(out, ",\"by_name\":true");
    }
    if (arc->jumped) {
        JSON_ADD(out, ",\"jumped\":true");
    }
    JSON_ADD(out, "}");
}

/* The heaviest `most` rows of a list, 0: all, and what the others have. */
static void add_rows(struct buffer *out, const struct report *r, const struct json_names *names,
                     const struct row_list *list, uint32_t build, uint32_t most)
{
    struct row_cut cut = row_cut_make(list->arcs, list->count, most, list->last_is_heaviest);
    buffer_add_format(out, ",\"%s\":[", list->key);
    for (uint32_t i = 0; i < cut.count && !out->failed; i++) {
        if (i > 0) {
            JSON_ADD(out, ",");
        }
        add_row(out, r, names, list, &list->arcs[cut.first + i], build);
    }
    JSON_ADD(out, "]");
    if (cut.left > 0) {
        buffer_add_format(out, ",\"%s_left_out\":{\"rows\":%u", list->key, cut.left);
        json_add_count(out, "calls", cut.calls);
        json_add_number(out, "seconds", cut.seconds);
        JSON_ADD(out, "}");
    }
}

static const char *kind_name(enum report_kind kind)
{
    switch (kind) {
    case REPORT_FUNCTION:
        return "function";
    case REPORT_PLT:
        return "plt";
    case REPORT_GAP:
        return "gap";
    case REPORT_ADDRESS:
        return "address";
    case REPORT_UNKNOWN:
        break;
    }
    return "unknown";
}

void json_add_function(struct buffer *out, const struct report *report, const struct json_names *names,
                       uint32_t position, uint32_t rows)
{
    const struct report_function *f = &report->functions[position];
    JSON_ADD(out, "{\"index\":");
    buffer_add_u64(out, f->index, 0);
    JSON_ADD(out, ",\"name\":");
    /* The name of one function, in quotes, and its short_name. */
    buffer_add(out, names->text.data + names->start[position], names->start[position + 1] - names->start[position]);
    json_add_text(out, "raw_name", f->raw);
    json_add_text(out, "build_id", json_find_build(report, f->build));
    json_add_address(out, "address", f->address);
    json_add_count(out, "size", f->size);
    json_add_text(out, "kind", kind_name(f->kind));
    json_add_text(out, "file", f->file == NULL ? "" : f->file);
    json_add_count(out, "ticks", f->ticks_total);
    json_add_times(out, f->self, f->children);
    if (f->self_estimated) {
        json_add_number(out, "self_least", f->self_least);
        json_add_number(out, "self_most", f->self_most);
    }
    json_add_number(out, "percent", f->percent);
    json_add_measured(out, f->measured);
    json_add_count(out, "calls", f->calls);
    json_add_count(out, "calls_outside", f->calls_outside);
    json_add_count(out, "calls_inside", f->calls_inside);
    json_add_count(out, "self_calls", f->self_calls);
    json_add_count(out, "cycle", f->cycle);
    json_add_flag(out, "spontaneous", f->spontaneous);
    JSON_ADD(out, ",\"aliases\":[");
    for (uint32_t i = 0; i < f->alias_count; i++) {
        if (i > 0) {
            JSON_ADD(out, ",");
        }
        render_json_string(out, f->aliases[i]);
    }
    JSON_ADD(out, "]");
    const struct row_list lists[] = {
        {"callers", f->callers, f->caller_count, true, false, CALLERS},
        {"callees", f->callees, f->callee_count, false, false, report_all_calls(f)},
        {"static_callers", f->static_callers, f->static_caller_count, false, true, CALLERS},
        {"static_callees", f->static_callees, f->static_callee_count, false, true, report_all_calls(f)},
    };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        add_rows(out, report, names, &lists[i], f->build, rows);
    }
    JSON_ADD(out, "}");
}

void json_add_cycle(struct buffer *out, const struct report *report, const struct json_names *names, uint32_t position,
                    uint32_t rows)
{
    const struct report_cycle *c = &report->cycles[position];
    JSON_ADD(out, "{\"index\":");
    buffer_add_u64(out, c->index, 0);
    json_add_count(out, "number", c->number);
    json_add_number(out, "percent", c->percent);
    json_add_times(out, c->self, c->children);
    json_add_measured(out, c->measured);
    json_add_count(out, "calls_outside", c->calls_outside);
    json_add_count(out, "calls_inside", c->calls_inside);
    json_add_flag(out, "closed", c->closed);
    uint32_t build = c->member_count > 0 ? report->functions[c->members[0].other].build : 0;
    const struct row_list lists[] = {
        {"members", c->members, c->member_count, false, false, 0},
        {"callers", c->callers, c->caller_count, true, false, CALLERS},
        {"callees", c->callees, c->callee_count, false, false, (double)c->calls_outside},
    };
    json_add_count(out, "member_count", c->member_count);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        add_rows(out, report, names, &lists[i], build, rows);
    }
    JSON_ADD(out, "}");
}
