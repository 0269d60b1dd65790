#include "net/work_lanes.h"

void work_lanes_init(struct work_lanes *l)
{
    *l = (struct work_lanes){0};
    TAILQ_INIT(&l->ring);
    hashmap_init(&l->of_uid, 0);
}

void work_lanes_done(struct work_lanes *l)
{
    hashmap_clear(&l->of_uid);
}

void work_lanes_rotate(struct work_lanes *l)
{
    struct work_lane *lane = TAILQ_FIRST(&l->ring);

    TAILQ_REMOVE(&l->ring, lane, next);
    TAILQ_INSERT_TAIL(&l->ring, lane, next);
}

struct work_item *work_lanes_take(struct work_lanes *l)
{
    struct work_lane *lane = TAILQ_FIRST(&l->ring);
    struct work_item *item = STAILQ_FIRST(&lane->items);

    STAILQ_REMOVE_HEAD(&lane->items, next);
    lane->count--;
    l->waiting--;
    if (lane->count) {
        work_lanes_rotate(l);
    } else {
        TAILQ_REMOVE(&l->ring, lane, next);
        hashmap_remove(&l->of_uid, lane);
    }
    return item;
}

size_t work_lanes_take_batch(struct work_lanes *l, struct work_item **batch, size_t max, size_t weight, bool any)
{
    size_t n = 0, taken = 0;

    while (
        l->waiting && n < max &&
        ((any && !n) || (taken <= weight && STAILQ_FIRST(&TAILQ_FIRST(&l->ring)->items)->weight <= weight - taken))) {
        batch[n] = work_lanes_take(l);
        taken += batch[n]->weight;
        n++;
    }
    return n;
}

/* The user's lane, new if need be. NULL when full or out of memory. */
static struct work_lane *work_lanes_open(struct work_lanes *l, uint32_t uid, size_t max_uid)
{
    const struct work_lane empty = {.uid = uid};
    struct work_lane *lane = hashmap_find(&l->of_uid, &uid, sizeof uid);

    if (lane) {
        return lane->count < max_uid ? lane : NULL;
    }
    lane = hashmap_put(&l->of_uid, &uid, sizeof uid, &empty, sizeof empty);
    if (lane) {
        STAILQ_INIT(&lane->items);
        TAILQ_INSERT_TAIL(&l->ring, lane, next);
    }
    return lane;
}

bool work_lanes_put(struct work_lanes *l, struct work_item *item, size_t max_uid)
{
    struct work_lane *lane = work_lanes_open(l, item->uid, max_uid);

    if (!lane) {
        return false;
    }
    STAILQ_INSERT_TAIL(&lane->items, item, next);
    lane->count++;
    l->waiting++;
    return true;
}
