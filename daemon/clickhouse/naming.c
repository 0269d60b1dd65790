#include "clickhouse/naming.h"

#include <string.h>

static bool contains(const struct store_senders *of, uint32_t uid)
{
    bool found = false;
    for (size_t i = 0; i < of->uid_count && !found; i++) {
        found = of->uids[i] == uid;
    }
    return found;
}

/* Is it a tenant of which an operator has sent an object with names? */
static bool is_ruled(const struct naming_build *b, uint32_t uid)
{
    bool ruled = false;
    for (const struct naming_object *o = b->objects; o && store_is_tenant(uid) && !ruled; o = o->next) {
        for (const struct naming_sender *x = o->senders; x && o->has_names && !ruled; x = x->next) {
            ruled = x->by_operator && x->uid == uid;
        }
    }
    return ruled;
}

static uint64_t count_attesting(const struct naming_build *b)
{
    uint64_t hosts = 0;
    for (const struct naming_group *g = b->groups; g; g = g->next) {
        hosts += g->has ? g->hosts : 0;
    }
    return hosts;
}

struct naming_group *naming_find_group(const struct naming_build *b, const uint8_t hash[STORE_HASH_SIZE])
{
    struct naming_group *g = b->groups;
    while (g && !(g->has && g->hosts > 0 && memcmp(g->hash, hash, STORE_HASH_SIZE) == 0)) {
        g = g->next;
    }
    return g;
}

const struct naming_object *naming_find_attested(const struct naming_build *b, const struct naming_group *g)
{
    const struct naming_object *o = b->objects;
    while (o && !(g->has && g->hosts > 0 && o->hashed && memcmp(o->content, g->hash, STORE_HASH_SIZE) == 0)) {
        o = o->next;
    }
    return o;
}

const struct naming_group *naming_find_quorum(const struct naming_build *b)
{
    const uint64_t attesting = count_attesting(b);
    const struct naming_group *g = b->groups;
    while (g && !(g->has && g->hosts >= STORE_QUORUM && 2 * g->hosts > attesting)) {
        g = g->next;
    }
    return g;
}

/* May the object name functions of what the hosts have sent? */
static bool judge_hosts(const struct naming_build *b, const struct naming_object *o, const struct store_senders *of,
                        struct store_naming *naming)
{
    const struct naming_group *mine = o->hashed ? naming_find_group(b, o->content) : NULL;
    const struct naming_group *quorum = naming_find_quorum(b);
    uint64_t asked = of->host_count;
    if (!mine) {
        return false;
    }
    for (const struct naming_group *g = b->groups; g && of->host_count == 0; g = g->next) {
        asked += g->asked;
    }
    naming->hosts = mine->hosts;
    naming->by = mine == quorum ? STORE_NAMED_BY_QUORUM : STORE_NAMED_BY_HOSTS;
    for (size_t i = 0; i < b->same_count && !quorum; i++) {
        if (b->same_groups[i] == mine) {
            return b->same[i].leader == i &&
                   same_names_judge(b->same, b->same_count, i, count_attesting(b), asked, naming);
        }
    }
    if (!quorum && same_names_any_quorum(b->same, b->same_count, count_attesting(b))) {
        return false;
    }
    return mine == quorum || (!quorum && mine->asked == asked);
}

/* What the senders of one object say for these users. */
struct verdict {
    bool eligible, trusted;
    bool ruled; /* operators of all users have sent it */
    uint64_t delivered;
    const char *note;
    struct store_naming naming;
};

static struct verdict judge(const struct naming_build *b, const struct naming_object *o, const struct store_senders *of)
{
    struct verdict v = {.note = "", .naming = {.by = STORE_NAMED_BY_USERS}};
    size_t operators = 0, matched = 0;
    for (const struct naming_sender *x = o->senders; x; x = x->next) {
        const bool member = contains(of, x->uid);
        operators += member && x->by_operator && o->has_names;
        matched += member && !store_is_tenant(x->uid);
        v.trusted |= x->trusted;
        if ((x->trusted || member || x->uid == STORE_TENANT) && x->delivered > v.delivered) {
            v.delivered = x->delivered;
            v.note = x->note;
        }
    }
    matched += operators;
    v.ruled = of->uid_count > 0 && operators == of->uid_count;
    for (size_t i = 0; i < of->uid_count; i++) {
        matched +=
            store_is_tenant(of->uids[i]) && !is_ruled(b, of->uids[i]) && judge_hosts(b, o, of, &v.naming) ? 1 : 0;
    }
    v.eligible = v.trusted || (of->uid_count > 0 && matched == of->uid_count);
    if (v.ruled) {
        v.naming.by = STORE_NAMED_BY_OPERATORS;
    } else if (v.trusted) {
        v.naming = (struct store_naming){.by = STORE_NAMED_BY_USERS};
    }
    return v;
}

/* Does object o with verdict v come before the best so far? */
static bool is_better(const struct naming_object *o, const struct verdict *v, const struct naming_object *best,
                      const struct verdict *of_best)
{
    return !best                             ? true
           : o->has_names != best->has_names ? o->has_names
           : v->ruled != of_best->ruled      ? v->ruled
           : v->trusted != of_best->trusted  ? v->trusted
                                             : v->delivered > of_best->delivered;
}

/* Is it trusted, or has a user of the scope sent it, or does a host of the scope attest it? */
static bool is_seen(const struct naming_build *b, const struct naming_object *o, const struct store_scope *scope)
{
    const struct naming_group *g = o->hashed ? naming_find_group(b, o->content) : NULL;
    bool seen = !scope || (g && g->seen);
    for (const struct naming_sender *x = o->senders; x && !seen; x = x->next) {
        seen = x->trusted || (store_scope_has(scope, x->uid) && (x->by_operator || !store_is_tenant(x->uid)));
    }
    return seen;
}

struct naming_choice naming_choose(const struct naming_build *b, const struct store_senders *of)
{
    struct naming_choice c = {.note = "", .naming = {.by = STORE_NAMED_BY_USERS}};
    struct verdict best = {.delivered = 0};
    uint64_t failure = 0;
    uint32_t variants = 0;
    for (const struct naming_object *o = b->objects; o; o = o->next) {
        const struct verdict v = judge(b, o, of);
        if (o->variant[0] != '\0') {
            variants += is_seen(b, o, of->seen);
            if (v.eligible && is_better(o, &v, c.object, &best)) {
                c.object = o;
                best = v;
            }
        } else if (v.delivered > failure) {
            failure = v.delivered;
            c.note = v.note;
        }
    }
    if (c.object) {
        c.note = best.note;
        c.naming = best.naming;
        c.naming.variants = variants;
    }
    c.naming.attesting = count_attesting(b);
    for (size_t i = 0; i < of->uid_count; i++) {
        c.naming.operators += is_ruled(b, of->uids[i]);
    }
    return c;
}

bool naming_knows(const struct naming_build *b, uint32_t uid)
{
    bool known = false;
    for (const struct naming_object *o = b->objects; o && !known; o = o->next) {
        const bool failed = o->variant[0] == '\0';
        for (const struct naming_sender *x = o->senders; x && !known; x = x->next) {
            known = failed ? x->uid == uid : !o->outdated && (x->uid == uid || x->trusted);
        }
    }
    return known;
}

bool naming_replaces(const struct naming_object *now, const struct naming_object *old)
{
    bool all = true;
    for (const struct naming_sender *x = old->senders; x && all; x = x->next) {
        bool covered = false;
        for (const struct naming_sender *y = now->senders; y && !covered; y = y->next) {
            covered = y->trusted || (!x->trusted && y->uid == x->uid && y->by_operator >= x->by_operator);
        }
        all = covered;
    }
    return all;
}

uint64_t naming_latest(const struct naming_build *b)
{
    uint64_t latest = 0;
    for (const struct naming_object *o = b->objects; o; o = o->next) {
        for (const struct naming_sender *x = o->senders; x; x = x->next) {
            latest = x->delivered > latest ? x->delivered : latest;
        }
    }
    return latest;
}
