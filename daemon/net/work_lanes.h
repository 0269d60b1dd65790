/* Waiting items, in one lane for each user; the lanes are served round robin, an item at a time (DECISIONS 33). The
 * caller holds the lock. */
#ifndef PROFD_NET_WORK_LANES_H
#define PROFD_NET_WORK_LANES_H

#include <stdbool.h>

#include "core/hashmap.h"
#include "net/work_item.h"

struct work_lane {
    TAILQ_ENTRY(work_lane) next;
    uint32_t uid;
    size_t count;
    struct work_list items; /* at least one */
};

struct work_lanes {
    TAILQ_HEAD(work_lane_ring, work_lane) ring;
    struct hashmap of_uid; /* uid → struct work_lane */
    size_t waiting;
};

void work_lanes_init(struct work_lanes *l);
/* Frees the lanes; items that still wait stay the caller's. */
void work_lanes_done(struct work_lanes *l);

/* False if out of memory, or this user has max_uid items waiting. */
bool work_lanes_put(struct work_lanes *l, struct work_item *item, size_t max_uid);
/* Takes the next item, round robin by user; an empty lane is removed. There must be an item. */
struct work_item *work_lanes_take(struct work_lanes *l);
/* Takes up to max items of at most this weight together; the first may weigh anything if `any`. Returns how many. */
size_t work_lanes_take_batch(struct work_lanes *l, struct work_item **batch, size_t max, size_t weight, bool any);
/* The ring's first lane becomes its last. */
void work_lanes_rotate(struct work_lanes *l);

#endif
