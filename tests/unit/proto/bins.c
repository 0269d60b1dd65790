/* bins.h beside glibc itself: its monstartup computes the scale, its signal handler counts addresses that we choose,
 * its _mcleanup writes the file. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include "proto/bins.h"
#include "proto/gmon.h"

void monstartup(unsigned long low, unsigned long high);
void _mcleanup(void);

#define LOW UINT64_C(0x10000000)

/* Different for the addresses of a bin, so that exchanged ones are noticed; 16-bit counters hold the sum. */
static unsigned times(uint64_t offset)
{
    return 1 + (unsigned)(offset * 7 % 11);
}

static void count_address(void (*handler)(int, siginfo_t *, void *), uint64_t address)
{
    ucontext_t context;
    siginfo_t info;
    memset(&context, 0, sizeof context);
    memset(&info, 0, sizeof info);
#if defined(__x86_64__)
    context.uc_mcontext.gregs[REG_RIP] = (greg_t)address;
#elif defined(__aarch64__)
    context.uc_mcontext.pc = address;
#endif
    for (unsigned i = 0; i < times(address - LOW); i++) {
        handler(SIGPROF, &info, &context);
    }
}

/* The gmon.out of a program with text [LOW, LOW + span) that was at each address of [LOW, end) so often. */
static void glibc_count(uint64_t span, uint64_t end, struct counts *out)
{
    struct itimerval never = {{0, 0}, {0, 0}};
    struct sigaction action;
    char path[64];
    monstartup(LOW, LOW + span);
    cr_assert_eq(setitimer(ITIMER_PROF, &never, NULL), 0); /* only our addresses */
    cr_assert_eq(sigaction(SIGPROF, NULL, &action), 0);
    for (uint64_t address = LOW; address < end; address++) {
        count_address(action.sa_sigaction, address);
    }
    _mcleanup();
    snprintf(path, sizeof path, "gmon.%d", (int)getpid());
    FILE *f = fopen(path, "rb");
    cr_assert_not_null(f);
    size_t capacity = 1 << 24;
    uint8_t *bytes = malloc(capacity);
    size_t size = fread(bytes, 1, capacity, f);
    fclose(f);
    unlink(path);
    struct gmon_format format = {.big_endian = false, .pointer_size = 8};
    struct profd_error e;
    cr_assert_eq(gmon_parse(bytes, size, &format, out, &e), PROFD_OK, "%s", e.sentence);
    free(bytes);
}

static void compare(uint64_t span)
{
    struct counts c = {0};
    uint64_t end = LOW + span + 64;
    glibc_count(span, end, &c);
    cr_assert_eq(c.histogram_count, 1);
    const struct counts_histogram *h = &c.histograms[0];
    cr_assert_eq(h->high - h->low, span);
    struct bins b = bins_make(LOW, LOW + span, h->bins);
    cr_assert_neq(b.scale, 0, "a span of %llu in %u bins is glibc's", (unsigned long long)span, h->bins);
    uint32_t at = h->first, last = h->first + h->used;
    for (uint32_t i = 0; i < h->bins; i++) {
        uint64_t low, high, ticks = at < last && c.bin_index[at] == i ? c.bin_ticks[at++] : 0, expected = 0;
        bins_range(&b, i, &low, &high);
        for (uint64_t address = low; address < high && address < end; address++) {
            if (bins_find(&b, address - LOW) == i) {
                expected += times(address - LOW);
            } else {
                cr_assert(h->bins >= span / 2, "only bins beyond all addresses are empty");
            }
        }
        cr_assert_eq(ticks, expected, "span %llu, bin %u at +%llu…+%llu: %llu ticks, not %llu",
                     (unsigned long long)span, i, (unsigned long long)(low - LOW), (unsigned long long)(high - LOW),
                     (unsigned long long)ticks, (unsigned long long)expected);
    }
    counts_done(&c);
}

static void setup(void)
{
    char folder[] = "/tmp/profd-bins-XXXXXX";
    cr_assert_not_null(mkdtemp(folder));
    cr_assert_eq(chdir(folder), 0);
    cr_assert_eq(setenv("GMON_OUT_PREFIX", "gmon", 1), 0);
}

static void teardown(void)
{
    char folder[64];
    if (getcwd(folder, sizeof folder) != NULL && chdir("/") == 0) {
        rmdir(folder);
    }
}

Test(bins, as_glibc_counts_them, .init = setup, .fini = teardown)
{
    for (uint64_t span = 8; span < 260; span += 4) {
        compare(span);
    }
    for (uint64_t span = 1964; span < 2100; span += 4) {
        compare(span);
    }
    compare(65532);
    compare(131076);
    compare(1048580);
    compare(999996);
}

Test(bins, other_geometries_have_bins_of_equal_width)
{
    struct bins b = bins_make(0x1000, 0x1000 + 20, 5); /* glibc would take 8 bins */
    uint64_t low, high;
    cr_assert_eq(b.scale, 0);
    bins_range(&b, 4, &low, &high);
    cr_assert_eq(low, 0x1010);
    cr_assert_eq(high, 0x1014);
    b = bins_make(0x1000, 0x1004, 4); /* glibc takes 4 as well, but these are exact addresses */
    cr_assert_eq(b.scale, 0);
    bins_range(&b, 3, &low, &high);
    cr_assert_eq(low, 0x1003);
    cr_assert_eq(high, 0x1004);
    b = bins_make(0x1000, 0x100a, 4); /* 2.5 bytes each */
    bins_range(&b, 1, &low, &high);
    cr_assert_eq(low, 0x1002);
    cr_assert_eq(high, 0x1005);
    cr_assert(bins_start(&b, 1) == 10 && b.unit == 4);
    b = bins_make(0x1000, 0x1002, 8); /* a quarter of a byte */
    bins_range(&b, 7, &low, &high);
    cr_assert_eq(low, 0x1001);
    cr_assert_eq(high, 0x1002);
}

Test(bins, at_the_end_of_the_address_space)
{
    uint64_t low, high, top = UINT64_MAX - 3;
    struct bins b = bins_make(top - 20, top, 8);
    cr_assert_neq(b.scale, 0);
    bins_range(&b, 7, &low, &high);
    cr_assert(low < high && high >= top);
    b = bins_make(0, UINT64_MAX, UINT32_MAX);
    bins_range(&b, UINT32_MAX - 1, &low, &high);
    cr_assert_eq(high, UINT64_MAX);
    cr_assert(low < high);
}
