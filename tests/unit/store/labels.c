/* Label patterns match whole values within their limits; a bad pattern is refused with a sentence. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "store/labels.h"

static const char LABELS[] = "host\0db1.example\0service\0w\303\244b\0zone\0";

static bool like(struct arena *a, const char *name, const char *pattern, enum store_match match)
{
    struct store_matcher m = {.name = name, .value = pattern, .match = match};
    struct profd_error e = {""};
    cr_assert_eq(store_pattern_compile(a, pattern, &m.pattern, &e), PROFD_OK, "%s", e.sentence);
    bool matched = labels_match(LABELS, sizeof LABELS, &m, 1);
    struct store_filter filter = {.matcher_count = 1, .matchers = &m};
    cr_assert_eq(store_pattern_judge(&filter, &e), PROFD_OK, "%s", e.sentence);
    return matched;
}

Test(labels, patterns_match_whole_values)
{
    static const struct {
        const char *name, *pattern;
        bool matches;
    } CASES[] = {
        {"host", "db.*", true},
        {"host", "db", false},
        {"host", "example", false},
        {"host", "a|db1.example", true},
        {"host", "db1|x", false},
        {"host", ".*\\.example$", true},
        {"service", "w.b", true},
        {"service", "w..b", false},
        {"service", "w\303\244b", true},
        {"service", "(?i)W.B", true},
        {"nobody", "", true},
        {"nobody", ".+", false},
        {"zone", "", true},
        {"zone", ".*", true},
        {"host", "(?<d>d)b\\d\\.[a-z]+", true},
    };
    struct arena *a = arena_new(0);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        cr_assert_eq(like(a, CASES[i].name, CASES[i].pattern, STORE_MATCH_LIKE), CASES[i].matches, "%s",
                     CASES[i].pattern);
        cr_assert_eq(like(a, CASES[i].name, CASES[i].pattern, STORE_MATCH_UNLIKE), !CASES[i].matches, "%s",
                     CASES[i].pattern);
    }
    arena_free(a);
}

static void fill(char *labels, size_t n, char c)
{
    memcpy(labels, "v", 2);
    memset(labels + 2, c, n);
    labels[2 + n] = '\0';
}

/* What cannot be decided is said, and ends soon; what is merely long is decided. */
Test(labels, a_pattern_keeps_its_limits)
{
    static const char *const ENDLESS[] = {"(a+)+[bc]", "(a|aa)*[bc]", "((a*)*)*[bc]", "(.*)(.*)(.*)(.*)(.*)[bc]",
                                          "(?:a?){40}a{1010}[bc]"};
    static const char *const LONG[] = {"(a|b)*", ".*a.*", "((a)|(b)|(c))+", "a{1024}", "[^b]*"};
    static char labels[LIMIT_LABEL_VALUE + 4];
    fill(labels, LIMIT_LABEL_VALUE, 'a');
    struct profd_error e = {""};
    for (size_t i = 0; i < sizeof ENDLESS / sizeof *ENDLESS; i++) {
        struct arena *a = arena_new((size_t)32 << 20);
        struct store_matcher m = {
            .name = "v", .value = ENDLESS[i], .match = i % 2 == 0 ? STORE_MATCH_LIKE : STORE_MATCH_UNLIKE};
        cr_assert_eq(store_pattern_compile(a, m.value, &m.pattern, &e), PROFD_OK, "%s", e.sentence);
        for (int again = 0; again < 100000; again++) { /* after the first failure it costs nothing */
            labels_match(labels, sizeof labels - 1, &m, 1);
        }
        struct store_filter filter = {.matcher_count = 1, .matchers = &m};
        cr_assert_eq(store_pattern_judge(&filter, &e), PROFD_LIMIT, "%s", ENDLESS[i]);
        cr_assert(strstr(e.sentence, ENDLESS[i]) && strstr(e.sentence, "label v"), "%s", e.sentence);
        arena_free(a);
    }
    for (size_t i = 0; i < sizeof LONG / sizeof *LONG; i++) {
        struct arena *a = arena_new((size_t)32 << 20);
        struct store_matcher m = {.name = "v", .value = LONG[i], .match = STORE_MATCH_LIKE};
        struct store_filter filter = {.matcher_count = 1, .matchers = &m};
        cr_assert_eq(store_pattern_compile(a, m.value, &m.pattern, &e), PROFD_OK, "%s", e.sentence);
        for (int again = 0; again < 300; again++) {
            cr_assert(labels_match(labels, sizeof labels - 1, &m, 1), "%s", LONG[i]);
        }
        cr_assert_eq(store_pattern_judge(&filter, &e), PROFD_OK, "%s", LONG[i]);
        arena_free(a);
    }
}

Test(labels, a_bad_pattern_is_refused_in_a_sentence)
{
    static const char *const CASES[][2] = {{"a(", "offset 2: missing closing parenthesis"},
                                           {"[", "offset 1"},
                                           {"a**+*", "offset"},
                                           {"((((a{1000}){1000}){1000}){1000})", "too large"},
                                           {"\\C", "offset"}};
    static char pattern[LIMIT_PATTERN + 2];
    struct profd_error e = {""};
    struct store_pattern *p = NULL;
    struct arena *a = arena_new(0);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        cr_assert_eq(store_pattern_compile(a, CASES[i][0], &p, &e), PROFD_BAD_QUERY, "%s", CASES[i][0]);
        cr_assert(strstr(e.sentence, CASES[i][1]) && strstr(e.sentence, CASES[i][0]), "%s", e.sentence);
    }
    memset(pattern, 'a', LIMIT_PATTERN + 1);
    cr_assert_eq(store_pattern_compile(a, pattern, &p, &e), PROFD_BAD_QUERY);
    cr_assert(strstr(e.sentence, "1025") && strstr(e.sentence, "1024"), "%s", e.sentence);
    pattern[LIMIT_PATTERN] = '\0';
    cr_assert_eq(store_pattern_compile(a, pattern, &p, &e), PROFD_OK);
    arena_free(a);
    a = arena_new(600);
    cr_assert_eq(store_pattern_compile(a, "abc", &p, &e), PROFD_NO_MEMORY);
    arena_free(a);
}
