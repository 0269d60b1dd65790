/* What strangers hand in: nothing may block, fault or go without end, and every refusal names its rule. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ingest/attach_internal.h"
#include "tests/unit/ingest/attach_bed.h"
#include "tests/unit/ingest/bed.h"

static struct live live;
static struct ledger ledger;

static void enter(void)
{
    attach_bed_open();
    live_open(&live, 8u << 20, 1);
    memset(&ledger, 0, sizeof ledger);
}

static void leave(void)
{
    ledger_done(&ledger);
    live_close(&live);
    attach_bed_close();
}

TestSuite(ingest_attach_hostile, .init = enter, .fini = leave);

/* The descriptor stays the caller's; it is closed here. */
static void refused(int fd, enum profd_status wanted, const char *words)
{
    struct attach_process *p = NULL;
    cr_assert_geq(fd, 0);
    cr_assert_eq(attach_open(fd, 1000, &origin, &p, &sentence), wanted, "%s", sentence.sentence);
    cr_assert(strstr(sentence.sentence, words), "\"%s\" does not say \"%s\"", sentence.sentence, words);
    cr_assert_null(p);
    cr_assert_eq(close(fd), 0);
}

/* One harvest of what live has become, by a new daemon. */
static enum profd_status harvest(void)
{
    struct attach_process *p = live_attach(&live, &ledger);
    enum profd_status status = live_harvest(p, &ledger, START + 1, ATTACH_LIVES);
    attach_close(p);
    return status;
}

static void malformed(enum profd_status wanted, const char *words)
{
    cr_assert_eq(harvest(), wanted, "%s", sentence.sentence);
    cr_assert(strstr(sentence.sentence, words), "\"%s\" does not say \"%s\"", sentence.sentence, words);
    cr_assert_eq(ledger.uploads, 0);
}

Test(ingest_attach_hostile, descriptors_that_are_no_memory_files)
{
    int pipes[2], sockets[2];
    cr_assert(pipe2(pipes, O_CLOEXEC) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    refused(pipes[0], PROFD_REFUSED, "not a sealable memory file");
    refused(pipes[1], PROFD_REFUSED, "not a sealable memory file");
    refused(sockets[0], PROFD_REFUSED, "not a sealable memory file");
    close(sockets[1]);
    refused(open("/", O_RDONLY | O_DIRECTORY), PROFD_REFUSED, "not a sealable memory file");
    refused(open("/dev/zero", O_RDWR), PROFD_REFUSED, "not a sealable memory file");
    refused(open("/dev/null", O_RDWR), PROFD_REFUSED, "not a sealable memory file");
    refused(open("/proc/self/mem", O_RDWR), PROFD_REFUSED, "not a sealable memory file");
    refused(open("/etc/passwd", O_RDONLY), PROFD_REFUSED, "not a sealable memory file");
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", live.fd);
    refused(open(path, O_PATH), PROFD_REFUSED, "not a sealable memory file");
    struct attach_process *p;
    cr_assert_eq(attach_open(-1, 0, &origin, &p, &sentence), PROFD_REFUSED);
}

Test(ingest_attach_hostile, files_in_shared_memory_and_half_sealed_ones)
{
    char name[64];
    snprintf(name, sizeof name, "/dev/shm/ingest-attach-%d", (int)getpid());
    int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) {
        unlink(name);
        refused(fd, PROFD_REFUSED, "seal"); /* on tmpfs the seal SEAL alone, elsewhere none at all */
    }
    static const int seals[] = {F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL, F_SEAL_FUTURE_WRITE};
    static const char *const names[] = {"SHRINK", "GROW", "SEAL", "FUTURE_WRITE"};
    for (unsigned missing = 0; missing < 4; missing++) {
        struct live l;
        live_open(&l, ATTACH_SIZE_MIN, 1);
        for (unsigned i = 0; i < 4; i++) {
            cr_assert(i == missing || fcntl(l.fd, F_ADD_SEALS, seals[i]) == 0 || missing == 2 || i == 3);
        }
        if (missing != 2 && missing != 3) { /* FUTURE_WRITE after SEAL is not to be had */
            fd = fcntl(l.fd, F_DUPFD_CLOEXEC, 0);
            refused(fd, PROFD_REFUSED, names[missing]);
        }
        live_close(&l);
    }
    refused(fcntl(live.fd, F_DUPFD_CLOEXEC, 0), PROFD_REFUSED, "SHRINK");
    cr_assert_eq(fcntl(live.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
    refused(fcntl(live.fd, F_DUPFD_CLOEXEC, 0), PROFD_REFUSED, "FUTURE_WRITE");
}

Test(ingest_attach_hostile, huge_pages)
{
    int fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
    if (fd < 0) {
        cr_skip("no huge pages here");
    }
    cr_assert_eq(ftruncate(fd, 2 << 20), 0);
    cr_assert_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL), 0);
    refused(fd, PROFD_REFUSED, "tmpfs");
}

Test(ingest_attach_hostile, sizes_and_modes)
{
    static const off_t sizes[] = {0, 4096, ATTACH_SIZE_MIN - 1, (off_t)ATTACH_SIZE_MAX + 1, (off_t)1 << 40};
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int fd = memfd_create("size", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        cr_assert_eq(ftruncate(fd, sizes[i]), 0);
        cr_assert_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL), 0);
        refused(fd, PROFD_REFUSED, "allowed are 1048576 to 1073741824");
    }
    live_seal(&live);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", live.fd);
    int fd = open(path, O_RDONLY | O_CLOEXEC); /* this suffices */
    struct attach_process *p;
    cr_assert_eq(attach_open(fd, 1000, &origin, &p, &sentence), PROFD_OK, "%s", sentence.sentence);
    attach_close(p);
}

Test(ingest_attach_hostile, headers_that_lie)
{
    live_seal(&live);
    struct attach_header h = *live.h;
#define LIE(field, value, status, words)                                                                               \
    live.h->field = value;                                                                                             \
    refused(fcntl(live.fd, F_DUPFD_CLOEXEC, 0), status, words);                                                        \
    *live.h = h
    LIE(magic, 1, PROFD_MALFORMED, "not shared counts");
    LIE(layout, 2, PROFD_UNKNOWN_VERSION, "layout 2");
    LIE(size, 1u << 30, PROFD_MALFORMED, "their file has");
    LIE(used, 5000, PROFD_MALFORMED, "use 5000");
    LIE(used, 1ull << 63, PROFD_MALFORMED, "use");
    LIE(used, 0, PROFD_MALFORMED, "use 0");
    LIE(mode, 9, PROFD_MALFORMED, "mode 9");
    LIE(modules, 8191, PROFD_MALFORMED, "8191 modules");
    memset(live.h->instance, 0, 12);
    refused(fcntl(live.fd, F_DUPFD_CLOEXEC, 0), PROFD_REFUSED, "not random");
    *live.h = h;
    live_usual(&live);
    struct attach_process *p = live_attach(&live, NULL);
    live.h->used = live.size + ATTACH_PAGE; /* later */
    cr_assert_eq(live_harvest(p, &ledger, START, ATTACH_LIVES), PROFD_MALFORMED);
    live.h->used = h.used;
    live.h->instance[3]++;
    cr_assert_eq(live_harvest(p, &ledger, START, ATTACH_LIVES), PROFD_MALFORMED);
    cr_assert(strstr(sentence.sentence, "another instance"));
    attach_close(p);
}

Test(ingest_attach_hostile, chunks_that_overlap_or_leave_the_file)
{
    live_seal(&live);
    live_usual(&live);
    struct attach_chunk *t = live_table(&live, ATTACH_KIND_ARCS, 100);
    uint64_t size = t->size;
    t->size = live.size;
    malformed(PROFD_MALFORMED, "leaves the file");
    t->size = UINT64_MAX - 4095;
    malformed(PROFD_MALFORMED, "leaves the file");
    t->size = 1;
    malformed(PROFD_MALFORMED, "leaves the file");
    t->size = size;
    t->primary = t->hash = UINT32_MAX;
    malformed(PROFD_MALFORMED, "do not fit");
    t->primary = t->hash = 50;
    t->kind = 77;
    malformed(PROFD_MALFORMED, "no known kind");
    t->kind = ATTACH_KIND_MODULES;
    t->primary = 1;
    malformed(PROFD_MALFORMED, "chunk");
    t->kind = ATTACH_KIND_ARCS;
    t->primary = 50;
    cr_assert_eq(harvest(), PROFD_OK);
}

Test(ingest_attach_hostile, modules_that_cannot_be)
{
    live_seal(&live);
    live_usual(&live);
    struct attach_module_row *row = (struct attach_module_row *)(void *)(live.bytes + ATTACH_PAGE + 64) + 1,
                             good = *row;
#define BAD(field, value)                                                                                              \
    row->field = value;                                                                                                \
    malformed(PROFD_MALFORMED, "module 2");                                                                            \
    *row = good
    BAD(low, 0x3000);
    BAD(high, UINT64_MAX);
    BAD(id_size, 65);
    BAD(id_size, UINT16_MAX);
    BAD(name_size, 145);
    BAD(name_at, 1);
    BAD(name_at, UINT64_MAX);
    BAD(name_at, ATTACH_PAGE + 64);
    row[-1].id_size = 0;
    malformed(PROFD_REFUSED, "has no build-id");
    row[-1].id_size = 20;
    memset(row->name, 0xff, sizeof row->name); /* no text, but bytes that can be made one */
    row->name_size = sizeof row->name;
    row->name[3] = 0;
    cr_assert_eq(harvest(), PROFD_OK, "%s", sentence.sentence);
}

Test(ingest_attach_hostile, labels_that_are_none)
{
    live_seal(&live);
    live_usual(&live);
    live_labels(&live, "x", 2);
    struct attach_chunk *c = (struct attach_chunk *)(void *)(live.bytes + live.h->used - ATTACH_PAGE);
    memcpy(c + 1, "nothing", 8);
    c->primary = 8;
    malformed(PROFD_MALFORMED, "no name=value");
    memcpy(c + 1, "a=b", 4);
    c->primary = 3; /* without its NUL */
    malformed(PROFD_MALFORMED, "no name=value");
}

/* The calls of a process are worth more than its label: one that breaks the rules is left out, and the report says so.
 */
static void labels_are_left_out(const char *text, size_t size, size_t kept)
{
    live_seal(&live);
    live_usual(&live);
    live_labels(&live, text, size);
    cr_assert_eq(harvest(), PROFD_OK, "%s", sentence.sentence);
    cr_assert_eq(ledger.inexact, INEXACT_LABEL_LEFT_OUT);
    cr_assert_eq(ledger.labels, kept, "%zu labels", ledger.labels);
}

Test(ingest_attach_hostile, a_label_with_a_bad_name_is_left_out)
{
    labels_are_left_out("9a=b\0ok=1", 10, 1);
}

Test(ingest_attach_hostile, a_label_with_a_reserved_name_is_left_out)
{
    labels_are_left_out("__x=b\0ok=1", 11, 1);
}

Test(ingest_attach_hostile, a_label_that_is_not_utf8_is_left_out)
{
    labels_are_left_out("a=\xff\0ok=1", 9, 1);
}

Test(ingest_attach_hostile, a_label_given_twice_counts_once)
{
    labels_are_left_out("a=b\0a=c", 8, 1);
}

Test(ingest_attach_hostile, the_65th_label_is_left_out)
{
    char text[1024], *at = text;
    for (int i = 0; i < 65; i++) {
        at += snprintf(at, 16, "l%d=v", i) + 1;
    }
    labels_are_left_out(text, (size_t)(at - text), 64);
}

Test(ingest_attach_hostile, counts_beyond_belief)
{
    live_seal(&live);
    live_usual(&live);
    struct attach_chunk *t = live_table(&live, ATTACH_KIND_ARCS, 8), *s = live_table(&live, ATTACH_KIND_SAMPLES, 8);
    live_count(t, 1, 1, 1, 1, 1, UINT64_MAX);
    live_count(t, 2, 1, 1, 1, 2, INT64_MAX);
    live_count(t, 3, 1, 1, 2, 3, INT64_MAX);
    live_count(t, 4, 1, 0xfffffff, 1, 3, 1); /* outside its module */
    live_count(s, 1, 0, 0, 1, 2, INT64_MAX);
    live_count(s, 2, 0, 0, ATTACH_MODULE_NONE, 2, INT64_MAX);
    for (unsigned i = 0; i < ATTACH_COUNTER_COUNT; i++) {
        live.h->counters[i] = UINT64_MAX;
    }
    cr_assert_eq(harvest(), PROFD_OK, "%s", sentence.sentence);
    cr_assert(ledger.calls == INT64_MAX &&
              ledger.inexact == (INEXACT_CALLS_LOST | INEXACT_TICKS_LOST | INEXACT_SATURATED | INEXACT_PAUSED |
                                 INEXACT_LABEL_LEFT_OUT | INEXACT_LEFT_OUT));
    cr_assert_eq(ledger.counters[COLLECTOR_SAMPLED_NS], INT64_MAX);
    cr_assert_eq(ledger_arc(&ledger, "aa", 0x400001, "aa", 0x400002), INT64_MAX);
    live.h->mode = ATTACH_MODE_OFF; /* and a rate of nothing */
    live.h->rate = 0;
    live_count(s, 3, 0, 0, 1, 2, 1);
    cr_assert_eq(harvest(), PROFD_OK, "%s", sentence.sentence);
}

Test(ingest_attach_hostile, identities_that_change_hurt_nobody_else)
{
    live_seal(&live);
    live_usual(&live);
    struct attach_chunk *t = live_table(&live, ATTACH_KIND_ARCS, 8);
    for (unsigned i = 0; i < 100; i++) {
        live_count(t, 1, 1, i, 1, 1, 3);
        t->kind = i % 2 ? ATTACH_KIND_ARCS : ATTACH_KIND_SAMPLES;
        cr_assert_eq(harvest(), PROFD_OK, "%s", sentence.sentence);
    }
    cr_assert_eq(ledger.calls + ledger.ticks, 300);
}

/* A table whose beginning wanders: places that were counted once are kept, but not without end. */
Test(ingest_attach_hostile, tables_that_wander_are_bounded)
{
    live_seal(&live);
    live_usual(&live);
    struct attach_chunk *t = live_table(&live, ATTACH_KIND_ARCS, 100000);
    for (uint32_t i = 0; i < 100000; i++) {
        live_count(t, i, 1, 1, 1, 1, 1);
    }
    struct attach_chunk copy = *t;
    for (unsigned i = 0; i < 4; i++) {
        struct attach_chunk *moved = (struct attach_chunk *)(void *)((uint8_t *)t + i * ATTACH_PAGE);
        t->magic = 0;
        *moved = copy;
        moved->size = copy.size - i * ATTACH_PAGE;
        moved->primary = (uint32_t)((moved->size - 64) / 28);
        moved->hash = 0;
        cr_assert_eq(harvest(), PROFD_OK, "%s", sentence.sentence);
        moved->magic = 0;
    }
    cr_assert_leq(ledger.size, 4 * 8 * 100000);
}

Test(ingest_attach_hostile, ten_thousand_tables_and_a_gigabyte_of_holes)
{
    struct live l;
    live_open(&l, ATTACH_SIZE_MAX, 2);
    live_seal(&l);
    live_usual(&l);
    struct attach_process *p = live_attach(&l, NULL);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < 10000; i++) {
        struct attach_chunk *t = live_table(&l, ATTACH_KIND_ARCS, 100);
        live_count(t, 99, 1, i, 2, i % 7, i);
        sum += i;
    }
    cr_assert_eq(live_harvest(p, &ledger, START, ATTACH_LIVES), PROFD_OK, "%s", sentence.sentence);
    cr_assert(ledger.calls == sum && ledger_arc(&ledger, "aa", 0x400000 + 9999, "bb", 9999 % 7) == 9999);
    l.h->used = l.size; /* nothing was published there */
    cr_assert_eq(live_harvest(p, &ledger, START, ATTACH_ENDED), PROFD_OK, "%s", sentence.sentence);
    cr_assert(ledger.calls == sum && ledger.inexact == 0);
    attach_close(p);
    live_close(&l);
}

/* What is punched out reads as zeros: counts that went down. (FUTURE_WRITE forbids it on newer kernels.) */
Test(ingest_attach_hostile, holes_punched_later)
{
    struct live l;
    live_open(&l, ATTACH_SIZE_MIN, 2);
    live_usual(&l);
    struct attach_chunk *t = live_table(&l, ATTACH_KIND_ARCS, 100);
    off_t at = (uint8_t *)t - l.bytes;
    live_count(t, 1, 1, 1, 1, 1, 5);
    live_seal(&l);
    struct attach_process *p = live_attach(&l, NULL);
    cr_assert_eq(live_harvest(p, &ledger, START, ATTACH_LIVES), PROFD_OK, "%s", sentence.sentence);
    fallocate(l.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, (off_t)t->size);
    memset(l.bytes + at, 0, 4096);
    cr_assert_eq(live_harvest(p, &ledger, START, ATTACH_LIVES), PROFD_OK, "%s", sentence.sentence);
    cr_assert(madvise(l.bytes, 4096, MADV_REMOVE) == 0 || l.h->magic != 0);
    memset(l.bytes, 0, 4096);
    cr_assert_eq(live_harvest(p, &ledger, START, ATTACH_LIVES), PROFD_MALFORMED);
    cr_assert(ledger.calls == 5 && ledger.uploads == 1);
    attach_close(p);
    live_close(&l);
}

/* The daemon holds a bounded part at a time; what is beyond has its sentence. */
Test(ingest_attach_hostile, memory_is_bounded)
{
    struct live l;
    live_open(&l, ATTACH_SIZE_MAX, 3);
    live_seal(&l);
    live_usual(&l);
    struct attach_process *p = live_attach(&l, NULL);
    struct attach_chunk *t = live_chunk(&l, 200u << 20); /* a hole nearly all of it */
    t->primary = 7000000;
    live_publish(t, ATTACH_KIND_ARCS);
    cr_assert_eq(live_harvest(p, &ledger, START, ATTACH_LIVES), PROFD_TOO_LARGE);
    cr_assert(strstr(sentence.sentence, "a table of 209715200 bytes"), "%s", sentence.sentence);
    attach_close(p);
    live_close(&l);
}

Test(ingest_attach_hostile, more_news_than_one_harvest_takes)
{
    struct live l;
    struct attach_harvest h;
    uint32_t n = LIMIT_ATTACH_NEWS + 1000;
    live_open(&l, 128u << 20, 4);
    live_seal(&l);
    live_usual(&l);
    struct attach_process *p = live_attach(&l, NULL);
    struct attach_chunk *t = live_table(&l, ATTACH_KIND_ARCS, n);
    for (uint32_t i = 0; i < n; i++) {
        live_count(t, i, 1, i % 0xfffff, 2, i % 100, 1);
    }
    uint64_t calls = 0;
    for (unsigned i = 0; i < 2; i++) {
        cr_assert_eq(attach_harvest(p, checker, 0, START, ATTACH_ENDED, &h, &sentence), PROFD_OK, "%s",
                     sentence.sentence);
        cr_assert(h.more == (i == 0) && h.put.ended == (i == 1) && h.put.inexact == 0);
        calls += h.calls;
        attach_settle(p, &h);
        attach_harvest_done(&h);
    }
    cr_assert_eq(calls, n);
    attach_close(p);
    live_close(&l);
}

Test(ingest_attach_hostile, thousands_of_modules)
{
    live_seal(&live);
    live_module(&live, 0xaa, 20, 0x400000, 0x500000, "/bin/program");
    for (unsigned i = 0; i < 3000; i++) {
        uint32_t id = live_module(&live, (int)(i % 256), 1 + i % 64, 0, 0x2000, "plugin");
        cr_assert_eq(id, i + 2);
    }
    struct attach_chunk *t = live_table(&live, ATTACH_KIND_ARCS, 6000);
    for (uint32_t i = 0; i < 3000; i++) {
        live_count(t, i, 1, 1, 2 + i, i % 0x2000, 1);
    }
    cr_assert_eq(harvest(), PROFD_OK, "%s", sentence.sentence);
    cr_assert_eq(ledger.calls, 3000);
}

/* The image of a large memory ends with its last chunk, wherever that is. */
Test(ingest_attach_hostile, holes_are_not_part_of_the_image)
{
    struct live large;
    struct attach_reading r;

    live_open(&large, 64u << 20, 1);
    live_seal(&large);
    live_chunk(&large, 32u << 20);
    cr_assert_eq(attach_reading_open(large.fd, large.size, &r, &sentence), PROFD_OK, "%s", sentence.sentence);
    cr_assert(!r.whole && r.image.size == ATTACH_PAGE && r.size == ATTACH_PAGE + (32u << 20));
    attach_reading_close(&r);

    live_publish(live_chunk(&large, ATTACH_PAGE), ATTACH_KIND_NAME);
    live_chunk(&large, 8u << 20);
    live_publish(live_chunk(&large, 2 * ATTACH_PAGE), ATTACH_KIND_NAME);
    live_chunk(&large, 1u << 20);
    cr_assert_eq(attach_reading_open(large.fd, large.size, &r, &sentence), PROFD_OK, "%s", sentence.sentence);
    cr_assert_eq(r.image.size, (40u << 20) + 4 * ATTACH_PAGE);
    cr_assert_eq(r.image.skipped, 40u << 20);
    attach_reading_close(&r);
    live_close(&large);
}
