#include "requests/readers.h"

#include <stdlib.h>
#include <string.h>

#include <nettle/memops.h>

#include "net/loop.h"
#include "render/render.h"

struct reading {
    struct reader_list *list;
    size_t capacity;
    bool failed;
};

static bool reading_add(void *context, const struct store_reader *r)
{
    struct reading *x = context;

    if (x->list->count == x->capacity) {
        const size_t capacity = x->capacity ? 2 * x->capacity : 16;
        struct store_reader *grown = reallocarray(x->list->items, capacity, sizeof *grown);

        if (!grown) {
            x->failed = true;
            return false;
        }
        x->list->items = grown;
        x->capacity = capacity;
    }
    x->list->items[x->list->count++] = *r;
    return true;
}

enum profd_status readers_read(struct store *store, struct reader_list *out, struct profd_error *e)
{
    struct reading x = {.list = out};
    enum profd_status status;

    *out = (struct reader_list){.count = 0};
    status = store_each_reader(store, reading_add, &x, e);
    if (!status && x.failed) {
        status = profd_error_set(e, PROFD_NO_MEMORY, "no memory for the readers");
    }
    if (status) {
        free(out->items);
        *out = (struct reader_list){.count = 0};
    }
    return status;
}

void readers_replace(struct readers *all, struct reader_list *list)
{
    free(all->list.items);
    all->list = *list;
    *list = (struct reader_list){.count = 0};
}

void readers_done(struct readers *all)
{
    free(all->list.items);
    all->list = (struct reader_list){.count = 0};
}

/* Of this name or token. */
static const struct store_reader *readers_look(const struct readers *all, const struct http_credentials *c)
{
    for (size_t i = 0; i < all->list.count; i++) {
        const struct store_reader *r = &all->list.items[i];
        const bool found = c->user ? strlen(r->name) == c->user_size && !memcmp(r->name, c->user, c->user_size)
                                   : r->has_token && memeql_sec(r->hash, c->token_sha256, sizeof r->hash);

        if (found) {
            return r;
        }
    }
    return NULL;
}

static int readers_judge(const struct store_reader *r, bool by_proxy, uint64_t *reader, struct profd_error *e)
{
    char time[40];

    if (r->expires && r->expires <= loop_clock()) {
        render_time(r->expires, time);
        profd_error_set(e, PROFD_UNAUTHORIZED, "reader %s expired at %s", r->name, time);
        return by_proxy ? 403 : 401;
    }
    if (!r->all && !r->tenant_count) {
        profd_error_set(e, PROFD_FORBIDDEN, "reader %s has no role for any tenant", r->name);
        return 403;
    }
    *reader = r->id;
    return 0;
}

static int readers_admit_named(const struct readers *all, const struct http_credentials *c, bool proxy,
                               uint64_t *reader, struct profd_error *e)
{
    const struct store_reader *r = NULL;

    if (!proxy) {
        profd_error_set(e, PROFD_FORBIDDEN,
                        "the header X-Remote-User counts only on the Unix socket, from the user of proxy-user");
        return 403;
    }
    if (c->token_sha256) {
        profd_error_set(e, PROFD_FORBIDDEN, "the request has a bearer token and X-Remote-User: only one may be there");
        return 403;
    }
    r = readers_look(all, c);
    if (!r) {
        profd_error_set(e, PROFD_FORBIDDEN, "the proxy names \"%.*s\", and there is no such reader",
                        (int)(c->user_size < 64 ? c->user_size : 64), c->user);
        return 403;
    }
    return readers_judge(r, true, reader, e);
}

int readers_admit(void *context, const struct http_credentials *c, uint64_t *reader, struct profd_error *e)
{
    const struct readers *all = context;
    const bool proxy = !c->tcp && all->has_proxy && c->peer.uid == all->proxy_user;
    const struct store_reader *r = NULL;

    *reader = 0;
    if (c->user) {
        return readers_admit_named(all, c, proxy, reader, e);
    }
    r = c->token_sha256 ? readers_look(all, c) : NULL;
    if (r) {
        return readers_judge(r, false, reader, e);
    }
    if (c->known || (!c->tcp && !proxy && !c->token_sha256)) {
        return 0;
    }
    profd_error_set(e, PROFD_UNAUTHORIZED,
                    c->token_sha256 ? "the bearer token in Authorization is of no reader"
                                    : "the request has no valid bearer token in Authorization");
    return 401;
}

const struct store_reader *readers_find(const struct readers *all, uint64_t id)
{
    for (size_t i = 0; i < all->list.count; i++) {
        if (all->list.items[i].id == id) {
            return &all->list.items[i];
        }
    }
    return NULL;
}

void readers_get_scope(const struct store_reader *reader, struct store_scope *out)
{
    *out = (struct store_scope){.all = reader->all, .uid = UINT32_MAX};
    for (size_t i = 0; i < reader->tenant_count && !reader->all; i++) {
        if (!i) {
            out->uid = reader->tenants[0].uid;
        } else {
            out->others[out->other_count++] = reader->tenants[i].uid;
        }
    }
}
