/* The message types that an open connection may send: one table, which the daemon and the tests of requests use. */
#ifndef PROFD_REQUESTS_HANDLERS_H
#define PROFD_REQUESTS_HANDLERS_H

#include "net/conn.h"

struct admin_service;
struct live;
struct object_service;
struct query_service;
struct relay_service;
struct sync_config;
struct upload_service;

#define HANDLERS_COUNT 12 /* rows; those that no type needs are zero, which is no type */

/* What answers the types; all outlive the connections. */
struct handlers_services {
    struct upload_service *uploads;
    struct object_service *objects;
    struct query_service *queries;
    struct sync_config *sync;
    struct admin_service *admin;
    struct live *live;
    struct relay_service *relay;
};

/* For conn_config. */
void handlers_fill(const struct handlers_services *s, struct conn_handler out[HANDLERS_COUNT]);

#endif
