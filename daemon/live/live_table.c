/* The table of live processes: by user and instance, by process id, by user. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "live/live_internal.h"

#define AGAIN_MS 200  /* for the look that stores the ends of what was refused */
#define OTHERS 256u   /* descriptors reserved for connections that only query or upload */
#define PER_PROCESS 3 /* descriptors: its memory, its handle and, until ATTACH is acknowledged, its page */

/* Processes choose their instance, and the number of their memory to some degree: the tables are keyed
 * (core/hashmap.h), so that no choice makes a search long. */
struct table_instance {
    uint32_t uid;
    uint8_t instance[ATTACH_INSTANCE_SIZE];
};

struct table_memory {
    uint64_t device, inode;
};

_Static_assert(sizeof(struct table_instance) == sizeof(uint32_t) + ATTACH_INSTANCE_SIZE, "a key has no padding");

static struct table_instance table_key(uint32_t uid, const uint8_t instance[ATTACH_INSTANCE_SIZE])
{
    struct table_instance key = {.uid = uid};

    memcpy(key.instance, instance, sizeof key.instance);
    return key;
}

struct live_process *table_find(const struct live *l, uint32_t uid, const uint8_t instance[ATTACH_INSTANCE_SIZE])
{
    const struct table_instance key = table_key(uid, instance);
    struct live_process *const *a = hashmap_find(&l->of_instance, &key, sizeof key);

    return a ? *a : NULL;
}

struct live_process *table_find_same(const struct live *l, const struct live_process *a)
{
    const struct table_memory key = {a->device, a->inode};
    struct live_process *const *other = hashmap_find(&l->of_memory, &key, sizeof key);

    return other && *other != a ? *other : NULL;
}

struct live_user *table_find_user(const struct live *l, uint32_t uid)
{
    struct live_user *u = l->users[uid % LIVE_BUCKETS];

    while (u && u->uid != uid) {
        u = u->next;
    }
    return u;
}

/* Descriptors that live processes hold, beside their connections and what is under way on those. */
static size_t table_held(const struct live *l)
{
    return l->count * (PER_PROCESS - 1) + l->page_count + l->awaited_count;
}

static size_t table_others(const struct live *l)
{
    return l->config.descriptors / 8 < OTHERS ? l->config.descriptors / 8 : OTHERS;
}

/* One user may not use all descriptors. This is the number of processes that one user may have. */
static size_t table_most_of_user(const struct live *l)
{
    const size_t most = l->config.descriptors / PER_PROCESS;

    return most - most / 6 < LIMIT_ATTACHED_PER_UID ? most - most / 6 : LIMIT_ATTACHED_PER_UID;
}

enum profd_status table_check_capacity(const struct live *l, uint32_t uid, struct profd_error *e)
{
    const struct live_user *u = table_find_user(l, uid);
    const size_t others = table_others(l);
    struct conn_counts conns;

    conn_group_get_counts(l->config.conns, &conns);
    FAIL_IF(u && u->count >= table_most_of_user(l), e, PROFD_BUSY,
            "user %u has %zu attached processes; the limit is %zu", uid, u->count, table_most_of_user(l));
    FAIL_IF(l->count >= LIMIT_ATTACHED, e, PROFD_BUSY, "%zu processes are attached; the limit is %u", l->count,
            LIMIT_ATTACHED);
    FAIL_IF(conns.connections + conns.descriptors + table_held(l) + PER_PROCESS + others > l->config.descriptors, e,
            PROFD_BUSY, "the daemon's %zu descriptors are in use: %zu processes are attached", l->config.descriptors,
            l->count);
    return PROFD_OK;
}

void table_share(struct live *l)
{
    const size_t held = table_held(l); /* may be more than the limit, if a service manager stored more than this daemon
                                          may open */

    conn_group_limit(l->config.conns,
                     held + table_others(l) < l->config.descriptors ? l->config.descriptors - held : table_others(l));
}

struct live_user *table_open_user(struct live *l, uint32_t uid)
{
    struct live_user *u = table_find_user(l, uid);

    if (u) {
        return u;
    }
    u = calloc(1, sizeof *u);
    if (!u) {
        return NULL;
    }
    u->uid = uid;
    STAILQ_INIT(&u->syncs);
    STAILQ_INIT(&u->heard);
    STAILQ_INIT(&u->asked);
    u->next = l->users[uid % LIVE_BUCKETS];
    l->users[uid % LIVE_BUCKETS] = u;
    return u;
}

void table_close_user(struct live *l, struct live_user *user)
{
    struct live_user **at = &l->users[user->uid % LIVE_BUCKETS];

    if (user->count || user->ready || user->asking || !STAILQ_EMPTY(&user->syncs) || user->refused_count) {
        return;
    }
    while (*at != user) {
        at = &(*at)->next;
    }
    *at = user->next;
    free(user);
}

static void table_unfile(struct live_process *a)
{
    if (a->in_of_pid) {
        LIST_REMOVE(a, of_pid);
    }
    a->in_of_pid = false;
}

void table_file(struct live *l, struct live_process *a)
{
    const uint32_t bucket = a->origin.pid % LIVE_BUCKETS;

    table_unfile(a);
    if (!a->origin.pid || (!a->conn && a->dead)) {
        return;
    }
    if (a->conn) {
        LIST_INSERT_HEAD(&l->connected[bucket], a, of_pid);
    } else {
        LIST_INSERT_HEAD(&l->silent[bucket], a, of_pid);
    }
    a->in_of_pid = true;
}

/* Enters it under its user and instance. */
static bool table_enter(struct live *l, struct live_process *a)
{
    const struct table_instance key = table_key(a->uid, a->instance);

    a->of_instance = hashmap_put(&l->of_instance, &key, sizeof key, &a, sizeof a);
    return a->of_instance;
}

bool table_insert(struct live *l, struct live_process *a)
{
    const struct table_memory memory = {a->device, a->inode};

    a->user = table_open_user(l, a->uid);
    if (!a->user || !table_enter(l, a)) {
        return false;
    }
    a->of_memory = hashmap_put(&l->of_memory, &memory, sizeof memory, &a, sizeof a);
    if (!a->of_memory) {
        hashmap_remove(&l->of_instance, a->of_instance);
        return false;
    }
    a->user->count++;
    l->count++;
    LIST_INSERT_HEAD(&l->processes, a, all);
    table_file(l, a);
    table_share(l);
    return true;
}

bool table_change_user(struct live *l, struct live_process *a, uint32_t uid)
{
    struct live_user *u = table_open_user(l, uid);
    struct live_process **entry = a->of_instance;
    const uint32_t before = a->uid;

    a->uid = uid;
    if (!u || !table_enter(l, a)) {
        a->uid = before;
        a->of_instance = entry;
        return false;
    }
    hashmap_remove(&l->of_instance, entry);
    a->user->count--;
    table_close_user(l, a->user);
    u->count++;
    a->user = u;
    return true;
}

void table_remove(struct live *l, struct live_process *a)
{
    hashmap_remove(&l->of_instance, a->of_instance);
    hashmap_remove(&l->of_memory, a->of_memory);
    LIST_REMOVE(a, all);
    table_unfile(a);
    l->count--;
    a->user->count--;
    table_close_user(l, a->user);
    table_share(l);
}

void table_each(struct live *l, void (*f)(struct live *l, struct live_process *a))
{
    struct live_process *next;

    for (struct live_process *a = LIST_FIRST(&l->processes); a; a = next) {
        next = LIST_NEXT(a, all);
        f(l, a);
    }
}

void table_note_refused(struct live *l, uint32_t uid, const uint8_t instance[ATTACH_INSTANCE_SIZE])
{
    struct live_refused *r = calloc(1, sizeof *r);

    if (!r) {
        return;
    }
    r->uid = uid;
    memcpy(r->instance, instance, sizeof r->instance);
    r->next = l->refused;
    l->refused = r;
    loop_timer_set(l->orphan_timer, AGAIN_MS);
}

void table_free_refused(struct live_refused *list)
{
    for (struct live_refused *next; list; list = next) {
        next = list->next;
        free(list);
    }
}
