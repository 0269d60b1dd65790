/* ATTEST and OBJECT_BYTES: hosts offer the parsed objects that name their functions, and send those that the centre
 * lacks. A content travels once, from one host at a time, in pieces that wait in memory until the last one has come. */
#ifndef PROFD_REQUESTS_CENTRE_OBJECT_H
#define PROFD_REQUESTS_CENTRE_OBJECT_H

#include "net/conn.h"
#include "proto/status.h"

/* For conn_handler; the context is a struct centre_service. */
enum profd_status centre_receive_attest(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e);
enum profd_status centre_receive_object_bytes(void *context, struct conn *c, struct conn_frame *f,
                                              struct profd_error *e);

#endif
