/* The memfd: created, sealed, and allocated in pages. */
#ifndef PROFD_COLLECT_REGION_H
#define PROFD_COLLECT_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/attach_memory.h"

/* The collector's descriptors have the highest free numbers below this one and the soft limit: programs close, list and
 * reuse the low ones, and select(2) takes numbers below 1,024 only. */
#define REGION_DESCRIPTORS_END 1024

/* Creates a region of size bytes, or as large as the limits of the process allow (at least ATTACH_SIZE_MIN), mapped at
 * `at` if that is not NULL. Header: magic, layout, machine, size, used, instance, pid, start. *fd is sealed and
 * close-on-exec; −1 if the region had to be anonymous, so that no daemon can read it. NULL: no memory. */
struct attach_header *region_create(void *at, uint64_t size, int *fd);

/* Allocates zeroed memory for a chunk of at least that size (rounded up to pages, including the header) and sets its
 * size; region_publish makes it visible. NULL: the region is full except for reserve bytes. Lock-free. */
struct attach_chunk *region_take(struct attach_header *h, uint64_t bytes, uint64_t reserve);
void region_publish(struct attach_chunk *c, enum attach_kind kind);

/* Moves fd to the highest free number below REGION_DESCRIPTORS_END and the soft limit, close-on-exec, and closes the
 * old number; fd stays what it is where none above it is free. One system call, and two for each higher number in use.
 */
int region_descriptor_lift(int fd);

#endif
