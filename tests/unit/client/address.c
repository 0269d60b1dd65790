/* Addresses of daemons. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/client.h"
#include "profd.h"

Test(client_address, addresses)
{
    struct address a;
    struct profd_error e;
    char path[200];
    cr_assert_eq(address_parse("unix:/run/x", &a, NULL), PROFD_OK);
    cr_assert(!a.http && strcmp(a.socket.sun_path, "/run/x") == 0);
    cr_assert_eq(address_parse("/run/x", &a, NULL), PROFD_OK);
    cr_assert_str_eq(a.text, "unix:/run/x");
    cr_assert_eq(address_parse("http://127.0.0.1:8080", &a, NULL), PROFD_OK);
    cr_assert(a.http);
    cr_assert_eq(address_parse("http://[::1]:80/", &a, NULL), PROFD_OK);
    cr_assert(a.http);
    cr_assert_eq(address_parse("https://profd.example.org/", &a, NULL), PROFD_OK);
    cr_assert(a.http && strcmp(a.text, "https://profd.example.org") == 0);
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

Test(client_address, the_environment_names_the_socket)
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

static enum profd_status ask(void *context, const struct profd_http_request *r, profd_sink sink, void *sink_context,
                             struct profd_error *e)
{
    (void)context;
    (void)r;
    (void)sink;
    (void)sink_context;
    return profd_error_set(e, PROFD_INTERNAL, "nothing is asked here");
}

Test(client_address, an_http_server_answers_queries_only)
{
    struct profd_options o = {.server = "http://127.0.0.1:1"};
    struct profd_conn *c = NULL;
    struct profd_executable *x = NULL;
    struct profd_error e = {""};
    cr_assert_eq(profd_conn_open(&o, &c, NULL), PROFD_USAGE, "the library has no HTTP of its own");
    o.http = ask;
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
