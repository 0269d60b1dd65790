/* Whole listings, as the installed gprof 2.40 prints them for the same executable and profile. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/compat/bed.h"

static const char manual[] = "Flat profile:\n"
                             "\n"
                             "Each sample counts as 0.01 seconds.\n"
                             "  %   cumulative   self              self     total           \n"
                             " time   seconds   seconds    calls   s/call   s/call  name    \n"
                             " 52.85      1.02     1.02        3     0.34     0.34  b\n"
                             " 38.86      1.77     0.75        3     0.25     0.25  a\n"
                             "  8.29      1.93     0.16        1     0.16     1.93  main\n"
                             "  0.00      1.93     0.00        6     0.00     0.00  c\n"
                             "\f\n"
                             "\t\t\tCall graph\n"
                             "\n"
                             "\n"
                             "granularity: each sample hit covers 4 byte(s) for 0.52% of 1.93 seconds\n"
                             "\n"
                             "index % time    self  children    called     name\n"
                             "                0.16    1.77       1/1           start [2]\n"
                             "[1]    100.0    0.16    1.77       1         main [1]\n"
                             "                1.77    0.00       1/1           a <cycle 1> [5]\n"
                             "-----------------------------------------------\n"
                             "                                                 <spontaneous>\n"
                             "[2]    100.0    0.00    1.93                 start [2]\n"
                             "                0.16    1.77       1/1           main [1]\n"
                             "-----------------------------------------------\n"
                             "[3]     91.7    1.77    0.00       1+5       <cycle 1 as a whole> [3]\n"
                             "                1.02    0.00       3             b <cycle 1> [4]\n"
                             "                0.75    0.00       3             a <cycle 1> [5]\n"
                             "-----------------------------------------------\n"
                             "                                   3             a <cycle 1> [5]\n"
                             "[4]     52.8    1.02    0.00       3         b <cycle 1> [4]\n"
                             "                0.00    0.00       3/6           c [6]\n"
                             "                                   2             a <cycle 1> [5]\n"
                             "-----------------------------------------------\n"
                             "                                   2             b <cycle 1> [4]\n"
                             "                1.77    0.00       1/1           main [1]\n"
                             "[5]     38.9    0.75    0.00       3         a <cycle 1> [5]\n"
                             "                0.00    0.00       3/6           c [6]\n"
                             "                                   3             b <cycle 1> [4]\n"
                             "-----------------------------------------------\n"
                             "                0.00    0.00       3/6           a <cycle 1> [5]\n"
                             "                0.00    0.00       3/6           b <cycle 1> [4]\n"
                             "[6]      0.0    0.00    0.00       6         c [6]\n"
                             "-----------------------------------------------\n"
                             "\f\n"
                             "Index by function name\n"
                             "\n"
                             "   [5] a                       [6] c                       [3] <cycle 1>\n"
                             "   [4] b                       [1] main\n";

static const char orphan[] = "\t\t\tCall graph\n"
                             "\n"
                             "\n"
                             "granularity: each sample hit covers 4 byte(s) for 0.52% of 1.93 seconds\n"
                             "\n"
                             "index % time    self  children    called     name\n"
                             "                                   3             a <cycle 1> [2]\n"
                             "[1]     52.8    1.02    0.00       3         b <cycle 1> [1]\n"
                             "                0.00    0.00       3/6           c [5]\n"
                             "                                   2             a <cycle 1> [2]\n"
                             "-----------------------------------------------\n"
                             "                                   2             b <cycle 1> [1]\n"
                             "[2]     38.9    0.75    0.00       2         a <cycle 1> [2]\n"
                             "                0.00    0.00       3/6           c [5]\n"
                             "                                   3             b <cycle 1> [1]\n"
                             "-----------------------------------------------\n"
                             "                                                 <spontaneous>\n"
                             "[3]      8.3    0.16    0.00                 main [3]\n"
                             "-----------------------------------------------\n"
                             "                0.00    0.00       3/6           a <cycle 1> [2]\n"
                             "                0.00    0.00       3/6           b <cycle 1> [1]\n"
                             "[5]      0.0    0.00    0.00       6         c [5]\n"
                             "-----------------------------------------------\n"
                             "\f\n"
                             "Index by function name\n"
                             "\n"
                             "   [2] a                       [5] c                       (4) <cycle 1>\n"
                             "   [1] b                       [3] main\n";

static const char no_rate[] = "\t\t\tCall graph\n"
                              "\n"
                              "\n"
                              "granularity: each sample hit covers 0 byte(s) no time propagated\n"
                              "\n"
                              "index % time    self  children    called     name\n"
                              "                -nan    -nan       1/1           start [3]\n"
                              "[1]      0.0    -nan    -nan       1         main [1]\n"
                              "-----------------------------------------------\n"
                              "\f\n"
                              "Index by function name\n"
                              "\n"
                              "   [1] main\n";

static const char shared[] = "Flat profile:\n"
                             "\n"
                             "Each sample counts as 0.01 seconds.\n"
                             "  %   cumulative   self              self     total           \n"
                             " time   seconds   seconds    calls  Ts/call  Ts/call  name    \n"
                             " 37.50      0.38     0.38                             f1\n"
                             " 37.50      0.75     0.38                             f2\n"
                             " 25.00      1.00     0.25                             f3\n";

static const char label[] = "\t\t\tCall graph\n"
                            "\n"
                            "\n"
                            "granularity: each sample hit covers 4 byte(s) for 1.82% of 0.55 seconds\n"
                            "\n"
                            "index % time    self  children    called     name\n"
                            "                                  90             fact [1]\n"
                            "                0.30    0.00      17/17          a [2]\n"
                            "[1]     54.5    0.30    0.00      17+90      fact [1]\n"
                            "                                  90             fact [1]\n"
                            "-----------------------------------------------\n"
                            "                                                 <spontaneous>\n"
                            "[2]     54.5    0.00    0.30                 a [2]\n"
                            "                0.30    0.00      17/17          fact [1]\n"
                            "-----------------------------------------------\n"
                            "                                                 <spontaneous>\n"
                            "[3]     45.5    0.20    0.05                 label [3]\n"
                            "                0.05    0.00       2/2           end [4]\n"
                            "-----------------------------------------------\n"
                            "                0.05    0.00       2/2           label [3]\n"
                            "[4]      9.1    0.05    0.00       2         end [4]\n"
                            "-----------------------------------------------\n"
                            "\f\n"
                            "Index by function name\n"
                            "\n"
                            "   [4] end                     [1] fact                    [3] label\n";

static const struct compat_options brief = {.brief = true};

/* start, main, a, b and c, 16 bytes each, then data_start. */
static struct bed *manual_bed(void)
{
    static const char *const names[] = {"start", "main", "a", "b", "c"};
    struct bed *b = bed_new(0x1000, 0x1050);
    for (uint64_t i = 0; i < 5; i++) {
        bed_function(b, names[i], 0x1000 + 16 * i);
    }
    bed_symbol(b, "data_start", 0x500000, OBJECT_BIND_WEAK, OBJECT_TYPE_NONE)->flags = 0;
    return b;
}

/* The counts of gprof's manual, from start on or from the cycle on. */
static void manual_counts(struct bed *b, bool callers)
{
    bed_histogram(b, 0x1000, 0x1050, 20);
    bed_bin(b, 4, 16);
    bed_bin(b, 8, 75);
    bed_bin(b, 12, 102);
    if (callers) {
        bed_arc(b, 0x1004, 0x1010, 1);
        bed_arc(b, 0x1014, 0x1020, 1);
    }
    bed_arc(b, 0x1024, 0x1030, 3);
    bed_arc(b, 0x1034, 0x1020, 2);
    bed_arc(b, 0x1024, 0x1040, 3);
    bed_arc(b, 0x1034, 0x1040, 3);
}

Test(compat_listing, manual)
{
    struct bed *b = manual_bed();
    manual_counts(b, true);
    cr_expect_str_eq(bed_print(b, &brief), manual);
    bed_free(b);
}

/* Records may come in any number: halves add up to the same bytes. */
Test(compat_listing, repeated_records)
{
    struct bed *b = manual_bed();
    manual_counts(b, true);
    for (uint32_t i = 0; i < b->counts.arc_count; i++) {
        b->calls[i] *= 3;
    }
    bed_histogram(b, 0x1000, 0x1050, 20);
    bed_bin(b, 8, 150);
    bed_bin(b, 12, 204);
    bed_histogram(b, 0x1000, 0x1050, 20);
    bed_bin(b, 4, 32);
    const char *whole = bed_print(b, &brief);
    struct bed *c = manual_bed();
    for (int i = 0; i < 3; i++) {
        manual_counts(c, true);
    }
    cr_expect_str_eq(bed_print(c, &brief), whole);
    bed_free(c);
    bed_free(b);
}

/* Only libc calls into the cycle: no entry for it, its time is lost, the index names it in round brackets. */
Test(compat_listing, cycle_without_callers)
{
    struct bed *b = manual_bed();
    manual_counts(b, false);
    cr_expect_str_eq(bed_print(b, &(struct compat_options){.brief = true, .no_flat = true}), orphan);
    bed_free(b);
}

Test(compat_listing, no_histogram)
{
    struct bed *b = bed_new(0x1000, 0x1050);
    bed_function(b, "start", 0x1000);
    bed_function(b, "main", 0x1010);
    bed_symbol(b, "data_start", 0x500000, OBJECT_BIND_WEAK, OBJECT_TYPE_NONE)->flags = 0;
    bed_arc(b, 0x1000, 0x1010, 1);
    const char *text = bed_print(b, &brief);
#ifdef __x86_64__ /* the sign of 0/0 is the processor's */
    cr_expect_str_eq(text, no_rate);
#else
    cr_expect_not_null(strstr(text, "nan"));
#endif
    bed_free(b);
}

/* One bin over three functions is shared by overlap, in units of two bytes. */
Test(compat_listing, shared_bin)
{
    struct bed *b = bed_new(0x1000, 0x1020);
    bed_function(b, "f1", 0x1000);
    bed_function(b, "f2", 0x1006);
    bed_function(b, "f3", 0x100c);
    bed_symbol(b, "f4", 0x1010, OBJECT_BIND_GLOBAL, OBJECT_TYPE_NONE);
    bed_symbol(b, "data_start", 0x500000, OBJECT_BIND_WEAK, OBJECT_TYPE_NONE)->flags = 0;
    bed_histogram(b, 0x1000, 0x1020, 2);
    bed_bin(b, 0, 100);
    cr_expect_str_eq(bed_print(b, &brief), shared);
    bed_free(b);
}

/* Calls to a label go to the function in front of it; calls from it stay its own. */
Test(compat_listing, label)
{
    struct bed *b = bed_new(0x1000, 0x1040);
    bed_function(b, "a", 0x1000);
    bed_function(b, "fact", 0x1010);
    bed_symbol(b, "label", 0x1020, OBJECT_BIND_GLOBAL, OBJECT_TYPE_NONE);
    bed_symbol(b, "end", 0x1030, OBJECT_BIND_LOCAL, OBJECT_TYPE_FUNCTION);
    bed_symbol(b, "data_start", 0x500000, OBJECT_BIND_WEAK, OBJECT_TYPE_NONE)->flags = 0;
    bed_histogram(b, 0x1000, 0x1040, 16);
    bed_bin(b, 5, 30);
    bed_bin(b, 9, 20);
    bed_bin(b, 12, 5);
    bed_arc(b, 0x1004, 0x1010, 10);
    bed_arc(b, 0x1014, 0x1010, 90);
    bed_arc(b, 0x1005, 0x1021, 7);
    bed_arc(b, 0x1023, 0x1030, 2);
    cr_expect_str_eq(bed_print(b, &(struct compat_options){.brief = true, .no_flat = true}), label);
    bed_free(b);
}

/* The file of a static function stands in the index; the profiler's own functions count nowhere. */
Test(compat_listing, static_file_and_mcount)
{
    struct bed *b = manual_bed();
    struct object_symbol *s = bed_symbol(b, "helper", 0x1048, OBJECT_BIND_LOCAL, OBJECT_TYPE_FUNCTION);
    s->file = bed_name(b, "/src/lib/helper.c");
    s->line = 7;
    bed_function(b, "mcount", 0x104c);
    manual_counts(b, true);
    bed_bin(b, 18, 10);
    bed_bin(b, 19, 1000);
    bed_arc(b, 0x1044, 0x1048, 5);
    bed_arc(b, 0x1044, 0x104c, 5);
    const char *text = bed_print(b, &brief);
    cr_expect_not_null(strstr(text, " helper (helper.c) "), "%s", text);
    cr_expect_null(strstr(text, "  mcount\n"), "%s", text);
    cr_expect_not_null(strstr(text, "(8) mcount"), "%s", text);
    cr_expect_not_null(strstr(text, " 50.25      1.02     1.02        3 "), "%s", text); /* of 203 ticks, not 1203 */
    bed_free(b);
}

/* gprof cuts the index at six characters. */
Test(compat_listing, long_index)
{
    struct bed *b = bed_new(0x1000, 0x1000 + 16 * 10002);
    char name[16];
    for (uint64_t i = 0; i < 10002; i++) {
        snprintf(name, sizeof name, "f%05u", (unsigned)i);
        bed_function(b, name, 0x1000 + 16 * i);
    }
    for (uint64_t i = 0; i < 10001; i++) {
        bed_arc(b, 0x1000 + 16 * i + 4, 0x1000 + 16 * i + 16, 1);
    }
    bed_histogram(b, 0x1000, 0x1000 + 16 * 10002, 40008);
    bed_bin(b, 0, 3);
    const char *text = bed_print(b, &(struct compat_options){.brief = true, .no_flat = true});
    cr_expect_not_null(strstr(text, "\n[10000   0.0    0.00    0.00       1         f09999 [10000]\n"));
    cr_expect_not_null(strstr(text, "\n[9999]   0.0    0.00    0.00       1         f09998 [9999]\n"));
    bed_free(b);
}
