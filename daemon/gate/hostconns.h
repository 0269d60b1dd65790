/* The TLS connections of hosts: accept, handshake, frames in, answers out. */
#ifndef PROFD_GATE_HOSTCONNS_H
#define PROFD_GATE_HOSTCONNS_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/revoked.h"
#include "proto/frame.h"
#include "proto/status.h"

struct event_base;
struct hostconns;

enum hostconns_result {
    HOSTCONNS_TAKEN, /* the block was taken over */
    HOSTCONNS_WAIT,  /* try again in hostconns_wake */
    HOSTCONNS_REFUSED
};

struct hostconns_config {
    struct event_base *base;
    int listener;  /* non-blocking */
    unsigned most; /* connections; more wait in the backlog */
    /* A whole request with what the gate adds, from connection conn: bytes is a block of malloc. On REFUSED *e is the
     * answer, BUSY or UNAVAILABLE. */
    enum hostconns_result (*request)(void *context, uint64_t conn, uint32_t tag, uint8_t *bytes, size_t n,
                                     struct profd_error *e);
    void *context;
};

/* Since the start; connections: now. */
struct hostconns_counts {
    uint64_t connections;
    uint64_t handshakes, failed; /* succeeded; ended with an error of TLS */
    uint64_t untrusted, revoked; /* the certificate was not accepted; it or its key is revoked */
    uint64_t late, crowded;      /* took too long; were not begun, too many of one address were in progress */
};

/* Accepts from the first hostconns_use on. */
enum profd_status hostconns_new(const struct hostconns_config *config, struct hostconns **out, struct profd_error *e);

/* From now on, handshakes use this context, and hosts of the list are refused; their connections are closed. Takes over
 * both; revoked may be NULL. */
void hostconns_use(struct hostconns *h, SSL_CTX *context, struct revoked *revoked);

/* Sends an answer to a connection; ignored if that has ended. */
void hostconns_answer(struct hostconns *h, uint64_t conn, const struct frame *f, const uint8_t *payload);
/* Sends NACK as the answer. */
void hostconns_nack(struct hostconns *h, uint64_t conn, uint32_t tag, enum profd_status status, const char *sentence);

/* Refuses keys (n SHA-256 of public keys) from now on, whatever the certificates say, and closes their connections.
 * False when out of memory. */
bool hostconns_revoke(struct hostconns *h, const uint8_t *keys, size_t n);

struct hostconns_counts hostconns_get_counts(const struct hostconns *h);

/* The memory of a request that is not of a host. */
void hostconns_take(struct hostconns *h, size_t bytes);
/* The memory of a request is free again. */
void hostconns_give_back(struct hostconns *h, size_t bytes);
/* Goes on with connections that wait for memory, or for request to take what they have. */
void hostconns_wake(struct hostconns *h);

#endif
