/* Creates all components, connects them, and runs the loop until the daemon is stopped. */
#ifndef PROFD_DAEMON_SERVER_H
#define PROFD_DAEMON_SERVER_H

#include "proto/status.h"

struct config;

/* Parses the options, starts, runs and stops the daemon. Returns the exit status of the process. */
int server_main(int argc, char *argv[]);

/* Starts with a checked configuration, runs the loop until SIGTERM or SIGINT, stops. The sentence says why a start
 * failed. *exit_status is that of a run that was started. */
enum profd_status server_run(const struct config *config, int *exit_status, struct profd_error *e);

#endif
