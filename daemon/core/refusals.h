/* How often something was refused, by status. */
#ifndef PROFD_CORE_REFUSALS_H
#define PROFD_CORE_REFUSALS_H

#include <stdint.h>

#include "proto/status.h"

#define REFUSALS_STATUSES 64

struct refusals {
    uint64_t of[REFUSALS_STATUSES]; /* by enum profd_status; 0: one that is not known */
};

static inline void refusals_add(struct refusals *r, enum profd_status status)
{
    r->of[(unsigned)status < REFUSALS_STATUSES ? (unsigned)status : 0]++;
}

#endif
