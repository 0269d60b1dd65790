/* From the parameters of a report to its bytes: load → symbolize → graph → cycles → propagate → render. Also reports
 * that are made for a part of another answer, and the sum itself as records of gmon.out. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/pprof_codec.h"
#include "core/report.h"
#include "proto/collector.h"
#include "proto/noun.h"
#include "proto/segment.h"
#include "proto/sort.h"
#include "query/query_internal.h"

static void take_row(void *context, const struct build_row *row)
{
    struct report_work *w = ((void **)context)[0];
    struct job *job = ((void **)context)[1];
    ARENA_BOUNDARY(job->arena, );
    w->is_program = row->is_program;
    w->first_seen = row->first_seen;
    w->last_seen = row->last_seen;
    w->name = job_copy(job, row->name);
}

struct store_filter work_make_filter(const struct report_work *w)
{
    const struct options *o = &w->options;
    return (struct store_filter){
        .build_id = w->id.text,
        .as_program = w->scope != OPTIONS_SCOPE_EVERYWHERE,
        .by_host = w->by_host,
        .spread = w->shares,
        .since = o->since,
        .until = o->until,
        .matcher_count = o->matcher_count,
        .matchers = o->matchers,
    };
}

/* Where the window's edges lie now. */
static enum profd_status find_edges(struct job *job, struct report_work *w, struct profd_error *e)
{
    const struct store_filter filter = work_make_filter(w);
    int64_t since = 0, until = 0;
    if (filter.since != 0 || filter.until != 0) {
        TRY(store_get_range(job->store, &w->options.visible, &filter, &since, &until, e));
    }
    TRY(store_pattern_judge(&filter, e));
    w->used_since = since;
    w->used_until = until;
    return PROFD_OK;
}

enum profd_status work_check_edges(struct job *job, struct report_work *w, bool *moved, struct profd_error *e)
{
    const int64_t since = w->used_since, until = w->used_until;
    TRY(find_edges(job, w, e));
    *moved = since != w->used_since || until != w->used_until;
    return PROFD_OK;
}

enum profd_status work_find(struct job *job, const struct params *p, const char *build, bool compat,
                            struct report_work *w, struct profd_error *e)
{
    const struct query_request *r = job->request;
    memset(w, 0, sizeof *w);
    TRY(options_parse(p, &r->scope, r->http, r->now, compat, job->arena, &w->options, e));
    /* Groups of hosts need no functions. */
    bool grouped = false, host = false;
    for (size_t i = 0; i < p->count; i++) {
        const bool by = strcmp(p->items[i].name, "by") == 0;
        grouped |= by;
        host |= by && strcmp(p->items[i].value, "host") == 0;
    }
    for (size_t i = 0; i < w->options.matcher_count; i++) {
        host |= strcmp(w->options.matchers[i].name, "host") == 0;
    }
    w->by_host = grouped && host;
    TRY(store_find_build(job->store, &w->options.visible, build, &w->id, e));
    void *context[] = {w, job};
    const enum profd_status status = store_get_build(job->store, &w->options.visible, w->id.text, take_row, context, e);
    arena_continue(job->arena);
    TRY(status);
    w->scope = w->options.scope;
    if (w->scope == OPTIONS_SCOPE_DEFAULT) {
        w->scope = w->is_program ? OPTIONS_SCOPE_PROGRAM : OPTIONS_SCOPE_EVERYWHERE;
    } else if (w->scope != OPTIONS_SCOPE_EVERYWHERE && !w->is_program) {
        return profd_error_set(e, PROFD_BAD_QUERY,
                               "scope=%s requires a main executable, which build %s never was; use scope=everywhere",
                               w->scope == OPTIONS_SCOPE_PROGRAM ? "program" : "build", w->id.text);
    }
    return find_edges(job, w, e);
}

enum profd_status work_begin(struct job *job, bool compat, struct report_work *w, struct profd_error *e)
{
    TRY(work_find(job, job->params, job->params->segments[PARAMS_BUILD], compat, w, e));
    /* The epoch is read before the data: a tag may be older than its answer, never newer. */
    struct store_epoch epoch;
    const struct options *o = &w->options;
    TRY(store_epoch(job->store, &job->request->scope, w->id.text, &epoch, e));
    const int64_t resolved[] = {(int64_t)w->scope, o->since, o->until, w->used_since, w->used_until};
    job->build = w->id.text;
    return job_set_etag(job, resolved, sizeof resolved, &epoch);
}

static struct load_request load_everything(const struct job *job, const struct report_work *w, bool alone)
{
    return (struct load_request){
        .store = job->store,
        .scope = job->request->scope,
        .filter = {.build_id = w->id.text, .as_program = w->scope != OPTIONS_SCOPE_EVERYWHERE},
        .alone = alone || w->scope != OPTIONS_SCOPE_PROGRAM,
        .cache = job->request->cache,
        .downtime = job->request->downtime,
    };
}

enum profd_status work_load(struct job *job, struct report_work *w, bool alone, struct profd_error *e)
{
    struct load_request request = load_everything(job, w, alone);
    request.scope = w->options.visible;
    request.filter = work_make_filter(w);
    request.shares = w->shares;
    request.stacks = w->without_errors ? LOAD_STACKS_TOTALS : LOAD_STACKS_SHARES;
    bool moved;
    do {
        TRY(load_profile(&request, job->arena, &w->load, e));
        TRY(work_check_edges(job, w, &moved, e));
    } while (moved);
    coverage_make(w->load.profile, &w->coverage);
    const struct provenance *p = &w->load.provenance;
    char since[40];
    if (!w->options.empty_is_error || p->uploads > 0) {
        return PROFD_OK;
    }
    FAIL_IF((p->inexact & (uint32_t)INEXACT_HOST_TOTALS) != 0, e, PROFD_NOTHING, "nothing matches: %s",
            message_inexact_meaning(INEXACT_HOST_TOTALS));
    render_time_second(w->last_seen, since);
    profd_error_set(e, PROFD_NOTHING,
                    "no upload of build %.16s is stored for this scope, time range, user and these labels; the latest "
                    "data of it is of %s",
                    w->id.text, since);
    if (p->unread == 0) {
        return profd_error_wrap(e, PROFD_NOTHING, "nothing matches");
    }
    render_time_second(p->unread_since, since);
    return profd_error_wrap(e, PROFD_NOTHING,
                            "nothing matches yet: of %" PRIu64
                            " live %s what was counted since %s is not read, because the daemon was started again; "
                            "ask again in a minute",
                            p->unread, noun_for(p->unread, "process", "processes"), since);
}

/* The symbols of one build in the loaded sum; NULL: they were not sent. *disputed: a sentence, or NULL. */
static enum profd_status work_find_object(struct job *job, const struct report_work *w, const char *id,
                                          const struct object **out, const char **disputed, struct profd_error *e)
{
    uint8_t *bytes = NULL;
    size_t size;
    struct store_naming naming = {.variants = 0};
    const struct provenance *p = &w->load.provenance;
    const struct store_senders of = {.uids = p->uids, .uid_count = p->uid_count};
    struct object *object = NULL;
    enum profd_status status = store_get_object(job->store, &of, id, &bytes, &size, &naming, NULL);
    FAIL_IF(status && status != PROFD_NOT_FOUND, e, status, "the symbols of build %s cannot be read", id);
    struct arena_deferred deferred;
    arena_defer(job->arena, &deferred, free, bytes);
    *disputed = naming.apart       ? "it has no names: the tenants of this report have not all sent the same symbols"
                : *naming.disputed ? job_copy(job, naming.disputed)
                                   : NULL;
    const bool found = !status;
    status = found && size > 0 ? object_decode(job->arena, bytes, size, &object, e) : PROFD_OK;
    arena_undefer(job->arena, &deferred);
    if (status) {
        return profd_error_wrap(e, status == PROFD_NO_MEMORY ? status : PROFD_DAMAGED, "stored symbols of build %s",
                                id);
    }
    *out = object;
    return PROFD_OK;
}

enum profd_status work_find_objects(struct job *job, struct report_work *w, struct profd_error *e)
{
    const struct profile *p = w->load.profile;
    const struct object **objects = ARENA_ARRAY(job->arena, (size_t)p->build_count + 1, const struct object *);
    const char **disputed = ARENA_ARRAY(job->arena, (size_t)p->build_count + 1, const char *);
    for (uint32_t i = 0; i < p->build_count; i++) {
        TRY(work_find_object(job, w, p->builds[i], &objects[i], &disputed[i], e));
    }
    w->objects = objects;
    w->disputed = disputed;
    return PROFD_OK;
}

/* Cycles are the same in every query of the build: over the arcs of all stored time. */
enum profd_status work_load_ever(struct job *job, const struct report_work *w, const struct profile **ever,
                                 struct profd_error *e)
{
    const struct options *o = &w->options;
    const struct store_scope *asker = &job->request->scope;
    const bool narrowed = !store_scope_equal(&o->visible, asker);
    *ever = NULL;
    if (o->since == 0 && o->until == 0 && o->matcher_count == 0 && !narrowed) {
        return PROFD_OK;
    }
    struct load load;
    struct load_request request = load_everything(job, w, false);
    request.arcs_only = true;
    request.loaded = w->load.rows;
    TRY(load_profile(&request, job->arena, &load, e));
    *ever = load.profile;
    return PROFD_OK;
}

/* What a report of the loaded data is made from, without the arcs ever observed. */
static struct report_request work_begin_request(const struct report_work *w)
{
    const struct random_groups *g = &w->load.provenance.groups;
    unsigned groups = 0; /* with processes; 0: not known */
    for (unsigned i = 0; g->unknown == 0 && i < RANDOM_GROUPS; i++) {
        groups += g->of[i] > 0;
    }
    return (struct report_request){
        .profile = w->load.profile,
        .objects = w->objects,
        .names = w->load.names,
        .outside = w->scope == OPTIONS_SCOPE_PROGRAM,
        .static_arcs = w->options.static_arcs,
        .dimension = w->options.dimension,
        .time = (enum report_time)w->options.time,
        .groups = groups,
        .stacks_only = w->stacks_only,
    };
}

enum profd_status work_build_report(struct job *job, struct report_work *w, struct profd_error *e)
{
    struct report_request request = work_begin_request(w);
    const char *focus = w->options.show.focus;
    TRY(work_load_ever(job, w, &request.ever, e));
    TRY(report_build(job->arena, &request, &w->report, e));
    w->load.provenance.inexact |= w->report->estimated ? (uint32_t)INEXACT_SHARED_BINS : 0;
    if (w->options.empty_is_error && focus && w->options.show.view != RENDER_VIEW_NOT_CALLED &&
        !render_find_focus(w->report, focus)) {
        return profd_error_set(e, PROFD_NOTHING,
                               "nothing matches: no function with calls or time has \"%.80s\" in its name (focus)",
                               focus);
    }

    /* The report lists the profile's builds in an order of its own. */
    const struct report *r = w->report;
    bool added, *has_names = ARENA_ARRAY(job->arena, (size_t)r->build_count + 1, bool);
    const char **disputed = ARENA_ARRAY(job->arena, (size_t)r->build_count + 1, const char *);
    struct set ids;
    set_init(&ids, job->arena);
    for (uint32_t i = 0; i < w->load.profile->build_count; i++) {
        const char *id = w->load.profile->builds[i];
        set_add(&ids, id, strlen(id), &added);
    }
    for (uint32_t i = 0; i < r->build_count; i++) {
        const uint32_t number = set_add(&ids, r->builds[i], strlen(r->builds[i]), &added);
        has_names[i] = !added && w->objects[number] && w->objects[number]->has_names;
        disputed[i] = added ? NULL : w->disputed[number];
    }
    w->has_names = has_names;
    w->report_disputed = disputed;
    return PROFD_OK;
}

enum profd_status work_make_report(struct job *job, struct report_work *w, size_t *limit, struct profd_error *e)
{
    unsigned long long rows = job->request->http ? LIMIT_HTTP_ROWS : 0;
    if (limit) {
        TRY(params_parse_number(job->params, "limit", 0, UINT32_MAX, &rows, e));
    }
    TRY(work_begin(job, false, w, e));
    if (limit) {
        w->options.empty_is_error = true;
        *limit = rows == 0 ? SIZE_MAX : (size_t)rows;
    }
    TRY(work_load(job, w, false, e));
    TRY(work_find_objects(job, w, e));
    return work_build_report(job, w, e);
}

struct render_input work_make_input(const struct report_work *w)
{
    static const char *const SCOPES[] = {"program", "build", "everywhere"};
    const struct options *o = &w->options;
    return (struct render_input){
        .report = w->report,
        .profile = w->load.profile,
        .provenance = &w->load.provenance,
        .coverage = &w->coverage,
        .build_id = w->id.text,
        .build_name = w->name,
        .scope = SCOPES[w->scope],
        .since = o->since,
        .until = o->until,
        .used_since = w->used_since,
        .used_until = w->used_until,
        .show = o->show,
        .match = o->match,
        .has_names = w->has_names,
        .disputed = w->report_disputed,
    };
}

struct subreport_object {
    const char *id;
    const struct object *object; /* NULL: it was not sent */
};

void subreport_init(struct subreport *p, const struct job *job)
{
    /* Half of what a question may compute with for the report of the moment, half for the symbols that are kept. */
    size_t half = (job->request->scope.all ? LIMIT_QUERY_MEMORY : LIMIT_QUERY_MEMORY_OWN) / 2;
    *p = (struct subreport){.job = *job, .kept = arena_new_child(job->arena, half)};
    p->job.arena = arena_new_child(job->arena, half);
}

static enum profd_status go_through(struct subreport *p, uint64_t n, struct profd_error *e)
{
    p->gone_through += n;
    if (p->gone_through <= LIMIT_WORK) {
        return PROFD_OK;
    }
    return profd_error_set(e, PROFD_LIMIT,
                           "the query processes more than %u bins, arcs and functions; use a longer step=, a shorter "
                           "time range, or match=",
                           LIMIT_WORK);
}

enum profd_status subreport_load(struct subreport *p, struct report_work *w, struct profd_error *e)
{
    bool moved;
    arena_reset(p->job.arena);
    TRY(work_check_edges(&p->job, w, &moved, e));
    TRY(work_load(&p->job, w, false, e));
    const struct counts *c = &w->load.profile->counts;
    /* A report of nothing costs something, too. */
    return go_through(p, (uint64_t)c->arc_count + c->bin_count + 1000, e);
}

const char *subreport_dimension(const struct options *o)
{
    return o->dimension ? o->dimension : REPORT_DIMENSION_USUAL;
}

enum profd_status subreport_make(struct subreport *p, struct report_work *w, struct profd_error *e)
{
    const struct profile *profile = w->load.profile;
    const struct provenance *from = &w->load.provenance;
    const struct object **objects = ARENA_ARRAY(p->job.arena, (size_t)profile->build_count + 1, const struct object *);

    /* The users of the counts determine which executables may name functions: others may get other objects. */
    const size_t bytes = from->uid_count * sizeof *p->uids;
    if (!p->any || from->uid_count != p->uid_count || (bytes > 0 && memcmp(p->uids, from->uids, bytes) != 0)) {
        arena_reset(p->kept);
        p->objects = NULL;
        p->object_count = p->object_capacity = 0;
        p->uids = ARENA_ARRAY(p->kept, (size_t)from->uid_count + 1, uint32_t);
        memcpy(p->uids, from->uids, bytes);
        p->uid_count = from->uid_count;
        p->any = true;
    }
    struct job keeping = p->job;
    keeping.arena = p->kept;
    w->objects = objects;
    for (uint32_t i = 0; i < profile->build_count; i++) {
        const char *id = profile->builds[i], *disputed;
        uint32_t k = 0;
        while (k < p->object_count && strcmp(p->objects[k].id, id) != 0) {
            k++;
        }
        if (k == p->object_count) {
            p->objects = arena_extend(p->kept, p->objects, k, &p->object_capacity, sizeof *p->objects);
            const char *copy = arena_copy(p->kept, id, strlen(id));
            const struct object *object = NULL;
            TRY(work_find_object(&keeping, w, id, &object, &disputed, e));
            p->objects[p->object_count++] = (struct subreport_object){copy, object};
            TRY(go_through(p, object != NULL ? object->symbol_count : 0, e));
        }
        objects[i] = p->objects[k].object;
    }

    struct report_request request = work_begin_request(w);
    request.ever = p->ever;
    request.dimension = subreport_dimension(&w->options);
    request.dimension_may_lack = true;
    if (!p->ever) {
        TRY(work_load_ever(&p->job, w, &request.ever, e));
    }
    TRY(go_through(p, request.ever ? request.ever->counts.arc_count : 0, e));
    TRY(report_build(p->job.arena, &request, &w->report, e));
    w->load.provenance.inexact |= w->report->estimated ? (uint32_t)INEXACT_SHARED_BINS : 0;
    return go_through(p, w->report->function_count, e);
}

enum profd_status subreport_append(struct subreport *p, struct report_work *w, struct buffer *out,
                                   struct pprof_parts *parts, struct profd_error *e)
{
    struct buffer one;
    TRY(subreport_make(p, w, e));
    const struct render_input in = work_make_input(w);
    buffer_init_arena(&one, p->job.arena);
    TRY(render_report(render_find("pprof"), &in, p->job.arena, &one, e));
    return pprof_append(out, p->job.arena, (const uint8_t *)one.data, one.size, parts, e);
}

/* By order of arrival; those of one order stay as they are in the sum. */
static int histogram_compare(const void *left, const void *right)
{
    const struct counts_histogram *a = left, *b = right;
    const int order = compare_pairs(a->order.commit, b->order.commit, a->order.rank, b->order.rank);
    return order != 0 ? order : compare_u64(a->first, b->first);
}

static uint64_t arrival_key(const void *context, uint32_t i, int key)
{
    const struct counts *c = context;
    return key == 0 ? c->rank[i] : c->commit[i];
}

/* Bytes a bin, as gprof reckons: in units of two bytes, cut to whole ones. */
static double bin_scale(const struct counts_histogram *h)
{
    return (double)((h->high - h->low) / 2) / h->bins;
}

static void describe_geometry(const struct counts_histogram *h, uint32_t number, struct buffer *b)
{
    buffer_add_format(b, "%" PRIu32 ": 0x%" PRIx64 "-0x%" PRIx64 ", %" PRIu32 " bins, %" PRIu32 " ticks a %s", number,
                      h->low, h->high, h->bins, h->rate,
                      strcmp(h->dimension, "seconds") == 0 ? "second" : h->dimension);
}

static enum profd_status refuse_together(const struct counts_histogram *list, uint32_t count, const char *quarrel,
                                         uint32_t one, uint32_t other, struct profd_error *e)
{
    struct buffer b;
    buffer_init(&b, 4096);
    describe_geometry(&list[one], one + 1, &b);
    buffer_add_text(&b, "; ");
    describe_geometry(&list[other], other + 1, &b);
    enum profd_status status =
        profd_error_set(e, PROFD_CONFLICT,
                        "gprof cannot add up the %" PRIu32
                        " geometries of this sum, %s (%.*s); select one with geometry=N (profctl: --geometry N)",
                        count, quarrel, (int)b.size, b.size > 0 ? b.data : "");
    buffer_done(&b);
    return status;
}

/* The histograms to list, in order of arrival; list has space for all of the profile's. Several of one rate, unit and
 * bin size over disjoint ranges are listed together, as gprof accepts them; otherwise CONFLICT naming the rule and two
 * that break it, unless geometry (1…, by range and rate) selects one; BAD_QUERY if that does not exist. */
static enum profd_status pick_histograms(const struct counts *c, uint32_t build, uint32_t geometry,
                                         struct counts_histogram *list, uint32_t *out, struct profd_error *e)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        if (c->histograms[i].build == build && !collector_is_dimension(c->histograms[i].dimension)) {
            list[count++] = c->histograms[i];
        }
    }
    FAIL_IF(geometry > count, e, PROFD_BAD_QUERY, "geometry=%" PRIu32 ": this sum has geometries 1 to %" PRIu32,
            geometry, count);
    if (geometry > 0) {
        list[0] = list[geometry - 1];
        count = 1;
    }
    for (uint32_t i = 1; i < count; i++) {
        const struct counts_histogram *a = &list[0], *b = &list[i];
        const char *quarrel = strcmp(a->dimension, b->dimension) != 0 || a->abbreviation != b->abbreviation
                                  ? "their units differ"
                              : a->rate != b->rate                           ? "their rates differ"
                              : fabs(bin_scale(a) - bin_scale(b)) > 0.000001 ? "their bins differ in size"
                                                                             : NULL;
        if (quarrel) {
            return refuse_together(list, count, quarrel, 0, i, e);
        }
        if (b->low < list[i - 1].high) { /* the list ascends by range, so overlapping ranges are adjacent */
            return refuse_together(list, count, "their ranges overlap", i - 1, i, e);
        }
    }
    qsort(list, count, sizeof *list, histogram_compare);
    *out = count;
    return PROFD_OK;
}

/* Loads what the options select, and makes the counts of the build that was asked for, without ends in other builds:
 * histograms and arcs in order of first arrival, in the arena. *object: what is known of its executable, NULL if
 * nothing. NOT_FOUND without an upload in the window. O(n log n). */
static enum profd_status listing_load(struct job *job, struct report_work *w, struct counts *out,
                                      const struct object **object, struct profd_error *e)
{
    struct arena *a = job->arena;
    struct counts c = {0};
    uint32_t target = 0, n = 0;
    TRY(work_load(job, w, true, e));
    TRY(work_find_objects(job, w, e));
    const struct profile *p = w->load.profile;
    const struct counts *sum = &p->counts;
    while (target < p->build_count && strcmp(p->builds[target], w->id.text) != 0) {
        target++;
    }
    FAIL_IF(target == p->build_count, e, PROFD_NOT_FOUND, "no upload of build %s is in this window", w->id.text);

    c.histograms = ARENA_ARRAY(a, (size_t)sum->histogram_count + 1, struct counts_histogram);
    c.bin_index = ARENA_ARRAY(a, (size_t)sum->bin_count + 1, uint32_t);
    c.bin_ticks = ARENA_ARRAY(a, (size_t)sum->bin_count + 1, uint64_t);
    TRY(pick_histograms(sum, target, w->options.geometry, c.histograms, &c.histogram_count, e));
    for (struct counts_histogram *h = c.histograms; h < c.histograms + c.histogram_count; h++) {
        memcpy(c.bin_index + c.bin_count, sum->bin_index + h->first, h->used * sizeof *c.bin_index);
        memcpy(c.bin_ticks + c.bin_count, sum->bin_ticks + h->first, h->used * sizeof *c.bin_ticks);
        h->build = 0;
        h->first = c.bin_count;
        c.bin_count += h->used;
    }

    struct sort_item *items = ARENA_ARRAY(a, 2 * (size_t)sum->arc_count + 1, struct sort_item);
    for (uint32_t i = 0; i < sum->arc_count; i++) {
        if (sum->from_build[i] == target && sum->to_build[i] == target) {
            items[n++].value = i;
        }
    }
    sort_keys(items, items + n, n, 2, arrival_key, sum);
    c.from_build = ARENA_ARRAY(a, (size_t)n + 1, uint32_t);
    c.to_build = ARENA_ARRAY(a, (size_t)n + 1, uint32_t);
    c.from = ARENA_ARRAY(a, (size_t)n + 1, uint64_t);
    c.to = ARENA_ARRAY(a, (size_t)n + 1, uint64_t);
    c.calls = ARENA_ARRAY(a, (size_t)n + 1, uint64_t);
    for (uint32_t i = 0; i < n; i++) {
        c.from[i] = sum->from[items[i].value];
        c.to[i] = sum->to[items[i].value];
        c.calls[i] = sum->calls[items[i].value];
    }
    c.arc_count = n;
    *out = c;
    *object = w->objects[target];
    return PROFD_OK;
}

/* /api/v1/builds/{id}/counts: the sum itself, for profctl export. */

/* The layout of the build's gmon.out is stated in parameters of the media type; without its executable it is unknown.
 */
static const char *content_type(const struct object *object)
{
    static const char *const TYPES[2][2] = {
        {"application/vnd.profd.counts; bits=32; endian=little", "application/vnd.profd.counts; bits=32; endian=big"},
        {"application/vnd.profd.counts; bits=64; endian=little", "application/vnd.profd.counts; bits=64; endian=big"},
    };
    return !object ? "application/vnd.profd.counts" : TYPES[object->bits == 64][object->big_endian];
}

enum profd_status counts_show(struct job *job, struct profd_error *e)
{
    struct report_work w;
    struct counts counts;
    const struct object *object;
    uint8_t *bytes = NULL;
    size_t size = 0;
    TRY(work_begin(job, true, &w, e));
    TRY(listing_load(job, &w, &counts, &object, e));
    TRY(counts_encode(&counts, &bytes, &size, e));
    job->answer->content_type = content_type(object);
    buffer_add(&job->answer->body, bytes, size);
    free(bytes);
    return PROFD_OK;
}

/* /api/v1/builds/{id}/report */

/* Makes the report of each further dimension, unless the question names one. */
static enum profd_status add_dimensions(struct job *job, struct report_work *w, struct render_input *in,
                                        struct profd_error *e)
{
    const struct report *first = w->report, **others;
    const size_t n = w->options.dimension ? 0 : first->other_dimension_count;
    others = ARENA_ARRAY(job->arena, n + 1, const struct report *);
    for (size_t i = 0; i < n; i++) {
        w->options.dimension = first->other_dimensions[i].name;
        TRY(work_build_report(job, w, e));
        others[i] = w->report;
    }
    in->others = others;
    in->other_count = n;
    return PROFD_OK;
}

enum profd_status report_show(struct job *job, struct profd_error *e)
{
    struct report_work w;
    TRY(work_begin(job, false, &w, e));
    job->answer->content_type = w.options.format->content_type;
    if (!w.options.format->wants_report) {
        struct counts counts;
        const struct object *object;
        TRY(listing_load(job, &w, &counts, &object, e));
        if (!object || !object->has_names) {
            return profd_error_set(e, PROFD_NOT_FOUND,
                                   "format=gprof requires the symbols of build %s, which are not stored; send them "
                                   "with: profctl symbols FILE",
                                   w.id.text);
        }
        struct render_input in = work_make_input(&w);
        in.object = object;
        in.counts = &counts;
        return w.options.format->render(&in, job->arena, &job->answer->body, e);
    }
    TRY(work_load(job, &w, false, e));
    TRY(work_find_objects(job, &w, e));
    TRY(work_build_report(job, &w, e));
    struct render_input in = work_make_input(&w);
    if (w.options.format == render_find("otlp")) {
        TRY(add_dimensions(job, &w, &in, e));
    }
    return render_report(w.options.format, &in, job->arena, &job->answer->body, e);
}

/* /outgoing?id=: the request of the relay to a receiver of OTLP */

struct outgoing {
    struct arena *arena;
    uint64_t id;
    uint8_t *bytes; /* NULL: it is not there */
    size_t size;
};

static bool take_outgoing(void *context, const struct store_segment *s)
{
    struct outgoing *o = context;
    ARENA_BOUNDARY(o->arena, false);
    if (s->id == o->id) {
        o->bytes = ARENA_ARRAY(o->arena, s->size + 1, uint8_t);
        o->size = s->size;
        memcpy(o->bytes, s->bytes, s->size);
    }
    return false;
}

static void free_segment(void *s)
{
    segment_done(s);
}

/* Answers with the sums of a sealed outgoing upload in format=otlp. The ids of its profiles follow from its key, so
 * that the answer may be sent again. Empty: the upload has only a key. NOT_FOUND: it was acknowledged. */
enum profd_status outgoing_show(struct job *job, struct profd_error *e)
{
    struct arena *a = job->arena;
    unsigned long long id = 0;
    struct outgoing found = {.arena = a};
    struct report_work w = {.scope = OPTIONS_SCOPE_PROGRAM, .without_errors = true};
    struct segment s;
    struct arena_deferred deferred;
    const char *host = params_find(job->params, "host");
    /* only for the relay, which profd tells apart on its Unix socket */
    FAIL_IF(job->request->http, e, PROFD_NOT_FOUND, "not found: %s; see /openapi.json", job->request->target);
    TRY(params_parse_number(job->params, "id", 1, INT64_MAX, &id, e));
    found.id = id;
    TRY(store_each_segment(job->store, found.id - 1, take_outgoing, &found, e));
    arena_continue(a);
    FAIL_IF(!found.bytes, e, PROFD_NOT_FOUND, "outgoing upload %llu is not there, or was acknowledged", id);
    TRY(segment_decode(found.bytes, found.size, &s, e));
    arena_defer(a, &deferred, free_segment, &s);
    job->answer->content_type = "application/x-protobuf";
    if (s.kind == SEGMENT_COUNTS) {
        const struct message_bytes *counts = &s.message.as.upload.counts;
        struct store_build *builds = ARENA_ARRAY(a, s.build_count, struct store_build);
        struct store_row row = {.uploads = s.uploads, .uid = s.uid, .host = "", .start = s.first, .end = s.last};
        for (size_t i = 0; i < s.build_count; i++) {
            TRY(buildid_parse(s.builds[i].build_id, strlen(s.builds[i].build_id), &builds[i].id, e));
            builds[i].name = s.builds[i].name;
        }
        row.inexact = s.inexact;
        row.group = s.group;
        row.program = s.program;
        row.build_count = s.build_count;
        row.builds = builds;
        row.counts = counts->data;
        row.counts_size = counts->size;
        w.id = builds[s.program].id;
        w.name = builds[s.program].name;
        TRY(options_parse(&(struct params){.count = 0}, &job->request->scope, false, job->request->now, false, a,
                          &w.options, e));
        const struct load_request request = {
            .store = job->store, .row = &row, .stacks = LOAD_STACKS_TOTALS, .filter = {.build_id = w.id.text}};
        TRY(load_profile(&request, a, &w.load, e));
        TRY(work_find_objects(job, &w, e));
        TRY(work_build_report(job, &w, e));
        struct render_input in = work_make_input(&w);
        in.upload = &(struct render_upload){s.epoch, s.sequence, host, s.labels, s.label_count};
        TRY(add_dimensions(job, &w, &in, e));
        TRY(render_report(render_find("otlp"), &in, a, &job->answer->body, e));
    }
    arena_undefer(a, &deferred);
    return PROFD_OK;
}
