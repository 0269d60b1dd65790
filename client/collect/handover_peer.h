/* Connecting to a daemon that is to be believed. */
#ifndef PROFD_COLLECT_HANDOVER_PEER_H
#define PROFD_COLLECT_HANDOVER_PEER_H

/* A connected, non-blocking socket to the first daemon of the options that is there and runs as root, as the user profd, or as
 * ourselves; −1: none. */
int handover_peer_dial(void);

#endif
