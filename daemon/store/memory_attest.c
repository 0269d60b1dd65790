/* The verbs of attestations.h, as in sqlite_attest.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/memory.h"

#define NOWHERE SIZE_MAX

static size_t find_host(const struct memory_centre *c, const uint8_t *identity)
{
    size_t i = 0;
    while (i < c->host_count && memcmp(c->hosts[i].identity, identity, STORE_HOST_SIZE) != 0) {
        i++;
    }
    return i < c->host_count ? i : NOWHERE;
}

static struct memory_attestation *find_attestation(const struct memory_centre *c, const char *build_id, size_t host)
{
    for (size_t i = 0; i < c->attestation_count; i++) {
        if (c->attestations[i].host == host && strcmp(c->attestations[i].build_id, build_id) == 0) {
            return &c->attestations[i];
        }
    }
    return NULL;
}

enum profd_status memory_await_objects(struct memory_store *s, const struct store_upload *u, const uint8_t *identity,
                                       struct profd_error *e)
{
    struct memory_centre *c = &s->centre;
    const size_t host = find_host(c, identity);
    enum profd_status status = memory_reserve(&c->attestations, c->attestation_count, &c->attestation_capacity,
                                              u->build_count, sizeof *c->attestations, e);
    for (size_t i = 0; status == PROFD_OK && i < u->build_count; i++) {
        if (!find_attestation(c, u->builds[i].id.text, host)) {
            struct memory_attestation *a = &c->attestations[c->attestation_count++];
            *a = (struct memory_attestation){.host = host};
            snprintf(a->build_id, sizeof a->build_id, "%s", u->builds[i].id.text);
        }
    }
    return status;
}

void memory_forget_attestations(struct memory_store *s, const char *build_id)
{
    struct memory_centre *c = &s->centre;
    size_t kept = 0;
    for (size_t i = 0; i < c->attestation_count; i++) {
        if (strcmp(c->attestations[i].build_id, build_id) != 0) {
            c->attestations[kept++] = c->attestations[i];
        }
    }
    c->attestation_count = kept;
}

/* The object with this hash; −1: there is none. */
static ptrdiff_t find_object(const struct memory_store *s, const char *build_id, const uint8_t *hash)
{
    for (size_t i = 0; i < s->object_count; i++) {
        const struct memory_object *o = &s->objects[i];
        if (o->hashed && strcmp(o->id.text, build_id) == 0 && memcmp(o->hash, hash, sizeof o->hash) == 0) {
            return (ptrdiff_t)i;
        }
    }
    return -1;
}

/* The object that no host attests any more loses its sender, and goes if it had no other. */
static void remove_unattested(struct memory_store *s, const char *build_id, const uint8_t *hash)
{
    const ptrdiff_t object = find_object(s, build_id, hash);
    size_t kept = 0, others = 0;
    if (object < 0 || memory_count_attesting(s, build_id, hash) > 0) {
        return;
    }
    for (size_t i = 0; i < s->object_sender_count; i++) {
        struct memory_object_sender *x = &s->object_senders[i];
        const bool mine = x->object == (size_t)object;
        if (mine && store_is_tenant(x->uid) && !x->by_operator) {
            free(x->note);
            continue;
        }
        others += mine;
        s->object_senders[kept++] = *x;
    }
    s->object_sender_count = kept;
    if (others == 0) {
        memory_remove_object(s, (size_t)object);
    }
}

static void judge_limits(const struct memory_store *s, const struct memory_attestation *mine, uint64_t size,
                         struct store_attested *out)
{
    uint64_t n = 0, bytes = 0;
    for (size_t i = 0; i < s->centre.attestation_count; i++) {
        const struct memory_attestation *a = &s->centre.attestations[i];
        n += a != mine && a->has && a->host == mine->host;
        bytes += a != mine && a->has && a->host == mine->host ? a->size : 0;
    }
    if (n >= STORE_ATTEST_MOST) {
        out->verdict = STORE_ATTEST_TOO_MANY;
    } else if (size > STORE_ATTEST_BYTES - bytes) {
        out->verdict = STORE_ATTEST_TOO_LARGE;
    }
}

static void attest_build(struct memory_store *s, const struct store_attestation *a, struct memory_attestation *to,
                         struct store_attested *out)
{
    const struct memory_attestation before = *to;
    const bool had = memory_has_quorum(s, a->build_id);
    out->verdict = STORE_ATTEST_TAKEN;
    if (a->has) {
        judge_limits(s, to, a->size, out);
    }
    to->has = a->has && out->verdict == STORE_ATTEST_TAKEN;
    to->size = a->size;
    memcpy(to->hash, a->hash, sizeof to->hash);
    if (before.has) {
        remove_unattested(s, a->build_id, before.hash);
    }
    out->stored = to->has && find_object(s, a->build_id, a->hash) >= 0;
    to->due = a->now + (a->refused || out->verdict != STORE_ATTEST_TAKEN || out->stored ? STORE_ATTEST_AGAIN
                        : to->has                                                       ? STORE_ATTEST_AWAITED
                                                                                        : STORE_ATTEST_ABSENT);
    if (!had || !memory_has_quorum(s, a->build_id)) {
        s->number++;
        memory_touch_object(s, a->build_id, STORE_TENANT_LAST, STORE_TENANT);
    }
}

enum profd_status memory_attest(struct store *base, const struct store_attestation *list, size_t n,
                                struct store_attested *out, struct profd_error *e)
{
    struct memory_store *s = memory_self(base);
    (void)e;
    for (size_t i = 0; i < n; i++) {
        const struct store_attestation *a = &list[i];
        const size_t host = find_host(&s->centre, a->host);
        struct memory_attestation *to = find_attestation(&s->centre, a->build_id, host), *next = NULL;
        out[i] = (struct store_attested){.verdict = STORE_ATTEST_UNASKED};
        if (to) {
            attest_build(s, a, to, &out[i]);
        }
        for (size_t k = 0; k < s->centre.attestation_count; k++) {
            struct memory_attestation *x = &s->centre.attestations[k];
            next = x->host == host && x->due <= a->now && (!next || x->due < next->due) ? x : next;
        }
        snprintf(out[i].next.text, sizeof out[i].next.text, "%s", next ? next->build_id : "");
    }
    return PROFD_OK;
}
