/* Health, status and the dashboard's files, from fake numbers. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <string.h>

#include "requests/pages.h"

static struct pages_numbers numbers;
static struct pages *pages;

static void get_numbers(void *context, struct pages_numbers *out)
{
    cr_assert_eq(context, &numbers);
    cr_assert_null(out->failure, "what is not set is zero");
    *out = numbers;
}

static void setup(void)
{
    const struct pages_config config = {.get_numbers = get_numbers,
                                        .context = &numbers,
                                        .start = 2,
                                        .setup = {.http = "127.0.0.1:0", .user_share = 50}};

    cr_assert_eq(pages_new(&config, &pages, NULL), PROFD_OK);
    numbers.reserve = RESERVE_HELD;
    numbers.damaged_latest = "";
}

static void teardown(void)
{
    pages_free(pages);
}

TestSuite(pages, .init = setup, .fini = teardown);

/* The body of a page as JSON; the page is ended. */
static json_t *body_of(struct page *page)
{
    json_t *document = json_loadb(page->body.data, page->body.size, 0, NULL);

    cr_assert_not_null(document, "%.*s", (int)page->body.size, (const char *)page->body.data);
    buffer_done(&page->body);
    return document;
}

static json_t *ask(const char *target, enum query_source source, int status)
{
    const struct query_request request = {.target = target, .if_none_match = ""};
    struct page page = {.status = 0};

    cr_assert(pages_find(pages, source, &request, &page));
    cr_assert_eq(page.status, status);
    return body_of(&page);
}

static void expect(json_t *document, const char *key, const char *value)
{
    cr_assert_str_eq(json_string_value(json_object_get(document, key)), value);
}

Test(pages, a_healthy_daemon_is_ready)
{
    json_t *health = ask("/healthz", QUERY_HEALTH, 200), *ready = ask("/readyz?x=1", QUERY_READY, 200);

    expect(health, "status", "ok");
    cr_assert(json_is_true(json_object_get(health, "writable")));
    expect(ready, "status", "ready");
    expect(ready, "reserve", "held");
    json_decref(health), json_decref(ready);
}

Test(pages, readiness_names_the_gravest_reason)
{
    json_t *document;

    numbers.damaged = 1;
    numbers.damaged_latest = "profd.db.damaged-\"1\"";
    document = ask("/readyz", QUERY_READY, 200);
    expect(document, "status", "degraded");
    expect(document, "damaged_database", "profd.db.damaged-\"1\"");
    json_decref(document);
    numbers.full = "no space left in /x";
    document = ask("/readyz", QUERY_READY, 503);
    expect(document, "detail", "no space left in /x");
    json_decref(document);
    numbers.failure = "the disk has gone";
    document = ask("/readyz", QUERY_READY, 503);
    expect(document, "detail", "the disk has gone");
    json_decref(document);
    document = ask("/healthz", QUERY_HEALTH, 200);
    cr_assert(json_is_false(json_object_get(document, "writable")));
    json_decref(document);
    numbers.stopping = true;
    document = ask("/readyz", QUERY_READY, 503);
    expect(document, "detail", "the daemon is stopping");
    json_decref(document);
}

Test(pages, status_tells_what_is_stored_and_where_the_dashboard_is)
{
    const struct pages_store store = {.totals = {.builds = 3, .uploads = 10, .retired_uploads = 4}};
    struct page page;
    json_t *document;

    pages_make_status(pages, &store, &page);
    document = body_of(&page);
    cr_assert_eq(json_integer_value(json_object_get(document, "uploads")), 6);
    cr_assert_eq(json_integer_value(json_object_get(document, "user_share_percent")), 50);
    cr_assert(json_is_null(json_object_get(document, "write_error")));
    cr_assert(json_is_null(json_object_get(document, "http_url")), "no TCP is listened on");
    json_decref(document);
    numbers.http_port = 8080;
    pages_make_status(pages, &store, &page);
    document = body_of(&page);
    expect(document, "http_url", "http://127.0.0.1:8080/");
    cr_assert(json_is_true(json_object_get(document, "http_token")));
    json_decref(document);
}

Test(pages, files_are_found_revalidated_and_coded)
{
    struct query_request request = {.target = "/app.js?v=1", .if_none_match = ""};
    struct page page = {.status = 0};
    char etag[80];
    size_t plain;

    cr_assert(pages_find(pages, QUERY_NONE, &request, &page));
    cr_assert_eq(page.status, 200);
    plain = page.body.size;
    cr_assert_gt(plain, 0);
    strcpy(etag, page.etag);
    buffer_done(&page.body);
    request.if_none_match = etag;
    cr_assert(pages_find(pages, QUERY_NONE, &request, &page));
    cr_assert_eq(page.status, 304);
    cr_assert_eq(page.body.size, 0);
    buffer_done(&page.body);
    request.if_none_match = "";
    request.coding = CODING_GZIP;
    cr_assert(pages_find(pages, QUERY_NONE, &request, &page));
    cr_assert_eq(page.coding, CODING_GZIP);
    cr_assert_lt(page.body.size, plain);
    cr_assert_str_neq(page.etag, etag);
    buffer_done(&page.body);
    request.target = "/app.jsx";
    cr_assert_not(pages_find(pages, QUERY_NONE, &request, &page));
}

/* A state directory may have any bytes in its name, and so may an error that names a file of it. */
Test(pages, names_that_are_not_utf8_are_shown_as_valid_json)
{
    static const char *const targets[] = {"/readyz", "/api/v1/status"};

    numbers.damaged = 1;
    numbers.damaged_latest = "/srv/\xe9t\xe9/profd.db<1>.damaged";
    for (size_t i = 0; i < 2; i++) {
        struct page page;
        json_error_t why;

        if (i == 0) {
            const struct query_request request = {.target = targets[i], .if_none_match = ""};

            cr_assert(pages_find(pages, QUERY_READY, &request, &page));
        } else {
            const struct pages_store store = {.totals = {.builds = 1}};

            pages_make_status(pages, &store, &page);
        }
        json_t *root = json_loadb(page.body.data, page.body.size, 0, &why);
        cr_expect_not_null(root, "%s: %s", targets[i], why.text);
        cr_expect_str_eq(json_string_value(json_object_get(root, "damaged_database")),
                         "/srv/\xef\xbf\xbdt\xef\xbf\xbd/profd.db<1>.damaged");
        cr_expect_null(memchr(page.body.data, '<', page.body.size), "escaped, as in reports");
        json_decref(root);
        buffer_done(&page.body);
    }
}
