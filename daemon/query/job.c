#include <inttypes.h>
#include <string.h>

#include "query/query_internal.h"

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
    /* Whether processes are found again does not change what is stored, but what is said of it. Without a validator
     * the answer is still right. */
    const struct store_filter any = {.build_id = NULL};
    struct store_living unread;
    const bool known = store_get_living(job->store, STORE_UNREAD, &r->scope, &any, &unread, NULL) == PROFD_OK;
    if (known) {
        buffer_add_format(&b, " %" PRIu64 " %" PRId64, unread.processes, unread.earliest);
    }
    if (known && !b.failed) {
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

const char *job_copy(struct job *job, const char *text)
{
    return !text ? "" : arena_copy(job->arena, text, strlen(text));
}

enum profd_status list_begin(struct job *job, enum render_list kind, size_t row, struct list_page *out,
                             struct profd_error *e)
{
    unsigned long long limit = 0;
    TRY(job_parse_page(job, &limit, e));
    *out = (struct list_page){
        .job = job, .kind = kind, .size = row, .limit = limit, .cursor = params_find(job->params, "cursor")};
    return PROFD_OK;
}

enum profd_status list_parse_build_cursor(const struct list_page *l, struct buildid *after, struct profd_error *e)
{
    return l->cursor && buildid_parse(l->cursor, strlen(l->cursor), after, NULL)
               ? profd_error_set(e, PROFD_BAD_QUERY, "cursor=%s is not a cursor from a list", l->cursor)
               : PROFD_OK;
}

void *list_add(struct list_page *l)
{
    l->more = l->count >= l->limit;
    if (l->more) {
        return NULL;
    }
    l->rows = arena_extend(l->job->arena, l->rows, l->count, &l->capacity, l->size);
    return memset((char *)l->rows + l->count++ * l->size, 0, l->size);
}

size_t list_cut(struct list_page *l, unsigned long long skip, unsigned long long limit)
{
    const size_t first = skip < l->count ? (size_t)skip : l->count;
    const size_t n = l->count - first < limit ? l->count - first : (size_t)limit;
    l->more = first + n < l->count;
    l->rows = n > 0 ? (char *)l->rows + first * l->size : NULL;
    l->count = (uint32_t)n;
    return first + n;
}

void list_show(const struct list_page *l, const char *next)
{
    render_list(l->kind, l->rows, l->count, next, &l->job->answer->body);
}
