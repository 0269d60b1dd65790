/* The collector's counters among the counts: one geometry, one histogram, no ticks. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "proto/counts.h"
#include "proto/limits.h"
#include "proto/collector.h"
#include "tests/counts_sections.h"

static const struct counts_histogram SECONDS = {
    .bins = 9, .low = 0x1000, .high = 0x1024, .rate = 100, .dimension = "seconds", .abbreviation = 's'};

static struct counts_histogram words(uint32_t build)
{
    struct counts_histogram h;
    collector_make_histogram(&h, build);
    return h;
}

/* Columns of histograms without bins, as a sender would write them who knows no rules. */
static enum profd_status decode(const struct counts_histogram *h, uint32_t n, struct profd_error *e)
{
    uint8_t raw[400], *packed, *p = raw;
    for (uint32_t i = 0; i < n; i++) {
        size_t length = strlen(h[i].dimension);
        p = varint_put(varint_put(p, h[i].build), h[i].bins);
        p = varint_put(varint_put(p, h[i].low), h[i].high - h[i].low);
        p = varint_put(varint_put(p, h[i].rate), length);
        memcpy(p, h[i].dimension, length);
        p += length;
        *p++ = (uint8_t)h[i].abbreviation;
        p = varint_put(p, 0);
    }
    const struct counts_section s[2] = {{(const uint8_t[]){0, 0, 0, 0}, 4}, {raw, (size_t)(p - raw)}};
    const size_t size = sections_wrap(0, (const uint64_t[]){0, n, 0, 0, 0}, s, 2, sections_total(s, 2), &packed);
    struct counts c;
    enum profd_status status = counts_decode(packed, size, 3, &c, e);
    if (status == PROFD_OK) {
        counts_done(&c);
    }
    free(packed);
    return status;
}

Test(proto_collector, they_are_known_by_their_dimension)
{
    cr_assert(collector_is_dimension("collector"));
    cr_assert(!collector_is_dimension("seconds") && !collector_is_dimension("") &&
              !collector_is_dimension("collectors") && !collector_is_dimension("collecto"));
    struct counts_histogram h = words(7);
    cr_assert(collector_is_dimension(h.dimension) && h.build == 7 && h.low == 0 && h.high == 64 && h.bins == 64 &&
              h.rate == 1 && h.abbreviation == 'c');
}

Test(proto_collector, each_has_a_name_of_its_own)
{
    uint32_t named = 0;
    for (uint32_t i = 0; i < COLLECTOR_COUNTERS_MAX + 9; i++) {
        const char *name = collector_counter_name(i);
        if (name == NULL) {
            continue;
        }
        named++;
        size_t n = strlen(name);
        cr_assert_eq(collector_counter_is_time(i), n > 8 && strcmp(name + n - 8, "_seconds") == 0, "%s", name);
        for (uint32_t k = 0; k < i; k++) {
            cr_assert(collector_counter_name(k) == NULL || strcmp(collector_counter_name(k), name) != 0, "%s twice",
                      name);
        }
    }
    cr_assert_eq(named, 28);
    cr_assert_str_eq(collector_counter_name(COLLECTOR_CPU_NS), "cpu_seconds");
    cr_assert_null(collector_counter_name(UINT32_MAX));
    cr_assert(!collector_counter_is_time(UINT32_MAX) && !collector_counter_is_time(COLLECTOR_PROCESSES));
}

Test(proto_collector, only_their_own_geometry_is_decoded)
{
    struct profd_error e = {""};
    struct counts_histogram good = words(2), two[] = {SECONDS, good};
    cr_assert_eq(decode(&good, 1, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(decode(two, 2, &e), PROFD_OK, "%s", e.sentence);
    for (int rule = 0; rule < 6; rule++) {
        struct counts_histogram h = good;
        h.low += rule == 0 ? 1 : 0;
        h.high += rule == 0 || rule == 1 ? 1 : 0;
        h.bins += rule == 2 ? 1 : rule == 3 ? UINT32_MAX : 0; /* 65, 63 */
        h.rate += rule == 4 ? 1 : 0;
        h.abbreviation = rule == 5 ? 's' : 'c';
        cr_assert_eq(decode(&h, 1, &e), PROFD_MALFORMED, "rule %d", rule);
        cr_assert(strstr(e.sentence, "collector") != NULL &&
                      strstr(e.sentence, "it must be 0x0-0x40, 64 bins, rate 1, 'c'") != NULL,
                  "%s", e.sentence);
    }
}

Test(proto_collector, an_upload_has_them_once)
{
    struct profd_error e = {""};
    struct counts_histogram twice[] = {words(0), SECONDS, words(1)};
    cr_assert_eq(decode(twice, 3, &e), PROFD_MALFORMED);
    cr_assert(strstr(e.sentence, "histograms 0 and 2 are both of dimension collector") != NULL, "%s", e.sentence);
    struct counts c;
    uint8_t *out = NULL;
    size_t n = 0;
    cr_assert_eq(counts_init(&c, 3, 0, 0, NULL), PROFD_OK);
    memcpy(c.histograms, twice, sizeof twice);
    cr_assert_eq(counts_encode(&c, &out, &n, &e), PROFD_MALFORMED);
    c.histograms[2] = SECONDS;
    c.histograms[0].rate = 100;
    cr_assert_eq(counts_encode(&c, &out, &n, &e), PROFD_MALFORMED);
    cr_assert(out == NULL && n == 0);
    counts_done(&c);
}

/* Words of versions to come are kept, and none is a tick. */
Test(proto_collector, they_travel_and_are_no_ticks)
{
    struct counts c, back;
    struct profd_error e = {""};
    uint8_t *bytes;
    size_t n;
    uint64_t ticks, calls;
    cr_assert_eq(counts_init(&c, 2, 5, 1, NULL), PROFD_OK);
    c.histograms[0] = words(1);
    c.histograms[0].used = 3;
    c.histograms[1] = SECONDS;
    c.histograms[1].first = 3;
    c.histograms[1].used = 2;
    const uint32_t at[] = {0, COLLECTOR_END_NOT_SEEN, 63, 2, 5};
    const uint64_t number[] = {1, UINT64_MAX, 77, 10, 20};
    memcpy(c.bin_index, at, sizeof at);
    memcpy(c.bin_ticks, number, sizeof number);
    c.calls[0] = 4;
    cr_assert_eq(counts_encode(&c, &bytes, &n, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(counts_decode(bytes, n, 3, &back, &e), PROFD_OK, "%s", e.sentence);
    cr_assert(memcmp(back.bin_index, at, sizeof at) == 0 && memcmp(back.bin_ticks, number, sizeof number) == 0);
    cr_assert(collector_is_dimension(back.histograms[0].dimension) && back.histograms[0].build == 1);
    counts_totals(&back, &ticks, &calls);
    cr_assert(ticks == 30 && calls == 4);
    free(bytes);
    counts_done(&back);
    counts_done(&c);
}
