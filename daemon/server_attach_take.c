/* ATTACH: a process hands over the memory that it counts in, for the first time or again. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "server_attach.h"

enum profd_status server_attach_new(struct server *s, uint32_t uid, const struct attach_origin *origin, int fd,
                                    struct server_attached **out, struct profd_error *e)
{
    struct server_attached *a = calloc(1, sizeof *a);
    enum profd_status status;
    struct stat st = {.st_dev = 0};

    if (!a)
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a live process");
    status = attach_open(fd, uid, origin, &a->process, e);
    if (status) {
        free(a);
        return status;
    }
    (void)fstat(fd, &st); /* now that it is known to be memory: it neither waits nor fails */
    a->server = s;
    a->uid = uid;
    a->origin = *origin;
    a->device = st.st_dev;
    a->inode = st.st_ino;
    a->memory = fd;
    a->pidfd = -1;
    a->began = loop_now();
    a->resume = true;
    memcpy(a->instance, attach_get_instance(a->process), sizeof a->instance);
    server_attach_hand(a);
    *out = a;
    return PROFD_OK;
}

static bool server_attach_has_ended(const struct server_attached *a)
{
    struct pollfd p = {.fd = a->pidfd, .events = POLLIN};

    return a->pidfd >= 0 && poll(&p, 1, 0) > 0;
}

static void server_attach_on_end(void *context)
{
    struct server_attached *a = context;

    server_attach_bury(a->server, a);
}

void server_attach_watch(struct server *s, struct server_attached *a, enum peer_process state, int pidfd)
{
    watch_free(a->watch);
    a->watch = NULL;
    if (a->pidfd >= 0)
        close(a->pidfd);
    a->pidfd = pidfd;
    a->dead = false;
    if (state == PEER_DEAD || server_attach_has_ended(a))
        server_attach_bury(s, a);
    else if (pidfd >= 0)
        a->watch = watch_new(s->loop, pidfd, server_attach_on_end, a);
}

/* exec keeps the number of a process and lets go of its memory: what an earlier program of this process counted into,
 * over a connection that has gone, will not grow any more. A number cannot have become another's while its process was
 * not seen to end. */
static void server_attach_bury_earlier(struct server *s, const struct server_attached *a)
{
    struct server_attached *other = s->attach->of_pid[a->origin.pid % SERVER_ATTACH_BUCKETS], *next;

    for (; other; other = next) {
        next = other->next_of_pid;
        if (other != a && other->origin.pid == a->origin.pid && other->uid == a->uid && !other->conn && a->origin.pid)
            server_attach_bury(s, other);
    }
}

/* Is there a later program of the same process? Then this one's connection was closed by exec. */
static bool server_attach_has_later(const struct server *s, const struct server_attached *a)
{
    const struct server_attached *other = s->attach->of_pid[a->origin.pid % SERVER_ATTACH_BUCKETS];

    if (!a->origin.pid)
        return false;
    while (other && (other == a || other->origin.pid != a->origin.pid || other->uid != a->uid || !other->conn))
        other = other->next_of_pid;
    return other;
}

void server_attach_hang_up(struct server *s, struct server_attached *a)
{
    a->conn = 0;
    /* When it is us who close, that says nothing about the process. */
    if (server_attach_has_ended(a) || (!s->stopping && (a->pidfd < 0 || server_attach_has_later(s, a)))) {
        server_attach_bury(s, a);
        return;
    }
    server_attach_make_due(s, a);
    server_attach_want(s, a, true);
}

/* The same memory over another connection: the process lost the earlier one, or we did. */
static enum profd_status server_attach_judge_again(const struct server_attached *old, const struct server_attached *a,
                                                   struct profd_error *e)
{
    if (old->device == a->device && old->inode == a->inode)
        return PROFD_OK;
    if (old->conn)
        return profd_error_set(
            e, PROFD_CONFLICT,
            "another memory of this instance is attached by process %u, over a connection that is open",
            old->origin.pid);
    if (old->stage != SERVER_ATTACHED_IDLE)
        return profd_error_set(e, PROFD_BUSY, "another memory of this instance is being read a last time");
    return PROFD_OK;
}

static void server_attach_discard(struct server_attached *a)
{
    attach_close(a->process);
    free(a);
}

/* The earlier connection to the same memory is given up; *a becomes the earlier entry. */
static void server_attach_replace(struct server *s, struct server_attached *old, struct server_attached **a)
{
    struct conn *c = old->conn ? conn_find(s->conns, old->conn) : NULL;

    if (c) {
        session_set_attached(conn_get_user(c), NULL);
        conn_fail(c, 0, PROFD_CONFLICT, "the process has attached over another connection");
    }
    old->conn = 0;
    server_attach_discard(*a);
    *a = old;
}

/* The table's entry for what came with the frame. */
static enum profd_status server_attach_enter(struct server *s, struct conn *c, struct conn_frame *f,
                                             struct server_attached **out, struct profd_error *e)
{
    const struct peer *peer = conn_get_peer(c);
    struct server_attached *a, *old;
    struct attach_origin origin;
    enum profd_status status;

    server_attach_origin(s->attach, peer->pid, &origin);
    status = server_attach_new(s, peer->uid, &origin, f->fds[0], &a, e);
    if (status)
        return status;
    conn_frame_take_fd(f, 0); /* attach_open has it */
    old = server_attach_find(s->attach, a->uid, a->instance);
    status = old ? server_attach_judge_again(old, a, e) : server_attach_judge_room(s, peer->uid, e);
    if (status) {
        server_attach_discard(a);
        return status;
    }
    *out = a;
    if (old && old->device == a->device && old->inode == a->inode) {
        server_attach_replace(s, old, out);
        return PROFD_OK;
    }
    if (old)
        server_attach_forget(s, old);
    if (server_attach_insert(s, a))
        return PROFD_OK;
    server_attach_discard(a);
    return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a live process");
}

/* Hands the page over with the ACK. */
static enum profd_status server_attach_greet(struct server_attached *a, struct conn *c, uint32_t tag,
                                             struct profd_error *e)
{
    const struct message ack = {.type = FRAME_ACK};
    struct attach_page *page;
    int fd;
    enum profd_status status = server_attach_page_new(&page, &fd, e);

    if (status)
        return status;
    if (a->page) /* what was said last holds */
        server_attach_page_write(page, a->page->paused, a->page->rate);
    server_attach_page_free(a->page);
    a->page = page;
    conn_answer_fd(c, &ack, 0, tag, fd);
    return PROFD_OK;
}

static enum profd_status server_attach_take(struct server *s, struct conn *c, struct conn_frame *f,
                                            struct profd_error *e)
{
    struct session *session = conn_get_user(c);
    struct server_attached *a;
    enum profd_status status;
    enum peer_process state;
    int pidfd;

    if (f->body.size)
        return profd_error_set(e, PROFD_MALFORMED, "an ATTACH has no body, this one has %zu bytes", f->body.size);
    if (session_get_attached(session))
        return profd_error_set(e, PROFD_PROTOCOL, "a second ATTACH on one connection");
    if (s->stopping)
        return profd_error_set(e, PROFD_STOPPING, "the daemon is stopping");
    if (s->write_failed) {
        *e = s->write_error;
        return PROFD_IO;
    }
    status = server_attach_enter(s, c, f, &a, e);
    if (status)
        return status;
    status = server_attach_greet(a, c, f->header.tag, e);
    if (status) { /* without a word from us it is attached all the same, if it was */
        if (!a->facts && a->stage == SERVER_ATTACHED_IDLE)
            server_attach_forget(s, a);
        return status;
    }
    a->conn = conn_get_id(c);
    session_set_attached(session, a);
    state = conn_open_process(c, &pidfd);
    server_attach_watch(s, a, state, pidfd);
    server_attach_bury_earlier(s, a);
    server_attach_keep(s, a);
    server_attach_want(s, a, false);
    s->metrics.attached++;
    return PROFD_OK;
}

enum profd_status server_take_attach(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e)
{
    struct server *s = context;
    enum profd_status status = server_attach_take(s, c, f, e);

    if (status) {
        s->metrics.attach_refused[status < METRICS_STATUSES ? status : 0]++;
        log_write(LOG_LEVEL_INFO, "attach refused", "a process of user %u was not attached: %s", conn_get_peer(c)->uid,
                  e->sentence);
    }
    return status;
}
