/* What stands in a queue of work. */
#ifndef PROFD_NET_WORK_ITEM_H
#define PROFD_NET_WORK_ITEM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/* Embedded in a job. */
struct work_item {
    STAILQ_ENTRY(work_item) next; /* of the queue that it is in */
    uint32_t uid;                 /* the user that is charged */
    size_t weight;                /* bytes: a batch holds at most batch_weight, or one item */
};

STAILQ_HEAD(work_list, work_item);

#endif
