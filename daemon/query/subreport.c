#include "query/subreport.h"

#include <string.h>

#include "core/report_dimension.h"
#include "proto/limits.h"
#include "query/query.h"

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

enum profd_status subreport_load(struct subreport *p, struct work *w, struct profd_error *e)
{
    bool moved;
    arena_reset(p->job.arena);
    TRY(work_check_edges(&p->job, w, &moved, e));
    TRY(work_load(&p->job, w, false, e));
    const struct profile *profile = w->load.profile;
    uint64_t n = profile->arc_count;
    for (uint32_t i = 0; i < profile->histogram_count; i++) {
        n += profile->histograms[i].used;
    }
    return go_through(p, n + 1000, e); /* a report of nothing costs something, too */
}

/* The users of the counts determine which executables may name functions: others may get other objects. */
static void see_users(struct subreport *p, const struct provenance *from)
{
    size_t bytes = from->uid_count * sizeof *p->uids;
    if (p->any && from->uid_count == p->uid_count && (bytes == 0 || memcmp(p->uids, from->uids, bytes) == 0)) {
        return;
    }
    arena_reset(p->kept);
    p->objects = NULL;
    p->object_count = p->object_capacity = 0;
    p->uids = ARENA_ARRAY(p->kept, (size_t)from->uid_count + 1, uint32_t);
    memcpy(p->uids, from->uids, bytes);
    p->uid_count = from->uid_count;
    p->any = true;
}

static enum profd_status find_object(struct subreport *p, const struct work *w, const char *id,
                                     const struct object **out, struct profd_error *e)
{
    for (uint32_t i = 0; i < p->object_count; i++) {
        if (strcmp(p->objects[i].id, id) == 0) {
            *out = p->objects[i].object;
            return PROFD_OK;
        }
    }
    struct job keeping = p->job;
    const char *disputed;
    keeping.arena = p->kept;
    p->objects = arena_extend(p->kept, p->objects, p->object_count, &p->object_capacity, sizeof *p->objects);
    const char *copy = arena_copy(p->kept, id, strlen(id));
    TRY(work_find_object(&keeping, w, id, out, &disputed, e));
    p->objects[p->object_count++] = (struct subreport_object){copy, *out};
    return go_through(p, *out != NULL ? (*out)->symbol_count : 0, e);
}

const char *subreport_dimension(const struct options *o)
{
    return o->dimension != NULL ? o->dimension : REPORT_DIMENSION_USUAL;
}

enum profd_status subreport_make(struct subreport *p, struct work *w, struct profd_error *e)
{
    const struct profile *profile = w->load.profile;
    const struct object **objects = ARENA_ARRAY(p->job.arena, (size_t)profile->build_count + 1, const struct object *);
    enum profd_status status = PROFD_OK;
    see_users(p, &w->load.provenance);
    for (uint32_t i = 0; status == PROFD_OK && i < profile->build_count; i++) {
        status = find_object(p, w, profile->builds[i], &objects[i], e);
    }
    w->objects = objects;
    TRY(status);
    struct report_request request = work_begin_request(w);
    request.ever = p->ever;
    request.dimension = subreport_dimension(&w->options);
    request.dimension_may_lack = true;
    if (p->ever == NULL) {
        TRY(work_load_ever(&p->job, w, &request.ever, e));
    }
    TRY(go_through(p, request.ever != NULL ? request.ever->arc_count : 0, e));
    TRY(report_build(p->job.arena, &request, &w->report, e));
    w->load.provenance.inexact |= w->report->estimated ? (uint32_t)INEXACT_SHARED_BINS : 0;
    return go_through(p, w->report->function_count, e);
}
