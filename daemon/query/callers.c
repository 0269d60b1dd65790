/* /api/v1/builds/{id}/functions/{address}/callers: how long their calls took, and how that is known. */
#include "core/callers.h"

#include <string.h>

#include "query/caller_cells.h"
#include "query/function.h"
#include "query/handlers.h"
#include "query/query.h"
#include "query/work.h"
#include "render/render_callers.h"

static enum profd_status parse_method(const struct params *p, enum callers_method *out, struct profd_error *e)
{
    static const char *const WORDS[] = {"best", "stacks", "regression", "calls"}; /* in the order of the enumeration */
    const char *text = params_find(p, "method");
    *out = CALLERS_NONE;
    for (unsigned i = 0; text != NULL && i < sizeof WORDS / sizeof *WORDS; i++) {
        if (strcmp(text, WORDS[i]) == 0) {
            *out = (enum callers_method)i;
            return PROFD_OK;
        }
    }
    return text == NULL
               ? PROFD_OK
               : profd_error_set(e, PROFD_BAD_QUERY, "method=%s is none of: best, stacks, regression, calls", text);
}

/* Equations of the seconds of the whole function; those of the report divide bins of several functions better. */
static enum profd_status fit(struct job *job, const struct work *w, uint32_t position, const struct caller_mix *mix,
                             struct callers *c, struct profd_error *e)
{
    struct caller_cells cells;
    struct regression fitted;
    struct caller_groups groups;
    double seconds = 0;
    enum profd_status status = caller_cells_load(job, w, mix, &cells, e);
    if (status != PROFD_OK) {
        return status;
    }
    for (uint32_t i = 0; i < cells.count; i++) {
        seconds += cells.seconds[i];
    }
    c->fit.equations = cells.count;
    if (!(seconds > 0)) {
        c->fit.refused = "the function's ticks are all in bins of several functions";
        return PROFD_OK;
    }
    status = caller_groups_make(job->arena, cells.calls, cells.count, cells.callers, &groups, e);
    if (status == PROFD_OK) {
        status = regression_fit(job->arena, groups.calls, cells.seconds, cells.count, groups.count, &fitted, e);
    }
    const struct report_function *f = &w->report->functions[position];
    const struct callers_causes causes = {mix->caller_count, mix->callers, &groups, (f->self + f->children) / seconds};
    return status == PROFD_OK ? callers_apply(job->arena, w->report, &fitted, &causes, c, e) : status;
}

static enum profd_status try_regression(struct job *job, const struct work *w, uint32_t position, struct callers *c,
                                        struct profd_error *e)
{
    struct report_request request;
    struct caller_mix mix;
    enum profd_status status = work_make_request(job, w, &request, e);
    if (status == PROFD_OK) {
        status = caller_mix_make(job->arena, &request, position, &mix, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    c->tried = true;
    c->fit = (struct callers_fit){.worst_error = -1,
                                  .shared_below = mix.shared_below,
                                  .refused = callers_refuse(w->report, position, mix.caller_count, mix.in_cycle)};
    if (c->fit.refused == NULL && mix.shared > CALLER_MIX_SHARED_MOST) {
        c->fit.refused = arena_format(job->arena,
                                      "the time of what others call, too, is divided by numbers of calls, which may be "
                                      "wrong by %.0f %% of the function's time; the limit is %.0f %%",
                                      100 * mix.shared, 100 * CALLER_MIX_SHARED_MOST);
        if (c->fit.refused == NULL) {
            return profd_no_memory(e);
        }
    }
    return c->fit.refused != NULL ? PROFD_OK : fit(job, w, position, &mix, c, e);
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
    enum profd_status status = parse_method(job->params, &want, e);
    if (status == PROFD_OK) {
        status = work_make_report(job, &w, &limit, &fresh, e);
    }
    if (status != PROFD_OK || fresh) {
        return status;
    }
    status = function_find(w.report, build != NULL ? build : w.id.text, job->params->segments[5], &position, e);
    if (status == PROFD_OK) {
        status = callers_make(job->arena, w.report, position, want, &c, e);
    }
    if (status == PROFD_OK && (want == CALLERS_REGRESSION || (want == CALLERS_NONE && c.method != CALLERS_STACKS))) {
        status = try_regression(job, &w, position, &c, e);
    }
    if (status == PROFD_OK) {
        const struct render_input in = work_make_input(&w);
        render_callers(&in, &c, limit, &job->answer->body);
    }
    return status;
}
