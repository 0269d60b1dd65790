/* Credentials of the peer of a Unix socket, from the kernel and never from the client (reliability U7). */
#ifndef PROFD_NET_PEER_H
#define PROFD_NET_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/status.h"

struct peer {
    uint32_t uid, gid, pid;
    bool may_admin;    /* root, the daemon's own user, or a member of the admin group */
    bool may_relay;    /* root, the daemon's own user, or that of profd-relay */
    bool may_claim;    /* counts of other users: root, or the user profd-record */
    bool may_read_all; /* administrators and members of the read group: users who may make a backup may read everything
                        */
};

/* Resolved once at start, because a name service may block. */
struct peer_policy {
    uint32_t own_uid;
    bool has_read_group, has_admin_group;
    uint32_t read_group, admin_group;
    bool has_relay_user;
    uint32_t relay_user;
    bool has_record_user;
    uint32_t record_user;
    bool has_proxy_user; /* has no rights of its own to read what others have sent */
    uint32_t proxy_user;
};

/* Finds a group by name or number. NOT_FOUND names it. Uses the name service, so not on the loop. */
enum profd_status peer_find_group(const char *text, uint32_t *gid, struct profd_error *e);

/* SO_PEERCRED and SO_PEERGROUPS of a connected Unix socket. FORBIDDEN: the user has one of the numbers that belong to
 * tenants (LIMIT_UID_TENANTS); peer->uid is set. IO if the kernel reports an error. */
enum profd_status peer_read(int fd, const struct peer_policy *policy, struct peer *peer, struct profd_error *e);

/* A handle of the process that connected: *pidfd becomes readable when it has ended (the caller closes it). UNKNOWN:
 * there is no handle, for example because the process is in another PID namespace. DEAD: it has already ended. *pidfd
 * is −1 for both. Kernels before 6.5 find the process by its id, which may have been reused. pid: of struct peer. */
enum peer_process { PEER_UNKNOWN, PEER_LIVES, PEER_DEAD };
enum peer_process peer_open_process(int fd, uint32_t pid, int *pidfd);
/* The same by its number alone. */
enum peer_process peer_open_number(uint32_t pid, int *pidfd);

#endif
