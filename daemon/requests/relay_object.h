/* FETCH_OBJECT: profd-relay fetches the parsed object of a build that this host offers, in pieces. */
#ifndef PROFD_REQUESTS_RELAY_OBJECT_H
#define PROFD_REQUESTS_RELAY_OBJECT_H

#include "net/conn.h"
#include "proto/status.h"

/* For conn_handler; the context is a struct relay_service. */
enum profd_status relay_receive_fetch_object(void *context, struct conn *c, struct conn_frame *f,
                                             struct profd_error *e);

#endif
