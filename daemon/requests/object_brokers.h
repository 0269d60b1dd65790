/* Watches the processes that read executables (elf/broker.h). One that has ended is started again, after a delay that
 * grows from one second to one minute while it ends again and again. On the loop's thread. */
#ifndef PROFD_REQUESTS_OBJECT_BROKERS_H
#define PROFD_REQUESTS_OBJECT_BROKERS_H

#include <stddef.h>

#include "proto/status.h"

struct broker;
struct loop;
struct object_brokers;

/* Of LIMIT_WORKERS brokers, which outlive it. */
enum profd_status object_brokers_new(struct loop *loop, struct broker *const *brokers, struct object_brokers **out,
                                     struct profd_error *e);
/* An executable could not be read, perhaps because a broker has ended. */
void object_brokers_look(struct object_brokers *all);
/* The number of those that have ended and are not started again yet. */
size_t object_brokers_count_gone(const struct object_brokers *all);
/* Accepts NULL. */
void object_brokers_free(struct object_brokers *all);

#endif
