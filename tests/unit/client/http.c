/* The reader of HTTP answers, and addresses. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/client.h"
#include "lib/http_reply.h"
#include "profd.h"

struct body {
    char text[256];
    size_t size, calls;
    int http_status;
    char etag[128];
};

static enum profd_status take(void *context, const struct profd_answer *a, const void *bytes, size_t n,
                              struct profd_error *e)
{
    struct body *b = context;
    (void)e;
    cr_assert_lt(b->size + n, sizeof b->text);
    memcpy(b->text + b->size, bytes, n);
    b->size += n;
    b->text[b->size] = '\0';
    b->calls++;
    b->http_status = a->http_status;
    snprintf(b->etag, sizeof b->etag, "%s", a->etag);
    return PROFD_OK;
}

static enum profd_status feed(const char *text, size_t cut, struct body *b, bool *done)
{
    struct http_reply *r = malloc(sizeof *r);
    size_t n = strlen(text);
    http_reply_init(r);
    *b = (struct body){.size = 0};
    *done = false;
    enum profd_status status = http_reply_feed(r, text, cut, take, b, done, NULL);
    if (status == PROFD_OK && !*done) {
        status = http_reply_feed(r, text + cut, n - cut, take, b, done, NULL);
    }
    free(r);
    return status;
}

static void reads(const char *text, int http_status, const char *body)
{
    for (size_t cut = 0; cut <= strlen(text); cut++) {
        struct body b;
        bool done;
        cr_assert_eq(feed(text, cut, &b, &done), PROFD_OK, "cut at %zu of %s", cut, text);
        cr_assert(done);
        cr_assert_eq(b.http_status, http_status);
        cr_assert_str_eq(b.text, body, "cut at %zu", cut);
        cr_assert_geq(b.calls, 1);
    }
}

Test(client_http, answers_cut_at_every_byte)
{
    reads("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nETag: \"x\"\r\n\r\nhello", 200, "hello");
    reads("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0a;x=y\r\n0123456789\r\n0\r\nT: x\r\n\r\n",
          200, "abc0123456789");
    reads("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", 404, "");
    reads("HTTP/1.1 304 Not Modified\r\nETag: \"y\"\r\n\r\n", 304, "");
    reads("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nz", 200, "z");
}

Test(client_http, what_is_no_answer)
{
    static const char *const bad[] = {
        "HTTP/2 200\r\n",
        "SSH-2.0-x\r\n",
        "HTTP/1.1 2x0 OK\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n",
        "HTTP/1.1 200 OK\r\n: x\r\n",
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct body b;
        bool done;
        cr_assert_eq(feed(bad[i], 5, &b, &done), PROFD_MALFORMED, "%s", bad[i]);
    }
}

Test(client_http, endless_headers)
{
    struct http_reply *r = malloc(sizeof *r);
    struct body b = {.size = 0};
    bool done = false;
    enum profd_status status;
    http_reply_init(r);
    status = http_reply_feed(r, "HTTP/1.1 200 OK\r\n", 17, take, &b, &done, NULL);
    for (int i = 0; i < 10000 && status == PROFD_OK; i++) {
        status = http_reply_feed(r, "A: b\r\n", 6, take, &b, &done, NULL);
    }
    cr_assert_eq(status, PROFD_TOO_LARGE);
    http_reply_init(r);
    for (int i = 0; i < 10000 && status != PROFD_MALFORMED; i++) {
        status = http_reply_feed(r, "x", 1, take, &b, &done, NULL);
    }
    cr_assert_eq(status, PROFD_MALFORMED);
    free(r);
}

Test(client_http, addresses)
{
    struct address a;
    struct profd_error e;
    char path[200];
    cr_assert_eq(address_parse("unix:/run/x", &a, NULL), PROFD_OK);
    cr_assert(!a.http && strcmp(a.socket.local.sun_path, "/run/x") == 0);
    cr_assert_eq(address_parse("/run/x", &a, NULL), PROFD_OK);
    cr_assert_str_eq(a.text, "unix:/run/x");
    cr_assert_eq(address_parse("http://127.0.0.1:8080", &a, NULL), PROFD_OK);
    cr_assert(a.http);
    cr_assert_eq(address_parse("http://[::1]:80/", &a, NULL), PROFD_OK);
    cr_assert_eq(a.socket.any.sa_family, AF_INET6);
    cr_assert_eq(address_parse("https://profd.example.org/", &a, NULL), PROFD_OK);
    cr_assert(a.http && a.https && strcmp(a.text, "https://profd.example.org") == 0);
    cr_assert_eq(address_parse("https://[fe80::1]:8443", &a, NULL), PROFD_OK);
    cr_assert_str_eq(a.text, "https://[fe80::1]:8443");
    static const char *const bad[] = {"",
                                      "unix:",
                                      "http://127.0.0.1",
                                      "http://127.0.0.1:0",
                                      "http://127.0.0.1:65536",
                                      "http://127.0.0.1:80/x",
                                      "http://10.0.0.1:80",
                                      "http://127.0.0.1.evil.example:80",
                                      "https://",
                                      "https://u@a",
                                      "https://a/x",
                                      "https://a:0",
                                      "https://a:65536",
                                      "https://[::1",
                                      "https://[]:1",
                                      "https://a?b",
                                      "http://:80"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_assert_eq(address_parse(bad[i], &a, &e), PROFD_USAGE, "%s", bad[i]);
    }
    memset(path, 'x', sizeof path);
    path[107] = '\0';
    cr_assert_eq(address_parse(path, &a, NULL), PROFD_OK);
    path[107] = 'x';
    path[108] = '\0';
    cr_assert_eq(address_parse(path, &a, &e), PROFD_USAGE);
    cr_assert(strstr(e.sentence, "108 bytes") && strstr(e.sentence, "107"));
}

Test(client_http, the_environment_names_the_socket)
{
    struct address a;
    setenv("PROFD_SOCKET", "/tmp/mine", 1);
    cr_assert_eq(address_default(&a, NULL), PROFD_OK);
    cr_assert_str_eq(a.text, "unix:/tmp/mine");
    unsetenv("PROFD_SOCKET");
    unsetenv("XDG_RUNTIME_DIR");
    cr_assert_eq(address_default(&a, NULL), PROFD_OK);
    cr_assert_str_eq(a.text, "unix:/run/profd/profd.sock");
}

Test(client_http, an_http_server_answers_queries_only)
{
    const struct profd_options o = {.server = "http://127.0.0.1:1"};
    struct profd_conn *c = NULL;
    struct profd_executable *x = NULL;
    struct profd_error e = {""};
    cr_assert_eq(profd_conn_open(&o, &c, NULL), PROFD_OK); /* it connects with each query */
    cr_assert_eq(profd_executable_open("/proc/self/exe", &x, NULL), PROFD_OK);
    cr_assert_eq(profd_conn_queue_executable(c, x, &e), PROFD_USAGE);
    cr_assert_str_eq(e.sentence, "http://127.0.0.1:1 answers queries only; uploads go to a Unix socket");
    cr_assert_eq(profd_conn_flush(c, NULL), PROFD_USAGE);
    cr_assert_eq(profd_conn_sync(c, 1, NULL), PROFD_USAGE);
    cr_assert_eq(profd_conn_set_answer_ms(c, 5), 10000);
    cr_assert_eq(profd_conn_set_answer_ms(c, 0), 5);
    cr_assert_eq(profd_conn_set_answer_ms(c, 7), 10000, "0 is the default");
    profd_executable_free(x);
    profd_conn_close(c);
}
