/* Connects to a daemon that is accepted. */
#ifndef PROFD_COLLECT_HANDOVER_PEER_H
#define PROFD_COLLECT_HANDOVER_PEER_H

/* Returns a connected, nonblocking socket to the first daemon of the options that answers and runs as root, as the user
 * profd, or as the current user, with a uid that identifies this user (proto/uidmap.h). Negative, as −errno: there is
 * none; EAGAIN: its backlog is full. */
int handover_peer_dial(void);

#endif
