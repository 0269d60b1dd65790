/* The list of hosts that are refused although their certificates are valid. */
#ifndef PROFD_GATE_REVOKED_H
#define PROFD_GATE_REVOKED_H

#include <openssl/x509.h>
#include <stdbool.h>
#include <stddef.h>

#include "proto/status.h"

struct revoked;

/* Lines "key SHA256" (64 hexadecimal digits: of the DER form of the public key) and "serial NUMBER" (hexadecimal, at
 * most 40 digits). Blank lines and those that begin with # are ignored. name is used in sentences. CONFIG says which
 * line is wrong; NO_MEMORY. O(n log n). */
enum profd_status revoked_parse(const char *name, const char *text, size_t n, struct revoked **out,
                                struct profd_error *e);
/* Accepts NULL. */
void revoked_free(struct revoked *r);

/* True if key or serial number of the certificate are in the list; also if they cannot be determined. r may be NULL: an
 * empty list. O(log n). */
bool revoked_has(const struct revoked *r, X509 *certificate);

#endif
