/* Who is at the other end of a Unix socket: facts of the kernel, never of the client (reliability U7). */
#ifndef PROFD_NET_PEER_H
#define PROFD_NET_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/status.h"

struct peer {
    uint32_t uid, gid, pid;
    bool may_admin;    /* root, the daemon's own user, or a member of the admin group */
    bool may_read_all; /* those, or a member of the read group: who may make a backup sees everything */
};

/* Resolved once at start, because a name service may block. */
struct peer_policy {
    uint32_t own_uid;
    bool has_read_group, has_admin_group;
    uint32_t read_group, admin_group;
};

/* The group called so, or with that number. NOT_FOUND names it. Asks the name service: not for the loop. */
enum profd_status peer_find_group(const char *text, uint32_t *gid, struct profd_error *e);

/* SO_PEERCRED and SO_PEERGROUPS of a connected Unix socket. IO if the kernel does not tell. */
enum profd_status peer_read(int fd, const struct peer_policy *policy, struct peer *peer, struct profd_error *e);

/* The process that connected: *pidfd becomes readable when it has ended (the caller closes it). UNKNOWN: no handle can
 * be had, for example because it lives in a process namespace that is not ours. DEAD: it has ended already. *pidfd is
 * −1 for both. Kernels before 6.5 find it by its number, which may be another's by then. pid: of struct peer. */
enum peer_process { PEER_UNKNOWN, PEER_LIVES, PEER_DEAD };
enum peer_process peer_open_process(int fd, uint32_t pid, int *pidfd);
/* The same by its number alone. */
enum peer_process peer_open_number(uint32_t pid, int *pidfd);

#endif
