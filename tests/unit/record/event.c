/* Records of the kernel's rings: each kind, and records that contradict their size. */
#include <criterion/criterion.h>
#include <string.h>

#include "record/record_internal.h"

struct writer {
    _Alignas(8) uint8_t bytes[1024];
    size_t size;
};

static void put(struct writer *w, const void *bytes, size_t n)
{
    memcpy(w->bytes + w->size, bytes, n);
    w->size += n;
}

static void put32(struct writer *w, uint32_t v)
{
    put(w, &v, sizeof v);
}

static void put64(struct writer *w, uint64_t v)
{
    put(w, &v, sizeof v);
}

static void begin(struct writer *w, uint32_t type, uint16_t misc)
{
    const struct perf_event_header h = {.type = type, .misc = misc};
    memset(w, 0, sizeof *w);
    put(w, &h, sizeof h);
}

static const struct perf_event_header *end(struct writer *w, bool trailer)
{
    struct perf_event_header *h = (void *)w->bytes;
    if (trailer) {
        put32(w, 7);
        put32(w, 8);
        put64(w, 123456789);
    }
    h->size = (uint16_t)w->size;
    return h;
}

static void put_mmap(struct writer *w, const uint8_t identity[24])
{
    put32(w, 40);
    put32(w, 41);
    put64(w, 0x1000);
    put64(w, 0x2000);
    put64(w, 0x3000);
    put(w, identity, 24);
    put32(w, 5);
    put32(w, 2);
    put(w, "/bin/x\0", 8);
}

Test(event, mmap_with_the_numbers_of_the_file)
{
    struct writer w;
    struct event e;
    uint8_t identity[24] = {0};
    const uint64_t inode = 99;
    identity[0] = 8, identity[4] = 1;
    memcpy(identity + 8, &inode, 8);
    begin(&w, PERF_RECORD_MMAP2, 0);
    put_mmap(&w, identity);
    cr_assert(event_decode(end(&w, true), 0, &e));
    cr_assert_eq(e.pid, 40);
    cr_assert_eq(e.start, 0x1000);
    cr_assert_eq(e.size, 0x2000);
    cr_assert_eq(e.offset, 0x3000);
    cr_assert_str_eq(e.path, "/bin/x");
    cr_assert(e.id_size == 0 && e.major == 8 && e.minor == 1 && e.inode == 99);
    cr_assert_eq(e.time, 123456789);
}

Test(event, mmap_with_a_build_id)
{
    struct writer w;
    struct event e;
    uint8_t identity[24] = {20, 0, 0, 0, 0xab};
    begin(&w, PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID);
    put_mmap(&w, identity);
    cr_assert(event_decode(end(&w, true), 0, &e));
    cr_assert(e.id_size == 20 && e.id[0] == 0xab && e.inode == 0);
}

Test(event, a_path_without_its_end_is_refused)
{
    struct writer w;
    struct event e;
    const uint8_t identity[24] = {0};
    begin(&w, PERF_RECORD_MMAP2, 0);
    put_mmap(&w, identity);
    memset(w.bytes + w.size - 8, 'x', 8);
    cr_assert_not(event_decode(end(&w, true), 0, &e));
}

Test(event, processes)
{
    struct writer w;
    struct event e;
    begin(&w, PERF_RECORD_FORK, 0);
    put32(&w, 11);
    put32(&w, 10);
    put32(&w, 12);
    put32(&w, 13);
    put64(&w, 5);
    cr_assert(event_decode(end(&w, true), 0, &e));
    cr_assert(e.pid == 11 && e.parent == 10 && e.tid == 12 && e.parent_tid == 13);
    begin(&w, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
    put32(&w, 11);
    put32(&w, 11);
    put(&w, "sh\0\0\0\0\0", 8);
    cr_assert(event_decode(end(&w, true), 0, &e));
    cr_assert_str_eq(e.comm, "sh");
    begin(&w, PERF_RECORD_LOST, 0);
    put64(&w, 1);
    put64(&w, 17);
    cr_assert(event_decode(end(&w, true), 0, &e));
    cr_assert_eq(e.lost, 17);
}

static void put_sample(struct writer *w, uint64_t claimed, unsigned frames)
{
    begin(w, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
    put64(w, 0x401000);
    put32(w, 20);
    put32(w, 21);
    put64(w, 777);
    put64(w, claimed);
    for (unsigned i = 0; i < frames; i++) {
        put64(w, 0x400000 + i);
    }
}

Test(event, a_sample_has_its_chain)
{
    struct writer w;
    struct event e;
    put_sample(&w, 3, 3);
    cr_assert(event_decode(end(&w, false), 0, &e));
    cr_assert(e.pid == 20 && e.tid == 21 && e.time == 777 && e.chain_count == 3 && e.chain[2] == 0x400002);
    put_sample(&w, 4, 3);
    cr_assert_not(event_decode(end(&w, false), 0, &e), "a chain behind the end");
    put_sample(&w, UINT64_MAX / 8 + 1, 3);
    cr_assert_not(event_decode(end(&w, false), 0, &e), "a count whose product overflows");
}

Test(event, registers_and_stack)
{
    struct writer w;
    struct event e;
    put_sample(&w, 1, 1);
    put64(&w, PERF_SAMPLE_REGS_ABI_64);
    put64(&w, 0x11);
    put64(&w, 0x22);
    put64(&w, 16);
    put64(&w, 0xaaaa);
    put64(&w, 0xbbbb);
    put64(&w, 8);
    cr_assert(event_decode(end(&w, false), 2, &e));
    cr_assert(e.registers[1] == 0x22 && e.stack_size == 8 && e.stack[0] == 0xaa);
    put_sample(&w, 1, 1); /* a kernel thread: neither */
    put64(&w, PERF_SAMPLE_REGS_ABI_NONE);
    put64(&w, 0);
    cr_assert(event_decode(end(&w, false), 2, &e));
    cr_assert(e.registers == NULL && e.stack_size == 0);
    put_sample(&w, 1, 1);
    put64(&w, PERF_SAMPLE_REGS_ABI_64);
    cr_assert_not(event_decode(end(&w, false), 2, &e), "registers that are not there");
}
