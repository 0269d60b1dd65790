/* Labels of series, matchers, and regular expressions over their values. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "store/labels.h"

void labels_encode(const struct store_label *labels, size_t n, struct buffer *out)
{
    for (size_t i = 0; i < n; i++) {
        buffer_add(out, labels[i].name, strlen(labels[i].name) + 1);
        buffer_add(out, labels[i].value, strlen(labels[i].value) + 1);
    }
}

/* Returns the string at *text and advances *text past its NUL. NULL if there is no NUL before end. */
static const char *next_string(const char **text, const char *end)
{
    const char *start = *text;
    const char *nul = start < end ? memchr(start, 0, (size_t)(end - start)) : NULL;
    if (!nul) {
        return NULL;
    }
    *text = nul + 1;
    return start;
}

bool labels_next(const char **text, const char *end, struct store_label *pair)
{
    const char *name = next_string(text, end);
    const char *value = name ? next_string(text, end) : NULL;
    if (!value) {
        return false;
    }
    *pair = (struct store_label){.name = name, .value = value};
    return true;
}

/* --- Regular expressions over values: their memory belongs to the arena, and is freed with it --- */

struct store_pattern {
    const char *text;
    pcre2_code *code;
    pcre2_match_context *limits;
    pcre2_match_data *data;
    int failed; /* first error of PCRE2 other than a mismatch; 0: none */
};

static void *pattern_take(size_t size, void *arena)
{
    return arena_take(arena, size);
}

static void pattern_give(void *block, void *arena)
{
    (void)block;
    (void)arena;
}

/* Returns the message for an error of PCRE2. */
static const char *pattern_words(int error, char *words, size_t size)
{
    return pcre2_get_error_message(error, (PCRE2_UCHAR *)words, size) < 0 ? "unknown error" : words;
}

enum profd_status store_pattern_compile(struct arena *a, const char *text, struct store_pattern **out,
                                        struct profd_error *e)
{
    int error;
    char words[128];
    PCRE2_SIZE offset;
    const size_t n = strlen(text);
    FAIL_IF(n > LIMIT_PATTERN, e, PROFD_BAD_QUERY, "a regular expression of %zu bytes, at most %u", n, LIMIT_PATTERN);
    struct store_pattern *p = ARENA_NEW(a, struct store_pattern);
    pcre2_general_context *general = pcre2_general_context_create(pattern_take, pattern_give, a);
    pcre2_compile_context *context = general ? pcre2_compile_context_create(general) : NULL;
    TRY(p && context ? PROFD_OK : profd_no_memory(e));
    p->text = arena_copy(a, text, n);
    p->limits = pcre2_match_context_create(general);
    TRY(p->text && p->limits ? PROFD_OK : profd_no_memory(e));
    p->code = pcre2_compile((PCRE2_SPTR)p->text, PCRE2_ZERO_TERMINATED,
                            PCRE2_UTF | PCRE2_DOTALL | PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_NEVER_BACKSLASH_C,
                            &error, &offset, context);
    if (!p->code) {
        return error == PCRE2_ERROR_NOMEMORY || error == PCRE2_ERROR_HEAP_FAILED
                   ? profd_no_memory(e)
                   : profd_error_set(e, PROFD_BAD_QUERY, "the regular expression \"%.200s\" is wrong at offset %zu: %s",
                                     p->text, offset, pattern_words(error, words, sizeof words));
    }
    p->data = pcre2_match_data_create(1, general);
    TRY(p->data ? PROFD_OK : profd_no_memory(e));
    pcre2_set_match_limit(p->limits, LIMIT_PATTERN_STEPS);
    pcre2_set_depth_limit(p->limits, LIMIT_PATTERN_DEPTH);
    pcre2_set_heap_limit(p->limits, LIMIT_PATTERN_KIB);
    *out = p;
    return PROFD_OK;
}

enum profd_status store_pattern_judge(const struct store_filter *filter, struct profd_error *e)
{
    char words[128];
    for (size_t i = 0; i < filter->matcher_count; i++) {
        const struct store_pattern *p = filter->matchers[i].pattern;
        FAIL_IF(p && p->failed != 0, e, PROFD_LIMIT,
                "the regular expression \"%.200s\" cannot be applied to a value of label %s: %s", p->text,
                filter->matchers[i].name, pattern_words(p->failed, words, sizeof words));
    }
    return PROFD_OK;
}

/* --- Matchers --- */

/* The value that a matcher looks at. */
static const char *find_value(const char *text, size_t n, const struct store_matcher *m)
{
    const char *at = text, *instead = m->absent ? m->absent : "";
    struct store_label pair = {.name = ""};
    while (labels_next(&at, text + n, &pair)) {
        if (strcmp(pair.name, m->name) == 0) {
            return pair.value;
        }
        instead = m->instead && strcmp(pair.name, m->instead) == 0 ? pair.value : instead;
    }
    return instead;
}

bool labels_match(const char *text, size_t n, const struct store_matcher *matchers, size_t count)
{
    bool match = true;
    for (size_t i = 0; match && i < count; i++) {
        const struct store_matcher *m = &matchers[i];
        const char *value = find_value(text, n, m);
        const bool inverse = m->match == STORE_MATCH_NOT_EQUAL || m->match == STORE_MATCH_UNLIKE;
        if (m->match == STORE_MATCH_EQUAL || m->match == STORE_MATCH_NOT_EQUAL) {
            match = (strcmp(value, m->value) == 0) != inverse;
            continue;
        }
        struct store_pattern *p = m->pattern;
        const int result =
            p->failed ? p->failed : pcre2_match(p->code, (PCRE2_SPTR)value, strlen(value), 0, 0, p->data, p->limits);
        p->failed = result < 0 && result != PCRE2_ERROR_NOMATCH ? result : p->failed;
        match = (result >= 0) != inverse;
    }
    return match;
}

bool labels_match_host(const struct store_filter *filter, const char *name)
{
    struct store_matcher of_host[LIMIT_MATCHERS + 1];
    char text[sizeof "host" + LIMIT_LABEL_VALUE + 1] = "host";
    size_t count = 0, n = strlen(name);
    for (size_t i = 0; i < filter->matcher_count && count < LIMIT_MATCHERS; i++) {
        if (strcmp(filter->matchers[i].name, "host") == 0) {
            of_host[count++] = filter->matchers[i];
        }
    }
    if (n > LIMIT_LABEL_VALUE) {
        return true;
    }
    memcpy(text + sizeof "host", name, n + 1);
    return labels_match(text, sizeof "host" + n + 1, of_host, count);
}

bool labels_are_asked(const struct store_filter *filter, const char *name)
{
    bool asked = false;
    for (size_t i = 0; i < filter->matcher_count; i++) {
        asked |= strcmp(filter->matchers[i].name, name) == 0;
    }
    return asked;
}

size_t labels_add_host(const struct store_label *labels, size_t n, const char *host, struct store_label *out)
{
    size_t count = 0, at = 0;
    while (at < n && strcmp(labels[at].name, "host") < 0) {
        out[count++] = labels[at++];
    }
    out[count++] = (struct store_label){"host", host};
    while (at < n) {
        out[count++] = labels[at++];
    }
    return count;
}
