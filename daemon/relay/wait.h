/* When to connect next. Pure. */
#ifndef PROFD_RELAY_WAIT_H
#define PROFD_RELAY_WAIT_H

#include <stdint.h>

#include "proto/status.h"
#include "relay/flush.h"

/* Milliseconds until the first flush, so that hosts that start together do not connect together: uniformly below the
 * interval and 10 seconds. random as below. */
uint64_t wait_first(int64_t interval_ns, uint32_t random);

/* Milliseconds until the next flush. The centre's slot if it gave one, at most a day; otherwise between a twentieth of
 * the interval and the interval, uniformly: random is one of 2^32 equally likely numbers. */
uint64_t wait_next(const struct flush *f, int64_t interval_ns, uint32_t random);

#endif
