/* The CA of a fleet: its key signs certificates of hosts, and that of the gate. */
#ifndef PROFD_SIGNER_AUTHORITY_H
#define PROFD_SIGNER_AUTHORITY_H

#include <openssl/x509.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/enrolment.h"
#include "proto/message.h"
#include "proto/status.h"

#define AUTHORITY_HOST_SIZE 16

struct authority {
    EVP_PKEY *key;
    X509 *certificate; /* of key */
    char *bundle;      /* PEM: all certificates that hosts shall trust; NUL-terminated */
    size_t bundle_size;
    uint8_t pin[ENROLMENT_PIN_SIZE]; /* SHA-256 of the public key of the CA that issued the gate's certificate */
};

/* Reads ca.key (mode 0600), gate-ca.crt, which holds the certificate of that key, and gate.crt from a directory.
 * CONFIG says which file is wrong. */
enum profd_status authority_open(const char *directory, struct authority *out, struct profd_error *e);
/* Overwrites the key. Accepts a zeroed one. */
void authority_close(struct authority *a);

/* Issues the certificate of a host for the public key of a request, valid from an hour ago. *out is PEM, a block of
 * malloc of *size bytes. MALFORMED: the key cannot be read, identity or name are none. *not_after: ns. */
enum profd_status authority_sign(const struct authority *a, const struct message_sign *request, char **out,
                                 size_t *size, uint64_t *not_after, struct profd_error *e);

#endif
