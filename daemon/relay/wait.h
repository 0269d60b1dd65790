/* When to connect next. Pure. */
#ifndef PROFD_RELAY_WAIT_H
#define PROFD_RELAY_WAIT_H

#include <stdint.h>

#include "proto/status.h"
#include "relay/round.h"

/* Milliseconds until the first round, so that hosts that start together do not connect together: uniformly below the
 * interval and 10 seconds. random is one of 2^32 equally likely numbers. */
uint64_t wait_first(int64_t interval_ns, uint32_t random);

/* Milliseconds until the next round: what the centre has said after one that succeeded, at least 100 and at most a day;
 * after failures, half to all of one second, doubled for each failure in a row before, at most 5 minutes; if the centre
 * or a proxy has said when to come again, that and up to a quarter more; if only an operator can help, 5 minutes. */
uint64_t wait_round(const struct round_pause *p, uint32_t random);

#endif
