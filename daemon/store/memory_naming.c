/* Of which hosts an object that hosts attest may name functions, as in sqlite_naming.c. */
#include <stdio.h>
#include <string.h>

#include "proto/hex.h"
#include "store/memory.h"

uint64_t memory_count_attesting(const struct memory_store *s, const char *build_id, const uint8_t *hash)
{
    uint64_t n = 0;
    for (size_t i = 0; i < s->centre.attestation_count; i++) {
        const struct memory_attestation *a = &s->centre.attestations[i];
        n += a->has && strcmp(a->build_id, build_id) == 0 && (!hash || memcmp(a->hash, hash, STORE_HASH_SIZE) == 0);
    }
    return n;
}

static bool is_quorum(const struct memory_store *s, const char *build_id, const uint8_t *hash)
{
    const uint64_t hosts = memory_count_attesting(s, build_id, hash);
    return hosts >= STORE_QUORUM && 2 * hosts > memory_count_attesting(s, build_id, NULL);
}

bool memory_has_quorum(const struct memory_store *s, const char *build_id)
{
    bool any = false;
    for (size_t i = 0; i < s->centre.attestation_count && !any; i++) {
        const struct memory_attestation *a = &s->centre.attestations[i];
        any = a->has && strcmp(a->build_id, build_id) == 0 && is_quorum(s, build_id, a->hash);
    }
    return any;
}

static bool is_one_of(const struct memory_host *host, const struct store_senders *of)
{
    char text[2 * STORE_HOST_SIZE + 1];
    bool found = of->host_count == 0;
    hex_put(text, host->identity, STORE_HOST_SIZE);
    for (size_t i = 0; i < of->host_count && !found; i++) {
        found = strcmp(of->hosts[i], text) == 0;
    }
    return found;
}

bool memory_attests_for(const struct memory_store *s, const struct memory_object *o, const struct store_scope *scope)
{
    const struct memory_centre *c = &s->centre;
    bool found = false;
    for (size_t i = 0; i < c->attestation_count && o->hashed && !found; i++) {
        const struct memory_attestation *a = &c->attestations[i];
        found = a->has && strcmp(a->build_id, o->id.text) == 0 && memcmp(a->hash, o->hash, sizeof o->hash) == 0 &&
                store_scope_has(scope, c->hosts[a->host].uid);
    }
    return found;
}

bool memory_judge_hosts(const struct memory_store *s, const struct memory_object *o, const struct store_senders *of,
                        struct store_naming *naming)
{
    const struct memory_centre *c = &s->centre;
    size_t agreeing = 0, asked = 0;
    if (!o->hashed) {
        return false;
    }
    naming->hosts = memory_count_attesting(s, o->id.text, o->hash);
    naming->by = is_quorum(s, o->id.text, o->hash) ? STORE_NAMED_BY_QUORUM : STORE_NAMED_BY_HOSTS;
    for (size_t i = 0; i < c->attestation_count; i++) {
        const struct memory_attestation *a = &c->attestations[i];
        if (strcmp(a->build_id, o->id.text) == 0 && is_one_of(&c->hosts[a->host], of)) {
            asked++;
            agreeing += a->has && memcmp(a->hash, o->hash, sizeof o->hash) == 0;
        }
    }
    return naming->by == STORE_NAMED_BY_QUORUM ||
           (!memory_has_quorum(s, o->id.text) && agreeing == (of->host_count ? of->host_count : asked));
}
