/* /api/v1/builds/{id}/never-called: functions that no process of the window entered. */
#include <string.h>

#include "core/never_called.h"

#include "query/handlers.h"
#include "query/query.h"
#include "query/work.h"
#include "render/render_never.h"

enum profd_status never_called_show(struct job *job, struct profd_error *e)
{
    struct work w;
    bool fresh = false;
    size_t limit = 0;
    struct never_called never;
    const struct object *object = NULL;
    TRY(work_make_report(job, &w, &limit, &fresh, e));
    if (fresh) {
        return PROFD_OK;
    }
    for (uint32_t i = 0; i < w.load.profile->build_count; i++) {
        object = strcmp(w.load.profile->builds[i], w.id.text) == 0 ? w.objects[i] : object;
    }
    never_called_make(job->arena, w.report, w.id.text, object, &never);
    const struct render_input in = work_make_input(&w);
    render_never(&in, &never, limit, &job->answer->body);
    return PROFD_OK;
}
