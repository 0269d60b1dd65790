/* Frames and messages on the stream to profd. */
#ifndef PROFD_RELAY_TALK_H
#define PROFD_RELAY_TALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/message.h"
#include "proto/status.h"

/* The byte stream to profd. Calls block until their deadline. */

struct stream {
    int fd; /* non-blocking; −1: closed */
};

/* Milliseconds of CLOCK_MONOTONIC. */
int64_t stream_now(void);

/* Connects to a Unix socket of root, of the user profd or of the own user; UNTRUSTED otherwise, UNAVAILABLE if no
 * process listens. */
enum profd_status stream_open_unix(const char *path, struct stream *out, struct profd_error *e);

/* Accepts a closed stream. */
void stream_close(struct stream *s);

/* Sends HELLO, and expects WELCOME. */
enum profd_status talk_greet(struct stream *s, struct profd_error *e);

/* Sends a message. */
enum profd_status talk_send(struct stream *s, const struct message *m, uint32_t tag, struct profd_error *e);

/* Takes the next message, which message_done frees, and the flags of its frame. TIMEOUT if none has begun after
 * wait_ms. After any other error the caller must close the stream. */
enum profd_status talk_take(struct stream *s, int64_t wait_ms, struct message *m, uint16_t *flags,
                            struct profd_error *e);

/* Sends a request and takes its answer, of type expected. A NACK is returned as its status and sentence. */
enum profd_status talk_ask(struct stream *s, const struct message *request, unsigned expected, struct message *answer,
                           struct profd_error *e);

/* Asks a query, and takes its whole answer of at most `most` bytes, which the caller frees. http_status is that of the
 * answer. */
enum profd_status talk_query(struct stream *s, const char *target, size_t most, long *http_status, uint8_t **out,
                             size_t *size, struct profd_error *e);

/* Returns the status of a NACK, with its sentence. */
enum profd_status talk_explain_nack(const struct message *nack, struct profd_error *e);

#endif
