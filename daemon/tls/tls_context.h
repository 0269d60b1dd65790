/* The TLS of profd: version 1.3, certificates on both sides, over a descriptor (OpenSSL). */
#ifndef PROFD_TLS_CONTEXT_H
#define PROFD_TLS_CONTEXT_H

#include <openssl/ssl.h>

#include "proto/enrolment.h"
#include "proto/status.h"
#include "tls/tls_file.h"

#define TLS_ISSUERS_BETWEEN                                                                                            \
    8 /* certificates between that of a side and one that is trusted; a longer chain is refused */

enum tls_side { TLS_CLIENT, TLS_SERVER };

/* What a side needs: its own certificate with those that issued it, the key of the first of them, and the certificates
 * that issue those of the other side. PEM. */
struct tls_material {
    struct tls_text certificate, key, ca;
};

/* Loads no configuration file of OpenSSL, and draws the first random numbers, so that a sandbox may follow. Ignores
 * SIGPIPE for the process: OpenSSL writes to descriptors as if they were files. */
void tls_init(void);

/* A context for TLS 1.3 in which the certificate of the other side is required and verified. No session is resumed.
 * Buffers are released while they are empty. CONFIG says which text is wrong, and how. */
enum profd_status tls_context_new(enum tls_side side, const struct tls_material *m, SSL_CTX **out,
                                  struct profd_error *e);

/* A server's handshakes also succeed without a certificate of the client, or with one that has expired: the caller
 * judges them. */
void tls_context_allow_enrolment(SSL_CTX *c);

/* The CA of a server, before its certificate is known. */
struct tls_pin {
    unsigned char key[ENROLMENT_PIN_SIZE]; /* SHA-256 of its public key, DER */
    const char *name;                      /* of the server: a name or address */
};

/* A context for a client without a certificate. The chain of the server must hold a certificate with the pinned key,
 * which must have issued the server's, whatever the clock says, for its name. The pin is borrowed for the life of the
 * context. NO_MEMORY. */
enum profd_status tls_context_pin(const struct tls_pin *pin, SSL_CTX **out, struct profd_error *e);

/* Requires that the certificate of the server is for this host, a name or an address. NO_MEMORY. */
enum profd_status tls_require_name(SSL *ssl, const char *host, struct profd_error *e);

/* Why a call of OpenSSL on this connection failed: sets the sentence and returns UNTRUSTED (a certificate was not
 * accepted, by this side or by the other), PROTOCOL, or UNAVAILABLE (the connection ended). result: of the call. Clears
 * OpenSSL's errors. errno is that of the call. */
enum profd_status tls_explain(const SSL *ssl, int result, struct profd_error *e);

#endif
