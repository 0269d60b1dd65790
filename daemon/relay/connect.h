/* The connection to the centre. */
#ifndef PROFD_RELAY_CONNECT_H
#define PROFD_RELAY_CONNECT_H

#include "config/config.h"
#include "proto/status.h"
#include "relay/stream.h"
#include "tls/tls_context.h"

/* Judges a proxy's answer to CONNECT: the head of n bytes, which ends with an empty line. UNAVAILABLE with its status
 * line unless that is HTTP/1.x 2xx. */
enum profd_status connect_judge_proxy(const char *head, size_t n, struct profd_error *e);

/* The centre: resolves its name (or the proxy's) and tries every address, then makes the TLS connection with the files
 * as they are now; with pin, without a certificate of its own, to a centre of that CA. The sentence says what failed.
 */
enum profd_status connect_centre(const struct config *c, const struct tls_pin *pin, struct stream *out,
                                 struct profd_error *e);

#endif
