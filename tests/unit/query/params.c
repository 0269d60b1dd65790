/* Targets, parameters, matchers and ETags are parsed by exact rules; different questions have different canonical
 * texts. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "query/query_internal.h"
#include "query/params.h"
#include "query/params.h"

#define NOW (INT64_C(1795276800) * 1000000000) /* 2026-11-21T16:00:00Z */

Test(query_params, takes_targets_apart)
{
    struct params p;
    struct profd_error e;
    cr_assert_eq(
        params_parse("/api/v1/builds/ab%2Fcd/report?since=now-1h&focus=a%20b%2bc+d&label.host=%C3%A9&x=", &p, &e),
        PROFD_OK, "%s", e.sentence);
    cr_assert_eq(p.segment_count, 5);
    cr_assert_str_eq(p.segments[0], "api");
    cr_assert_str_eq(p.segments[3], "ab/cd");
    cr_assert_eq(p.count, 4);
    cr_assert_str_eq(params_find(&p, "focus"), "a b+c+d");
    cr_assert_str_eq(params_find(&p, "label.host"), "\xc3\xa9");
    cr_assert_str_eq(params_find(&p, "x"), "");
    cr_assert_null(params_find(&p, "y"));
    cr_assert_eq(params_parse("/", &p, &e), PROFD_OK);
    cr_assert_eq(p.segment_count, 1);
    cr_assert_str_eq(p.segments[0], "");
    cr_assert_eq(params_parse("/a?", &p, &e), PROFD_OK);
    cr_assert_eq(p.count, 0);
    cr_assert_eq(params_parse("/a?x=a=b?c/d", &p, &e), PROFD_OK);
    cr_assert_str_eq(params_find(&p, "x"), "a=b?c/d");
}

Test(query_params, refuses_by_rule_and_value)
{
    static const struct {
        const char *target;
        enum profd_status status;
        const char *word;
    } CASES[] = {
        {"", PROFD_BAD_QUERY, "'/'"},
        {"api", PROFD_BAD_QUERY, "'/'"},
        {"/a?x=%", PROFD_BAD_QUERY, "offset 5"},
        {"/a?x=%4", PROFD_BAD_QUERY, "offset 5"},
        {"/a?x=%4&y=1", PROFD_BAD_QUERY, "offset 5"},
        {"/a?x=%zz", PROFD_BAD_QUERY, "hexadecimal"},
        {"/a?x=%00", PROFD_BAD_QUERY, "%00"},
        {"/a?x=%0A", PROFD_BAD_QUERY, "%0A"},
        {"/a?x=%7f", PROFD_BAD_QUERY, "%7F"},
        {"/a?x=%ff", PROFD_BAD_QUERY, "UTF-8"},
        {"/a?x=%ed%a0%80", PROFD_BAD_QUERY, "UTF-8"},
        {"/a?x=a b", PROFD_BAD_QUERY, "0x20"},
        {"/a#b", PROFD_BAD_QUERY, "0x23"},
        {"/a?x=\"1\"", PROFD_BAD_QUERY, "0x22"},
        {"/a?x=\xc3\xa9", PROFD_BAD_QUERY, "0xc3"},
        {"/a?x", PROFD_BAD_QUERY, "'x'"},
        {"/a?=1", PROFD_BAD_QUERY, "name=value"},
        {"/a?&x=1", PROFD_BAD_QUERY, "name=value"},
        {"/a?x=1&", PROFD_BAD_QUERY, "'&'"},
        {"/a?x=1&&y=2", PROFD_BAD_QUERY, "name=value"},
        {"/1/2/3/4/5/6/7/8/9", PROFD_NOT_FOUND, "8 segments"},
    };
    struct params p;
    struct profd_error e;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        enum profd_status status = params_parse(CASES[i].target, &p, &e);
        cr_assert_eq(status, CASES[i].status, "%s: %s", CASES[i].target, profd_status_name(status));
        cr_assert_not_null(strstr(e.sentence, CASES[i].word), "%s: %s", CASES[i].target, e.sentence);
    }
}

Test(query_params, limits_hold_to_the_byte)
{
    static char target[LIMIT_QUERY_BYTES + 2], many[64 * 5 + 16];
    struct params p;
    struct profd_error e;
    memset(target, 'a', LIMIT_QUERY_BYTES + 1);
    target[0] = '/';
    cr_assert_eq(params_parse(target, &p, &e), PROFD_TOO_LARGE);
    target[LIMIT_QUERY_BYTES] = '\0';
    cr_assert_eq(params_parse(target, &p, &e), PROFD_OK);
    cr_assert_eq(strlen(p.segments[0]), LIMIT_QUERY_BYTES - 1);
    target[1] = '?';
    target[3] = '=';
    cr_assert_eq(params_parse(target, &p, &e), PROFD_OK);
    cr_assert_eq(strlen(p.items[0].value), LIMIT_QUERY_BYTES - 4);
    strcpy(many, "/?");
    for (int i = 0; i < 64; i++) {
        strcat(many, i ? "&a=1" : "a=1");
    }
    cr_assert_eq(params_parse(many, &p, &e), PROFD_OK);
    cr_assert_eq(p.count, 64);
    strcat(many, "&a=1");
    cr_assert_eq(params_parse(many, &p, &e), PROFD_BAD_QUERY);
}

Test(query_params, unknown_and_doubled_names)
{
    static const char *const ALLOWED[] = {"since", "match", "label.*", NULL};
    struct params p;
    struct profd_error e;
    cr_assert_eq(params_parse("/?since=1&match=a&match=b&label.x=1&label.y=2&label.x=3", &p, &e), PROFD_OK);
    cr_assert_eq(params_check(&p, ALLOWED, NULL, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(params_parse("/?sicne=1", &p, &e), PROFD_OK);
    cr_assert_eq(params_check(&p, ALLOWED, NULL, &e), PROFD_BAD_QUERY);
    cr_assert_str_eq(e.sentence, "unknown parameter 'sicne'");
    cr_assert_eq(params_parse("/?since=1&since=1", &p, &e), PROFD_OK);
    cr_assert_eq(params_check(&p, ALLOWED, NULL, &e), PROFD_BAD_QUERY);
    cr_assert_not_null(strstr(e.sentence, "twice"));
    cr_assert_eq(params_parse("/?label.=1", &p, &e), PROFD_OK);
    cr_assert_eq(params_check(&p, ALLOWED, NULL, &e), PROFD_BAD_QUERY);
}

Test(query_when, understands)
{
    static const struct {
        const char *text;
        int64_t expected;
    } CASES[] = {
        {"now", NOW},
        {"now-1h", NOW - INT64_C(3600000000000)},
        {"-30m", NOW - INT64_C(1800000000000)},
        {"-7d", NOW - INT64_C(604800000000000)},
        {"now-1w", NOW - INT64_C(604800000000000)},
        {"now-0s", NOW},
        {"1795276800", NOW},
        {"1795276800000", NOW},
        {"99999999999", INT64_MAX}, /* replaced below: too large */
        {"2026-11-21T16:00:00Z", NOW},
        {"2026-11-21t17:30:00+01:30", NOW},
        {"2026-11-21T11:00:00-05:00", NOW},
        {"2026-11-21T16:00:00.25z", NOW + 250000000},
        {"2026-11-21T16:00:00.000000001Z", NOW + 1},
        {"2000-02-29T00:00:00Z", INT64_C(951782400) * 1000000000},
        {"1970-01-01T00:00:01Z", 1000000000},
        {"2000-02-29", INT64_C(951782400) * 1000000000},
    };
    struct profd_error e;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        int64_t out = 0;
        enum profd_status status = when_parse("since", CASES[i].text, NOW, &out, &e);
        if (CASES[i].expected == INT64_MAX) {
            cr_assert_eq(status, PROFD_BAD_QUERY, "year 5138 is beyond 64 bits of nanoseconds");
            continue;
        }
        cr_assert_eq(status, PROFD_OK, "%s: %s", CASES[i].text, e.sentence);
        cr_assert_eq(out, CASES[i].expected, "%s: %lld", CASES[i].text, (long long)out);
    }
}

Test(query_when, refuses)
{
    static const char *const CASES[] = {
        "",
        "yesterday",
        "now-",
        "now-1",
        "now-1y",
        "now+1h",
        "-",
        "1e9",
        "0",
        "now-99999d",
        "--1h",
        "1795276800 ",
        "2026-11-21T",
        "2026-11-21T16:00:00",
        "2026-11-2",
        "2026-02-29",
        "2026-11-21Z",
        "2026-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-11-31T00:00:00Z",
        "2026-11-21T24:00:00Z",
        "2026-11-21T16:60:00Z",
        "2026-11-21T16:00:60Z",
        "2026-11-21T16:00:00.Z",
        "2026-11-21T16:00:00.1234567890Z",
        "2026-11-21T16:00:00+0100",
        "2026-11-21T16:00:00+24:00",
        "9999-12-31T23:59:59Z",
        "1970-01-01T00:00:00Z",
        "99999999999999999999999",
        "now-9999999999999999999s",
    };
    struct profd_error e;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        int64_t out = 77;
        cr_assert_eq(when_parse("since", CASES[i], NOW, &out, &e), PROFD_BAD_QUERY, "%s", CASES[i]);
        cr_assert_eq(out, 77, "results stay untouched");
        cr_assert_not_null(strstr(e.sentence, CASES[i]), "%s", e.sentence);
        cr_assert_not_null(strstr(e.sentence, "from 1970 to 2262"), "9999 is after 1970, too: %s", e.sentence);
    }
}

static enum profd_status options(const char *target, bool http, struct options *o, struct profd_error *e)
{
    static struct params p;
    static struct arena *a;
    struct store_scope scope = {.all = true};
    a = a != NULL ? a : arena_new(0);
    cr_assert_eq(params_parse(target, &p, e), PROFD_OK, "%s", e->sentence);
    return options_parse(&p, &scope, http, NOW, false, a, o, e);
}

Test(query_options, defaults_and_values)
{
    struct options o;
    struct profd_error e;
    cr_assert_eq(options("/", true, &o, &e), PROFD_OK);
    cr_assert_eq(o.show.limit, LIMIT_HTTP_ROWS);
    cr_assert_str_eq(o.format->name, "json");
    cr_assert_eq(o.scope, OPTIONS_SCOPE_DEFAULT);
    cr_assert_eq(options("/", false, &o, &e), PROFD_OK);
    cr_assert_eq(o.show.limit, 0);
    cr_assert(options("/?limit=7", false, &o, &e) == PROFD_OK && o.show.rows == LIMIT_REPORT_ROWS,
              "rows go with a limit");
    cr_assert(options("/", false, &o, &e) == PROFD_OK && o.show.limit == 0 && o.show.rows == 0);
    cr_assert_eq(options("/?limit=0", true, &o, &e), PROFD_OK);
    cr_assert_eq(o.show.rows, 0);
    cr_assert_eq(o.show.limit, 0, "0 is asked for: all");
    cr_assert_eq(
        options("/?since=now-1h&until=now&scope=everywhere&static=1&sort=calls&view=flat&format=text&focus=f&uid=7",
                true, &o, &e),
        PROFD_OK, "%s", e.sentence);
    cr_assert_eq(o.since, NOW - INT64_C(3600000000000));
    cr_assert_eq(o.scope, OPTIONS_SCOPE_EVERYWHERE);
    cr_assert(o.static_arcs && !o.visible.all && o.visible.uid == 7);
    cr_assert_eq(o.show.sort, RENDER_SORT_CALLS);
    cr_assert_eq(o.show.view, RENDER_VIEW_FLAT);
    static const char *const SWITCHES[] = {"0", "1", "no", "yes", "false", "true"}; /* off, on, off, … */
    for (unsigned i = 0; i < sizeof SWITCHES / sizeof *SWITCHES; i++) {
        char target[32];
        snprintf(target, sizeof target, "/?static=%s", SWITCHES[i]);
        cr_assert_eq(options(target, true, &o, &e), PROFD_OK, "%s: %s", target, e.sentence);
        cr_assert_eq(o.static_arcs, i % 2, "%s", target);
    }
    cr_assert_eq(options("/?view=flat", true, &o, &e), PROFD_OK);
    cr_assert_eq(o.show.sort, RENDER_SORT_SELF, "the flat profile is cut by its own order");
    cr_assert_eq(options("/?view=flat&sort=index", true, &o, &e), PROFD_OK);
    cr_assert_eq(o.show.sort, RENDER_SORT_INDEX);
    cr_assert_eq(options("/", true, &o, &e), PROFD_OK);
    cr_assert_eq(o.show.sort, RENDER_SORT_INDEX);
    cr_assert_eq(options("/?mode=compat&geometry=2", true, &o, &e), PROFD_OK);
    cr_assert_str_eq(o.format->name, "gprof");
    cr_assert_eq(o.geometry, 2);
}

Test(query_options, compat_is_the_rule_where_the_path_says_so)
{
    static const struct {
        const char *target;
        bool compat;
        const char *format; /* NULL: refused */
    } CASES[] = {
        {"/", false, "json"},
        {"/", true, "gprof"},
        {"/?geometry=2", true, "gprof"},
        {"/?geometry=2", false, NULL},
        {"/?mode=true", true, "json"},
        {"/?format=text", true, "text"},
        {"/?static=1", true, NULL},
        {"/?mode=compat", false, "gprof"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct params p;
        struct options o;
        struct profd_error e;
        struct store_scope scope = {.all = true};
        struct arena *a = arena_new(0);
        cr_assert_eq(params_parse(CASES[i].target, &p, &e), PROFD_OK);
        enum profd_status status = options_parse(&p, &scope, true, NOW, CASES[i].compat, a, &o, &e);
        cr_assert_eq(status == PROFD_OK, CASES[i].format != NULL, "%s %d", CASES[i].target, CASES[i].compat);
        cr_assert(status != PROFD_OK || strcmp(o.format->name, CASES[i].format) == 0, "%s %d: %s", CASES[i].target,
                  CASES[i].compat, o.format->name);
        arena_free(a);
    }
}

Test(query_options, matchers)
{
    struct options o;
    struct profd_error e;
    cr_assert_eq(options("/?match=host=%22db%5C%221%5C%5C%22&match=service!=%22%22&label.version=1.2", true, &o, &e),
                 PROFD_OK, "%s", e.sentence);
    cr_assert_eq(o.matcher_count, 3);
    cr_assert_str_eq(o.matchers[0].name, "host");
    cr_assert_str_eq(o.matchers[0].value, "db\"1\\");
    cr_assert_eq(o.matchers[1].match, STORE_MATCH_NOT_EQUAL);
    cr_assert_str_eq(o.matchers[1].value, "");
    cr_assert_str_eq(o.matchers[2].name, "version");
    cr_assert_str_eq(o.matchers[2].value, "1.2");
    cr_assert_str_eq(o.match, "host=\"db\\\"1\\\\\", service!=\"\", version=\"1.2\"", "as they were asked, %s",
                     o.match);
}

/* A backslash before a quote or another one is the string's, any other the pattern's. */
Test(query_options, patterns)
{
    static const char *const CASES[][2] = {{"a.*", "a.*"},   {"a%5C.b", "a\\.b"},      {"a%5C%5C.b", "a\\.b"},
                                           {"%5C%22", "\""}, {"%5C%5C%5C%5C", "\\\\"}, {"%C3%A4+", "\xc3\xa4+"},
                                           {"", ""}};
    for (size_t i = 0; i < 2 * (sizeof CASES / sizeof *CASES); i++) {
        struct options o;
        struct profd_error e;
        char target[100];
        snprintf(target, sizeof target, "/?match=host%c~%%22%s%%22", i % 2 == 0 ? '=' : '!', CASES[i / 2][0]);
        cr_assert_eq(options(target, true, &o, &e), PROFD_OK, "%s: %s", target, e.sentence);
        cr_assert(o.matcher_count == 1 && o.matchers[0].match == (i % 2 == 0 ? STORE_MATCH_LIKE : STORE_MATCH_UNLIKE));
        cr_assert_str_eq(o.matchers[0].value, CASES[i / 2][1]);
        cr_assert_not_null(o.matchers[0].pattern);
    }
}

Test(query_options, refusals_name_the_value)
{
    static const char *const CASES[][2] = {
        {"/?since=now&until=now-1h", "before"},
        {"/?since=tomorrow", "tomorrow"},
        {"/?scope=fleet", "program, build, everywhere"},
        {"/?sort=name", "sort=name"},
        {"/?view=tree", "both, flat, graph"},
        {"/?limit=-1", "limit=-1"},
        {"/?limit=1x", "1x"},
        {"/?limit=", "limit="},
        {"/?limit=99999999999999999999", "limit="},
        {"/?static=2", "static=2"},
        {"/?static=maybe", "0, 1, no, yes, false, true"},
        {"/?format=pdf", "json, text, gprof"},
        {"/?mode=fast", "true, compat"},
        {"/?mode=compat&format=json", "mode=compat"},
        {"/?mode=true&format=gprof", "compat mode"},
        {"/?format=gprof&focus=f", "focus="},
        {"/?format=gprof&sort=self", "sort="},
        {"/?format=gprof&limit=5", "limit="},
        {"/?names=tiny", "full, short"},
        {"/?format=gprof&static=1", "static="},
        {"/?geometry=1", "geometry="},
        {"/?format=gprof&geometry=0", "geometry=0"},
        {"/?focus=", "focus="},
        {"/?match=host=~%22a(%22", "offset 2"},
        {"/?match=host!~%22*a%22", "\"*a\" is wrong at offset 0"},
        {"/?match=host=~a", "double quotes"},
        {"/?match=host~%22a%22", "neither"},
        {"/?match=host=~%22(?C1)%5CC%22", "\\C is disabled"},
        {"/?match=host=~%22a%5C", "double quotes"},
        {"/?match=host", "neither"},
        {"/?match=%22a%22", "label name"},
        {"/?match=1a=%22b%22", "label name"},
        {"/?match=host=db", "double quotes"},
        {"/?match=host=%22db", "double quotes"},
        {"/?match=host=%22db%22x", "double quotes"},
        {"/?match=host=%22a%5Cn%22", "double quotes"},
        {"/?label.a-b=1", "label.a-b"},
        {"/?uid=x", "uid=x"},
        {"/?uid=4294967296", "uid=4294967296"},
    };
    struct options o;
    struct profd_error e;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        cr_assert_eq(options(CASES[i][0], true, &o, &e), PROFD_BAD_QUERY, "%s", CASES[i][0]);
        cr_assert_not_null(strstr(e.sentence, CASES[i][1]), "%s: %s", CASES[i][0], e.sentence);
    }
    char many[1024] = "/?label.a0=1";
    for (int i = 1; i < 17; i++) {
        snprintf(many + strlen(many), sizeof many - strlen(many), "&label.a%d=1", i);
    }
    cr_assert_eq(options(many, true, &o, &e), PROFD_BAD_QUERY);
    cr_assert_not_null(strstr(e.sentence, "16"));
}

Test(query_options, uid_of_somebody_else_is_forbidden)
{
    struct params p;
    struct options o;
    struct profd_error e;
    struct store_scope scope = {.uid = 1000};
    struct arena *a = arena_new(0);
    params_parse("/?uid=1001", &p, &e);
    cr_assert_eq(options_parse(&p, &scope, true, NOW, false, a, &o, &e), PROFD_FORBIDDEN);
    cr_assert_not_null(strstr(e.sentence, "1001"));
    params_parse("/?uid=1000", &p, &e);
    cr_assert_eq(options_parse(&p, &scope, true, NOW, false, a, &o, &e), PROFD_OK);
    arena_free(a);
}

/* Different questions never share a canonical text. */
Test(query_options, canonical_text_tells_questions_apart)
{
    static const char *const TARGETS[] = {
        "/",
        "/?limit=5",
        "/?names=short",
        "/?since=5",
        "/?until=5",
        "/?scope=build",
        "/?static=1",
        "/?focus=a",
        "/?sort=self",
        "/?view=flat",
        "/?empty=error",
        "/?format=text",
        "/?format=gprof",
        "/?format=gprof&geometry=1",
        "/?uid=0",
        "/?uid=1",
        "/?label.a=b",
        "/?label.a=c",
        "/?match=a!=%22b%22",
        "/?match=a=~%22b%22",
        "/?match=a!~%22b%22",
        "/?label.a=b&label.c=d",
        "/?focus=a%20b",
        "/?label.a=1%200%201%20b",
    };
    enum { N = sizeof TARGETS / sizeof *TARGETS };
    char tags[N][ETAG_SIZE];
    struct options o;
    struct params p;
    struct profd_error e;
    for (int i = 0; i < N; i++) {
        struct buffer b;
        buffer_init(&b, 10000);
        cr_assert_eq(options(TARGETS[i], true, &o, &e), PROFD_OK, "%s", e.sentence);
        cr_assert_eq(params_parse(TARGETS[i], &p, &e), PROFD_OK);
        params_add_canonical(&p, NULL, &b);
        etag_make(b.data, b.size, &(struct store_epoch){1, 2}, tags[i]);
        buffer_done(&b);
        for (int j = 0; j < i; j++) {
            cr_assert_str_neq(tags[i], tags[j], "%s and %s", TARGETS[i], TARGETS[j]);
        }
    }
}

/* The order of parameters is none of the question; that of repeated ones is kept. */
Test(query_options, canonical_text_is_sorted)
{
    static const char *const SAME[][2] = {{"/a?since=5&limit=3&sort=self", "/a?sort=self&limit=3&since=5"},
                                          {"/%61?limit=5", "/a?l%69mit=5"}};
    static const char *const OTHER[][2] = {{"/a?by=x&by=y", "/a?by=y&by=x"}, {"/a/b", "/a%20b"}, {"/a?b=c", "/b?a=c"}};
    struct params p;
    struct profd_error e;
    for (int k = 0; k < 5; k++) {
        const char *const *pair = k < 2 ? SAME[k] : OTHER[k - 2];
        struct buffer b[2];
        for (int i = 0; i < 2; i++) {
            buffer_init(&b[i], 10000);
            cr_assert_eq(params_parse(pair[i], &p, &e), PROFD_OK, "%s", e.sentence);
            params_add_canonical(&p, NULL, &b[i]);
        }
        bool same = b[0].size == b[1].size && memcmp(b[0].data, b[1].data, b[0].size) == 0;
        cr_assert_eq(same, k < 2, "%s and %s", pair[0], pair[1]);
        buffer_done(&b[0]);
        buffer_done(&b[1]);
    }
}

/* A tag of each (number, salt, question), all different, and of one length whatever the number. */
Test(query_etag, follows_number_salt_and_question)
{
    static const struct store_epoch epochs[] = {{1, 1}, {2, 1}, {1, 2}, {UINT64_MAX, 1}, {1, UINT64_MAX}, {0, 0}};
    enum { N = sizeof epochs / sizeof *epochs };
    char tags[2 * N][ETAG_SIZE], again[ETAG_SIZE];
    for (size_t i = 0; i < 2 * N; i++) {
        etag_make(i < N ? "abc" : "abd", 3, &epochs[i % N], tags[i]);
        etag_make(i < N ? "abc" : "abd", 3, &epochs[i % N], again);
        cr_assert_str_eq(tags[i], again);
        cr_assert_eq(strlen(tags[i]), 34u);
        cr_assert_eq(strspn(tags[i] + 1, "0123456789abcdef"), 32u);
        for (size_t j = 0; j < i; j++) {
            cr_assert_str_neq(tags[i], tags[j]);
        }
    }
}

Test(query_etag, form_and_comparison)
{
    char tag[ETAG_SIZE], other[ETAG_SIZE], field[300];
    etag_make("abc", 3, &(struct store_epoch){42, 7}, tag);
    etag_make("abc", 3, &(struct store_epoch){43, 7}, other);
    cr_assert(etag_match(tag, tag));
    cr_assert(etag_match("*", tag));
    cr_assert(etag_match(" * ", tag));
    snprintf(field, sizeof field, "\"x\", W/%s ,\"y\"", tag);
    cr_assert(etag_match(field, tag));
    cr_assert(!etag_match("", tag));
    cr_assert(!etag_match(other, tag));
    snprintf(field, sizeof field, "%.32s", tag + 1);
    cr_assert(!etag_match(field, tag), "no quotes");
    snprintf(field, sizeof field, "%.33s", tag);
    cr_assert(!etag_match(field, tag), "one quote");
    cr_assert(!etag_match("\"x\" \"", tag));
    snprintf(field, sizeof field, "w/%s", tag);
    cr_assert(!etag_match(field, tag));
    cr_assert(!etag_match("*x", tag));
}

Test(query_set, numbers_are_by_arrival)
{
    struct arena *a = arena_new(0);
    struct set s;
    bool added;
    set_init(&s, a);
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 10000; i++) {
            cr_assert_eq(set_add(&s, &i, sizeof i, &added), i);
            cr_assert_eq(added, round == 0);
        }
    }
    set_add(&s, "a", 1, &added);
    cr_assert(added);
    set_add(&s, "a\0", 2, &added);
    cr_assert(added, "length is part of the key");
    arena_free(a);
}
