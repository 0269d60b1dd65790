/* The stored encoding of counts is lossless; cut or changed bytes are refused with the rule, at bounded cost. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/counts.h"
#include "proto/limits.h"
#include "tests/counts_sections.h"
#include "tests/rounds.h"

static uint64_t state;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* A number of any magnitude. */
static uint64_t draw_any(void)
{
    return draw() >> (draw() % 64);
}

static void fill_random(struct counts *c, uint32_t builds)
{
    uint32_t histograms = (uint32_t)(draw() % 4), per = (uint32_t)(draw() % 200), arcs = (uint32_t)(draw() % 300);
    cr_assert_eq(counts_init(c, histograms, histograms * per, arcs, NULL), PROFD_OK);
    for (uint32_t i = 0; i < histograms; i++) {
        struct counts_histogram *h = &c->histograms[i];
        *h = (struct counts_histogram){.build = (uint32_t)(draw() % builds),
                                       .low = draw_any() >> 1,
                                       .rate = 1 + (uint32_t)(draw() % LIMIT_RATE),
                                       .dimension = "seconds",
                                       .abbreviation = 's',
                                       .first = i * per,
                                       .used = per};
        h->high = h->low + 1 + (draw_any() >> 1);
        uint32_t next = 0;
        for (uint32_t k = h->first; k < h->first + per; k++) {
            c->bin_index[k] = next + (uint32_t)(draw() % 3 ? 0 : draw() % 100000);
            next = c->bin_index[k] + 1;
            c->bin_ticks[k] = draw() % 4 ? 1 + draw() % 5 : 1 + (draw_any() >> 1);
        }
        h->bins = next + 1 + (uint32_t)(draw() % 1000);
    }
    for (uint32_t i = 0; i < arcs; i++) {
        c->from_build[i] = draw() % 50 ? 0 : draw() % 3 ? (uint32_t)(draw() % builds) : COUNTS_NOWHERE;
        c->to_build[i] = draw() % 5 ? (uint32_t)(draw() % builds) : COUNTS_NOWHERE;
        c->from[i] = draw() % 4 ? 0x400000 + 16 * (draw() % 1000) : draw_any();
        c->to[i] = draw() % 4 ? 0x400000 + draw() % 16000 : draw_any();
        c->calls[i] = draw() % 10 ? draw() % 200 : draw_any();
    }
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
    cr_assert_arr_eq(a->from_build, b->from_build, 4 * (size_t)a->arc_count);
    cr_assert_arr_eq(a->to_build, b->to_build, 4 * (size_t)a->arc_count);
    cr_assert_arr_eq(a->from, b->from, 8 * (size_t)a->arc_count);
    cr_assert_arr_eq(a->to, b->to, 8 * (size_t)a->arc_count);
    cr_assert_arr_eq(a->calls, b->calls, 8 * (size_t)a->arc_count);
}

Test(proto_counts, random_counts_come_back_as_they_were)
{
    for (uint64_t seed = 1; seed <= rounds(600); seed++) {
        state = seed * 0x9e3779b97f4a7c15u;
        struct counts c, back;
        uint8_t *bytes;
        size_t n;
        struct profd_error e = {""};
        fill_random(&c, 7);
        cr_assert_eq(counts_encode(&c, &bytes, &n, &e), PROFD_OK, "seed %" PRIu64 ": %s", seed, e.sentence);
        cr_assert_eq(counts_decode(bytes, n, 7, &back, &e), PROFD_OK, "seed %" PRIu64 ": %s", seed, e.sentence);
        assert_same(&c, &back);
        free(bytes);
        counts_done(&c);
        counts_done(&back);
    }
}

Test(proto_counts, nothing_is_counts_too)
{
    struct counts c = {0}, back;
    uint8_t *bytes;
    size_t n;
    uint64_t ticks = 9, calls = 9;
    cr_assert_eq(counts_encode(&c, &bytes, &n, NULL), PROFD_OK);
    cr_assert_eq(counts_decode(bytes, n, 0, &back, NULL), PROFD_OK);
    cr_assert_eq(back.arc_count, 0);
    counts_totals(&back, &ticks, &calls);
    cr_assert_eq(ticks, 0);
    cr_assert_eq(calls, 0);
    counts_done(&back);
    counts_done(&back);
    free(bytes);
}

Test(proto_counts, every_cut_and_many_changes_are_refused_or_valid)
{
    for (uint64_t seed = 1; seed <= rounds(20); seed++) {
        state = seed * 0x9e3779b97f4a7c15u;
        struct counts c, back = {0};
        uint8_t *bytes;
        size_t n;
        fill_random(&c, 3);
        cr_assert_eq(counts_encode(&c, &bytes, &n, NULL), PROFD_OK);
        for (size_t cut = 0; cut < n; cut++) {
            struct profd_error e = {""};
            uint8_t *copy = malloc(cut + 1);
            memcpy(copy, bytes, cut);
            enum profd_status status = counts_decode(copy, cut, 3, &back, &e);
            cr_assert_eq(status, PROFD_MALFORMED, "seed %" PRIu64 " cut %zu: %s", seed, cut, e.sentence);
            cr_assert_gt(strlen(e.sentence), 5);
            free(copy);
        }
        for (int i = 0; i < 300; i++) {
            size_t at = draw() % n;
            uint8_t old = bytes[at];
            bytes[at] ^= (uint8_t)(1 + draw() % 255);
            if (counts_decode(bytes, n, 3, &back, NULL) == PROFD_OK) {
                counts_done(&back);
            }
            bytes[at] = old;
        }
        cr_assert_null(back.block);
        free(bytes);
        counts_done(&c);
    }
}

#define BYTES(...)                                                                                                     \
    {                                                                                                                  \
        (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})                                         \
    }
#define NO_ARCS BYTES(0, 0, 0, 0)
#define SIZES(...)                                                                                                     \
    (const uint64_t[])                                                                                                 \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

static enum profd_status decode_sections(const uint64_t sizes[5], const struct counts_section s[2], uint32_t builds,
                                         uint64_t stated, struct profd_error *e)
{
    uint8_t *packed;
    struct counts c;
    const size_t n = sections_wrap(0, sizes, s, 2, stated, &packed);
    enum profd_status status = counts_decode(packed, n, builds, &c, e);
    if (status == PROFD_OK) {
        counts_done(&c);
    }
    free(packed);
    return status;
}

static void refuse(const uint64_t sizes[5], struct counts_section arcs, struct counts_section histograms,
                   enum profd_status status, const char *word)
{
    struct profd_error e = {""};
    const struct counts_section s[2] = {arcs, histograms};
    cr_assert_eq(decode_sections(sizes, s, 2, sections_total(s, 2), &e), status, "%s (wanted %s)", e.sentence, word);
    cr_assert(strstr(e.sentence, word) != NULL, "'%s' lacks '%s'", e.sentence, word);
}

/* One histogram of two bins, with numbers of build b as given: bins, low, span, rate, no dimension, 's', used; then the
 * gaps and the ticks. */
#define HISTOGRAM(b, bins, low, span, rate, used, gap, ticks)                                                          \
    BYTES(b, bins, low, span, rate, 0, 's', used, 1, 0, gap, 1, 1, ticks)

static void refuse_histogram(struct counts_section histogram, enum profd_status status, const char *word)
{
    refuse(SIZES(0, 1, 2, 0, 0), (struct counts_section)NO_ARCS, histogram, status, word);
}

Test(proto_counts, each_rule_on_histograms_has_its_sentence)
{
#define REFUSE(status, word, ...) refuse_histogram((struct counts_section)__VA_ARGS__, status, word)
    struct profd_error e = {""};
    const struct counts_section good[2] = {NO_ARCS, HISTOGRAM(0, 5, 1, 4, 100, 2, 3, 1)};
    cr_assert_eq(decode_sections(SIZES(0, 1, 2, 0, 0), good, 2, sections_total(good, 2), &e), PROFD_OK, "%s",
                 e.sentence);
    REFUSE(PROFD_MALFORMED, "build 2: the upload has 2", HISTOGRAM(2, 5, 1, 4, 100, 2, 3, 1));
    REFUSE(PROFD_MALFORMED, "beyond the last of 5", HISTOGRAM(0, 5, 1, 4, 100, 2, 4, 1));
    REFUSE(PROFD_MALFORMED, "0 ticks", HISTOGRAM(0, 5, 1, 4, 100, 2, 3, 0));
    REFUSE(PROFD_MALFORMED, "1 non-zero bins where 2", HISTOGRAM(0, 5, 1, 4, 100, 1, 3, 1));
    REFUSE(PROFD_MALFORMED, "3 non-zero bins where 2", HISTOGRAM(0, 5, 1, 4, 100, 3, 3, 1));
    REFUSE(PROFD_MALFORMED, "2 non-zero bins of 1", HISTOGRAM(0, 1, 1, 4, 100, 2, 0, 1));
    REFUSE(PROFD_MALFORMED, "not below high", HISTOGRAM(0, 5, 1, 0, 100, 2, 3, 1));
    REFUSE(PROFD_MALFORMED, "no bins", HISTOGRAM(0, 0, 1, 4, 100, 2, 3, 1));
    REFUSE(PROFD_MALFORMED, "rate of 0", HISTOGRAM(0, 5, 1, 4, 0, 2, 3, 1));
    REFUSE(PROFD_MALFORMED, "not below high", /* low + span wraps */
           BYTES(0, 5, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1, 100, 0, 's', 2, 1, 0, 3, 1, 1, 1));
    REFUSE(PROFD_TOO_LARGE, "4294967295 bins", BYTES(0, 0xff, 0xff, 0xff, 0xff, 0x0f, 1, 4, 100, 0, 's', 2, 0, 0, 0));
    REFUSE(PROFD_TOO_LARGE, "32 bits", BYTES(0, 0xff, 0xff, 0xff, 0xff, 0x1f, 1, 4, 100, 0, 's', 2, 0, 0, 0));
    REFUSE(PROFD_MALFORMED, "printable", BYTES(0, 5, 1, 4, 100, 1, 10, 's', 2, 1, 0, 3, 1, 1, 1));
    REFUSE(PROFD_MALFORMED, "printable", BYTES(0, 5, 1, 4, 100, 0, 200, 2, 1, 0, 3, 1, 1, 1));
    REFUSE(PROFD_MALFORMED, "inside a histogram", BYTES(0, 5, 1, 4, 100, 16, 's', 2, 1, 0, 3, 1, 1, 1));
    REFUSE(PROFD_MALFORMED, "1 bytes follow the histograms", BYTES(0, 5, 1, 4, 100, 0, 's', 2, 1, 0, 3, 1, 1, 1, 9));
    REFUSE(PROFD_MALFORMED, "inside bins", BYTES(0, 5, 1, 4, 100, 0, 's', 2, 9, 0, 3, 1, 1, 1));
    REFUSE(PROFD_MALFORMED, "inside ticks", BYTES(0, 5, 1, 4, 100, 0, 's', 2, 1, 0, 3, 9, 1, 1));
    refuse(SIZES(0, 0, 16777215, 0, 0), (struct counts_section)NO_ARCS, (struct counts_section)BYTES(0),
           PROFD_MALFORMED, "16777215 bins");
    refuse(SIZES(0, 0, 16777217, 0, 0), (struct counts_section)NO_ARCS, (struct counts_section)BYTES(0),
           PROFD_TOO_LARGE, "16777217 non-zero bins, at most 16777216");
    refuse(SIZES(0, 4097, 0, 0, 0), (struct counts_section)NO_ARCS, (struct counts_section)BYTES(0), PROFD_TOO_LARGE,
           "4097 histograms, at most 4096");
#undef REFUSE
}

static void refuse_arcs(uint64_t arcs, struct counts_section section, enum profd_status status, const char *word)
{
    refuse(SIZES(arcs, 0, 0, 0, 0), section, (struct counts_section){NULL, 0}, status, word);
}

/* A place: number of places and runs, length, build + 1, first address, the column of gaps. */
#define PLACE(build) 1, 1, 1, build, 7, 0

Test(proto_counts, each_rule_on_arcs_has_its_sentence)
{
#define REFUSE(arcs, word, ...) refuse_arcs(arcs, (struct counts_section)BYTES(__VA_ARGS__), PROFD_MALFORMED, word)
    struct profd_error e = {""};
    const struct counts_section good[2] = {BYTES(PLACE(1), 0, PLACE(1), 0, 1, 5), {NULL, 0}};
    cr_assert_eq(decode_sections(SIZES(1, 0, 0, 0, 0), good, 2, sections_total(good, 2), &e), PROFD_OK, "%s",
                 e.sentence);
    REFUSE(1, "arc of build 2: the upload has 2", PLACE(3), 0, PLACE(1), 0, 1, 5);
    REFUSE(1, "arc of build 2: the upload has 2", PLACE(1), 0, PLACE(3), 0, 1, 5);
    REFUSE(1, "run of 2 places where 1", 1, 1, 2, 1, 7, 0, 0, PLACE(1), 0, 1, 5);
    REFUSE(1, "run of 0 places where 1", 1, 1, 0, 1, 7, 0, 0, PLACE(1), 0, 1, 5);
    REFUSE(1, "hold 0 places of 1", 1, 0, 0, 0, PLACE(1), 0, 1, 5);
    REFUSE(1, "2 places of 1 rows", 2, 1, 2, 1, 7, 1, 0, 1, 0, PLACE(1), 0, 1, 5);
    REFUSE(2, "do not ascend", 2, 1, 2, 1, 7, 0, 0, PLACE(1), 0, 1, 5, 5);
    REFUSE(2, "comes after one of build 1", 2, 2, 1, 2, 7, 1, 1, 7, 0, 0, PLACE(1), 0, 1, 5, 5);
    REFUSE(1, "the caller of an arc is none of 1 places", PLACE(1), 1, 2, PLACE(1), 0, 1, 5);
    REFUSE(1, "the callee of an arc is none of 1 places", PLACE(1), 0, PLACE(1), 1, 1, 1, 5);
    REFUSE(1, "the addresses of places", 1, 1, 1, 1, 7, 9);
    REFUSE(1, "runs of builds", 1, 1, 1, 1, 0x80);
    REFUSE(1, "the callers of arcs", PLACE(1), 9);
    REFUSE(1, "the callees of arcs", PLACE(1), 0, PLACE(1), 9);
    REFUSE(1, "the counts of arcs", PLACE(1), 0, PLACE(1), 0, 9);
    REFUSE(1, "1 bytes follow the arcs", PLACE(1), 0, PLACE(1), 0, 1, 5, 9);
    REFUSE(9, "9 arcs, 0 histograms with 0 bins", 0, 0, 0, 0);
    refuse_arcs(4194305, (struct counts_section)NO_ARCS, PROFD_TOO_LARGE, "4194305 arcs, at most 4194304");
#undef REFUSE
}

Test(proto_counts, the_envelope_is_judged_before_memory_is_taken)
{
    struct profd_error e;
    struct counts c;
    const struct counts_section none[2] = {NO_ARCS, {NULL, 0}};
    cr_assert_eq(decode_sections(SIZES(0, 0, 0, 0, 0), none, 1, 4, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(decode_sections(SIZES(0, 0, 0, 0, 0), none, 1, 3, &e), PROFD_MALFORMED);
    cr_assert_eq(decode_sections(SIZES(0, 0, 0, 0, 0), none, 1, LIMIT_COUNTS_RAW, &e), PROFD_MALFORMED);
    cr_assert(strstr(e.sentence, "536870912") != NULL, "%s", e.sentence);
    cr_assert_eq(decode_sections(SIZES(0, 0, 0, 0, 0), none, 1, (uint64_t)LIMIT_COUNTS_RAW + 1, &e), PROFD_TOO_LARGE);
    cr_assert_eq(decode_sections(SIZES(0, 0, 0, 0, 0), none, 1, UINT64_MAX, &e), PROFD_TOO_LARGE);
    cr_assert_eq(counts_decode((const uint8_t *)"", 0, 1, &c, &e), PROFD_MALFORMED);
    cr_assert_eq(counts_decode((const uint8_t *)"\3\3xyz", 5, 1, &c, &e), PROFD_MALFORMED);
    cr_assert(strstr(e.sentence, "format 3") != NULL, "%s", e.sentence);
    cr_assert_eq(counts_decode((const uint8_t *)"\1\3\4yz", 5, 1, &c, &e), PROFD_MALFORMED);
    cr_assert(strstr(e.sentence, "flags 4") != NULL, "%s", e.sentence);
}

Test(proto_counts, what_could_not_be_decoded_is_not_encoded)
{
    uint8_t *out = NULL;
    size_t n = 3;
    struct profd_error e;
    struct counts c;
    cr_assert_eq(counts_init(&c, 1, 2, 0, NULL), PROFD_OK);
    const struct counts_histogram good = {
        .bins = 9, .low = 1, .high = 9, .rate = 1, .dimension = "seconds", .abbreviation = 's', .used = 2};
    c.histograms[0] = good;
    c.bin_index[1] = 8;
    c.bin_ticks[0] = c.bin_ticks[1] = 1;
    cr_assert_eq(counts_encode(&c, &out, &n, &e), PROFD_OK, "%s", e.sentence);
    free(out);
    out = NULL;
    c.bin_index[1] = 9;
    cr_assert_eq(counts_encode(&c, &out, &n, &e), PROFD_REFUSED);
    c.bin_index[1] = 0;
    cr_assert_eq(counts_encode(&c, &out, &n, &e), PROFD_REFUSED);
    c.bin_index[1] = 8;
    c.bin_ticks[1] = 0;
    cr_assert_eq(counts_encode(&c, &out, &n, &e), PROFD_REFUSED);
    c.bin_ticks[1] = 1;
    c.histograms[0].first = 1;
    cr_assert_eq(counts_encode(&c, &out, &n, &e), PROFD_REFUSED);
    c.histograms[0] = good;
    memset(c.histograms[0].dimension, 'x', 16);
    cr_assert_eq(counts_encode(&c, &out, &n, &e), PROFD_MALFORMED);
    cr_assert_null(out);
    counts_done(&c);
}

/* An encoding has a run for each build, and space for those that an upload may have. */
Test(proto_counts, more_builds_than_an_upload_may_have_are_not_encoded)
{
    struct counts c;
    struct profd_error e;
    uint8_t *out = NULL;
    size_t n = 3;
    cr_assert_eq(counts_init(&c, 0, 0, 8000, NULL), PROFD_OK);
    for (uint32_t i = 0; i < 8000; i++) {
        c.from_build[i] = i;
    }
    cr_assert_eq(counts_encode(&c, &out, &n, &e), PROFD_REFUSED);
    cr_assert(strstr(e.sentence, "arc 1024 from build 1024") != NULL, "%s", e.sentence);
    for (uint32_t i = 0; i < 8000; i++) {
        c.from_build[i] = i % LIMIT_BUILDS;
        c.to_build[i] = i == 5 ? LIMIT_BUILDS : COUNTS_NOWHERE;
    }
    cr_assert_eq(counts_encode(&c, &out, &n, &e), PROFD_REFUSED);
    cr_assert(out == NULL && n == 3);
    c.to_build[5] = 0;
    cr_assert_eq(counts_encode(&c, &out, &n, &e), PROFD_OK, "%s", e.sentence);
    free(out);
    counts_done(&c);
}

Test(proto_counts, totals_stop_at_the_limit)
{
    struct counts c;
    uint64_t ticks, calls;
    cr_assert_eq(counts_init(&c, 1, 2, 3, NULL), PROFD_OK);
    c.histograms[0] = (struct counts_histogram){
        .bins = 2, .high = 2, .rate = 1, .dimension = "seconds", .abbreviation = 's', .used = 2};
    c.bin_ticks[0] = 5;
    c.bin_ticks[1] = 6;
    c.calls[0] = c.calls[1] = (uint64_t)INT64_MAX;
    c.calls[2] = UINT64_MAX;
    counts_totals(&c, &ticks, &calls);
    cr_assert_eq(ticks, 11);
    cr_assert_eq(calls, (uint64_t)INT64_MAX);
    counts_done(&c);
}

/* A profile of the shape that DESIGN 9 measures: nearly 3,000 bins, 1,149 arcs between 440 functions. */
Test(proto_counts, a_usual_profile_takes_few_bytes)
{
    struct counts c;
    state = 42;
    cr_assert_eq(counts_init(&c, 1, 2900, 1149, NULL), PROFD_OK);
    c.histograms[0] = (struct counts_histogram){.bins = 46236,
                                                .low = 0x4000,
                                                .high = 0x4000 + 4 * 46236,
                                                .rate = 100,
                                                .dimension = "seconds",
                                                .abbreviation = 's',
                                                .used = 2900};
    for (uint32_t i = 0; i < 2900; i++) {
        c.bin_index[i] = i == 0 ? 100 : c.bin_index[i - 1] + 1 + (draw() % 8 ? 0 : (uint32_t)(draw() % 100));
        c.bin_ticks[i] = 1 + (draw() % 6 == 0 ? draw() % 8 : 0);
    }
    for (uint32_t i = 0; i < 1149; i++) {
        c.from[i] = i == 0 ? 0x4000 : c.from[i - 1] + 16 * (draw() % 16);
        c.to[i] = 0x4000 + 400 * (draw() % 440);
        c.calls[i] = 1 + (draw() % 300 >> draw() % 8);
    }
    uint8_t *bytes;
    size_t n;
    cr_assert_eq(counts_encode(&c, &bytes, &n, NULL), PROFD_OK);
    cr_assert_leq(n, 6200, "%zu bytes", n);
    free(bytes);
    counts_done(&c);
}
