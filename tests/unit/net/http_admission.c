/* The rules of HTTP access: method, Host, token, origin and coding, and the order in which they are checked. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/http.h"
#include "tests/unit/net/http_scene.h"

static const struct http_server_config unix_server = {0};

struct refused {
    int status;
    const char *request, *word;
};

static void refuse_each(const struct http_server_config *config, const struct refused *rows, size_t count)
{
    struct scene s;
    scene_open(&s, config);
    for (size_t i = 0; i < count; i++) {
        scene_connect(&s);
        scene_say(&s, rows[i].request, strlen(rows[i].request));
        scene_pump(&s, 0);
        cr_assert(s.ended, "%s", rows[i].request);
        scene_assert_problem(&s, rows[i].status, rows[i].word);
        cr_assert_eq(scene_count_heads(&s), 1);
    }
    cr_assert_eq(s.handled, 0);
    scene_close(&s);
}

Test(net_http_admission, what_is_not_a_get_is_refused_and_closed)
{
    static const struct refused rows[] = {
        {405, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", "Allow: GET, HEAD\r\n"},
        {405, "PUT / HTTP/1.1\r\nHost: a\r\n\r\n", "Allow: GET, HEAD\r\n"},
        {405, "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "Allow"},
        {405, "DELETE /api HTTP/1.1\r\nHost: a\r\n\r\n", "Allow"},
        {405, "TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", "Allow"},
        {405, "CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", "Allow"},
        {413, "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", "'3'"},
        {400,
         "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x "
         "HTTP/1.1\r\n",
         "Transfer-Encoding"},
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
        {403, "GET / HTTP/1.1\r\nHost: a\r\nOrigin: https://b\r\n\r\n", "'https://b'"},
        {403, "GET / HTTP/1.1\r\nHost: a\r\nOrigin: https://a:443\r\n\r\n", "'https://a:443'"},
        {403, "GET / HTTP/1.1\r\nHost: a\r\nOrigin: https://\r\n\r\n", "'https://'"},
        {403, "GET / HTTP/1.1\r\nHost: a\r\nOrigin: http://a:80\r\n\r\n", "origins"},
        {403, "GET / HTTP/1.1\r\nHost: a\r\nOrigin: http://\"\\a\r\n\r\n", "'http://\"\\a'"},
        {403, "POST / HTTP/1.1\r\nHost: a\r\nOrigin: http://b\r\n\r\n", "'http://b'"},
    };
    refuse_each(&unix_server, rows, sizeof rows / sizeof rows[0]);
}

Test(net_http_admission, a_refused_head_has_no_body)
{
    struct scene s;
    scene_open(&s, &unix_server);
    static const char request[] = "HEAD / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n";
    scene_say(&s, request, sizeof request - 1);
    scene_pump(&s, 0);
    cr_assert_eq(scene_status(&s), 417);
    cr_assert_arr_eq(s.got + s.got_size - 4, "\r\n\r\n", 4);
    scene_close(&s);
}

static struct http_server_config tcp_server(bool open)
{
    return (struct http_server_config){.tcp = true, .port = 9461, .open = open, .admit = scene_admit};
}

static bool public_page(const char *path, size_t n)
{
    return n == 5 && memcmp(path, "/page", 5) == 0;
}

Test(net_http_admission, public_paths_need_no_token_but_keep_every_other_rule)
{
    struct http_server_config config = tcp_server(false);
    config.is_public = public_page;
    static const struct refused rows[] = {
        {421, "GET /page HTTP/1.1\r\nHost: evil.example:9461\r\n\r\n", "'evil.example:9461'"},
        {403, "GET /page HTTP/1.1\r\nHost: localhost:9461\r\nOrigin: http://x\r\n\r\n", "'http://x'"},
        {401, "GET /page2 HTTP/1.1\r\nHost: localhost:9461\r\n\r\n", "token"},
        {401, "GET /pag HTTP/1.1\r\nHost: localhost:9461\r\n\r\n", "token"},
        {401, "GET /?/page HTTP/1.1\r\nHost: localhost:9461\r\n\r\n", "token"},
    };
    static const char *const admitted[] = {
        "GET /page HTTP/1.1\r\nHost: localhost:9461\r\n\r\n",
        "GET /page?build=1 HTTP/1.1\r\nHost: localhost:9461\r\n\r\n",
    };
    refuse_each(&config, rows, sizeof rows / sizeof rows[0]);
    struct scene s;
    scene_open(&s, &config);
    for (size_t i = 0; i < sizeof admitted / sizeof admitted[0]; i++) {
        s.got_size = 0;
        scene_say(&s, admitted[i], strlen(admitted[i]));
        scene_pump(&s, 1);
        cr_assert_eq(scene_status(&s), 200, "%s", admitted[i]);
    }
    scene_close(&s);
}

Test(net_http_admission, on_tcp_the_host_must_be_ours_and_the_token_right_in_this_order)
{
    static const struct refused rows[] = {
        {421, "GET / HTTP/1.1\r\nHost: evil.example:9461\r\nAuthorization: Bearer secret\r\n\r\n",
         "'evil.example:9461'"},
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
        {401, "GET / HTTP/1.1\r\nHost: localhost:9461\r\nAuthorization: Basic c2VjcmV0Og==\r\n\r\n", "token"},
        {401, "GET / HTTP/1.1\r\nHost: localhost:9461\r\nAuthorization: Basic dTpzZWNyZXQ\r\n\r\n", "token"},
        {401, "GET / HTTP/1.1\r\nHost: localhost:9461\r\nAuthorization: Basic dTpzZWNy*XQ=\r\n\r\n", "token"},
        {401, "GET / HTTP/1.1\r\nHost: localhost:9461\r\nAuthorization: Digest secret\r\n\r\n", "token"},
        {401, "GET /?token=secret HTTP/1.1\r\nHost: localhost:9461\r\nCookie: token=secret\r\n\r\n", "token"},
    };
    struct http_server_config config = tcp_server(false);
    refuse_each(&config, rows, sizeof rows / sizeof rows[0]);
    static const char *const admitted[] = {
        "GET / HTTP/1.1\r\nHost: localhost:9461\r\nAuthorization: Bearer secret\r\n\r\n",
        ("GET / HTTP/1.1\r\nHost: LOCALHOST:9461\r\nAuthorization: bearer   secret\r\nOrigin: "
         "http://localhost:9461\r\n\r\n"),
        "GET / HTTP/1.1\r\nHost: 127.0.0.1:9461\r\nAuthorization: BEARER secret\r\nSec-Fetch-Site: same-origin\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: [::1]:9461\r\nAuthorization: Bearer secret\r\nSec-Fetch-Site: none\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost:9461\r\nAuthorization: basic  dTpzZWNyZXQ=\r\n\r\n",
    };
    struct scene s;
    scene_open(&s, &config);
    for (size_t i = 0; i < sizeof admitted / sizeof admitted[0]; i++) {
        s.got_size = 0;
        scene_say(&s, admitted[i], strlen(admitted[i]));
        scene_pump(&s, 1);
        cr_assert_eq(scene_status(&s), 200, "%s", admitted[i]);
    }
    scene_close(&s);
    config = tcp_server(true);
    scene_open(&s, &config);
    scene_say(&s, admitted[0], strlen(admitted[0]) - 2 - strlen("Authorization: Bearer secret\r\n"));
    scene_say(&s, "\r\n", 2);
    scene_pump(&s, 1);
    cr_assert_eq(scene_status(&s), 200, "open: no token");
    scene_close(&s);
}

Test(net_http_admission, over_a_real_tcp_connection)
{
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof a;
    cr_assert_eq(bind(listener, (struct sockaddr *)&a, sizeof a), 0);
    cr_assert_eq(listen(listener, 4), 0);
    cr_assert_eq(getsockname(listener, (struct sockaddr *)&a, &size), 0);
    struct http_server_config config = tcp_server(true);
    config.port = ntohs(a.sin_port);
    struct scene s;
    scene_open(&s, &config);
    close(s.client);
    s.client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(connect(s.client, (struct sockaddr *)&a, sizeof a), 0);
    fcntl(s.client, F_SETFL, O_NONBLOCK);
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    cr_assert_geq(fd, 0);
    s.body = 3 << 20;
    http_server_accept(s.server, fd, NULL);
    char request[100];
    int n = snprintf(request, sizeof request, "GET / HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nConnection: close\r\n\r\n",
                     config.port);
    scene_say(&s, request, (size_t)n);
    scene_pump(&s, 0);
    cr_assert(s.ended);
    cr_assert_eq(scene_status(&s), 200);
    const char *body = (const char *)memmem(s.got, s.got_size, "\r\n\r\n", 4) + 4;
    cr_assert_eq((size_t)(s.got + s.got_size - body), 3u << 20);
    for (size_t i = 0; i < 3u << 20; i++) {
        cr_assert_eq(body[i], (char)('a' + i % 26));
    }
    close(listener);
    scene_close(&s);
}

static const char PREFLIGHT[] =
    "OPTIONS /api/v1/builds HTTP/1.1\r\nHost: localhost:9461\r\nOrigin: https://grafana.example\r\n"
    "Sec-Fetch-Site: cross-site\r\nAccess-Control-Request-Method: GET\r\n"
    "Access-Control-Request-Headers: authorization\r\n\r\n";

Test(net_http_admission, pages_of_the_one_configured_origin_may_ask)
{
    struct http_server_config config = tcp_server(false);
    config.origin = "https://grafana.example";
    struct scene s;
    char value[501];
    scene_open(&s, &config);
    scene_say(&s, PREFLIGHT, sizeof PREFLIGHT - 1);
    scene_pump(&s, 1);
    cr_assert_eq(scene_status(&s), 204, "without a token, as browsers ask");
    cr_assert_eq(s.handled, 0);
    scene_assert_field(&s, "Access-Control-Allow-Origin", "https://grafana.example");
    scene_assert_field(&s, "Access-Control-Allow-Methods", "GET, HEAD");
    scene_assert_field(&s, "Access-Control-Allow-Headers", "Authorization, If-None-Match");
    scene_assert_field(&s, "Access-Control-Max-Age", "600");
    scene_assert_field(&s, "Vary", "Origin");
    cr_assert_null(scene_field(&s, "Content-Length", value));
    cr_assert_not(s.ended, "kept alive");
    static const char ask[] =
        "GET / HTTP/1.1\r\nHost: localhost:9461\r\nOrigin: HTTPS://Grafana.example\r\nSec-Fetch-Site: cross-site\r\n"
        "Authorization: Bearer secret\r\n\r\n";
    s.got_size = 0;
    scene_say(&s, ask, sizeof ask - 1);
    scene_pump(&s, 1);
    cr_assert_eq(scene_status(&s), 200);
    scene_assert_field(&s, "Access-Control-Allow-Origin", "https://grafana.example");
    cr_assert_not_null(strstr(scene_field(&s, "Access-Control-Expose-Headers", value), "ETag"));
    cr_assert_null(scene_field(&s, "Access-Control-Allow-Methods", value));
    static const char own[] = "GET / HTTP/1.1\r\nHost: localhost:9461\r\nAuthorization: Bearer secret\r\n\r\n";
    s.got_size = 0;
    scene_say(&s, own, sizeof own - 1);
    scene_pump(&s, 1);
    cr_assert_eq(scene_status(&s), 200);
    cr_assert_null(scene_field(&s, "Access-Control-Allow-Origin", value), "the one before is forgotten");
    scene_assert_field(&s, "Vary", "Accept-Encoding, Origin");
    scene_close(&s);
    /* A refusal that the page may read. */
    static const char stranger[] = "GET / HTTP/1.1\r\nHost: localhost:9461\r\nOrigin: https://grafana.example\r\n\r\n";
    scene_open(&s, &config);
    scene_say(&s, stranger, sizeof stranger - 1);
    scene_pump(&s, 0);
    cr_assert_eq(scene_status(&s), 401);
    scene_assert_field(&s, "Access-Control-Allow-Origin", "https://grafana.example");
    scene_close(&s);
}

Test(net_http_admission, no_other_origin_and_no_other_method_because_of_it)
{
    static const struct refused rows[] = {
        {403, "GET / HTTP/1.1\r\nHost: localhost:9461\r\nOrigin: https://grafana.example.evil\r\n\r\n",
         "'https://grafana.example.evil'"},
        {403, "GET / HTTP/1.1\r\nHost: localhost:9461\r\nOrigin: http://grafana.example\r\n\r\n",
         "'http://grafana.example'"},
        {403, "GET / HTTP/1.1\r\nHost: localhost:9461\r\nOrigin: https://grafana.example:8443\r\n\r\n", "8443"},
        {403, "GET / HTTP/1.1\r\nHost: localhost:9461\r\nOrigin: null\r\n\r\n", "'null'"},
        {403, "GET / HTTP/1.1\r\nHost: localhost:9461\r\nSec-Fetch-Site: cross-site\r\n\r\n", "'cross-site'"},
        {403,
         "OPTIONS / HTTP/1.1\r\nHost: localhost:9461\r\nOrigin: https://x\r\nAccess-Control-Request-Method: "
         "GET\r\n\r\n",
         "'https://x'"},
        {405, "OPTIONS / HTTP/1.1\r\nHost: localhost:9461\r\n\r\n", "Allow: GET, HEAD, OPTIONS"},
        {405, "POST / HTTP/1.1\r\nHost: localhost:9461\r\nSec-Fetch-Site: same-origin\r\n\r\n",
         "only GET, HEAD can be asked here"},
        {421, "OPTIONS / HTTP/1.1\r\nHost: evil:9461\r\nOrigin: https://grafana.example\r\n\r\n", "'evil:9461'"},
    };
    struct http_server_config config = tcp_server(false);
    config.origin = "https://grafana.example";
    refuse_each(&config, rows, sizeof rows / sizeof rows[0]);
    struct scene s;
    config = tcp_server(false);
    scene_open(&s, &config);
    scene_say(&s, PREFLIGHT, sizeof PREFLIGHT - 1);
    scene_pump(&s, 0);
    cr_assert_eq(scene_status(&s), 403, "nothing was configured");
    scene_assert_guarded(&s);
    scene_close(&s);
}

Test(net_http_admission, codings_are_negotiated_or_refused)
{
    static const struct refused rows[] = {
        {406, "GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: identity;q=0\r\n\r\n", "identity, gzip and zstd"},
        {406, "GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: br\r\nAccept-Encoding: *;q=0\r\n\r\n",
         "identity, gzip and zstd"},
        {400, "GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip;q=1.5\r\n\r\n", "Accept-Encoding"},
        {400, "GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip zstd\r\n\r\n", "Accept-Encoding"},
    };
    static const struct {
        const char *fields;
        enum coding coding;
        bool only;
    } admitted[] = {
        {"", CODING_IDENTITY, false},
        {"Accept-Encoding: gzip, deflate, br\r\n", CODING_GZIP, false},
        {"accept-encoding:zstd\r\nAccept-Encoding: identity;q=0\r\n", CODING_ZSTD, true},
    };
    refuse_each(&unix_server, rows, sizeof rows / sizeof rows[0]);
    struct scene s;
    scene_open(&s, &unix_server);
    for (size_t i = 0; i < sizeof admitted / sizeof admitted[0]; i++) {
        char text[200];
        int n = snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: a\r\n%s\r\n", admitted[i].fields);
        s.got_size = 0;
        scene_say(&s, text, (size_t)n);
        scene_pump(&s, 1);
        cr_assert_eq(s.coding, admitted[i].coding, "%s", admitted[i].fields);
        cr_assert_eq(s.coded_only, admitted[i].only);
        scene_assert_field(&s, "Vary", "Accept-Encoding");
        if (admitted[i].coding != CODING_IDENTITY) {
            scene_assert_field(&s, "Content-Encoding", coding_name(admitted[i].coding));
        }
    }
    scene_close(&s);
}
