#include "record/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RECORD_MAX 65536 /* the size of a record is a 16-bit number */

enum profd_status ring_map(struct ring *r, int event, size_t pages, struct profd_error *e)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *base = mmap(NULL, (pages + 1) * page, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
    if (base == MAP_FAILED) {
        return profd_error_set(e, PROFD_IO, "cannot map a ring of %zu pages for samples: %s%s", pages, strerror(errno),
                               errno == EPERM ? " (see /proc/sys/kernel/perf_event_mlock_kb)" : "");
    }
    uint8_t *joined = malloc(RECORD_MAX);
    if (!joined) {
        munmap(base, (pages + 1) * page);
        return profd_no_memory(e);
    }
    *r = (struct ring){.page = base, .data = (const uint8_t *)base + page, .size = pages * page, .joined = joined};
    return PROFD_OK;
}

void ring_unmap(struct ring *r)
{
    if (r->page) {
        munmap(r->page, r->size + (size_t)sysconf(_SC_PAGESIZE));
    }
    free(r->joined);
    *r = (struct ring){.page = NULL};
}

void ring_refresh(struct ring *r)
{
    r->head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
}

const struct perf_event_header *ring_peek(struct ring *r)
{
    if (r->tail == r->head) {
        return NULL;
    }
    const size_t at = (size_t)(r->tail & (r->size - 1)), whole = r->size - at;
    const struct perf_event_header *h = (const void *)(r->data + at); /* the kernel aligns records to 8 bytes */
    if (h->size <= whole) {
        return h;
    }
    memcpy(r->joined, r->data + at, whole);
    memcpy(r->joined + whole, r->data, h->size - whole);
    return (const void *)r->joined;
}

void ring_next(struct ring *r)
{
    const struct perf_event_header *h = (const void *)(r->data + (r->tail & (r->size - 1)));
    r->tail += h->size;
}

void ring_release(struct ring *r)
{
    __atomic_store_n(&r->page->data_tail, r->tail, __ATOMIC_RELEASE);
}
