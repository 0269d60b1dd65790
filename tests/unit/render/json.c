/* Reports as JSON: every number, cuts, large counts, escaping, and RFC 9457 problems. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/unit/render/cycle.h"

static json_t *parse(const struct buffer *b)
{
    json_error_t error;
    cr_assert(!b->failed);
    json_t *root = json_loadb(b->data, b->size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    cr_assert_not_null(root, "%s at %d: %.*s", error.text, error.position, (int)b->size, b->data);
    return root;
}

static json_t *render(const struct render_input *in)
{
    struct arena *a = arena_new(0);
    struct buffer out;
    struct profd_error e;
    buffer_init(&out, 1 << 20);
    cr_assert_eq(render_find("json")->render(in, a, &out, &e), PROFD_OK);
    json_t *root = parse(&out);
    buffer_done(&out);
    arena_free(a);
    return root;
}

static double number(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    cr_assert(json_is_number(v), "%s", key);
    return json_number_value(v);
}

static const char *text(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    cr_assert(json_is_string(v), "%s", key);
    return json_string_value(v);
}

static json_t *item(const json_t *o, const char *key, size_t i)
{
    json_t *v = json_array_get(json_object_get(o, key), i);
    cr_assert_not_null(v, "%s[%zu]", key, i);
    return v;
}

static json_t *by_name(const json_t *root, const char *list, const char *name)
{
    size_t i;
    json_t *v;
    json_array_foreach(json_object_get(root, list), i, v)
    {
        if (strcmp(text(v, "name"), name) == 0) {
            return v;
        }
    }
    cr_assert_fail("no %s in %s", name, list);
    return NULL;
}

static void check_row(const json_t *row, const char *name, double calls, double of_calls, double self, double children)
{
    cr_assert_str_eq(text(row, "name"), name);
    cr_assert_eq(number(row, "calls"), calls);
    cr_assert_eq(number(row, "of_calls"), of_calls);
    cr_assert_eq(number(row, "self_seconds"), self);
    cr_assert_eq(number(row, "children_seconds"), children);
}

Test(render_json, cycle_example_carries_every_number)
{
    struct render_input in = cycle_input();
    json_t *root = render(&in);
    cr_assert_str_eq(text(root, "schema"), "profd-report-1");
    cr_assert_str_eq(text(root, "build_id"), CYCLE_ID);
    cr_assert(json_is_null(json_object_get(root, "truncated")));
    const json_t *totals = json_object_get(root, "totals"), *from = json_object_get(root, "provenance");
    cr_assert_eq(number(totals, "seconds"), 1.93);
    cr_assert_eq(number(totals, "ticks"), 193);
    cr_assert_eq(number(from, "processes_started"), 2);
    cr_assert(json_is_false(json_object_get(from, "exact")));
    cr_assert_str_eq(json_string_value(item(from, "inexact_reasons", 1)), "caller-bucket");
    cr_assert_str_eq(text(from, "first"), "2026-11-21T16:00:00Z");
    const json_t *cycle = item(root, "cycles", 0);
    cr_assert_eq(number(cycle, "index"), 3);
    cr_assert_float_eq(number(cycle, "percent"), 91.71, 0.005);
    cr_assert_eq(number(cycle, "self_seconds"), 1.77);
    cr_assert_eq(number(cycle, "calls_outside"), 1);
    cr_assert_eq(number(cycle, "calls_inside"), 5);
    check_row(item(cycle, "members", 0), "b", 3, 0, 1.02, 0);
    check_row(item(cycle, "members", 1), "a", 2, 0, 0.75, 0);
    check_row(item(cycle, "callers", 0), "main", 1, 1, 1.77, 0);
    check_row(item(cycle, "callees", 0), "c", 6, 6, 0, 0);
    const json_t *a = by_name(root, "functions", "a"), *b = by_name(root, "functions", "b");
    cr_assert_eq(number(a, "calls_outside"), 1);
    cr_assert_eq(number(a, "calls_inside"), 2);
    cr_assert_eq(number(b, "calls_outside"), 0);
    cr_assert_eq(number(b, "cycle"), 1);
    cr_assert_str_eq(text(b, "address"), "0x401030");
    check_row(item(a, "callers", 0), "b", 2, 0, 0, 0);
    cr_assert(json_is_true(json_object_get(item(a, "callers", 0), "inside")));
    check_row(item(a, "callers", 1), "main", 1, 1, 1.77, 0);
    cr_assert_null(json_object_get(item(a, "callers", 1), "inside"));
    cr_assert(json_is_true(json_object_get(by_name(root, "functions", "start"), "spontaneous")));
    cr_assert_str_eq(text(item(root, "functions", 0), "name"), "main", "index order");
    json_decref(root);
}

Test(render_json, limit_cuts_after_sorting_and_keeps_indexes)
{
    struct render_input in = cycle_input();
    in.show.limit = 1;
    in.show.sort = RENDER_SORT_SELF;
    json_t *root = render(&in);
    cr_assert_eq(json_array_size(json_object_get(root, "functions")), 1);
    const json_t *b = item(root, "functions", 0), *cut = json_object_get(root, "truncated");
    cr_assert_str_eq(text(b, "name"), "b");
    cr_assert_eq(number(b, "index"), 4);
    check_row(item(b, "callers", 0), "a", 3, 0, 0, 0);
    cr_assert_eq(number(item(b, "callers", 0), "index"), 5, "a cut neighbour keeps its index");
    cr_assert_eq(json_array_size(json_object_get(root, "cycles")), 1, "the cycle of a shown member");
    cr_assert_eq(number(cut, "functions"), 4);
    cr_assert_float_eq(number(cut, "seconds"), 0.91, 1e-9);
    cr_assert_str_eq(text(cut, "reason"), "limit");
    json_decref(root);
    in.show.sort = RENDER_SORT_CALLS;
    root = render(&in);
    cr_assert_str_eq(text(item(root, "functions", 0), "name"), "c");
    cr_assert_eq(json_array_size(json_object_get(root, "cycles")), 0);
    json_decref(root);
    in.show.limit = 5;
    root = render(&in);
    cr_assert(json_is_null(json_object_get(root, "truncated")), "a limit that cuts nothing is no cut");
    json_decref(root);
}

Test(render_json, focus_and_flat_view)
{
    struct render_input in = cycle_input();
    in.show.focus = "ain";
    json_t *root = render(&in);
    cr_assert_eq(json_array_size(json_object_get(root, "functions")), 1);
    cr_assert_str_eq(text(json_object_get(root, "truncated"), "reason"), "focus");
    json_decref(root);
    in = cycle_input();
    in.show.view = RENDER_VIEW_FLAT;
    root = render(&in);
    const json_t *columns = json_object_get(root, "columns");
    cr_assert_null(json_object_get(root, "functions"));
    cr_assert_eq(json_array_size(json_object_get(columns, "name")), 5);
    cr_assert_eq(json_array_size(json_object_get(columns, "calls")), 5);
    cr_assert_eq(json_real_value(json_array_get(json_object_get(columns, "self_seconds"), 2)), 1.02);
    json_decref(root);
    in.show.focus = "nobody";
    root = render(&in);
    cr_assert_eq(json_array_size(json_object_get(json_object_get(root, "columns"), "name")), 0);
    json_decref(root);
}

Test(render_json, counts_beyond_2_53_have_their_digits)
{
    struct report r = cycle_report;
    struct report_function functions[CYCLE_FUNCTIONS];
    struct render_input in = cycle_input();
    memcpy(functions, cycle_functions, sizeof functions);
    functions[C].calls = INT64_MAX;
    functions[B].calls = UINT64_C(1) << 53;
    r.functions = functions;
    in.report = &r;
    json_t *root = render(&in);
    cr_assert_str_eq(text(by_name(root, "functions", "c"), "calls_str"), "9223372036854775807");
    cr_assert_null(json_object_get(by_name(root, "functions", "b"), "calls_str"));
    json_decref(root);
    in.show.view = RENDER_VIEW_FLAT;
    root = render(&in);
    const json_t *calls = json_object_get(json_object_get(root, "columns"), "calls");
    cr_assert_str_eq(json_string_value(json_array_get(calls, 4)), "9223372036854775807");
    json_decref(root);
}

Test(render_json, functions_that_were_not_called_are_listed_apart)
{
    struct report r = cycle_report;
    static const struct report_function idle[] = {{NAMED("idle"), .address = 0x401050},
                                                  {NAMED("unused"), .address = 0x401060}};
    struct render_input in = cycle_input();
    r.not_called = idle;
    r.not_called_count = 2;
    r.counted_functions = 7;
    in.report = &r;
    json_t *root = render(&in);
    cr_assert_str_eq(text(item(root, "not_called", 0), "address"), "0x401050");
    cr_assert_eq(json_array_size(json_object_get(root, "functions")), 5);
    cr_assert_eq(number(json_object_get(root, "totals"), "functions"), 5);
    cr_assert(json_is_null(json_object_get(root, "truncated")));
    json_decref(root);
    in.show.focus = "unu";
    root = render(&in);
    cr_assert_eq(json_array_size(json_object_get(root, "not_called")), 1);
    cr_assert_str_eq(text(item(root, "not_called", 0), "name"), "unused");
    cr_assert_eq(number(json_object_get(root, "not_called_basis"), "counted_functions"), 7);
    cr_assert_eq(number(json_object_get(root, "not_called_basis"), "not_called"), 2);
    json_decref(root);
}

/* b and a are the members; a is called from outside once, c is called by both. */
Test(render_json, lists_are_cut_to_their_heaviest_rows)
{
    struct render_input in = cycle_input();
    in.show.rows = 1;
    json_t *root = render(&in);
    cr_assert_eq(number(root, "rows"), 1);
    json_t *cycle = item(root, "cycles", 0), *left = json_object_get(cycle, "members_left_out");
    cr_assert(json_array_size(json_object_get(cycle, "members")) == 1 && number(cycle, "member_count") == 2);
    cr_assert_str_eq(text(item(cycle, "members", 0), "name"), "b");
    cr_assert(number(left, "rows") == 1 && number(left, "calls") == 2);
    cr_assert_float_eq(json_number_value(json_object_get(left, "seconds")), 0.75, 1e-12);
    cr_assert_null(json_object_get(cycle, "callers_left_out"), "one caller, nothing is left out");
    for (size_t i = 0; i < json_array_size(json_object_get(root, "functions")); i++) {
        json_t *f = item(root, "functions", i);
        if (strcmp(text(f, "name"), "a") == 0) { /* callers are listed least first: main, with all the time, is last */
            cr_assert_str_eq(text(item(f, "callers", 0), "name"), "main");
            cr_assert_eq(number(json_object_get(f, "callers_left_out"), "calls"), 2);
            cr_assert_str_eq(text(item(f, "callees", 0), "name"), "c");
            cr_assert_eq(number(json_object_get(f, "callees_left_out"), "calls"), 3);
        }
    }
    json_decref(root);
}

static double per_call(const json_t *entry, const char *list, const char *name)
{
    const json_t *row;
    size_t i;
    json_array_foreach(json_object_get(entry, list), i, row)
    {
        if (strcmp(text(row, "name"), name) == 0) {
            const json_t *value = json_object_get(row, "calls_per_caller_call");
            return value != NULL ? json_number_value(value) : -1;
        }
    }
    cr_assert_fail("no %s in %s", name, list);
    return -1;
}

/* In its 3 calls b calls a twice; the cycle as a whole was called once and calls c 6 times. start
 * was never called. */
Test(render_json, calls_per_call_of_the_caller)
{
    struct render_input in = cycle_input();
    struct provenance sampled = *in.provenance;
    json_t *root = render(&in);
    json_t *cycle = item(root, "cycles", 0), *functions = json_object_get(root, "functions"), *f;
    size_t i;
    cr_assert_float_eq(per_call(cycle, "callees", "c"), 6, 1e-12);
    cr_assert_float_eq(per_call(cycle, "callers", "main"), 1, 1e-12);
    cr_assert_lt(per_call(cycle, "members", "b"), 0, "a member's calls come from several functions");
    json_array_foreach(functions, i, f)
    {
        if (strcmp(text(f, "name"), "b") == 0) {
            cr_assert_float_eq(per_call(f, "callees", "a"), 2.0 / 3, 1e-12);
            cr_assert_float_eq(per_call(f, "callers", "a"), 1, 1e-12);
        } else if (strcmp(text(f, "name"), "main") == 0) {
            cr_assert_lt(per_call(f, "callers", "start"), 0);
        }
    }
    json_decref(root);
    sampled.inexact |= INEXACT_SAMPLED;
    in.provenance = &sampled;
    root = render(&in);
    cr_assert_lt(per_call(item(root, "cycles", 0), "callees", "c"), 0, "sampled calls are not counted calls");
    json_decref(root);
}

Test(render_json, strings_survive_anything)
{
    static const char *const CASES[][2] = {
        {"plain", "\"plain\""},
        {"a\"b\\c", "\"a\\\"b\\\\c\""},
        {"<b>&", "\"\\u003cb\\u003e\\u0026\""},
        {"\x01\x1b\x7f\n", "\"\\u0001\\u001b\\u007f\\u000a\""},
        {"caf\xc3\xa9", "\"caf\xc3\xa9\""},
        {"\xff\xc3", "\"\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xe2\x80\xa8\xc2\x9b", "\"\\u2028\\u009b\""},
        {"", "\"\""},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct buffer b;
        buffer_init(&b, 1000);
        render_json_string(&b, CASES[i][0]);
        cr_assert_eq(b.size, strlen(CASES[i][1]), "case %zu: %.*s", i, (int)b.size, b.data);
        cr_assert_eq(memcmp(b.data, CASES[i][1], b.size), 0, "case %zu: %.*s", i, (int)b.size, b.data);
        buffer_done(&b);
    }
    srand(7);
    for (int round = 0; round < 20000; round++) {
        char random[24] = "";
        struct buffer b;
        for (int i = 0; i < 20; i++) {
            random[i] = (char)(1 + rand() % 255);
        }
        buffer_init(&b, 1000);
        render_json_string(&b, random);
        json_t *value = json_loadb(b.data, b.size, JSON_DECODE_ANY, NULL);
        cr_assert_not_null(value, "round %d of seed 7", round);
        json_decref(value);
        buffer_done(&b);
    }
}

Test(render_json, lists_are_flat_rows)
{
    struct build_row rows[2] = {{.build_id = {CYCLE_ID},
                                 .name = "/srv/bin/cycle",
                                 .is_program = true,
                                 .first_seen = 1,
                                 .uploads = 3,
                                 .processes = 2,
                                 .nanoseconds = 1930000000,
                                 .calls = 16,
                                 .inexact = 4,
                                 .has_names = true,
                                 .note = ""},
                                {.build_id = {"ab"}, .name = "x", .note = "it is \"odd\""}};
    struct buffer out;
    buffer_init(&out, 1 << 16);
    render_list(RENDER_BUILDS, rows, 2, "ab", &out);
    json_t *root = parse(&out);
    const json_t *first = item(root, "rows", 0);
    cr_assert_eq(number(first, "seconds"), 1.93);
    cr_assert_str_eq(text(first, "first_seen"), "1970-01-01T00:00:00.000000001Z");
    cr_assert(json_is_null(json_object_get(first, "last_seen")));
    cr_assert_str_eq(json_string_value(item(first, "inexact_reasons", 0)), "16-bit-bins");
    cr_assert(json_is_true(json_object_get(item(root, "rows", 1), "exact")));
    cr_assert_str_eq(text(item(root, "rows", 1), "note"), "it is \"odd\"");
    cr_assert_str_eq(text(root, "next"), "ab");
    json_decref(root);
    buffer_done(&out);
    const struct label_name_row labels[] = {{"host", 2, 3}, {"service", 1, UINT64_C(1) << 54}};
    buffer_init(&out, 1 << 16);
    render_list(RENDER_LABELS, labels, 2, NULL, &out);
    root = parse(&out);
    cr_assert_eq(json_array_size(json_object_get(root, "rows")), 2);
    cr_assert_eq(number(item(root, "rows", 0), "values"), 2);
    cr_assert_eq(number(item(root, "rows", 0), "uploads"), 3);
    cr_assert_str_eq(text(item(root, "rows", 1), "uploads_str"), "18014398509481984");
    json_decref(root);
    buffer_done(&out);
}

Test(render_json, problem_is_rfc_9457)
{
    struct buffer out;
    buffer_init(&out, 1 << 16);
    render_problem(PROFD_BUSY, 503, "the queue of queries is full", &out);
    json_t *root = parse(&out);
    cr_assert_str_eq(text(root, "type"), "about:blank");
    cr_assert_str_eq(text(root, "title"), "Service Unavailable");
    cr_assert_eq(number(root, "status"), 503);
    cr_assert_str_eq(text(root, "code"), "BUSY");
    cr_assert(json_is_true(json_object_get(root, "retry")));
    json_decref(root);
    buffer_done(&out);
}

Test(render_time, agrees_with_gmtime)
{
    char out[40];
    render_time(0, out);
    cr_assert_str_eq(out, "1970-01-01T00:00:00Z");
    render_time(1795276800123456780, out);
    cr_assert_str_eq(out, "2026-11-21T16:00:00.12345678Z");
    render_time(-1, out);
    cr_assert_str_eq(out, "1969-12-31T23:59:59.999999999Z");
    for (int64_t day = -20000; day < 80000; day++) {
        time_t seconds = (time_t)day * 86400 + 86399;
        struct tm tm;
        char expected[40];
        gmtime_r(&seconds, &tm);
        strftime(expected, sizeof expected, "%Y-%m-%dT%H:%M:%SZ", &tm);
        render_time((int64_t)seconds * 1000000000, out);
        cr_assert_str_eq(out, expected);
    }
}
