#include "net/peer.h"

#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "proto/limits.h"

#define GROUPS_FIRST 64
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

enum profd_status peer_find_group(const char *text, uint32_t *gid, struct profd_error *e)
{
    struct group entry, *found = NULL;
    char space[16384], *end;
    unsigned long long number;

    errno = 0;
    number = strtoull(text, &end, 10);
    if (text[0] >= '0' && text[0] <= '9' && !*end) {
        FAIL_IF(errno || number >= UINT32_MAX, e, PROFD_NOT_FOUND, "group number %s is not below 4294967295", text);
        *gid = (uint32_t)number;
        return PROFD_OK;
    }
    FAIL_IF(!*text || getgrnam_r(text, &entry, space, sizeof space, &found) || !found, e, PROFD_NOT_FOUND,
            "there is no group \"%s\"", text);
    *gid = found->gr_gid;
    return PROFD_OK;
}

static bool peer_groups_hold(const gid_t *groups, socklen_t bytes, uint32_t gid)
{
    for (size_t i = 0; i < bytes / sizeof *groups; i++) {
        if (groups[i] == gid) {
            return true;
        }
    }
    return false;
}

/* The supplementary groups at the time of connect. If the groups of a peer cannot be read, it is in none. */
static bool peer_in_group(int fd, uint32_t gid)
{
    gid_t few[GROUPS_FIRST], *many;
    socklen_t bytes = sizeof few;
    bool found = false;

    if (!getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, few, &bytes)) {
        return peer_groups_hold(few, bytes, gid);
    }
    if (errno != ERANGE) {
        return false;
    }
    many = malloc(bytes);
    if (many && !getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, many, &bytes)) {
        found = peer_groups_hold(many, bytes, gid);
    }
    free(many);
    return found;
}

enum profd_status peer_read(int fd, const struct peer_policy *policy, struct peer *peer, struct profd_error *e)
{
    struct ucred cred;
    socklen_t size = sizeof cred;

    FAIL_IF(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size), e, PROFD_IO,
            "cannot determine the user of the peer: %s", strerror(errno));
    peer->uid = cred.uid;
    FAIL_IF(cred.uid >= LIMIT_UID_TENANTS, e, PROFD_FORBIDDEN,
            "user %u may not use profd: numbers of users from %u on belong to the tenants of a centre", cred.uid,
            LIMIT_UID_TENANTS);
    peer->gid = cred.gid;
    peer->pid = (uint32_t)cred.pid;
    peer->may_admin =
        cred.uid == 0 || cred.uid == policy->own_uid ||
        (policy->has_admin_group && (cred.gid == policy->admin_group || peer_in_group(fd, policy->admin_group)));
    peer->may_relay =
        cred.uid == 0 || cred.uid == policy->own_uid || (policy->has_relay_user && cred.uid == policy->relay_user);
    peer->may_claim = cred.uid == 0 || (policy->has_record_user && cred.uid == policy->record_user);
    const bool proxy = policy->has_proxy_user && cred.uid == policy->proxy_user;
    peer->may_read_all = peer->may_admin || (!proxy && policy->has_read_group &&
                                             (cred.gid == policy->read_group || peer_in_group(fd, policy->read_group)));
    return PROFD_OK;
}

enum peer_process peer_open_number(uint32_t pid, int *pidfd)
{
    const long got = pid && pid <= INT32_MAX ? syscall(SYS_pidfd_open, (pid_t)pid, 0u) : -1;

    *pidfd = (int)got;
    if (got >= 0) {
        return PEER_LIVES; /* or is a zombie: then it is readable at once */
    }
    return pid && errno == ESRCH ? PEER_DEAD : PEER_UNKNOWN;
}

enum peer_process peer_open_process(int fd, uint32_t pid, int *pidfd)
{
    socklen_t size = sizeof *pidfd;

    *pidfd = -1;
    if (!getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, pidfd, &size) && *pidfd >= 0) {
        return PEER_LIVES;
    }
    *pidfd = -1;
    if (errno == ESRCH) {
        return PEER_DEAD;
    }
    return peer_open_number(pid, pidfd);
}
