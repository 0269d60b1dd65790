/* The client against a server that fails, lies and attacks: every reply ends in a status and one sentence. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/unit/tier/fake.h"
#include "tier/clickhouse.h"

static const struct clickhouse_limits limits = {.connect_ms = 10000, .answer_ms = 20000, .reply_bytes = 65536};

static struct clickhouse *open_url(const char *url, const struct clickhouse_limits *l)
{
    struct clickhouse_address a;
    struct clickhouse *c = NULL;
    struct profd_error e;
    cr_assert(!clickhouse_parse_address(url, &a, &e), "%s", e.sentence);
    (void)snprintf(a.password, sizeof a.password, "secret-1");
    cr_assert(!clickhouse_open(&a, NULL, l, &c, &e));
    return c;
}

static struct clickhouse *open_server(const struct server *s, const struct clickhouse_limits *l)
{
    char url[100];
    (void)snprintf(url, sizeof url, "http://writer@127.0.0.1:%u/d", s->port);
    return open_url(url, l);
}

/* Runs a query against one reply. */
static enum profd_status take_one(const char *reply, size_t n, struct profd_error *e)
{
    struct server s = {.settings = ALL_SETTINGS, .replies = &reply, .sizes = &n, .count = 1};
    server_start(&s);
    struct clickhouse *c = open_server(&s, &limits);
    struct row_reader rows = {.bytes = NULL};
    e->sentence[0] = 0;
    const enum profd_status status = clickhouse_take(c, "SELECT 1 FORMAT RowBinary", &rows, e);
    rows_close(&rows);
    clickhouse_close(c);
    server_stop(&s);
    return status;
}

static void expect(const char *reply, enum profd_status want, const char *words)
{
    struct profd_error e;
    const enum profd_status status = take_one(reply, strlen(reply), &e);
    cr_expect_eq(status, want, "%s: %s: %s", reply, profd_status_name(status), e.sentence);
    cr_expect(strstr(e.sentence, words) != NULL, "%s: %s", reply, e.sentence);
    cr_expect(!strstr(e.sentence, "secret"));
}

Test(clickhouse, cut_off_at_every_byte)
{
    static const char *const whole[] = {OK_HEAD "Content-Length: 5\r\n\r\nhello",
                                        OK_HEAD "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"};
    struct profd_error e;
    for (size_t i = 0; i < 2; i++) {
        const size_t n = strlen(whole[i]);
        cr_expect_eq(take_one(whole[i], n, &e), PROFD_OK, "%s", e.sentence);
        for (size_t cut = 0; cut < n - 2 * i; cut++) { /* libcurl does not miss the empty line behind the last chunk */
            const enum profd_status status = take_one(whole[i], cut, &e);
            cr_expect(status == PROFD_UNAVAILABLE || status == PROFD_PROTOCOL, "%zu: %s: %s", cut,
                      profd_status_name(status), e.sentence);
        }
    }
}

Test(clickhouse, what_is_not_its_reply)
{
    expect(OK_HEAD "Content-Length: 9\r\n\r\nhello", PROFD_UNAVAILABLE, "cannot ask");
    expect(OK_HEAD "Content-Length: -9\r\n\r\nhello", PROFD_PROTOCOL, "http://127.0.0.1");
    expect(OK_HEAD "Transfer-Encoding: chunked\r\n\r\nx\r\nhello", PROFD_UNAVAILABLE, "cannot ask");
    expect(OK_HEAD "\r\nhello", PROFD_PROTOCOL, "where its reply ends");
    expect("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n\r\n", PROFD_PROTOCOL,
           "text/plain instead of rows");
    expect("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 14\r\n\r\n<html></html>\n", PROFD_PROTOCOL,
           "text/html instead of rows");
    expect("HTTP/1.1 403 Forbidden\r\nContent-Length: 14\r\n\r\n<html></html>\n", PROFD_PROTOCOL, "HTTP status 403");
    expect("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 14\r\n\r\n<html></html>\n", PROFD_UNAVAILABLE,
           "does not reach ClickHouse");
    expect("SSH-2.0-OpenSSH_9.2\r\n", PROFD_PROTOCOL, "does not speak HTTP");
    expect("", PROFD_UNAVAILABLE, "cannot ask");
}

Test(clickhouse, errors_of_the_server)
{
#define OLD "Code: 60, e.displayText() = DB::Exception: Table d.x doesn't exist., e.what() = DB::Exception\n"
#define NEW "Code: 241. DB::Exception: Memory limit exceeded. (MEMORY_LIMIT_EXCEEDED) (version 26.7.3.1)"
    expect("HTTP/1.1 404 Not Found\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n5e\r\n" OLD
           "\r\n0\r\n\r\n",
           PROFD_REFUSED, "Table d.x doesn't exist. (code 60)");
    expect("HTTP/1.1 403 Forbidden\r\nContent-Length: 97\r\n\r\nCode: 516. DB::Exception: default: Authentication "
           "failed. (AUTHENTICATION_FAILED) (version 14.8)\n",
           PROFD_UNAUTHORIZED, "default: Authentication failed. (AUTHENTICATION_FAILED) (code 516)");
    /* Behind data, after a 200. */
    expect(OK_HEAD "Content-Length: 99\r\n\r\n\1\2\3\4\5" OLD, PROFD_REFUSED, "doesn't exist");
    expect(OK_HEAD "Content-Length: 98\r\n\r\n\1\2\3\4\5" NEW "\r\n", PROFD_BUSY, "Memory limit exceeded");
    expect(OK_HEAD "Content-Length: 166\r\n\r\n\1\2\r\n__exception__\r\nabcdefghijklmnop\r\n" NEW
                   "\r\n91 abcdefghijklmnop\r\n__exception__\r\n",
           PROFD_BUSY, "(MEMORY_LIMIT_EXCEEDED) (code 241)");
    /* Then the connection is cut. */
    expect(OK_HEAD "Transfer-Encoding: chunked\r\n\r\n2\r\n\1\2\r\n5d\r\n" NEW "\r\n", PROFD_BUSY, "(code 241)");
}

Test(clickhouse, redirections_are_not_followed)
{
    struct server other = {.replies = (const char *const[]){""}, .count = 1};
    char reply[200];
    server_start(&other);
    (void)snprintf(reply, sizeof reply,
                   "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:%u/\r\nContent-Length: 0\r\n\r\n", other.port);
    expect(reply, PROFD_PROTOCOL, "HTTP status 302");
    cr_assert_eq(other.statements, 0);
    server_stop(&other);
}

Test(clickhouse, a_reply_without_end)
{
    const char *reply = OK_HEAD "Content-Length: 99999999999\r\n\r\nx";
    struct server s = {.settings = ALL_SETTINGS, .replies = &reply, .count = 1, .endless = true};
    struct profd_error e;
    struct row_reader rows;
    server_start(&s);
    struct clickhouse *c = open_server(&s, &limits);
    cr_assert_eq(clickhouse_take(c, "SELECT 1", &rows, &e), PROFD_TOO_LARGE, "%s", e.sentence);
    cr_assert(strstr(e.sentence, "more than the 65536 bytes") != NULL, "%s", e.sentence);
    clickhouse_close(c);
    server_stop(&s);
}

static bool always(void *context)
{
    return ++*(int *)context > 0;
}

static bool is_asked(void *context)
{
    return atomic_load(&((struct server *)context)->statements) > 0;
}

Test(clickhouse, a_slow_reply)
{
    const char *reply = OK_HEAD "Content-Length: 5\r\n\r\nhello, which comes so slowly that the time is over before";
    struct server s = {.settings = ALL_SETTINGS, .replies = &reply, .count = 1, .slow = true};
    struct clickhouse_limits few = limits;
    struct profd_error e;
    char *text;
    int asked = 0;
    few.answer_ms = 300;
    server_start(&s);
    struct clickhouse *c = open_server(&s, &few);
    cr_assert_eq(clickhouse_ask(c, "SELECT 1", &text, &e), PROFD_TIMEOUT, "%s", e.sentence);
    clickhouse_close(c);
    few = limits;
    few.stopped = always;
    few.context = &asked;
    c = open_server(&s, &few);
    cr_assert_eq(clickhouse_ask(c, "SELECT 1", &text, &e), PROFD_STOPPING, "%s", e.sentence);
    cr_assert(asked > 0);
    clickhouse_close(c);
    server_stop(&s);
}

/* A server whose settings do not let it end a query by itself is told to; if it cannot be told, because it has gone,
 * the cancelled query is not tried on another server. */
Test(clickhouse, a_cancelled_query_goes_to_no_other_server)
{
    const char *reply = OK_HEAD "Content-Length: 50\r\n\r\nhello, which comes so slowly that it is cancelled before";
    struct server first = {.settings = "max_query_size\n", .replies = &reply, .count = 1, .slow = true, .once = true},
                  other = {.settings = "max_query_size\n", .replies = &reply, .count = 1};
    struct clickhouse_limits few = limits;
    struct profd_error e;
    struct row_reader rows;
    char url[100];
    few.stopped = is_asked;
    few.context = &first;
    server_start(&first);
    server_start(&other);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u,127.0.0.1:%u/d", first.port, other.port);
    struct clickhouse *c = open_url(url, &few);
    cr_assert_eq(clickhouse_take(c, "SELECT 1", &rows, &e), PROFD_STOPPING, "%s", e.sentence);
    cr_assert_eq(first.statements, 1);
    cr_assert_eq(other.statements, 0);
    clickhouse_close(c);
    server_stop(&first);
    server_stop(&other);
}

Test(clickhouse, settings_that_the_server_knows_are_sent)
{
    const char *reply = OK_HEAD "Content-Length: 5\r\n\r\nhello";
    struct server s = {.settings = ALL_SETTINGS, .replies = &reply, .count = 1};
    struct profd_error e;
    char *text, url[100];
    struct clickhouse_limits l = limits;
    l.memory_bytes = 123456;
    server_start(&s);
    setenv("http_proxy", "http://127.0.0.1:1", 1); /* is not used */
    struct clickhouse *c = open_server(&s, &l);
    cr_assert(!clickhouse_ask(c, "SELECT 1", &text, &e), "%s", e.sentence);
    cr_assert_str_eq(text, "hello");
    free(text);
    cr_assert(strstr(s.request, "&max_memory_usage=123456&database=d&max_execution_time=20&") != NULL, "%s", s.request);
    cr_assert(strstr(s.request, "&async_insert=0") && strstr(s.request, "&skip_unavailable_shards=0"));
    cr_assert(!strstr(s.request, "insert_deduplicate") && !strstr(s.request, "quorum"), "%s", s.request);
    cr_assert(strstr(s.request, "X-ClickHouse-User: writer\r\n") &&
              strstr(s.request, "X-ClickHouse-Key: secret-1\r\n"));
    cr_assert_str_eq(s.request + s.request_size - 8, "SELECT 1");
    s.settings = "async_insert\ninsert_deduplicate\n"; /* another release took its place */
    nanosleep(&(struct timespec){1, 100000000}, NULL);
    cr_assert(!clickhouse_ask(c, "SELECT 1", &text, &e), "%s", e.sentence);
    free(text);
    cr_assert(strstr(s.request, "&async_insert=0&insert_deduplicate=0") && !strstr(s.request, "skip_unavailable"), "%s",
              s.request);
    clickhouse_close(c);
    s.settings = ALL_SETTINGS;
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u/d?cluster=c&replicated=1", s.port);
    c = open_url(url, &limits);
    cr_assert(!clickhouse_ask(c, "SELECT 1", &text, &e), "%s", e.sentence);
    free(text);
    cr_assert(strstr(s.request, "&insert_quorum=2&insert_quorum_parallel=0&select_sequential_consistency=1") != NULL);
    clickhouse_close(c);
    s.settings = "<html>\n"; /* it is another server now */
    c = open_url(url, &limits);
    cr_assert_eq(clickhouse_ask(c, "SELECT 1", &text, &e), PROFD_PROTOCOL);
    cr_assert(strstr(e.sentence, "is not ClickHouse") != NULL, "%s", e.sentence);
    clickhouse_close(c);
    server_stop(&s);
}

Test(clickhouse, an_insert)
{
    static const char *const replies[] = {("HTTP/1.1 500 Error\r\nContent-Length: 35\r\n\r\nCode: 286. DB::Exception: "
                                           "Quorum (X)"),
                                          "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
                                          "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK"};
    struct server s = {.settings = ALL_SETTINGS, .replies = replies, .count = 3};
    struct profd_error e;
    server_start(&s);
    struct clickhouse *c = open_server(&s, &limits);
    cr_assert(!clickhouse_insert(c, "INSERT INTO t (a) FORMAT RowBinary", "\0\1\2&\xff", 5, &e), "%s", e.sentence);
    cr_assert_eq(s.statements, 2); /* the quorum of another insert was waited for */
    cr_assert(strstr(s.request, "&query=INSERT%20INTO%20t%20%28a%29%20FORMAT%20RowBinary HTTP/1.1") != NULL);
    cr_assert(!memcmp(s.request + s.request_size - 5, "\0\1\2&\xff", 5));
    cr_assert_eq(clickhouse_insert(c, "INSERT INTO t (a) FORMAT RowBinary", "", 0, &e), PROFD_PROTOCOL);
    cr_assert(strstr(e.sentence, "not the acknowledgement") != NULL, "%s", e.sentence);
    clickhouse_close(c);
    server_stop(&s);
}

Test(clickhouse, a_connection_that_the_server_has_closed)
{
    const char *const replies[] = {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"};
    struct server s = {.settings = ALL_SETTINGS, .replies = replies, .count = 1, .stale = true};
    struct profd_error e;
    char *text;
    server_start(&s);
    struct clickhouse *c = open_server(&s, &limits);
    for (unsigned i = 0; i < 12; i++) { /* libcurl gives up after five, of the whole life of a handle */
        cr_assert(!clickhouse_ask(c, "SELECT 1", &text, &e), "%u: %s", i, e.sentence);
        free(text);
        cr_assert(!clickhouse_insert(c, "INSERT INTO t (a) FORMAT RowBinary", "x", 1, &e), "%u: %s", i, e.sentence);
    }
    cr_assert_eq(s.statements, 24);
    clickhouse_close(c);
    server_stop(&s);
}

Test(clickhouse, the_first_server_that_connects)
{
    static const char *const replies[] = {OK_HEAD "Content-Length: 5\r\n\r\nhello",
                                          OK_HEAD "Content-Length: 9\r\n\r\nhello",
                                          OK_HEAD "Content-Length: 5\r\n\r\nhello"};
    struct server s = {.settings = ALL_SETTINGS, .replies = replies, .count = 3}, away = {.fd = 0};
    struct profd_error e;
    char *text, url[100];
    server_start(&away);
    server_stop(&away); /* nothing listens on its port */
    server_start(&s);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u,127.0.0.1:%u/d", away.port, s.port);
    struct clickhouse *c = open_url(url, &limits);
    cr_assert(!clickhouse_ask(c, "SELECT 1", &text, &e), "%s", e.sentence);
    free(text);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u", s.port);
    cr_assert_str_eq(clickhouse_place(c), url);
    cr_assert_eq(clickhouse_ask(c, "SELECT 1", &text, &e), PROFD_UNAVAILABLE); /* it was sent: not to another one */
    cr_assert_eq(s.statements, 2);
    server_stop(&s);
    cr_assert_eq(clickhouse_ask(c, "SELECT 1", &text, &e), PROFD_UNAVAILABLE); /* none is left */
    clickhouse_close(c);
}
