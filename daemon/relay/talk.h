/* Frames and messages on the stream to profd. */
#ifndef PROFD_RELAY_TALK_H
#define PROFD_RELAY_TALK_H

#include "proto/message.h"
#include "proto/status.h"
#include "relay/stream.h"

/* Sends HELLO, and expects WELCOME. */
enum profd_status talk_greet(struct stream *s, struct profd_error *e);

/* Sends a message. */
enum profd_status talk_send(struct stream *s, const struct message *m, uint32_t tag, struct profd_error *e);

/* Takes the next message, which message_done frees. TIMEOUT if none has begun after wait_ms. After any
 * other error the caller must close the stream. */
enum profd_status talk_take(struct stream *s, int64_t wait_ms, struct message *m, uint32_t *tag, struct profd_error *e);

/* Sends a request and takes its answer, of type expected. A NACK is returned as its status and sentence. */
enum profd_status talk_ask(struct stream *s, const struct message *request, unsigned expected, struct message *answer,
                           struct profd_error *e);

/* Returns the status of a NACK, with its sentence. */
enum profd_status talk_explain_nack(const struct message *nack, struct profd_error *e);

#endif
