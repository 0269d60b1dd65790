/* format=json: schema/report.schema.json says what every field means. */
#include <string.h>

#include "proto/sum.h"
#include "proto/message.h"
#include "render/render_internal.h"

#define NAMES_BYTES_MAX ((size_t)4 << 30)

/* What a row says about the other end is made once a function: the functions themselves do not fit a cache. */
static void make_other(const struct report *r, struct json_names *names, uint32_t position)
{
    const struct report_function *f = &r->functions[position];
    struct buffer *out = &names->other;
    JSON_ADD(out, "{");
    json_add_count(out, "index", f->index);
    JSON_ADD(out, ",\"name\":");
    buffer_add(out, names->text.data + names->start[position], names->text.size - names->start[position]);
    if (f->cycle != 0) {
        json_add_count(out, "cycle", f->cycle);
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
        if (shorts && shorts[i] != report->functions[i].name) {
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

void json_add_place(struct buffer *out, const struct report *report, const struct report_function *f)
{
    json_add_text(out, "raw_name", f->raw);
    json_add_text(out, "build_id", json_find_build(report, f->build));
    json_add_address(out, "address", f->address);
}

void json_add_identity(struct buffer *out, const struct report *report, const struct report_function *f)
{
    json_add_text(out, "name", f->name);
    json_add_place(out, report, f);
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
    if (!m) {
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
    if (!s) {
        return;
    }
    json_add_text(out, "time", report->time_measured ? "measured" : "calls");
    json_begin(out, "stacks");
    json_add_number(out, "coverage", s->coverage);
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
    if (arc->measured && !arc->inside && arc->calls > 0 && names->calls_exact) {
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
    json_list(out, list->key);
    for (uint32_t i = 0; i < cut.count && !out->failed; i++) {
        json_next(out);
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

static void json_add_function(struct buffer *out, const struct report *report, const struct json_names *names,
                              uint32_t position, uint32_t rows)
{
    static const char *const KINDS[] = {[REPORT_FUNCTION] = "function",
                                        [REPORT_PLT] = "plt",
                                        [REPORT_GAP] = "gap",
                                        [REPORT_ADDRESS] = "address",
                                        [REPORT_UNKNOWN] = "unknown"};
#define F(key, member) JSON_FIELD(struct report_function, key, member)
    static const struct json_field CALLS[] = {F("calls", calls),
                                              F("calls_outside", calls_outside),
                                              F("calls_inside", calls_inside),
                                              F("self_calls", self_calls),
                                              F("cycle", cycle),
                                              F("spontaneous", spontaneous)};
#undef F
    const struct report_function *f = &report->functions[position];
    json_begin(out, NULL);
    json_add_count(out, "index", f->index);
    JSON_ADD(out, ",\"name\":");
    /* The name of one function, in quotes, and its short_name. */
    buffer_add(out, names->text.data + names->start[position], names->start[position + 1] - names->start[position]);
    json_add_place(out, report, f);
    json_add_count(out, "size", f->size);
    json_add_text(out, "kind", KINDS[f->kind]);
    json_add_text(out, "file", f->file ? f->file : "");
    json_add_count(out, "ticks", f->ticks_total);
    json_add_times(out, f->self, f->children);
    if (f->self_estimated) {
        json_add_number(out, "self_least", f->self_least);
        json_add_number(out, "self_most", f->self_most);
    }
    json_add_number(out, "percent", f->percent);
    json_add_measured(out, f->measured);
    json_add_fields(out, CALLS, JSON_COUNT_OF(CALLS), f);
    json_list(out, "aliases");
    for (uint32_t i = 0; i < f->alias_count; i++) {
        json_add_item(out, f->aliases[i]);
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

static void json_add_cycle(struct buffer *out, const struct report *report, const struct json_names *names,
                           uint32_t position, uint32_t rows)
{
    const struct report_cycle *c = &report->cycles[position];
    json_begin(out, NULL);
    json_add_count(out, "index", c->index);
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

/* Appends "collector":{…}: every counter by its name, and the values derived from them; nothing if there are none. */
static void add_collector(struct buffer *out, const struct render_input *in)
{
    const struct coverage *c = in->coverage;
    double share = 0;
    bool known;
    if (!c || !c->any) {
        return;
    }
    json_begin(out, "collector");
    known = coverage_share(c, &share);
    json_add_known(out, "coverage", share < 1 ? share : 1, known); /* ticks may stand for more than the CPU time */
    known = coverage_overhead(c, &share);
    json_add_known(out, "overhead", share, known);
    known = coverage_overhead_below(c, in->report, &share);
    json_add_known(out, "overhead_below", share, known);
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
        if (name && collector_counter_is_time(i)) {
            json_add_number(out, name, (double)c->counters[i] / 1e9);
        } else if (name) {
            json_add_count(out, name, c->counters[i]);
        }
    }
    json_add_flag(out, "wider_than_report", strcmp(in->scope, "program") != 0);
    json_add_flag(out, "saturated", c->saturated);
    JSON_ADD(out, "}");
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

/* The columns of the flat profile (view=flat). A column with a condition is there only if the report has such values.
 */
struct column {
    const char *key;
    enum { NAME, SHORT_NAME, BUILD, ADDRESS, CALLER_CALLS, TOTAL, NUMBER, BOUND, MEASURED, DIFFERS, COUNT, SMALL } kind;
    size_t at; /* of the member */
    enum { ALWAYS, SHORTENED, ESTIMATED, WITH_STACKS } condition;
};

static const struct column COLUMNS[] = {
#define F(member) offsetof(struct report_function, member)
#define M(member) offsetof(struct report_measured, member)
    {"index", SMALL, F(index), ALWAYS},
    {"name", NAME, 0, ALWAYS},
    {"build", BUILD, 0, ALWAYS},
    {"address", ADDRESS, 0, ALWAYS},
    {"short_name", SHORT_NAME, 0, SHORTENED},
    {"self_seconds", NUMBER, F(self), ALWAYS},
    {"children_seconds", NUMBER, F(children), ALWAYS},
    {"total_seconds", TOTAL, 0, ALWAYS},
    {"percent", NUMBER, F(percent), ALWAYS},
    {"self_least", BOUND, F(self_least), ESTIMATED},
    {"self_most", BOUND, F(self_most), ESTIMATED},
    {"measured_self", MEASURED, M(self), WITH_STACKS},
    {"measured_total", MEASURED, M(total), WITH_STACKS},
    {"measured_low", MEASURED, M(low), WITH_STACKS},
    {"measured_high", MEASURED, M(high), WITH_STACKS},
    {"measured_samples", COUNT, 0, WITH_STACKS},
    {"measured_differs", DIFFERS, 0, WITH_STACKS},
    {"calls", COUNT, F(calls), ALWAYS},
    {"self_calls", COUNT, F(self_calls), ALWAYS},
    {"caller_calls", CALLER_CALLS, 0, ALWAYS},
    {"cycle", SMALL, F(cycle), ALWAYS},
#undef F
#undef M
};

/* Counts beyond 2^53 are strings here: a column has one value for each row. */
static void add_count(struct buffer *out, uint64_t value)
{
    const char *quote = value > UINT64_C(1) << 53 ? "\"" : "";
    buffer_add_text(out, quote);
    buffer_add_u64(out, value, 0);
    buffer_add_text(out, quote);
}

/* The value of a column for a function; false: null. shorts: short names by position. */
static bool add_value(struct buffer *out, const struct report *r, const char *const *shorts, const struct column *c,
                      uint32_t position)
{
    const struct report_function *f = &r->functions[position];
    const char *member = (const char *)f + c->at;
    switch (c->kind) {
    case NAME:
        render_json_string(out, f->name);
        break;
    case SHORT_NAME:
        if (shorts[position] == f->name) {
            return false; /* the name is short already */
        }
        render_json_string(out, shorts[position]);
        break;
    case BUILD:
        if (f->build >= r->build_count) {
            return false;
        }
        buffer_add_u64(out, f->build, 0);
        break;
    case ADDRESS:
        buffer_add_format(out, "\"0x%llx\"", (unsigned long long)f->address);
        break;
    case CALLER_CALLS:
        add_count(out, count_caller_calls(r, position));
        break;
    case TOTAL:
        buffer_add_shortest(out, f->self + f->children);
        break;
    case BOUND:
        if (!f->self_estimated) {
            return false;
        }
        buffer_add_shortest(out, *(const double *)(const void *)member);
        break;
    case NUMBER:
        buffer_add_shortest(out, *(const double *)(const void *)member);
        break;
    case MEASURED:
        buffer_add_shortest(out, *(const double *)(const void *)((const char *)f->measured + c->at));
        break;
    case DIFFERS:
        buffer_add_text(out, f->measured->differs ? "true" : "false");
        break;
    case COUNT:
        add_count(out, c->condition == WITH_STACKS ? f->measured->samples : *(const uint64_t *)(const void *)member);
        break;
    case SMALL:
        buffer_add_u64(out, *(const uint32_t *)(const void *)member, 0);
        break;
    }
    return true;
}

/* One object of equally long arrays: the functions of the selection. */
static void add_columns(struct buffer *out, const struct render_input *in, const struct selection *s, struct arena *a)
{
    const struct report *r = in->report;
    const char *const *shorts = in->show.short_names ? name_short_functions(r, a) : NULL;
    const bool has[] = {[ALWAYS] = true, [SHORTENED] = shorts, [ESTIMATED] = r->estimated, [WITH_STACKS] = r->stacks};
    json_begin(out, "columns");
    for (size_t k = 0; k < sizeof COLUMNS / sizeof *COLUMNS; k++) {
        if (!has[COLUMNS[k].condition]) {
            continue;
        }
        json_list(out, COLUMNS[k].key);
        for (uint32_t i = 0; i < s->entry_count && !out->failed; i++) {
            if (s->entries[i] & REPORT_CYCLE) {
                continue;
            }
            json_next(out);
            if (!add_value(out, r, shorts, &COLUMNS[k], s->entries[i])) {
                JSON_ADD(out, "null");
            }
        }
        JSON_ADD(out, "]");
    }
    JSON_ADD(out, "}");
}

static void add_question(struct buffer *out, const struct render_input *in)
{
    static const char *const SORTS[] = {"index", "self", "total", "calls"};
    static const char *const VIEWS[] = {"both", "flat", "graph", "not-called"};
    json_begin(out, NULL);
    json_add_text(out, "schema", "profd-report-1");
    json_add_text(out, "build_id", in->build_id);
    json_add_text(out, "build_name", in->build_name);
    json_add_text(out, "scope", in->scope);
    json_add_time(out, "since", in->since);
    json_add_time(out, "until", in->until);
    json_add_window(out, in->used_since, in->used_until);
    json_add_text(out, "mode", "true");
    json_add_flag(out, "static", in->report->static_arcs);
    json_add_text(out, "sort", SORTS[in->show.sort]);
    json_add_text(out, "view", VIEWS[in->show.view]);
    json_add_count(out, "limit", in->show.limit);
    json_add_count(out, "rows", in->show.rows);
    json_add_text(out, "names", in->show.short_names ? "short" : "full");
    json_add_text(out, "focus", in->show.focus);
    json_add_text(out, "match", in->match);
}

static void add_numbers(struct buffer *out, const char *key, const uint32_t *numbers, size_t n)
{
    json_list(out, key);
    for (size_t i = 0; i < n; i++) {
        json_next(out);
        buffer_add_u64(out, numbers[i], 0);
    }
    JSON_ADD(out, "]");
}

static void add_provenance(struct buffer *out, const struct provenance *p)
{
#define F(key, member) JSON_FIELD(struct provenance, key, member)
    static const struct json_field SOURCES[] = {F("uploads", uploads), F("processes_started", processes),
                                                F("hosts", hosts),     F("host_labels", host_labels),
                                                F("first", first),     F("last", last)};
    static const struct json_field LIVING[] = {F("not_read", unread), F("not_read_since", unread_since),
                                               F("live", live), F("as_of", as_of), F("down_count", down_count)};
#undef F
    json_begin(out, "provenance");
    add_numbers(out, "uids", p->uids, p->uid_count);
    json_add_fields(out, SOURCES, JSON_COUNT_OF(SOURCES), p);
    if (p->uploads == 0 && p->inexact == 0) { /* nothing is not exact */
        JSON_ADD(out, ",\"exact\":null,\"inexact_reasons\":[],\"calls_exact\":null,\"ticks_exact\":null");
    } else {
        json_add_exact(out, p->inexact);
        json_add_exact_parts(out, p->inexact);
    }
    json_add_meanings(out, p->inexact);
    json_add_fields(out, LIVING, JSON_COUNT_OF(LIVING), p);
    json_add_number(out, "down_seconds", (double)p->down_ns / 1e9);
    if (p->centre_count > 0) {
        json_list(out, "centres");
        for (size_t i = 0; i < p->centre_count; i++) {
            json_begin(out, NULL);
            json_add_text(out, "name", p->centres[i].name);
            json_add_time(out, "sealed_to", p->centres[i].sealed_to);
            JSON_ADD(out, "}");
        }
        JSON_ADD(out, "]");
    }
    JSON_ADD(out, "}");
}

static void add_totals(struct buffer *out, const struct report *r)
{
    uint32_t cycles = 0;
    for (uint32_t i = 0; i < r->order_count; i++) {
        cycles += (r->order[i] & REPORT_CYCLE) != 0;
    }
    json_begin(out, "totals");
    add_numbers(out, "rates", r->rates, r->rate_count);
    json_add_text(out, "dimension", r->dimension);
    json_list(out, "other_dimensions");
    for (uint32_t i = 0; i < r->other_dimension_count; i++) {
        json_begin(out, NULL);
        json_add_text(out, "dimension", r->other_dimensions[i].name);
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
    json_add_count(out, "functions", r->order_count - cycles);
    json_add_count(out, "cycles", cycles);
    json_add_flag(out, "saturated", r->saturated);
    JSON_ADD(out, "}");
}

/* Without has_names from the caller: addresses instead of functions mean that names are missing. */
static bool build_named(const struct render_input *in, uint32_t build)
{
    const struct report *r = in->report;
    if (in->has_names) {
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

static void add_builds(struct buffer *out, const struct render_input *in)
{
    json_list(out, "builds");
    for (uint32_t i = 0; i < in->report->build_count; i++) {
        const char *name = in->report->build_names[i];
        json_begin(out, NULL);
        json_add_text(out, "build_id", in->report->builds[i]);
        json_add_text(out, "name", name ? name : "");
        json_add_flag(out, "has_names", build_named(in, i));
        if (in->disputed && in->disputed[i]) {
            json_add_text(out, "disputed", in->disputed[i]);
        }
        JSON_ADD(out, "}");
    }
    JSON_ADD(out, "]");
}

static void add_truncated(struct buffer *out, const struct render_input *in, const struct selection *s)
{
    if (s->hidden == 0) {
        json_add_text(out, "truncated", NULL);
        return;
    }
    bool narrowed = in->show.focus || in->only != 0;
    bool limited = in->show.limit != 0 && s->function_count == in->show.limit;
    json_begin(out, "truncated");
    json_add_text(out, "reason",
                  in->only != 0 ? "function"
                  : !narrowed   ? "limit"
                  : limited     ? "focus and limit"
                                : "focus");
    json_add_count(out, "functions", s->hidden);
    json_add_number(out, "seconds", s->hidden_seconds);
    JSON_ADD(out, "}");
}

/* The list is cut by limit; not_called_basis has the whole numbers. */
static void add_not_called(struct buffer *out, const struct render_input *in)
{
    const struct report *r = in->report;
    uint32_t n = 0;
    json_list(out, "not_called");
    for (uint32_t i = 0; in->only == 0 && i < r->not_called_count && (in->show.limit == 0 || n < in->show.limit); i++) {
        const struct report_function *f = &r->not_called[i];
        if (in->show.focus && !render_has_focus(f, in->show.focus)) {
            continue;
        }
        n++;
        json_begin(out, NULL);
        json_add_identity(out, r, f);
        json_add_text(out, "file", f->file ? f->file : "");
        JSON_ADD(out, "}");
    }
    JSON_ADD(out, "]");
    json_begin(out, "not_called_basis");
    json_add_text(out, "rule",
                  "functions with machine code that calls a counter (mcount, __fentry__ or __cyg_profile_func_enter), "
                  "less those with calls or samples in this report");
    json_add_count(out, "counted_functions", r->counted_functions);
    json_add_count(out, "not_called", r->not_called_count);
    JSON_ADD(out, "}");
}

/* Functions and cycles are in separate lists, each in the order of the entries. */
static void add_entries(struct buffer *out, const struct render_input *in, const struct json_names *names,
                        const struct selection *s)
{
    json_list(out, "functions");
    for (uint32_t i = 0; i < s->entry_count && !out->failed; i++) {
        if (!(s->entries[i] & REPORT_CYCLE)) {
            json_add_function(out, in->report, names, s->entries[i], in->show.rows);
        }
    }
    JSON_ADD(out, "]");
    json_list(out, "cycles");
    for (uint32_t i = 0; i < s->entry_count && !out->failed; i++) {
        if (s->entries[i] & REPORT_CYCLE) {
            json_add_cycle(out, in->report, names, s->entries[i] & ~REPORT_CYCLE, in->show.rows);
        }
    }
    JSON_ADD(out, "]");
    add_not_called(out, in);
}

enum profd_status json_render(const struct render_input *in, struct arena *a, struct buffer *out, struct profd_error *e)
{
    (void)e;
    struct selection s;
    selection_make(in, a, &s);
    add_question(out, in);
    add_provenance(out, in->provenance);
    add_collector(out, in);
    add_totals(out, in->report);
    json_add_stacks(out, in->report);
    add_builds(out, in);
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
    JSON_ADD(out, "}\n");
    return PROFD_OK;
}
