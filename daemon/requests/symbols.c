#include "requests/symbols.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/container.h"
#include "ingest/ingest.h"
#include "base/log.h"
#include "net/loop.h"
#include "requests/page.h"
#include "proto/buildid.h"
#include "proto/limits.h"
#include "query/params.h"
#include "render/document.h"
#include "requests/intake.h"
#include "requests/object.h"
#include "requests/requests.h"
#include "requests/tokens.h"
#include "requests/uploads.h"
#include "store/store.h"
#include "writer/writer.h"

#define PARSED "application/vnd.profd.symbols"

/* One of them, until it is answered. */
struct symbols_put {
    struct writer_job job; /* of a parsed object */
    const struct symbols *service;
    struct http_exchange *exchange;
    struct buildid id;
    char token[STORE_NAME_MOST + 1]; /* its name */
    struct uploads_host host;        /* that sent the parsed object */
    uint8_t *bytes;                  /* of that */
    size_t size;
    enum profd_status status;
    struct profd_error error;
};

/* The build-id of the path, which is one that the table of routes has. */
static enum profd_status symbols_find_id(const char *path, size_t n, struct buildid *id, struct profd_error *e)
{
    const size_t before = sizeof "/api/v1/builds/" - 1;

    return buildid_parse(path + before, n - before - (sizeof "/symbols" - 1), id, e);
}

int symbols_judge(const struct symbols *s, const struct http_body_head *head, struct profd_error *e)
{
    const struct store_token *t = tokens_find(s->tokens, head->token);
    const bool parsed = head->type_size == sizeof PARSED - 1 && !memcmp(head->type, PARSED, head->type_size);
    const unsigned right = parsed ? STORE_MAY_WRITE : STORE_MAY_ADMIN;
    const uint64_t most = parsed ? LIMIT_PARSED_OBJECT : LIMIT_HTTP_PUT;
    struct buildid id;

    if (symbols_find_id(head->path, head->n, &id, e)) {
        return 400;
    }
    if (!t || !(t->rights & right) || (parsed && t->all)) {
        profd_error_set(e, PROFD_FORBIDDEN,
                        "symbols are taken with a token that has the right %s%s%s%s; on the daemon's machine, use "
                        "profctl symbols with a Unix socket",
                        parsed ? "write, if they are " PARSED : "admin", t ? ", which token " : "", t ? t->name : "",
                        t ? " does not have" : "");
        return 403;
    }
    if (head->sized && !head->size) {
        profd_error_set(e, PROFD_MALFORMED, "the PUT has no body");
        return 400;
    }
    if (head->size > most) {
        profd_error_set(e, PROFD_TOO_LARGE, "the body has %llu bytes, at most %llu are taken over HTTP",
                        (unsigned long long)head->size, (unsigned long long)most);
        return 413;
    }
    return 0;
}

static void symbols_answer(void *context, enum profd_status status, const char *sentence)
{
    struct symbols_put *p = context;
    struct page page;

    if (status) {
        page_problem(&page, profd_status_http(status), status, sentence);
    } else {
        page_init(&page, 200, "application/json; charset=utf-8");
        page.cache_control = "no-store";
        document_write(json_pack("{s:s, s:b}", "build_id", p->id.text, "names", true), &page.body);
    }
    log_write(LOG_LEVEL_NOTICE, p->bytes ? "symbols of hosts" : NULL, "token %s sent symbols of build %s: %s", p->token,
              p->id.text, status ? sentence : "stored");
    reply_tell(p->exchange, &page);
    free(p->bytes);
    free(p);
}

static struct symbols_put *put_of(struct writer_job *job)
{
    return container_of(job, struct symbols_put, job);
}

static void parsed_run(struct store *store, const struct profd_error *full, struct writer_job *const *jobs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct symbols_put *p = put_of(jobs[i]);
        const struct ingest_object given = {.received = loop_clock(),
                                            .build_id = p->id.text,
                                            .name = "a build's functions",
                                            .answer = p->bytes,
                                            .answer_size = p->size,
                                            .host = p->host.identity};

        p->status = full ? profd_error_set(&p->error, PROFD_FULL, "%s", full->sentence)
                         : ingest_object_store(store, &given, &p->error);
    }
}

static void parsed_done(struct writer_job *job)
{
    struct symbols_put *p = put_of(job);
    struct centre_counts *counts = intake_get_counts(p->service->intake);

    counts->objects_stored += !p->status;
    counts->objects_refused += p->status != PROFD_OK;
    symbols_answer(p, p->status, p->error.sentence);
}

static void parsed_drop(struct writer_job *job)
{
    struct symbols_put *p = put_of(job);

    p->status = profd_error_set(&p->error, PROFD_STOPPING, "the daemon is stopping");
    parsed_done(job);
}

static const struct writer_job_type parsed_type = {
    .run = parsed_run, .done = parsed_done, .drop = parsed_drop, .changes_objects = true};

/* The parameters of the target, in a new block. It may have this one only. */
static enum profd_status symbols_read_target(const char *target, const char *name, struct params **out,
                                             struct profd_error *e)
{
    const char *const allowed[] = {name, NULL};
    struct params *p = *out = malloc(sizeof *p);

    TRY(p ? params_parse(target, p, e) : profd_no_memory(e));
    return params_check(p, allowed, NULL, e);
}

/* The host's name in the target, which only a token for several hosts needs. */
static enum profd_status parsed_read_host(const char *target, const struct store_token *t, struct uploads_host *out,
                                          struct profd_error *e)
{
    struct params *p;
    enum profd_status status = symbols_read_target(target, "host", &p, e);

    if (!status) {
        const char *host = params_find(p, "host");

        status = uploads_find_host(t, host ? host : "", out, e);
    }
    free(p);
    return status;
}

/* Reads the file, and gives it to the writer. */
static enum profd_status parsed_put(struct symbols_put *p, const struct http_request *request,
                                    const struct store_token *t, struct profd_error *e)
{
    const off_t size = lseek(request->body, 0, SEEK_END);
    TRY(parsed_read_host(request->target, t, &p->host, e));

    p->size = size > 0 ? (size_t)size : 0;
    p->bytes = malloc(p->size + 1);
    if (!p->bytes) {
        return profd_no_memory(e);
    }
    if (pread(request->body, p->bytes, p->size, 0) != (ssize_t)p->size) {
        return profd_error_set(e, PROFD_IO, "the body of %zu bytes cannot be read", p->size);
    }
    p->job.item.weight = p->size;
    return writer_submit(p->service->writer, &p->job, &parsed_type, e);
}

void symbols_receive(const struct symbols *s, struct http_exchange *x, const struct http_request *request)
{
    const struct store_token *t = tokens_find(s->tokens, request->token); /* else the request had been refused */
    struct symbols_put *p = calloc(1, sizeof *p);
    struct object_put put = {.fd = request->body, .name = "a file", .done = symbols_answer, .context = p};
    struct params *target = NULL;
    struct page page;
    struct profd_error e;
    enum profd_status status = PROFD_OK;

    if (!p || symbols_find_id(request->target, strcspn(request->target, "?"), &p->id, &e)) {
        status = profd_error_set(&e, PROFD_NO_MEMORY, "no memory for an executable");
        close(request->body);
    } else {
        p->service = s;
        p->exchange = x;
        memcpy(p->token, t->name, sizeof p->token);
        if (!strcmp(request->content_type, PARSED)) {
            status = parsed_put(p, request, t, &e);
            close(request->body);
        } else {
            put.tenant = t->all ? 0 : t->uid;
            put.build_id = p->id.text;
            status = symbols_read_target(request->target, "code", &target, &e);
            if (!status) {
                status = params_parse_flag(target, "code", &put.code, &e);
            }
            free(target);
            if (status) {
                close(request->body);
            } else {
                status = object_put(s->objects, &put, &e);
            }
        }
    }
    if (status) {
        if (p) {
            free(p->bytes);
        }
        free(p);
        page_problem(&page, profd_status_http(status), status, e.sentence);
        reply_tell(x, &page);
    }
}
