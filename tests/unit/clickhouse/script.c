/* Migrations of ClickHouse: the statements that a text becomes for each layout. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "clickhouse/script.h"

#define TEXT                                                                                                           \
    "-- of T; and\n\nCREATE TABLE $local(t) (x DateTime('UTC'), -- a comment\n  y UInt8) ENGINE = "                    \
    "$replacing(t, x) ORDER BY y;\n\n-- more\n$distributed(t, cityHash64(x, y));\n"

struct seen {
    char text[2048];
    size_t count, most;
};

static enum profd_status see(void *context, const char *statement, struct profd_error *e)
{
    struct seen *s = context;
    const size_t n = strlen(s->text);
    (void)snprintf(s->text + n, sizeof s->text - n, "<%s>", statement);
    return ++s->count < s->most ? PROFD_OK : profd_error_set(e, PROFD_BUSY, "enough");
}

static enum profd_status run(const char *text, const char *url, struct seen *s, struct profd_error *e)
{
    struct clickhouse_address a;
    cr_assert_eq(clickhouse_parse_address(url, &a, e), PROFD_OK, "%s", e->sentence);
    *s = (struct seen){.most = s->most ? s->most : 99};
    return clickhouse_each_statement(text, &a, see, s, e);
}

Test(script, one_server)
{
    struct seen s = {.most = 0};
    struct profd_error e;
    cr_assert_eq(run(TEXT, "clickhouse://h/d", &s, &e), PROFD_OK);
    cr_assert_str_eq(s.text, "<CREATE TABLE d.t (x DateTime('UTC'), -- a comment\n  y UInt8) ENGINE = "
                             "ReplacingMergeTree(x) ORDER BY y>");
}

Test(script, cluster)
{
    struct seen s = {.most = 0};
    struct profd_error e;
    cr_assert_eq(run(TEXT, "clickhouse://h/d?cluster=c", &s, &e), PROFD_OK);
    cr_assert_str_eq(s.text, "<CREATE TABLE d.t_local (x DateTime('UTC'), -- a comment\n  y UInt8) ENGINE = "
                             "ReplacingMergeTree(x) ORDER BY y><CREATE TABLE IF NOT EXISTS d.t AS d.t_local ENGINE = "
                             "Distributed('c', 'd', 't_local', cityHash64(x, y))>");
    cr_assert_eq(run(TEXT, "clickhouse://h/d?cluster=c&replicated=1", &s, &e), PROFD_OK);
    cr_assert(strstr(s.text, "ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/d/t_local', "
                             "'{replica}', x) ORDER") != NULL,
              "%s", s.text);
}

Test(script, the_first_failure_ends_it)
{
    struct seen s = {.most = 2};
    struct profd_error e;
    cr_assert_eq(run("A;\nB;\nC;\n", "clickhouse://h", &s, &e), PROFD_BUSY);
    cr_assert_str_eq(s.text, "<A><B>");
    cr_assert_str_eq(e.sentence, "enough");
}

Test(script, a_text_that_is_wrong)
{
    static const char *const texts[] = {"$",
                                        "$local",
                                        "$local(t",
                                        "$local(t;\n)",
                                        "$other(t);\n",
                                        "$replacing(t);\n",
                                        "$distributed(t, f(x;\n",
                                        "$distributed(t);\n",
                                        "a $local t"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct seen s = {.most = 0};
        struct profd_error e = {""};
        cr_expect_eq(run(texts[i], "clickhouse://h", &s, &e), PROFD_INTERNAL, "%s", texts[i]);
        cr_expect_eq(s.count, 0, "%s", texts[i]);
        cr_expect(strstr(e.sentence, "migration") != NULL);
    }
}
