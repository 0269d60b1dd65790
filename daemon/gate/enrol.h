/* ENROLL and RENEW: what a host sends, and what the daemon gets instead. */
#ifndef PROFD_GATE_ENROL_H
#define PROFD_GATE_ENROL_H

#include <openssl/x509.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/frame.h"
#include "proto/status.h"

/* Makes the frame for the daemon. ENROLL: the PKCS#10 request is verified, and its public key stands in its place.
 * RENEW: the key is that of the certificate. *out is a block of malloc of *size bytes, header included. MALFORMED,
 * FORBIDDEN (the host states the key), REFUSED (the request is not signed by its key, or the key is too weak: P-256,
 * P-384, Ed25519, and RSA of 2048 to 8192 bits with an exponent of at most 32 are accepted). O(size). */
enum profd_status enrol_rewrite(const struct frame *f, const uint8_t *payload, const X509 *certificate, uint8_t **out,
                                size_t *size, struct profd_error *e);

#endif
