/* The service manager keeps the memories of live processes (sd_notify(3), FDSTORE), so that those that end while the
 * daemon is being restarted are read all the same. A memory's name says whose it is, because nothing else may be
 * durable yet. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "notify.h"
#include "server_attach.h"

/* A name that the manager did not take the word about yet. */
struct server_attach_dropped {
    struct server_attach_dropped *next;
    char name[SERVER_ATTACH_NAME];
};

/* profd-INSTANCE-UID-PID-STARTED. All names together are one environment variable of at most 128 KiB. */
static void server_attach_name(const struct server_attached *a, char out[SERVER_ATTACH_NAME])
{
    size_t n = (size_t)snprintf(out, SERVER_ATTACH_NAME, "%s", LISTEN_KEPT);

    for (size_t i = 0; i < sizeof a->instance; i++)
        n += (size_t)snprintf(out + n, SERVER_ATTACH_NAME - n, "%02x", a->instance[i]);
    snprintf(out + n, SERVER_ATTACH_NAME - n, "-%" PRIu32 "-%" PRIu32 "-%" PRIu64, a->uid, a->origin.pid,
             a->origin.started);
}

static unsigned server_attach_digit(char c)
{
    return c >= '0' && c <= '9' ? (unsigned)(c - '0') : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : 16;
}

/* "-" and a number of at most max. */
static bool server_attach_parse_part(const char **at, uint64_t max, uint64_t *out)
{
    const char *digits = *at + 1;
    const size_t n = **at == '-' ? strspn(digits, "0123456789") : 0;
    uint64_t value = n && n <= 19 ? strtoull(digits, NULL, 10) : UINT64_MAX;

    if (value > max)
        return false;
    *at = digits + n;
    *out = value;
    return true;
}

static bool server_attach_parse_name(const char *name, uint8_t instance[ATTACH_INSTANCE_SIZE], uint32_t *uid,
                                     uint32_t *pid, uint64_t *started)
{
    const char *at = name + strlen(LISTEN_KEPT);
    uint64_t user, number;

    if (strlen(at) < 2 * ATTACH_INSTANCE_SIZE)
        return false;
    for (size_t i = 0; i < ATTACH_INSTANCE_SIZE; i++, at += 2) {
        if (server_attach_digit(at[0]) > 15 || server_attach_digit(at[1]) > 15)
            return false;
        instance[i] = (uint8_t)(server_attach_digit(at[0]) << 4 | server_attach_digit(at[1]));
    }
    if (!server_attach_parse_part(&at, UINT32_MAX, &user) || !server_attach_parse_part(&at, UINT32_MAX, &number) ||
        !server_attach_parse_part(&at, INT64_MAX, started) || *at)
        return false;
    *uid = (uint32_t)user;
    *pid = (uint32_t)number;
    return true;
}

void server_attach_keep(struct server *s, struct server_attached *a)
{
    char name[SERVER_ATTACH_NAME], text[SERVER_ATTACH_NAME + 64];

    if (!s->managed || a->kept || a->dead || s->attach->kept >= LIMIT_ATTACHED_KEPT)
        return;
    server_attach_name(a, name);
    snprintf(text, sizeof text, "FDSTORE=1\nFDNAME=%s\nFDPOLL=0", name);
    a->kept = notify_send_fd(text, a->memory);
    s->attach->kept += a->kept;
}

static bool server_attach_say_drop(const char *name)
{
    char text[SERVER_ATTACH_NAME + 32];

    snprintf(text, sizeof text, "FDSTOREREMOVE=1\nFDNAME=%s", name);
    return notify_send_fd(text, -1);
}

static void server_attach_drop_name(struct server *s, const char *name)
{
    struct server_attach_dropped *d;

    if (server_attach_say_drop(name)) {
        s->attach->kept--;
        return;
    }
    d = malloc(sizeof *d); /* without memory it stays there: the next daemon drops it */
    if (!d)
        return;
    memcpy(d->name, name, sizeof d->name);
    d->next = s->attach->dropped;
    s->attach->dropped = d;
}

void server_attach_drop_kept(struct server *s, struct server_attached *a)
{
    char name[SERVER_ATTACH_NAME] = "";

    if (!a->kept)
        return;
    a->kept = false;
    server_attach_name(a, name);
    server_attach_drop_name(s, name);
}

void server_attach_keep_again(struct server *s)
{
    struct server_attach *t = s->attach;

    while (t->dropped && server_attach_say_drop(t->dropped->name)) {
        struct server_attach_dropped *d = t->dropped;

        t->dropped = d->next;
        t->kept--;
        free(d);
    }
    if (s->managed && !t->dropped && t->kept < t->count)
        server_attach_each(s, server_attach_keep);
}

/* Is the process that had this number when its memory was kept still there? */
static enum peer_process server_attach_look(const struct attach_origin *origin, uint64_t started, int *pidfd)
{
    enum peer_process state = peer_open_number(origin->pid, pidfd);

    /* The number was read behind the handle: if it is the right process now, the handle is its. */
    if (state == PEER_LIVES && server_attach_started(origin->pid) != started) {
        close(*pidfd);
        *pidfd = -1;
        state = PEER_DEAD;
    }
    return state;
}

static enum profd_status server_attach_take_one(struct server *s, const struct listen_kept *kept, struct profd_error *e)
{
    uint8_t instance[ATTACH_INSTANCE_SIZE];
    struct attach_origin origin;
    struct server_attached *a;
    enum peer_process state;
    uint64_t started;
    uint32_t uid, pid;
    int pidfd;
    enum profd_status status;

    if (!server_attach_parse_name(kept->name, instance, &uid, &pid, &started))
        return profd_error_set(e, PROFD_REFUSED, "a memory was kept under the name \"%s\", which is none of ours",
                               kept->name);
    server_attach_origin(s->attach, pid, &origin);
    origin.started = started;
    status = server_attach_new(s, uid, &origin, kept->fd, &a, e);
    if (status)
        return status;
    if (memcmp(instance, a->instance, sizeof instance) != 0 || server_attach_find(s->attach, uid, instance) ||
        !server_attach_insert(s, a)) {
        attach_close(a->process); /* closes the descriptor */
        free(a);
        server_attach_say_drop(kept->name);
        return PROFD_OK;
    }
    a->kept = true;
    s->attach->kept++;
    state = server_attach_look(&origin, started, &pidfd);
    server_attach_watch(s, a, state, pidfd);
    server_attach_want(s, a, false);
    return PROFD_OK;
}

void server_attach_take_kept(struct server *s, struct listen_kept *kept, size_t n)
{
    struct profd_error e;

    for (size_t i = 0; i < n; i++) {
        if (server_attach_take_one(s, &kept[i], &e)) {
            log_write(LOG_LEVEL_WARNING, "live process", "%s", e.sentence);
            close(kept[i].fd);
            server_attach_say_drop(kept[i].name);
        }
    }
    if (s->attach->count)
        log_write(LOG_LEVEL_NOTICE, NULL, "%zu live processes taken back", s->attach->count);
    free(kept);
}

void server_attach_keep_end(struct server *s)
{
    struct server_attach_dropped *d, *next;

    for (d = s->attach->dropped; d; d = next) {
        next = d->next;
        free(d);
    }
    s->attach->dropped = NULL;
}
