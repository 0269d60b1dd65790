/* What the process that meets the network may still do. */
#ifndef PROFD_GATE_CAGE_H
#define PROFD_GATE_CAGE_H

#include "proto/status.h"

/* Gives up the rights of root: becomes the user profd-gate if root runs the program and the user exists, and drops all
 * capabilities. Uses the name service, so before cage_enter. */
enum profd_status cage_drop_privileges(struct profd_error *e);

/* No new privileges, no files (Landlock), and of system calls only those that connections need: new sockets are Unix
 * sockets, no memory becomes executable, no process is started. Another call fails with EPERM. Does nothing in builds
 * with a sanitizer. */
enum profd_status cage_enter(struct profd_error *e);

#endif
