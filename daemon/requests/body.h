/* The body of a request as a message. */
#ifndef PROFD_REQUESTS_BODY_H
#define PROFD_REQUESTS_BODY_H

#include <stddef.h>

#include "net/conn.h"
#include "proto/message.h"
#include "proto/status.h"

/* Inflates what was compressed, at most LIMIT_FRAME_SMALL bytes. On OK the message must be ended by message_done. */
enum profd_status body_decode(const struct conn_frame *f, struct message *m, struct profd_error *e);

/* A text of printable ASCII without spaces, shorter than most; it may be empty. MALFORMED names it. */
enum profd_status body_check_text(const char *what, const char *text, size_t most, struct profd_error *e);

#endif
