/* Asks profd-signer for certificates. */
#ifndef PROFD_REQUESTS_SIGNING_H
#define PROFD_REQUESTS_SIGNING_H

#include "proto/message.h"
#include "proto/status.h"

/* One question, on a connection of its own to the Unix socket at path; blocks for at most a few seconds. *answer is an
 * ISSUED, which message_done frees. UNAVAILABLE: the signer does not answer.
 * CONFIG: it refuses, and says why. */
enum profd_status signing_ask(const char *path, const struct message_sign *request, struct message *answer,
                              struct profd_error *e);

#endif
