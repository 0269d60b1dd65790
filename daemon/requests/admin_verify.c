/* ADMIN verify: a complete round, step by step on the verifying thread, beside the periodic round. */
#include <string.h>

#include "core/container.h"
#include "net/loop.h"
#include "pages/page.h"
#include "render/document.h"
#include "requests/admin_internal.h"

#define PAUSE_MS 40

static struct admin *admin_of(struct verification *round)
{
    return container_of(round, struct admin, check);
}

static void admin_verify_answer(struct admin *a)
{
    const struct verify *v = &a->check.verify;
    const char *at = v->sentences.data, *end = at ? at + v->sentences.size : at;
    json_t *rows = json_array();
    struct page page;

    while (at < end) {
        const char *line = at, *stop = memchr(at, '\n', (size_t)(end - at));

        json_array_append_new(rows, json_pack("{s:o}", "mismatch", document_text_of(line, (size_t)(stop - line))));
        at = stop + 1;
    }
    page_init(&page, 200, "application/json; charset=utf-8");
    page.body.limit = 8u << 20; /* what is escaped grows */
    document_write(json_pack("{s:I, s:I, s:o}", "uploads", (json_int_t)v->uploads, "mismatches",
                             (json_int_t)v->mismatches, "rows", rows),
                   &page.body);
    admin_answer(a, &page);
}

static void admin_verify_put(struct admin *a)
{
    if (!verifier_put(a->service->config.verifier, &a->check)) {
        admin_refuse(a, verifier_is_stopped(a->service->config.verifier) ? PROFD_STOPPING : PROFD_BUSY,
                     verifier_is_stopped(a->service->config.verifier) ? "the daemon is stopping"
                                                                      : "the queue of verifications is full");
    }
}

static void admin_verify_on_timer(void *context)
{
    admin_verify_put(context);
}

/* A permanent reader would prevent the write-ahead log from being reset, so that it would grow with every upload. */
static void admin_verify_go_on(struct admin *a)
{
    if (writer_pending(a->service->config.writer)) {
        loop_timer_set(a->timer, PAUSE_MS);
    } else {
        admin_verify_put(a);
    }
}

static void admin_verify_done(struct verification *c)
{
    struct admin *a = admin_of(c);

    verifier_note(a->service->config.verifier, c);
    if (c->status) {
        admin_refuse(a, c->status, c->error.sentence);
    } else if (atomic_load(&a->gone) || !admin_get_conn(a)) {
        admin_refuse(a, PROFD_STOPPING, "ended, because " ADMIN_GONE);
    } else if (c->verify.cursor.done) {
        admin_verify_answer(a);
    } else {
        admin_report(a, c->verify.uploads, c->verify.total);
        admin_verify_go_on(a);
    }
}

static void admin_verify_drop(struct verification *c)
{
    admin_refuse(admin_of(c), PROFD_STOPPING, "the daemon is stopping");
}

enum profd_status admin_begin_verify(struct admin *a, struct profd_error *e)
{
    a->timer = loop_timer_new(a->service->config.loop, admin_verify_on_timer, a);
    if (!a->timer) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a verification");
    }
    a->check.item.uid = a->uid;
    a->check.done = admin_verify_done;
    a->check.drop = admin_verify_drop;
    return verifier_put(a->service->config.verifier, &a->check)
               ? PROFD_OK
               : profd_error_set(e, PROFD_BUSY, "the queue of verifications is full");
}
