/* Functions of several programs joined by name: times add up, and what cannot be joined is reported. */
#include "store/store_internal.h"
#include "tests/unit/query/fleet.h"

static void put(struct store *s, uint32_t sequence, uint32_t builds, uint32_t uid, const char *host)
{
    struct fleet_upload u = fleet_cycle(sequence);
    u.uid = uid;
    u.builds = builds;
    u.host = host;
    fleet_put(s, &u);
}

Test(query_joined, one_program_is_its_own_report)
{
    struct store *s = fleet_open();
    fleet_put_object(s, PROGRAM, 1000);
    put(s, 1, 1, 1000, "db1");
    put(s, 2, 1, 1000, "db2");
    json_t *joined = fleet_get(s, "/api/v1/functions"), *report = fleet_get(s, "/api/v1/builds/" PROGRAM "/report");
    size_t i;
    json_t *row;
    cr_assert_gt(json_array_size(json_object_get(joined, "rows")), 3);
    json_array_foreach(json_object_get(joined, "rows"), i, row)
    {
        const json_t *f = fleet_named(report, "functions", fleet_text(row, "name"));
        cr_assert_not_null(f, "%s", fleet_text(row, "name"));
        cr_assert_float_eq(fleet_number(row, "self_seconds"), fleet_number(f, "self_seconds"), 1e-12);
        cr_assert_float_eq(fleet_number(row, "total_seconds"),
                           fleet_number(f, "self_seconds") + fleet_number(f, "children_seconds"), 1e-12);
        cr_assert_eq(fleet_number(row, "calls"), fleet_number(f, "calls"));
        cr_assert_eq(fleet_number(row, "programs"), 1);
        cr_assert_eq(fleet_number(row, "builds"), 1);
    }
    cr_assert_float_eq(fleet_number(joined, "seconds"), 3.86, 1e-9);
    cr_assert_eq(fleet_number(joined, "uploads"), 2);
    cr_assert_str_eq(fleet_text(joined, "rows/0/name"), "b");
    json_decref(joined);
    joined = fleet_get(s, "/api/v1/functions?match=host%3D%22db2%22&sort=calls&limit=1");
    cr_assert_float_eq(fleet_number(joined, "seconds"), 1.93, 1e-9, "labels narrow it");
    cr_assert_str_eq(fleet_text(joined, "rows/0/name"), "c");
    cr_assert_str_eq(fleet_text(joined, "next"), "1");
    json_decref(joined);
    joined = fleet_get(s, "/api/v1/functions?sort=total&name=a");
    cr_assert_str_eq(fleet_text(joined, "rows/0/name"), "main");
    cr_assert_eq(fleet_number(joined, "names"), 3, "main, a, start");
    json_decref(joined);
    json_decref(report);
    store_close(s);
}

/* A second build of the program, with a function that moved and one that has a twin. */
static void put_second(struct store *s, const char *id, bool twins)
{
    static const char NAMES[] = "\0start\0main\0a\0b\0c\0x.c";
    struct object_symbol symbols[5] = {0};
    struct object_range ranges[] = {{F_START, F_END, OBJECT_RANGE_TEXT}, {F_START, F_END, OBJECT_RANGE_SEGMENT}};
    static const uint32_t OFFSETS[] = {1, 7, 14, 12, 16};
    struct object o = {.machine = 62,
                       .bits = 64,
                       .has_names = true,
                       .symbols = symbols,
                       .ranges = ranges,
                       .range_count = 2,
                       .symbol_count = 5,
                       .names = NAMES,
                       .name_bytes = sizeof NAMES,
                       .note = ""};
    uint8_t *bytes;
    size_t size;
    struct profd_error e;
    for (uint32_t i = 0; i < 5; i++) {
        uint32_t name = twins && i == 3 ? OFFSETS[2] : OFFSETS[i];
        symbols[i] = (struct object_symbol){.address = F_START + 16 * (uint64_t)i,
                                            .size = 16,
                                            .name = name,
                                            .demangled = name,
                                            .bind = OBJECT_BIND_GLOBAL,
                                            .type = OBJECT_TYPE_FUNCTION,
                                            .flags = OBJECT_SYMBOL_EXECUTABLE};
    }
    strcpy(o.id.text, id);
    memset(o.variant, 'b', 64);
    cr_assert_eq(object_encode(&o, &bytes, &size, &e), PROFD_OK, "%s", e.sentence);
    struct store_object object = {.uid = 1000,
                                  .has_names = true,
                                  .encoded = bytes,
                                  .encoded_size = size,
                                  .name = id,
                                  .note = "",
                                  .received = FLEET_NOW};
    strcpy(object.id.text, id);
    memset(object.variant, 'b', 64);
    cr_assert_eq(store_put_object(s, &object, &e), PROFD_OK, "%s", e.sentence);
    free(bytes);
}

static void put_program(struct store *s, const char *id, uint32_t sequence)
{
    struct fleet_upload u = fleet_cycle(sequence);
    struct store_label labels[] = {{"service", "api"}};
    struct store_build build = {.name = "/srv/bin/cycle2", .nanoseconds = 1930000000, .calls = 16};
    uint8_t *bytes;
    size_t size;
    enum store_outcome outcome;
    struct profd_error e;
    strcpy(build.id.text, id);
    fleet_encode(&u, &bytes, &size);
    struct store_upload upload = {.uid = 1000,
                                  .sender = "abcdefghijx",
                                  .sequence = sequence,
                                  .received = u.end,
                                  .start = u.end - MINUTE,
                                  .end = u.end,
                                  .processes_started = 1,
                                  .build_count = 1,
                                  .builds = &build,
                                  .label_count = 1,
                                  .labels = labels,
                                  .counts = bytes,
                                  .counts_size = size,
                                  .ticks = 193,
                                  .calls = 16,
                                  .inexact = (uint32_t)INEXACT_SAMPLED};
    cr_assert_eq(store_put_uploads(s, &upload, 1, &outcome, &e), PROFD_OK, "%s", e.sentence);
    free(bytes);
}

#define SECOND_ID "77aa91c0d3e8b7a65f4e3d2c1b0a998877665544"

Test(query_joined, programs_are_joined_by_name_wherever_the_functions_lie)
{
    struct store *s = fleet_open();
    fleet_put_object(s, PROGRAM, 1000);
    put_second(s, SECOND_ID, false); /* a and b have changed places */
    put(s, 1, 1, 1000, "db1");
    put_program(s, SECOND_ID, 1);
    json_t *joined = fleet_get(s, "/api/v1/functions");
    const json_t *a = fleet_named(joined, "rows", "a");
    cr_assert_not_null(a);
    cr_assert_float_eq(fleet_number(a, "self_seconds"), 0.75 + 1.02, 1e-9);
    cr_assert_eq(fleet_number(a, "programs"), 2);
    cr_assert_eq(fleet_number(a, "builds"), 2);
    cr_assert_eq(fleet_number(joined, "programs"), 2);
    cr_assert_float_eq(fleet_number(joined, "seconds"), 3.86, 1e-9);
    cr_assert_eq(fleet_number(joined, "not_joined/unnamed_functions"), 0);
    json_decref(joined);
    store_close(s);
}

Test(query_joined, what_does_not_join_is_told_and_nothing_is_lost)
{
    for (int names = 0; names < 2; names++) {
        struct store *s = fleet_open();
        fleet_put_object(s, PROGRAM, 1000);
        if (names) {
            put_second(s, SECOND_ID, true); /* two functions called b */
        }
        put(s, 1, 1, 1000, "db1");
        put_program(s, SECOND_ID, 1);
        json_t *joined = fleet_get(s, "/api/v1/functions?limit=1000");
        size_t i;
        json_t *row;
        double sum = 0;
        json_array_foreach(json_object_get(joined, "rows"), i, row)
        {
            sum += fleet_number(row, "self_seconds");
        }
        sum += fleet_number(joined, "not_joined/unnamed_seconds") +
               fleet_number(joined, "not_joined/ambiguous_seconds") + fleet_number(joined, "not_joined/other_seconds");
        cr_assert_float_eq(sum, 3.86, 1e-9);
        if (names) {
            cr_assert_eq(fleet_number(joined, "not_joined/ambiguous_names"), 1);
            cr_assert_eq(fleet_number(joined, "not_joined/ambiguous_functions"), 2);
            cr_assert_float_eq(fleet_number(joined, "not_joined/ambiguous_seconds"), 1.77, 1e-9);
            cr_assert_eq(fleet_number(fleet_named(joined, "rows", "b"), "programs"), 1, "the other's is known");
            cr_assert(json_is_true(json_object_get(fleet_named(joined, "rows", "b"), "exact")));
            cr_assert_str_eq(fleet_text(fleet_named(joined, "rows", "main"), "inexact_reasons/0"), "sampled");
            cr_assert(json_is_false(json_object_get(joined, "exact")));
        } else {
            cr_assert_eq(fleet_number(joined, "not_joined/unnamed_builds"), 1);
            cr_assert_gt(fleet_number(joined, "not_joined/unnamed_functions"), 0);
            cr_assert_float_eq(fleet_number(joined, "not_joined/unnamed_seconds"), 1.93, 1e-9);
        }
        json_decref(joined);
        store_close(s);
    }
}

Test(query_joined, pages_users_windows_and_refusals)
{
    struct store *s = fleet_open();
    fleet_put_object(s, PROGRAM, 1000);
    fleet_put_object(s, PROGRAM, 1001); /* both sent it: it names the functions of their sum */
    put(s, 1, 1, 1000, "db1");
    put(s, 2, 1, 1001, "db1");
    char cursor[8] = "0", seen[200] = "";
    for (int page = 0; page < 10 && cursor[0] != '\0'; page++) {
        char target[100];
        snprintf(target, sizeof target, "/api/v1/functions?limit=2&cursor=%s", cursor);
        json_t *joined = fleet_get(s, target);
        size_t i;
        json_t *row;
        json_array_foreach(json_object_get(joined, "rows"), i, row)
        {
            strcat(seen, fleet_text(row, "name"));
            strcat(seen, " ");
        }
        const json_t *next = json_object_get(joined, "next");
        snprintf(cursor, sizeof cursor, "%s", json_is_string(next) ? json_string_value(next) : "");
        json_decref(joined);
    }
    cr_assert_str_eq(seen, "b a main c start ");
    struct fleet_answer own = fleet_ask_as(s, "/api/v1/functions", "", (struct store_scope){.uid = 1001});
    json_t *mine = fleet_parse(&own);
    cr_assert_eq(fleet_number(mine, "uploads"), 1);
    json_decref(mine);
    free(own.body);
    cr_assert_eq(fleet_status(s, "/api/v1/functions", own.etag, (struct store_scope){.uid = 1001}), 304);
    cr_assert_eq(fleet_status(s, "/api/v1/functions", own.etag, (struct store_scope){.uid = 1000}), 200,
                 "another's tag");
    cr_assert_eq(fleet_status(s, "/api/v1/functions?uid=1000", "", (struct store_scope){.uid = 1001}), 403);
    cr_assert_eq(fleet_status(s, "/api/v1/functions?sort=index", "", (struct store_scope){.all = true}), 400);
    cr_assert_eq(fleet_status(s, "/api/v1/functions?sort=name", "", (struct store_scope){.all = true}), 400);
    cr_assert_eq(fleet_status(s, "/api/v1/functions?limit=x", "", (struct store_scope){.all = true}), 400);
    cr_assert_eq(fleet_status(s, "/api/v1/functions?name=", "", (struct store_scope){.all = true}), 400);
    cr_assert_eq(fleet_status(s, "/api/v1/functions?scope=build", "", (struct store_scope){.all = true}), 400);
    json_t *none = fleet_get(s, "/api/v1/functions?until=2001-01-01T00:00:00Z");
    cr_assert_eq(json_array_size(json_object_get(none, "rows")), 0);
    cr_assert_eq(fleet_number(none, "programs"), 0);
    json_decref(none);
    store_close(s);
}

Test(query_joined, programs_that_are_not_read_are_counted)
{
    static const char RENDER[] = "/pyroscope/render?query=process_cpu:cpu:nanoseconds:cpu:nanoseconds%7B%7D&from=1";
    struct store *s = fleet_open();
    char id[41];
    for (uint32_t i = 1; i <= 2001; i++) {
        snprintf(id, sizeof id, "%040x", i);
        put_program(s, id, i);
        if (i == 2000) {
            struct fleet_answer whole = fleet_ask(s, RENDER);
            cr_assert_null(strstr(whole.exact, "programs-left"), "%s", whole.exact);
            free(whole.body);
        }
    }
    struct fleet_answer cut = fleet_ask(s, RENDER);
    cr_assert_eq(strncmp(cut.exact, "no; programs-left=1", 19), 0, "%s", cut.exact);
    free(cut.body);
    json_t *joined = fleet_get(s, "/api/v1/functions");
    cr_assert_eq(fleet_number(joined, "not_joined/programs"), 1);
    json_decref(joined);
    store_close(s);
}

/* At one statement of a reading handle, the writing one rolls up all hours. */
struct moment {
    struct store *writer;
    unsigned left; /* statements until then; 0: it is over */
};

static int roll_up(unsigned type, void *context, void *statement, void *text)
{
    const struct store_policy policy = {.raw_age = MINUTE, .raw_bytes = 1 << 20};
    struct moment *m = context;
    struct store_progress p = {.more = m->left == 1};
    struct profd_error e;
    (void)type, (void)statement, (void)text;
    m->left -= m->left > 0;
    while (p.more) {
        cr_assert_eq(store_compact(m->writer, &policy, FLEET_NOW, &p, &e), PROFD_OK, "%s", e.sentence);
    }
    return 0;
}

Test(query_joined, steps_count_an_upload_once_whenever_it_becomes_part_of_a_sum)
{
    /* With and without edges inside the hour. */
    static const char *const TARGETS[] = {
        "/api/v1/functions?step=10m",
        "/api/v1/functions?step=10m&since=2026-11-21T11:10:00Z&until=2026-11-21T11:40:00Z"};
    struct moment m = {.left = 0};
    for (unsigned n = 2; m.left == 0; n++) {
        struct store *reader;
        struct profd_error e;
        size_t i, k;
        json_t *row, *seconds;
        m = (struct moment){.writer = fleet_open(), .left = n / 2};
        fleet_put_object(m.writer, PROGRAM, 1000);
        for (uint32_t minute = 5; minute < 60; minute += 30) {
            struct fleet_upload u = fleet_cycle(minute);
            u.end = FLEET_NOW - 300 * MINUTE + minute * MINUTE;
            fleet_put(m.writer, &u);
        }
        cr_assert_eq(store_sqlite_open_reader(m.writer->path, &reader, &e), PROFD_OK, "%s", e.sentence);
        sqlite3_trace_v2(reader->db, SQLITE_TRACE_STMT, roll_up, &m);
        json_t *joined = fleet_get(reader, TARGETS[n % 2]);
        json_array_foreach(fleet_at(joined, "rows"), i, row)
        {
            double sum = 0;
            json_array_foreach(fleet_at(row, "trend"), k, seconds)
            {
                sum += json_number_value(seconds);
            }
            cr_expect_float_eq(sum, fleet_number(row, "self_seconds"), 1e-9, "statement %u: %s has %g seconds in steps",
                               n / 2, fleet_text(row, "name"), sum);
        }
        json_decref(joined);
        store_close(reader);
        store_close(m.writer);
    }
}
