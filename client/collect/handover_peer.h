/* Connecting to a daemon that is to be trusted. */
#ifndef PROFD_COLLECT_HANDOVER_PEER_H
#define PROFD_COLLECT_HANDOVER_PEER_H

/* A connected, nonblocking socket to the first daemon of the options that answers and runs as root, as the user profd,
 * or as the current user, by a uid that identifies this user (proto/uidmap.h). Below 0, as −errno: there is none;
 * EAGAIN: its backlog is full. */
int handover_peer_dial(void);

#endif
