/* The daemon as the collector sees it: a socket that is looked at now and then. Raw, non-blocking system calls only; every
 * descriptor is compared with the (device, inode) it had before it is used, because programs close and reuse numbers. */
#ifndef PROFD_COLLECT_HANDOVER_H
#define PROFD_COLLECT_HANDOVER_H

/* Takes the region's descriptor (−1: there is none) and hands it to the daemon, if there is one. */
void handover_begin(int memfd);

/* Reads what the daemon said, sends executables it asked for, attaches again if it had gone. Notes the CPU time. Any thread, any
 * handler; whoever comes while another looks does nothing. */
void handover_look(void);

/* In a fork's child: the parent's descriptors are closed. */
void handover_forget(void);

#endif
