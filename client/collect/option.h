/* Options from the environment. Read once, from environ, without libc.
 *
 *   - PROFD_SOCKET: the daemon's socket, a path or unix:/path
 *   - PROFD_DAEMON_UID: a user whose daemon is accepted, too
 *   - PROFD_RATE: ticks per second, 0 for none; default 99
 *   - PROFD_CLOCK: cpu (default), wall, or off. off: there is no timer, so messages of the daemon are read only at the
 *     beginning and the end
 *   - PROFD_COLLECT_MEMORY: MiB of the region, a power of two from 1 to 1024; default 64
 *   - PROFD_REWRITE: 1: call sites are rewritten at the start; 0 (default)
 *   - PROFD_LEAVE_OUT: a file of functions that are not to be counted (leave_out.h); implies PROFD_REWRITE=1
 *   - PROFD_RUN: the socket of profctl run (proto/uncounted.h)
 *   - PROFD_LABEL_name: a label */
#ifndef PROFD_COLLECT_OPTION_H
#define PROFD_COLLECT_OPTION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

#define OPTION_SOCKETS 4
#define OPTION_SOCKET_SHARED 3 /* the one in RUNTIME_SHARED (proto/runtime.h) */

struct option_values {
    struct sockaddr_un sockets[OPTION_SOCKETS]; /* to try in this order; family 0: none */
    uint32_t rate, mode;
    uint32_t daemon_uid; /* UINT32_MAX: none */
    bool timers;         /* threads get timers, were it only to look at the daemon */
    bool rewrite;
    const char *leave_out;  /* NULL: none */
    uint64_t memory;        /* bytes */
    struct sockaddr_un run; /* for programs that are not counted (proto/uncounted.h); family 0: none */
    uint64_t root_device, root_inode;
};
extern struct option_values option;

void option_read(void);

/* The labels as "name=value" with their NULs, at most size bytes of whole labels; how many bytes. The label host is the
 * name of the machine, unless it is given or there is no capacity for it. to may be NULL to
 * measure. Labels that break the rule of proto/label.h, are given twice, or are more than an upload may have are left
 * out and counted. O(variables + labels²). */
uint32_t option_labels(char *to, uint32_t size, uint32_t *left_out);

#endif
