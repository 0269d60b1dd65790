/* The HTTP parser refuses every malformed or ambiguous request, however its bytes arrive, and accepts good ones. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/net_internal.h"

struct outcome {
    enum http_parse_result result;
    int status;
    size_t at;
    struct http_head head;
};

/* In a block of exactly its size, so that the address sanitizer sees a read behind it. */
static struct outcome parse_whole(const char *text, size_t n)
{
    char *copy = malloc(n + (n == 0));
    memcpy(copy, text, n);
    struct http_parser p = {0};
    enum http_parse_result result = http_parse(&p, copy, n);
    cr_assert(result != HTTP_PARSE_BAD || p.reason != NULL);
    free(copy);
    return (struct outcome){result, p.status, p.at, p.head};
}

static void assert_same(const struct outcome *a, const struct outcome *b, size_t split)
{
    cr_assert_eq(a->result, b->result, "split at %zu", split);
    cr_assert_eq(a->status, b->status, "split at %zu", split);
    cr_assert_eq(a->at, b->at, "split at %zu", split);
    if (a->result == HTTP_PARSE_DONE) {
        cr_assert_arr_eq(&a->head, &b->head, sizeof a->head, "split at %zu", split);
    }
}

static struct outcome parse_split(const char *text, size_t n, size_t split)
{
    struct http_parser p = {0};
    if (http_parse(&p, text, split) == HTTP_PARSE_MORE) {
        http_parse(&p, text, n);
    }
    enum http_parse_result result = http_parse(&p, text, n);
    return (struct outcome){result, p.status, p.at, p.head};
}

static struct outcome parse_bytewise(const char *text, size_t n)
{
    struct http_parser p = {0};
    enum http_parse_result result = HTTP_PARSE_MORE;
    for (size_t i = 0; i <= n && result == HTTP_PARSE_MORE; i++) {
        result = http_parse(&p, text, i);
    }
    return (struct outcome){result, p.status, p.at, p.head};
}

/* The result, having seen that it does not depend on how the bytes arrive. */
static struct outcome parse_all_ways(const char *text, size_t n)
{
    struct outcome whole = parse_whole(text, n);
    for (size_t split = 0; split <= n; split++) {
        struct outcome o = parse_split(text, n, split);
        assert_same(&whole, &o, split);
    }
    struct outcome o = parse_bytewise(text, n);
    assert_same(&whole, &o, SIZE_MAX);
    return whole;
}

struct line {
    const char *text;
    size_t size;
    int status;
};
#define L(status, text)                                                                                                \
    {                                                                                                                  \
        text, sizeof(text) - 1, status                                                                                 \
    }

/* Whole requests. */
static const struct line requests[] = {
    L(400, "\r\n"),
    L(400, "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
    L(400, "\n"),
    L(400, "\0"),
    L(400, " GET / HTTP/1.1\r\n"),
    L(400, "\tGET / HTTP/1.1\r\n"),
    L(400, "GET\r\n"),
    L(400, "GET \r\n"),
    L(400, "GET /\r\n"),
    L(400, "GET / \r\n"),
    L(400, "GET  / HTTP/1.1\r\n"),
    L(400, "GET /  HTTP/1.1\r\n"),
    L(400, "GET / HTTP/1.1 \r\n"),
    L(400, "GET\t/ HTTP/1.1\r\n"),
    L(400, "GET /\tHTTP/1.1\r\n"),
    L(400, "GET / HTTP/1.1\n"),
    L(400, "GET / HTTP/1.1\rX"),
    L(400, "GET / HTTP/1.1\r\r\n"),
    L(400, "GET / http/1.1\r\n"),
    L(400, "GET / HTTP/1\r\n"),
    L(400, "GET / HTTP/1.\r\n"),
    L(400, "GET / HTTP/11\r\n"),
    L(400, "GET / HTTP/1.11\r\n"),
    L(400, "GET / HTTP/+1.1\r\n"),
    L(400, "GET / HTTP/1.x\r\n"),
    L(400, "GET / HTTP 1.1\r\n"),
    L(400, "GET / HTTP\r\n"),
    L(400, "GET / FTP/1.1\r\n"),
    L(400, "GET / HTTP/1,1\r\n"),
    L(400, "GET / \0TTP/1.1\r\n"),
    L(505, "GET / HTTP/2.0\r\n"),
    L(505, "GET / HTTP/1.2\r\n"),
    L(505, "GET / HTTP/0.9\r\n"),
    L(505, "GET / HTTP/3.0\r\n"),
    L(505, "GET / HTTP/9.9\r\n"),
    L(505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    L(400, "G(T / HTTP/1.1\r\n"),
    L(400, "GET/ / HTTP/1.1\r\n"),
    L(400, "\"GET\" / HTTP/1.1\r\n"),
    L(400, "G\xc3\x84T / HTTP/1.1\r\n"),
    L(400, "GET:/ HTTP/1.1\r\n"),
    L(400, "\x16\x03\x01\x02\x00\x01"),
    L(400, "GET / HTTP/1.1\r\n\r\n"),
    L(400, "GET / HTTP/1.0\r\n\r\n"),
    L(400, "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"),
    L(400, "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
    L(400, "GET / HTTP/1.1\r\nHost: a\r\nhOST: a\r\n\r\n"),
    L(400, "GET / HTTP/1.1\r\n Host: a\r\n\r\n"),
    L(400, "GET / HTTP/1.1\r\nHost: a\n\r\n"),
    L(400, "GET / HTTP/1.1\r\nHost: a\r\n\n"),
    L(400, "GET / HTTP/1.1\r\nHost: a\r\n\rX"),
    L(400, "GET / HTTP/1.1\r\nHo\0st: a\r\n\r\n"),
    L(400, "GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n"),
};

/* Targets of a GET. */
static const struct line targets[] = {
    L(400, "*"),
    L(400, "a"),
    L(400, "http://localhost/"),
    L(400, "HTTP://localhost"),
    L(400, "localhost:80"),
    L(400, "//evil"),
    L(400, "//"),
    L(400, "///"),
    L(400, "?a"),
    L(400, "#"),
    L(400, "/#a"),
    L(400, "/a#b"),
    L(400, "/%"),
    L(400, "/%0"),
    L(400, "/%zz"),
    L(400, "/%0g"),
    L(400, "/%00"),
    L(400, "/a%00b"),
    L(400, "/%01"),
    L(400, "/%0a"),
    L(400, "/%0D%0aX:%20y"),
    L(400, "/%1f"),
    L(400, "/%7f"),
    L(400, "/%7F"),
    L(400, "/%2f"),
    L(400, "/%2F"),
    L(400, "/a%2fb"),
    L(400, "/%5c"),
    L(400, "/%5C.."),
    L(400, "/.."),
    L(400, "/../"),
    L(400, "/."),
    L(400, "/./a"),
    L(400, "/a/.."),
    L(400, "/a/../b"),
    L(400, "/../../etc/passwd"),
    L(400, "/%2e%2e/etc"),
    L(400, "/.%2e"),
    L(400, "/%2E."),
    L(400, "/%2e"),
    L(400, "/a/%2e%2e?x"),
    L(400, "/..?x"),
    L(400, "/\\"),
    L(400, "/a\\b"),
    L(400, "/<script>"),
    L(400, "/\""),
    L(400, "/{a}"),
    L(400, "/|"),
    L(400, "/^"),
    L(400, "/`"),
    L(400, "/[a]"),
    L(400, "/\x80"),
    L(400, "/\xc3\xbc"),
    L(400, "/\xff"),
    L(400, "/a?b\x80"),
    L(400, "/?%"),
    L(400, "/?%0"),
    L(400, "/?a=%00"),
    L(400, "/?a=%0a"),
    L(400, "/?a=%7f"),
    L(400, "/?a=%g0"),
    L(400, "/?a#b"),
    L(400, "/?a=<"),
    L(400, "/?a=\""),
    L(400, "/?a[]=1"),
    L(400, "/?a=\\"),
    L(400, "/a b"),
    L(400, "/%u0041"),
    L(400, "/%-1"),
    L(400, "/% 1"),
};

/* Header lines behind a good request line and Host. */
static const struct line fields[] = {
    L(400, "Transfer-Encoding: chunked"),
    L(400, "Transfer-Encoding: identity"),
    L(400, "transfer-encoding:chunked"),
    L(400, "Transfer-Encoding: gzip, chunked"),
    L(400, "Transfer-Encoding:"),
    L(400, "Transfer-Encoding : chunked"),
    L(400, "Transfer-Encoding\t: chunked"),
    L(400, "Content-Length: 5\r\nTransfer-Encoding: chunked"),
    L(400, "TRANSFER-ENCODING: x\r\nContent-Length: 0"),
    L(400, "Content-Length: +5"),
    L(400, "Content-Length: -1"),
    L(400, "Content-Length:"),
    L(400, "Content-Length: 0x5"),
    L(400, "Content-Length: 5 5"),
    L(400, "Content-Length: 5,5"),
    L(400, "Content-Length: 5;"),
    L(400, "Content-Length: 1e3"),
    L(400, "Content-Length: five"),
    L(400, "Content-Length: 18446744073709551616"),
    L(400, "Content-Length: 99999999999999999999999999"),
    L(400, "Content-Length: 0\r\nContent-Length: 0"),
    L(400, "Content-Length: 0\r\nContent-Length: 34"),
    L(400, "Content-Length: 0\r\ncontent-length: 0"),
    L(417, "Expect: 100-continue"),
    L(417, "Expect: x"),
    L(417, "expect:"),
    L(400, "Upgrade: h2c"),
    L(400, "Upgrade: websocket\r\nConnection: Upgrade"),
    L(400, "upgrade: x"),
    L(400, "X"),
    L(400, "X y: z"),
    L(400, "X : y"),
    L(400, ": y"),
    L(400, ":"),
    L(400, " X: y"),
    L(400, "\tX: y"),
    L(400, "X: a\r\n b"),
    L(400, "X: a\r\n\tb"),
    L(400, "X: a\r\n "),
    L(400, "X: \x01"),
    L(400, "X: a\x00"
           "b"),
    L(400, "X: \x7f"),
    L(400, "X: \x1b[31m"),
    L(400, "X: a\rb"),
    L(400, "X: a\nb"),
    L(400, "X: a\r\r"),
    L(400, "X@Y: a"),
    L(400, "X(: a"),
    L(400, "\"X\": a"),
    L(400, "X/Y: a"),
    L(400, "X\xc3\xbc: a"),
    L(400, "[X]: a"),
    L(400, "X=1"),
    L(400, "Host: localhost"),
    L(400, "Host:"),
    L(400, "HOST : x"),
    L(400, "Authorization: Bearer a\r\nAuthorization: Bearer a"),
    L(400, "Origin: http://a\r\nOrigin: http://a"),
    L(400, "If-None-Match: \"a\"\r\nIf-None-Match: \"b\""),
    L(400, "Sec-Fetch-Site: none\r\nSec-Fetch-Site: none"),
    L(400, "Connection: close keep-alive"),
    L(400, "Connection: \"close\""),
    L(400, "Connection: @"),
    L(400, "GET / HTTP/1.1"),
};

/* Values of Host. */
static const struct line hosts[] = {
    L(400, ""),         L(400, " "),   L(400, "a b"),  L(400, "a,b"),  L(400, "a/b"),     L(400, "http://a"),
    L(400, "user@a"),   L(400, "a:"),  L(400, "a:x"),  L(400, "a:-1"), L(400, "a:65536"), L(400, "a:123456"),
    L(400, "a:1:2"),    L(400, ":80"), L(400, "[]"),   L(400, "[::1"), L(400, "::1"),     L(400, "[::1]x"),
    L(400, "[::1]:"),   L(400, "[g]"), L(400, "a%00"), L(400, "a\\"),  L(400, "a?b"),     L(400, "a#b"),
    L(400, "\xc3\xbc"), L(400, "a;b"), L(400, "*"),
};

static size_t put(char *out, const char *before, const struct line *l, const char *after)
{
    size_t n = strlen(before);
    memcpy(out, before, n);
    memcpy(out + n, l->text, l->size);
    memcpy(out + n + l->size, after, strlen(after));
    return n + l->size + strlen(after);
}

static void refuse_each(const char *before, const struct line *lines, size_t count, const char *after)
{
    char text[1024];
    for (size_t i = 0; i < count; i++) {
        size_t n = put(text, before, &lines[i], after);
        struct outcome o = parse_all_ways(text, n);
        cr_assert_eq(o.result, HTTP_PARSE_BAD, "'%s' is taken", lines[i].text);
        cr_assert_eq(o.status, lines[i].status, "'%s': %d instead of %d", lines[i].text, o.status, lines[i].status);
    }
}

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

Test(net_http_parse, hostile_requests_are_refused)
{
    cr_assert_geq(COUNT(requests) + COUNT(targets) + COUNT(fields) + COUNT(hosts), 150);
    refuse_each("", requests, COUNT(requests), "");
    refuse_each("GET ", targets, COUNT(targets), " HTTP/1.1\r\nHost: a\r\n\r\n");
    refuse_each("HEAD / HTTP/1.1\r\nHost: localhost\r\n", fields, COUNT(fields), "\r\n\r\n");
    refuse_each("GET / HTTP/1.1\r\nHost: ", hosts, COUNT(hosts), "\r\n\r\n");
}

static const char *const good[] = {
    "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "GET / HTTP/1.0\r\nhost:a\r\n\r\n",
    "GET /api/v1/builds?limit=5&match=host%20%3D%20%22a%22&since=now-1h HTTP/1.1\r\nHost: [::1]:9461\r\n\r\n",
    "GET /a/b.c/..d/d../...?/../%2f%2F HTTP/1.1\r\nHost: 127.0.0.1:65535\r\nAccept: */*\r\nUser-Agent: x\t(y)\r\n\r\n",
    "GET /?until=2026-01-01T00:00:00%2B01:00?a=b/c HTTP/1.1\r\nHost: a.b-c_d\r\nCookie: "
    "\xc3\xbc\r\nEmpty:\r\nTabs:\t\t\r\n\r\n",
    "GET /%41%c3%bc~!$&'()*+,;=:@- HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, ,close ,x\r\nContent-Length: "
    "00\r\n\r\n",
};

Test(net_http_parse, good_requests_are_taken)
{
    for (size_t i = 0; i < COUNT(good); i++) {
        struct outcome o = parse_all_ways(good[i], strlen(good[i]));
        cr_assert_eq(o.result, HTTP_PARSE_DONE, "%s", good[i]);
        cr_assert_eq(o.at, strlen(good[i]));
        for (size_t cut = 0; cut < strlen(good[i]); cut++) {
            cr_assert_eq(parse_whole(good[i], cut).result, HTTP_PARSE_MORE, "%s cut at %zu", good[i], cut);
        }
    }
}

static void assert_span(const char *text, struct http_span s, const char *value)
{
    cr_assert_neq(s.at, 0);
    cr_assert_eq(s.size, strlen(value), "%.*s", s.size, text + s.at);
    cr_assert_arr_eq(text + s.at, value, s.size);
}

Test(net_http_parse, the_parts_are_found)
{
    static const char text[] =
        "HEAD /x?y HTTP/1.1\r\nhost: \t a:1 \t \r\nORIGIN: http://a:1\r\nSec-Fetch-Site: none\r\nAuthorization: Bearer "
        " q=\r\n"
        "If-None-Match: W/\"1\", \"2\"\r\nContent-Length: 18446744073709551615\r\nConnection: ClOsE\r\n\r\nrest";
    struct outcome o = parse_all_ways(text, sizeof text - 1);
    cr_assert_eq(o.result, HTTP_PARSE_DONE);
    cr_assert_eq(o.at, sizeof text - 5, "what follows is left alone");
    cr_assert_eq(o.head.method, HTTP_METHOD_HEAD);
    cr_assert_eq(o.head.minor, 1);
    assert_span(text, o.head.target, "/x?y");
    assert_span(text, o.head.host, "a:1");
    assert_span(text, o.head.origin, "http://a:1");
    assert_span(text, o.head.fetch_site, "none");
    assert_span(text, o.head.authorization, "Bearer  q=");
    assert_span(text, o.head.if_none_match, "W/\"1\", \"2\"");
    cr_assert_eq(o.head.body, UINT64_MAX);
    cr_assert(o.head.close);
    cr_assert(parse_whole(good[2], strlen(good[2])).head.close, "HTTP/1.0 closes");
    cr_assert_not(parse_whole(good[0], strlen(good[0])).head.close);
    cr_assert(parse_whole(good[6], strlen(good[6])).head.close);
}

Test(net_http_parse, other_methods_are_recognized_as_such)
{
    static const char *const methods[] = {"POST /a",      "PUT /", "DELETE /", "OPTIONS *", "TRACE /",
                                          "CONNECT a:80", "get /", "GETS /",   "PATCH /%",  "X-Y.z! //"};
    for (size_t i = 0; i < COUNT(methods); i++) {
        char text[200];
        snprintf(text, sizeof text, "%s HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n12345", methods[i]);
        struct outcome o = parse_all_ways(text, strlen(text));
        cr_assert_eq(o.result, HTTP_PARSE_DONE, "%s", methods[i]);
        cr_assert_eq(o.head.method,
                     strncmp(methods[i], "OPTIONS ", 8) == 0 ? HTTP_METHOD_OPTIONS
                     : strncmp(methods[i], "PUT ", 4) == 0   ? HTTP_METHOD_PUT
                     : strncmp(methods[i], "POST ", 5) == 0  ? HTTP_METHOD_POST
                                                             : HTTP_METHOD_OTHER,
                     "%s", methods[i]);
        cr_assert_eq(o.head.body, 5);
    }
}

static int parse_sized(size_t target, size_t fields_of, size_t field_size)
{
    static char text[40000];
    size_t n = (size_t)sprintf(text, "GET /");
    memset(text + n, 'a', target);
    n += target;
    n += (size_t)sprintf(text + n, " HTTP/1.1\r\nHost: a\r\n");
    for (size_t i = 0; i < fields_of; i++) {
        n += (size_t)sprintf(text + n, "x%02zu: ", i);
        memset(text + n, 'v', field_size);
        n += field_size;
        n += (size_t)sprintf(text + n, "\r\n");
    }
    n += (size_t)sprintf(text + n, "\r\n");
    struct outcome whole = parse_whole(text, n), bytes = parse_bytewise(text, n);
    assert_same(&whole, &bytes, 0);
    cr_assert_leq(whole.at, HTTP_HEAD_MAX);
    return whole.result == HTTP_PARSE_DONE ? 200 : whole.status;
}

Test(net_http_parse, limits_are_exact)
{
    cr_assert_eq(parse_sized(4096 - 5 - 9, 0, 0), 200);
    cr_assert_eq(parse_sized(4096 - 5 - 9 + 1, 0, 0), 414);
    cr_assert_eq(parse_sized(20000, 0, 0), 414);
    cr_assert_eq(parse_sized(0, 63, 1), 200, "64 fields with Host");
    cr_assert_eq(parse_sized(0, 64, 1), 431);
    cr_assert_eq(parse_sized(0, 1, 8192 - 9 - 7 - 2), 200, "8192 bytes from Host to the empty line");
    cr_assert_eq(parse_sized(0, 1, 8192 - 9 - 7 - 2 + 1), 431);
    cr_assert_eq(parse_sized(0, 1, 30000), 431);
    cr_assert_eq(parse_sized(4096 - 5 - 9, 1, 8192 - 9 - 7 - 2), 200, "both at once");
}

Test(net_http_parse, this_machines_names)
{
    cr_assert(http_host_local("localhost:9461", 14, 9461));
    cr_assert(http_host_local("LocalHost:9461", 14, 9461));
    cr_assert(http_host_local("127.0.0.1:9461", 14, 9461));
    cr_assert(http_host_local("[::1]:9461", 10, 9461));
    cr_assert(http_host_local("localhost", 9, 80));
    static const char *const foreign[] = {"localhost",
                                          "localhost:9462",
                                          "localhost:94611",
                                          "evil.example:9461",
                                          "127.0.0.2:9461",
                                          "localhost.:9461",
                                          "[::2]:9461",
                                          "127.1:9461",
                                          "0.0.0.0:9461",
                                          "localhost:09461",
                                          "[0:0:0:0:0:0:0:1]:9461"};
    for (size_t i = 0; i < COUNT(foreign); i++) {
        cr_assert_not(http_host_local(foreign[i], strlen(foreign[i]), 9461), "%s", foreign[i]);
    }
}
