#include "net/work_lanes.h"

#include <stdlib.h>

static struct work_lane **work_lanes_find(struct work_lanes *l, uint32_t uid)
{
    struct work_lane **at = &l->buckets[(uid * 2654435761u) >> 24];

    while (*at && (*at)->uid != uid)
        at = &(*at)->bucket_next;
    return at;
}

static void work_lanes_append(struct work_lanes *l, struct work_lane *lane)
{
    lane->ring_next = NULL;
    if (l->ring_last)
        l->ring_last->ring_next = lane;
    else
        l->ring_first = lane;
    l->ring_last = lane;
}

/* Takes the first lane out of the ring. */
static struct work_lane *work_lanes_shift(struct work_lanes *l)
{
    struct work_lane *lane = l->ring_first;

    l->ring_first = lane->ring_next;
    if (!l->ring_first)
        l->ring_last = NULL;
    return lane;
}

void work_lanes_turn(struct work_lanes *l)
{
    work_lanes_append(l, work_lanes_shift(l));
}

struct work_item *work_lanes_take(struct work_lanes *l)
{
    struct work_lane *lane = work_lanes_shift(l);
    struct work_item *item = lane->first;

    lane->first = item->next;
    lane->count--;
    l->waiting--;
    if (lane->first) {
        work_lanes_append(l, lane);
    } else {
        *work_lanes_find(l, lane->uid) = lane->bucket_next;
        free(lane);
    }
    return item;
}

size_t work_lanes_take_batch(struct work_lanes *l, struct work_item **batch, size_t max, size_t weight, bool any)
{
    size_t n = 0, taken = 0;

    while (l->waiting && n < max &&
           ((any && !n) || (taken <= weight && l->ring_first->first->weight <= weight - taken))) {
        batch[n] = work_lanes_take(l);
        taken += batch[n]->weight;
        n++;
    }
    return n;
}

/* The user's lane, new if need be. NULL when full or out of memory. */
static struct work_lane *work_lanes_open(struct work_lanes *l, uint32_t uid, size_t max_uid)
{
    struct work_lane **at = work_lanes_find(l, uid), *lane = *at;

    if (lane)
        return lane->count < max_uid ? lane : NULL;
    lane = calloc(1, sizeof *lane);
    if (!lane)
        return NULL;
    lane->uid = uid;
    *at = lane;
    work_lanes_append(l, lane);
    return lane;
}

bool work_lanes_put(struct work_lanes *l, struct work_item *item, size_t max_uid)
{
    struct work_lane *lane = work_lanes_open(l, item->uid, max_uid);

    if (!lane)
        return false;
    item->next = NULL;
    if (lane->first)
        lane->last->next = item;
    else
        lane->first = item;
    lane->last = item;
    lane->count++;
    l->waiting++;
    return true;
}
