/* The memfd: made, sealed, given out in pages. */
#ifndef PROFD_COLLECT_REGION_H
#define PROFD_COLLECT_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/attach.h"

/* Descriptors of ours live from here on where the limit allows it: programs close and reuse the low ones. */
#define REGION_DESCRIPTOR_LEAST 512

/* Makes a region of size bytes, or of as many as the limits of the process allow (at least ATTACH_SIZE_MIN), mapped at
 * `at` if that is not NULL. Header: magic, layout, machine, size, used, instance, pid, start. *fd (−1 if it had to be
 * anonymous: nobody will see it) is sealed and close-on-exec. NULL: no memory. */
struct attach_header *region_create(void *at, uint64_t size, int *fd);

/* Zeroed memory for a chunk of at least bytes (rounded to pages, header included): its size is filled in,
 * region_publish gives it away. NULL: the region is full, but for reserve bytes. Lock-free. */
struct attach_chunk *region_take(struct attach_header *h, uint64_t bytes, uint64_t reserve);
void region_publish(struct attach_chunk *c, enum attach_kind kind);

/* Moves fd to REGION_DESCRIPTOR_LEAST or above, or as high as the limit allows; close-on-exec. The old number is
 * closed. */
int region_descriptor_lift(int fd);

#endif
