/* Parsed objects that a centre waits for. */
#ifndef PROFD_REQUESTS_CENTRE_AWAIT_H
#define PROFD_REQUESTS_CENTRE_AWAIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "proto/message.h"
#include "store/store.h"

struct centre_object {
    TAILQ_ENTRY(centre_object) next;
    struct store_offer offer; /* of the host that sends it; build_id is that below */
    struct buildid id;
    uint64_t got;
    uint8_t *bytes;          /* of offer.size, from the first piece on */
    uint64_t began, touched; /* ms of loop_now: when it was announced, and when a piece came last */
};

struct centre_objects {
    TAILQ_HEAD(centre_object_list, centre_object) list;
    uint64_t bytes; /* of their sizes */
};

void centre_objects_init(struct centre_objects *all);
void centre_objects_clear(struct centre_objects *all);

/* Shall the host send the object that it offers? Not while another host does, or too many bytes are awaited; of these,
 * what comes slowly is forgotten first. Forgets what was awaited too long. now: ms. */
bool centre_await(struct centre_objects *all, const struct store_offer *a, uint64_t now);

/* Adds a piece. *whole: the object, when its last piece has come; it belongs to the caller. REFUSED: it is not awaited
 * from this host. MALFORMED: the piece does not follow. */
enum profd_status centre_add_piece(struct centre_objects *all, const struct message_object_bytes *m, uint64_t now,
                                   struct centre_object **whole, struct profd_error *e);
void centre_object_free(struct centre_object *o);

#endif
