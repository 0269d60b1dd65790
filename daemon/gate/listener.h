/* The listening TCP socket of the gate. */
#ifndef PROFD_GATE_LISTENER_H
#define PROFD_GATE_LISTENER_H

#include "proto/status.h"

/* The one that the service manager passed in (LISTEN_PID, LISTEN_FDS), otherwise one at address, ADDR:PORT with
 * numbers, an IPv6 address in brackets; [::] is IPv4, too. Non-blocking. Logs the port if it was 0. CONFIG if address
 * is NULL or wrong, or another descriptor was passed; CANT_CREATE. */
enum profd_status listener_open(const char *address, int *fd, struct profd_error *e);

#endif
