#include "query/work.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "query/query.h"
#include "query/set.h"
#include "proto/noun.h"

#define HOUR INT64_C(3600000000000)

static void take_row(void *context, const struct build_row *row)
{
    struct work *w = ((void **)context)[0];
    struct job *job = ((void **)context)[1];
    ARENA_BOUNDARY(job->arena, );
    w->is_program = row->is_program;
    w->first_seen = row->first_seen;
    w->last_seen = row->last_seen;
    w->name = job_copy(job, row->name);
}

static enum profd_status choose_scope(struct job *job, struct work *w, struct profd_error *e)
{
    void *context[] = {w, job};
    enum profd_status status = store_get_build(job->store, &w->options.visible, w->id.text, take_row, context, e);
    arena_continue(job->arena);
    if (status != PROFD_OK) {
        return status;
    }
    w->scope = w->options.scope;
    if (w->scope == OPTIONS_SCOPE_DEFAULT) {
        w->scope = w->is_program ? OPTIONS_SCOPE_PROGRAM : OPTIONS_SCOPE_EVERYWHERE;
    } else if (w->scope != OPTIONS_SCOPE_EVERYWHERE && !w->is_program) {
        return profd_error_set(e, PROFD_BAD_QUERY,
                               "scope=%s requires a main executable, which build %s never was; use scope=everywhere",
                               w->scope == OPTIONS_SCOPE_PROGRAM ? "program" : "build", w->id.text);
    }
    return PROFD_OK;
}

struct store_filter work_make_filter(const struct work *w)
{
    const struct options *o = &w->options;
    return (struct store_filter){
        .build_id = w->id.text,
        .as_program = w->scope != OPTIONS_SCOPE_EVERYWHERE,
        .by_host = w->by_host,
        .spread = w->shares != NULL,
        .since = o->since,
        .until = o->until,
        .matcher_count = o->matcher_count,
        .matchers = o->matchers,
    };
}

/* Where the window's edges lie now. */
static enum profd_status find_edges(struct job *job, struct work *w, struct profd_error *e)
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

enum profd_status work_check_edges(struct job *job, struct work *w, bool *moved, struct profd_error *e)
{
    int64_t since = w->used_since, until = w->used_until;
    enum profd_status status = find_edges(job, w, e);
    *moved = status == PROFD_OK && (since != w->used_since || until != w->used_until);
    return status;
}

enum profd_status work_find(struct job *job, const struct params *p, const char *build, bool compat, struct work *w,
                            struct profd_error *e)
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
    TRY(choose_scope(job, w, e));
    return find_edges(job, w, e);
}

enum profd_status work_begin(struct job *job, bool compat, struct work *w, bool *fresh, struct profd_error *e)
{
    TRY(work_find(job, job->params, job->params->segments[PARAMS_BUILD], compat, w, e));
    /* The epoch is read before the data: a tag may be older than its answer, never newer. */
    struct store_epoch epoch;
    const struct options *o = &w->options;
    TRY(store_epoch(job->store, &job->request->scope, w->id.text, &epoch, e));
    const int64_t resolved[] = {(int64_t)w->scope, o->since, o->until, w->used_since, w->used_until};
    job->build = w->id.text;
    *fresh = job_set_etag(job, resolved, sizeof resolved, &epoch);
    return PROFD_OK;
}

static struct load_request load_everything(const struct job *job, const struct work *w, bool alone)
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

static enum profd_status refuse_empty(const struct work *w, struct profd_error *e)
{
    const struct provenance *p = &w->load.provenance;
    char since[40];
    if ((p->inexact & (uint32_t)INEXACT_HOST_TOTALS) != 0) {
        return profd_error_set(e, PROFD_NOTHING, "nothing matches: %s", message_inexact_meaning(INEXACT_HOST_TOTALS));
    }
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

enum profd_status work_load(struct job *job, struct work *w, bool alone, struct profd_error *e)
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
    if (w->options.empty_is_error && w->load.provenance.uploads == 0) {
        return refuse_empty(w, e);
    }
    return PROFD_OK;
}

enum profd_status work_find_object(struct job *job, const struct work *w, const char *id, const struct object **out,
                                   const char **disputed, struct profd_error *e)
{
    uint8_t *bytes = NULL;
    size_t size;
    struct store_naming naming = {.variants = 0};
    const struct provenance *p = &w->load.provenance;
    const struct store_senders of = {.uids = p->uids, .uid_count = p->uid_count};
    struct object *object = NULL;
    enum profd_status status = store_get_object(job->store, &of, id, &bytes, &size, &naming, NULL);
    if (status != PROFD_OK && status != PROFD_NOT_FOUND) {
        return profd_error_set(e, status, "the symbols of build %s cannot be read", id);
    }
    struct arena_deferred deferred;
    arena_defer(job->arena, &deferred, free, bytes);
    *disputed = naming.apart       ? "it has no names: the tenants of this report have not all sent the same symbols"
                : *naming.disputed ? job_copy(job, naming.disputed)
                                   : NULL;
    const bool found = status == PROFD_OK;
    status = found && size > 0 ? object_decode(job->arena, bytes, size, &object, e) : PROFD_OK;
    arena_undefer(job->arena, &deferred);
    if (status != PROFD_OK) {
        return profd_error_wrap(e, status == PROFD_NO_MEMORY ? status : PROFD_DAMAGED, "stored symbols of build %s",
                                id);
    }
    *out = object;
    return PROFD_OK;
}

enum profd_status work_find_objects(struct job *job, struct work *w, struct profd_error *e)
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

/* The report lists the profile's builds in an order of its own. */
static void find_names(struct job *job, struct work *w)
{
    const struct report *r = w->report;
    struct set ids;
    bool added;
    bool *has_names = ARENA_ARRAY(job->arena, (size_t)r->build_count + 1, bool);
    const char **disputed = ARENA_ARRAY(job->arena, (size_t)r->build_count + 1, const char *);
    set_init(&ids, job->arena);
    for (uint32_t i = 0; i < w->load.profile->build_count; i++) {
        const char *id = w->load.profile->builds[i];
        set_add(&ids, id, strlen(id), &added);
    }
    for (uint32_t i = 0; i < r->build_count; i++) {
        const uint32_t number = set_add(&ids, r->builds[i], strlen(r->builds[i]), &added);
        has_names[i] = !added && w->objects[number] != NULL && w->objects[number]->has_names;
        disputed[i] = added ? NULL : w->disputed[number];
    }
    w->has_names = has_names;
    w->report_disputed = disputed;
}

/* Cycles are the same in every query of the build: over the arcs of all stored time (DECISIONS 1). */
enum profd_status work_load_ever(struct job *job, const struct work *w, const struct profile **ever,
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
    TRY(load_profile(&request, job->arena, &load, e));
    *ever = load.profile;
    return PROFD_OK;
}

/* How many random groups have processes; 0: not known. */
static unsigned count_groups(const struct random_groups *g)
{
    unsigned n = 0;
    for (unsigned i = 0; g->unknown == 0 && i < RANDOM_GROUPS; i++) {
        n += g->of[i] > 0;
    }
    return n;
}

struct report_request work_begin_request(const struct work *w)
{
    return (struct report_request){
        .profile = w->load.profile,
        .objects = w->objects,
        .names = w->load.names,
        .outside = w->scope == OPTIONS_SCOPE_PROGRAM,
        .static_arcs = w->options.static_arcs,
        .dimension = w->options.dimension,
        .time = (enum report_time)w->options.time,
        .groups = count_groups(&w->load.provenance.groups),
    };
}

enum profd_status work_build_report(struct job *job, struct work *w, struct profd_error *e)
{
    struct report_request request = work_begin_request(w);
    const char *focus = w->options.show.focus;
    TRY(work_load_ever(job, w, &request.ever, e));
    TRY(report_build(job->arena, &request, &w->report, e));
    w->load.provenance.inexact |= w->report->estimated ? (uint32_t)INEXACT_SHARED_BINS : 0;
    if (w->options.empty_is_error && focus != NULL && w->options.show.view != RENDER_VIEW_NOT_CALLED &&
        !render_find_focus(w->report, focus)) {
        return profd_error_set(e, PROFD_NOTHING,
                               "nothing matches: no function with calls or time has \"%.80s\" in its name (focus)",
                               focus);
    }
    find_names(job, w);
    return PROFD_OK;
}

enum profd_status work_make_report(struct job *job, struct work *w, size_t *limit, bool *fresh, struct profd_error *e)
{
    unsigned long long rows = job->request->http ? LIMIT_HTTP_ROWS : 0;
    TRY(params_parse_number(job->params, "limit", 0, UINT32_MAX, &rows, e));
    TRY(work_begin(job, false, w, fresh, e));
    if (*fresh) {
        return PROFD_OK;
    }
    w->options.empty_is_error = true;
    *limit = rows == 0 ? SIZE_MAX : (size_t)rows;
    TRY(work_load(job, w, false, e));
    TRY(work_find_objects(job, w, e));
    return work_build_report(job, w, e);
}

struct render_input work_make_input(const struct work *w)
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
