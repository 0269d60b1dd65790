/* /api/v1/builds/{id}/never-called: functions that no process of the window entered. */
#include "core/never_called.h"

#include "proto/limits.h"
#include "query/handlers.h"
#include "query/query.h"
#include "query/work.h"
#include "render/render_never.h"

enum profd_status never_called_show(struct job *job, struct profd_error *e)
{
    struct work w;
    bool fresh = false;
    struct never_called never;
    unsigned long long limit = job->request->http ? LIMIT_HTTP_ROWS : 0;
    enum profd_status status = params_parse_number(job->params, "limit", 0, UINT32_MAX, &limit, e);
    if (status == PROFD_OK) {
        status = work_begin(job, false, &w, &fresh, e);
    }
    if (status != PROFD_OK || fresh) {
        return status;
    }
    w.options.empty_is_error = true;
    w.options.show.focus = NULL;
    status = work_load(job, &w, false, e);
    if (status == PROFD_OK) {
        status = work_find_objects(job, &w, e);
    }
    if (status == PROFD_OK) {
        status = work_build_report(job, &w, e);
    }
    if (status == PROFD_OK) {
        status = never_called_make(job->arena, w.report, w.id.text, &never, e);
    }
    if (status == PROFD_OK) {
        const struct render_input in = work_make_input(&w);
        render_never(&in, &never, limit == 0 ? SIZE_MAX : (size_t)limit, &job->answer->body);
    }
    return status;
}
