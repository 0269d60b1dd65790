/* gmon.out of four machines is read and written as the format says; each fault is refused with its offset. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/gmon.h"

static const struct gmon_format formats[] = {{false, 8}, {true, 8}, {false, 4}, {true, 4}};

static void make(struct counts *c)
{
    cr_assert_eq(counts_init(c, 2, 5, 4, NULL), PROFD_OK);
    c->histograms[0] = (struct counts_histogram){.bins = 7,
                                                 .low = 0x1000,
                                                 .high = 0x101c,
                                                 .rate = 100,
                                                 .dimension = "seconds",
                                                 .abbreviation = 's',
                                                 .first = 0,
                                                 .used = 3};
    c->histograms[1] = (struct counts_histogram){.bins = 3,
                                                 .low = 0x2000,
                                                 .high = 0xfffffff0,
                                                 .rate = 1000,
                                                 .dimension = "exactly15chars!",
                                                 .abbreviation = 'x',
                                                 .first = 3,
                                                 .used = 2};
    static const uint32_t index[] = {0, 3, 6, 0, 2};
    static const uint64_t ticks[] = {1, 65535, 256, 513, 7};
    static const uint64_t from[] = {0x1000, 0x1010, 0x1000, 0xffffffff}, to[] = {0x1004, 0x2000, 0x1004, 0};
    static const uint64_t calls[] = {1, 4294967295, 0, 77};
    memcpy(c->bin_index, index, sizeof index);
    memcpy(c->bin_ticks, ticks, sizeof ticks);
    memcpy(c->from, from, sizeof from);
    memcpy(c->to, to, sizeof to);
    memcpy(c->calls, calls, sizeof calls);
}

/* Field by field: the struct has padding. */
static void assert_same_histogram(const struct counts_histogram *a, const struct counts_histogram *b)
{
    cr_assert(a->build == b->build && a->bins == b->bins && a->low == b->low && a->high == b->high &&
              a->rate == b->rate);
    cr_assert(a->abbreviation == b->abbreviation && a->first == b->first && a->used == b->used);
    cr_assert_arr_eq(a->dimension, b->dimension, sizeof a->dimension);
}

static void assert_same(const struct counts *a, const struct counts *b)
{
    cr_assert_eq(a->histogram_count, b->histogram_count);
    cr_assert_eq(a->bin_count, b->bin_count);
    cr_assert_eq(a->arc_count, b->arc_count);
    for (uint32_t i = 0; i < a->histogram_count; i++) {
        assert_same_histogram(&a->histograms[i], &b->histograms[i]);
    }
    cr_assert_arr_eq(a->bin_index, b->bin_index, 4 * (size_t)a->bin_count);
    cr_assert_arr_eq(a->bin_ticks, b->bin_ticks, 8 * (size_t)a->bin_count);
    cr_assert_arr_eq(a->from, b->from, 8 * (size_t)a->arc_count);
    cr_assert_arr_eq(a->to, b->to, 8 * (size_t)a->arc_count);
    cr_assert_arr_eq(a->calls, b->calls, 8 * (size_t)a->arc_count);
    for (uint32_t i = 0; i < b->arc_count; i++) {
        cr_assert(b->from_build[i] == 0 && b->to_build[i] == 0);
    }
}

Test(proto_gmon, all_four_formats_come_back_as_they_were)
{
    for (size_t k = 0; k < 4; k++) {
        struct counts c, back;
        uint8_t *bytes;
        size_t n;
        struct profd_error e = {""};
        make(&c);
        cr_assert_eq(gmon_format_file(&c, &formats[k], &bytes, &n, &e), PROFD_OK, "%s", e.sentence);
        unsigned p = formats[k].pointer_size;
        cr_assert_eq(n, 20 + 2 * (1 + 2 * p + 24) + 2 * (7 + 3) + 4 * (1 + 2 * p + 4));
        cr_assert_eq(gmon_parse(bytes, n, &formats[k], &back, &e), PROFD_OK, "%s", e.sentence);
        assert_same(&c, &back);
        free(bytes);
        counts_done(&c);
        counts_done(&back);
    }
}

Test(proto_gmon, bytes_lie_where_the_format_says)
{
    struct counts c;
    uint8_t *b;
    size_t n;
    make(&c);
    cr_assert_eq(gmon_format_file(&c, &formats[1], &b, &n, NULL), PROFD_OK);
    static const uint8_t head[] = {'g', 'm', 'o', 'n', 0, 0, 0, 1, 0, 0, 0, 0, 0,    0, 0,
                                   0,   0,   0,   0,   0, 0, 0, 0, 0, 0, 0, 0, 0x10, 0};
    cr_assert_arr_eq(b, head, sizeof head);
    static const uint8_t tail[] = {0, 0, 0, 7, 0,   0, 0, 100, 's', 'e', 'c', 'o',  'n',  'd', 's', 0, 0, 0, 0,
                                   0, 0, 0, 0, 's', 0, 1, 0,   0,   0,   0,   0xff, 0xff, 0,   0,   0, 0, 1, 0};
    cr_assert_arr_eq(b + 37, tail, sizeof tail);
    free(b);
    counts_done(&c);
}

/* A file cut between two records is a valid shorter file: nothing in the format can tell. Everywhere else it is
 * refused. */
Test(proto_gmon, a_cut_at_every_offset_is_refused_with_the_offset)
{
    for (size_t k = 0; k < 4; k++) {
        struct counts c, back;
        uint8_t *bytes;
        size_t n, valid = 0, p2 = 2 * formats[k].pointer_size;
        make(&c);
        cr_assert_eq(gmon_format_file(&c, &formats[k], &bytes, &n, NULL), PROFD_OK);
        size_t ends[6] = {20 + 25 + p2 + 14, 0};
        ends[1] = ends[0] + 25 + p2 + 6;
        for (size_t i = 2; i < 6; i++) {
            ends[i] = ends[i - 1] + 5 + p2;
        }
        cr_assert_eq(ends[5], n);
        for (size_t cut = 0; cut < n; cut++) {
            struct profd_error e = {""};
            uint8_t *copy = malloc(cut + 1);
            memcpy(copy, bytes, cut);
            enum profd_status status = gmon_parse(copy, cut, &formats[k], &back, &e);
            bool boundary = false;
            for (size_t i = 0; i < 5; i++) {
                boundary |= ends[i] == cut;
            }
            cr_assert_eq(status, boundary ? PROFD_OK : PROFD_MALFORMED, "cut %zu: %s", cut, e.sentence);
            if (boundary) {
                valid++;
                counts_done(&back);
            } else {
                cr_assert(cut == 0 || strstr(e.sentence, "offset") != NULL, "cut %zu: %s", cut, e.sentence);
            }
            free(copy);
        }
        cr_assert_eq(valid, 5);
        free(bytes);
        counts_done(&c);
    }
}

static void refuse(const uint8_t *bytes, size_t n, const char *word)
{
    struct counts c = {0};
    struct profd_error e = {""};
    cr_assert_eq(gmon_parse(bytes, n, &formats[2], &c, &e), PROFD_MALFORMED, "%s", word);
    cr_assert(strstr(e.sentence, word) != NULL, "'%s' lacks '%s'", e.sentence, word);
    cr_assert_null(c.block);
}

#define HEADER 'g', 'm', 'o', 'n', 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
#define DIMENSION 's', 'e', 'c', 'o', 'n', 'd', 's', 0, 0, 0, 0, 0, 0, 0, 0, 's'
#define BYTES(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

Test(proto_gmon, each_fault_is_named)
{
    refuse(BYTES('g', 'm', 'o', 'x', 1, 0, 0, 0), "old BSD format");
    refuse((const uint8_t *)"\0\x10\0\0\0\x20\0\0\x0c\0\0\0", 12, "old BSD format");
    refuse((const uint8_t *)"\177ELF", 4, "magic");
    refuse(BYTES(HEADER), "no records");
    refuse(BYTES('g', 'm', 'o', 'n', 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), "version 2");
    refuse(BYTES('g', 'm', 'o', 'n', 0xff, 0xff, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), "sprof");
    refuse(BYTES(HEADER, 3), "tag 3 at offset 20");
    refuse(BYTES(HEADER, 'g'), "tag 103");
    refuse(BYTES(HEADER, 0, 0, 16, 0, 0, 0, 32, 0, 0, 9, 0, 0, 0, 100, 0, 0, 0, DIMENSION, 1, 0),
           "needs 18 more bytes");
    refuse(BYTES(HEADER, 0, 0, 16, 0, 0, 0, 32, 0, 0, 255, 255, 255, 255, 100, 0, 0, 0, DIMENSION, 1, 0), "8589934590");
    refuse(BYTES(HEADER, 0, 0, 32, 0, 0, 0, 32, 0, 0, 1, 0, 0, 0, 100, 0, 0, 0, DIMENSION, 1, 0), "not below high");
    refuse(BYTES(HEADER, 0, 0, 64, 0, 0, 0, 32, 0, 0, 1, 0, 0, 0, 100, 0, 0, 0, DIMENSION, 1, 0), "low 0x4000");
    refuse(BYTES(HEADER, 0, 0, 16, 0, 0, 0, 32, 0, 0, 0, 0, 0, 0, 100, 0, 0, 0, DIMENSION), "no bins");
    refuse(BYTES(HEADER, 0, 0, 16, 0, 0, 0, 32, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, DIMENSION, 1, 0), "0 ticks per second");
    refuse(BYTES(HEADER, 2, 255, 255, 255, 255, 0), "basic-block");
    refuse(BYTES('g', 'm', 'o', 'n', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0), "version 0");
    struct counts c;
    struct gmon_format odd = {false, 6};
    cr_assert_eq(gmon_parse(BYTES(HEADER, 2, 0, 0, 0, 0), &odd, &c, NULL), PROFD_REFUSED);
}

Test(proto_gmon, basic_blocks_are_stepped_over)
{
    struct counts c;
    struct profd_error e;
    cr_assert_eq(gmon_parse(BYTES(HEADER, 2, 1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 1, 9, 0, 0, 0, 8, 0, 0, 0, 7, 0, 0, 0),
                            &formats[2], &c, &e),
                 PROFD_OK, "%s", e.sentence);
    cr_assert_eq(c.arc_count, 1);
    cr_assert_eq(c.from[0], 9);
    cr_assert_eq(c.to[0], 8);
    cr_assert_eq(c.calls[0], 7);
    counts_done(&c);
}

Test(proto_gmon, what_a_record_cannot_hold_is_carried_by_repeated_records)
{
    for (size_t k = 0; k < 4; k++) {
        struct counts c, back;
        uint8_t *bytes;
        size_t n;
        make(&c);
        c.bin_ticks[1] = 3 * 65535 + 1;
        c.calls[1] = 2 * 4294967295u + 5ull;
        cr_assert_eq(gmon_format_file(&c, &formats[k], &bytes, &n, NULL), PROFD_OK);
        cr_assert_eq(gmon_parse(bytes, n, &formats[k], &back, NULL), PROFD_OK);
        cr_assert_eq(back.histogram_count, 5);
        uint64_t bins[3] = {0}, calls = 0;
        for (uint32_t i = 0; i < 4; i++) {
            for (uint32_t b = back.histograms[i].first; b < back.histograms[i].first + back.histograms[i].used; b++) {
                bins[back.bin_index[b] / 3] += back.bin_ticks[b];
            }
        }
        cr_assert_eq(bins[0], 1);
        cr_assert_eq(bins[1], 3 * 65535 + 1);
        cr_assert_eq(bins[2], 256);
        for (uint32_t i = 0; i < back.arc_count; i++) {
            calls += back.from[i] == 0x1010 ? back.calls[i] : 0;
        }
        cr_assert_eq(calls, c.calls[1]);
        free(bytes);
        counts_done(&c);
        counts_done(&back);
    }
}

Test(proto_gmon, what_no_file_can_hold_is_refused)
{
    struct counts c;
    uint8_t *bytes = NULL;
    size_t n;
    struct profd_error e;
    make(&c);
    c.to[0] = 0x100000000;
    cr_assert_eq(gmon_format_file(&c, &formats[2], &bytes, &n, &e), PROFD_REFUSED);
    cr_assert(strstr(e.sentence, "0x100000000") != NULL, "%s", e.sentence);
    c.to[0] = 0;
    c.to_build[2] = 1;
    cr_assert_eq(gmon_format_file(&c, &formats[0], &bytes, &n, &e), PROFD_REFUSED);
    c.to_build[2] = 0;
    c.from_build[2] = COUNTS_NOWHERE;
    cr_assert_eq(gmon_format_file(&c, &formats[0], &bytes, &n, &e), PROFD_REFUSED);
    c.from_build[2] = 0;
    c.histograms[1].build = 1;
    cr_assert_eq(gmon_format_file(&c, &formats[0], &bytes, &n, &e), PROFD_REFUSED);
    c.histograms[1].build = 0;
    c.calls[0] = UINT64_MAX;
    cr_assert_eq(gmon_format_file(&c, &formats[0], &bytes, &n, &e), PROFD_TOO_LARGE, "%s", e.sentence);
    c.calls[0] = 1;
    c.bin_ticks[0] = UINT64_MAX;
    cr_assert_eq(gmon_format_file(&c, &formats[0], &bytes, &n, &e), PROFD_TOO_LARGE, "%s", e.sentence);
    cr_assert_null(bytes);
    counts_done(&c);
}

static const char program[] =
    "#include <stdlib.h>\n"
    "volatile unsigned sink;\n"
    "__attribute__((noinline)) void leaf(unsigned i) { sink += i; }\n"
    "__attribute__((noinline)) void middle(void) { for (unsigned i = 0; i < 100; i++) leaf(i); }\n"
    "int main(void) { for (int i = 0; i < 1000; i++) middle(); return 0; }\n";

static void run_in(const char *folder, const char *command)
{
    char line[512];
    snprintf(line, sizeof line, "cd %s && %s", folder, command);
    int status = system(line);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s", line);
}

/* glibc's own file: one histogram of 4-byte bins, and the calls that the program made. */
Test(proto_gmon, a_real_file_is_read)
{
    char folder[] = "/tmp/proto_gmon.XXXXXX", path[64];
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/p.c", folder);
    FILE *f = fopen(path, "w");
    cr_assert_not_null(f);
    fwrite(program, 1, sizeof program - 1, f);
    fclose(f);
    run_in(folder, "gcc -pg -O1 -o p p.c && env -u GMON_OUT_PREFIX ./p"); /* Criterion sets it */
    snprintf(path, sizeof path, "%s/gmon.out", folder);
    static uint8_t bytes[1 << 20];
    f = fopen(path, "rb");
    cr_assert_not_null(f);
    size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    struct gmon_format native = {false, sizeof(void *)};
    native.big_endian = *(const uint8_t *)&(const uint16_t){1} == 0;
    struct counts c;
    struct profd_error e = {""};
    cr_assert_eq(gmon_parse(bytes, n, &native, &c, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(c.histogram_count, 1);
    cr_assert_eq(c.histograms[0].rate, 100);
    cr_assert_str_eq(c.histograms[0].dimension, "seconds");
    bool leaf = false, middle = false;
    for (uint32_t i = 0; i < c.arc_count; i++) {
        leaf |= c.calls[i] == 100000;
        middle |= c.calls[i] == 1000;
    }
    cr_assert(leaf && middle);
    uint8_t *again;
    size_t size;
    cr_assert_eq(gmon_format_file(&c, &native, &again, &size, NULL), PROFD_OK);
    cr_assert_eq(size, n);
    cr_assert_arr_eq(again, bytes, n);
    free(again);
    counts_done(&c);
    run_in("/tmp", (snprintf(path, sizeof path, "rm -r %s", folder), path));
}
