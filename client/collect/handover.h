/* The connection to the daemon: a socket that the collector checks periodically. Raw, nonblocking system calls only.
 * The (device, inode) of a descriptor is checked before each use, because programs close and reuse descriptors. */
#ifndef PROFD_COLLECT_HANDOVER_H
#define PROFD_COLLECT_HANDOVER_H

#include <stdbool.h>
#include <stdint.h>

/* Takes over the region's descriptor (−1: none) and sends it to the daemon, if there is one. Also sends the executables
 * of all known modules, unless the process is a child of fork. */
void handover_begin(int memfd, bool child);

/* Reads messages of the daemon, sends requested executables, and attaches again if the connection was lost. Records the
 * CPU time. Any thread, any handler; does nothing if another thread is doing it. True: an answer of the daemon is
 * outstanding, so call again soon. The functions of this header do nothing if raw_denied. */
bool handover_look(void);

/* Before the process ends: likewise. If no daemon has the memory or has refused it, tries to connect once more, also if
 * the daemon was stopping; if the daemon is busy, for at most LIMIT_EXIT_MS. */
void handover_look_last(void);

/* In a child of fork: closes the parent's descriptors and ignores its page. */
void handover_reset(void);

#endif
