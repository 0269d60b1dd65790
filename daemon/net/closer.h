/* Closes descriptors that clients have sent. A file system may be implemented by a process of the sender (FUSE), which
 * can block close() indefinitely, regardless of signals. Therefore threads that no other thread waits for do it. */
#ifndef PROFD_NET_CLOSER_H
#define PROFD_NET_CLOSER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/status.h"

#define CLOSER_FDS_MAX 253 /* SCM_MAX_FD: with space for all, a crafted message cannot cause truncation */

struct closer;

#define CLOSER_RUNNING_PER_UID 16u

/* Threads are created on demand, at most threads_max. At most CLOSER_RUNNING_PER_UID of them close descriptors of one
 * sender. NO_MEMORY. */
enum profd_status closer_new(unsigned threads_max, struct closer **out, struct profd_error *e);
/* Closes the descriptor of this sender. Never blocks, unless closer is NULL: then it closes at once. Any thread. */
void closer_close(struct closer *closer, uint32_t uid, int fd);
/* Receives at most n bytes without waiting, and returns as recvmsg() does. Descriptors that come with them are passed
 * to the closer; the kernel would close them in the calling thread. */
ssize_t closer_receive(struct closer *closer, uint32_t uid, int fd, void *into, size_t n);
/* Closes a connection. Unread bytes of a Unix socket may hold descriptors, which close() would close: then a thread
 * does it. */
void closer_close_connection(struct closer *closer, uint32_t uid, int fd);
/* Returns the number of descriptors of this sender that are not closed yet. Any thread. */
size_t closer_count(struct closer *closer, uint32_t uid);
/* Ends the threads. A blocked thread is abandoned with its memory. Accepts NULL. */
void closer_free(struct closer *closer);

#endif
