/* What other daemons have changed in a store that several write to: readers, and keys that were revoked. */
#ifndef PROFD_REQUESTS_SHARED_H
#define PROFD_REQUESTS_SHARED_H

#include "proto/status.h"

struct loop;
struct readers;
struct revocations;
struct shared;
struct writer;

/* Reads both every 10 seconds, on the writer's thread, and replaces what this daemon knows on the loop's. revocations
 * may be NULL: this daemon accepts no hosts. What is given must outlive it. */
enum profd_status shared_start(struct loop *loop, struct writer *writer, struct readers *readers,
                               struct revocations *revocations, struct shared **out, struct profd_error *e);
/* Puts no further job. */
void shared_stop(struct shared *s);
/* After the writer. Accepts NULL. */
void shared_free(struct shared *s);

#endif
