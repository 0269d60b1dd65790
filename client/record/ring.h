/* A ring buffer that the kernel fills with the records of perf events. */
#ifndef PROFD_CLIENT_RECORD_RING_H
#define PROFD_CLIENT_RECORD_RING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/status.h"

struct ring {
    struct perf_event_mmap_page *page; /* NULL: not mapped */
    const uint8_t *data;
    size_t size;         /* bytes of data, a power of two */
    uint64_t head, tail; /* head as of ring_refresh */
    uint8_t *joined;     /* a copy of a record that wraps around the end */
};

/* Maps the ring of an event. pages is a power of two. IO with the reason, or NO_MEMORY. */
enum profd_status ring_map(struct ring *r, int event, size_t pages, struct profd_error *e);
/* Accepts a zeroed struct. */
void ring_unmap(struct ring *r);

/* Looks how far the kernel has written. */
void ring_refresh(struct ring *r);
/* The oldest record that ring_next has not passed; NULL if there is none before the head. It is aligned to 8 bytes and
 * lives until the next call for this ring. O(1), or its size if it wraps. */
const struct perf_event_header *ring_peek(struct ring *r);
/* Passes that record. */
void ring_next(struct ring *r);
/* Gives the space of the passed records back to the kernel. */
void ring_release(struct ring *r);

#endif
