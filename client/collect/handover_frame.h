/* The few frames of profd-protocol(7) that the collector speaks, by hand: it links nothing. */
#ifndef PROFD_COLLECT_HANDOVER_FRAME_H
#define PROFD_COLLECT_HANDOVER_FRAME_H

#include <stdbool.h>

/* Sends HELLO, and ATTACH with memfd, without waiting for WELCOME. False: not all went out. */
bool handover_frame_greet(int socket, int memfd);

/* A new connection: nothing was received yet. */
void handover_frame_begin(void);

enum handover_frame_state { HANDOVER_OPEN, HANDOVER_OVER, HANDOVER_REFUSED };

/* Takes what has arrived, without waiting; answers WANT_OBJECT. OVER: the daemon is gone; REFUSED: it does not want us. */
enum handover_frame_state handover_frame_listen(int socket);

#endif
