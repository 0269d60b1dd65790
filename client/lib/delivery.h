/* Deliveries of programs that run for a long time. */
#ifndef PROFD_CLIENT_DELIVERY_H
#define PROFD_CLIENT_DELIVERY_H

#include "lib/conn.h"

/* Executables that the daemon requests come from this function. */
void delivery_set_supply(struct profd_delivery *d, conn_supply supply, void *context);
/* True if the daemon takes uploads for other users from this one, as it said at the latest connection; before the
 * first, if this user is root. */
bool delivery_may_claim(const struct profd_delivery *d);
/* Handles what the daemon has answered and requested, without waiting. Without a daemon, connects again, at most once
 * a second. */
void delivery_poll(struct profd_delivery *d);

#endif
