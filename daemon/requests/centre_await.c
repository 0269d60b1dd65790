#include "requests/centre_await.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"

#define SLOW_MS 1000u          /* until the first pieces must have come */
#define SLOW_BYTES_PER_MS 256u /* of an object since then, on average */

void centre_objects_init(struct centre_objects *all)
{
    TAILQ_INIT(&all->list);
    all->bytes = 0;
}

void centre_object_free(struct centre_object *o)
{
    free(o->bytes);
    free(o);
}

static void take_out(struct centre_objects *all, struct centre_object *o)
{
    TAILQ_REMOVE(&all->list, o, next);
    all->bytes -= o->offer.size;
}

void centre_objects_clear(struct centre_objects *all)
{
    struct centre_object *o;

    while ((o = TAILQ_FIRST(&all->list)) != NULL) {
        take_out(all, o);
        centre_object_free(o);
    }
}

/* An object that comes slowly holds its place only while others do not need it: a host that announces objects, and
 * sends none or a byte now and then, must not keep those of all other hosts away. */
static bool make_place(struct centre_objects *all, uint64_t size, uint64_t now)
{
    struct centre_object *o = TAILQ_FIRST(&all->list);

    while (o && all->bytes + size > LIMIT_ATTEST_HELD) {
        struct centre_object *following = TAILQ_NEXT(o, next);

        if (now - o->began > SLOW_MS + o->got / SLOW_BYTES_PER_MS) {
            take_out(all, o);
            centre_object_free(o);
        }
        o = following;
    }
    return all->bytes + size <= LIMIT_ATTEST_HELD;
}

bool centre_await(struct centre_objects *all, const struct store_offer *a, uint64_t now)
{
    struct centre_object *o = TAILQ_FIRST(&all->list);

    while (o) {
        struct centre_object *following = TAILQ_NEXT(o, next);
        const bool same_build = strcmp(o->id.text, a->build_id) == 0,
                   same_host = memcmp(o->offer.host, a->host, sizeof a->host) == 0;

        if (now - o->touched > LIMIT_ATTEST_SECONDS * 1000u || (same_build && same_host)) {
            take_out(all, o);
            centre_object_free(o);
        } else if (same_build && memcmp(o->offer.hash, a->hash, sizeof a->hash) == 0) {
            return false;
        }
        o = following;
    }
    if (!make_place(all, a->size, now)) {
        return false;
    }
    o = calloc(1, sizeof *o);
    if (!o) {
        return false;
    }
    o->offer = *a;
    snprintf(o->id.text, sizeof o->id.text, "%s", a->build_id);
    o->offer.build_id = o->id.text;
    o->touched = o->began = now;
    TAILQ_INSERT_TAIL(&all->list, o, next);
    all->bytes += a->size;
    return true;
}

static struct centre_object *find(const struct centre_objects *all, const struct message_object_bytes *m)
{
    struct centre_object *o;

    TAILQ_FOREACH(o, &all->list, next)
    {
        const struct store_offer *a = &o->offer;

        if (m->host.size == sizeof a->host && memcmp(m->host.data, a->host, sizeof a->host) == 0 &&
            m->hash.size == sizeof a->hash && memcmp(m->hash.data, a->hash, sizeof a->hash) == 0 &&
            strcmp(m->build_id, o->id.text) == 0) {
            return o;
        }
    }
    return NULL;
}

enum profd_status centre_add_piece(struct centre_objects *all, const struct message_object_bytes *m, uint64_t now,
                                   struct centre_object **whole, struct profd_error *e)
{
    struct centre_object *o = find(all, m);

    *whole = NULL;
    if (!o) {
        return profd_error_set(e, PROFD_REFUSED, "the parsed object of build %s is not awaited from this host",
                               m->build_id);
    }
    if (m->offset != o->got || m->piece.size < 1 || m->piece.size > LIMIT_ATTEST_PIECE ||
        m->piece.size > o->offer.size - o->got) {
        profd_error_set(e, PROFD_MALFORMED,
                        "%zu bytes at %llu of the parsed object of build %s, which has %llu: %llu have come",
                        m->piece.size, (unsigned long long)m->offset, o->id.text, (unsigned long long)o->offer.size,
                        (unsigned long long)o->got);
        take_out(all, o);
        centre_object_free(o);
        return PROFD_MALFORMED;
    }
    o->bytes = o->bytes ? o->bytes : malloc(o->offer.size);
    if (!o->bytes) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a parsed object");
    }
    memcpy(o->bytes + o->got, m->piece.data, m->piece.size);
    o->got += m->piece.size;
    o->touched = now;
    if (o->got < o->offer.size) {
        return PROFD_OK;
    }
    take_out(all, o);
    *whole = o;
    return PROFD_OK;
}
