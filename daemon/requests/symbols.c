#include "requests/symbols.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log/log.h"
#include "pages/page.h"
#include "proto/buildid.h"
#include "proto/limits.h"
#include "query/params.h"
#include "render/document.h"
#include "requests/object.h"
#include "requests/reply.h"
#include "requests/tokens.h"
#include "store/store.h"

#define BEFORE "/api/v1/builds/"
#define AFTER "/symbols"

/* One of them, until it is answered. */
struct symbols_put {
    struct http_exchange *exchange;
    struct buildid id;
    char token[STORE_NAME_MOST + 1]; /* its name */
};

/* The build-id of the path. METHOD: it is another path, or not a PUT. */
static enum profd_status symbols_find_id(bool put, const char *path, size_t n, struct buildid *id,
                                         struct profd_error *e)
{
    const size_t before = sizeof BEFORE - 1, after = sizeof AFTER - 1;

    if (!put || n <= before + after || memcmp(path, BEFORE, before) != 0 ||
        memcmp(path + n - after, AFTER, after) != 0 || memchr(path + before, '/', n - before - after)) {
        return profd_error_set(e, PROFD_METHOD,
                               "only GET and HEAD are supported here; PUT is, for " BEFORE "{id}" AFTER);
    }
    return buildid_parse(path + before, n - before - after, id, e);
}

int symbols_judge(void *context, const struct http_body_head *head, struct profd_error *e)
{
    const struct symbols *s = context;
    const struct store_token *t = tokens_find(s->tokens, head->token);
    struct buildid id;
    const enum profd_status status = symbols_find_id(!head->post, head->path, head->n, &id, e);

    if (status) {
        return status == PROFD_METHOD ? 405 : 400;
    }
    if (!t || !(t->rights & STORE_MAY_ADMIN)) {
        profd_error_set(e, PROFD_FORBIDDEN,
                        "symbols are taken with a token that has the right admin%s%s%s; on the daemon's machine, "
                        "use profctl symbols with a Unix socket",
                        t ? ", which token " : "", t ? t->name : "", t ? " does not have" : "");
        return 403;
    }
    if (head->sized && !head->size) {
        profd_error_set(e, PROFD_MALFORMED, "the PUT has no body");
        return 400;
    }
    if (head->size > LIMIT_HTTP_PUT) {
        profd_error_set(e, PROFD_TOO_LARGE, "the file has %llu bytes, at most %u are taken over HTTP",
                        (unsigned long long)head->size, LIMIT_HTTP_PUT);
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
    log_write(LOG_LEVEL_NOTICE, NULL, "token %s sent symbols of build %s: %s", p->token, p->id.text,
              status ? sentence : "stored");
    reply_tell(p->exchange, &page);
    free(p);
}

/* The parameters of the target. */
static enum profd_status symbols_read_target(const char *target, struct object_put *put, struct profd_error *e)
{
    static const char *const allowed[] = {"code", NULL};
    struct params *p = malloc(sizeof *p);
    enum profd_status status = p ? params_parse(target, p, e) : profd_no_memory(e);

    if (!status) {
        status = params_check(p, allowed, NULL, e);
    }
    if (!status) {
        status = params_parse_flag(p, "code", &put->code, e);
    }
    free(p);
    return status;
}

void symbols_receive(const struct symbols *s, struct http_exchange *x, const struct http_request *request)
{
    const struct store_token *t = tokens_find(s->tokens, request->token); /* else the request had been refused */
    struct symbols_put *p = calloc(1, sizeof *p);
    struct object_put put = {.fd = request->body, .name = "a file", .done = symbols_answer, .context = p};
    struct page page;
    struct profd_error e;
    enum profd_status status = PROFD_OK;

    if (!p || symbols_find_id(true, request->target, strcspn(request->target, "?"), &p->id, &e)) {
        status = profd_error_set(&e, PROFD_NO_MEMORY, "no memory for an executable");
        close(request->body);
    } else {
        p->exchange = x;
        memcpy(p->token, t->name, sizeof p->token);
        put.tenant = t->all ? 0 : t->uid;
        put.build_id = p->id.text;
        status = symbols_read_target(request->target, &put, &e);
        if (status) {
            close(request->body);
        } else {
            status = object_put(s->objects, &put, &e);
        }
    }
    if (status) {
        free(p);
        page_problem(&page, profd_status_http(status), status, e.sentence);
        reply_tell(x, &page);
    }
}
