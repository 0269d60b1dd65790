/* The listening TCP socket of the gate. */
#ifndef PROFD_GATE_LISTENER_H
#define PROFD_GATE_LISTENER_H

#include "config/config.h"
#include "proto/status.h"

/* The one that the service manager passed in (LISTEN_PID, LISTEN_FDS), otherwise one at gate-listen, where
 * [::] is IPv4, too. Non-blocking. Logs the port that it opens. CONFIG if gate-listen is missing or no number, or
 * another descriptor was passed; CANT_CREATE. */
enum profd_status listener_open(const struct config *c, int *fd, struct profd_error *e);

#endif
