/* May anything be written? What the store's writing verbs have met is published on the writer's thread after each batch
 * and taken over by the loop: an input/output error or damage ends writing for good (DECISIONS 31); a full disk ends
 * when there is space again. */
#ifndef PROFD_WRITER_HEALTH_H
#define PROFD_WRITER_HEALTH_H

#include <stdbool.h>

#include "proto/status.h"
#include "store/store.h"

struct health;

/* state_dir is for sentences and must outlive the health. */
enum profd_status health_new(const char *state_dir, struct health **out, struct profd_error *e);
/* Accepts NULL. */
void health_free(struct health *h);

/* On the writer's thread: now is what the store says. Cheap when nothing has changed since the last call. */
void health_publish(struct health *h, const struct store_health *now);

/* Everything below belongs to the loop's thread. */
enum health_change { HEALTH_SAME, HEALTH_FAILED, HEALTH_DAMAGED };
/* Takes over what was published. FAILED or DAMAGED are returned once, at the first call that learns of it. keep_full: a
 * write that succeeded does not mean that there is space again. O(1). */
enum health_change health_update(struct health *h, bool keep_full);
/* Uploads are refused for want of space, why says where, until health_clear_full. Each change is logged once. */
void health_set_full(struct health *h, const struct profd_error *why);
void health_clear_full(struct health *h);

/* IO, and why, when nothing is written any more. A full disk is no reason to refuse: the next write finds out. */
enum profd_status health_check(const struct health *h, struct profd_error *e);
/* Why it has failed or is full; NULL: it has not, it is not. Valid until the next call above. */
const char *health_get_failure(const struct health *h);
const char *health_get_full(const struct health *h);

#endif
