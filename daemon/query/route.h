/* Which handler answers a path, and with which parameters: a table. */
#ifndef PROFD_QUERY_ROUTE_H
#define PROFD_QUERY_ROUTE_H

#include <stdbool.h>

#include "proto/status.h"
#include "query/job.h"
#include "query/params.h"

struct route {
    const char *pattern; /* "{}" stands for one segment */
    job_handler handler;
    const char *const *allowed; /* parameters, ended by NULL */
    bool report;                /* made from uploads: may be kept by the asker and revalidated */
};

/* NOT_FOUND, naming the path, if no route has it. */
enum profd_status route_find(const struct params *p, const struct route **out, struct profd_error *e);

#endif
