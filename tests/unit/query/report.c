/* Reports from stored uploads: sums, windows, scopes, late symbols and cycles, whatever the order of arrival. */
#include "tests/unit/query/fleet.h"

#define REPORT "/api/v1/builds/4f2a/report"

static struct store *fleet_of_one(void)
{
    struct store *s = fleet_open();
    struct fleet_upload u = fleet_cycle(1);
    fleet_put(s, &u);
    fleet_put_object(s, PROGRAM, 1000);
    return s;
}

Test(query_report, cycle_example_end_to_end)
{
    struct store *s = fleet_of_one();
    json_t *root = fleet_get(s, REPORT);
    cr_assert_str_eq(fleet_text(root, "build_id"), PROGRAM, "a prefix names the build");
    cr_assert_str_eq(fleet_text(root, "scope"), "program");
    cr_assert_float_eq(fleet_number(root, "totals/seconds"), 1.93, 1e-12);
    cr_assert_eq(fleet_number(root, "provenance/uploads"), 1);
    cr_assert_eq(fleet_number(root, "provenance/uids/0"), 1000);
    cr_assert_eq(fleet_number(root, "limit"), 1000);
    const json_t *cycle = fleet_at(root, "cycles/0"), *a = fleet_named(root, "functions", "a");
    cr_assert_float_eq(fleet_number(cycle, "percent"), 91.71, 0.005);
    cr_assert_eq(fleet_number(cycle, "calls_outside"), 1);
    cr_assert_eq(fleet_number(cycle, "calls_inside"), 5);
    cr_assert_str_eq(fleet_text(cycle, "callers/0/name"), "main");
    cr_assert_str_eq(fleet_text(cycle, "members/0/name"), "b");
    cr_assert_str_eq(fleet_text(cycle, "callees/0/name"), "c");
    cr_assert_float_eq(fleet_number(fleet_named(a, "callers", "main"), "self_seconds"), 1.77, 1e-12);
    json_decref(root);
    store_close(s);
}

/* Every count and every second of a report, as it is and divided. */
static void compare_times(json_t *one, const json_t *many, double factor, const char *key)
{
    static const char *const SAME[] = {"index",     "percent", "cycle",       "number",       "hosts",
                                       "limit",     "rows",    "size",        "first",        "last",
                                       "functions", "cycles",  "host_labels", "member_count", "calls_per_caller_call"};
    for (size_t i = 0; key != NULL && i < sizeof SAME / sizeof *SAME; i++) {
        if (strcmp(key, SAME[i]) == 0 && json_is_number(one)) {
            factor = 1;
        }
    }
    if (json_is_number(one)) {
        double expected = json_number_value(one) * factor;
        cr_assert_float_eq(json_number_value(many), expected, expected * 1e-12, "%s: %g is not %g", key,
                           json_number_value(many), expected);
        cr_assert(!json_is_integer(one) || json_integer_value(many) == json_integer_value(one) * (json_int_t)factor,
                  "%s", key);
    } else if (json_is_object(one)) {
        const char *name;
        json_t *value;
        cr_assert_eq(json_object_size(one), json_object_size(many));
        json_object_foreach(one, name, value)
        {
            compare_times(value, json_object_get(many, name),
                          strcmp(name, "uids") == 0 || strcmp(name, "rates") == 0 ? 1 : factor, name);
        }
    } else if (json_is_array(one)) {
        cr_assert_eq(json_array_size(one), json_array_size(many), "%s", key);
        for (size_t i = 0; i < json_array_size(one); i++) {
            compare_times(json_array_get(one, i), json_array_get(many, i), factor, key);
        }
    } else {
        cr_assert(json_equal(one, many), "%s", key);
    }
}

Test(query_report, a_thousand_uploads_are_a_thousand_times_one)
{
    struct store *one = fleet_of_one(), *many = fleet_open();
    fleet_put_object(many, PROGRAM, 1000);
    for (uint32_t i = 1; i <= 1000; i++) {
        struct fleet_upload u = fleet_cycle(i);
        fleet_put(many, &u);
    }
    json_t *single = fleet_get(one, REPORT), *sum = fleet_get(many, REPORT);
    cr_assert_eq(fleet_number(sum, "provenance/uploads"), 1000);
    cr_assert_eq(fleet_number(sum, "provenance/hosts"), 1);
    compare_times(single, sum, 1000, NULL);
    json_decref(sum);
    struct fleet_answer before = fleet_ask(many, REPORT);
    for (uint32_t i = 1; i <= 100; i++) {
        struct fleet_upload u = fleet_cycle(i);
        fleet_put(many, &u);
    }
    struct fleet_answer after = fleet_ask(many, REPORT);
    cr_assert_str_eq(before.body, after.body, "the same ids again change nothing");
    free(before.body);
    free(after.body);
    json_decref(single);
    store_close(one);
    store_close(many);
}

/* Uploads of other arcs, counts and rates, in every order of arrival: the same bytes. */
Test(query_report, order_of_arrival_does_not_show)
{
    static const int ORDERS[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    static const struct fleet_bin ODD[] = {{F_MAIN, 1}, {F_B, 7}, {F_C, 3}};
    char *first = NULL;
    for (int order = 0; order < 6; order++) {
        struct store *s = fleet_open();
        fleet_put_object(s, PROGRAM, 1000);
        for (int i = 0; i < 3; i++) {
            uint32_t which = (uint32_t)ORDERS[order][i];
            struct fleet_upload u = fleet_cycle(which + 1);
            u.rate = which == 2 ? 300 : 100;
            u.bins = which == 0 ? FLEET_BINS : ODD;
            u.arcs = FLEET_ARCS + which;
            u.arc_count = 6 - 2 * which;
            u.end -= which * MINUTE;
            fleet_put(s, &u);
        }
        struct fleet_answer json = fleet_ask(s, REPORT), text = fleet_ask(s, REPORT "?format=text");
        char *both = malloc(json.size + text.size + 1);
        memcpy(both, json.body, json.size);
        memcpy(both + json.size, text.body, text.size + 1);
        free(json.body);
        free(text.body);
        cr_assert(first == NULL || strcmp(first, both) == 0, "order %d:\n%s\nnot\n%s", order, both, first);
        free(first);
        first = both;
        store_close(s);
    }
    free(first);
}

Test(query_report, windows_labels_and_users_select)
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
        double uploads;
    } CASES[] = {
        {"", 4},
        {"?since=now-1h", 2},
        {"?since=-61m", 2},
        {"?until=now-1h", 2},
        {"?since=-95m&until=-55m", 2},
        {"?label.host=db1", 2},
        {"?match=host!=%22db1%22", 2},
        {"?label.host=db1&match=service=%22web%22", 0},
        {"?label.nobody=", 4},
        {"?uid=0", 1},
        {"?uid=1000&since=-1h", 2},
        {"?scope=everywhere", 4},
        {"?scope=build", 4},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char target[200];
        snprintf(target, sizeof target, REPORT "%s", CASES[i].parameters);
        json_t *root = fleet_get(s, target);
        cr_assert_eq(fleet_number(root, "provenance/uploads"), CASES[i].uploads, "%s: %g", target,
                     fleet_number(root, "provenance/uploads"));
        cr_assert_eq(fleet_number(root, "totals/calls"), 13 * CASES[i].uploads, "%s: %g", target,
                     fleet_number(root, "totals/calls"));
        json_decref(root);
    }
    struct fleet_answer own = fleet_ask_as(s, REPORT, "", (struct store_scope){.uid = 1000});
    json_t *root = fleet_parse(&own);
    cr_assert_eq(fleet_number(root, "provenance/uploads"), 3);
    json_decref(root);
    free(own.body);
    own = fleet_ask_as(s, REPORT, "", (struct store_scope){.uid = 7});
    cr_assert_eq(own.http, 404, "what somebody else sent is not there");
    free(own.body);
    own = fleet_ask_as(s, REPORT "?uid=0", "", (struct store_scope){.uid = 1000});
    cr_assert_eq(own.http, 403);
    free(own.body);
    store_close(s);
}

/* b calls a only in the second window: the cycle is there in the first one too. */
Test(query_report, cycles_of_other_windows_are_in_every_window)
{
    struct store *s = fleet_open();
    struct fleet_arc early[5] = {FLEET_ARCS[0], FLEET_ARCS[1], FLEET_ARCS[2], FLEET_ARCS[4], FLEET_ARCS[5]};
    struct fleet_upload u = fleet_cycle(1);
    u.arcs = early;
    u.arc_count = 5;
    u.end = FLEET_NOW - 100 * MINUTE;
    fleet_put(s, &u);
    fleet_put_object(s, PROGRAM, 1000);
    json_t *root = fleet_get(s, REPORT "?until=-90m");
    cr_assert_eq(fleet_number(root, "totals/cycles"), 0);
    json_decref(root);
    u = fleet_cycle(2);
    u.arcs = &FLEET_ARCS[3];
    u.arc_count = 1;
    fleet_put(s, &u);
    root = fleet_get(s, REPORT "?until=-90m");
    cr_assert_eq(fleet_number(root, "totals/cycles"), 1);
    cr_assert_eq(fleet_number(root, "totals/calls"), 11, "and the other window's calls are not");
    cr_assert_eq(fleet_number(root, "provenance/uploads"), 1);
    json_decref(root);
    store_close(s);
}

Test(query_report, late_symbols_repair_old_data)
{
    struct store *s = fleet_open();
    struct fleet_upload u = fleet_cycle(1);
    fleet_put(s, &u);
    struct fleet_answer before = fleet_ask(s, REPORT);
    json_t *root = fleet_parse(&before);
    cr_assert(json_is_false(fleet_at(root, "builds/0/has_names")));
    cr_assert_null(fleet_named(root, "functions", "main"));
    cr_assert_float_eq(fleet_number(root, "totals/seconds"), 1.93, 1e-12);
    json_decref(root);
    fleet_put_object(s, PROGRAM, 7);
    struct fleet_answer same = fleet_ask(s, REPORT);
    root = fleet_parse(&same);
    cr_assert_null(fleet_named(root, "functions", "main"), "another user's executable names nobody else's functions");
    json_decref(root);
    fleet_put_object(s, PROGRAM, 1000);
    struct fleet_answer after = fleet_ask_as(s, REPORT, before.etag, (struct store_scope){.all = true});
    cr_assert_eq(after.http, 200, "symbols change the tag");
    root = fleet_parse(&after);
    cr_assert_not_null(fleet_named(root, "functions", "main"));
    cr_assert(json_is_true(fleet_at(root, "builds/0/has_names")));
    json_decref(root);
    free(before.body);
    free(same.body);
    free(after.body);
    store_close(s);
}

/* main calls f of the library, which calls c of the program. */
static struct store *fleet_with_library(void)
{
    static const struct fleet_arc ARCS[] = {
        {0, F_START + 4, 0, F_MAIN, 1}, {0, F_MAIN + 4, 1, L_F, 5}, {1, L_F + 4, 0, F_C, 2}};
    struct store *s = fleet_open();
    struct fleet_upload u = fleet_cycle(1);
    u.builds = 2;
    u.arcs = ARCS;
    u.arc_count = 3;
    fleet_put(s, &u);
    fleet_put_object(s, PROGRAM, 1000);
    fleet_put_object(s, LIBRARY, 1000);
    return s;
}

Test(query_report, scopes)
{
    struct store *s = fleet_with_library();
    json_t *root = fleet_get(s, REPORT);
    cr_assert_eq(json_array_size(fleet_at(root, "builds")), 2);
    const json_t *f = fleet_named(root, "functions", "f");
    cr_assert_str_eq(fleet_text(f, "build_id"), LIBRARY);
    cr_assert_str_eq(fleet_text(f, "callers/0/name"), "main");
    cr_assert_str_eq(fleet_text(f, "callers/0/build_id"), PROGRAM, "the caller is of another build");
    json_decref(root);
    root = fleet_get(s, REPORT "?scope=build");
    cr_assert_eq(json_array_size(fleet_at(root, "builds")), 1);
    cr_assert_null(fleet_named(root, "functions", "f"));
    cr_assert_float_eq(fleet_number(root, "totals/seconds"), 1.93, 1e-12);
    const json_t *c = fleet_named(root, "functions", "c");
    cr_assert_str_eq(fleet_text(c, "callers/0/name"), "[outside]");
    cr_assert_eq(fleet_number(c, "callers/0/calls"), 2);
    json_decref(root);
    root = fleet_get(s, "/api/v1/builds/" LIBRARY "/report");
    cr_assert_str_eq(fleet_text(root, "scope"), "everywhere", "a library was never a main executable");
    cr_assert_eq(fleet_number(root, "totals/seconds"), 0);
    cr_assert_eq(fleet_number(fleet_named(root, "functions", "f"), "calls"), 5);
    json_decref(root);
    struct fleet_answer refused = fleet_ask(s, "/api/v1/builds/" LIBRARY "/report?scope=program");
    cr_assert_eq(refused.http, 400);
    cr_assert_not_null(strstr(refused.body, "scope=everywhere"));
    free(refused.body);
    store_close(s);
}

/* The library's executable is missing; which build lacks names is said of the right one, whatever their order. */
Test(query_report, missing_names_are_told_of_their_build)
{
    static const struct fleet_arc ARCS[] = {{1, L_F + 4, 0, F_C, 2}, {0, F_MAIN + 4, 1, L_F, 5}};
    for (int named = 0; named < 2; named++) {
        struct store *s = fleet_open();
        struct fleet_upload u = fleet_cycle(1);
        u.builds = 2;
        u.arcs = ARCS;
        u.arc_count = 2;
        fleet_put(s, &u);
        fleet_put_object(s, named ? LIBRARY : PROGRAM, 1000);
        json_t *root = fleet_get(s, REPORT);
        for (size_t i = 0; i < 2; i++) {
            const json_t *build = json_array_get(fleet_at(root, "builds"), i);
            bool library = strcmp(fleet_text(build, "build_id"), LIBRARY) == 0;
            cr_assert_eq(json_is_true(json_object_get(build, "has_names")), library == (named == 1));
            cr_assert_str_eq(fleet_text(build, "name"), library ? "/lib/libwords.so" : "/srv/bin/cycle");
        }
        json_decref(root);
        store_close(s);
    }
}

Test(query_report, text_and_listing)
{
    struct store *s = fleet_of_one();
    struct fleet_answer text = fleet_ask(s, REPORT "?format=text"), listing = fleet_ask(s, REPORT "?format=gprof");
    cr_assert_eq(text.http, 200, "%s", text.body);
    cr_assert_str_eq(text.type, "text/plain; charset=utf-8");
    cr_assert_not_null(strstr(text.body, "[3]    91.71    1.77    0.00       1+5           <cycle 1 as a whole> [3]\n"),
                       "%s", text.body);
    cr_assert_eq(listing.http, 200, "%s", listing.body);
    cr_assert_not_null(strstr(listing.body, " 52.85      1.02     1.02        3"), "%s", listing.body);
    cr_assert_not_null(strstr(listing.body, "[3]     91.7    1.77    0.00       1+5       <cycle 1 as a whole> [3]\n"),
                       "%s", listing.body);
    free(text.body);
    free(listing.body);
    listing = fleet_ask(s, REPORT "?mode=compat&view=flat");
    cr_assert_null(strstr(listing.body, "Call graph"));
    free(listing.body);
    store_close(s);
}

Test(query_report, listing_of_several_rates_wants_a_choice)
{
    struct store *s = fleet_of_one();
    struct fleet_upload u = fleet_cycle(2);
    u.rate = 1000;
    fleet_put(s, &u);
    struct fleet_answer refused = fleet_ask(s, REPORT "?format=gprof");
    cr_assert_eq(refused.http, 409);
    cr_assert_not_null(strstr(refused.body, "100 ticks a second"), "%s", refused.body);
    cr_assert_not_null(strstr(refused.body, "1000 ticks a second"), "%s", refused.body);
    free(refused.body);
    struct fleet_answer first = fleet_ask(s, REPORT "?format=gprof&geometry=1"),
                        second = fleet_ask(s, REPORT "?format=gprof&geometry=2");
    cr_assert_not_null(strstr(first.body, "Each sample counts as 0.01 seconds."), "%s", first.body);
    cr_assert_not_null(strstr(second.body, "Each sample counts as 0.001 seconds."), "%s", second.body);
    refused = fleet_ask(s, REPORT "?format=gprof&geometry=3");
    cr_assert_eq(refused.http, 400);
    json_t *root = fleet_get(s, REPORT);
    cr_assert_float_eq(fleet_number(root, "totals/seconds"), 1.93 + 0.193, 1e-9, "true mode adds seconds");
    cr_assert_eq(json_array_size(fleet_at(root, "totals/rates")), 2);
    json_decref(root);
    free(first.body);
    free(second.body);
    free(refused.body);
    store_close(s);
}

Test(query_report, listing_without_symbols_or_uploads_says_so)
{
    struct store *s = fleet_open();
    struct fleet_upload u = fleet_cycle(1);
    fleet_put(s, &u);
    struct fleet_answer refused = fleet_ask(s, REPORT "?format=gprof");
    cr_assert_eq(refused.http, 404);
    cr_assert_not_null(strstr(refused.body, "profctl symbols"), "%s", refused.body);
    free(refused.body);
    refused = fleet_ask(s, REPORT "?format=gprof&since=now");
    cr_assert_eq(refused.http, 404);
    free(refused.body);
    json_t *root = fleet_get(s, REPORT "?since=now");
    cr_assert_eq(json_array_size(fleet_at(root, "functions")), 0, "true mode: an empty report");
    cr_assert(json_is_null(fleet_at(root, "provenance/first")));
    json_decref(root);
    store_close(s);
}

Test(query_report, etags)
{
    struct store *s = fleet_of_one();
    struct store_scope all = {.all = true}, own = {.uid = 1000};
    struct fleet_answer first = fleet_ask(s, REPORT), again = fleet_ask_as(s, REPORT, first.etag, all);
    char weak[120];
    cr_assert_eq(first.etag[0], '"');
    cr_assert_eq(again.http, 304);
    cr_assert_str_eq(again.etag, first.etag);
    free(again.body);
    snprintf(weak, sizeof weak, "\"other\", W/%s", first.etag);
    cr_assert_eq(fleet_status(s, REPORT, weak, all), 304);
    cr_assert_eq(fleet_status(s, REPORT, "*", all), 304);
    cr_assert_eq(fleet_status(s, REPORT, "\"other\"", all), 200);
    cr_assert_eq(fleet_status(s, REPORT "?limit=1", first.etag, all), 200, "another question");
    cr_assert_eq(fleet_status(s, REPORT, first.etag, own), 200, "another asker");
    cr_assert_eq(fleet_status(s, "/api/v1/builds/" PROGRAM "/report", first.etag, all), 304, "the same build in full");
    cr_assert_eq(fleet_status(s, "/api/v1/builds/beef/report", "*", all), 404);
    struct fleet_upload u = fleet_cycle(2);
    fleet_put(s, &u);
    again = fleet_ask_as(s, REPORT, first.etag, all);
    cr_assert_eq(again.http, 200, "new data, new tag");
    cr_assert_str_neq(again.etag, first.etag);
    free(again.body);
    free(first.body);
    store_close(s);
}

Test(query_function, one_and_search)
{
    struct store *s = fleet_of_one();
    json_t *root = fleet_get(s, "/api/v1/builds/4f2a/functions/0x401034");
    cr_assert_eq(json_array_size(fleet_at(root, "functions")), 1);
    cr_assert_str_eq(fleet_text(root, "functions/0/name"), "b", "an address inside names it too");
    cr_assert_str_eq(fleet_text(root, "functions/0/callers/0/name"), "a");
    cr_assert_str_eq(fleet_text(root, "truncated/reason"), "function");
    json_decref(root);
    root = fleet_get(s, "/api/v1/builds/4f2a/functions/main");
    cr_assert_str_eq(fleet_text(root, "functions/0/name"), "main", "so does its name");
    json_decref(root);
    root = fleet_get(s, "/api/v1/builds/4f2a/functions?name=a");
    cr_assert_eq(json_array_size(fleet_at(root, "rows")), 3, "start, main, a");
    cr_assert(json_is_null(fleet_at(root, "next")));
    json_decref(root);
    root = fleet_get(s, "/api/v1/builds/4f2a/functions?name=a&limit=2");
    char next[200];
    snprintf(next, sizeof next, "/api/v1/builds/4f2a/functions?name=a&limit=2&cursor=%s", fleet_text(root, "next"));
    json_decref(root);
    root = fleet_get(s, next);
    cr_assert_eq(json_array_size(fleet_at(root, "rows")), 1);
    json_decref(root);
    static const struct {
        const char *target;
        int http;
    } REFUSED[] = {
        {"/api/v1/builds/4f2a/functions", 400},          {"/api/v1/builds/4f2a/functions?name=", 400},
        {"/api/v1/builds/4f2a/functions/nobody", 404},   {"/api/v1/builds/4f2a/functions/0x", 404},
        {"/api/v1/builds/4f2a/functions/0x999999", 404}, {"/api/v1/builds/4f2a/functions/11112222333344445", 404}};
    for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++) {
        struct fleet_answer answer = fleet_ask(s, REFUSED[i].target);
        cr_assert_eq(answer.http, REFUSED[i].http, "%s: %d", REFUSED[i].target, answer.http);
        free(answer.body);
    }
    store_close(s);
}
