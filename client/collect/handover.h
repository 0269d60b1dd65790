/* The connection to the daemon, polled from time to time. Raw, non-blocking system calls only. Before each use a
 * descriptor is checked against the (device, inode) that it had, because programs close and reuse numbers. */
#ifndef PROFD_COLLECT_HANDOVER_H
#define PROFD_COLLECT_HANDOVER_H

#include <stdbool.h>
#include <stdint.h>

/* Takes over the region's descriptor (−1: there is none) and sends it to the daemon, if there is one, with the
 * executables of all known modules, unless the process is a fork's child. */
void handover_begin(int memfd, bool child);

/* Writes down how much CPU time the process has used since handover_begin. */
void handover_note_cpu(void);

/* Milliseconds of a monotonic clock; coarse. */
uint64_t handover_now_ms(void);

/* Reads messages of the daemon, sends requested executables, attaches again if the connection was lost. Notes the CPU
 * time. Any thread, any handler; does nothing if another thread is doing it. True: an answer of the daemon is
 * outstanding, so call again soon. */
bool handover_look(void);

/* Called when the process is about to end. Does the same; if no daemon has the memory and none has refused it, looks
 * for a daemon once more, for at most LIMIT_EXIT_MS if it is busy. */
void handover_look_last(void);

/* In a fork's child: closes the parent's descriptors and ignores its page. */
void handover_forget(void);

#endif
