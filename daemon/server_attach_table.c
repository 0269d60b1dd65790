/* Who is attached: by user and instance, by process number, by user. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server_attach.h"

#define OTHERS 256u /* descriptors that are left to those who only ask or upload */

/* Instances are random; who makes his own collide finds only himself slow. */
static uint32_t server_attach_bucket(uint32_t uid, const uint8_t instance[ATTACH_INSTANCE_SIZE])
{
    uint64_t a, b;

    memcpy(&a, instance, sizeof a);
    memcpy(&b, instance + sizeof a, sizeof b);
    a = (a ^ b ^ uid) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(a >> 40) % SERVER_ATTACH_BUCKETS;
}

struct server_attached *server_attach_find(const struct server_attach *t, uint32_t uid,
                                           const uint8_t instance[ATTACH_INSTANCE_SIZE])
{
    struct server_attached *a = t->buckets[server_attach_bucket(uid, instance)];

    while (a && (a->uid != uid || memcmp(a->instance, instance, sizeof a->instance) != 0))
        a = a->next;
    return a;
}

struct server_attached_user *server_attach_find_user(const struct server_attach *t, uint32_t uid)
{
    struct server_attached_user *u = t->users[uid % SERVER_ATTACH_BUCKETS];

    while (u && u->uid != uid)
        u = u->next;
    return u;
}

static size_t server_attach_others(const struct server_attach *t)
{
    return t->descriptors / 8 < OTHERS ? t->descriptors / 8 : OTHERS;
}

enum profd_status server_attach_judge_room(const struct server *s, uint32_t uid, struct profd_error *e)
{
    const struct server_attach *t = s->attach;
    const struct server_attached_user *u = server_attach_find_user(t, uid);
    const size_t others = server_attach_others(t);
    struct conn_counts conns;

    conn_group_get_counts(s->conns, &conns);
    if (u && u->count >= LIMIT_ATTACHED_PER_UID)
        return profd_error_set(e, PROFD_BUSY, "user %u has %zu processes attached, at most %u may be", uid, u->count,
                               LIMIT_ATTACHED_PER_UID);
    if (t->count >= LIMIT_ATTACHED)
        return profd_error_set(e, PROFD_BUSY, "%zu processes are attached, at most %u may be", t->count,
                               LIMIT_ATTACHED);
    if (conns.connections + 2 * t->count + 2 + others > t->descriptors)
        return profd_error_set(e, PROFD_BUSY, "the daemon's %zu descriptors are in use: %zu processes are attached",
                               t->descriptors, t->count);
    return PROFD_OK;
}

/* What processes hold is not there for connections. */
static void server_attach_share(struct server *s)
{
    const struct server_attach *t = s->attach;
    const size_t held = 2 * t->count; /* more than there are, where a manager kept more than this daemon may open */

    if (s->conns)
        conn_group_limit(s->conns, held + server_attach_others(t) < t->descriptors ? t->descriptors - held
                                                                                   : server_attach_others(t));
}

static struct server_attached_user *server_attach_open_user(struct server_attach *t, uint32_t uid)
{
    struct server_attached_user *u = server_attach_find_user(t, uid);

    if (u)
        return u;
    u = calloc(1, sizeof *u);
    if (!u)
        return NULL;
    u->uid = uid;
    u->next = t->users[uid % SERVER_ATTACH_BUCKETS];
    t->users[uid % SERVER_ATTACH_BUCKETS] = u;
    return u;
}

/* Forgets a user without processes. */
static void server_attach_close_user(struct server_attach *t, struct server_attached_user *user)
{
    struct server_attached_user **at = &t->users[user->uid % SERVER_ATTACH_BUCKETS];

    if (user->count || user->ready || user->sync_first)
        return;
    while (*at != user)
        at = &(*at)->next;
    *at = user->next;
    free(user);
}

bool server_attach_insert(struct server *s, struct server_attached *a)
{
    struct server_attach *t = s->attach;
    struct server_attached **bucket = &t->buckets[server_attach_bucket(a->uid, a->instance)];
    struct server_attached **of_pid = &t->of_pid[a->origin.pid % SERVER_ATTACH_BUCKETS];

    a->user = server_attach_open_user(t, a->uid);
    if (!a->user)
        return false;
    a->user->count++;
    t->count++;
    a->next = *bucket;
    *bucket = a;
    a->next_of_pid = *of_pid;
    *of_pid = a;
    server_attach_share(s);
    return true;
}

static void server_attach_unlink(struct server_attach *t, struct server_attached *a)
{
    struct server_attached **at = &t->buckets[server_attach_bucket(a->uid, a->instance)];

    while (*at != a)
        at = &(*at)->next;
    *at = a->next;
    at = &t->of_pid[a->origin.pid % SERVER_ATTACH_BUCKETS];
    while (*at != a)
        at = &(*at)->next_of_pid;
    *at = a->next_of_pid;
}

void server_attach_forget(struct server *s, struct server_attached *a)
{
    struct server_attach *t = s->attach;
    struct conn *c = a->conn ? conn_find(s->conns, a->conn) : NULL;

    server_attach_clear_due(s, a);
    server_attach_unlink(t, a);
    if (c)
        session_set_attached(conn_get_user(c), NULL);
    server_attach_drop_kept(s, a);
    watch_free(a->watch);
    if (a->pidfd >= 0)
        close(a->pidfd);
    server_attach_page_free(a->page);
    attach_harvest_done(&a->harvest.harvest);
    attach_close(a->process);
    t->count--;
    t->kept_bytes -= a->kept_bytes;
    a->user->count--;
    server_attach_close_user(t, a->user);
    free(a->facts);
    free(a);
    server_attach_share(s);
}

void server_attach_each(struct server *s, void (*f)(struct server *s, struct server_attached *a))
{
    struct server_attached *a, *next;

    for (size_t i = 0; i < SERVER_ATTACH_BUCKETS; i++)
        for (a = s->attach->buckets[i]; a; a = next) {
            next = a->next;
            f(s, a);
        }
}
