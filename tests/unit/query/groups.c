/* Uploads by label and by time; and that they add up to what the report of the same question says. */
#include "tests/unit/query/fleet.h"

#define GROUPS "/api/v1/builds/4f2a/groups"
#define REPORT "/api/v1/builds/4f2a/report"

/* Eight uploads, half an hour apart, the last ending at NOW − 1 min; by turns of db1, db2, db3; every other one with
 * the library. */
static struct store *fleet_of_eight(void)
{
    static const struct fleet_arc TO_LIBRARY[] = {
        {0, F_MAIN + 4, 0, F_A, 5}, {0, F_A + 4, 1, L_F, 7}, {1, L_F + 4, 1, L_F, 2}};
    struct store *s = fleet_open();
    for (uint32_t i = 0; i < 8; i++) {
        struct fleet_upload u = fleet_cycle(i + 1);
        u.end = FLEET_NOW - MINUTE - 30 * MINUTE * (int64_t)i;
        u.host = i % 3 == 0 ? "db1" : i % 3 == 1 ? "db2" : "db3";
        u.rate = i == 5 ? 1000 : 100;
        u.uid = i == 7 ? 0 : 1000;
        if (i % 2 == 1) {
            u.builds = 2;
            u.arcs = TO_LIBRARY;
            u.arc_count = 3;
        }
        fleet_put(s, &u);
    }
    fleet_put_object(s, PROGRAM, 1000);
    return s;
}

static void refused(struct store *s, const char *target, int http, const char *word)
{
    struct fleet_answer answer = fleet_ask(s, target);
    cr_assert_eq(answer.http, http, "%s: %d %s", target, answer.http, answer.body);
    cr_assert_not_null(strstr(answer.body, word), "%s: %s", target, answer.body);
    free(answer.body);
}

static double add_up(const json_t *root, const char *field)
{
    double sum = 0;
    for (size_t i = 0; i < json_array_size(fleet_at(root, "rows")); i++) {
        sum += json_number_value(json_object_get(json_array_get(fleet_at(root, "rows"), i), field));
    }
    return sum;
}

/* However many there are, and in whatever order they come. */
Test(query_groups, hosts_are_counted_once)
{
    static const uint32_t most[] = {1, 4, 5, 6, 90};
    for (size_t k = 0; k < sizeof most / sizeof most[0]; k++) {
        struct store *s = fleet_open();
        for (uint32_t i = 0; i < 3 * most[k]; i++) {
            const char name[] = {'d', 'b', (char)('!' + (i < most[k] ? i : i * i * 7 % most[k])), '\0'};
            struct fleet_upload u = fleet_cycle(i + 1);
            u.host = name;
            fleet_put(s, &u);
        }
        json_t *root = fleet_get(s, GROUPS "?by=service");
        cr_assert_eq(json_array_size(fleet_at(root, "rows")), 1);
        cr_assert_eq(fleet_number(root, "rows/0/uploads"), 3 * most[k]);
        cr_assert_eq(fleet_number(root, "rows/0/hosts"), most[k], "%u hosts", most[k]);
        json_decref(root);
        store_close(s);
    }
}

Test(query_groups, by_one_label)
{
    struct store *s = fleet_of_eight();
    json_t *root = fleet_get(s, GROUPS "?by=host");
    cr_assert_eq(json_array_size(fleet_at(root, "rows")), 3);
    cr_assert_str_eq(fleet_text(root, "rows/0/label_host"), "db1");
    cr_assert_str_eq(fleet_text(root, "rows/2/label_host"), "db3");
    cr_assert_eq(fleet_number(root, "rows/0/uploads"), 3);
    cr_assert_eq(fleet_number(root, "rows/0/processes_started"), 3);
    cr_assert_eq(fleet_number(root, "rows/2/hosts"), 1);
    cr_assert_float_eq(fleet_number(root, "rows/0/seconds"), 3 * 1.93, 1e-12);
    cr_assert_float_eq(fleet_number(root, "rows/2/seconds"), 1.93 + 0.193, 1e-12, "each rate by itself");
    cr_assert_eq(fleet_number(root, "rows/0/calls"), 13 + 14 + 13);
    cr_assert_str_eq(fleet_text(root, "rows/0/last"), "2026-11-21T15:59:00Z");
    cr_assert(json_is_true(fleet_at(root, "rows/0/exact")));
    cr_assert(json_is_null(fleet_at(root, "next")) && json_is_null(fleet_at(root, "window/since")));
    cr_assert_str_eq(fleet_text(root, "by/0"), "host");
    cr_assert_null(fleet_at(root, "rows/0/time"), "no steps, no time");
    json_decref(root);
    store_close(s);
}

Test(query_groups, labels_that_are_absent_are_empty)
{
    struct store *s = fleet_of_eight();
    json_t *root = fleet_get(s, GROUPS "?by=zone&by=service&by=host&match=host!%3D%22db1%22");
    cr_assert_eq(json_array_size(fleet_at(root, "rows")), 2);
    cr_assert_str_eq(fleet_text(root, "rows/0/label_zone"), "");
    cr_assert_str_eq(fleet_text(root, "rows/1/label_service"), "api");
    cr_assert_str_eq(fleet_text(root, "rows/1/label_host"), "db3");
    json_decref(root);
    store_close(s);
}

/* Whatever is asked, the groups are parts of the report of the same question. */
Test(query_groups, add_up_to_the_report)
{
    static const char *const ASKED[] = {"",
                                        "scope=build",
                                        "scope=everywhere",
                                        "since=now-2h",
                                        "until=now-1h&scope=build",
                                        "uid=0",
                                        "match=host%3D~%22db%5B12%5D%22",
                                        "match=host!~%22db%5B12%5D%22&since=-3h",
                                        "label.host=db2",
                                        "match=host%3D~%22nobody%22"};
    static const char *const BY[] = {"by=host", "by=nothing", "by=service&by=host", "step=1h", "step=1d&by=host",
                                     "step=5m", "step=30m"};
    struct store *s = fleet_of_eight();
    for (size_t i = 0; i < sizeof ASKED / sizeof *ASKED; i++) {
        for (size_t k = 0; k < sizeof BY / sizeof *BY; k++) {
            char target[300];
            snprintf(target, sizeof target, REPORT "?limit=0%s%s", ASKED[i][0] != '\0' ? "&" : "", ASKED[i]);
            json_t *report = fleet_get(s, target);
            snprintf(target, sizeof target, GROUPS "?%s%s%s", BY[k], ASKED[i][0] != '\0' ? "&" : "", ASKED[i]);
            json_t *groups = fleet_get(s, target);
            cr_assert_eq(add_up(groups, "uploads"), fleet_number(report, "provenance/uploads"), "%s", target);
            cr_assert_eq(add_up(groups, "calls"), fleet_number(report, "totals/calls"), "%s", target);
            cr_assert_float_eq(add_up(groups, "seconds"), fleet_number(report, "totals/seconds"), 1e-9, "%s", target);
            json_decref(groups);
            json_decref(report);
        }
    }
    store_close(s);
}

Test(query_groups, steps_of_time)
{
    struct store *s = fleet_of_eight();
    json_t *root = fleet_get(s, GROUPS "?step=1h");
    cr_assert_eq(json_array_size(fleet_at(root, "rows")), 4, "15:59, 15:29 | 14:59 … | 12:29");
    cr_assert_str_eq(fleet_text(root, "rows/0/time"), "2026-11-21T12:00:00Z");
    cr_assert_str_eq(fleet_text(root, "rows/3/time"), "2026-11-21T15:00:00Z");
    cr_assert_eq(fleet_number(root, "rows/3/uploads"), 2);
    cr_assert_eq(fleet_number(root, "rows/3/width"), 3600);
    cr_assert_eq(fleet_number(root, "step"), 3600);
    json_decref(root);
    root = fleet_get(s, GROUPS "?step=15m&by=host&since=2026-11-21T15:00:00Z");
    cr_assert_eq(json_array_size(fleet_at(root, "rows")), 2);
    cr_assert_str_eq(fleet_text(root, "rows/0/time"), "2026-11-21T15:15:00Z");
    cr_assert_str_eq(fleet_text(root, "rows/0/label_host"), "db2");
    cr_assert_str_eq(fleet_text(root, "window/since"), "2026-11-21T15:00:00Z");
    cr_assert_eq(fleet_number(root, "rows/0/width"), 900);
    json_decref(root);
    root = fleet_get(s, GROUPS "?step=1h&since=2026-11-20T00:00:00Z&until=2026-11-20T05:00:00Z");
    cr_assert_eq(json_array_size(fleet_at(root, "rows")), 0);
    json_decref(root);
    store_close(s);
}

/* Page by page is the same as all at once. */
Test(query_groups, pages)
{
    struct store *s = fleet_of_eight();
    json_t *all = fleet_get(s, GROUPS "?by=host&step=1h"), *rows = json_array();
    char target[400] = GROUPS "?by=host&step=1h&limit=3";
    for (int page = 0;; page++) {
        json_t *root = fleet_get(s, target);
        json_array_extend(rows, json_object_get(root, "rows"));
        const json_t *next = fleet_at(root, "next");
        bool last = json_is_null(next);
        cr_assert(last || json_array_size(fleet_at(root, "rows")) == 3);
        snprintf(target, sizeof target, GROUPS "?by=host&step=1h&limit=3&cursor=%s",
                 last ? "" : json_string_value(next));
        json_decref(root);
        if (last) {
            break;
        }
        cr_assert_lt(page, 10);
    }
    cr_assert(json_equal(rows, json_object_get(all, "rows")) && json_array_size(rows) == 8);
    refused(s, GROUPS "?by=host&cursor=nonsense", 400, "cursor=nonsense");
    json_decref(rows);
    json_decref(all);
    store_close(s);
}

Test(query_groups, refusals)
{
    struct store *s = fleet_of_eight();
    refused(s, GROUPS, 400, "by= must name a label");
    refused(s, GROUPS "?by=a-b", 400, "by=a-b");
    refused(s, GROUPS "?by=", 400, "by= does not name");
    refused(s, GROUPS "?by=a&by=b&by=c&by=d", 400, "by=d");
    refused(s, GROUPS "?by=a&by=a", 400, "given twice");
    refused(s, GROUPS "?step=90s", 400, "step=90s");
    refused(s, GROUPS "?step=1h&step=1h", 400, "given twice");
    refused(s, GROUPS "?step=1h&limit=x", 400, "limit=x");
    refused(s, GROUPS "?by=host&view=flat", 400, "'view'");
    refused(s, GROUPS "?by=host&match=host%3D~%22(%22", 400, "offset");
    refused(s, "/api/v1/builds/beefbeef/groups?by=host", 404, "beefbeef");
    refused(s, "/api/v1/builds/" LIBRARY "/groups?by=host&scope=program", 400, "scope=program");
    struct fleet_upload old = fleet_cycle(99);
    old.end = FLEET_NOW - 400 * 24 * 60 * MINUTE;
    fleet_put(s, &old);
    refused(s, GROUPS "?step=1m", 400, "the limit is 2000");
    struct store_scope other = {.uid = 7};
    cr_assert_eq(fleet_status(s, GROUPS "?by=host", "", other), 404);
    store_close(s);
}

Test(query_groups, an_etag_knows_the_question)
{
    static const char *const ASKED[] = {"?by=host",
                                        "?by=service",
                                        "?by=host&by=service",
                                        "?by=service&by=host",
                                        "?step=1h",
                                        "?step=1d",
                                        "?by=host&step=1h",
                                        "?by=host&limit=2",
                                        "?by=host&since=5",
                                        "?by=host&uid=0",
                                        "?by=host&match=host%3D~%22.%2B%22",
                                        "?by=host&match=host!~%22.%2B%22"};
    enum { N = sizeof ASKED / sizeof *ASKED };
    char tags[N][80];
    struct store *s = fleet_of_eight();
    struct store_scope all = {.all = true};
    for (int i = 0; i < N; i++) {
        char target[200];
        snprintf(target, sizeof target, GROUPS "%s", ASKED[i]);
        struct fleet_answer answer = fleet_ask(s, target);
        cr_assert_eq(answer.http, 200, "%s", answer.body);
        strcpy(tags[i], answer.etag);
        free(answer.body);
        cr_assert_eq(fleet_status(s, target, tags[i], all), 304);
        for (int k = 0; k < i; k++) {
            cr_assert_str_neq(tags[i], tags[k], "%s %s", ASKED[i], ASKED[k]);
        }
    }
    struct fleet_upload u = fleet_cycle(50);
    fleet_put(s, &u);
    cr_assert_eq(fleet_status(s, GROUPS "?by=host", tags[0], all), 200, "another upload");
    store_close(s);
}

Test(query_groups, labels_of_some_uploads)
{
    struct store *s = fleet_of_eight();
    json_t *root = fleet_get(s, "/api/v1/labels/host/values?build_id=4f2a&since=now-1h");
    cr_assert_eq(json_array_size(fleet_at(root, "rows")), 2);
    cr_assert_str_eq(fleet_text(root, "rows/1/value"), "db2");
    cr_assert_eq(fleet_number(root, "rows/0/uploads"), 1);
    json_decref(root);
    root = fleet_get(s, "/api/v1/labels?build_id=4f2a&match=host%3D~%22db%5B23%5D%22&uid=1000");
    cr_assert_str_eq(fleet_text(root, "rows/0/name"), "host");
    cr_assert_eq(fleet_number(root, "rows/0/values"), 2);
    cr_assert_eq(fleet_number(root, "rows/0/uploads"), 4);
    json_decref(root);
    root = fleet_get(s, "/api/v1/labels/host/values?build_id=4f2a&until=now&limit=1&cursor=db1");
    cr_assert_str_eq(fleet_text(root, "rows/0/value"), "db2");
    cr_assert_str_eq(fleet_text(root, "next"), "db2");
    json_decref(root);
    refused(s, "/api/v1/labels?since=now-1h", 400, "build_id=");
    refused(s, "/api/v1/labels?build_id=4f2a&match=host%3D~%22(%22", 400, "offset");
    store_close(s);
}

/* A pattern that cannot be decided is no answer, wherever it is asked. */
Test(query_groups, an_endless_pattern_is_said)
{
    struct store *s = fleet_open();
    char host[200];
    memset(host, 'a', sizeof host - 1);
    host[sizeof host - 1] = '\0';
    struct fleet_upload u = fleet_cycle(1);
    u.host = host;
    fleet_put(s, &u);
    static const char *const WHERE[] = {REPORT "?",
                                        GROUPS "?by=host&",
                                        GROUPS "?step=1h&",
                                        "/api/v1/labels?build_id=4f2a&",
                                        "/api/v1/builds/4f2a/counts?",
                                        "/api/v1/builds/4f2a/functions?name=main&"};
    for (size_t i = 0; i < sizeof WHERE / sizeof *WHERE; i++) {
        char target[300];
        snprintf(target, sizeof target, "%smatch=host%%3D~%%22(a%%2B)%%2B%%5Bbc%%5D%%22", WHERE[i]);
        refused(s, target, 422, "(a+)+[bc]");
    }
    store_close(s);
}
