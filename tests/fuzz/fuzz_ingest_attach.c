/* Law: whatever a process has in its memory, a harvest ends, reads nothing outside, and is refused with a sentence or
 * is an upload whose counts are what it says; the next one, of a memory that has grown, resumes from its snapshot; one
 * more brings nothing. The first byte chooses: 1, the rest is a snapshot for the decoder; 3, the contents of one; even,
 * a memory. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ingest/attach.h"
#include "ingest/attach_internal.h"
#include "ingest/ingest.h"
#include "proto/counts.h"
#include "proto/deflate.h"
#include "proto/varint.h"
#include "tests/scratch_store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PAGES 64u
#define PART 512u /* bytes of input for each page: inputs stay short */
#define NOW INT64_C(1760000000000000000)

static struct store *store;
static struct build_cache *checker;
static const struct attach_origin origin = {.pid = 1, .started = 2, .host = "0123456789abcdef0123456789abcdef"};

static void require(int condition)
{
    if (!condition) {
        abort();
    }
}

static void decode(const uint8_t *data, size_t size)
{
    struct attach_snapshot s, again;
    struct profd_error e = {""};
    uint8_t *bytes;
    size_t n;
    if (attach_snapshot_decode(data, size, &s, &e) != PROFD_OK) {
        require(e.sentence[0] != 0);
        return;
    }
    require(attach_snapshot_encode(&s, &bytes, &n, &e) == PROFD_OK);
    require(attach_snapshot_decode(bytes, n, &again, &e) == PROFD_OK);
    require(again.places.count == s.places.count && again.places.table_count == s.places.table_count &&
            again.end == s.end);
    require(memcmp(again.places.counts, s.places.counts, s.places.count * sizeof *s.places.counts) == 0);
    require(memcmp(again.places.slots, s.places.slots, s.places.count * sizeof *s.places.slots) == 0);
    attach_snapshot_done(&s);
    attach_snapshot_done(&again);
    free(bytes);
}

/* Packed as a snapshot is: no input would guess the checksum. */
static void decode_packed(const uint8_t *raw, size_t size)
{
    size_t capacity = 1 + VARINT_MAX + deflate_bound(size), packed;
    uint8_t *bytes = malloc(capacity);
    require(bytes != NULL);
    bytes[0] = 1;
    uint8_t *at = varint_put(bytes + 1, size);
    require(deflate_pack(raw, size, false, at, capacity - (size_t)(at - bytes), &packed, NULL) == PROFD_OK);
    decode(bytes, (size_t)(at - bytes) + packed);
    free(bytes);
}

/* The last page is not there for the first harvest: the second has news. */
static void fill(uint8_t *memory, const uint8_t *data, size_t size, bool all)
{
    size_t pages = (size + PART - 1) / PART;
    memset(memory, 0, PAGES * ATTACH_PAGE);
    for (size_t i = 0; i < pages && i < PAGES; i++) {
        memcpy(memory + i * ATTACH_PAGE, data + i * PART, size - i * PART < PART ? size - i * PART : PART);
    }
    if (!all && pages > 1) {
        memset(memory + (pages - 1) * ATTACH_PAGE, 0, ATTACH_PAGE);
    }
    struct attach_header h;
    memcpy(&h, memory, sizeof h); /* what every input would have to guess */
    h.magic = ATTACH_MAGIC;
    h.layout = ATTACH_LAYOUT;
    h.size = ATTACH_SIZE_MIN;
    h.machine = 62;
    h.used = h.used == 0 ? PAGES * ATTACH_PAGE : h.used;
    h.instance[0] |= 1;
    memcpy(memory, &h, sizeof h);
}

static int memory_make(uint8_t **memory)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    require(fd >= 0 && ftruncate(fd, ATTACH_SIZE_MIN) == 0);
    *memory = mmap(NULL, PAGES * ATTACH_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    require(*memory != MAP_FAILED);
    require(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) == 0);
    return fd;
}

/* Of a harvest that is believed: what it says is what its counts say. */
static void judge(const struct attach_harvest *h)
{
    const struct store_upload *u = &h->put;
    struct counts c;
    uint64_t ticks = 0, calls = 0;
    require(u->build_count > 0 && u->build_count <= LIMIT_BUILDS && h->put.snapshot_size > 0);
    if (u->counts_size == 0) {
        return;
    }
    require(counts_decode(u->counts, u->counts_size, (uint32_t)u->build_count, &c, NULL) == PROFD_OK);
    counts_totals(&c, &ticks, &calls);
    require(ticks == u->ticks && calls == u->calls && h->ticks == ticks && h->calls == calls);
    for (uint32_t i = 0; i < c.node_count; i++) { /* a stack is that of a tick */
        require(c.node_ticks[i] <= ticks);
        ticks -= c.node_ticks[i];
    }
    counts_done(&c);
}

/* The generation it got to; 0: it is not believed, or has nothing. */
static void harvest(int fd, uint8_t **snapshot, size_t *size, uint64_t *generation, bool nothing)
{
    struct attach_process *p;
    struct attach_harvest h;
    struct profd_error e = {""};
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (attach_open(copy, 1, &origin, &p, &e) != PROFD_OK) {
        require(e.sentence[0] != 0);
        close(copy);
        return;
    }
    if (*generation > 0 && attach_resume(p, *generation, *snapshot, *size, &e) != PROFD_OK) {
        attach_close(p); /* the memory became another instance's */
        return;
    }
    enum profd_status status = attach_harvest(p, checker, 0, NOW, ATTACH_LIVES, &h, &e);
    require(status == PROFD_OK || e.sentence[0] != 0);
    if (status == PROFD_OK && h.any) {
        judge(&h);
    }
    if (nothing) { /* the first harvest since attach_open is stored although nothing is new: the process is there */
        require(status != PROFD_OK || !h.any || (h.ticks == 0 && h.calls == 0 && h.put.base == *generation));
    } else if (status == PROFD_OK && h.any) {
        free(*snapshot);
        *snapshot = malloc(h.put.snapshot_size);
        require(*snapshot != NULL);
        memcpy(*snapshot, h.put.snapshot, *size = h.put.snapshot_size);
        *generation = h.put.base + 1;
        attach_settle(p, &h);
    }
    if (status == PROFD_OK) {
        attach_harvest_done(&h);
    }
    attach_close(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > PAGES * PART) {
        return 0;
    }
    if (data[0] & 1) {
        (data[0] & 2 ? decode_packed : decode)(data + 1, size - 1);
        return 0;
    }
    require(scratch_store_open(&store, NULL) == PROFD_OK && build_cache_new(store, &checker, NULL) == PROFD_OK);
    uint8_t *memory, *snapshot = NULL;
    size_t n = 0;
    uint64_t generation = 0;
    int fd = memory_make(&memory);
    fill(memory, data + 1, size - 1, false);
    harvest(fd, &snapshot, &n, &generation, false);
    fill(memory, data + 1, size - 1, true);
    harvest(fd, &snapshot, &n, &generation, false);
    uint64_t before = generation;
    harvest(fd, &snapshot, &n, &generation, before > 0);
    require(generation == before);
    munmap(memory, PAGES * ATTACH_PAGE);
    close(fd);
    free(snapshot);
    build_cache_free(checker);
    store_close(store);
    return 0;
}
