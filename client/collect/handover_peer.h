/* Connecting to a daemon that is to be believed. */
#ifndef PROFD_COLLECT_HANDOVER_PEER_H
#define PROFD_COLLECT_HANDOVER_PEER_H

/* A connected, non-blocking socket to the first daemon of the options that is there and runs as root, as the user
 * profd, or as ourselves. Below 0, as −errno: there is none; EAGAIN: one is there and has no room just now. */
int handover_peer_dial(void);

#endif
