/* HOSTS: the hosts of a centre. */
#include "core/container.h"
#include "net/loop.h"
#include "proto/hex.h"
#include "render/document.h"
#include "requests/admin_internal.h"
#include "store/store.h"

#define HOSTS_MAX (64u << 20) /* bytes of an answer */

/* Seconds since the epoch, or null. */
static json_t *seconds_of(int64_t at)
{
    return at ? json_integer(at / 1000000000) : json_null();
}

static bool host_add(void *context, const struct store_fleet_host *h)
{
    struct admin *a = context;
    char identity[2 * STORE_HOST_SIZE + 1];
    const int64_t now = loop_clock();

    hex_put(identity, h->host, STORE_HOST_SIZE);
    a->cut = 0 != json_array_append_new(json_object_get(a->answer, "rows"),
                                        json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:I, s:o, s:b, s:o}",
                                                  "name", h->name, "identity", identity, "tenant", h->tenant,
                                                  "machine_id", h->machine, "version", h->version, "first_seen",
                                                  seconds_of(h->first), "last_seen", seconds_of(h->last),
                                                  "last_segment", seconds_of(h->delivered), "lag_seconds",
                                                  (json_int_t)(now > h->last ? (now - h->last) / 1000000000 : 0),
                                                  "restored", seconds_of(h->restored), "two_machines", h->copied != 0,
                                                  "two_machines_seen", seconds_of(h->copied)));
    return !a->cut;
}

static enum profd_status hosts_run(struct admin *a, struct store *store, struct profd_error *e)
{
    enum profd_status status;

    a->answer = json_pack("{s:[], s:n}", "rows", "next");
    status = a->answer ? store_each_host(store, host_add, a, e) : PROFD_NO_MEMORY;
    return status == PROFD_NO_MEMORY || a->cut ? profd_error_set(e, PROFD_NO_MEMORY, "no memory for a list of hosts")
                                               : status;
}

static void hosts_run_all(struct store *store, const struct profd_error *full, struct writer_job *const *jobs, size_t n)
{
    (void)full; /* nothing is stored */
    for (size_t i = 0; i < n; i++) {
        struct admin *a = container_of(jobs[i], struct admin, job);

        a->status = hosts_run(a, store, &a->error);
    }
}

static void hosts_done(struct writer_job *job)
{
    struct admin *a = container_of(job, struct admin, job);
    struct page page;

    if (a->status) {
        admin_refuse(a, a->status, a->error.sentence);
        return;
    }
    page_init(&page, 200, "application/json; charset=utf-8");
    page.body.limit = HOSTS_MAX;
    document_write(a->answer, &page.body);
    a->answer = NULL;
    admin_answer(a, &page);
}

static const struct writer_job_type hosts_type = {.run = hosts_run_all, .done = hosts_done, .drop = admin_drop};

enum profd_status admin_begin_hosts(struct admin *a, struct profd_error *e)
{
    return writer_submit(a->service->config.writer, &a->job, &hosts_type, e);
}
