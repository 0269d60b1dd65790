/* /api/v1/hosts: the hosts of a centre, and how far each lags behind. */
#include <string.h>

#include "core/rows.h"
#include "proto/hex.h"
#include "proto/limits.h"
#include "query/handlers.h"
#include "query/query.h"
#include "render/render.h"
#include "store/store.h"

struct hosts {
    struct job *job;
    const char *cursor; /* rows begin behind the host of this identity; NULL: with the first one */
    struct fleet_row *rows;
    uint32_t count, capacity;
    unsigned long long limit;
    bool more;
};

static bool take_host(void *context, const struct store_fleet_host *h)
{
    struct hosts *list = context;
    struct job *job = list->job;
    char identity[2 * STORE_HOST_SIZE + 1];
    ARENA_BOUNDARY(job->arena, false);
    if (!store_scope_has(&job->request->scope, h->uid)) {
        return true;
    }
    (void)hex_put(identity, h->host, STORE_HOST_SIZE);
    if (list->cursor != NULL) {
        list->cursor = strcmp(list->cursor, identity) == 0 ? NULL : list->cursor;
        return true;
    }
    if (list->count == list->limit) {
        list->more = true;
        return false;
    }
    list->rows = arena_extend(job->arena, list->rows, list->count, &list->capacity, sizeof *list->rows);
    list->rows[list->count++] = (struct fleet_row){.name = job_copy(job, h->name),
                                                   .identity = job_copy(job, identity),
                                                   .tenant = job_copy(job, h->tenant),
                                                   .machine = job_copy(job, h->machine),
                                                   .version = job_copy(job, h->version),
                                                   .first = h->first,
                                                   .last = h->last,
                                                   .delivered = h->delivered,
                                                   .restored = h->restored,
                                                   .two_machines = h->copied};
    return true;
}

enum profd_status hosts_list(struct job *job, struct profd_error *e)
{
    struct hosts list = {.job = job, .cursor = params_find(job->params, "cursor"), .limit = LIMIT_PAGE_DEFAULT};
    const char *cursor = list.cursor;
    enum profd_status status = job_parse_page(job, &list.limit, e);
    if (status == PROFD_OK) {
        status = store_each_host(job->store, take_host, &list, e);
    }
    arena_continue(job->arena);
    if (status == PROFD_OK && list.cursor != NULL) {
        return profd_error_set(e, PROFD_BAD_QUERY,
                               "cursor=%.80s is not a cursor from this list, or its host is gone; start again without "
                               "cursor=",
                               cursor);
    }
    if (status == PROFD_OK) {
        render_hosts(list.rows, list.count, job->request->now, list.more ? list.rows[list.count - 1].identity : NULL,
                     &job->answer->body);
    }
    return status;
}
