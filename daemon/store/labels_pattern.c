/* Regular expressions over label values. All memory belongs to the arena, so nothing is freed before the query ends. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

#include "proto/limits.h"
#include "store/labels.h"

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

/* The error message of PCRE2. */
static const char *pattern_words(int error, char *words, size_t size)
{
    return pcre2_get_error_message(error, (PCRE2_UCHAR *)words, size) < 0 ? "unknown error" : words;
}

static enum profd_status pattern_compile_code(pcre2_compile_context *context, struct store_pattern *p,
                                              struct profd_error *e)
{
    int error;
    char words[128];
    PCRE2_SIZE offset;
    p->code = pcre2_compile((PCRE2_SPTR)p->text, PCRE2_ZERO_TERMINATED,
                            PCRE2_UTF | PCRE2_DOTALL | PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_NEVER_BACKSLASH_C,
                            &error, &offset, context);
    if (p->code != NULL) {
        return PROFD_OK;
    }
    if (error == PCRE2_ERROR_NOMEMORY || error == PCRE2_ERROR_HEAP_FAILED) {
        return profd_no_memory(e);
    }
    return profd_error_set(e, PROFD_BAD_QUERY, "the regular expression \"%.200s\" is wrong at offset %zu: %s", p->text,
                           offset, pattern_words(error, words, sizeof words));
}

enum profd_status store_pattern_compile(struct arena *a, const char *text, struct store_pattern **out,
                                        struct profd_error *e)
{
    size_t n = strlen(text);
    if (n > LIMIT_PATTERN) {
        return profd_error_set(e, PROFD_BAD_QUERY, "a regular expression of %zu bytes, at most %u", n, LIMIT_PATTERN);
    }
    struct store_pattern *p = ARENA_NEW(a, struct store_pattern);
    pcre2_general_context *general = pcre2_general_context_create(pattern_take, pattern_give, a);
    pcre2_compile_context *context = general != NULL ? pcre2_compile_context_create(general) : NULL;
    if (p == NULL || context == NULL) {
        return profd_no_memory(e);
    }
    p->text = arena_copy(a, text, n);
    p->limits = pcre2_match_context_create(general);
    if (p->text == NULL || p->limits == NULL) {
        return profd_no_memory(e);
    }
    TRY(pattern_compile_code(context, p, e));
    p->data = pcre2_match_data_create(1, general);
    if (p->data == NULL) {
        return profd_no_memory(e);
    }
    pcre2_set_match_limit(p->limits, LIMIT_PATTERN_STEPS);
    pcre2_set_depth_limit(p->limits, LIMIT_PATTERN_DEPTH);
    pcre2_set_heap_limit(p->limits, LIMIT_PATTERN_KIB);
    *out = p;
    return PROFD_OK;
}

bool pattern_match(struct store_pattern *p, const char *value)
{
    if (p->failed != 0) {
        return false;
    }
    int result = pcre2_match(p->code, (PCRE2_SPTR)value, strlen(value), 0, 0, p->data, p->limits);
    if (result < 0 && result != PCRE2_ERROR_NOMATCH) {
        p->failed = result;
    }
    return result >= 0;
}

enum profd_status store_pattern_judge(const struct store_filter *filter, struct profd_error *e)
{
    char words[128];
    for (size_t i = 0; i < filter->matcher_count; i++) {
        const struct store_pattern *p = filter->matchers[i].pattern;
        if (p != NULL && p->failed != 0) {
            return profd_error_set(e, PROFD_LIMIT,
                                   "the regular expression \"%.200s\" cannot be applied to a value of label %s: %s",
                                   p->text, filter->matchers[i].name, pattern_words(p->failed, words, sizeof words));
        }
    }
    return PROFD_OK;
}
