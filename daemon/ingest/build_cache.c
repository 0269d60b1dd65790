#include "ingest/build_cache.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"

#define NODES_MAX 65536u
#define MISSING_MAX 64               /* builds one upload may ask executables for */
#define BYTES_MAX ((size_t)32 << 20) /* of bounds */
#define HOUR UINT64_C(3600000000000) /* ns; also what naming one build costs, so that what comes back is exact */
#define FULL (HOUR * LIMIT_BUILDS_PER_HOUR_PER_UID)

struct build_cache_node {
    uint32_t uid;
    char id[BUILDID_TEXT_SIZE];
    bool named;       /* by this uid before, or charged for */
    bool asked;       /* bounds are those of the generation */
    bool judged, has; /* whether there is an object, as of judged_at */
    uint64_t generation, judged_at;
    uint8_t *bytes; /* NULL: no executable is known, or one without code */
    size_t size;
    struct bounds bounds;
};

/* What a user may still name now. */
struct build_cache_allowance {
    uint32_t uid;
    uint64_t left; /* HOUR for each build */
    int64_t at;    /* ns */
};

struct build_cache {
    struct store *store;
    uint64_t generation;
    void *nodes, *allowances; /* trees */
    size_t count, bytes;
};

static int compare_nodes(const void *a, const void *b)
{
    const struct build_cache_node *x = a, *y = b;
    return x->uid != y->uid ? (x->uid > y->uid) - (x->uid < y->uid) : strcmp(x->id, y->id);
}

static int compare_allowances(const void *a, const void *b)
{
    const struct build_cache_allowance *x = a, *y = b;
    return (x->uid > y->uid) - (x->uid < y->uid);
}

static void free_node(void *p)
{
    struct build_cache_node *node = p;
    free(node->bytes);
    free(node);
}

enum profd_status build_cache_new(struct store *s, struct build_cache **out, struct profd_error *e)
{
    struct build_cache *cache = calloc(1, sizeof *cache);
    FAIL_IF(!cache, e, PROFD_NO_MEMORY, "no memory to check uploads");
    cache->store = s;
    *out = cache;
    return PROFD_OK;
}

static void remove_nodes(struct build_cache *cache)
{
    tdestroy(cache->nodes, free_node);
    cache->nodes = NULL;
    cache->count = cache->bytes = 0;
}

void build_cache_free(struct build_cache *cache)
{
    if (!cache) {
        return;
    }
    remove_nodes(cache);
    tdestroy(cache->allowances, free);
    free(cache);
}

void build_cache_begin(struct build_cache *cache, uint64_t generation)
{
    cache->generation = generation;
    if (cache->count > NODES_MAX || cache->bytes > BYTES_MAX) {
        remove_nodes(cache);
    }
}

/* The node of a build as one user sees it. NULL when out of memory. */
static struct build_cache_node *open_node(struct build_cache *cache, uint32_t uid, const char *build_id)
{
    struct build_cache_node key = {.uid = uid}, *node;
    size_t n = strnlen(build_id, sizeof key.id - 1);
    memcpy(key.id, build_id, n);
    struct build_cache_node *const *found = tfind(&key, &cache->nodes, compare_nodes);
    if (found) {
        return *found;
    }
    node = malloc(sizeof *node);
    if (!node) {
        return NULL;
    }
    *node = key;
    if (!tsearch(node, &cache->nodes, compare_nodes)) {
        free(node);
        return NULL;
    }
    cache->count++;
    return node;
}

enum profd_status build_cache_find_bounds(struct build_cache *cache, uint32_t uid, const char *build_id,
                                          const struct bounds **bounds, struct profd_error *e)
{
    struct build_cache_node *node = open_node(cache, uid, build_id);
    if (!node) {
        return profd_no_memory(e);
    }
    if (!node->asked || node->generation != cache->generation) {
        /* The bounds are copied, because the store lends one at a time. */
        const uint8_t *bytes;
        size_t n = 0;
        TRY(store_get_bounds(cache->store, node->uid, node->id, &bytes, &n, e));
        uint8_t *copy = n > 0 ? malloc(n) : NULL;
        if (n > 0 && !copy) {
            return profd_no_memory(e);
        }
        cache->bytes += n;
        cache->bytes -= node->size;
        free(node->bytes);
        node->bytes = copy;
        node->size = n;
        if (n > 0) {
            memcpy(copy, bytes, n);
        }
        node->asked = true;
        node->generation = cache->generation;
        /* An object without any code says nothing about addresses. */
        if (!node->bytes || !bounds_open(node->bytes, node->size, &node->bounds)) {
            node->bounds.count = 0;
        }
    }
    *bounds = node->bounds.count > 0 ? &node->bounds : NULL;
    return PROFD_OK;
}

/* Copies a name, cut between two characters if it is too long. */
static void copy_name(char *out, size_t size, const char *name)
{
    size_t n = strlen(name);
    if (n >= size) {
        n = size - 1;
        while (n > 0 && ((unsigned char)name[n] & 0xc0) == 0x80) {
            n--;
        }
    }
    memcpy(out, name, n);
    out[n] = 0;
}

enum profd_status build_cache_list_missing(struct build_cache *cache, const struct store_upload *u,
                                           struct missing_build **out, size_t *count, struct profd_error *e)
{
    struct missing_build *list = NULL;
    size_t n = 0;
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; i < u->build_count && n < MISSING_MAX && !status; i++) {
        const struct store_build *build = &u->builds[i];
        struct build_cache_node *node = open_node(cache, u->uid, build->id.text);
        if (!node) {
            status = profd_no_memory(e);
            break;
        }
        if (!node->judged || node->judged_at != cache->generation) {
            status = store_has_object(cache->store, u->uid, build->id.text, &node->has, e);
            node->judged = !status;
            node->judged_at = cache->generation;
        }
        if (status || node->has) {
            continue;
        }
        if (!list) {
            list = calloc(u->build_count < MISSING_MAX ? u->build_count : MISSING_MAX, sizeof *list);
        }
        if (!list) {
            status = profd_error_set(e, PROFD_NO_MEMORY, "no memory to ask for executables");
            continue;
        }
        list[n].id = build->id;
        copy_name(list[n].name, sizeof list[n].name, build->name);
        n++;
    }
    if (status) {
        free(list);
        return status;
    }
    *out = list;
    *count = n;
    return PROFD_OK;
}

static void see_row(void *context, const struct build_row *row)
{
    (void)row;
    *(bool *)context = true;
}

static struct build_cache_allowance *open_allowance(struct build_cache *cache, uint32_t uid, int64_t now)
{
    struct build_cache_allowance key = {.uid = uid, .left = FULL, .at = now}, *a;
    struct build_cache_allowance *const *found = tfind(&key, &cache->allowances, compare_allowances);
    if (found) {
        a = *found;
        if (now > a->at) {
            uint64_t ns = (uint64_t)now - (uint64_t)a->at;
            uint64_t back = ns >= HOUR ? FULL : ns * LIMIT_BUILDS_PER_HOUR_PER_UID;
            a->left = back >= FULL - a->left ? FULL : a->left + back;
        }
        a->at = now; /* a clock set back neither gives nor takes */
        return a;
    }
    a = malloc(sizeof *a);
    if (!a) {
        return NULL;
    }
    *a = key;
    if (!tsearch(a, &cache->allowances, compare_allowances)) {
        free(a);
        return NULL;
    }
    return a;
}

enum profd_status build_cache_charge(struct build_cache *cache, uint32_t uid, int64_t received,
                                     const struct store_build *builds, size_t n, uint32_t *retry_after_ms,
                                     struct profd_error *e)
{
    uint64_t cost = 0;
    struct build_cache_node *node;
    for (size_t i = 0; i < n; i++) {
        const struct store_scope scope = {.uid = uid};
        struct profd_error why;
        bool seen = false;
        node = open_node(cache, uid, builds[i].id.text);
        if (!node) {
            return profd_no_memory(e);
        }
        if (node->named) {
            continue;
        }
        const enum profd_status status = store_get_build(cache->store, &scope, node->id, see_row, &seen, &why);
        if (status != PROFD_OK && status != PROFD_NOT_FOUND) { /* that it is not found is no failure */
            if (e) {
                *e = why;
            }
            return status;
        }
        node->named = seen;
        cost += seen ? 0 : HOUR;
    }
    if (cost == 0) {
        return PROFD_OK;
    }
    struct build_cache_allowance *a = open_allowance(cache, uid, received);
    if (!a) {
        return profd_no_memory(e);
    }
    if (cost > a->left) {
        *retry_after_ms = (uint32_t)((cost - a->left) / LIMIT_BUILDS_PER_HOUR_PER_UID / 1000000u) + 1;
        return profd_error_set(
            e, PROFD_BUSY, "user %u names %llu new builds, but may name only %llu more now: the limit is %u an hour",
            uid, (unsigned long long)(cost / HOUR), (unsigned long long)(a->left / HOUR),
            LIMIT_BUILDS_PER_HOUR_PER_UID);
    }
    a->left -= cost;
    for (size_t i = 0; i < n; i++) {
        node = open_node(cache, uid, builds[i].id.text);
        if (node) {
            node->named = true;
        }
    }
    return PROFD_OK;
}
