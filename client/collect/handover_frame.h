/* Reads and writes the frames of profd-protocol(7) that the collector needs, without any library. */
#ifndef PROFD_COLLECT_HANDOVER_FRAME_H
#define PROFD_COLLECT_HANDOVER_FRAME_H

#include <stdbool.h>

/* Sends HELLO, and ATTACH with memfd, without waiting for WELCOME. False: not everything was sent. */
bool handover_frame_greet(int socket, int memfd);

/* Sends the executables of the program and of the objects loaded so far, as long as the socket accepts them, so that a
 * process that is idle afterwards has function names. */
void handover_frame_offer(int socket);

/* Resets the state for a new connection. */
void handover_frame_begin(void);

enum handover_frame_state { HANDOVER_OPEN, HANDOVER_OVER, HANDOVER_REFUSED };

/* True if ATTACH was acknowledged on this connection. */
bool handover_frame_is_taken(void);

/* Handles received messages without waiting: answers WANT_OBJECT, maps the daemon's page. OVER: the connection is
 * closed or closing. REFUSED: the daemon refuses the process. */
enum handover_frame_state handover_frame_listen(int socket);

#endif
