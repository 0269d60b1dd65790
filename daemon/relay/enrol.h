/* How a host gets its certificate, and the next one. */
#ifndef PROFD_RELAY_ENROL_H
#define PROFD_RELAY_ENROL_H

#include "config/config.h"
#include "proto/status.h"

/* profd-relay --enroll URL [--dir DIR] [--name NAME], with the token as the first line of standard input. Makes
 * relay.key there, if it does not exist, asks the gate for a certificate, and writes relay.crt and relay-ca.crt. The
 * CA is the one that the token names by its key. Returns the exit status; what happened is on standard output or error.
 */
int enrol_main(int argc, char *const argv[]);

/* Asks the centre for the next certificate of the key in the configuration, on a connection of its own, and replaces
 * the files. */
enum profd_status enrol_renew(const struct config *c, struct profd_error *e);

#endif
