/* A byte stream to one peer, with or without TLS. Calls block until their deadline. */
#ifndef PROFD_RELAY_STREAM_H
#define PROFD_RELAY_STREAM_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/status.h"

struct stream {
    int fd;   /* non-blocking; −1: closed */
    SSL *ssl; /* NULL: no TLS */
};

/* Milliseconds of CLOCK_MONOTONIC. */
int64_t stream_now(void);

/* Waits for the descriptor until the deadline, of stream_now. TIMEOUT. */
enum profd_status stream_wait(int fd, short events, int64_t deadline, struct profd_error *e);

/* Connects to a Unix socket of root, of the user profd or of the own user; UNTRUSTED otherwise, UNAVAILABLE if no
 * process listens. */
enum profd_status stream_open_unix(const char *path, struct stream *out, struct profd_error *e);

/* Performs the TLS handshake of a client on a connected stream. Takes over ssl. UNTRUSTED, PROTOCOL, UNAVAILABLE or
 * TIMEOUT: the stream is to be closed. */
enum profd_status stream_secure(struct stream *s, SSL *ssl, int64_t deadline, struct profd_error *e);

/* All n bytes. UNAVAILABLE if the peer has closed, else as above. */
enum profd_status stream_write(struct stream *s, const void *data, size_t n, int64_t deadline, struct profd_error *e);
enum profd_status stream_read(struct stream *s, void *data, size_t n, int64_t deadline, struct profd_error *e);

/* True if stream_read has a byte without waiting. */
bool stream_is_readable(struct stream *s);

/* Tells the peer and closes. Accepts a closed stream. */
void stream_close(struct stream *s);

#endif
