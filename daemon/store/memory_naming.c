/* Of which hosts an object that hosts attest may name functions, as in sqlite_naming.c. */
#include <stdio.h>
#include <string.h>

#include "proto/hex.h"
#include "store/memory.h"
#include "store/same_names.h"

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

/* The objects of the build that hosts attest, with how many of them do. */
static size_t list_attested(const struct memory_store *s, const char *build_id, const struct store_senders *of,
                            struct same_names *list)
{
    const struct memory_centre *c = &s->centre;
    size_t n = 0;
    for (size_t i = 0; i < s->object_count && n < SAME_NAMES_MOST; i++) {
        const struct memory_object *o = &s->objects[i];
        if (!o->hashed || strcmp(o->id.text, build_id) != 0 || memory_count_attesting(s, build_id, o->hash) == 0) {
            continue;
        }
        struct same_names *one = &list[n++];
        *one = (struct same_names){.bytes = o->encoded, .size = o->encoded_size, .id = (int64_t)i};
        one->hosts = memory_count_attesting(s, build_id, o->hash);
        for (size_t k = 0; k < c->attestation_count; k++) {
            const struct memory_attestation *a = &c->attestations[k];
            one->asked += a->has && strcmp(a->build_id, build_id) == 0 && is_one_of(&c->hosts[a->host], of) &&
                          memcmp(a->hash, o->hash, sizeof o->hash) == 0;
        }
    }
    return n;
}

bool memory_judge_hosts(const struct memory_store *s, const struct memory_object *o, const struct store_senders *of,
                        struct store_naming *naming)
{
    const struct memory_centre *c = &s->centre;
    struct same_names list[SAME_NAMES_MOST];
    uint64_t asked = 0;
    bool names = false;
    if (!o->hashed) {
        return false;
    }
    naming->hosts = memory_count_attesting(s, o->id.text, o->hash);
    naming->by = is_quorum(s, o->id.text, o->hash) ? STORE_NAMED_BY_QUORUM : STORE_NAMED_BY_HOSTS;
    if (naming->by == STORE_NAMED_BY_QUORUM || memory_has_quorum(s, o->id.text)) {
        return naming->by == STORE_NAMED_BY_QUORUM;
    }
    for (size_t i = 0; i < c->attestation_count; i++) { /* those that have none, too */
        const struct memory_attestation *a = &c->attestations[i];
        asked += strcmp(a->build_id, o->id.text) == 0 && is_one_of(&c->hosts[a->host], of);
    }
    const size_t n = list_attested(s, o->id.text, of, list);
    const bool known = same_names_find(list, n, NULL) == PROFD_OK;
    for (size_t i = 0; i < n && known; i++) {
        if (&s->objects[list[i].id] == o) {
            names = same_names_judge(list, n, list[i].leader, memory_count_attesting(s, o->id.text, NULL),
                                     of->host_count ? of->host_count : asked, naming) &&
                    list[i].leader == i;
        }
    }
    return names;
}
