/* format=json: schema/report.schema.json says what every field means. */
#include <string.h>

#include "proto/message.h"
#include "render/render_internal.h"

#define NAMES_BYTES_MAX ((size_t)4 << 30)

/* Every name as a JSON string, encoded once because it occurs in many rows. A short name that differs follows as
 * short_name. */
struct json_names {
    struct buffer text;
    const size_t *start; /* function_count + 1 offsets into text */
    struct buffer other; /* likewise the begin of a row about each function: {"index":…,"name":…,"cycle":… */
    const size_t *other_start;
    const uint32_t *build; /* of each function */
    const double *calls;   /* of each, those by itself included */
    bool calls_exact;      /* json_names_make: false. True: rows get the seconds of a call */
    bool calls_sampled;    /* json_names_make: false. True: rows do not get the calls per call of the caller */
    struct arena_deferred deferred;
};

static void names_free(void *names)
{
    buffer_done(&((struct json_names *)names)->text);
    buffer_done(&((struct json_names *)names)->other);
}

/* names_free frees what is outside the arena; arena_undefer calls it. */
static void json_names_make(const struct report *report, bool is_short, struct arena *a, struct json_names *names)
{
    uint32_t n = report->function_count;
    size_t *start = ARENA_ARRAY(a, (size_t)n + 1, size_t), *other_start = ARENA_ARRAY(a, (size_t)n + 1, size_t);
    uint32_t *build = ARENA_ARRAY(a, (size_t)n + 1, uint32_t);
    double *calls = ARENA_ARRAY(a, (size_t)n + 1, double);
    struct buffer *text = &names->text, *other = &names->other;
    *names = (struct json_names){.start = start, .other_start = other_start, .build = build, .calls = calls};
    buffer_init(text, NAMES_BYTES_MAX);
    buffer_init(other, NAMES_BYTES_MAX);
    arena_defer(a, &names->deferred, names_free, names);
    const char *const *shorts = is_short ? name_short_functions(report, a) : NULL;
    for (uint32_t i = 0; i < n; i++) {
        const struct report_function *f = &report->functions[i];
        start[i] = text->size;
        other_start[i] = other->size;
        build[i] = f->build;
        calls[i] = report_all_calls(f);
        render_json_string(text, f->name);
        if (shorts && shorts[i] != f->name) {
            json_add_text(text, "short_name", shorts[i]);
        }
        /* What rows say about the function is made once: the functions themselves do not fit a cache. */
        JSON_ADD(other, "{");
        json_add_count(other, "index", f->index);
        JSON_ADD(other, ",\"name\":");
        buffer_add(other, text->data + start[i], text->size - start[i]);
        if (f->cycle != 0) {
            json_add_count(other, "cycle", f->cycle);
        }
    }
    if (text->failed || other->failed) {
        arena_fail(a);
    }
    start[n] = text->size;
    other_start[n] = other->size;
}

/* A list of arcs of one entry. */
struct row_list {
    const char *key;
    const struct report_arc *arcs;
    uint32_t count;
    bool last_is_heaviest, is_static;
    double caller_calls; /* CALLERS: of each row's other end; 0: not known */
};
#define CALLERS (-1.0)

/* Lists of an entry: of each the heaviest `most` rows, 0: all, and what the others have. build: of the entry. */
static void add_arc_lists(struct buffer *out, const struct report *r, const struct json_names *names,
                          const struct row_list *lists, size_t count, uint32_t build, uint32_t most)
{
    for (const struct row_list *list = lists; list < lists + count; list++) {
        const struct row_cut cut = row_cut_make(list->arcs, list->count, most, list->last_is_heaviest);
        json_list(out, list->key);
        for (uint32_t i = 0; i < cut.count && !out->failed; i++) {
            const struct report_arc *arc = &list->arcs[cut.first + i];
            const uint32_t other = arc->other;
            double caller_calls = list->caller_calls;
            json_next(out);
            if (other == REPORT_SPONTANEOUS) {
                JSON_ADD(out, "{\"index\":0,\"name\":\"<spontaneous>\"");
            } else {
                const size_t start = names->other_start[other];
                buffer_add(out, names->other.data + start, names->other_start[other + 1] - start);
                if (names->build[other] != build) {
                    json_add_text(out, "build_id", json_find_build(r, names->build[other]));
                }
                caller_calls = caller_calls < 0 ? names->calls[other] : caller_calls;
            }
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
            buffer_add_text(out, arc->inside ? ",\"inside\":true" : "");
            buffer_add_text(out, list->is_static ? ",\"static\":true" : "");
            buffer_add_text(out, arc->by_name ? ",\"by_name\":true" : "");
            buffer_add_text(out, arc->jumped ? ",\"jumped\":true" : "");
            JSON_ADD(out, "}");
        }
        JSON_ADD(out, "]");
        if (cut.left > 0) {
            buffer_add_format(out, ",\"%s_left_out\":{\"rows\":%u", list->key, cut.left);
            json_add_count(out, "calls", cut.calls);
            json_add_number(out, "seconds", cut.seconds);
            JSON_ADD(out, "}");
        }
    }
}

static void add_function(struct buffer *out, const struct report *report, const struct json_names *names,
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
    add_arc_lists(out, report, names, lists, sizeof lists / sizeof *lists, f->build, rows);
    JSON_ADD(out, "}");
}

static void add_cycle(struct buffer *out, const struct report *report, const struct json_names *names,
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
    add_arc_lists(out, report, names, lists, sizeof lists / sizeof *lists, build, rows);
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

/* Functions and cycles in separate lists, each in the order of the entries; and the functions that were not called. */
static void add_entries(struct buffer *out, const struct render_input *in, const struct selection *s, struct arena *a)
{
    const struct report *r = in->report;
    struct json_names names;
    uint32_t n = 0;
    json_names_make(r, in->show.short_names, a, &names);
    names.calls_exact = (in->provenance->inexact & INEXACT_CALLS) == 0;
    names.calls_sampled = (in->provenance->inexact & INEXACT_SAMPLED) != 0;
    json_list(out, "functions");
    for (uint32_t i = 0; i < s->entry_count && !out->failed; i++) {
        if (!(s->entries[i] & REPORT_CYCLE)) {
            add_function(out, r, &names, s->entries[i], in->show.rows);
        }
    }
    JSON_ADD(out, "]");
    json_list(out, "cycles");
    for (uint32_t i = 0; i < s->entry_count && !out->failed; i++) {
        if (s->entries[i] & REPORT_CYCLE) {
            add_cycle(out, r, &names, s->entries[i] & ~REPORT_CYCLE, in->show.rows);
        }
    }
    JSON_ADD(out, "]");
    arena_undefer(a, &names.deferred);

    /* limit cuts this list; not_called_basis has the whole numbers. */
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

enum profd_status json_render(const struct render_input *in, struct arena *a, struct buffer *out, struct profd_error *e)
{
    (void)e;
    static const char *const SORTS[] = {"index", "self", "total", "calls"};
    static const char *const VIEWS[] = {"both", "flat", "graph", "not-called"};
    const struct report *r = in->report;
    struct selection s;
    selection_make(in, a, &s);
    json_begin(out, NULL);
    json_add_text(out, "schema", "profd-report-1");
    json_add_text(out, "build_id", in->build_id);
    json_add_text(out, "build_name", in->build_name);
    json_add_text(out, "scope", in->scope);
    json_add_time(out, "since", in->since);
    json_add_time(out, "until", in->until);
    json_add_window(out, in->used_since, in->used_until);
    json_add_text(out, "mode", "true");
    json_add_flag(out, "static", r->static_arcs);
    json_add_text(out, "sort", SORTS[in->show.sort]);
    json_add_text(out, "view", VIEWS[in->show.view]);
    json_add_count(out, "limit", in->show.limit);
    json_add_count(out, "rows", in->show.rows);
    json_add_text(out, "names", in->show.short_names ? "short" : "full");
    json_add_text(out, "focus", in->show.focus);
    json_add_text(out, "match", in->match);
    add_provenance(out, in->provenance);
    add_collector(out, in);
    add_totals(out, r);
    json_add_stacks(out, r);

    json_list(out, "builds");
    for (uint32_t i = 0; i < r->build_count; i++) {
        bool has_names = !in->has_names || in->has_names[i];
        /* If the caller does not know, addresses instead of functions mean that names are missing. */
        for (uint32_t k = 0; !in->has_names && r->unnamed_builds > 0 && has_names && k < r->function_count; k++) {
            const struct report_function *f = &r->functions[k];
            has_names = f->build != i || (f->kind != REPORT_ADDRESS && f->kind != REPORT_UNKNOWN);
        }
        json_begin(out, NULL);
        json_add_text(out, "build_id", r->builds[i]);
        json_add_text(out, "name", r->build_names[i] ? r->build_names[i] : "");
        json_add_flag(out, "has_names", has_names);
        if (in->disputed && in->disputed[i]) {
            json_add_text(out, "disputed", in->disputed[i]);
        }
        JSON_ADD(out, "}");
    }
    JSON_ADD(out, "]");

    if (in->show.view == RENDER_VIEW_FLAT) {
        json_add_columns(out, in, &s, a);
    } else {
        add_entries(out, in, &s, a);
    }

    if (s.hidden == 0) {
        json_add_text(out, "truncated", NULL);
    } else {
        const bool limited = in->show.limit != 0 && s.function_count == in->show.limit;
        json_begin(out, "truncated");
        json_add_text(out, "reason",
                      in->only != 0     ? "function"
                      : !in->show.focus ? "limit"
                      : limited         ? "focus and limit"
                                        : "focus");
        json_add_count(out, "functions", s.hidden);
        json_add_number(out, "seconds", s.hidden_seconds);
        JSON_ADD(out, "}");
    }
    JSON_ADD(out, "}\n");
    return PROFD_OK;
}
