/* Descriptors of frames. recvmsg may return later descriptors together with earlier bytes, never the reverse: a FIFO
 * holds them until their frame is complete (DECISIONS 17). */
#include <string.h>
#include <sys/socket.h>

#include "net/closer.h"
#include "net/conn_internal.h"

#define CROWD_MS 10 /* between two looks whether descriptors were closed */

void conn_fds_close(const struct conn *c, int *fds, unsigned *count)
{
    for (unsigned i = 0; i < *count; i++) {
        if (fds[i] >= 0) {
            closer_close(c->group->config.closer, c->peer.uid, fds[i]);
        }
    }
    c->group->counts.descriptors -= *count;
    *count = 0;
}

void conn_fds_look_soon(struct conn_group *g)
{
    const struct timeval soon = {.tv_usec = CROWD_MS * 1000};

    evtimer_add(&g->crowd_event, &soon);
}

bool conn_fds_crowd(struct conn *c)
{
    struct conn_group *g = c->group;
    const bool crowded = !g->urgent && closer_count(g->config.closer, c->peer.uid) >= LIMIT_CLOSING_PER_UID;

    if (crowded && !c->crowded && g->crowded++ == 0) {
        conn_fds_look_soon(g);
    }
    if (!crowded && c->crowded) {
        g->crowded--;
    }
    c->crowded = crowded;
    return crowded;
}

/* Takes what fits; closes the rest. False if something did not fit. */
static bool conn_fds_append(struct conn *c, const struct cmsghdr *h)
{
    const size_t n = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    bool fits = true;

    for (size_t i = 0; i < n; i++) {
        int fd;

        memcpy(&fd, CMSG_DATA(h) + i * sizeof fd, sizeof fd);
        if (c->fd_count < CONN_FDS_MAX) {
            c->fds[c->fd_count++] = fd;
            c->group->counts.descriptors++;
        } else {
            closer_close(c->group->config.closer, c->peer.uid, fd);
            fits = false;
        }
    }
    return fits;
}

enum profd_status conn_fds_take(struct conn *c, struct msghdr *m, struct profd_error *e)
{
    bool fits = true;

    for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
        if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS && !conn_fds_append(c, h)) {
            fits = false;
        }
    }
    if (m->msg_flags & MSG_CTRUNC) {
        return profd_error_set(e, PROFD_BUSY, "the daemon has no free descriptors for those that were sent");
    }
    if (!fits) {
        return profd_error_set(e, PROFD_PROTOCOL, "more than %d descriptors wait for the frame they belong to",
                               CONN_FDS_MAX);
    }
    return PROFD_OK;
}

enum profd_status conn_fds_check(const struct conn *c, struct profd_error *e)
{
    unsigned allowed = 0;

    /* Descriptors that arrived belong to bytes that arrived: to the frame that has begun, if there is one. */
    if (c->header_got == FRAME_HEADER_SIZE) {
        allowed = frame_fds(&c->frame);
    } else if (c->header_got) {
        allowed = LIMIT_FRAME_FDS;
    }
    if (c->fd_count <= allowed) {
        return PROFD_OK;
    }
    return profd_error_set(e, PROFD_PROTOCOL, "%u descriptors were received that no frame announced",
                           c->fd_count - allowed);
}
