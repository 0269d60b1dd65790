/* ADMIN token-add, token-list and token-remove. */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include <nettle/sha2.h>

#include "base/log.h"
#include "proto/hex.h"
#include "query/when.h"
#include "render/render.h"
#include "requests/admin_internal.h"
#include "writer/upkeep_job.h"

#define SECRET_SIZE 32
#define TOKEN_PREFIX "profd_" /* scanners of source code find leaked tokens by it */

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

    if (json_array_append_new(json_object_get(a->answer, "rows"), token_describe(t))) {
        json_decref(a->answer); /* no memory: a list without this row would look whole */
        a->answer = NULL;
    }
    return a->answer;
}

static enum profd_status token_run(struct admin *a, struct store *store, const struct profd_error *full,
                                   struct profd_error *e)
{
    struct store_token *t = &a->request.token;

    if (a->request.verb == REQUEST_TOKEN_REMOVE) {
        TRY(store_remove_token(store, t->name, &t->id, e));
        a->answer = json_pack("{s:s}", "name", t->name);
    } else if (a->request.verb == REQUEST_TOKEN_LIST) {
        a->answer = json_pack("{s:[]}", "rows");
        TRY(store_each_token(store, token_list, a, e));
    } else if (full) {
        *e = *full;
        return PROFD_FULL;
    } else {
        TRY(store_add_token(store, t, e));
        a->answer = token_describe(t);
        json_object_set_new(a->answer, "token", t->has_hash ? json_string(a->token) : json_null());
    }
    return PROFD_OK;
}

/* Changes the tokens by which HTTP judges before the answer is sent. */
static enum profd_status token_done(struct admin *a, struct profd_error *e)
{
    const struct admin_config *config = &a->service->config;
    const struct store_token *t = &a->request.token;

    if (a->request.verb == REQUEST_TOKEN_LIST) {
        return PROFD_OK;
    }
    if (a->request.verb == REQUEST_TOKEN_ADD) {
        TRY(tokens_add(config->tokens, t, e));
    } else {
        tokens_remove(config->tokens, t->id);
        config->end_token(config->context, t->id);
    }
    log_write(LOG_LEVEL_NOTICE, NULL, "user %u %s token %s", a->uid,
              a->request.verb == REQUEST_TOKEN_ADD ? "added" : "removed", t->name);
    return PROFD_OK;
}

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
        /* Draws a token, and its hash. */
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
    }
    return admin_submit(a, token_run, token_done, e);
}
