/* Creates all components, connects them, and runs the loop until the daemon is stopped. */
#ifndef PROFD_DAEMON_SERVER_H
#define PROFD_DAEMON_SERVER_H

#include "proto/status.h"

struct config;

/* Parses the options, starts, runs and stops the daemon. Returns the exit status of the process. */
int server_main(int argc, char *argv[]);

#endif
