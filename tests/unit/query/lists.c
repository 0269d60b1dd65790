/* Lists of builds and labels: paging, refusals, ETags; openapi.json describes every route. */
#include "tests/unit/query/fleet.h"

Test(query_lists, builds_page_by_cursor)
{
    struct store *s = fleet_open();
    struct profd_error e;
    for (uint32_t i = 0; i < 25; i++) {
        uint8_t *bytes;
        size_t size;
        struct fleet_upload u = fleet_cycle(i + 1);
        enum store_outcome outcome;
        struct store_build build = {.name = "p"};
        fleet_encode(&u, &bytes, &size);
        snprintf(build.id.text, sizeof build.id.text, "%08x", i * 7919);
        struct store_upload upload = {.uid = i % 5,
                                      .sequence = i + 1,
                                      .received = FLEET_NOW,
                                      .start = 1,
                                      .end = FLEET_NOW,
                                      .build_count = 1,
                                      .builds = &build,
                                      .counts = bytes,
                                      .counts_size = size};
        cr_assert_eq(store_put_uploads(s, &upload, 1, &outcome, &e), PROFD_OK, "%s", e.sentence);
        free(bytes);
    }
    char target[200] = "/api/v1/builds?limit=10", last[200] = "";
    size_t seen = 0, pages = 0;
    for (bool more = true; more; pages++) {
        json_t *root = fleet_get(s, target);
        for (size_t i = 0; i < json_array_size(fleet_at(root, "rows")); i++, seen++) {
            const char *id = fleet_text(json_array_get(fleet_at(root, "rows"), i), "build_id");
            cr_assert(strcmp(id, last) > 0);
            strcpy(last, id);
        }
        more = json_is_string(fleet_at(root, "next"));
        if (more) {
            snprintf(target, sizeof target, "/api/v1/builds?limit=10&cursor=%s", fleet_text(root, "next"));
        }
        json_decref(root);
    }
    cr_assert_eq(seen, 25);
    cr_assert_eq(pages, 3);
    struct fleet_answer own = fleet_ask_as(s, "/api/v1/builds", "", (struct store_scope){.uid = 3});
    json_t *root = fleet_parse(&own);
    cr_assert_eq(json_array_size(fleet_at(root, "rows")), 5);
    json_decref(root);
    free(own.body);
    json_t *exact = fleet_get(s, "/api/v1/builds?limit=25");
    cr_assert(json_is_null(fleet_at(exact, "next")), "a page that is just full is the last");
    json_decref(exact);
    store_close(s);
}

Test(query_lists, one_build_with_labels_and_companions)
{
    struct store *s = fleet_open();
    struct fleet_upload u = fleet_cycle(1);
    u.builds = 2;
    fleet_put(s, &u);
    u = fleet_cycle(2);
    u.builds = 2;
    u.host = "db2";
    fleet_put(s, &u);
    fleet_put_object(s, PROGRAM, 1000);
    json_t *root = fleet_get(s, "/api/v1/builds/" PROGRAM);
    cr_assert_str_eq(fleet_text(root, "name"), "/srv/bin/cycle");
    cr_assert_eq(fleet_number(root, "uploads"), 2);
    cr_assert_eq(fleet_number(root, "processes_started"), 2);
    cr_assert_float_eq(fleet_number(root, "seconds"), 3.86, 1e-9);
    cr_assert_eq(fleet_number(root, "calls"), 32);
    cr_assert(json_is_true(fleet_at(root, "is_program")) && json_is_true(fleet_at(root, "symbols")));
    cr_assert(json_is_null(fleet_at(root, "variants")), "nobody is trusted to name functions for everybody");
    cr_assert_eq(json_array_size(fleet_at(root, "labels")), 3);
    cr_assert_str_eq(fleet_text(root, "labels/1/value"), "db2");
    cr_assert_str_eq(fleet_text(root, "companions/0/build_id"), LIBRARY);
    json_decref(root);
    struct fleet_answer own = fleet_ask_as(s, "/api/v1/builds/4f2a", "", (struct store_scope){.uid = 1000});
    root = fleet_parse(&own);
    cr_assert_eq(fleet_number(root, "variants"), 1);
    json_decref(root);
    free(own.body);
    root = fleet_get(s, "/api/v1/labels");
    cr_assert_eq(json_array_size(fleet_at(root, "rows")), 2);
    cr_assert_eq(fleet_number(root, "rows/0/values"), 2);
    json_decref(root);
    root = fleet_get(s, "/api/v1/labels/host/values?limit=1&build_id=4f2a");
    cr_assert_str_eq(fleet_text(root, "rows/0/value"), "db1");
    cr_assert_str_eq(fleet_text(root, "next"), "db1");
    json_decref(root);
    root = fleet_get(s, "/api/v1/labels/host/values?limit=1&cursor=db1");
    cr_assert_str_eq(fleet_text(root, "rows/0/value"), "db2");
    cr_assert(json_is_null(fleet_at(root, "next")));
    json_decref(root);
    root = fleet_get(s, "/api/v1/labels/nobody/values");
    cr_assert_eq(json_array_size(fleet_at(root, "rows")), 0);
    json_decref(root);
    store_close(s);
}

Test(query_lists, refusals_are_problems)
{
    static const struct {
        const char *target;
        int http;
        const char *word;
    } CASES[] = {
        {"/api/v1/builds/beefbeef", 404, "beef"},
        {"/api/v1/builds/4f", 422, "4"},
        {"/api/v1/builds/4f2a?limit=1", 400, "limit"},
        {"/api/v1/builds?limit=-1", 400, "limit=-1"},
        {"/api/v1/builds?cursor=zz", 400, "cursor=zz"},
        {"/api/v1/builds?sicne=1", 400, "sicne"},
        {"/api/v1/builds?limit=1&limit=1", 400, "twice"},
        {"/api/v1/builds/", 404, "not found"},
        {"/api/v1/builds/4f2a/raport", 404, "not found"},
        {"/api/v2/builds", 404, "/api/v2"},
        {"/api/", 404, "not found"},
        {"/api/v1/builds?x=%zz", 400, "hexadecimal"},
        {"/api/v1/labels//values", 404, "not found"},
        {"/api/v1/labels?build_id=beefbeef", 404, "beef"},
        {"/openapi.json?x=1", 400, "'x'"},
        {"/api/v1/builds/4f2a/report?uid=x", 400, "uid=x"},
        {"/api/v1/builds/4f2a/report?name=x", 400, "'name'"},
    };
    struct store *s = fleet_open();
    struct fleet_upload u = fleet_cycle(1);
    fleet_put(s, &u);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct fleet_answer answer = fleet_ask(s, CASES[i].target);
        cr_assert_eq(answer.http, CASES[i].http, "%s: %d %s", CASES[i].target, answer.http, answer.body);
        json_t *root = fleet_parse(&answer);
        cr_assert_eq(fleet_number(root, "status"), CASES[i].http);
        cr_assert_not_null(strstr(fleet_text(root, "detail"), CASES[i].word), "%s: %s", CASES[i].target, answer.body);
        json_decref(root);
        free(answer.body);
    }
    store_close(s);
}

Test(query_lists, list_etags_follow_the_data)
{
    struct store *s = fleet_open();
    struct store_scope all = {.all = true};
    struct fleet_answer empty = fleet_ask(s, "/api/v1/builds");
    cr_assert_str_eq(empty.body, "{\"rows\":[],\"next\":null}\n");
    cr_assert_eq(fleet_status(s, "/api/v1/builds", empty.etag, all), 304);
    struct fleet_upload u = fleet_cycle(1);
    fleet_put(s, &u);
    cr_assert_eq(fleet_status(s, "/api/v1/builds", empty.etag, all), 200);
    free(empty.body);
    store_close(s);
}

Test(query_lists, openapi_describes_the_routes)
{
    struct store *s = fleet_open();
    json_t *root = fleet_get(s, "/openapi.json");
    const char *path;
    json_t *item;
    cr_assert_eq(strncmp(fleet_text(root, "openapi"), "3.1.", 4), 0);
    json_object_foreach(json_object_get(root, "paths"), path, item)
    {
        enum query_kind kind; /* "{id}" is a segment like any other; openapi.py looks the other way round */
        const bool asked = json_object_get(item, "get") != NULL || query_reads_body(path, strlen(path));
        cr_assert_eq(query_find_source(path, &kind) != QUERY_NONE, asked, "%s", path);
    }
    json_decref(root);
    store_close(s);
}

static enum query_kind kind_of(const char *target, enum query_source source)
{
    enum query_kind kind = QUERY_KINDS;

    cr_assert_eq(query_find_source(target, &kind), source, "%s", target);
    return kind;
}

Test(query_lists, every_path_has_one_source_and_one_kind)
{
    cr_assert_eq(kind_of("/api/v1/builds", QUERY_STORE), QUERY_BUILDS);
    cr_assert_eq(kind_of("/api/v1/builds?limit=3/report", QUERY_STORE), QUERY_BUILDS);
    cr_assert_eq(kind_of("/api/v1/builds/abcd", QUERY_STORE), QUERY_BUILD);
    cr_assert_eq(kind_of("/api/v1/builds/abcd/report?x=1", QUERY_STORE), QUERY_REPORT);
    cr_assert_eq(kind_of("/api/v1/builds/abcd/counts", QUERY_STORE), QUERY_COUNTS);
    cr_assert_eq(kind_of("/api/v1/builds/abcd/groups?by=host", QUERY_STORE), QUERY_GROUPS);
    cr_assert_eq(kind_of("/api/v1/builds/abcd/functions/0x10", QUERY_STORE), QUERY_FUNCTIONS);
    cr_assert_eq(kind_of("/api/v1/functions", QUERY_STORE), QUERY_FUNCTIONS);
    cr_assert_eq(kind_of("/api/v1/labels/host/values", QUERY_STORE), QUERY_LABELS);
    cr_assert_eq(kind_of("/openapi.json?x=1", QUERY_STORE), QUERY_OTHER);
    cr_assert_eq(kind_of("/api/v1/processes?uid=1", QUERY_PROCESSES), QUERY_LIVE);
    cr_assert_eq(kind_of("/api/v1/status", QUERY_STATUS), QUERY_OTHER);
    cr_assert_eq(kind_of("/metrics", QUERY_METRICS), QUERY_OTHER);
    cr_assert_eq(kind_of("/healthz", QUERY_HEALTH), QUERY_OTHER);
    cr_assert_eq(kind_of("/readyz", QUERY_READY), QUERY_OTHER);
    for (const char *const *p = (const char *const[]){"", "/", "/api/v1/buildsx", "/api/v1/builds/", "/openapi.jsonx",
                                                      "/api/v1/builds/abcd/else", "/metrics/", NULL};
         *p; p++) {
        cr_assert_eq(kind_of(*p, QUERY_NONE), QUERY_OTHER);
    }
}
