/* /api/v1/builds/{id}/functions/{address}/addresses: ticks and calls of one function by address. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/compare.h"
#include "core/object_instructions.h"
#include "core/object_lines.h"
#include "core/report_measure.h"
#include "core/sum.h"
#include "core/symtab.h"
#include "proto/bins.h"
#include "query/function.h"
#include "query/handlers.h"
#include "query/query.h"
#include "query/work.h"
#include "render/render_addresses.h"

struct listing {
    const struct work *work;
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

/* Of one histogram the bins that have a byte of the function. */
static void add_ticks(struct listing *l, struct arena *a, const struct profile_histogram *h)
{
    const struct bins bins = bins_make(h->low, h->high, h->bins);
    for (uint32_t i = 0; i < h->used; i++) {
        uint64_t low, high;
        bins_range(&bins, h->index[i], &low, &high);
        if (high <= l->function->address || low >= l->end) {
            continue;
        }
        l->ticks = arena_extend(a, l->ticks, l->tick_count, &l->ticks_capacity, sizeof *l->ticks);
        l->ticks[l->tick_count++] = (struct address_ticks){.address = low,
                                                           .bytes = high - low,
                                                           .ticks = h->ticks[i],
                                                           .seconds = (double)h->ticks[i] / h->rate,
                                                           .shared = low < l->function->address || high > l->end};
    }
}

static const struct report_function *find_callee(const struct work *w, const struct profile_arc *arc)
{
    const struct report *r = w->report;
    const char *id = arc->to_build < w->load.profile->build_count ? w->load.profile->builds[arc->to_build] : "";
    for (uint32_t i = 0; i < r->function_count; i++) {
        if (function_holds(r, &r->functions[i], id, arc->to)) {
            return &r->functions[i];
        }
    }
    return NULL;
}

static void fill(struct listing *l, struct arena *a)
{
    const struct profile *p = l->work->load.profile;
    const struct report *r = l->work->report;
    for (uint32_t i = 0; i < p->histogram_count; i++) {
        const struct profile_histogram *h = &p->histograms[i];
        if (h->build == l->build && strcmp(h->dimension, r->dimension) == 0) {
            add_ticks(l, a, h);
        }
    }
    for (uint32_t i = 0; i < p->arc_count; i++) {
        const struct profile_arc *arc = &p->arcs[i];
        /* a call that does not return may stand last: its return address is the function's end */
        if (arc->from_build == l->build && arc->from > l->function->address && arc->from <= l->end && arc->calls > 0) {
            l->calls = arena_extend(a, l->calls, l->call_count, &l->calls_capacity, sizeof *l->calls);
            l->calls[l->call_count++] =
                (struct address_calls){.address = arc->from, .calls = arc->calls, .callee = find_callee(l->work, arc)};
        }
    }
    if (l->tick_count > 0) {
        qsort(l->ticks, l->tick_count, sizeof *l->ticks, compare_ticks);
        /* Histograms of several rates have the same bins: one row each. The rows are sorted. */
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

/* The lines of the function's bytes; none if its build has none. */
static enum profd_status find_lines(struct job *job, const struct listing *l, struct object_line **out, uint32_t *count,
                                    struct profd_error *e)
{
    const struct object *o = l->build < l->work->load.profile->build_count ? l->work->objects[l->build] : NULL;
    *count = 0;
    if (o == NULL) {
        return PROFD_OK;
    }
    enum profd_status status = object_lines_find(o, job->arena, l->function->address, l->end, out, count, e);
    if (status != PROFD_OK) {
        return profd_error_wrap(e, status == PROFD_NO_MEMORY ? status : PROFD_DAMAGED, "stored symbols of build %s",
                                o->id.text);
    }
    for (uint32_t i = 0; i < *count; i++) {
        struct object_line *line = &(*out)[i];
        line->low = line->low < l->function->address ? l->function->address : line->low;
        line->high = line->high > l->end ? l->end : line->high;
    }
    return PROFD_OK;
}

static int compare_from(const void *key, const void *member)
{
    const uint64_t address = *(const uint64_t *)key, other = ((const struct object_arc *)member)->from;
    return (address > other) - (address < other);
}

/* The function that an instruction branches to, with the offset if it is not the first byte; NULL: itself, or not
 * known.
 */
static const char *name_target(struct arena *a, const struct symtab *t, const struct listing *l,
                               const struct object_instruction *i)
{
    const struct object *o = t->object;
    const struct object_arc *arc =
        o->arc_count > 0 ? bsearch(&i->address, o->arcs, o->arc_count, sizeof *arc, compare_from) : NULL;
    if (arc != NULL && arc->import != 0) {
        return object_name(o, arc->import);
    }
    if (!i->targeted || (i->target > l->function->address && i->target < l->end)) {
        return NULL;
    }
    const char *import = symtab_import(t, i->target);
    const struct symtab_owner *owner = &t->owners[symtab_find(t, i->target)];
    if (import != NULL || owner->kind != SYMTAB_FUNCTION) {
        return import;
    }
    const char *name = object_name(o, o->symbols[owner->symbol].demangled);
    return i->target <= owner->address ? name : arena_format(a, "%s+0x%" PRIx64, name, i->target - owner->address);
}

static enum profd_status name_targets(struct job *job, const struct listing *l, struct render_addresses *what,
                                      struct profd_error *e)
{
    const struct symtab_request request = {.object = what->object, .build_id = what->object->id.text};
    struct symtab *t;
    TRY(symtab_build(job->arena, &request, &t, e));
    const char **names = ARENA_ARRAY(job->arena, what->instruction_count, const char *);
    for (uint32_t i = 0; i < what->instruction_count; i++) {
        names[i] = name_target(job->arena, t, l, &what->instructions[i]);
    }
    what->target_names = names;
    return PROFD_OK;
}

/* The function's instructions; none if its build has none. */
static enum profd_status find_instructions(struct job *job, const struct listing *l, struct render_addresses *what,
                                           struct profd_error *e)
{
    struct object_instruction *rows = NULL;
    if (what->object == NULL) {
        return PROFD_OK;
    }
    enum profd_status status = object_instructions_find(what->object, job->arena, l->function->address, l->end, &rows,
                                                        &what->instruction_count, e);
    what->instructions = rows;
    if (status != PROFD_OK) {
        return profd_error_wrap(e, status == PROFD_NO_MEMORY ? status : PROFD_DAMAGED, "stored symbols of build %s",
                                what->object->id.text);
    }
    return what->instruction_count > 0 ? name_targets(job, l, what, e) : PROFD_OK;
}

/* The profile's number of a build; the number of its builds if it has none of that id. */
static uint32_t find_build(const struct work *w, const char *id)
{
    uint32_t i = 0;
    while (i < w->load.profile->build_count && strcmp(w->load.profile->builds[i], id) != 0) {
        i++;
    }
    return i;
}

/* A function that the symbol table has and the report has not, because nothing of it was counted; NULL if there is none
 * or there are several. text: as of function_find. */
static struct report_function *find_uncounted(struct job *job, const struct work *w, const char *build,
                                              const char *text)
{
    const uint32_t number = find_build(w, build);
    const struct object *o = number < w->load.profile->build_count ? w->objects[number] : NULL;
    const struct object_symbol *found = NULL;
    uint64_t address = 0;
    const bool is_address = function_parse_address(text, &address);
    for (uint32_t i = 0; o != NULL && i < o->symbol_count; i++) {
        const struct object_symbol *s = &o->symbols[i];
        const bool named =
            strcmp(object_name(o, s->name), text) == 0 || strcmp(object_name(o, s->demangled), text) == 0;
        if (s->type != OBJECT_TYPE_FUNCTION || s->size == 0 ||
            !(named || (is_address && address - s->address < s->size))) {
            continue;
        }
        if (found != NULL && found->address != s->address) {
            return NULL;
        }
        found = s;
    }
    struct report_function *f = found != NULL ? ARENA_NEW(job->arena, struct report_function) : NULL;
    if (f != NULL) {
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

static enum profd_status show(struct job *job, const struct work *w, const char *build,
                              const struct report_function *function, struct profd_error *e)
{
    const struct report *r = w->report;
    struct listing l = {.work = w, .function = function, .build = find_build(w, build)};
    l.end = l.function->address + l.function->size;
    if (report_kind_is_class(l.function->kind) || l.function->size == 0) {
        return profd_error_set(e, PROFD_BAD_QUERY, "%.100s has no size in the symbol table: its end is not known",
                               l.function->name);
    }
    fill(&l, job->arena);
    struct object_line *lines = NULL;
    uint32_t line_count;
    TRY(find_lines(job, &l, &lines, &line_count, e));
    const struct render_input in = work_make_input(w);
    struct render_addresses what = {.function = l.function,
                                    .tick_count = l.tick_count,
                                    .call_count = l.call_count,
                                    .ticks = l.ticks,
                                    .calls = l.calls,
                                    .line_count = line_count,
                                    .lines = lines,
                                    .object = l.build < w->load.profile->build_count ? w->objects[l.build] : NULL,
                                    .overdispersion = report_measure_overdispersion(
                                        r->rate_count > 0 ? r->rates[r->rate_count - 1] : 0, r->per_tick)};
    TRY(find_instructions(job, &l, &what, e));
    render_addresses(&in, &what, &job->answer->body);
    return PROFD_OK;
}

enum profd_status addresses_show(struct job *job, struct profd_error *e)
{
    struct work w;
    bool fresh = false;
    size_t limit = 0;
    uint32_t position = 0;
    const char *build = params_find(job->params, "build_id");
    TRY(work_make_report(job, &w, &limit, &fresh, e));
    if (fresh) {
        return PROFD_OK;
    }
    build = build != NULL ? build : w.id.text;
    const enum profd_status status = function_find(w.report, build, job->params->segments[5], &position, e);
    const struct report_function *f = status == PROFD_OK ? &w.report->functions[position]
                                      : status == PROFD_NOT_FOUND
                                          ? find_uncounted(job, &w, build, job->params->segments[5])
                                          : NULL;
    return f != NULL ? show(job, &w, build, f, e) : status;
}
