/* The table of live processes: by user and instance, by process id, by user. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "live/live_internal.h"

#define AGAIN_MS 200 /* for the look that stores the ends of what was refused */
#define OTHERS 256u  /* descriptors reserved for connections that only query or upload */

/* Instances are random. */
static uint32_t table_bucket(const uint8_t instance[ATTACH_INSTANCE_SIZE])
{
    uint64_t a, b;

    memcpy(&a, instance, sizeof a);
    memcpy(&b, instance + sizeof a, sizeof b);
    a = (a ^ b) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(a >> 40) % LIVE_BUCKETS;
}

struct live_process *table_find(const struct live *l, uint32_t uid, const uint8_t instance[ATTACH_INSTANCE_SIZE])
{
    struct live_process *a = l->buckets[table_bucket(instance)];

    while (a && (a->uid != uid || memcmp(a->instance, instance, sizeof a->instance) != 0)) {
        a = a->next;
    }
    return a;
}

struct live_process *table_find_same(const struct live *l, const struct live_process *a)
{
    struct live_process *other = l->buckets[table_bucket(a->instance)];

    while (other && (other == a || other->device != a->device || other->inode != a->inode)) {
        other = other->next;
    }
    return other;
}

struct live_user *table_find_user(const struct live *l, uint32_t uid)
{
    struct live_user *u = l->users[uid % LIVE_BUCKETS];

    while (u && u->uid != uid) {
        u = u->next;
    }
    return u;
}

static size_t table_others(const struct live *l)
{
    return l->config.descriptors / 8 < OTHERS ? l->config.descriptors / 8 : OTHERS;
}

enum profd_status table_check_capacity(const struct live *l, uint32_t uid, struct profd_error *e)
{
    const struct live_user *u = table_find_user(l, uid);
    const size_t others = table_others(l);
    struct conn_counts conns;

    conn_group_get_counts(l->config.conns, &conns);
    if (u && u->count >= LIMIT_ATTACHED_PER_UID) {
        return profd_error_set(e, PROFD_BUSY, "user %u has %zu processes attached, at most %u may be", uid, u->count,
                               LIMIT_ATTACHED_PER_UID);
    }
    if (l->count >= LIMIT_ATTACHED) {
        return profd_error_set(e, PROFD_BUSY, "%zu processes are attached, at most %u may be", l->count,
                               LIMIT_ATTACHED);
    }
    if (conns.connections + 2 * l->count + 2 + others > l->config.descriptors) {
        return profd_error_set(e, PROFD_BUSY, "the daemon's %zu descriptors are in use: %zu processes are attached",
                               l->config.descriptors, l->count);
    }
    return PROFD_OK;
}

/* What processes hold is not there for connections. */
static void table_share(struct live *l)
{
    const size_t held =
        2 * l->count; /* more than the limit, if a service manager stored more than this daemon may open */

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
    u->next = l->users[uid % LIVE_BUCKETS];
    l->users[uid % LIVE_BUCKETS] = u;
    return u;
}

/* Forgets a user without processes of whom nothing is to be remembered. */
static void table_close_user(struct live *l, struct live_user *user)
{
    struct live_user **at = &l->users[user->uid % LIVE_BUCKETS];

    if (user->count || user->ready || user->sync_first || user->refused_count) {
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

bool table_insert(struct live *l, struct live_process *a)
{
    struct live_process **bucket = &l->buckets[table_bucket(a->instance)];

    a->user = table_open_user(l, a->uid);
    if (!a->user) {
        return false;
    }
    a->user->count++;
    l->count++;
    a->next = *bucket;
    *bucket = a;
    table_file(l, a);
    table_share(l);
    return true;
}

bool table_change_user(struct live *l, struct live_process *a, uint32_t uid)
{
    struct live_user *u = table_open_user(l, uid);

    if (!u) {
        return false;
    }
    a->user->count--;
    table_close_user(l, a->user);
    u->count++;
    a->user = u;
    a->uid = uid;
    return true;
}

static void table_unlink(struct live *l, struct live_process *a)
{
    struct live_process **at = &l->buckets[table_bucket(a->instance)];

    while (*at != a) {
        at = &(*at)->next;
    }
    *at = a->next;
    table_unfile(a);
}

void table_remove(struct live *l, struct live_process *a)
{
    table_unlink(l, a);
    l->count--;
    a->user->count--;
    table_close_user(l, a->user);
    table_share(l);
}

void table_each(struct live *l, void (*f)(struct live *l, struct live_process *a))
{
    struct live_process *a, *next;

    for (size_t i = 0; i < LIVE_BUCKETS; i++) {
        for (a = l->buckets[i]; a; a = next) {
            next = a->next;
            f(l, a);
        }
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
