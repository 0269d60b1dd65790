/* Parsed objects on their way to the centre, after the segments of a connection. */
#ifndef PROFD_RELAY_SYMBOLS_H
#define PROFD_RELAY_SYMBOLS_H

#include "proto/status.h"
#include "relay/talk.h"

#define SYMBOLS_BUILDS 256u       /* attested on one connection, at most */
#define SYMBOLS_BYTES (32u << 20) /* sent on one connection; the object that exceeds it is the last */

/* Attests the builds that the centre asks for, and sends the objects that it wants. Returns the last refusal of the
 * centre or of profd; what follows it was still done, unless the connection has ended. */
enum profd_status symbols_send(struct talk *profd, struct talk *centre, struct profd_error *e);

#endif
