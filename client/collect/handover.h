/* The daemon as the collector sees it: a socket that is looked at now and then. Raw, non-blocking system calls only;
 * every descriptor is compared with the (device, inode) it had before it is used, because programs close and reuse
 * numbers. */
#ifndef PROFD_COLLECT_HANDOVER_H
#define PROFD_COLLECT_HANDOVER_H

#include <stdbool.h>

/* Takes the region's descriptor (−1: there is none) and hands it to the daemon, if there is one. */
void handover_begin(int memfd);

/* Writes down how much CPU time the process has used since handover_begin. */
void handover_note_cpu(void);

/* Reads what the daemon said, sends executables it asked for, attaches again if it had gone. Notes the CPU time.
 * Any thread, any handler; whoever comes while another looks does nothing. True: the daemon has yet to answer, so look
 * again soon. */
bool handover_look(void);

/* The process is about to end: the same, and where no daemon has the memory, nor refused it, one is looked for once
 * more, for at most LIMIT_EXIT_MS if it is busy. */
void handover_look_last(void);

/* In a fork's child: the parent's descriptors are closed, its page is not ours. */
void handover_forget(void);

#endif
