/* Coverage and dimensions through the whole corridor: parameters, sums, scopes, groups. */
#include "proto/collector.h"
#include "tests/unit/query/fleet.h"

#define REPORT "/api/v1/builds/4f2a/report"

struct sampled {
    const char *dimension;
    uint32_t build, rate;
    uint64_t ticks;
};

/* An upload of the program, which is build number program of two (or one), with single bins and words. */
static void put(struct store *s, uint32_t sequence, uint32_t builds, uint32_t program, const struct sampled *samples,
                uint32_t n, uint64_t cpu)
{
    static const char *const IDS[] = {PROGRAM, LIBRARY};
    struct store_build list[2];
    struct store_label labels[] = {{"host", sequence % 2 ? "db1" : "db2"}};
    struct counts c;
    struct profd_error e;
    enum store_outcome outcome;
    struct store_upload u = {.uid = 1000,
                             .sender = "abcdefghijk",
                             .sequence = sequence,
                             .received = FLEET_NOW - MINUTE,
                             .start = FLEET_NOW - 2 * MINUTE,
                             .end = FLEET_NOW - MINUTE,
                             .processes_started = 1,
                             .program = program,
                             .build_count = builds,
                             .builds = list,
                             .labels = labels,
                             .label_count = 1,
                             .host = "abababababababababababababababab"};
    uint8_t *bytes;
    for (uint32_t i = 0; i < builds; i++) {
        list[i] = (struct store_build){.name = i == program ? "/srv/bin/cycle" : "/lib/libwords.so"};
        strcpy(list[i].id.text, IDS[i == program ? 0 : 1]);
    }
    cr_assert_eq(counts_init(&c, n + (cpu > 0), n + (cpu > 0) * 3, 0, &e), PROFD_OK);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t low = samples[i].build == program ? F_START : L_F;
        c.histograms[i] = (struct counts_histogram){.build = samples[i].build,
                                                    .bins = 16,
                                                    .low = low,
                                                    .high = low + 64,
                                                    .rate = samples[i].rate,
                                                    .abbreviation = 's',
                                                    .first = i,
                                                    .used = 1};
        strcpy(c.histograms[i].dimension, samples[i].dimension);
        c.bin_index[i] = 4;
        c.bin_ticks[i] = samples[i].ticks;
    }
    if (cpu > 0) {
        const uint32_t word[] = {COLLECTOR_PROCESSES, COLLECTOR_CPU_NS, COLLECTOR_SAMPLED_NS};
        collector_make_histogram(&c.histograms[n], program);
        c.histograms[n].first = n;
        c.histograms[n].used = 3;
        memcpy(c.bin_index + n, word, sizeof word);
        c.bin_ticks[n] = 1;
        c.bin_ticks[n + 1] = cpu;
        c.bin_ticks[n + 2] = cpu / 2;
    }
    counts_totals(&c, &u.ticks, &u.calls);
    cr_assert_eq(counts_encode(&c, &bytes, &u.counts_size, &e), PROFD_OK, "%s", e.sentence);
    u.counts = bytes;
    cr_assert_eq(store_put_uploads(s, &u, 1, &outcome, &e), PROFD_OK, "%s", e.sentence);
    counts_done(&c);
    free(bytes);
}

static void refused(struct store *s, const char *target, const char *sentence)
{
    struct fleet_answer answer = fleet_ask(s, target);
    cr_assert_eq(answer.http, 400, "%s: %s", target, answer.body);
    json_t *root = fleet_parse(&answer);
    cr_assert_str_eq(fleet_text(root, "detail"), sentence, "%s", target);
    json_decref(root);
    free(answer.body);
}

/* 3 s of the program, 1 s of the library, of processes that used 10 s. */
static struct store *fleet_with_collector(void)
{
    static const struct sampled SAMPLES[] = {{"seconds", 0, 100, 300}, {"seconds", 1, 100, 100}};
    static const struct sampled TURNED[] = {{"seconds", 1, 100, 300}, {"seconds", 0, 100, 100}};
    struct store *s = fleet_open();
    put(s, 1, 2, 0, SAMPLES, 2, 4000000000);
    put(s, 2, 2, 1, TURNED, 2, 6000000000); /* the program is the second of its builds here */
    return s;
}

Test(query_collector, they_add_up_in_every_scope)
{
    struct store *s = fleet_with_collector();
    static const struct {
        const char *target;
        bool wider;
        double seconds;
    } CASES[] = {{REPORT, false, 8},
                 {REPORT "?scope=build", true, 6},
                 {REPORT "?scope=everywhere", true, 6},
                 {"/api/v1/builds/" LIBRARY "/report", true, 2},
                 {"/api/v1/builds/" LIBRARY "/report?scope=everywhere&view=flat", true, 2}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        json_t *root = fleet_get(s, CASES[i].target);
        cr_assert_float_eq(fleet_number(root, "totals/seconds"), CASES[i].seconds, 1e-9, "%s", CASES[i].target);
        cr_assert_eq(fleet_number(root, "collector/cpu_seconds"), 10, "%s", CASES[i].target);
        cr_assert_eq(fleet_number(root, "collector/processes"), 2);
        cr_assert_eq(fleet_number(root, "collector/coverage"), 0.5);
        cr_assert_eq(json_is_true(fleet_at(root, "collector/wider_than_report")), CASES[i].wider, "%s",
                     CASES[i].target);
        json_decref(root);
    }
    json_t *root = fleet_get(s, REPORT "?label.host=db1");
    cr_assert_eq(fleet_number(root, "collector/cpu_seconds"), 4, "of what was selected");
    json_decref(root);
    root = fleet_get(s, REPORT "?label.host=db3");
    cr_assert_null(json_object_get(root, "collector"), "of nothing there are none");
    json_decref(root);
    store_close(s);
}

Test(query_collector, gprof_and_export_take_no_offence)
{
    struct store *s = fleet_with_collector();
    fleet_put_object(s, PROGRAM, 1000);
    struct fleet_answer answer = fleet_ask(s, REPORT "?format=gprof");
    cr_assert(answer.http == 200 && strstr(answer.body, "collector") == NULL, "%s", answer.body);
    free(answer.body);
    answer = fleet_ask(s, "/api/v1/builds/4f2a/counts");
    struct counts c;
    uint64_t ticks, calls;
    cr_assert_eq(counts_decode((const uint8_t *)answer.body, answer.size, 1, &c, NULL), PROFD_OK);
    counts_totals(&c, &ticks, &calls);
    cr_assert(c.histogram_count == 1 && c.bin_count == 1 && ticks == 600);
    counts_done(&c);
    free(answer.body);
    refused(s, REPORT "?format=gprof&dimension=seconds", "dimension= has no meaning in compat mode (format=gprof)");
    store_close(s);
}

Test(query_collector, a_report_takes_one_dimension)
{
    static const struct sampled SAMPLES[] = {{"wall", 0, 100, 900}, {"cycles", 0, 1, 5000}, {"seconds", 0, 100, 300}};
    struct store *s = fleet_open();
    put(s, 1, 1, 0, SAMPLES, 2, 0);
    json_t *root = fleet_get(s, REPORT);
    cr_assert_str_eq(fleet_text(root, "totals/dimension"), "cycles", "the first in byte order");
    cr_assert_str_eq(fleet_text(root, "totals/other_dimensions/0/dimension"), "wall");
    json_decref(root);
    put(s, 2, 1, 0, SAMPLES, 3, 1000000000);
    root = fleet_get(s, REPORT);
    cr_assert_str_eq(fleet_text(root, "totals/dimension"), "seconds");
    cr_assert(fleet_number(root, "totals/seconds") == 3 && fleet_number(root, "totals/ticks") == 300);
    cr_assert_eq(json_array_size(fleet_at(root, "totals/other_dimensions")), 2);
    cr_assert_eq(fleet_number(root, "totals/other_dimensions/0/ticks"), 10000);
    json_decref(root);
    root = fleet_get(s, REPORT "?dimension=wall");
    cr_assert(fleet_number(root, "totals/seconds") == 18 && fleet_number(root, "totals/rates/0") == 100);
    cr_assert_eq(fleet_number(root, "collector/cpu_seconds"), 1, "words are shown whatever was sampled");
    json_decref(root);
    root = fleet_get(s, "/api/v1/builds/4f2a/functions?name=unknown&dimension=cycles");
    cr_assert_eq(fleet_number(root, "rows/0/self_seconds"), 10000);
    json_decref(root);
    refused(s, REPORT "?dimension=misses", "dimension=misses: the samples have cycles, seconds, wall");
    refused(s, REPORT "?dimension=collector", "dimension=collector: not a dimension of samples; every report shows it");
    refused(s, REPORT "?dimension=", "dimension= is empty; leave it out, or give a value");
    root = fleet_get(s, REPORT "?dimension=misses&until=1700000000");
    cr_assert_eq(fleet_number(root, "totals/ticks"), 0, "where nothing was sampled nothing is missing");
    json_decref(root);
    struct fleet_answer usual = fleet_ask(s, REPORT), wall = fleet_ask(s, REPORT "?dimension=wall");
    cr_assert_str_neq(usual.etag, wall.etag);
    free(usual.body);
    free(wall.body);
    store_close(s);
}

Test(query_collector, groups_take_one_dimension_too)
{
    static const struct sampled SAMPLES[] = {{"wall", 0, 100, 900}, {"cycles", 0, 1, 5000}},
                                SECONDS[] = {{"seconds", 0, 100, 300}};
    struct store *s = fleet_open();
    put(s, 1, 1, 0, SAMPLES, 2, 1000000000);
    json_t *root = fleet_get(s, "/api/v1/builds/4f2a/groups?by=host");
    cr_assert_str_eq(fleet_text(root, "dimension"), "cycles");
    cr_assert_eq(fleet_number(root, "rows/0/seconds"), 5000);
    json_decref(root);
    put(s, 2, 1, 0, SECONDS, 1, 0);
    root = fleet_get(s, "/api/v1/builds/4f2a/groups?by=host");
    cr_assert_str_eq(fleet_text(root, "dimension"), "seconds", "chosen once for all rows");
    cr_assert(fleet_number(root, "rows/0/seconds") == 0 && fleet_number(root, "rows/1/seconds") == 3);
    json_decref(root);
    root = fleet_get(s, "/api/v1/builds/4f2a/groups?by=host&dimension=wall");
    cr_assert(fleet_number(root, "rows/0/seconds") == 9 && fleet_number(root, "rows/1/seconds") == 0);
    json_decref(root);
    refused(s, "/api/v1/builds/4f2a/groups?by=host&dimension=miss",
            "dimension=miss: the samples have cycles, seconds, wall");
    store_close(s);
}
