/* URLs of ClickHouse: what they mean, and that nothing of them reaches SQL, a URL or a header that would need quoting.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "clickhouse/address.h"

Test(address, defaults)
{
    struct clickhouse_address a;
    struct profd_error e;
    cr_assert_eq(clickhouse_parse_address("clickhouse://ch.example", &a, &e), PROFD_OK);
    cr_assert_str_eq(a.user, "default");
    cr_assert_str_eq(a.servers[0].host, "ch.example");
    cr_assert_eq(a.servers[0].port, 8123);
    cr_assert_str_eq(a.database, "profd");
    cr_assert_str_eq(a.cluster, "");
    cr_assert(!a.tls && !a.replicated);
    cr_assert_str_eq(a.password, "");
    cr_assert_eq(clickhouse_parse_address("clickhouse://h/?tls=1", &a, &e), PROFD_OK);
    cr_assert_eq(a.servers[0].port, 8443);
    cr_assert_str_eq(a.database, "profd");
}

Test(address, everything)
{
    struct clickhouse_address a;
    struct profd_error e;
    cr_assert_eq(clickhouse_parse_address("clickhouse://u.s-er@[::1]:65535/d_1?cluster=c-1&replicated=1&tls=1", &a, &e),
                 PROFD_OK);
    cr_assert_str_eq(a.user, "u.s-er");
    cr_assert_str_eq(a.servers[0].host, "[::1]");
    cr_assert_eq(a.servers[0].port, 65535);
    cr_assert_str_eq(a.database, "d_1");
    cr_assert_str_eq(a.cluster, "c-1");
    cr_assert(a.tls && a.replicated);
}

Test(address, several_servers)
{
    struct clickhouse_address a;
    struct profd_error e;
    char url[1024] = "clickhouse://h0";
    cr_assert_eq(clickhouse_parse_address("clickhouse://u@a.example,[::1]:9,c:8124/d?tls=1", &a, &e), PROFD_OK);
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
        {"http://h", "http://h"},
        {"clickhouse:/h", "clickhouse://"},
        {"clickhouse://", "host name"},
        {"clickhouse://a,", "host name"},
        {"clickhouse://,a", "host name"},
        {"clickhouse://a b", "\"a b\""},
        {"clickhouse://h\xc3\xa4", "host name"},
        {"clickhouse://[::1", "brackets"},
        {"clickhouse://[::g]", "brackets"},
        {"clickhouse://[]", "brackets"},
        {"clickhouse://[::1]8123", "brackets"},
        {"clickhouse://h:", "port \"\""},
        {"clickhouse://h:0", "port \"0\""},
        {"clickhouse://h:65536", "65536"},
        {"clickhouse://h:123456", "123456"},
        {"clickhouse://h:+1", "+1"},
        {"clickhouse://u:secret@h", "password"},
        {"clickhouse://@h", "user \"\""},
        {"clickhouse://u'@h", "user \"u'\""},
        {"clickhouse://u\r\n@h", "user"},
        {"clickhouse://h/1d", "database \"1d\""},
        {"clickhouse://h/a-b", "database \"a-b\""},
        {"clickhouse://h/a/b", "database \"a/b\""},
        {"clickhouse://h/d?cluster=", "cluster \"\""},
        {"clickhouse://h/d?cluster=a'b", "cluster \"a'b\""},
        {"clickhouse://h/d?cluster", "cluster \"\""},
        {"clickhouse://h/d?replicated=1", "cluster=NAME"},
        {"clickhouse://h/d?tls=yes", "tls=yes"},
        {"clickhouse://h/d?tls=", "0 or 1"},
        {"clickhouse://h/d?secure=1", "\"secure\""},
        {"clickhouse://h/d?tls=1&", "\"\""},
        {"clickhouse://h/d?tls=1?x", "0 or 1"},
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
    (void)snprintf(url, sizeof url, "clickhouse://h/%.*s", 64,
                   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    cr_assert_eq(clickhouse_parse_address(url, &a, &e), PROFD_OK);
    cr_assert_eq(strlen(a.database), 64);
    (void)strcat(url, "a");
    cr_assert_eq(clickhouse_parse_address(url, &a, &e), PROFD_USAGE);
    (void)snprintf(url, sizeof url, "clickhouse://");
    memset(url + 13, 'h', 255);
    url[13 + 255] = '\0';
    cr_assert_eq(clickhouse_parse_address(url, &a, &e), PROFD_OK);
    cr_assert_eq(strlen(a.servers[0].host), 255);
    (void)strcat(url, "h");
    cr_assert_eq(clickhouse_parse_address(url, &a, &e), PROFD_USAGE);
}
