/* Which of a build's objects names functions (attestations.h), from what is known of them. Pure. */
#ifndef PROFD_CLICKHOUSE_NAMING_H
#define PROFD_CLICKHOUSE_NAMING_H

#include "store/same_names.h"
#include "store/store.h"

/* A user that has sent an object. */
struct naming_sender {
    struct naming_sender *next;
    uint32_t uid;
    bool trusted, by_operator;
    uint64_t delivered, number;
    const char *name, *note;
};

struct naming_object {
    struct naming_object *next;
    const char *variant; /* "": the worker failed */
    uint8_t content[STORE_HASH_SIZE];
    bool has_names, outdated;
    bool hashed; /* a host has sent it: hosts attest its content */
    uint64_t number;
    struct naming_sender *senders;
};

/* Hosts that attest the same of a build. */
struct naming_group {
    struct naming_group *next;
    bool has; /* false: they have no object of it */
    uint8_t hash[STORE_HASH_SIZE];
    uint64_t hosts;
    uint64_t asked; /* of these, those that store_senders names; if it names none, all */
    bool seen;      /* one is of a user of store_senders.seen */
};

struct naming_build {
    const char *build_id;
    struct naming_object *objects;
    struct naming_group *groups;
    /* Without a quorum for one object: which of them have the same names (engine_compare_names); hosts are those of
     * same_groups. */
    struct same_names same[SAME_NAMES_MOST];
    const struct naming_group *same_groups[SAME_NAMES_MOST];
    size_t same_count;
};

struct naming_choice {
    const struct naming_object *object; /* NULL: none may name functions */
    const char *note;                   /* of its latest delivery; without an object, of the latest failure; or "" */
    struct store_naming naming;         /* variants is 0 without an object */
};
/* The object that store_get_object returns, and why. O(uids · objects · (senders + groups)). */
struct naming_choice naming_choose(const struct naming_build *b, const struct store_senders *of);

/* As store_has_object. */
bool naming_knows(const struct naming_build *b, uint32_t uid);
/* True if `now` may name functions for all users that `old` serves. */
bool naming_replaces(const struct naming_object *now, const struct naming_object *old);
/* The number of the latest delivery of any object; 0: there is none. */
uint64_t naming_latest(const struct naming_build *b);
/* The hosts that attest this hash; NULL: none does. */
struct naming_group *naming_find_group(const struct naming_build *b, const uint8_t hash[STORE_HASH_SIZE]);
/* The stored object that this group attests; NULL: it is not stored. */
const struct naming_object *naming_find_attested(const struct naming_build *b, const struct naming_group *g);
/* The group that is a quorum; NULL: none is. */
const struct naming_group *naming_find_quorum(const struct naming_build *b);

#endif
