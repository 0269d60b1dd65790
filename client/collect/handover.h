/* The daemon as the collector sees it: a socket that is looked at now and then. Raw, non-blocking system calls only;
 * every descriptor is compared with the (device, inode) it had before it is used, because programs close and reuse
 * numbers. */
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

/* The process is about to end: the same, and where no daemon has the memory, nor refused it, one is looked for once
 * more, for at most LIMIT_EXIT_MS if it is busy. */
void handover_look_last(void);

/* In a fork's child: closes the parent's descriptors and ignores its page. */
void handover_reset(void);

#endif
