#include "requests/tokens.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <nettle/memops.h>
#include <nettle/sha2.h>
#include <stdio.h>

#include "base/log.h"
#include "net/loop.h"
#include "proto/label.h"
#include "render/render.h"
#include "writer/upkeep_job.h"

#define LOG_MS 60000u

static bool tokens_put(struct tokens *all, const struct store_token *token)
{
    struct store_token *t =
        hashmap_put(&all->by_key, token->has_hash ? token->hash : (const void *)token->name,
                    token->has_hash ? sizeof token->hash : strlen(token->name), token, sizeof *token);

    if (t && !hashmap_put(&all->by_id, &t->id, sizeof t->id, &t, sizeof t)) {
        hashmap_remove(&all->by_key, t);
        t = NULL;
    }
    return t != NULL;
}

/* The context of loading_put. */
struct tokens_loading {
    struct tokens *all;
    bool failed;
};

static bool loading_put(void *context, const struct store_token *t)
{
    struct tokens_loading *l = context;

    l->failed = !tokens_put(l->all, t);
    return !l->failed;
}

enum profd_status tokens_load(struct tokens *all, struct store *store, struct profd_error *e)
{
    struct tokens_loading l = {.all = all};

    hashmap_init(&all->by_key, 0);
    hashmap_init(&all->by_id, 0);
    TRY(store_each_token(store, loading_put, &l, e));
    return l.failed ? profd_no_memory(e) : PROFD_OK;
}

enum profd_status tokens_add(struct tokens *all, const struct store_token *token, struct profd_error *e)
{
    return tokens_put(all, token) ? PROFD_OK : profd_no_memory(e);
}

void tokens_remove(struct tokens *all, uint64_t id)
{
    struct store_token **entry = hashmap_find(&all->by_id, &id, sizeof id);

    if (entry) {
        hashmap_remove(&all->by_key, *entry);
        hashmap_remove(&all->by_id, entry);
    }
}

void tokens_done(struct tokens *all)
{
    hashmap_clear(&all->by_key);
    hashmap_clear(&all->by_id);
}

const struct store_token *tokens_find(const struct tokens *all, uint64_t id)
{
    struct store_token **entry = hashmap_find(&all->by_id, &id, sizeof id);

    return entry ? *entry : NULL;
}

/* Finds the token of a request. NULL: it has none, and *status is 0 if it needs none. */
static const struct store_token *tokens_identify(const struct tokens *all, const struct http_credentials *c,
                                                 int *status, struct profd_error *e)
{
    const bool proxy = !c->tcp && all->has_proxy && c->peer.uid == all->proxy_user;
    const struct store_token *t = NULL;

    *status = c->user ? 403 : 401;
    if (c->user && !proxy) {
        profd_error_set(e, PROFD_FORBIDDEN,
                        "the header X-Remote-User counts only on the Unix socket, from the user of proxy-user");
    } else if (c->user && c->token_sha256) {
        profd_error_set(e, PROFD_FORBIDDEN, "the request has both a token and X-Remote-User; it may have only one");
    } else if (c->user || c->token_sha256) {
        t = c->user ? hashmap_find(&all->by_key, c->user, c->user_size)
                    : hashmap_find(&all->by_key, c->token_sha256, sizeof t->hash);
        /* A name may have as many bytes as a hash, so an entry of the other kind is ignored. */
        if (t && (t->has_hash == !!c->user || (!c->user && !memeql_sec(t->hash, c->token_sha256, sizeof t->hash)))) {
            t = NULL;
        }
        if (!t && c->user) {
            profd_error_set(e, PROFD_FORBIDDEN, "the proxy names the token \"%.*s\", which does not exist",
                            (int)(c->user_size < 64 ? c->user_size : 64), c->user);
        } else if (!t) {
            profd_error_set(e, PROFD_UNAUTHORIZED, "the token in Authorization is unknown; it is wrong or was removed");
        }
    } else if (c->given || (c->tcp ? !c->open : proxy)) {
        profd_error_set(e, PROFD_UNAUTHORIZED, "the request has no token in Authorization, as Bearer or as Basic");
    } else {
        *status = 0;
    }
    return t;
}

int tokens_admit(void *context, const struct http_credentials *c, uint64_t *token, struct profd_error *e)
{
    struct tokens *all = context;
    int status = 0;
    const struct store_token *t = tokens_identify(all, c, &status, e);

    *token = 0;
    if (t && t->expires && t->expires <= upkeep_job_clock(all->upkeep)) {
        char time[40];

        render_time(t->expires, time);
        profd_error_set(e, PROFD_UNAUTHORIZED, "token %s ended at %s", t->name, time);
    } else if (t && c->reads && !(t->rights & STORE_MAY_READ)) {
        profd_error_set(e, PROFD_FORBIDDEN, "token %s does not have the right read", t->name);
        return 403;
    } else if (t) {
        *token = t->id;
        return 0;
    }
    if (status && (t || c->token_sha256 || c->user)) {
        /* A client that guesses tokens must not fill the log. */
        const uint64_t now = loop_now();

        all->refused++;
        if (!all->logged || now - all->logged >= LOG_MS) {
            log_write(LOG_LEVEL_NOTICE, NULL, "refused an HTTP request: %s; refused since the previous line: %" PRIu64,
                      e->sentence, all->refused);
            all->logged = now;
            all->refused = 0;
        }
    }
    return status;
}

enum profd_status tokens_check_write(const struct store_token *token, struct profd_error *e)
{
    const bool may = token->rights & STORE_MAY_WRITE;

    return may && !token->all ? PROFD_OK
                              : profd_error_set(e, PROFD_FORBIDDEN, "token %s does not have the right write%s",
                                                token->name, may ? " for one tenant" : "");
}

enum profd_status tokens_find_host(const struct store_token *token, const char *stated, struct tokens_host *out,
                                   struct profd_error *e)
{
    const char *name = *token->hosts ? stated : token->name;
    const size_t n = strlen(name);
    struct sha256_ctx context;
    char head[40];

    FAIL_IF(!*token->hosts && *stated && strcmp(stated, name) != 0, e, PROFD_FORBIDDEN,
            "the request states host %.100s, but the token is for host %s; profctl token add --hosts makes a token for "
            "several hosts",
            stated, name);
    FAIL_IF(!n || n >= sizeof out->name || label_judge("host", 4, name, n) != LABEL_GOOD, e, PROFD_MALFORMED,
            "the name of the host has %zu bytes: with token %s it must be a valid value of a label with 1 to %zu bytes",
            n, token->name, sizeof out->name - 1);
    FAIL_IF(*token->hosts && fnmatch(token->hosts, name, 0) != 0, e, PROFD_FORBIDDEN,
            "token %s is for hosts that match %s, not for %s", token->name, token->hosts, name);
    memcpy(out->name, name, n + 1);
    /* The identity is a hash of the tenant and the name. */
    sha256_init(&context);
    sha256_update(&context,
                  (size_t)snprintf(head, sizeof head, "profd host%c%" PRId64, 0, store_tenant_id(token->uid)) + 1,
                  (const uint8_t *)head); /* with its NUL */
    sha256_update(&context, n, (const uint8_t *)name);
    sha256_digest(&context, STORE_HOST_SIZE, out->identity);
    return PROFD_OK;
}
