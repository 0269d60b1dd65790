/* /api/v1/builds/{id}/functions?name= and /api/v1/builds/{id}/functions/{address} */
#include "query/function.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proto/http_text.h"
#include "query/handlers.h"
#include "query/query.h"
#include "query/work.h"

/* A whole report, computed for the sake of a part of it. */
static enum profd_status make_report(struct job *job, struct work *w, bool *fresh, struct profd_error *e)
{
    enum profd_status status = work_begin(job, false, w, fresh, e);
    if (status != PROFD_OK || *fresh) {
        return status;
    }
    status = work_load(job, w, false, e);
    if (status == PROFD_OK) {
        status = work_find_objects(job, w, e);
    }
    return status == PROFD_OK ? work_build_report(job, w, e) : status;
}

enum profd_status function_parse_address(const char *text, uint64_t *out, struct profd_error *e)
{
    const char *at = strncmp(text, "0x", 2) == 0 ? text + 2 : text;
    size_t n = strspn(at, "0123456789abcdefABCDEF");
    uint64_t value = 0;
    if (n == 0 || n > 16 || at[n] != '\0') {
        return profd_error_set(e, PROFD_BAD_QUERY, "'%s' is not a link-time address in hexadecimal", text);
    }
    for (; *at != '\0'; at++) {
        value = value << 4 | (unsigned)http_hex_value(*at);
    }
    *out = value;
    return PROFD_OK;
}

/* Its size is 0 where the next one bounds it. */
bool function_holds(const struct report *r, const struct report_function *f, const char *id, uint64_t address)
{
    return f->build < r->build_count && strcmp(r->builds[f->build], id) == 0 &&
           (f->address == address || (address > f->address && address - f->address < f->size));
}

enum profd_status function_show(struct job *job, struct profd_error *e)
{
    struct work w;
    bool fresh = false;
    uint64_t address = 0;
    const char *build = params_find(job->params, "build_id");
    enum profd_status status = function_parse_address(job->params->segments[5], &address, e);
    if (status == PROFD_OK) {
        status = make_report(job, &w, &fresh, e);
    }
    if (status != PROFD_OK || fresh) {
        return status;
    }
    struct render_input in = work_make_input(&w);
    in.show.limit = 0;
    build = build != NULL ? build : w.id.text;
    for (uint32_t i = 0; i < w.report->function_count && in.only == 0; i++) {
        if (function_holds(w.report, &w.report->functions[i], build, address)) {
            in.only = i + 1;
        }
    }
    if (in.only == 0) {
        return profd_error_set(e, PROFD_NOT_FOUND, "no function of build %s at 0x%" PRIx64 " is in this report", build,
                               address);
    }
    return w.options.format->render(&in, job->arena, &job->answer->body, e);
}

/* Positions of matching functions after index after, in index order; *more: the limit cut them. */
static size_t find_functions(const struct report *r, const char *name, unsigned long long after, size_t limit,
                             uint32_t *found, bool *more)
{
    size_t n = 0;
    *more = false;
    for (uint32_t i = 0; i < r->order_count && !*more; i++) {
        uint32_t at = r->order[i];
        const struct report_function *f = at & REPORT_CYCLE ? NULL : &r->functions[at];
        if (f == NULL || f->index <= after || (strstr(f->name, name) == NULL && strstr(f->raw, name) == NULL)) {
            continue;
        }
        if (n == limit) {
            *more = true;
        } else {
            found[n++] = at;
        }
    }
    return n;
}

enum profd_status function_search(struct job *job, struct profd_error *e)
{
    struct work w;
    bool fresh = false, more;
    const char *name = params_find(job->params, "name");
    unsigned long long limit, after = 0;
    char next[16] = "";
    if (name == NULL || name[0] == '\0') {
        return profd_error_set(e, PROFD_BAD_QUERY, "name= must say what to search for");
    }
    enum profd_status status = job_parse_page(job, &limit, e);
    if (status == PROFD_OK) {
        status = params_parse_number(job->params, "cursor", 0, UINT32_MAX, &after, e);
    }
    if (status == PROFD_OK) {
        status = make_report(job, &w, &fresh, e);
    }
    if (status != PROFD_OK || fresh) {
        return status;
    }
    uint32_t *found = ARENA_ARRAY(job->arena, limit, uint32_t);
    if (found == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for %llu functions", limit);
    }
    size_t n = find_functions(w.report, name, after, limit, found, &more);
    if (more) {
        snprintf(next, sizeof next, "%" PRIu32, w.report->functions[found[n - 1]].index);
    }
    render_functions(w.report, found, n, more ? next : NULL, &job->answer->body);
    return PROFD_OK;
}
