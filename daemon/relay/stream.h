/* The byte stream to profd. Calls block until their deadline. */
#ifndef PROFD_RELAY_STREAM_H
#define PROFD_RELAY_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/status.h"

struct stream {
    int fd; /* non-blocking; −1: closed */
};

/* Milliseconds of CLOCK_MONOTONIC. */
int64_t stream_now(void);

/* Connects to a Unix socket of root, of the user profd or of the own user; UNTRUSTED otherwise, UNAVAILABLE if no
 * process listens. */
enum profd_status stream_open_unix(const char *path, struct stream *out, struct profd_error *e);

/* Write or read all n bytes before the deadline, a time of stream_now. UNAVAILABLE if the peer has closed, TIMEOUT, IO;
 * the caller must then close the stream. */
enum profd_status stream_write(struct stream *s, const void *data, size_t n, int64_t deadline, struct profd_error *e);
enum profd_status stream_read(struct stream *s, void *data, size_t n, int64_t deadline, struct profd_error *e);

/* Accepts a closed stream. */
void stream_close(struct stream *s);

#endif
