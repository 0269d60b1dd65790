/* The memory of a process, copied in bounded memory. */
#include <string.h>
#include <sys/mman.h>

#include "ingest/attach_parts.h"

#define NEEDED_PAGES 5u /* of a chunk that is no table: more than that nobody looks at */

_Static_assert(ATTACH_LABEL_BYTES + sizeof(struct attach_chunk) <= NEEDED_PAGES * ATTACH_PAGE, "labels");
_Static_assert(ATTACH_NAME_MAX + sizeof(struct attach_chunk) <= NEEDED_PAGES * ATTACH_PAGE, "a name");
_Static_assert(64 + ATTACH_MODULES_PER_CHUNK * sizeof(struct attach_module_row) <= NEEDED_PAGES * ATTACH_PAGE,
               "modules");

/* The chunk at `at`, whose first page is in r: what else of it is needed. *next: behind it. */
static enum profd_status chunk_copy(struct attach_reading *r, uint64_t at, uint64_t used, uint64_t *kept,
                                    uint64_t *next, struct profd_error *e)
{
    struct attach_chunk c;
    memcpy(&c, r->bytes + at, sizeof c);
    *next = at + ATTACH_PAGE;
    *kept += ATTACH_PAGE;
    if (c.size < ATTACH_PAGE || c.size % ATTACH_PAGE || c.size > used - at)
        return PROFD_OK; /* attach_parse has the words for it */
    *next = at + c.size;
    if (c.kind >= ATTACH_KIND_ARCS && c.kind <= ATTACH_KIND_PAIRS)
        return PROFD_OK;
    uint64_t n = c.size < NEEDED_PAGES * ATTACH_PAGE ? c.size : NEEDED_PAGES * ATTACH_PAGE;
    *kept += n - ATTACH_PAGE;
    return attach_read_file(r->memfd, r->bytes + at + ATTACH_PAGE, n - ATTACH_PAGE, at + ATTACH_PAGE, e);
}

/* Everything but the tables' slots. Pages that nobody published are not kept. */
static enum profd_status outline_copy(struct attach_reading *r, uint64_t used, struct profd_error *e)
{
    _Alignas(ATTACH_PAGE) uint8_t page[ATTACH_PAGE];
    uint64_t kept = 0, next;
    enum profd_status status = PROFD_OK;
    for (uint64_t at = ATTACH_PAGE; status == PROFD_OK && at < used; at = next) {
        uint32_t magic;
        next = at + ATTACH_PAGE;
        status = attach_read_file(r->memfd, page, ATTACH_PAGE, at, e);
        memcpy(&magic, page, sizeof magic);
        if (status != PROFD_OK || magic != ATTACH_CHUNK_MAGIC)
            continue;
        memcpy(r->bytes + at, page, ATTACH_PAGE);
        status = chunk_copy(r, at, used, &kept, &next, e);
        if (status == PROFD_OK && kept > LIMIT_ATTACH_RESIDENT)
            status = profd_error_set(
                e, PROFD_TOO_LARGE,
                "shared counts have chunks whose first pages, names and modules take more than %u bytes",
                LIMIT_ATTACH_RESIDENT);
    }
    return status;
}

enum profd_status attach_reading_open(int memfd, uint64_t file_size, struct attach_reading *r, struct profd_error *e)
{
    _Alignas(ATTACH_PAGE) uint8_t page[ATTACH_PAGE];
    struct attach_reading reading = {.memfd = memfd};
    uint64_t used;
    enum profd_status status = attach_read_file(memfd, page, ATTACH_PAGE, 0, e);
    if (status == PROFD_OK)
        status = attach_measure(page, ATTACH_PAGE, file_size, &used, e);
    if (status != PROFD_OK)
        return status;
    reading.whole = used <= LIMIT_ATTACH_WHOLE;
    void *bytes = mmap(NULL, (size_t)used, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | (reading.whole ? MAP_POPULATE : MAP_NORESERVE), -1, 0);
    if (bytes == MAP_FAILED)
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to read %llu bytes of shared counts",
                               (unsigned long long)used);
    reading.bytes = bytes;
    reading.image.size = (size_t)used;
    memcpy(reading.bytes, page, ATTACH_PAGE);
    status = reading.whole ? attach_read_file(memfd, reading.bytes + ATTACH_PAGE, used - ATTACH_PAGE, ATTACH_PAGE, e)
                           : outline_copy(&reading, used, e);
    if (status == PROFD_OK)
        status = attach_parse(reading.bytes, (size_t)used, &reading.image, e);
    if (status == PROFD_OK)
        *r = reading;
    else
        attach_reading_close(&reading);
    return status;
}

enum profd_status attach_reading_load(struct attach_reading *r, uint64_t at, uint64_t size, struct profd_error *e)
{
    if (r->whole)
        return PROFD_OK;
    if (size > LIMIT_ATTACH_RESIDENT)
        return profd_error_set(e, PROFD_TOO_LARGE,
                               "shared counts have a table of %llu bytes at %llu; at most %u are read",
                               (unsigned long long)size, (unsigned long long)at, LIMIT_ATTACH_RESIDENT);
    return attach_read_file(r->memfd, r->bytes + at + ATTACH_PAGE, size - ATTACH_PAGE, at + ATTACH_PAGE, e);
}

/* The first page stays: the way to the next table leads over it. */
void attach_reading_drop(struct attach_reading *r, uint64_t at, uint64_t size)
{
    if (!r->whole && size > ATTACH_PAGE)
        madvise(r->bytes + at + ATTACH_PAGE, (size_t)(size - ATTACH_PAGE), MADV_DONTNEED);
}

void attach_reading_close(struct attach_reading *r)
{
    if (r->bytes)
        munmap(r->bytes, r->image.size);
    *r = (struct attach_reading){.memfd = -1};
}
