/* Builds certificates. */
#ifndef PROFD_SIGNER_CERTIFICATE_H
#define PROFD_SIGNER_CERTIFICATE_H

#include <openssl/x509.h>
#include <stdbool.h>

#include "proto/status.h"

struct certificate_wish {
    const char *name;              /* CN, cut at 64 bytes */
    const char *const *extensions; /* pairs of name and value, as in openssl.cnf; NULL ends them */
    const char *const *names;      /* of subjectAltName: pairs "DNS", "IP" or "URI" and value; NULL ends them */
    int64_t from, until;           /* seconds since the epoch */
};

/* A certificate of version 3 for key with a random serial number, signed by issuer_key. issuer NULL: by itself.
 * CONFIG: a name or an extension is not valid; NO_MEMORY. */
enum profd_status certificate_make(const struct certificate_wish *wish, EVP_PKEY *key, X509 *issuer,
                                   EVP_PKEY *issuer_key, X509 **out, struct profd_error *e);

#endif
