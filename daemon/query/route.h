/* The table of paths: what answers each, and with which parameters. */
#ifndef PROFD_QUERY_ROUTE_H
#define PROFD_QUERY_ROUTE_H

#include <stdbool.h>

#include "proto/status.h"
#include "query/job.h"
#include "query/params.h"
#include "query/query.h"

struct route {
    const char *pattern; /* "{}" matches one segment */
    enum query_source source;
    enum query_kind kind;
    job_handler handler;        /* NULL: the daemon answers, not a query */
    const char *const *allowed; /* parameters, ended by NULL */
    bool report;                /* made from uploads: may be kept by the asker and revalidated */
};

/* NOT_FOUND, naming the path, if no route has it. */
enum profd_status route_find(const char *target, const struct route **out, struct profd_error *e);

#endif
