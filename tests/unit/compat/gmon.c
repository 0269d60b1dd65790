/* gmon.out as gprof reads it: what it takes, and its words for what it does not. */
#include "compat/compat.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct file {
    uint8_t bytes[4096];
    size_t size;
};

static void put(struct file *f, uint64_t value, unsigned width)
{
    for (unsigned i = 0; i < width; i++) {
        f->bytes[f->size++] = (uint8_t)(value >> 8 * i);
    }
}

static struct file header(uint32_t version)
{
    struct file f = {"gmon", 4};
    put(&f, version, 4);
    put(&f, 0, 8);
    put(&f, 0, 4);
    return f;
}

static void histogram(struct file *f, uint64_t low, uint64_t high, uint32_t bins, const char *dimension)
{
    put(f, 0, 1);
    put(f, low, 8);
    put(f, high, 8);
    put(f, bins, 4);
    put(f, 100, 4);
    memcpy(f->bytes + f->size, dimension, strlen(dimension));
    f->size += 15;
    put(f, 's', 1);
    for (uint32_t i = 0; i < bins; i++) {
        put(f, i % 3, 2);
    }
}

static void arc(struct file *f, uint64_t from, uint64_t to, uint32_t calls)
{
    put(f, 1, 1);
    put(f, from, 8);
    put(f, to, 8);
    put(f, calls, 4);
}

/* Reads n bytes of f as the only file; says what was complained of, "" if nothing. */
static const char *read_alone(struct arena *a, const struct file *f, size_t n, struct compat_gmon *g)
{
    const char *complaint = NULL;
    uint8_t *exact = malloc(n + 1); /* so that a read behind the end is seen */
    memcpy(exact, f->bytes, n);
    compat_gmon_init(g, a, "gprof", 8);
    enum profd_status status = compat_gmon_read(g, "F", exact, n, &complaint);
    free(exact);
    cr_assert_eq(status == PROFD_OK, complaint == NULL);
    return complaint != NULL ? complaint : "";
}

/* Cut off anywhere: whole at the end of a record only, and the right words elsewhere. */
Test(compat_gmon, cut_off)
{
    struct arena *a = arena_new(0);
    struct file f = header(1);
    histogram(&f, 0x1000, 0x1040, 8, "seconds");
    size_t first = f.size;
    arc(&f, 0x1000, 0x1010, 7);
    for (size_t n = 0; n <= f.size; n++) {
        struct compat_gmon g;
        const char *said = read_alone(a, &f, n, &g);
        char samples[80];
        snprintf(samples, sizeof samples, "gprof: F: unexpected EOF after reading %zu of 8 samples\n",
                 n < 61 ? 0 : (n - 61) / 2);
        const char *expected = n < 20                                 ? "F: file too short to be a gmon file\n"
                               : n == 20 || n == first || n == f.size ? ""
                               : n < 61 || n > first                  ? "gprof: F: unexpected end of file\n"
                                                                      : samples;
        cr_expect_str_eq(said, expected, "%zu bytes: %s", n, said);
        cr_expect_eq(g.has_histogram, n > 20);
        cr_expect_eq(g.has_arcs, n > first);
    }
    arena_free(a);
}

Test(compat_gmon, words)
{
    struct arena *a = arena_new(0);
    struct compat_gmon g;
    struct file f = header(7);
    cr_expect_str_eq(read_alone(a, &f, f.size, &g), "gprof: file `F' has unsupported version 7\n");
    f = header(1);
    put(&f, 9, 1);
    cr_expect_str_eq(read_alone(a, &f, f.size, &g), "gprof: F: found bad tag 9 (file corrupted?)\n");
    f = header(1);
    histogram(&f, 0x1000, 0x1040, 8, "seconds");
    histogram(&f, 0x1000, 0x1040, 8, "ticks");
    cr_expect_str_eq(read_alone(a, &f, f.size, &g), "gprof: dimension unit changed between histogram records\n"
                                                    "gprof: from 'seconds'\ngprof: to 'ticks'\n");
    f = header(1);
    histogram(&f, 0x1000, 0x1040, 8, "seconds");
    histogram(&f, 0x1000, 0x1040, 4, "seconds");
    cr_expect_str_eq(read_alone(a, &f, f.size, &g), "gprof: different scales in histogram records");
    f = header(1);
    histogram(&f, 0x1000, 0x1040, 8, "seconds");
    histogram(&f, 0x1038, 0x1078, 8, "seconds");
    cr_expect_str_eq(read_alone(a, &f, f.size, &g), "gprof: overlapping histogram records\n");
    arena_free(a);
}

/* What the strict reader refuses: no records, no bins, rate 0. */
Test(compat_gmon, lenient)
{
    struct arena *a = arena_new(0);
    struct compat_gmon g;
    struct file f = header(0);
    cr_expect_str_eq(read_alone(a, &f, f.size, &g), "");
    cr_expect(!g.has_histogram && !g.has_arcs);
    histogram(&f, 0x1000, 0x1000, 0, "seconds");
    cr_expect_str_eq(read_alone(a, &f, f.size, &g), "");
    cr_expect_eq(g.counts.histogram_count, 1);
    arena_free(a);
}

/* 4.2BSD's format: ranges, size of header and bins, bins, arcs with wide counts; a tail is nothing. */
Test(compat_gmon, bsd)
{
    struct arena *a = arena_new(0);
    struct compat_gmon g;
    struct file f = {.size = 0};
    put(&f, 0x1000, 8);
    put(&f, 0x1010, 8);
    put(&f, 20 + 8, 4);
    for (unsigned i = 0; i < 4; i++) {
        put(&f, i, 2);
    }
    put(&f, 0x1004, 8);
    put(&f, 0x1008, 8);
    put(&f, UINT64_C(1) << 40, 8);
    put(&f, 0, 5);
    cr_expect_str_eq(read_alone(a, &f, f.size, &g), "");
    cr_expect_eq(g.counts.arc_count, 1);
    cr_expect_eq(g.counts.calls[0], UINT64_C(1) << 40);
    cr_expect_eq(g.counts.histograms[0].bins, 4);
    cr_expect_eq(g.counts.histograms[0].used, 3);
    cr_expect_str_eq(read_alone(a, &f, 24, &g), "gprof: unexpected EOF after reading 1/4 bins\n");
    f.size = 0; /* a byte less than nothing, in the same unit of two bytes */
    put(&f, 0x1001, 8);
    put(&f, 0x1000, 8);
    put(&f, 20 + 8, 4);
    put(&f, 0, 8);
    cr_expect_str_eq(read_alone(a, &f, f.size, &g), "gprof: file 'F' does not appear to be in gmon.out format\n");
    struct file text = {"#include <stdio.h>\nint main(void)\n{\n", 37};
    cr_expect_str_eq(read_alone(a, &text, text.size, &g), "gprof: file 'F' does not appear to be in gmon.out format\n");
    arena_free(a);
}
