/* The memory of a process, copied in bounded memory. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "ingest/attach_internal.h"

#define AHEAD_MAX (256u << 10)
#define NEEDED_PAGES 5u /* of a chunk that is not a table: the rest is not read */

_Static_assert(ATTACH_LABEL_BYTES + sizeof(struct attach_chunk) <= NEEDED_PAGES * ATTACH_PAGE, "labels");
_Static_assert(ATTACH_NAME_MAX + sizeof(struct attach_chunk) <= NEEDED_PAGES * ATTACH_PAGE, "a name");
_Static_assert(64 + ATTACH_MODULES_PER_CHUNK * sizeof(struct attach_module_row) <= NEEDED_PAGES * ATTACH_PAGE,
               "modules");

/* Reads the rest of the chunk at `at`; its first page is already in r. *next: the offset after it. */
static enum profd_status chunk_copy(struct attach_reading *r, uint64_t at, uint64_t used, uint64_t *kept,
                                    uint64_t *next, struct profd_error *e)
{
    struct attach_chunk c;
    memcpy(&c, r->bytes + at, sizeof c);
    *next = at + ATTACH_PAGE;
    *kept += ATTACH_PAGE;
    if (c.size < ATTACH_PAGE || c.size % ATTACH_PAGE || c.size > used - at) {
        return PROFD_OK; /* attach_parse reports the error */
    }
    *next = at + c.size;
    if (c.kind >= ATTACH_KIND_ARCS && c.kind <= ATTACH_KIND_STACKS) {
        return PROFD_OK;
    }
    uint64_t n = c.size < NEEDED_PAGES * ATTACH_PAGE ? c.size : NEEDED_PAGES * ATTACH_PAGE;
    *kept += n - ATTACH_PAGE;
    return attach_read_file(r->memfd, r->bytes + at + ATTACH_PAGE, n - ATTACH_PAGE, at + ATTACH_PAGE, e);
}

/* Pages of the file, read ahead: one where chunks follow each other, many where nothing is published. */
struct ahead {
    uint64_t at, end; /* of the file, what the buffer has */
    uint64_t step;    /* bytes of the next read */
    uint8_t *bytes;   /* [AHEAD_MAX] */
};

/* The page at `at`. */
static enum profd_status ahead_get(const struct attach_reading *r, struct ahead *w, uint64_t at, uint64_t used,
                                   const uint8_t **page, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    if (at < w->at || at >= w->end) {
        uint64_t n = w->step < used - at ? w->step : used - at;
        status = attach_read_file(r->memfd, w->bytes, n, at, e);
        w->at = at;
        w->end = status == PROFD_OK ? at + n : at;
        w->step = w->step < AHEAD_MAX ? w->step * 2 : AHEAD_MAX;
    }
    *page = w->bytes + (at - w->at);
    return status;
}

/* Reads everything but the slots of tables. Unpublished pages are dropped; *end: the end of what is not. */
static enum profd_status outline_walk(struct attach_reading *r, uint64_t used, struct ahead *w, uint64_t *end,
                                      struct profd_error *e)
{
    uint64_t kept = 0, next;
    for (uint64_t at = ATTACH_PAGE; at < used; at = next) {
        const uint8_t *page;
        uint32_t magic;
        next = at + ATTACH_PAGE;
        TRY(ahead_get(r, w, at, used, &page, e));
        memcpy(&magic, page, sizeof magic);
        if (magic != ATTACH_CHUNK_MAGIC && magic != ATTACH_STACKS_MAGIC) {
            continue;
        }
        memcpy(r->bytes + at, page, ATTACH_PAGE);
        w->step = ATTACH_PAGE;
        TRY(chunk_copy(r, at, used, &kept, &next, e));
        *end = next;
        if (kept > LIMIT_ATTACH_RESIDENT) {
            return profd_error_set(
                e, PROFD_TOO_LARGE,
                "shared counts: the first pages, names and modules of the chunks take more than %u bytes",
                LIMIT_ATTACH_RESIDENT);
        }
    }
    return PROFD_OK;
}

/* The image ends with the last chunk, so that a file that uses much and has published nothing there is walked over
 * once, in large steps, and its copy not at all. */
static enum profd_status outline_copy(struct attach_reading *r, uint64_t used, uint64_t *end, struct profd_error *e)
{
    struct ahead w = {.step = ATTACH_PAGE, .bytes = malloc(AHEAD_MAX)};
    if (!w.bytes) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to read shared counts");
    }
    *end = ATTACH_PAGE;
    enum profd_status status = outline_walk(r, used, &w, end, e);
    free(w.bytes);
    return status;
}

enum profd_status attach_reading_open(int memfd, uint64_t file_size, struct attach_reading *r, struct profd_error *e)
{
    _Alignas(ATTACH_PAGE) uint8_t page[ATTACH_PAGE];
    struct attach_reading reading = {.memfd = memfd};
    uint64_t used, end;
    TRY(attach_read_file(memfd, page, ATTACH_PAGE, 0, e));
    TRY(attach_measure(page, ATTACH_PAGE, file_size, &used, e));
    reading.whole = used <= LIMIT_ATTACH_WHOLE;
    void *bytes = mmap(NULL, (size_t)used, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | (reading.whole ? MAP_POPULATE : MAP_NORESERVE), -1, 0);
    if (bytes == MAP_FAILED) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to read %llu bytes of shared counts",
                               (unsigned long long)used);
    }
    reading.bytes = bytes;
    reading.size = end = used;
    memcpy(reading.bytes, page, ATTACH_PAGE);
    enum profd_status status =
        reading.whole ? attach_read_file(memfd, reading.bytes + ATTACH_PAGE, used - ATTACH_PAGE, ATTACH_PAGE, e)
                      : outline_copy(&reading, used, &end, e);
    if (status == PROFD_OK) {
        status = attach_parse(reading.bytes, (size_t)end, &reading.image, e);
    }
    if (status == PROFD_OK) {
        *r = reading;
    } else {
        attach_reading_close(&reading);
    }
    return status;
}

enum profd_status attach_reading_load(struct attach_reading *r, uint64_t at, uint64_t size, struct profd_error *e)
{
    if (r->whole) {
        return PROFD_OK;
    }
    if (size > LIMIT_ATTACH_RESIDENT) {
        return profd_error_set(e, PROFD_TOO_LARGE,
                               "shared counts have a table of %llu bytes at %llu; at most %u are read",
                               (unsigned long long)size, (unsigned long long)at, LIMIT_ATTACH_RESIDENT);
    }
    return attach_read_file(r->memfd, r->bytes + at + ATTACH_PAGE, size - ATTACH_PAGE, at + ATTACH_PAGE, e);
}

enum profd_status attach_reading_refresh(struct attach_reading *r, uint64_t at, uint64_t size, struct profd_error *e)
{
    const uint64_t head = sizeof(struct attach_chunk);
    TRY(attach_reading_load(r, at, size, e));
    return attach_read_file(r->memfd, r->bytes + at + head, size - head, at + head, e);
}

/* The first page stays: the way to the next table leads over it. */
void attach_reading_drop(struct attach_reading *r, uint64_t at, uint64_t size)
{
    if (!r->whole && size > ATTACH_PAGE) {
        madvise(r->bytes + at + ATTACH_PAGE, (size_t)(size - ATTACH_PAGE), MADV_DONTNEED);
    }
}

void attach_reading_close(struct attach_reading *r)
{
    if (r->bytes) {
        munmap(r->bytes, r->size);
    }
    *r = (struct attach_reading){.memfd = -1};
}
