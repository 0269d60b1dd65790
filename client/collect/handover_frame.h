/* The few frames of profd-protocol(7) that the collector speaks, by hand: it links nothing. */
#ifndef PROFD_COLLECT_HANDOVER_FRAME_H
#define PROFD_COLLECT_HANDOVER_FRAME_H

#include <stdbool.h>

/* Sends HELLO, and ATTACH with memfd, without waiting for WELCOME. False: not all went out. */
bool handover_frame_greet(int socket, int memfd);

/* A new connection: nothing was received yet. */
void handover_frame_begin(void);

enum handover_frame_state { HANDOVER_OPEN, HANDOVER_OVER, HANDOVER_REFUSED };

/* ATTACH was acknowledged on this connection. */
bool handover_frame_is_taken(void);

/* Takes what has arrived, without waiting; answers WANT_OBJECT, maps the daemon's page. OVER: the daemon is gone, or
 * about to go; REFUSED: it does not want us. */
enum handover_frame_state handover_frame_listen(int socket);

#endif
