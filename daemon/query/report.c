/* /api/v1/builds/{id}/report */
#include <string.h>

#include "query/handlers.h"
#include "query/listing.h"
#include "query/query.h"
#include "query/work.h"

static enum profd_status render_listing(struct job *job, struct work *w, struct profd_error *e)
{
    struct counts counts;
    const struct profile *p = w->load.profile;
    uint32_t target = 0;
    enum profd_status status = work_find_objects(job, w, e);
    if (status != PROFD_OK) {
        return status;
    }
    while (target < p->build_count && strcmp(p->builds[target], w->id.text) != 0) {
        target++;
    }
    if (target == p->build_count) {
        return profd_error_set(e, PROFD_NOT_FOUND, "no upload of build %s is in this window", w->id.text);
    }
    struct render_input in = work_make_input(w);
    in.object = w->objects[target];
    if (in.object == NULL || !in.object->has_names) {
        return profd_error_set(e, PROFD_NOT_FOUND,
                               "format=gprof wants the symbols of build %s, and nobody sent any: profctl symbols EXE",
                               w->id.text);
    }
    status = listing_make_counts(p, target, w->options.geometry, job->arena, &counts, e);
    in.counts = &counts;
    return status == PROFD_OK ? w->options.format->render(&in, job->arena, &job->answer->body, e) : status;
}

enum profd_status report_show(struct job *job, struct profd_error *e)
{
    struct work w;
    bool fresh = false;
    enum profd_status status = work_begin(job, "report", &w, &fresh, e);
    if (status != PROFD_OK || fresh) {
        return status;
    }
    bool listing = !w.options.format->wants_report;
    job->answer->content_type = w.options.format->content_type;
    status = work_load(job, &w, listing, e);
    if (status == PROFD_OK && listing) {
        return render_listing(job, &w, e);
    }
    if (status == PROFD_OK) {
        status = work_find_objects(job, &w, e);
    }
    if (status == PROFD_OK) {
        status = work_build_report(job, &w, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    struct render_input in = work_make_input(&w);
    return w.options.format->render(&in, job->arena, &job->answer->body, e);
}
