/* Answers SIGN on a Unix socket. */
#ifndef PROFD_SIGNER_SERVE_H
#define PROFD_SIGNER_SERVE_H

#include "proto/status.h"

/* The socket that the service manager passed in (LISTEN_PID, LISTEN_FDS), otherwise a new one at path, mode 0600, in
 * place of one that is left over. CONFIG: path is NULL, or what was passed in is no Unix socket. CANT_CREATE. */
enum profd_status serve_listen(const char *path, int *fd, struct profd_error *e);

/* Answers connections, one at a time, each with one SIGN, of root, the own user and the user profd. The files of the
 * directory are read for each connection, so that they can be replaced. Returns only if accept fails: IO. */
enum profd_status serve_run(int listener, const char *directory, struct profd_error *e);

#endif
