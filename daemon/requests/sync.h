/* SYNC: acknowledged when every earlier request of its connection has been answered, and when everything that a live
 * process of its user, ended by now, had counted is durable. NACK: a client's complaint, for the log. */
#ifndef PROFD_REQUESTS_SYNC_H
#define PROFD_REQUESTS_SYNC_H

#include <stdint.h>

#include "net/conn.h"
#include "proto/status.h"

struct live;

/* What acknowledging a SYNC takes; all services share one, which outlives the connections. */
struct sync_config {
    struct conn_group *conns;
    struct live *live;
};

/* For conn_handler; the context is a struct sync_config. */
enum profd_status sync_receive(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e);
enum profd_status sync_receive_nack(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e);

/* Ends a job of the connection's session and acknowledges the SYNCs that waited for it. */
void sync_end_job(const struct sync_config *config, struct conn *c, uint64_t job);
/* Answers a job that the writer could not carry out by NACK; end it then. A damaged store becomes IO: what was sent is
 * not its cause, and the sender must keep it. retry_after_ms as in conn_nack. */
void sync_nack_job(struct conn *c, uint32_t tag, enum profd_status status, const char *sentence,
                   uint32_t retry_after_ms);
#endif
