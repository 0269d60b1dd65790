/* Which host a certificate is of. */
#ifndef PROFD_TLS_IDENTITY_H
#define PROFD_TLS_IDENTITY_H

#include <openssl/x509.h>
#include <stdint.h>

#include "proto/status.h"

#define TLS_HOST_SIZE 16
#define TLS_NAME_SIZE 256
#define TLS_KEY_SIZE 32

struct tls_identity {
    uint8_t host[TLS_HOST_SIZE];
    char name[TLS_NAME_SIZE];   /* printable ASCII */
    char tenant[TLS_NAME_SIZE]; /* "": the certificate is not of profd's own CA */
    uint8_t key[TLS_KEY_SIZE];  /* SHA-256 of the DER form of the public key */
    int64_t not_after;          /* ns: end of the certificate */
};

/* name: the first DNS name of subjectAltName, or the common name, or the first 8 digits of the UUID;
 * at most 255 bytes. host: the UUID of the first URI
 * urn:uuid:… of subjectAltName, or the first 16 bytes of the SHA-256 of the name in lower case. UNTRUSTED if there is
 * neither a name nor a UUID, or if a name holds other characters. */
enum profd_status tls_identity_read(X509 *certificate, struct tls_identity *out, struct profd_error *e);

#endif
