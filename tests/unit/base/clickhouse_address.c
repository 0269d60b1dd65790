/* URLs of the tier: what they mean, and that nothing of them reaches SQL, a URL or a header that would need quoting.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/clickhouse_address.h"

Test(address, defaults)
{
    struct clickhouse_address a;
    struct profd_error e;
    cr_assert_eq(clickhouse_parse_address("https://ch.example", &a, &e), PROFD_OK);
    cr_assert_str_eq(a.user, "default");
    cr_assert_str_eq(a.servers[0].host, "ch.example");
    cr_assert_eq(a.servers[0].port, 8443);
    cr_assert_str_eq(a.database, "profd");
    cr_assert_str_eq(a.cluster, "");
    cr_assert(a.tls && !a.replicated && a.server_count == 1);
    cr_assert_str_eq(a.password, "");
    cr_assert_eq(clickhouse_parse_address("http://localhost/", &a, &e), PROFD_OK);
    cr_assert(a.servers[0].port == 8123 && !a.tls);
    cr_assert_str_eq(a.database, "profd");
}

Test(address, everything)
{
    struct clickhouse_address a;
    struct profd_error e;
    cr_assert_eq(clickhouse_parse_address("https://u.s-er@[fe80::1]:65535/d_1?cluster=c-1&replicated=1", &a, &e),
                 PROFD_OK);
    cr_assert_str_eq(a.user, "u.s-er");
    cr_assert_str_eq(a.servers[0].host, "[fe80::1]");
    cr_assert_eq(a.servers[0].port, 65535);
    cr_assert_str_eq(a.database, "d_1");
    cr_assert_str_eq(a.cluster, "c-1");
    cr_assert(a.tls && a.replicated);
    cr_assert_eq(clickhouse_parse_address("https://h/?cluster=c&replicated=0", &a, &e), PROFD_OK);
    cr_assert(!a.replicated && a.cluster[0] == 'c');
}

Test(address, plain_http_is_for_loopback)
{
    static const char *const loopback[] = {"http://localhost", "http://127.0.0.1:8123", "http://127.9.9.9,[::1]:1/d"};
    static const char *const elsewhere[] = {"http://ch.example", "http://127.example", "http://[::2]",
                                            "http://localhost,10.0.0.1", "http://localhost.example"};
    struct clickhouse_address a;
    struct profd_error e;
    for (size_t i = 0; i < sizeof loopback / sizeof loopback[0]; i++) {
        cr_expect_eq(clickhouse_parse_address(loopback[i], &a, &e), PROFD_OK, "%s: %s", loopback[i], e.sentence);
    }
    for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++) {
        cr_expect_eq(clickhouse_parse_address(elsewhere[i], &a, &e), PROFD_USAGE, "%s", elsewhere[i]);
        cr_expect(strstr(e.sentence, "use https://") != NULL, "%s", e.sentence);
    }
}

Test(address, several_servers)
{
    struct clickhouse_address a;
    struct profd_error e;
    char url[1024] = "https://h0";
    cr_assert_eq(clickhouse_parse_address("https://u@a.example,[::1]:9,c:8124/d", &a, &e), PROFD_OK);
    cr_assert_eq(a.server_count, 3);
    cr_assert_str_eq(a.servers[0].host, "a.example");
    cr_assert_str_eq(a.servers[1].host, "[::1]");
    cr_assert(a.servers[0].port == 8443 && a.servers[1].port == 9 && a.servers[2].port == 8124);
    const struct clickhouse_address one = clickhouse_pick_server(&a, 2);
    cr_assert_eq(one.server_count, 1);
    cr_assert_str_eq(one.servers[0].host, "c");
    cr_assert_str_eq(one.user, "u");
    for (unsigned i = 1; i < CLICKHOUSE_SERVERS_MOST; i++) {
        strcat(url, ",h");
    }
    cr_assert_eq(clickhouse_parse_address(url, &a, &e), PROFD_OK);
    cr_assert_eq(a.server_count, CLICKHOUSE_SERVERS_MOST);
    strcat(url, ",h");
    cr_assert_eq(clickhouse_parse_address(url, &a, &e), PROFD_USAGE);
}

Test(address, what_is_wrong_is_named)
{
    static const struct {
        const char *url, *word;
    } wrong[] = {
        {"ftp://h", "\"ftp://h\""},
        {"", "https://"},
        {"clickhouse://h", "https://"},
        {"https://", "host name"},
        {"https://a,", "host name"},
        {"https://,a", "host name"},
        {"https://a b", "\"a b\""},
        {"https://h\xc3\xa4", "host name"},
        {"https://[::1", "brackets"},
        {"https://[::g]", "brackets"},
        {"https://[]", "brackets"},
        {"https://[::1]8123", "brackets"},
        {"https://h:", "port \"\""},
        {"https://h:0", "port \"0\""},
        {"https://h:65536", "65536"},
        {"https://h:123456", "123456"},
        {"https://h:+1", "+1"},
        {"https://u:secret@h", "password"},
        {"https://@h", "user \"\""},
        {"https://u'@h", "user \"u'\""},
        {"https://u\r\n@h", "user"},
        {"https://h/1d", "database \"1d\""},
        {"https://h/a-b", "database \"a-b\""},
        {"https://h/a/b", "database \"a/b\""},
        {"https://h/d?cluster=", "cluster \"\""},
        {"https://h/d?cluster=a'b", "cluster \"a'b\""},
        {"https://h/d?cluster", "cluster \"\""},
        {"https://h/d?replicated=1", "cluster=NAME"},
        {"https://h/d?replicated=yes", "replicated=yes"},
        {"https://h/d?replicated", "0 or 1"},
        {"https://h/d?secure=1", "\"secure\""},
        {"https://h/d?cluster=c&", "\"\""},
        {"https://h/d?", "\"\""},
        {"https://h/d?replicated=1?x", "0 or 1"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct clickhouse_address a = {.server_count = 7};
        struct profd_error e = {""};
        cr_expect_eq(clickhouse_parse_address(wrong[i].url, &a, &e), PROFD_USAGE, "%s", wrong[i].url);
        cr_expect(strstr(e.sentence, wrong[i].word) != NULL, "%s: %s", wrong[i].url, e.sentence);
        cr_expect(strstr(e.sentence, "secret") == NULL, "%s", e.sentence);
        cr_expect_eq(a.server_count, 7);
    }
}

Test(address, lengths)
{
    char url[600];
    struct clickhouse_address a;
    struct profd_error e;
    (void)snprintf(url, sizeof url, "https://h/%.*s", 64,
                   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    cr_assert_eq(clickhouse_parse_address(url, &a, &e), PROFD_OK);
    cr_assert_eq(strlen(a.database), 64);
    (void)strcat(url, "a");
    cr_assert_eq(clickhouse_parse_address(url, &a, &e), PROFD_USAGE);
    (void)snprintf(url, sizeof url, "https://");
    memset(url + 8, 'h', 255);
    url[8 + 255] = '\0';
    cr_assert_eq(clickhouse_parse_address(url, &a, &e), PROFD_OK);
    cr_assert_eq(strlen(a.servers[0].host), 255);
    (void)strcat(url, "h");
    cr_assert_eq(clickhouse_parse_address(url, &a, &e), PROFD_USAGE);
}
