/* ADMIN verify: a whole round now, step by step on the verifying thread, beside the round that goes on by itself. */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "server_admin.h"

#define PAUSE_MS 40

static struct server_admin *server_admin_of(struct server_check *c)
{
    return (struct server_admin *)(void *)((char *)c - offsetof(struct server_admin, check));
}

static void server_admin_verify_answer(struct server_admin *a)
{
    const struct verify *v = &a->check.verify;
    const char *at = v->sentences.data, *end = at ? at + v->sentences.size : at;
    struct server_page page;

    server_page_init(&page, 200, "application/json; charset=utf-8");
    page.body.limit = 8u << 20; /* what is escaped grows */
    buffer_add_format(&page.body, "{\"uploads\":%" PRIu64 ",\"mismatches\":%" PRIu64 ",\"rows\":[", v->uploads,
                      v->mismatches);
    while (at < end) {
        const char *line = at, *stop = memchr(at, '\n', (size_t)(end - at));

        buffer_add_text(&page.body, line == v->sentences.data ? "{\"mismatch\":\"" : ",{\"mismatch\":\"");
        server_page_add_json(&page.body, line, (size_t)(stop - line));
        buffer_add_text(&page.body, "\"}");
        at = stop + 1;
    }
    buffer_add_text(&page.body, "]}\n");
    server_admin_answer(a, &page);
}

static void server_admin_verify_put(struct server_admin *a)
{
    if (!server_scrub_put(a->server, &a->check))
        server_admin_refuse(a, a->server->stopping ? PROFD_STOPPING : PROFD_BUSY,
                            a->server->stopping ? "the daemon is stopping" : "too many verifications wait");
}

static void server_admin_verify_on_timer(void *context)
{
    server_admin_verify_put(context);
}

/* A reader without a pause would keep the writer's log from beginning afresh, and it would grow as long as uploads
 * come. */
static void server_admin_verify_go_on(struct server_admin *a)
{
    if (work_pending(a->server->writer))
        loop_timer_set(a->timer, PAUSE_MS);
    else
        server_admin_verify_put(a);
}

static void server_admin_verify_done(struct server_check *c)
{
    struct server_admin *a = server_admin_of(c);

    server_scrub_note(a->server, c, &a->from, &a->counted);
    if (c->status) {
        server_admin_refuse(a, c->status, c->error.sentence);
    } else if (!server_admin_conn(a)) {
        server_admin_free(a); /* nobody waits for the rest */
    } else if (c->verify.cursor.done) {
        server_admin_verify_answer(a);
    } else {
        server_admin_tell(a, c->verify.uploads, c->verify.total);
        server_admin_verify_go_on(a);
    }
}

static void server_admin_verify_drop(struct server_check *c)
{
    server_admin_refuse(server_admin_of(c), PROFD_STOPPING, "the daemon is stopping");
}

enum profd_status server_admin_verify(struct server_admin *a, struct profd_error *e)
{
    a->timer = loop_timer_new(a->server->loop, server_admin_verify_on_timer, a);
    if (!a->timer)
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a verification");
    a->check.item.uid = a->uid;
    a->check.done = server_admin_verify_done;
    a->check.drop = server_admin_verify_drop;
    return server_scrub_put(a->server, &a->check) ? PROFD_OK
                                                  : profd_error_set(e, PROFD_BUSY, "too many verifications wait");
}
