/* format=json: schema/report.schema.json says what every field means. */
#include <string.h>

#include "core/sum.h"
#include "proto/message.h"
#include "render/render_internal.h"

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

/* json_names_done frees. */
static void json_names_make(const struct report *report, bool is_short, struct arena *a, struct json_names *names)
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

static void json_names_done(struct json_names *names)
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

static void add_arc_row(struct buffer *out, const struct report *r, const struct json_names *names,
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
static void add_arc_rows(struct buffer *out, const struct report *r, const struct json_names *names,
                         const struct row_list *list, uint32_t build, uint32_t most)
{
    struct row_cut cut = row_cut_make(list->arcs, list->count, most, list->last_is_heaviest);
    buffer_add_format(out, ",\"%s\":[", list->key);
    for (uint32_t i = 0; i < cut.count && !out->failed; i++) {
        if (i > 0) {
            JSON_ADD(out, ",");
        }
        add_arc_row(out, r, names, list, &list->arcs[cut.first + i], build);
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

/* One object: the function with the heaviest `rows` of its callers and of its callees, 0: all. What a list leaves out
 * is said in KEY_left_out behind it: rows, and their calls and seconds. */
static void json_add_function(struct buffer *out, const struct report *report, const struct json_names *names,
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
        add_arc_rows(out, report, names, &lists[i], f->build, rows);
    }
    JSON_ADD(out, "}");
}

/* Likewise a cycle with its members, callers and callees. */
static void json_add_cycle(struct buffer *out, const struct report *report, const struct json_names *names,
                           uint32_t position, uint32_t rows)
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
        add_arc_rows(out, report, names, &lists[i], build, rows);
    }
    JSON_ADD(out, "}");
}

/* What collectors know beside ticks and calls, as JSON. */

static void add_share(struct buffer *out, bool known, double share)
{
    if (known) {
        buffer_add_shortest(out, share);
    } else {
        JSON_ADD(out, "null");
    }
}

/* Appends `,"collector":{…}`: every counter by its name, and the values derived from them; nothing if there are none.
 */
static void json_add_collector(struct buffer *out, const struct render_input *in)
{
    const struct coverage *c = in->coverage;
    double share = 0;
    bool known;
    if (c == NULL || !c->any) {
        return;
    }
    JSON_ADD(out, ",\"collector\":{\"coverage\":");
    known = coverage_share(c, &share);
    add_share(out, known, share < 1 ? share : 1); /* ticks are a sample: they may stand for more than the CPU time */
    JSON_ADD(out, ",\"overhead\":");
    known = coverage_overhead(c, &share);
    add_share(out, known, share);
    JSON_ADD(out, ",\"overhead_below\":");
    known = coverage_overhead_below(c, in->report, &share);
    add_share(out, known, share);
    const uint64_t without = coverage_without_ticks(c);
    json_add_number(out, "without_ticks_seconds", (double)without / 1e9);
    JSON_ADD(out, ",\"without_ticks_reason\":\"");
    if (without != 0) {
        coverage_add_why(out, c);
    }
    JSON_ADD(out, "\"");
    json_add_number(out, "attributed_seconds", (double)coverage_attributed(c) / 1e9);
    for (uint32_t i = 0; i < COLLECTOR_COUNTERS_MAX; i++) {
        const char *name = collector_counter_name(i);
        if (name != NULL && collector_counter_is_time(i)) {
            json_add_number(out, name, (double)c->counters[i] / 1e9);
        } else if (name != NULL) {
            json_add_count(out, name, c->counters[i]);
        }
    }
    json_add_flag(out, "wider_than_report", strcmp(in->scope, "program") != 0);
    json_add_flag(out, "saturated", c->saturated);
    JSON_ADD(out, "}");
}

/* The flat profile in columns (view=flat). */

static void begin(struct buffer *out, const char *key, uint32_t *rest, uint32_t count)
{
    buffer_add_text(out, key);
    *rest = count;
}

/* After each value: a comma, or the end of the column. */
static void next(struct buffer *out, uint32_t *rest)
{
    if (--*rest > 0) {
        buffer_add_char(out, ',');
    }
}

static void add_names(struct buffer *out, const struct report *r, const uint32_t *list, uint32_t n)
{
    uint32_t rest;
    begin(out, ",\"name\":[", &rest, n);
    for (uint32_t i = 0; i < n; i++) {
        render_json_string(out, r->functions[list[i]].name);
        next(out, &rest);
    }
    begin(out, "],\"build\":[", &rest, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t build = r->functions[list[i]].build;
        if (build < r->build_count) {
            buffer_add_u64(out, build, 0);
        } else {
            JSON_ADD(out, "null");
        }
        next(out, &rest);
    }
    begin(out, "],\"address\":[", &rest, n);
    for (uint32_t i = 0; i < n; i++) {
        buffer_add_format(out, "\"0x%llx\"", (unsigned long long)r->functions[list[i]].address);
        next(out, &rest);
    }
    JSON_ADD(out, "]");
}

enum seconds { SELF, CHILDREN, TOTAL, PERCENT, SECONDS };

static double seconds_of(const struct report_function *f, enum seconds which)
{
    switch (which) {
    case SELF:
        return f->self;
    case CHILDREN:
        return f->children;
    case TOTAL:
        return f->self + f->children;
    case PERCENT:
    case SECONDS:
        break;
    }
    return f->percent;
}

static void add_seconds(struct buffer *out, const struct report *r, const uint32_t *list, uint32_t n)
{
    static const char *const KEYS[SECONDS] = {",\"self_seconds\":[", ",\"children_seconds\":[", ",\"total_seconds\":[",
                                              ",\"percent\":["};
    for (enum seconds which = SELF; which < SECONDS; which++) {
        uint32_t rest;
        begin(out, KEYS[which], &rest, n);
        for (uint32_t i = 0; i < n; i++) {
            buffer_add_shortest(out, seconds_of(&r->functions[list[i]], which));
            next(out, &rest);
        }
        JSON_ADD(out, "]");
    }
}

/* Of estimated self times; null for the others. */
static void add_bounds(struct buffer *out, const struct report *r, const uint32_t *list, uint32_t n)
{
    static const char *const KEYS[] = {",\"self_least\":[", ",\"self_most\":["};
    for (unsigned which = 0; which < 2; which++) {
        uint32_t rest;
        begin(out, KEYS[which], &rest, n);
        for (uint32_t i = 0; i < n; i++) {
            const struct report_function *f = &r->functions[list[i]];
            if (f->self_estimated) {
                buffer_add_shortest(out, which == 0 ? f->self_least : f->self_most);
            } else {
                JSON_ADD(out, "null");
            }
            next(out, &rest);
        }
        JSON_ADD(out, "]");
    }
}

/* Counts beyond 2^53 are strings here: a column has one value for each row. */
static void add_count(struct buffer *out, uint64_t value)
{
    bool text = value > UINT64_C(1) << 53;
    buffer_add_text(out, text ? "\"" : "");
    buffer_add_u64(out, value, 0);
    buffer_add_text(out, text ? "\"" : "");
}

enum measured { MEASURED_SELF, MEASURED_TOTAL, MEASURED_LOW, MEASURED_HIGH };

static double measured_of(const struct report_measured *m, enum measured which)
{
    switch (which) {
    case MEASURED_SELF:
        return m->self;
    case MEASURED_TOTAL:
        return m->total;
    case MEASURED_LOW:
        return m->low;
    case MEASURED_HIGH:
        break;
    }
    return m->high;
}

static void add_measured(struct buffer *out, const struct report *r, const uint32_t *list, uint32_t n)
{
    static const char *const KEYS[] = {",\"measured_self\":[", ",\"measured_total\":[", ",\"measured_low\":[",
                                       ",\"measured_high\":["};
    uint32_t rest;
    for (enum measured which = MEASURED_SELF; which <= MEASURED_HIGH; which++) {
        begin(out, KEYS[which], &rest, n);
        for (uint32_t i = 0; i < n; i++) {
            buffer_add_shortest(out, measured_of(r->functions[list[i]].measured, which));
            next(out, &rest);
        }
        JSON_ADD(out, "]");
    }
    begin(out, ",\"measured_samples\":[", &rest, n);
    for (uint32_t i = 0; i < n; i++) {
        add_count(out, r->functions[list[i]].measured->samples);
        next(out, &rest);
    }
    JSON_ADD(out, "]");
    begin(out, ",\"measured_differs\":[", &rest, n);
    for (uint32_t i = 0; i < n; i++) {
        buffer_add_text(out, r->functions[list[i]].measured->differs ? "true" : "false");
        next(out, &rest);
    }
    JSON_ADD(out, "]");
}

static void add_short_names(struct buffer *out, const struct report *r, const char *const *shorts, const uint32_t *list,
                            uint32_t n)
{
    uint32_t rest;
    begin(out, ",\"short_name\":[", &rest, n);
    for (uint32_t i = 0; i < n; i++) {
        if (shorts[list[i]] != r->functions[list[i]].name) {
            render_json_string(out, shorts[list[i]]);
        } else {
            JSON_ADD(out, "null");
        }
        next(out, &rest);
    }
    JSON_ADD(out, "]");
}

/* Calls of all functions that call it, each once: its calls divided by them are the calls in each call of a caller. */
static uint64_t count_caller_calls(const struct report *r, uint32_t position)
{
    const struct report_function *f = &r->functions[position];
    uint64_t sum = 0;
    bool saturated = false;
    for (uint32_t i = 0; i < f->caller_count; i++) {
        if (f->callers[i].other != position && f->callers[i].calls > 0) {
            sum_add(&sum, r->functions[f->callers[i].other].calls, &saturated);
            sum_add(&sum, r->functions[f->callers[i].other].self_calls, &saturated);
        }
    }
    return sum;
}

/* One object of equally long arrays; list holds n positions in functions. shorts: short names by position, null in the
 * column short_name where the name is short already; NULL: no such column. */
static void json_add_columns(struct buffer *out, const struct report *r, const char *const *shorts,
                             const uint32_t *list, uint32_t n)
{
    uint32_t rest;
    begin(out, "{\"index\":[", &rest, n);
    for (uint32_t i = 0; i < n; i++) {
        buffer_add_u64(out, r->functions[list[i]].index, 0);
        next(out, &rest);
    }
    JSON_ADD(out, "]");
    add_names(out, r, list, n);
    if (shorts != NULL) {
        add_short_names(out, r, shorts, list, n);
    }
    add_seconds(out, r, list, n);
    if (r->estimated) {
        add_bounds(out, r, list, n);
    }
    if (r->stacks != NULL) {
        add_measured(out, r, list, n);
    }
    begin(out, ",\"calls\":[", &rest, n);
    for (uint32_t i = 0; i < n; i++) {
        add_count(out, r->functions[list[i]].calls);
        next(out, &rest);
    }
    begin(out, "],\"self_calls\":[", &rest, n);
    for (uint32_t i = 0; i < n; i++) {
        add_count(out, r->functions[list[i]].self_calls);
        next(out, &rest);
    }
    begin(out, "],\"caller_calls\":[", &rest, n);
    for (uint32_t i = 0; i < n; i++) {
        add_count(out, count_caller_calls(r, list[i]));
        next(out, &rest);
    }
    begin(out, "],\"cycle\":[", &rest, n);
    for (uint32_t i = 0; i < n; i++) {
        buffer_add_u64(out, r->functions[list[i]].cycle, 0);
        next(out, &rest);
    }
    JSON_ADD(out, "]}");
}

static const char *sort_name(enum render_sort sort)
{
    static const char *const NAMES[] = {"index", "self", "total", "calls"};
    return NAMES[sort];
}

static const char *view_name(enum render_view view)
{
    static const char *const NAMES[] = {"both", "flat", "graph", "not-called"};
    return NAMES[view];
}

static void add_question(struct buffer *out, const struct render_input *in)
{
    JSON_ADD(out, "{\"schema\":\"profd-report-1\"");
    json_add_text(out, "build_id", in->build_id);
    json_add_text(out, "build_name", in->build_name);
    json_add_text(out, "scope", in->scope);
    json_add_time(out, "since", in->since);
    json_add_time(out, "until", in->until);
    json_add_window(out, in->used_since, in->used_until);
    json_add_text(out, "mode", "true");
    json_add_flag(out, "static", in->report->static_arcs);
    json_add_text(out, "sort", sort_name(in->show.sort));
    json_add_text(out, "view", view_name(in->show.view));
    json_add_count(out, "limit", in->show.limit);
    json_add_count(out, "rows", in->show.rows);
    json_add_text(out, "names", in->show.short_names ? "short" : "full");
    json_add_text(out, "focus", in->show.focus);
    json_add_text(out, "match", in->match);
}

static void add_provenance(struct buffer *out, const struct provenance *p)
{
    JSON_ADD(out, ",\"provenance\":{\"uids\":[");
    for (uint32_t i = 0; i < p->uid_count; i++) {
        if (i > 0) {
            JSON_ADD(out, ",");
        }
        buffer_add_u64(out, p->uids[i], 0);
    }
    JSON_ADD(out, "]");
    json_add_count(out, "uploads", p->uploads);
    json_add_count(out, "processes_started", p->processes);
    json_add_count(out, "hosts", p->hosts);
    json_add_count(out, "host_labels", p->host_labels);
    json_add_time(out, "first", p->first);
    json_add_time(out, "last", p->last);
    if (p->uploads == 0 && p->inexact == 0) { /* nothing is not exact */
        JSON_ADD(out, ",\"exact\":null,\"inexact_reasons\":[],\"calls_exact\":null,\"ticks_exact\":null");
    } else {
        json_add_exact(out, p->inexact);
        json_add_exact_parts(out, p->inexact);
    }
    json_add_meanings(out, p->inexact);
    json_add_count(out, "not_read", p->unread);
    json_add_time(out, "not_read_since", p->unread_since);
    json_add_count(out, "live", p->live);
    json_add_time(out, "as_of", p->as_of);
    json_add_count(out, "down_count", p->down_count);
    JSON_ADD(out, ",\"down_seconds\":");
    buffer_add_shortest(out, (double)p->down_ns / 1e9);
    JSON_ADD(out, "}");
}

static uint32_t count_entries(const struct report *r, bool cycles)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->order_count; i++) {
        n += ((r->order[i] & REPORT_CYCLE) != 0) == cycles;
    }
    return n;
}

static void add_totals(struct buffer *out, const struct report *r)
{
    JSON_ADD(out, ",\"totals\":{\"rates\":[");
    for (uint32_t i = 0; i < r->rate_count; i++) {
        if (i > 0) {
            JSON_ADD(out, ",");
        }
        buffer_add_u64(out, r->rates[i], 0);
    }
    JSON_ADD(out, "]");
    json_add_text(out, "dimension", r->dimension);
    JSON_ADD(out, ",\"other_dimensions\":[");
    for (uint32_t i = 0; i < r->other_dimension_count; i++) {
        buffer_add_text(out, i > 0 ? ",{\"dimension\":" : "{\"dimension\":");
        render_json_string(out, r->other_dimensions[i].name);
        json_add_count(out, "ticks", r->other_dimensions[i].ticks);
        JSON_ADD(out, "}");
    }
    JSON_ADD(out, "]");
    json_add_number(out, "seconds", r->total);
    json_add_count(out, "ticks", r->ticks);
    json_add_flag(out, "few_ticks", amount_is_rough(r));
    json_add_count(out, "calls", r->calls);
    json_add_count(out, "jumped_functions", r->jumped_functions);
    json_add_count(out, "open_cycles", r->open_cycles);
    json_add_count(out, "functions", count_entries(r, false));
    json_add_count(out, "cycles", count_entries(r, true));
    json_add_flag(out, "saturated", r->saturated);
    JSON_ADD(out, "}");
}

/* Without has_names from the caller: addresses instead of functions mean that names are missing. */
static bool build_named(const struct render_input *in, uint32_t build)
{
    const struct report *r = in->report;
    if (in->has_names != NULL) {
        return in->has_names[build];
    }
    for (uint32_t i = 0; r->unnamed_builds > 0 && i < r->function_count; i++) {
        const struct report_function *f = &r->functions[i];
        if (f->build == build && (f->kind == REPORT_ADDRESS || f->kind == REPORT_UNKNOWN)) {
            return false;
        }
    }
    return true;
}

static void add_truncated(struct buffer *out, const struct render_input *in, const struct selection *s)
{
    if (s->hidden == 0) {
        JSON_ADD(out, ",\"truncated\":null}\n");
        return;
    }
    bool narrowed = in->show.focus != NULL || in->only != 0;
    bool limited = in->show.limit != 0 && s->function_count == in->show.limit;
    JSON_ADD(out, ",\"truncated\":{\"reason\":");
    render_json_string(out, in->only != 0 ? "function" : !narrowed ? "limit" : limited ? "focus and limit" : "focus");
    json_add_count(out, "functions", s->hidden);
    json_add_number(out, "seconds", s->hidden_seconds);
    JSON_ADD(out, "}}\n");
}

/* The list is cut by limit; not_called_basis has the whole numbers. */
static void add_not_called(struct buffer *out, const struct render_input *in)
{
    const struct report *r = in->report;
    uint32_t n = 0;
    JSON_ADD(out, ",\"not_called\":[");
    for (uint32_t i = 0; in->only == 0 && i < r->not_called_count && (in->show.limit == 0 || n < in->show.limit); i++) {
        const struct report_function *f = &r->not_called[i];
        if (in->show.focus != NULL && !render_has_focus(f, in->show.focus)) {
            continue;
        }
        buffer_add_text(out, n++ > 0 ? ",{" : "{");
        JSON_ADD(out, "\"name\":");
        render_json_string(out, f->name);
        json_add_text(out, "raw_name", f->raw);
        json_add_text(out, "build_id", json_find_build(r, f->build));
        json_add_address(out, "address", f->address);
        json_add_text(out, "file", f->file == NULL ? "" : f->file);
        JSON_ADD(out, "}");
    }
    JSON_ADD(
        out,
        "],\"not_called_basis\":{\"rule\":\"functions with machine code that calls a counter (mcount, __fentry__ or "
        "__cyg_profile_func_enter), less those with calls or samples in this report\"");
    json_add_count(out, "counted_functions", r->counted_functions);
    json_add_count(out, "not_called", r->not_called_count);
    JSON_ADD(out, "}");
}

/* Functions and cycles are in separate lists, each in the order of the entries. */
static void add_entries(struct buffer *out, const struct render_input *in, const struct json_names *names,
                        const struct selection *s)
{
    const char *comma = "";
    JSON_ADD(out, ",\"functions\":[");
    for (uint32_t i = 0; i < s->entry_count && !out->failed; i++) {
        if (!(s->entries[i] & REPORT_CYCLE)) {
            buffer_add_text(out, comma);
            json_add_function(out, in->report, names, s->entries[i], in->show.rows);
            comma = ",";
        }
    }
    comma = "";
    JSON_ADD(out, "],\"cycles\":[");
    for (uint32_t i = 0; i < s->entry_count && !out->failed; i++) {
        if (s->entries[i] & REPORT_CYCLE) {
            buffer_add_text(out, comma);
            json_add_cycle(out, in->report, names, s->entries[i] & ~REPORT_CYCLE, in->show.rows);
            comma = ",";
        }
    }
    JSON_ADD(out, "]");
    add_not_called(out, in);
}

static void add_columns(struct buffer *out, const struct render_input *in, const struct selection *s, struct arena *a)
{
    uint32_t *list = ARENA_ARRAY(a, (size_t)s->function_count + 1, uint32_t), n = 0;
    const char *const *shorts = in->show.short_names ? name_short_functions(in->report, a) : NULL;
    for (uint32_t i = 0; i < s->entry_count; i++) {
        if (!(s->entries[i] & REPORT_CYCLE)) {
            list[n++] = s->entries[i];
        }
    }
    JSON_ADD(out, ",\"columns\":");
    json_add_columns(out, in->report, shorts, list, n);
}

enum profd_status json_render(const struct render_input *in, struct arena *a, struct buffer *out, struct profd_error *e)
{
    (void)e;
    struct selection s;
    selection_make(in, a, &s);
    add_question(out, in);
    add_provenance(out, in->provenance);
    json_add_collector(out, in);
    add_totals(out, in->report);
    json_add_stacks(out, in->report);
    JSON_ADD(out, ",\"builds\":[");
    for (uint32_t i = 0; i < in->report->build_count; i++) {
        buffer_add_text(out, i > 0 ? ",{\"build_id\":" : "{\"build_id\":");
        render_json_string(out, in->report->builds[i]);
        const char *name = in->report->build_names[i];
        json_add_text(out, "name", name == NULL ? "" : name);
        json_add_flag(out, "has_names", build_named(in, i));
        if (in->disputed != NULL && in->disputed[i] != NULL) {
            json_add_text(out, "disputed", in->disputed[i]);
        }
        JSON_ADD(out, "}");
    }
    JSON_ADD(out, "]");
    if (in->show.view == RENDER_VIEW_FLAT) {
        add_columns(out, in, &s, a);
    } else {
        struct json_names names;
        json_names_make(in->report, in->show.short_names, a, &names);
        names.calls_exact = (in->provenance->inexact & INEXACT_CALLS) == 0;
        names.calls_sampled = (in->provenance->inexact & INEXACT_SAMPLED) != 0;
        add_entries(out, in, &names, &s);
        json_names_done(&names);
    }
    add_truncated(out, in, &s);
    return PROFD_OK;
}
