#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <nettle/sha2.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "net/http.h"

/* A door, a client's end of a socket, and a handler that remembers what it was asked. */
struct scene {
    struct event_base *base;
    struct http_door *door;
    int client;
    unsigned handled;
    char target[5000], etag[9000];
    bool head, later;
    struct http_peer peer;
    struct http_exchange *waiting;
    int status;
    size_t body;
    char *got;
    size_t got_size;
    bool ended;
};

#define GOT_MAX (8u << 20)

static void answer(struct scene *s, struct http_exchange *x)
{
    struct buffer body;
    buffer_init(&body, 1 << 28);
    for (size_t i = 0; i < s->body; i++)
        buffer_add_char(&body, (char)('a' + i % 26));
    struct http_answer a = {.status = s->status, .content_type = "application/json; charset=utf-8", .etag = "\"tag\"",
                            .cache_control = "private, no-cache", .body = &body};
    http_answer(x, &a);
    cr_assert_null(body.data, "the body's memory is taken over");
}

static void handle(void *context, struct http_exchange *x, const struct http_request *request)
{
    struct scene *s = context;
    s->handled++;
    snprintf(s->target, sizeof s->target, "%s", request->target);
    snprintf(s->etag, sizeof s->etag, "%s", request->if_none_match);
    s->head = request->head;
    s->peer = request->peer;
    if (s->later)
        s->waiting = x;
    else
        answer(s, x);
}

static void connect_again(struct scene *s)
{
    int ends[2];
    if (s->client >= 0)
        close(s->client);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    s->client = ends[0];
    s->got_size = 0;
    s->ended = false;
    http_door_accept(s->door, ends[1], &(struct http_peer){.uid = 1000, .gid = 100, .may_read_all = true});
}

static void open_scene(struct scene *s, const struct http_door_config *config)
{
    signal(SIGPIPE, SIG_IGN);
    *s = (struct scene){.client = -1, .status = 200, .body = 10};
    s->got = malloc(GOT_MAX);
    s->base = event_base_new();
    s->door = http_door_new(s->base, config, handle, s);
    cr_assert_not_null(s->door);
    connect_again(s);
}

static void close_scene(struct scene *s)
{
    http_door_free(s->door);
    event_base_free(s->base);
    close(s->client);
    free(s->got);
}

static void receive(struct scene *s)
{
    while (!s->ended && s->got_size < GOT_MAX) {
        ssize_t n = read(s->client, s->got + s->got_size, GOT_MAX - s->got_size);
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0)
            s->ended = true;
        else
            s->got_size += (size_t)n;
    }
}

/* Lets the door work until the client sees the end, or as many whole answers as wanted; at most 20 s. */
static size_t count_heads(const struct scene *s)
{
    size_t heads = 0;
    const char *end = s->got + s->got_size;
    for (const char *p = s->got; (p = memmem(p, (size_t)(end - p), "\r\n\r\n", 4)) != NULL; p += 4)
        heads++;
    return heads;
}

static void pump(struct scene *s, size_t heads)
{
    time_t start = time(NULL);
    while (!s->ended && (heads == 0 || count_heads(s) < heads) && time(NULL) - start < 20) {
        event_base_loop(s->base, EVLOOP_NONBLOCK);
        receive(s);
        poll(NULL, 0, 1);
    }
    for (int i = 0; i < 5; i++)
        event_base_loop(s->base, EVLOOP_NONBLOCK);
    receive(s);
}

static void settle(struct scene *s)
{
    for (int i = 0; i < 20; i++)
        event_base_loop(s->base, EVLOOP_NONBLOCK);
    receive(s);
}

static void say(struct scene *s, const char *text, size_t n)
{
    while (n > 0) {
        ssize_t sent = write(s->client, text, n);
        if (sent < 0) {
            cr_assert(errno == EAGAIN || errno == EPIPE || errno == ECONNRESET);
            if (errno != EAGAIN)
                return;
            settle(s);
            continue;
        }
        text += sent;
        n -= (size_t)sent;
    }
}

static int status_of(const struct scene *s)
{
    int status = 0;
    return s->got_size > 12 && sscanf(s->got, "HTTP/1.1 %d", &status) == 1 ? status : 0;
}

/* The value of a header field of the first answer, or NULL. */
static const char *field_of(const struct scene *s, const char *name, char *value)
{
    const char *end = memmem(s->got, s->got_size, "\r\n\r\n", 4);
    size_t n = strlen(name);
    for (const char *p = s->got; end != NULL && p < end; p = (const char *)memmem(p, (size_t)(end + 2 - p), "\r\n", 2) + 2)
        if (strncasecmp(p, name, n) == 0 && p[n] == ':') {
            sscanf(p + n + 1, " %500[^\r]", value);
            return value;
        }
    return NULL;
}

static void assert_field(const struct scene *s, const char *name, const char *wanted)
{
    char value[501];
    const char *found = field_of(s, name, value);
    cr_assert_not_null(found, "no %s in %.*s", name, (int)s->got_size, s->got);
    cr_assert_str_eq(found, wanted);
}

/* What every answer must carry, refusals too. */
static void assert_guarded(const struct scene *s)
{
    char value[501];
    assert_field(s, "X-Content-Type-Options", "nosniff");
    assert_field(s, "Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox");
    assert_field(s, "Cross-Origin-Resource-Policy", "same-origin");
    assert_field(s, "Cross-Origin-Opener-Policy", "same-origin");
    assert_field(s, "Referrer-Policy", "no-referrer");
    cr_assert_not_null(field_of(s, "Cache-Control", value));
    cr_assert_not_null(field_of(s, "Date", value));
    cr_assert_null(field_of(s, "Server", value));
    cr_assert_null(field_of(s, "Access-Control-Allow-Origin", value));
}

static void assert_problem(const struct scene *s, int status, const char *word)
{
    char text[100];
    cr_assert_eq(status_of(s), status, "%.*s", (int)s->got_size, s->got);
    assert_guarded(s);
    assert_field(s, "Content-Type", "application/problem+json");
    assert_field(s, "Cache-Control", "no-store");
    assert_field(s, "Connection", "close");
    snprintf(text, sizeof text, "\"status\":%d,\"detail\":\"", status);
    cr_assert_not_null(memmem(s->got, s->got_size, text, strlen(text)));
    cr_assert_not_null(memmem(s->got, s->got_size, word, strlen(word)), "'%s' lacks '%s'", s->got, word);
}

static const struct http_door_config unix_door = {0};

#define GET(target) "GET " target " HTTP/1.1\r\nHost: localhost\r\n\r\n"

Test(net_http_door, a_request_is_handed_on_and_answered)
{
    struct scene s;
    open_scene(&s, &unix_door);
    static const char request[] = "GET /api/v1/builds?limit=5 HTTP/1.1\r\nHost: any.thing\r\nIf-None-Match: \"x\"\r\n\r\n";
    say(&s, request, sizeof request - 1);
    pump(&s, 1);
    cr_assert_eq(s.handled, 1);
    cr_assert_str_eq(s.target, "/api/v1/builds?limit=5");
    cr_assert_str_eq(s.etag, "\"x\"");
    cr_assert_eq(s.peer.uid, 1000);
    cr_assert(s.peer.may_read_all);
    cr_assert_eq(status_of(&s), 200);
    assert_guarded(&s);
    assert_field(&s, "Content-Length", "10");
    assert_field(&s, "Content-Type", "application/json; charset=utf-8");
    assert_field(&s, "ETag", "\"tag\"");
    assert_field(&s, "Cache-Control", "private, no-cache");
    cr_assert_arr_eq(s.got + s.got_size - 14, "\r\n\r\nabcdefghij", 14);
    cr_assert_not(s.ended, "kept alive");
    struct http_door_counts counts;
    http_door_get_counts(s.door, &counts);
    cr_assert_eq(counts.connections, 1);
    cr_assert_eq(counts.answered[2], 1);
    cr_assert_eq(counts.bytes, s.got_size);
    close_scene(&s);
}

Test(net_http_door, a_request_that_arrives_byte_by_byte_is_the_same)
{
    struct scene s;
    open_scene(&s, &unix_door);
    for (size_t i = 0; i < sizeof GET("/x") - 1; i++) {
        say(&s, &GET("/x")[i], 1);
        event_base_loop(s.base, EVLOOP_NONBLOCK);
    }
    pump(&s, 1);
    cr_assert_eq(status_of(&s), 200);
    cr_assert_str_eq(s.target, "/x");
    close_scene(&s);
}

Test(net_http_door, connections_are_kept_for_many_requests)
{
    struct scene s;
    open_scene(&s, &unix_door);
    for (unsigned i = 1; i <= 1000; i++) {
        cr_assert_not(s.ended, "request %u", i);
        s.got_size = 0;
        say(&s, GET("/"), sizeof GET("/") - 1);
        pump(&s, 1);
        cr_assert_eq(status_of(&s), 200, "request %u", i);
    }
    pump(&s, 0);
    cr_assert_eq(s.handled, 1000);
    cr_assert(s.ended, "the thousandth answer is the last");
    assert_field(&s, "Connection", "close");
    close_scene(&s);
}

Test(net_http_door, head_and_304_have_no_body)
{
    struct scene s;
    open_scene(&s, &unix_door);
    static const char request[] = "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n";
    say(&s, request, sizeof request - 1);
    pump(&s, 1);
    cr_assert(s.head);
    assert_field(&s, "Content-Length", "10");
    cr_assert_arr_eq(s.got + s.got_size - 4, "\r\n\r\n", 4);
    s.got_size = 0;
    s.status = 304;
    say(&s, GET("/"), sizeof GET("/") - 1);
    pump(&s, 1);
    char value[501];
    cr_assert_eq(status_of(&s), 304);
    assert_field(&s, "ETag", "\"tag\"");
    cr_assert_null(field_of(&s, "Content-Length", value));
    assert_guarded(&s);
    cr_assert_arr_eq(s.got + s.got_size - 4, "\r\n\r\n", 4);
    s.got_size = 0;
    s.status = 200;
    say(&s, GET("/"), sizeof GET("/") - 1);
    pump(&s, 1);
    cr_assert_eq(status_of(&s), 200, "the connection is still in step");
    close_scene(&s);
}

Test(net_http_door, old_clients_and_close_end_the_connection)
{
    static const char *const requests[] = {"GET / HTTP/1.0\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"};
    struct scene s;
    open_scene(&s, &unix_door);
    for (size_t i = 0; i < 2; i++) {
        connect_again(&s);
        say(&s, requests[i], strlen(requests[i]));
        pump(&s, 0);
        cr_assert(s.ended);
        cr_assert_eq(status_of(&s), 200);
        assert_field(&s, "Connection", "close");
    }
    close_scene(&s);
}

Test(net_http_door, bytes_behind_a_request_are_never_a_second_request)
{
    struct scene s;
    open_scene(&s, &unix_door);
    static const char two[] = GET("/first") GET("/second");
    say(&s, two, sizeof two - 1);
    pump(&s, 0);
    cr_assert(s.ended);
    cr_assert_eq(s.handled, 1);
    cr_assert_str_eq(s.target, "/first");
    cr_assert_eq(count_heads(&s), 1);
    close_scene(&s);
}

struct refused {
    int status;
    const char *request, *word;
};

static void refuse_each(const struct http_door_config *config, const struct refused *rows, size_t count)
{
    struct scene s;
    open_scene(&s, config);
    for (size_t i = 0; i < count; i++) {
        connect_again(&s);
        say(&s, rows[i].request, strlen(rows[i].request));
        pump(&s, 0);
        cr_assert(s.ended, "%s", rows[i].request);
        assert_problem(&s, rows[i].status, rows[i].word);
        cr_assert_eq(count_heads(&s), 1);
    }
    cr_assert_eq(s.handled, 0);
    close_scene(&s);
}

Test(net_http_door, what_is_not_a_get_is_refused_and_closed)
{
    static const struct refused rows[] = {
        {405, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", "Allow: GET, HEAD\r\n"},
        {405, "PUT / HTTP/1.1\r\nHost: a\r\n\r\n", "Allow: GET, HEAD\r\n"},
        {405, "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "Allow"},
        {405, "DELETE /api HTTP/1.1\r\nHost: a\r\n\r\n", "Allow"},
        {405, "TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", "Allow"},
        {405, "CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", "Allow"},
        {413, "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", "'3'"},
        {400, "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\n", "Transfer-Encoding"},
        {400, "GET / HTTP/1.1\r\n\r\n", "no Host"},
        {400, "GET /%2e%2e HTTP/1.1\r\nHost: a\r\n\r\n", "(byte 22"},
        {417, "GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n", "Expect"},
        {505, "GET / HTTP/2.0\r\nHost: a\r\n\r\n", "HTTP/1.1"},
        {400, "hello\n", "line feed"},
        {403, "GET / HTTP/1.1\r\nHost: a\r\nSec-Fetch-Site: cross-site\r\n\r\n", "'cross-site'"},
        {403, "GET / HTTP/1.1\r\nHost: a\r\nSec-Fetch-Site: same-site\r\n\r\n", "'same-site'"},
        {403, "GET / HTTP/1.1\r\nHost: a\r\nSec-Fetch-Site:\r\n\r\n", "Sec-Fetch-Site"},
        {403, "GET / HTTP/1.1\r\nHost: a\r\nOrigin: null\r\n\r\n", "'null'"},
        {403, "GET / HTTP/1.1\r\nHost: a\r\nOrigin: http://b\r\n\r\n", "'http://b'"},
        {403, "GET / HTTP/1.1\r\nHost: a\r\nOrigin: https://a\r\n\r\n", "'https://a'"},
        {403, "GET / HTTP/1.1\r\nHost: a\r\nOrigin: http://a:80\r\n\r\n", "origins"},
        {403, "GET / HTTP/1.1\r\nHost: a\r\nOrigin: http://\"\\a\r\n\r\n", "'http://\\\"\\\\a'"},
        {403, "POST / HTTP/1.1\r\nHost: a\r\nOrigin: http://b\r\n\r\n", "'http://b'"},
    };
    refuse_each(&unix_door, rows, sizeof rows / sizeof rows[0]);
}

Test(net_http_door, a_refused_head_has_no_body)
{
    struct scene s;
    open_scene(&s, &unix_door);
    static const char request[] = "HEAD / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n";
    say(&s, request, sizeof request - 1);
    pump(&s, 0);
    cr_assert_eq(status_of(&s), 417);
    cr_assert_arr_eq(s.got + s.got_size - 4, "\r\n\r\n", 4);
    close_scene(&s);
}

static struct http_door_config tcp_door(const char *token)
{
    struct http_door_config config = {.tcp = true, .port = 9461, .open = token == NULL};
    struct sha256_ctx hash;
    sha256_init(&hash);
    if (token != NULL)
        sha256_update(&hash, strlen(token), (const uint8_t *)token);
    sha256_digest(&hash, 32, config.token_sha256);
    return config;
}

Test(net_http_door, on_tcp_the_host_must_be_ours_and_the_token_right_in_this_order)
{
    static const struct refused rows[] = {
        {421, "GET / HTTP/1.1\r\nHost: evil.example:9461\r\nAuthorization: Bearer secret\r\n\r\n", "'evil.example:9461'"},
        {421, "GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\n\r\n", "'localhost'"},
        {421, "POST / HTTP/1.1\r\nHost: 127.0.0.1:80\r\nOrigin: http://x\r\n\r\n", "'127.0.0.1:80'"},
        {403, "POST / HTTP/1.1\r\nHost: localhost:9461\r\nOrigin: http://x\r\n\r\n", "'http://x'"},
        {405, "POST / HTTP/1.1\r\nHost: localhost:9461\r\n\r\n", "Allow"},
        {401, "GET / HTTP/1.1\r\nHost: localhost:9461\r\n\r\n", "WWW-Authenticate: Bearer"},
        {401, "GET / HTTP/1.1\r\nHost: localhost:9461\r\nAuthorization: Bearer\r\n\r\n", "WWW-Authenticate: Bearer"},
        {401, "GET / HTTP/1.1\r\nHost: localhost:9461\r\nAuthorization: Bearer secre\r\n\r\n", "token"},
        {401, "GET / HTTP/1.1\r\nHost: localhost:9461\r\nAuthorization: Bearer secrets\r\n\r\n", "token"},
        {401, "GET / HTTP/1.1\r\nHost: localhost:9461\r\nAuthorization: Bearersecret\r\n\r\n", "token"},
        {401, "GET / HTTP/1.1\r\nHost: localhost:9461\r\nAuthorization: Basic secret\r\n\r\n", "token"},
        {401, "GET /?token=secret HTTP/1.1\r\nHost: localhost:9461\r\nCookie: token=secret\r\n\r\n", "token"},
    };
    struct http_door_config config = tcp_door("secret");
    refuse_each(&config, rows, sizeof rows / sizeof rows[0]);
    static const char *const admitted[] = {
        "GET / HTTP/1.1\r\nHost: localhost:9461\r\nAuthorization: Bearer secret\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: LOCALHOST:9461\r\nAuthorization: bearer   secret\r\nOrigin: http://localhost:9461\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: 127.0.0.1:9461\r\nAuthorization: BEARER secret\r\nSec-Fetch-Site: same-origin\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: [::1]:9461\r\nAuthorization: Bearer secret\r\nSec-Fetch-Site: none\r\n\r\n",
    };
    struct scene s;
    open_scene(&s, &config);
    for (size_t i = 0; i < 4; i++) {
        s.got_size = 0;
        say(&s, admitted[i], strlen(admitted[i]));
        pump(&s, 1);
        cr_assert_eq(status_of(&s), 200, "%s", admitted[i]);
    }
    close_scene(&s);
    config = tcp_door(NULL);
    open_scene(&s, &config);
    say(&s, "GET / HTTP/1.1\r\nHost: localhost:9461\r\n\r\n", 42);
    pump(&s, 1);
    cr_assert_eq(status_of(&s), 200, "open: no token");
    close_scene(&s);
}

Test(net_http_door, over_a_real_tcp_connection)
{
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof a;
    cr_assert_eq(bind(listener, (struct sockaddr *)&a, sizeof a), 0);
    cr_assert_eq(listen(listener, 4), 0);
    cr_assert_eq(getsockname(listener, (struct sockaddr *)&a, &size), 0);
    struct http_door_config config = tcp_door(NULL);
    config.port = ntohs(a.sin_port);
    struct scene s;
    open_scene(&s, &config);
    close(s.client);
    s.client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(connect(s.client, (struct sockaddr *)&a, sizeof a), 0);
    fcntl(s.client, F_SETFL, O_NONBLOCK);
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    cr_assert_geq(fd, 0);
    s.body = 3 << 20;
    http_door_accept(s.door, fd, NULL);
    char request[100];
    int n = snprintf(request, sizeof request, "GET / HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nConnection: close\r\n\r\n", config.port);
    say(&s, request, (size_t)n);
    pump(&s, 0);
    cr_assert(s.ended);
    cr_assert_eq(status_of(&s), 200);
    const char *body = (const char *)memmem(s.got, s.got_size, "\r\n\r\n", 4) + 4;
    cr_assert_eq((size_t)(s.got + s.got_size - body), 3u << 20);
    for (size_t i = 0; i < 3u << 20; i++)
        cr_assert_eq(body[i], (char)('a' + i % 26));
    close(listener);
    close_scene(&s);
}

Test(net_http_door, an_answer_may_come_later_or_too_late)
{
    struct scene s;
    open_scene(&s, &unix_door);
    s.later = true;
    say(&s, GET("/"), sizeof GET("/") - 1);
    settle(&s);
    cr_assert_eq(s.handled, 1);
    cr_assert_eq(s.got_size, 0);
    answer(&s, s.waiting);
    pump(&s, 1);
    cr_assert_eq(status_of(&s), 200);
    connect_again(&s);
    settle(&s);
    say(&s, GET("/"), sizeof GET("/") - 1);
    settle(&s);
    close(s.client);
    s.client = -1;
    struct http_exchange *orphan = s.waiting;
    s.body = 1 << 20;
    answer(&s, orphan);
    for (int i = 0; i < 20; i++)
        event_base_loop(s.base, EVLOOP_NONBLOCK);
    struct http_door_counts counts;
    http_door_get_counts(s.door, &counts);
    cr_assert_eq(counts.connections, 0, "the client had gone");
    connect_again(&s);
    say(&s, GET("/"), sizeof GET("/") - 1);
    settle(&s);
    http_door_free(s.door);
    answer(&s, s.waiting);
    s.door = NULL;
    close_scene(&s);
}

/* Deadlines are shortened; what is asserted is that they come, not when. */
Test(net_http_door, a_slow_head_is_answered_408)
{
    struct http_door_config config = {.header_ms = 50};
    struct scene s;
    open_scene(&s, &config);
    say(&s, "GET / HT", 8);
    pump(&s, 0);
    assert_problem(&s, 408, "complete");
    connect_again(&s);
    for (int i = 0; i < 2000 && !s.ended; i++) { /* one byte at a time does not help */
        say(&s, "a", 1);
        event_base_loop(s.base, EVLOOP_NONBLOCK);
        receive(&s);
        poll(NULL, 0, 10);
    }
    cr_assert(s.ended);
    assert_problem(&s, 408, "complete");
    close_scene(&s);
}

Test(net_http_door, idle_connections_and_slow_handlers_are_ended)
{
    struct http_door_config config = {.life_ms = 60, .handle_ms = 50};
    struct scene s;
    open_scene(&s, &config);
    pump(&s, 0);
    cr_assert(s.ended);
    cr_assert_eq(s.got_size, 0);
    connect_again(&s);
    s.later = true;
    say(&s, GET("/"), sizeof GET("/") - 1);
    pump(&s, 0);
    assert_problem(&s, 504, "ready");
    answer(&s, s.waiting);
    close_scene(&s);
}

Test(net_http_door, a_reader_that_takes_nothing_is_left_alone)
{
    struct http_door_config config = {.write_ms = 50};
    struct scene s;
    open_scene(&s, &config);
    s.body = 6 << 20;
    say(&s, GET("/"), sizeof GET("/") - 1);
    struct http_door_counts counts;
    time_t start = time(NULL);
    do {
        event_base_loop(s.base, EVLOOP_NONBLOCK);
        poll(NULL, 0, 1);
        http_door_get_counts(s.door, &counts);
    } while (counts.connections > 0 && time(NULL) - start < 20);
    cr_assert_eq(counts.connections, 0);
    cr_assert_lt(counts.bytes, 6u << 20);
    close_scene(&s);
}

Test(net_http_door, a_full_door_gives_up_its_idlest_or_says_busy)
{
    struct http_door_config config = {.connections_max = 2};
    struct scene s;
    open_scene(&s, &config);
    int idlest = s.client;
    s.client = -1;
    connect_again(&s);
    int second = s.client;
    s.client = -1;
    s.later = true;
    connect_again(&s);
    char byte;
    cr_assert_eq(read(idlest, &byte, 1), 0, "the idlest was closed");
    say(&s, GET("/"), sizeof GET("/") - 1);
    settle(&s);
    cr_assert_eq(write(second, "G", 1), 1);
    settle(&s);
    int third = s.client;
    s.client = -1;
    connect_again(&s);
    pump(&s, 0);
    assert_problem(&s, 503, "all 2 connections");
    assert_field(&s, "Retry-After", "1");
    struct http_door_counts counts;
    http_door_get_counts(s.door, &counts);
    cr_assert_eq(counts.connections, 2);
    answer(&s, s.waiting);
    close(idlest);
    close(second);
    close(third);
    close_scene(&s);
}

Test(net_http_door, stopping_answers_what_is_under_way)
{
    struct scene s;
    open_scene(&s, &unix_door);
    int idle = s.client;
    s.client = -1;
    connect_again(&s);
    s.later = true;
    say(&s, GET("/"), sizeof GET("/") - 1);
    settle(&s);
    http_door_stop(s.door);
    char byte;
    cr_assert_eq(read(idle, &byte, 1), 0);
    answer(&s, s.waiting);
    pump(&s, 0);
    cr_assert(s.ended);
    cr_assert_eq(status_of(&s), 200);
    assert_field(&s, "Connection", "close");
    connect_again(&s);
    pump(&s, 0);
    cr_assert(s.ended);
    cr_assert_eq(s.got_size, 0, "no new ones");
    close(idle);
    close_scene(&s);
}

Test(net_http_door, a_megabyte_of_header_is_not_kept)
{
    struct scene s;
    open_scene(&s, &unix_door);
    char *flood = malloc(1 << 20);
    memset(flood, 'a', 1 << 20);
    memcpy(flood, "GET / HTTP/1.1\r\nX: ", 19);
    say(&s, flood, 1 << 20);
    pump(&s, 0);
    cr_assert_eq(s.handled, 0);
    cr_assert_eq(status_of(&s), 431);
    free(flood);
    close_scene(&s);
}
