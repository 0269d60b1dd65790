/* ADMIN token-add, token-list and token-remove. What HTTP judges by is changed before the answer is sent. */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include <nettle/sha2.h>

#include "core/container.h"
#include "log/log.h"
#include "pages/page.h"
#include "proto/hex.h"
#include "query/when.h"
#include "render/document.h"
#include "render/render.h"
#include "requests/admin_internal.h"
#include "writer/upkeep_job.h"

#define SECRET_SIZE 32
#define TOKEN_PREFIX "profd_" /* scanners of source code find leaked tokens by it */

/* Draws a token, and its hash. */
static enum profd_status token_draw(struct admin *a, struct profd_error *e)
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
    sha256_digest(&context, sizeof a->request.token.hash, a->request.token.hash);
    return PROFD_OK;
}

static json_t *token_time(int64_t at)
{
    char text[40];

    if (!at) {
        return json_null();
    }
    render_time(at, text);
    return json_string(text);
}

static json_t *token_describe(const struct store_token *t)
{
    static const char *const names[] = {"read", "write", "admin"};
    json_t *rights = json_array();

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (t->rights & 1u << i) {
            json_array_append_new(rights, json_string(names[i]));
        }
    }
    return json_pack("{s:s, s:o, s:s, s:o, s:b, s:o, s:o}", "name", t->name, "rights", rights, "tenant", t->tenant,
                     "hosts", *t->hosts ? json_string(t->hosts) : json_null(), "proxy", !t->has_hash, "expires",
                     token_time(t->expires), "created", token_time(t->created));
}

static bool token_list(void *context, const struct store_token *t)
{
    struct admin *a = context;

    a->cut = json_array_append_new(json_object_get(a->answer, "rows"), token_describe(t)) != 0;
    return !a->cut;
}

static void token_run_one(struct admin *a, struct store *store, const struct profd_error *full)
{
    struct store_token *t = &a->request.token;

    if (atomic_load(&a->gone)) {
        a->status = profd_error_set(&a->error, PROFD_STOPPING, "not begun, because " ADMIN_GONE);
    } else if (a->request.verb == REQUEST_TOKEN_REMOVE) {
        a->status = store_remove_token(store, t->name, &t->id, &a->error);
        a->answer = json_pack("{s:s}", "name", t->name);
    } else if (a->request.verb == REQUEST_TOKEN_LIST) {
        a->answer = json_pack("{s:[]}", "rows");
        a->status = a->answer ? store_each_token(store, token_list, a, &a->error) : PROFD_NO_MEMORY;
    } else if (full) {
        a->status = PROFD_FULL;
        a->error = *full;
    } else {
        a->status = store_add_token(store, t, &a->error);
        a->answer = token_describe(t);
        json_object_set_new(a->answer, "token", t->has_hash ? json_string(a->token) : json_null());
    }
    if (!a->status && (a->cut || !a->answer)) {
        a->status = profd_error_set(&a->error, PROFD_NO_MEMORY, "no memory for an answer about tokens");
    }
}

static void token_run(struct store *store, const struct profd_error *full, struct writer_job *const *jobs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        token_run_one(container_of(jobs[i], struct admin, job), store, full);
    }
}

static void token_done(struct writer_job *job)
{
    struct admin *a = container_of(job, struct admin, job);
    const struct admin_config *config = &a->service->config;
    const struct store_token *t = &a->request.token;
    const bool add = a->request.verb == REQUEST_TOKEN_ADD;
    struct page page;

    explicit_bzero(a->token, sizeof a->token);
    if (add && t->id && !a->status) {
        a->status = tokens_add(config->tokens, t, &a->error);
    } else if (!add && t->id) {
        tokens_remove(config->tokens, t->id);
        config->end_token(config->context, t->id);
    }
    if (a->status) {
        admin_refuse(a, a->status, a->error.sentence);
        return;
    }
    if (a->request.verb != REQUEST_TOKEN_LIST) {
        log_write(LOG_LEVEL_NOTICE, NULL, "user %u %s token %s", a->uid, add ? "added" : "removed", t->name);
    }
    page_init(&page, 200, "application/json; charset=utf-8");
    page.body.limit = 64u << 20;
    document_write(a->answer, &page.body);
    a->answer = NULL;
    admin_answer(a, &page);
}

static const struct writer_job_type token_type = {.run = token_run, .done = token_done, .drop = admin_drop};

enum profd_status admin_begin_token(struct admin *a, struct profd_error *e)
{
    struct store_token *t = &a->request.token;
    const bool add = a->request.verb == REQUEST_TOKEN_ADD;

    t->created = upkeep_job_clock(a->service->config.upkeep);
    if (add && *a->request.until && when_parse("expires", a->request.until, t->created, &t->expires, e)) {
        return PROFD_USAGE;
    }
    if (add && *a->request.until && t->expires <= t->created) {
        return profd_error_set(e, PROFD_USAGE, "a token cannot end at %s, which is in the past", a->request.until);
    }
    if (a->request.lasts) {
        t->expires = t->created + a->request.lasts;
    }
    if (add && t->has_hash) {
        TRY(token_draw(a, e));
    }
    return writer_submit(a->service->config.writer, &a->job, &token_type, e);
}
