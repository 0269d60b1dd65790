#include "writer/health.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/log.h"
#include "net/loop.h"

struct health {
    const char *state_dir;
    struct lock *lock;             /* of the next line */
    struct store_health published; /* by the writer's thread */
    atomic_uint_fast64_t changes;  /* of published */

    /* the loop's */
    uint64_t noted; /* changes that were taken over */
    bool failed, full;
    struct profd_error failure, full_error;
};

enum profd_status health_new(const char *state_dir, struct health **out, struct profd_error *e)
{
    struct health *h = calloc(1, sizeof *h);

    if (h) {
        h->state_dir = state_dir;
        h->lock = lock_new();
    }
    if (!h || !h->lock) {
        free(h);
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the writer");
    }
    *out = h;
    return PROFD_OK;
}

void health_free(struct health *h)
{
    if (h) {
        lock_free(h->lock);
    }
    free(h);
}

void health_publish(struct health *h, const struct store_health *now)
{
    if (now->changes == atomic_load(&h->changes)) {
        return;
    }
    lock_take(h->lock);
    h->published = *now;
    lock_give(h->lock);
    atomic_store(&h->changes, now->changes);
}

void health_set_full(struct health *h, const struct profd_error *why)
{
    if (h->full) {
        return;
    }
    h->full = true;
    h->full_error = *why;
    log_write(LOG_LEVEL_ERROR, "space", "uploads are refused until there is space: %s", why->sentence);
}

void health_clear_full(struct health *h)
{
    if (!h->full) {
        return;
    }
    h->full = false;
    log_write(LOG_LEVEL_NOTICE, "space", "%s has space again", h->state_dir);
}

enum health_change health_update(struct health *h, bool keep_full)
{
    const uint64_t changes = atomic_load(&h->changes);
    struct store_health now;

    if (changes == h->noted || h->failed) {
        return HEALTH_SAME;
    }
    h->noted = changes;
    lock_take(h->lock);
    now = h->published;
    lock_give(h->lock);
    if (now.failed) {
        h->failed = true;
        profd_error_set(&h->failure, PROFD_IO, "the store failed and nothing is written any more: %s%s",
                        now.error.sentence,
                        now.damaged ? "; start profd again: it checks the whole file and puts a damaged one aside"
                                    : ", then start profd again");
        log_write(LOG_LEVEL_ERROR, NULL, "%s", h->failure.sentence);
        return now.damaged ? HEALTH_DAMAGED : HEALTH_FAILED;
    }
    if (now.full) {
        health_set_full(h, &now.error);
    } else if (!keep_full) {
        health_clear_full(h);
    }
    return HEALTH_SAME;
}

enum profd_status health_check(const struct health *h, struct profd_error *e)
{
    if (!h->failed) {
        return PROFD_OK;
    }
    if (e) {
        *e = h->failure;
    }
    return PROFD_IO;
}

const char *health_get_failure(const struct health *h)
{
    return h->failed ? h->failure.sentence : NULL;
}

const char *health_get_full(const struct health *h)
{
    return h->full ? h->full_error.sentence : NULL;
}
