/* /api/v1/builds/{id}/report */
#include "query/handlers.h"
#include "query/listing.h"
#include "query/query.h"
#include "query/work.h"

enum profd_status report_show(struct job *job, struct profd_error *e)
{
    struct work w;
    bool fresh = false;
    TRY(work_begin(job, false, &w, &fresh, e));
    if (fresh) {
        return PROFD_OK;
    }
    job->answer->content_type = w.options.format->content_type;
    if (!w.options.format->wants_report) {
        struct counts counts;
        const struct object *object;
        TRY(listing_load(job, &w, &counts, &object, e));
        if (object == NULL || !object->has_names) {
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
    return render_report(w.options.format, &in, job->arena, &job->answer->body, e);
}
