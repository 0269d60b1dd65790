/* /api/v1/builds/{id}/functions/{address}/callers: how long their calls took, and how that is known. */
#include "core/callers.h"

#include <string.h>

#include "query/function.h"
#include "query/handlers.h"
#include "query/query.h"
#include "query/work.h"
#include "render/render_callers.h"

static enum profd_status parse_method(const struct params *p, enum callers_method *out, struct profd_error *e)
{
    static const char *const WORDS[] = {"best", "stacks", "calls"}; /* in the order of the enumeration */
    const char *text = params_find(p, "method");
    *out = CALLERS_NONE;
    for (unsigned i = 0; text != NULL && i < sizeof WORDS / sizeof *WORDS; i++) {
        if (strcmp(text, WORDS[i]) == 0) {
            *out = (enum callers_method)i;
            return PROFD_OK;
        }
    }
    return text == NULL ? PROFD_OK
                        : profd_error_set(e, PROFD_BAD_QUERY, "method=%s is none of: best, stacks, calls", text);
}

enum profd_status callers_show(struct job *job, struct profd_error *e)
{
    struct work w;
    struct callers c;
    bool fresh = false;
    size_t limit = 0;
    uint32_t position = 0;
    enum callers_method want = CALLERS_NONE;
    const char *build = params_find(job->params, "build_id");
    TRY(parse_method(job->params, &want, e));
    TRY(work_make_report(job, &w, &limit, &fresh, e));
    if (fresh) {
        return PROFD_OK;
    }
    TRY(function_find(w.report, build != NULL ? build : w.id.text, job->params->segments[5], &position, e));
    callers_make(job->arena, w.report, position, want, &c);
    const struct render_input in = work_make_input(&w);
    render_callers(&in, &c, limit, &job->answer->body);
    return PROFD_OK;
}
