/* Waiting items, in lanes of users that stand in a ring: each gives one item in turn (DECISIONS 33). Private to work*.
 * The caller holds the lock. */
#ifndef PROFD_NET_WORK_LANES_H
#define PROFD_NET_WORK_LANES_H

#include "net/work.h"

#define LANE_BUCKETS 256

struct work_lane {
    struct work_lane *ring_next;
    struct work_lane *bucket_next;
    uint32_t uid;
    size_t count;
    struct work_item *first, *last;
};

struct work_lanes {
    struct work_lane *ring_first, *ring_last;
    struct work_lane *buckets[LANE_BUCKETS];
    size_t waiting;
};

/* False if out of memory, or this user has max_uid items waiting. */
bool work_lanes_put(struct work_lanes *l, struct work_item *item, size_t max_uid);
/* Takes the next item in turn; an empty lane goes away. There must be one. */
struct work_item *work_lanes_take(struct work_lanes *l);
/* Takes up to max items of at most this weight together; the first may weigh anything if `any`. Returns how many. */
size_t work_lanes_take_batch(struct work_lanes *l, struct work_item **batch, size_t max, size_t weight, bool any);
/* The ring's first lane becomes its last. */
void work_lanes_turn(struct work_lanes *l);

#endif
