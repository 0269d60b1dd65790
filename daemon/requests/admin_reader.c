/* ADMIN reader-add, reader-list and reader-remove. The list that HTTP uses is replaced before the answer is sent. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <nettle/sha2.h>

#include "core/container.h"
#include "log/log.h"
#include "net/loop.h"
#include "pages/page.h"
#include "proto/hex.h"
#include "render/document.h"
#include "render/render.h"
#include "requests/admin_internal.h"

#define SECRET_SIZE 32
#define TOKEN_PREFIX "profd-reader-"

/* Draws a token, and its hash. */
static enum profd_status reader_draw(struct admin *a, struct profd_error *e)
{
    uint8_t secret[SECRET_SIZE];
    struct sha256_ctx context;

    if (getrandom(secret, sizeof secret, 0) != (ssize_t)sizeof secret) {
        return profd_error_set(e, PROFD_IO, "cannot draw a token: %s", strerror(errno));
    }
    memcpy(a->token, TOKEN_PREFIX, sizeof TOKEN_PREFIX - 1);
    hex_put(a->token + sizeof TOKEN_PREFIX - 1, secret, sizeof secret);
    explicit_bzero(secret, sizeof secret);
    sha256_init(&context);
    sha256_update(&context, strlen(a->token), (const uint8_t *)a->token);
    sha256_digest(&context, sizeof a->request.reader.hash, a->request.reader.hash);
    return PROFD_OK;
}

static void reader_run_one(struct admin *a, struct store *store, const struct profd_error *full)
{
    struct profd_error e;

    if (atomic_load(&a->gone)) {
        a->status = profd_error_set(&a->error, PROFD_STOPPING, "not begun, because " ADMIN_GONE);
    } else if (a->request.verb == REQUEST_READER_REMOVE) {
        a->status = store_remove_reader(store, a->request.reader.name, &a->error);
    } else if (a->request.verb == REQUEST_READER_ADD && full) {
        a->status = PROFD_FULL;
        a->error = *full;
    } else if (a->request.verb == REQUEST_READER_ADD) {
        a->status = store_add_reader(store, &a->request.reader, &a->error);
    }
    if (readers_read(store, &a->readers, &e) && !a->status) { /* until the next change no reader is admitted */
        a->status = profd_error_set(&a->error, PROFD_NO_MEMORY, "%s", e.sentence);
    }
}

static void reader_run(struct store *store, const struct profd_error *full, struct writer_job *const *jobs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        reader_run_one(container_of(jobs[i], struct admin, job), store, full);
    }
}

static json_t *reader_time(int64_t at)
{
    char text[40];

    if (!at) {
        return json_null();
    }
    render_time(at, text);
    return json_string(text);
}

static json_t *reader_describe(const struct store_reader *r)
{
    json_t *tenants = json_array();

    if (r->all) {
        json_array_append_new(tenants, json_string("all"));
    }
    for (size_t i = 0; i < r->tenant_count; i++) {
        json_array_append_new(tenants, json_string(r->tenants[i].name));
    }
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:b}", "name", r->name, "role", r->admin ? "admin" : "read", "tenants",
                     tenants, "expires", reader_time(r->expires), "created", reader_time(r->created), "has_token",
                     r->has_token);
}

static void reader_answer(struct admin *a)
{
    const struct reader_list *list = &a->service->config.readers->list;
    json_t *document;
    struct page page;

    page_init(&page, 200, "application/json; charset=utf-8");
    page.body.limit = 8u << 20;
    if (a->request.verb == REQUEST_READER_LIST) {
        json_t *rows = json_array();

        for (size_t i = 0; i < list->count; i++) {
            json_array_append_new(rows, reader_describe(&list->items[i]));
        }
        document = json_pack("{s:o}", "rows", rows);
    } else if (a->request.verb == REQUEST_READER_ADD) {
        document = reader_describe(&a->request.reader);
        json_object_set_new(document, "token", a->token[0] ? json_string(a->token) : json_null());
    } else {
        document = json_pack("{s:s}", "name", a->request.reader.name);
    }
    if (a->request.verb != REQUEST_READER_LIST) {
        log_write(LOG_LEVEL_NOTICE, NULL, "user %u %s reader %s", a->uid,
                  a->request.verb == REQUEST_READER_ADD ? "added" : "removed", a->request.reader.name);
    }
    document_write(document, &page.body);
    explicit_bzero(a->token, sizeof a->token);
    admin_answer(a, &page);
}

static void reader_done(struct writer_job *job)
{
    struct admin *a = container_of(job, struct admin, job);

    readers_replace(a->service->config.readers, &a->readers);
    if (a->status) {
        admin_refuse(a, a->status, a->error.sentence);
    } else {
        reader_answer(a);
    }
}

static const struct writer_job_type reader_type = {.run = reader_run, .done = reader_done, .drop = admin_drop};

enum profd_status admin_begin_reader(struct admin *a, struct profd_error *e)
{
    const bool add = a->request.verb == REQUEST_READER_ADD;
    enum profd_status status = add && a->request.reader.has_token ? reader_draw(a, e) : PROFD_OK;

    if (status) {
        return status;
    }
    a->request.reader.created = loop_clock();
    if (add && a->request.lasts) {
        a->request.reader.expires = a->request.reader.created + a->request.lasts;
    }
    return writer_submit(a->service->config.writer, &a->job, &reader_type, e);
}
