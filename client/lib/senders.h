/* Ids of the uploads that one program sends for several users: the daemon keeps the ids of each user apart, and expects
 * the sequences of a sender without gaps. */
#ifndef PROFD_CLIENT_SENDERS_H
#define PROFD_CLIENT_SENDERS_H

#include "profd.h"

struct senders {
    struct sender *list;
    size_t count;
};

/* The id of the latest upload for that user; a new one with sequence 0 at the first call. It lives until the next call.
 */
enum profd_status senders_take(struct senders *s, uint32_t uid, struct profd_id **out, struct profd_error *e);
void senders_done(struct senders *s);

#endif
