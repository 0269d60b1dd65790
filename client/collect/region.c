#include "client/collect/region.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "client/collect/raw.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

#if defined __x86_64__
#define REGION_MACHINE 62
#else
#define REGION_MACHINE 183
#endif

int region_descriptor_lift(int fd)
{
    struct rlimit limit;
    bool known = raw_call(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, &limit) == 0;
    /* the lowest number that no descriptor may have: the soft limit, or REGION_DESCRIPTORS_END */
    long end = known && limit.rlim_cur < REGION_DESCRIPTORS_END ? (long)limit.rlim_cur : REGION_DESCRIPTORS_END;
    for (long number = end - 1; fd >= 0 && number > fd; number--) {
        long lifted = raw_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, number, 0);
        if (lifted >= 0) {
            raw_call(SYS_close, lifted == number ? fd : lifted, 0, 0, 0); /* above `number` if that one is in use */
        }
        if (lifted == number) {
            return (int)number;
        }
    }
    return fd;
}

/* A file larger than RLIMIT_FSIZE would raise SIGXFSZ. */
static uint64_t size_allowed(uint64_t size)
{
    struct rlimit limit;
    if (raw_call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, &limit) == 0) {
        while (size > limit.rlim_cur && size > ATTACH_SIZE_MIN) {
            size /= 2;
        }
        if (size > limit.rlim_cur) {
            return 0;
        }
    }
    return size;
}

static void *region_map(void *at, uint64_t size, int fd)
{
    long flags = (fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS) | MAP_NORESERVE | (at ? MAP_FIXED : 0);
    long p = raw_call6(SYS_mmap, (long)at, (long)size, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (p < 0 && p > -4096) {
        return NULL;
    }
    raw_call(SYS_madvise, p, size, MADV_DONTDUMP, 0);
    return (void *)p;
}

static int memfd_make(uint64_t size)
{
    static const char name[] = ATTACH_MEMORY_NAME;
    long fd = raw_call(SYS_memfd_create, name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL, 0, 0);
    if (fd < 0) { /* a kernel before 6.3 */
        fd = raw_call(SYS_memfd_create, name, MFD_CLOEXEC | MFD_ALLOW_SEALING, 0, 0);
    }
    if (fd < 0) {
        return -1;
    }
    int lifted = region_descriptor_lift((int)fd);
    if (raw_call(SYS_ftruncate, lifted, size, 0, 0) == 0) {
        return lifted;
    }
    raw_call(SYS_close, lifted, 0, 0, 0);
    return -1;
}

static uint64_t clock_ns(long clock)
{
    struct timespec t = {0, 0};
    raw_call(SYS_clock_gettime, clock, &t, 0, 0);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void header_fill(struct attach_header *h, uint64_t size)
{
    h->layout = ATTACH_LAYOUT;
    h->machine = REGION_MACHINE;
    h->size = size;
    h->used = ATTACH_PAGE;
    h->pid = (uint32_t)raw_call(SYS_getpid, 0, 0, 0, 0);
    h->start = clock_ns(CLOCK_REALTIME);
    if (raw_call(SYS_getrandom, h->instance, sizeof h->instance, 1 /* never wait */, 0) != (long)sizeof h->instance) {
        uint64_t weak[2] = {h->start ^ (uint64_t)h->pid << 40, clock_ns(CLOCK_MONOTONIC) ^ (uintptr_t)h};
        raw_copy(h->instance, weak, sizeof weak);
    }
    __atomic_store_n(&h->magic, ATTACH_MAGIC, __ATOMIC_RELEASE);
}

struct attach_header *region_create(void *at, uint64_t size, int *fd)
{
    struct attach_header *h = NULL;
    int made = -1;
    /* At `at` only the full size is accepted, because the old mapping must be replaced completely. */
    uint64_t allowed = size_allowed(size);
    if (!at) {
        size = allowed;
    }
    for (; size >= ATTACH_SIZE_MIN && !h; size = h ? size : size / 2) {
        made = allowed >= size ? memfd_make(size) : -1;
        if (made >= 0) {
            h = region_map(at, size, made);
        }
        if (!h && made >= 0) {
            raw_call(SYS_close, made, 0, 0, 0);
            made = -1;
        }
        if (h || at) {
            break;
        }
    }
    if (!h && at) {
        h = region_map(at, size, -1);
    }
    if (!h) {
        return NULL;
    }
    if (made >= 0) {
        long seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
        if (raw_call(SYS_fcntl, made, F_ADD_SEALS, seals | F_SEAL_FUTURE_WRITE, 0) < 0) { /* a kernel before 5.1 */
            raw_call(SYS_fcntl, made, F_ADD_SEALS, seals, 0);
        }
    }
    header_fill(h, size);
    *fd = made;
    return h;
}

struct attach_chunk *region_take(struct attach_header *h, uint64_t bytes, uint64_t reserve)
{
    uint64_t size = (bytes + ATTACH_PAGE - 1) / ATTACH_PAGE * ATTACH_PAGE;
    uint64_t used = __atomic_load_n(&h->used, __ATOMIC_RELAXED);
    do {
        if (used > h->size || size > h->size - used || h->size - used - size < reserve) {
            return NULL;
        }
    } while (!__atomic_compare_exchange_n(&h->used, &used, used + size, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    struct attach_chunk *c = (struct attach_chunk *)(void *)((uint8_t *)h + used);
    c->size = size;
    return c;
}

void region_publish(struct attach_chunk *c, enum attach_kind kind)
{
    c->kind = kind;
    __atomic_store_n(&c->magic, ATTACH_CHUNK_MAGIC, __ATOMIC_RELEASE);
}
