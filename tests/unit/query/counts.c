/* /api/v1/builds/{id}/counts: the sum itself, as it is stored. */
#include "proto/gmon.h"
#include "tests/unit/query/fleet.h"

#define COUNTS "/api/v1/builds/4f2a/counts"
#define TYPE "application/vnd.profd.counts"

/* The counts of a request that must succeed. */
static struct counts counts_get(struct store *s, const char *target)
{
    struct counts c;
    struct profd_error e;
    struct fleet_answer answer = fleet_ask(s, target);
    cr_assert_eq(answer.http, 200, "%s: %s", target, answer.body);
    cr_assert_eq(strncmp(answer.type, TYPE, strlen(TYPE)), 0, "%s", answer.type);
    cr_assert_neq(answer.etag[0], '\0');
    cr_assert_eq(counts_decode((const uint8_t *)answer.body, answer.size, 1, &c, &e), PROFD_OK, "%s: %s", target,
                 e.sentence);
    free(answer.body);
    return c;
}

/* The request is answered with that status, and the words stand in it. */
static void refused(struct store *s, const char *target, int http, const char *words)
{
    struct fleet_answer answer = fleet_ask(s, target);
    cr_assert_eq(answer.http, http, "%s: %d %s", target, answer.http, answer.body);
    json_t *root = fleet_parse(&answer);
    cr_assert_not_null(strstr(fleet_text(root, "detail"), words), "%s: %s", target, answer.body);
    json_decref(root);
    free(answer.body);
}

static void expect_arcs(const struct counts *c, const int *order, const uint64_t *calls, uint32_t n)
{
    cr_assert_eq(c->arc_count, n, "%u arcs", c->arc_count);
    for (uint32_t i = 0; i < n; i++) {
        const struct fleet_arc *arc = &FLEET_ARCS[order[i]];
        cr_assert(c->from[i] == arc->from && c->to[i] == arc->to && c->calls[i] == calls[i] && c->from_build[i] == 0 &&
                      c->to_build[i] == 0,
                  "arc %u: 0x%llx to 0x%llx, %llu", i, (unsigned long long)c->from[i], (unsigned long long)c->to[i],
                  (unsigned long long)c->calls[i]);
    }
}

/* gprof breaks ties by the order of the records. */
Test(query_counts, sum_in_order_of_arrival)
{
    struct store *s = fleet_open();
    struct fleet_upload u = fleet_cycle(1);
    u.arcs = FLEET_ARCS + 3;
    u.arc_count = 3;
    fleet_put(s, &u);
    u = fleet_cycle(2);
    fleet_put(s, &u);
    struct counts c = counts_get(s, COUNTS);
    expect_arcs(&c, (const int[]){3, 4, 5, 0, 1, 2}, (const uint64_t[]){4, 6, 6, 1, 1, 3}, 6);
    cr_assert_eq(c.histogram_count, 1);
    const struct counts_histogram *h = &c.histograms[0];
    cr_assert(h->low == F_START && h->high == F_END && h->bins == 24 && h->rate == 100 && h->abbreviation == 's');
    cr_assert_str_eq(h->dimension, "seconds");
    cr_assert_eq(h->used, 3);
    static const uint64_t BINS[3][2] = {{4, 32}, {8, 150}, {12, 204}};
    for (uint32_t i = 0; i < 3; i++) {
        cr_assert(c.bin_index[i] == BINS[i][0] && c.bin_ticks[i] == BINS[i][1], "bin %u: %llu", c.bin_index[i],
                  (unsigned long long)c.bin_ticks[i]);
    }
    counts_done(&c);
    store_close(s);
}

Test(query_counts, media_type_tells_the_layout)
{
    static const struct {
        uint8_t bits;
        bool big_endian;
        const char *type;
    } CASES[] = {
        {0, false, TYPE},
        {64, false, TYPE "; bits=64; endian=little"},
        {64, true, TYPE "; bits=64; endian=big"},
        {32, false, TYPE "; bits=32; endian=little"},
        {32, true, TYPE "; bits=32; endian=big"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct store *s = fleet_open();
        struct fleet_upload u = fleet_cycle(1);
        fleet_put(s, &u);
        if (CASES[i].bits > 0) {
            fleet_put_layout(s, PROGRAM, 1000, CASES[i].bits, CASES[i].big_endian);
        }
        struct fleet_answer answer = fleet_ask(s, COUNTS);
        cr_assert_eq(answer.http, 200, "%s", answer.body);
        cr_assert_str_eq(answer.type, CASES[i].type);
        free(answer.body);
        store_close(s);
    }
}

Test(query_counts, selects_as_reports_do)
{
    struct store *s = fleet_open();
    for (uint32_t i = 1; i <= 4; i++) {
        struct fleet_upload u = fleet_cycle(i);
        u.end = FLEET_NOW - i * 30 * MINUTE;
        u.host = i % 2 ? "db1" : "db2";
        u.uid = i < 4 ? 1000 : 0;
        fleet_put(s, &u);
    }
    static const struct {
        const char *parameters;
        uint64_t uploads;
    } CASES[] = {
        {"", 4},
        {"?since=now-1h", 2},
        {"?until=now-1h", 2},
        {"?label.host=db1", 2},
        {"?match=host!=%22db1%22", 2},
        {"?uid=0", 1},
        {"?uid=1000&since=-1h", 2},
        {"?scope=everywhere", 4},
        {"?scope=build", 4},
        {"?geometry=1&since=-61m", 2},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char target[200];
        uint64_t ticks, calls;
        snprintf(target, sizeof target, COUNTS "%s", CASES[i].parameters);
        struct counts c = counts_get(s, target);
        counts_totals(&c, &ticks, &calls);
        cr_assert(ticks == 193 * CASES[i].uploads && calls == 13 * CASES[i].uploads, "%s: %llu ticks", target,
                  (unsigned long long)ticks);
        counts_done(&c);
    }
    struct store_scope own = {.uid = 1000}, other = {.uid = 7};
    cr_assert_eq(fleet_status(s, COUNTS "?uid=0", "", own), 403);
    cr_assert_eq(fleet_status(s, COUNTS, "", other), 404, "what somebody else sent is not there");
    refused(s, COUNTS "?since=now", 404, "no upload");
    refused(s, "/api/v1/builds/beefbeef/counts", 404, "beefbeef");
    refused(s, COUNTS "?geometry=2", 400, "geometry=2");
    refused(s, COUNTS "?geometry=0", 400, "geometry=0");
    static const char *const STRANGERS[] = {"format=gprof", "mode=compat", "static=1", "sort=self",
                                            "limit=5",      "focus=a",     "view=flat"};
    for (size_t i = 0; i < sizeof STRANGERS / sizeof *STRANGERS; i++) {
        char target[200], word[20];
        snprintf(target, sizeof target, COUNTS "?%s", STRANGERS[i]);
        snprintf(word, sizeof word, "'%.*s'", (int)strcspn(STRANGERS[i], "="), STRANGERS[i]);
        refused(s, target, 400, word);
    }
    store_close(s);
}

/* Calls that leave the build or come from elsewhere are nothing gmon.out could say. */
Test(query_counts, ends_elsewhere_are_left_out)
{
    static const struct fleet_arc ARCS[] = {
        {0, F_START + 4, 0, F_MAIN, 1}, {0, F_MAIN + 4, 1, L_F, 5}, {1, L_F + 4, 0, F_C, 2}, {1, L_F + 8, 1, L_F, 9}};
    struct store *s = fleet_open();
    struct fleet_upload u = fleet_cycle(1);
    u.builds = 2;
    u.arcs = ARCS;
    u.arc_count = 4;
    fleet_put(s, &u);
    struct counts c = counts_get(s, COUNTS);
    expect_arcs(&c, (const int[]){0}, (const uint64_t[]){1}, 1);
    counts_done(&c);
    c = counts_get(s, "/api/v1/builds/" LIBRARY "/counts");
    cr_assert(c.histogram_count == 0 && c.arc_count == 1 && c.from[0] == L_F + 8 && c.to[0] == L_F && c.calls[0] == 9);
    counts_done(&c);
    store_close(s);
}

/* One bin of 60,000 and one arc of 4,000,000,000 in each of five: the sums need records to be repeated. */
Test(query_counts, sums_beyond_16_and_32_bits_become_repeated_records)
{
    static const struct fleet_bin BINS[] = {{F_A, 60000}, {F_B, 1}};
    static const struct fleet_arc ARCS[] = {{0, F_A + 4, 0, F_B, 4000000000}, {0, F_B + 4, 0, F_A, 2}};
    const struct gmon_format format = {.pointer_size = 8};
    struct store *s = fleet_open();
    for (uint32_t i = 1; i <= 5; i++) {
        struct fleet_upload u = fleet_cycle(i);
        u.bins = BINS;
        u.bin_count = 2;
        u.arcs = ARCS;
        u.arc_count = 2;
        fleet_put(s, &u);
    }
    struct counts c = counts_get(s, COUNTS), back;
    struct profd_error e;
    uint8_t *file;
    size_t size;
    cr_assert(c.bin_ticks[0] == 300000 && c.bin_ticks[1] == 5 && c.calls[0] == 20000000000 && c.calls[1] == 10);
    cr_assert_eq(gmon_format_file(&c, &format, &file, &size, &e), PROFD_OK, "%s", e.sentence);
    counts_done(&c);
    cr_assert_eq(gmon_parse(file, size, &format, &back, &e), PROFD_OK, "%s", e.sentence);
    free(file);
    cr_assert_eq(back.histogram_count, 5, "300,000 is 4 times 65,535 and some");
    cr_assert_eq(back.arc_count, 6, "20,000,000,000 is 4 times 2^32 and some");
    uint64_t ticks, calls;
    counts_totals(&back, &ticks, &calls);
    cr_assert(ticks == 300005 && calls == 20000000010);
    counts_done(&back);
    store_close(s);
}

/* What differs between a first and a second upload. */
static struct store *fleet_of_two(uint32_t rate, uint64_t low, uint64_t high, uint32_t bin_size)
{
    static const struct fleet_bin MAIN[] = {{F_MAIN, 3}}, B[] = {{F_B, 7}};
    struct store *s = fleet_open();
    struct fleet_upload u = fleet_cycle(1);
    u.low = F_B;
    u.high = F_END;
    u.bins = B;
    u.bin_count = 1;
    fleet_put(s, &u);
    u = fleet_cycle(2);
    u.rate = rate;
    u.low = low;
    u.high = high;
    u.bin_size = bin_size;
    u.bins = low > F_MAIN ? B : MAIN;
    u.bin_count = 1;
    fleet_put(s, &u);
    fleet_put_object(s, PROGRAM, 1000);
    return s;
}

Test(query_counts, disjoint_histograms_go_together)
{
    struct store *s = fleet_of_two(100, F_START, F_B, 4);
    struct counts c = counts_get(s, COUNTS);
    cr_assert_eq(c.histogram_count, 2);
    cr_assert(c.histograms[0].low == F_B && c.histograms[1].low == F_START, "in order of arrival");
    cr_assert(c.histograms[0].used == 1 && c.histograms[1].used == 1 && c.bin_ticks[0] == 7 && c.bin_ticks[1] == 3);
    cr_assert(c.bin_index[0] == 0 && c.bin_index[1] == 4);
    counts_done(&c);
    c = counts_get(s, COUNTS "?geometry=1");
    cr_assert(c.histogram_count == 1 && c.histograms[0].low == F_START && c.bin_ticks[0] == 3, "numbered by address");
    counts_done(&c);
    refused(s, COUNTS "?geometry=3", 400, "this sum has geometries 1 to 2");
    struct fleet_answer listing = fleet_ask(s, "/api/v1/builds/4f2a/report?format=gprof");
    cr_assert_eq(listing.http, 200, "%s", listing.body);
    cr_assert_not_null(strstr(listing.body, " 70.00      0.07     0.07"), "%s", listing.body);
    cr_assert_not_null(strstr(listing.body, " 30.00      0.10     0.03"), "%s", listing.body);
    free(listing.body);
    store_close(s);
}

Test(query_counts, what_gprof_does_not_add_up_is_refused_by_name)
{
    static const struct {
        uint32_t rate;
        uint64_t low, high;
        uint32_t bin_size;
        const char *words, *name;
    } CASES[] = {
        {1000, F_START, F_B, 4, "their rates differ", "1000 ticks a second"},
        {1000, F_B, F_END, 4, "their rates differ", "1000 ticks a second"},
        {100, F_START, F_B, 8, "their bins differ in size", "6 bins"},
        {100, F_B, F_END, 8, "their bins differ in size", "6 bins"},
        {100, F_START, F_B + 4, 4, "their ranges overlap", "0x401000-0x401034"},
        {100, F_START, F_END, 4, "their ranges overlap", "0x401000-0x401060"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct store *s = fleet_of_two(CASES[i].rate, CASES[i].low, CASES[i].high, CASES[i].bin_size);
        static const char *const TARGETS[] = {COUNTS, "/api/v1/builds/4f2a/report?format=gprof"};
        for (size_t k = 0; k < 2; k++) {
            refused(s, TARGETS[k], 409, CASES[i].words);
            refused(s, TARGETS[k], 409, CASES[i].name);
            refused(s, TARGETS[k], 409, "0x401030-0x401060, 12 bins, 100 ticks a second");
            refused(s, TARGETS[k], 409, "select one with geometry=N");
        }
        uint64_t ticks[2], calls;
        for (int k = 0; k < 2; k++) {
            struct counts c = counts_get(s, k ? COUNTS "?geometry=2" : COUNTS "?geometry=1");
            cr_assert_eq(c.histogram_count, 1);
            counts_totals(&c, &ticks[k], &calls);
            counts_done(&c);
        }
        cr_assert_eq(ticks[0] + ticks[1], CASES[i].low < F_B ? 10 : 14, "each is one of the two");
        store_close(s);
    }
}

Test(query_counts, etags)
{
    struct store *s = fleet_open();
    struct store_scope all = {.all = true}, own = {.uid = 1000};
    struct fleet_upload u = fleet_cycle(1);
    fleet_put(s, &u);
    struct fleet_answer first = fleet_ask(s, COUNTS), report = fleet_ask(s, "/api/v1/builds/4f2a/report?format=json");
    cr_assert_eq(fleet_status(s, COUNTS, first.etag, all), 304);
    cr_assert_eq(fleet_status(s, "/api/v1/builds/" PROGRAM "/counts", first.etag, all), 304, "the same build in full");
    cr_assert_eq(fleet_status(s, COUNTS, report.etag, all), 200, "another question");
    cr_assert_eq(fleet_status(s, COUNTS "?geometry=1", first.etag, all), 200);
    cr_assert_eq(fleet_status(s, COUNTS, first.etag, own), 200, "another asker");
    fleet_put_object(s, PROGRAM, 1000);
    struct fleet_answer second = fleet_ask_as(s, COUNTS, first.etag, all);
    cr_assert_eq(second.http, 200, "the executable changes the media type");
    u = fleet_cycle(2);
    fleet_put(s, &u);
    cr_assert_eq(fleet_status(s, COUNTS, second.etag, all), 200, "new data, new tag");
    free(first.body);
    free(second.body);
    free(report.body);
    store_close(s);
}
