/* Private to requests/centre*. */
#ifndef PROFD_REQUESTS_CENTRE_INTERNAL_H
#define PROFD_REQUESTS_CENTRE_INTERNAL_H

#include <sys/queue.h>

#include "core/hashmap.h"
#include "requests/centre.h"
#include "requests/centre_await.h"
#include "requests/centre_flush.h"
#include "writer/writer.h"

#define CENTRE_NUMBER_MOST (UINT64_C(1) << 62) /* of a host's database */

struct centre_service {
    struct centre_config config;
    struct centre_counts counts;
    struct loop_timer *timer;
    struct centre_item *items; /* that wait for it */
    size_t item_count, item_capacity;
    uint64_t began, latest;           /* ms of loop_now: when the first and the last of them came */
    struct hashmap known;             /* identity of a host → struct host_counts */
    struct hashmap conflicts;         /* identity of a host → epoch of its last conflict; forgotten by a restart */
    struct hashmap hosts;             /* identities of the hosts that sent them */
    size_t waiting_bytes, held_bytes; /* of these; of all that are not answered */
    size_t pending;                   /* that are not answered */
    struct hashmap shares;            /* identity of a host, or tenant → size_t: its part of held_bytes, if not 0 */
    struct centre_objects objects;    /* that hosts are sending */
};

/* May this peer send what a gate sends, and can it be stored? */
enum profd_status centre_check(const struct centre_service *s, const struct conn *c, struct profd_error *e);
/* The counts of a host; NULL without memory for them. */
struct host_counts *centre_count_host(struct centre_service *s, const uint8_t host[STORE_HOST_SIZE]);
/* Copies an identity, epoch and so on, which must have this size. */
enum profd_status centre_copy(const struct message_bytes *from, const char *what, uint8_t *to, size_t size,
                              struct profd_error *e);
/* Passes the segments that wait to the writer. If its queue is full, they wait on. */
void centre_flush_waiting(struct centre_service *s);
/* The timer: segments are stored if they have waited long enough. The context is the service. */
void centre_on_timer(void *context);

#endif
