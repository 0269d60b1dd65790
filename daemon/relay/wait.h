/* Computes the time until the next connection. Pure. */
#ifndef PROFD_RELAY_WAIT_H
#define PROFD_RELAY_WAIT_H

#include <stdint.h>

#include "proto/status.h"
#include "relay/round.h"

/* Returns the milliseconds until the first round: uniformly distributed below the interval and below 10 seconds, so
 * that hosts that start together do not connect together. random is one of 2^32 equally likely numbers. */
uint64_t wait_first(int64_t interval_ns, uint32_t random);

/* Returns the milliseconds until the next round.
 * ROUND_DONE: said_ms, at least 100 and at most a day.
 * ROUND_FAILED: half a second to a second, doubled for each earlier failure in a row, at most 5 minutes.
 * ROUND_SAID: said_ms and up to a quarter more.
 * ROUND_LONG: 2.5 to 5 minutes, because only an operator can help. */
uint64_t wait_round(const struct round_pause *p, uint32_t random);

#endif
