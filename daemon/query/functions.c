/* Answers about functions of one report: one function, its addresses, callers and course over time; functions by name;
 * the cycles, and the functions that were never called. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/callers.h"
#include "proto/sort.h"
#include "core/graph.h"
#include "core/never_called.h"
#include "core/object.h"
#include "core/report_graph.h"
#include "proto/sum.h"
#include "core/symtab.h"
#include "proto/bins.h"
#include "proto/http_text.h"
#include "query/query_internal.h"

/* "401230" or "0x401230". */
static bool function_parse_address(const char *text, uint64_t *out)
{
    const char *at = strncmp(text, "0x", 2) == 0 ? text + 2 : text;
    size_t n = strspn(at, "0123456789abcdefABCDEF");
    uint64_t value = 0;
    if (n == 0 || n > 16 || at[n] != '\0') {
        return false;
    }
    for (; *at != '\0'; at++) {
        value = value << 4 | (unsigned)http_hex_value(*at);
    }
    *out = value;
    return true;
}

/* Returns whether it is the function of that build in which the address lies. Its size is 0 if the next one bounds it.
 */
static bool function_holds(const struct report *r, const struct report_function *f, const char *id, uint64_t address)
{
    return f->build < r->build_count && strcmp(r->builds[f->build], id) == 0 &&
           (f->address == address || (address > f->address && address - f->address < f->size));
}

/* The build whose function is meant: that of build_id=, else that of the path. */
static const char *find_path_build(const struct job *job, const struct report_work *w)
{
    const char *build = params_find(job->params, "build_id");
    return build ? build : w->id.text;
}

/* The function of a report that the path names: by an address in the build, else by a whole name, as shown or as in the
 * object. A text of hexadecimal digits is an address if a function is there. NOT_FOUND; AMBIGUOUS if several functions
 * of the build have the name. O(functions). */
static enum profd_status find_in_path(const struct job *job, const struct report_work *w, uint32_t *out,
                                      struct profd_error *e)
{
    const struct report *r = w->report;
    const char *id = find_path_build(job, w), *text = job->params->segments[5];
    uint64_t address = 0;
    const bool is_address = function_parse_address(text, &address);
    uint32_t named = 0;
    for (uint32_t i = 0; is_address && i < r->function_count; i++) {
        if (function_holds(r, &r->functions[i], id, address)) {
            *out = i;
            return PROFD_OK;
        }
    }
    for (uint32_t i = 0; i < r->function_count; i++) {
        const struct report_function *f = &r->functions[i];
        if (f->kind == REPORT_FUNCTION && f->build < r->build_count && strcmp(r->builds[f->build], id) == 0 &&
            (strcmp(f->name, text) == 0 || strcmp(f->raw, text) == 0)) {
            *out = i;
            named++;
        }
    }
    FAIL_IF(named > 1, e, PROFD_AMBIGUOUS,
            "%u functions of build %s are named %.200s; use the address of one, which /functions?name= says", named, id,
            text);
    FAIL_IF(named == 0 && is_address, e, PROFD_NOT_FOUND, "no function of build %s at 0x%" PRIx64 " is in this report",
            id, address);
    return named == 1 ? PROFD_OK
                      : profd_error_set(e, PROFD_NOT_FOUND, "no function of build %s named %.200s is in this report",
                                        id, text);
}

/* /api/v1/builds/{id}/functions/{address}/addresses: ticks and calls of one function by address. */

struct function_counts {
    const struct report_work *work;
    const struct report_function *function;
    uint64_t end;   /* of the function */
    uint32_t build; /* the profile's number of its build */
    struct address_ticks *ticks;
    struct address_calls *calls;
    uint32_t tick_count, call_count, ticks_capacity, calls_capacity;
};

static int compare_ticks(const void *left, const void *right)
{
    const struct address_ticks *a = left, *b = right;
    return compare_pairs(a->address, b->address, a->bytes, b->bytes);
}

static int compare_calls(const void *left, const void *right)
{
    const struct address_calls *a = left, *b = right;
    int order = (a->address > b->address) - (a->address < b->address);
    return order != 0 ? order : (a->callee > b->callee) - (a->callee < b->callee);
}

/* Sorted by address: the bins that have a byte of the function, and the calls that it makes. */
static void fill_listing(struct function_counts *l, struct arena *a)
{
    const struct profile *p = l->work->load.profile;
    const struct counts *c = &p->counts;
    const struct report *r = l->work->report;
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        const struct counts_histogram *h = &c->histograms[i];
        const struct bins bins = bins_make(h->low, h->high, h->bins);
        const bool counts = h->build == l->build && strcmp(h->dimension, r->dimension) == 0;
        for (uint32_t k = h->first; counts && k < h->first + h->used; k++) {
            uint64_t low, high;
            bins_range(&bins, c->bin_index[k], &low, &high);
            if (high <= l->function->address || low >= l->end) {
                continue;
            }
            l->ticks = arena_extend(a, l->ticks, l->tick_count, &l->ticks_capacity, sizeof *l->ticks);
            l->ticks[l->tick_count++] = (struct address_ticks){.address = low,
                                                               .bytes = high - low,
                                                               .ticks = c->bin_ticks[k],
                                                               .seconds = (double)c->bin_ticks[k] / h->rate,
                                                               .shared = low < l->function->address || high > l->end};
        }
    }
    for (uint32_t i = 0; i < c->arc_count; i++) {
        const uint64_t from = c->from[i];
        const char *to = c->to_build[i] < p->build_count ? p->builds[c->to_build[i]] : "";
        /* A call that does not return may stand last: its return address is the function's end. */
        if (c->from_build[i] != l->build || from <= l->function->address || from > l->end || c->calls[i] == 0) {
            continue;
        }
        const struct report_function *callee = NULL;
        for (uint32_t k = 0; !callee && k < r->function_count; k++) {
            callee = function_holds(r, &r->functions[k], to, c->to[i]) ? &r->functions[k] : NULL;
        }
        l->calls = arena_extend(a, l->calls, l->call_count, &l->calls_capacity, sizeof *l->calls);
        l->calls[l->call_count++] = (struct address_calls){.address = from, .calls = c->calls[i], .callee = callee};
    }
    if (l->tick_count > 0) {
        qsort(l->ticks, l->tick_count, sizeof *l->ticks, compare_ticks);
        /* Histograms of several rates have the same bins: one row each. */
        uint32_t kept = 0;
        for (uint32_t i = 1; i < l->tick_count; i++) {
            struct address_ticks *last = &l->ticks[kept];
            const struct address_ticks *next = &l->ticks[i];
            if (compare_ticks(last, next) != 0) {
                l->ticks[++kept] = *next;
                continue;
            }
            last->ticks = sum_all((const uint64_t[]){last->ticks, next->ticks}, 2);
            last->seconds += next->seconds;
        }
        l->tick_count = kept + 1;
    }
    if (l->call_count > 0) {
        qsort(l->calls, l->call_count, sizeof *l->calls, compare_calls);
    }
}

static int compare_from(const void *key, const void *member)
{
    const uint64_t address = *(const uint64_t *)key, other = ((const struct object_arc *)member)->from;
    return (address > other) - (address < other);
}

/* The function that an instruction branches to, with the offset if it is not the first byte; NULL: itself, or not
 * known.
 */
static const char *name_target(struct arena *a, const struct symtab *t, const struct function_counts *l,
                               const struct object_instruction *i)
{
    const struct object *o = t->object;
    const struct object_arc *arc =
        o->arc_count > 0 ? bsearch(&i->address, o->arcs, o->arc_count, sizeof *arc, compare_from) : NULL;
    if (arc && arc->import != 0) {
        return object_name(o, arc->import);
    }
    if (!i->targeted || (i->target > l->function->address && i->target < l->end)) {
        return NULL;
    }
    const char *import = symtab_import(t, i->target);
    const struct symtab_owner *owner = &t->owners[symtab_find(t, i->target)];
    if (import || owner->kind != SYMTAB_FUNCTION) {
        return import;
    }
    const char *name = object_name(o, o->symbols[owner->symbol].demangled);
    return i->target <= owner->address ? name : arena_format(a, "%s+0x%" PRIx64, name, i->target - owner->address);
}

/* The profile's number of a build; the number of its builds if it has none of that id. */
static uint32_t find_build_number(const struct report_work *w, const char *id)
{
    uint32_t i = 0;
    while (i < w->load.profile->build_count && strcmp(w->load.profile->builds[i], id) != 0) {
        i++;
    }
    return i;
}

/* A function that the symbol table has and the report has not, because nothing of it was counted; NULL if there is none
 * or there are several. text: as in find_in_path. */
static struct report_function *find_uncounted(struct job *job, const struct report_work *w, const char *build,
                                              const char *text)
{
    const uint32_t number = find_build_number(w, build);
    const struct object *o = number < w->load.profile->build_count ? w->objects[number] : NULL;
    const struct object_symbol *found = NULL;
    uint64_t address = 0;
    const bool is_address = function_parse_address(text, &address);
    for (uint32_t i = 0; o && i < o->symbol_count; i++) {
        const struct object_symbol *s = &o->symbols[i];
        const bool named =
            strcmp(object_name(o, s->name), text) == 0 || strcmp(object_name(o, s->demangled), text) == 0;
        if (s->type != OBJECT_TYPE_FUNCTION || s->size == 0 ||
            !(named || (is_address && address - s->address < s->size))) {
            continue;
        }
        if (found && found->address != s->address) {
            return NULL;
        }
        found = s;
    }
    struct report_function *f = found ? ARENA_NEW(job->arena, struct report_function) : NULL;
    if (f) {
        *f = (struct report_function){.kind = REPORT_FUNCTION,
                                      .name = object_name(o, found->demangled),
                                      .raw = object_name(o, found->name),
                                      .address = found->address,
                                      .size = found->size,
                                      .file = object_name(o, found->file),
                                      .line = found->line};
        while (f->build < w->report->build_count && strcmp(w->report->builds[f->build], build) != 0) {
            f->build++;
        }
    }
    return f;
}

enum profd_status addresses_show(struct job *job, struct profd_error *e)
{
    struct report_work w;
    size_t limit = 0;
    uint32_t position = 0;
    TRY(work_make_report(job, &w, &limit, e));
    const struct report *r = w.report;
    const struct profile *p = w.load.profile;
    const char *build = find_path_build(job, &w);
    enum profd_status status = find_in_path(job, &w, &position, e);
    const struct report_function *f =
        status == PROFD_NOT_FOUND ? find_uncounted(job, &w, build, job->params->segments[5]) : &r->functions[position];
    if (!f || (status && status != PROFD_NOT_FOUND)) {
        return status;
    }
    struct function_counts l = {
        .work = &w, .function = f, .build = find_build_number(&w, build), .end = f->address + f->size};
    FAIL_IF(report_kind_is_class(f->kind) || f->size == 0, e, PROFD_BAD_QUERY,
            "%.100s has no size in the symbol table: its end is not known", f->name);
    fill_listing(&l, job->arena);
    const uint32_t rate = r->rate_count > 0 ? r->rates[r->rate_count - 1] : 0;
    struct render_addresses what = {.function = f,
                                    .tick_count = l.tick_count,
                                    .call_count = l.call_count,
                                    .ticks = l.ticks,
                                    .calls = l.calls,
                                    .object = l.build < p->build_count ? w.objects[l.build] : NULL,
                                    .overdispersion = report_measure_overdispersion(rate, r->per_tick)};

    /* The lines of the function's bytes, and its instructions; none if its build has none. */
    struct object_line *lines = NULL;
    struct object_instruction *instructions = NULL;
    if (what.object) {
        status = object_lines_find(what.object, job->arena, f->address, l.end, &lines, &what.line_count, e);
        if (!status) {
            status = object_instructions_find(what.object, job->arena, f->address, l.end, &instructions,
                                              &what.instruction_count, e);
        }
    }
    if (what.object && status) {
        return profd_error_wrap(e, status == PROFD_NO_MEMORY ? status : PROFD_DAMAGED, "stored symbols of build %s",
                                what.object->id.text);
    }
    for (uint32_t i = 0; i < what.line_count; i++) {
        lines[i].low = lines[i].low < f->address ? f->address : lines[i].low;
        lines[i].high = lines[i].high > l.end ? l.end : lines[i].high;
    }
    what.lines = lines;
    what.instructions = instructions;
    if (what.instruction_count > 0) {
        const struct symtab_request request = {.object = what.object, .build_id = what.object->id.text};
        struct symtab *t;
        TRY(symtab_build(job->arena, &request, &t, e));
        const char **names = ARENA_ARRAY(job->arena, what.instruction_count, const char *);
        for (uint32_t i = 0; i < what.instruction_count; i++) {
            names[i] = name_target(job->arena, t, &l, &instructions[i]);
        }
        what.target_names = names;
    }
    const struct render_input in = work_make_input(&w);
    render_addresses(&in, &what, &job->answer->body);
    return PROFD_OK;
}

/* /api/v1/builds/{id}/functions/{address}/callers: how long their calls took, and how that is known. */

enum profd_status callers_show(struct job *job, struct profd_error *e)
{
    static const char *const METHODS[] = {"best", "stacks", "calls"}; /* in the order of enum callers_method */
    const char *method = params_find(job->params, "method");
    struct report_work w;
    struct callers c;
    size_t limit = 0;
    uint32_t position = 0, want = 0;
    while (method && want < sizeof METHODS / sizeof *METHODS && strcmp(method, METHODS[want]) != 0) {
        want++;
    }
    FAIL_IF(want == sizeof METHODS / sizeof *METHODS, e, PROFD_BAD_QUERY, "method=%s is none of: best, stacks, calls",
            method);
    TRY(work_make_report(job, &w, &limit, e));
    TRY(find_in_path(job, &w, &position, e));
    callers_make(job->arena, w.report, position, (enum callers_method)want, &c);
    const struct render_input in = work_make_input(&w);
    render_callers(&in, &c, limit, &job->answer->body);
    return PROFD_OK;
}

/* /api/v1/builds/{id}/cycles: the cycles of a report, the arcs inside each, and those that would break it. */

/* The arcs among members, each marked. Members are numbered by number, which has an element for each function. */
static void find_arcs(struct arena *a, const struct report *r, const struct report_cycle *cycle, uint32_t *number,
                      struct render_cycle *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < cycle->member_count; i++) {
        number[cycle->members[i].other] = i;
        n += r->functions[cycle->members[i].other].callee_count;
    }
    struct cycle_arc *arcs = ARENA_ARRAY(a, (size_t)n + 1, struct cycle_arc);
    n = 0;
    for (uint32_t i = 0; i < cycle->member_count; i++) {
        const struct report_function *f = &r->functions[cycle->members[i].other];
        for (uint32_t k = 0; k < f->callee_count; k++) {
            if (f->callees[k].inside) {
                arcs[n++] =
                    (struct cycle_arc){.from = i, .to = number[f->callees[k].other], .calls = f->callees[k].calls};
            }
        }
    }
    /* By calls, the most first. */
    struct sort_item *order = ARENA_ARRAY(a, (size_t)n * 2, struct sort_item);
    struct cycle_arc *sorted = ARENA_ARRAY(a, (size_t)n + 1, struct cycle_arc);
    for (uint32_t i = 0; i < n; i++) {
        order[i] = (struct sort_item){~arcs[i].calls, i};
    }
    sort_radix(order, order + n, n);
    for (uint32_t i = 0; i < n; i++) {
        sorted[i] = arcs[order[i].value];
    }
    *out = (struct render_cycle){.cycle = cycle, .arcs = sorted, .arc_count = n};
    cycle_break(a, cycle->member_count, sorted, n);
}

enum profd_status cycles_list(struct job *job, struct profd_error *e)
{
    struct report_work w;
    size_t limit = 0;
    TRY(work_make_report(job, &w, &limit, e));
    const struct report *r = w.report->shown;
    const uint32_t count = limit < r->cycle_count ? (uint32_t)limit : r->cycle_count;
    struct render_cycle *cycles = ARENA_ARRAY(job->arena, r->cycle_count, struct render_cycle);
    struct sort_item *order = ARENA_ARRAY(job->arena, (size_t)r->cycle_count * 2, struct sort_item);
    uint32_t *number = ARENA_ARRAY(job->arena, r->function_count, uint32_t);
    /* Those with the most time first. */
    for (uint32_t i = 0; i < r->cycle_count; i++) {
        order[i] = (struct sort_item){~sort_key_double(r->cycles[i].self + r->cycles[i].children), i};
    }
    sort_radix(order, order + r->cycle_count, r->cycle_count);
    for (uint32_t i = 0; i < count; i++) {
        find_arcs(job->arena, r, &r->cycles[order[i].value], number, &cycles[i]);
    }
    const struct render_input in = work_make_input(&w);
    render_cycles(&in, cycles, count, limit, &job->answer->body);
    return PROFD_OK;
}

/* /api/v1/builds/{id}/never-called: functions that no process of the window entered. */

/* Names the source file of a row by its line in the debug information, if the symbol table has no file. */
static enum profd_status find_files(struct job *job, const struct object *o, struct never_called *never,
                                    struct profd_error *e)
{
    struct object_line *lines = NULL;
    uint32_t count = 0;
    TRY(object_lines_find(o, job->arena, 0, UINT64_MAX, &lines, &count, e));
    for (uint32_t i = 0; i < never->count; i++) {
        const struct report_function *f = never->rows[i].function;
        uint32_t above; /* the first line that begins above the function's beginning */
        SORT_SEARCH(above, 0, count, lines[above].low <= f->address);
        if ((f->file && f->file[0]) || above == 0 || lines[above - 1].high <= f->address) {
            continue;
        }
        struct report_function *named = ARENA_NEW(job->arena, struct report_function);
        *named = *f;
        named->file = object_name(o, lines[above - 1].file);
        never->rows[i].function = named;
    }
    return PROFD_OK;
}

enum profd_status never_called_show(struct job *job, struct profd_error *e)
{
    struct report_work w;
    size_t limit = 0;
    struct never_called never;
    TRY(work_make_report(job, &w, &limit, e));
    const uint32_t number = find_build_number(&w, w.id.text);
    const struct object *object = number < w.load.profile->build_count ? w.objects[number] : NULL;
    never_called_make(job->arena, w.report, w.id.text, object, &never);
    if (object) {
        TRY(find_files(job, object, &never, e));
    }
    const struct render_input in = work_make_input(&w);
    render_never(&in, &never, limit, &job->answer->body);
    return PROFD_OK;
}

/* /api/v1/builds/{id}/functions/{address}, and /api/v1/builds/{id}/functions?name=: the function in the format of a
 * report, and the functions with a text in their names. */

enum profd_status function_show(struct job *job, struct profd_error *e)
{
    struct report_work w;
    uint32_t found = 0;
    TRY(work_make_report(job, &w, NULL, e));
    TRY(find_in_path(job, &w, &found, e));
    struct render_input in = work_make_input(&w);
    in.show.limit = 0;
    in.only = found + 1;
    return render_report(w.options.format, &in, job->arena, &job->answer->body, e);
}

enum profd_status function_search(struct job *job, struct profd_error *e)
{
    struct report_work w;
    struct list_page list;
    const char *name = params_find(job->params, "name");
    unsigned long long after = 0;
    FAIL_IF(!name || name[0] == '\0', e, PROFD_BAD_QUERY, "name= must say what to search for");
    TRY(list_begin(job, RENDER_FUNCTIONS, sizeof(struct function_row), &list, e));
    TRY(params_parse_number(job->params, "cursor", 0, UINT32_MAX, &after, e));
    TRY(work_make_report(job, &w, NULL, e));
    const struct report *r = w.report;
    for (uint32_t i = 0; i < r->order_count && !list.more; i++) {
        const uint32_t at = r->order[i];
        const struct report_function *f = at & REPORT_CYCLE ? NULL : &r->functions[at];
        if (!f || f->index <= after || (strstr(f->name, name) == NULL && strstr(f->raw, name) == NULL)) {
            continue;
        }
        struct function_row *row = list_add(&list);
        if (row) {
            *row = (struct function_row){.name = f->name,
                                         .raw = f->raw,
                                         .file = f->file ? f->file : "",
                                         .build_id = f->build < r->build_count ? r->builds[f->build] : "",
                                         .address = f->address,
                                         .index = f->index,
                                         .cycle = f->cycle,
                                         .self = f->self,
                                         .children = f->children,
                                         .percent = f->percent,
                                         .calls = f->calls,
                                         .self_calls = f->self_calls};
        }
    }
    const struct function_row *rows = list.rows;
    list_show(&list, list.more ? arena_format(job->arena, "%" PRIu32, rows[list.count - 1].index) : NULL);
    return PROFD_OK;
}

/* /api/v1/builds/{id}/functions/{address}/series: one function over time, each step a report of its own. */

struct series {
    struct job *job;
    struct report_work *whole; /* the question: its window is the union of the steps */
    struct subreport subreport;
    const char *build; /* the function's */
    uint64_t address;
    int64_t step;
    struct series_row *rows;
    uint32_t count, capacity;
    struct render_series head; /* what is known of the function so far */
};

/* The report of [since, until), at the resolution of the stored data: a row of the step's width from time on, if there
 * is an upload. The row has zeros if the function is not in the report. */
static enum profd_status add_step(struct series *s, int64_t time, int64_t since, int64_t until, int64_t *used_until,
                                  struct profd_error *e)
{
    struct report_work w = *s->whole;
    w.options.since = since > 0 ? since : 1;
    w.options.until = until;
    TRY(subreport_load(&s->subreport, &w, e));
    *used_until = w.used_until > until ? w.used_until : until;
    if (w.load.provenance.uploads == 0) {
        return PROFD_OK;
    }
    TRY(subreport_make(&s->subreport, &w, e));
    struct series_row row = {.time = time,
                             .width = s->step,
                             .uploads = w.load.provenance.uploads,
                             .processes = w.load.provenance.processes,
                             .inexact = w.load.provenance.inexact,
                             .seconds = w.report->total,
                             .has_stacks = w.report->stacks,
                             .time_measured = w.report->time_measured};
    if (w.used_until > time + s->step ||
        w.used_since < time) { /* inside an hour that is one sum by now, or a slice of a live process */
        row.time = w.used_since;
        row.width = w.used_until - w.used_since;
    }
    for (uint32_t i = 0; i < w.report->function_count; i++) {
        const struct report_function *f = &w.report->functions[i];
        if (!function_holds(w.report, f, s->build, s->address)) {
            continue;
        }
        row.self = f->self;
        row.children = f->children;
        row.calls = f->calls;
        row.self_calls = f->self_calls;
        row.cycle = f->cycle;
        if (f->measured) {
            row.is_measured = true;
            row.measured = *f->measured;
        }
        if (!s->head.name) {
            s->head.name = arena_copy(s->job->arena, f->name, strlen(f->name));
            s->head.address = f->address;
        }
        break;
    }
    s->rows = arena_extend(s->job->arena, s->rows, s->count, &s->capacity, sizeof *s->rows);
    s->rows[s->count++] = row;
    return PROFD_OK;
}

enum profd_status series_show(struct job *job, struct profd_error *e)
{
    struct report_work w;
    struct series s = {.job = job, .whole = &w};
    int64_t begin, end;
    TRY(steps_parse(job, STEPS_HOUR, &s.step, e));
    if (!function_parse_address(job->params->segments[5], &s.address)) {
        uint32_t found = 0;
        TRY(work_make_report(job, &w, NULL, e));
        TRY(find_in_path(job, &w, &found, e));
        s.address = w.report->functions[found].address;
    }
    TRY(work_begin(job, false, &w, e));
    TRY(steps_find_span(&w, s.step, &begin, &end, e));
    s.build = find_path_build(job, &w);
    subreport_init(&s.subreport, job);
    if (begin < end) {
        struct report_work any = w;
        any.options.since = 1; /* a step is never all there is */
        TRY(work_load_ever(job, &any, &s.subreport.ever, e));
    }

    /* Uploads may become sums while the steps are gone through; then edges move outward, and two steps may have counted
     * one upload. */
    for (bool overlap = true; overlap;) {
        int64_t used_until = 0;
        s.count = 0;
        overlap = false;
        for (int64_t time = begin - begin % s.step; time < end; time += s.step) {
            int64_t since = time > w.options.since ? time : w.options.since, until = time + s.step;
            if (used_until > time) {
                since = used_until; /* its beginning is in the row before, with the rest of its hour or slice */
            }
            if (w.options.until > 0 && w.options.until < until) {
                until = w.options.until;
            }
            if (since < until) {
                TRY(add_step(&s, time, since, until, &used_until, e));
            }
        }
        for (uint32_t i = 1; i < s.count; i++) {
            overlap |= s.rows[i].time < s.rows[i - 1].time + s.rows[i - 1].width;
        }
    }
    FAIL_IF(s.count > 0 && !s.head.name, e, PROFD_NOT_FOUND,
            "no function of build %s at 0x%" PRIx64 " is in these reports", s.build, s.address);
    s.head.rows = s.rows;
    s.head.row_count = s.count;
    s.head.build_id = s.build;
    s.head.dimension = subreport_dimension(&w.options);
    s.head.step = s.step;
    s.head.since = w.used_since;
    s.head.until = w.used_until;
    s.head.address = s.head.name ? s.head.address : s.address;
    render_series(&s.head, &job->answer->body);
    return PROFD_OK;
}
