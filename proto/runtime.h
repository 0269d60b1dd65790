/* Where the socket of a user's own daemon is: the daemon, its clients and the collector agree on it. The daemon takes
 * the first of these directories that is there and belongs to its user, and makes the last one; clients take the first
 * in which the socket is, after the system's socket:
 *
 *     $XDG_RUNTIME_DIR/profd
 *     /run/user/UID/profd
 *     /tmp/profd-UID
 *
 * Anybody may create the last one, as a symbolic link to another service's directory, too. Hence it is used only if it
 * is a directory, belongs to the user, and is closed to all others. */
#ifndef PROFD_PROTO_RUNTIME_H
#define PROFD_PROTO_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>

#define RUNTIME_SYSTEM_SOCKET "/run/profd/profd.sock"
#define RUNTIME_SOCKET "/profd/profd.sock" /* in XDG_RUNTIME_DIR and below RUNTIME_USER */
#define RUNTIME_USER "/run/user/"          /* and the uid */
#define RUNTIME_SHARED "/tmp/profd-"       /* and the uid */
#define RUNTIME_SHARED_SOCKET "/profd.sock"
#define RUNTIME_SIZE 32 /* of either directory's path */

/* mode and owner: as lstat(), which follows no link, reports them of RUNTIME_SHARED. */
static inline bool runtime_is_private(uint32_t mode, uint32_t owner, uint32_t uid)
{
    return (mode & 0170077) == 0040000 && owner == uid;
}

/* Writes prefix and uid. Calls no function: the collector runs inside any program. */
static inline void runtime_directory(const char *prefix, uint32_t uid, char out[RUNTIME_SIZE])
{
    unsigned digits = 1, n = 0;

    for (uint32_t rest = uid; rest >= 10; rest /= 10) {
        digits++;
    }
    for (; prefix[n]; n++) {
        out[n] = prefix[n];
    }
    out[n + digits] = '\0';
    do {
        out[n + --digits] = (char)('0' + uid % 10);
        uid /= 10;
    } while (digits > 0);
}

#endif
