/* The process that meets the network: connections of hosts on one side, the daemon on the other. */
#ifndef PROFD_GATE_GATE_H
#define PROFD_GATE_GATE_H

#include "config/config.h"
#include "gate/supply.h"
#include "proto/status.h"

/* Runs in the sandboxed child until supply ends; returns the exit status. Takes certificates from supply, now and
 * later. The listener is non-blocking. */
int gate_run(const struct config *c, int listener, int supply);

#endif
