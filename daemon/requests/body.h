/* The body of a request as a message. */
#ifndef PROFD_REQUESTS_BODY_H
#define PROFD_REQUESTS_BODY_H

#include "net/conn.h"
#include "proto/message.h"
#include "proto/status.h"

/* Inflates what was compressed, at most LIMIT_FRAME_SMALL bytes. On OK the message must be ended by message_done. */
enum profd_status body_decode(const struct conn_frame *f, struct message *m, struct profd_error *e);

#endif
