/* Closes descriptors that strangers handed in. A file system may live in a process of its sender's (FUSE), and then
 * close() waits for that process for ever, whatever signal comes: so it is done in threads that nobody waits for. */
#ifndef PROFD_NET_CLOSER_H
#define PROFD_NET_CLOSER_H

#include <stddef.h>
#include <stdint.h>

#include "proto/status.h"

struct closer;

/* Threads are made when they are needed, at most so many. */
enum profd_status closer_new(unsigned threads_max, struct closer **out, struct profd_error *e);
/* Takes over the descriptor of this sender. Never blocks. closer NULL: closes at once. Any thread. */
void closer_close(struct closer *closer, uint32_t uid, int fd);
/* How many descriptors of this sender are not closed yet. Any thread. */
size_t closer_count(struct closer *closer, uint32_t uid);
/* Ends the threads; one that hangs is left behind, with its memory. Accepts NULL. */
void closer_free(struct closer *closer);

#endif
