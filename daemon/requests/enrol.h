/* ENROLL and RENEW, which profd-gate passes on, and LIST_REVOKED, which it asks itself; tokens and revocation, for
 * administrators. Only the gate, root and the daemon's user may send the former. */
#ifndef PROFD_REQUESTS_ENROL_H
#define PROFD_REQUESTS_ENROL_H

#include <stdbool.h>
#include <stdint.h>

#include "net/conn.h"
#include "pages/numbers.h"
#include "proto/status.h"

struct enrol_service;
struct revocations;
struct sync_config;
struct writer;

/* All parts outlive the service. */
struct enrol_config {
    bool active;        /* the daemon is a centre */
    const char *signer; /* socket of profd-signer; NULL: no host can be enrolled */
    const char *state_dir;
    struct conn_group *conns;
    const struct sync_config *sync;
    struct writer *writer;
};

/* A centre opens the file of revocations: CANT_CREATE, IO, DAMAGED. */
enum profd_status enrol_service_new(const struct enrol_config *config, struct enrol_service **out,
                                    struct profd_error *e);
/* After the writer's thread and the connections. Accepts NULL. */
void enrol_service_free(struct enrol_service *s);
/* NULL: the daemon is no centre. */
struct revocations *enrol_service_get_revocations(const struct enrol_service *s);
/* What the gate said last. */
struct gate_counts enrol_service_get_gate(const struct enrol_service *s);

/* For conn_handler; the context is the service. */
enum profd_status enrol_receive_enroll(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e);
enum profd_status enrol_receive_renew(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e);
enum profd_status enrol_receive_list(void *context, struct conn *c, struct conn_frame *f, struct profd_error *e);

#endif
