#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "query/query_internal.h"

/* Whether processes are found again does not change what is stored, but what is said of it. */
static bool add_unread(const struct job *job, struct buffer *b)
{
    const struct store_filter any = {.build_id = NULL};
    struct store_living unread;
    if (store_get_living(job->store, STORE_UNREAD, &job->request->scope, &any, &unread, NULL)) {
        return false;
    }
    buffer_add_format(b, " %" PRIu64 " %" PRId64, unread.processes, unread.earliest);
    return true;
}

enum profd_status job_set_etag(struct job *job, const void *resolved, size_t n, const struct store_epoch *epoch)
{
    const struct query_request *r = job->request;
    struct buffer b;
    bool fresh = false;
    if (job->unsettled) {
        return PROFD_OK;
    }
    buffer_init(&b, 65536);
    buffer_add_format(&b, "%s %s %" PRIu32 " %d", PROFD_VERSION, r->scope.all ? "all" : "uid",
                      r->scope.all ? 0 : r->scope.uid, r->http);
    buffer_add_char(&b, '\n');
    params_add_canonical(job->params, job->build, &b);
    buffer_add(&b, resolved, n);
    if (add_unread(job, &b) && !b.failed) { /* without a validator the answer is still right */
        etag_make(b.data, b.size, epoch, job->tag);
        memcpy(job->answer->etag, job->tag, sizeof job->tag);
        fresh = r->if_none_match && query_match_etag(r->if_none_match, job->tag, r->coding, job->answer->etag);
    }
    buffer_done(&b);
    if (fresh) {
        job->answer->http_status = 304;
    } else if (job->tag[0] != '\0' && job->answers) {
        job->kept = answers_take(job->answers, r, job->tag, job->answer);
    }
    return fresh || job->kept ? JOB_ANSWERED : PROFD_OK;
}

enum profd_status job_set_list_etag(struct job *job, struct profd_error *e)
{
    struct store_epoch epoch;
    TRY(store_epoch_all(job->store, &job->request->scope, &epoch, e));
    return job_set_etag(job, "", 0, &epoch);
}

enum profd_status job_parse_page(const struct job *job, unsigned long long *limit, struct profd_error *e)
{
    unsigned long long value = LIMIT_PAGE_DEFAULT;
    TRY(params_parse_number(job->params, "limit", 0, UINT32_MAX, &value, e));
    *limit = value == 0 || value > LIMIT_PAGE ? LIMIT_PAGE : value;
    return PROFD_OK;
}

enum profd_status job_parse_whole(const struct job *job, unsigned long long *limit, struct profd_error *e)
{
    unsigned long long value = 0;
    TRY(params_parse_number(job->params, "limit", 0, UINT32_MAX, &value, e));
    *limit = value == 0 ? ULLONG_MAX : value;
    return PROFD_OK;
}

const char *job_copy(struct job *job, const char *text)
{
    return !text ? "" : arena_copy(job->arena, text, strlen(text));
}
