/* Labels of series, matchers, and regular expressions over their values. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "proto/sum.h"
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

static const char *find_value(const char *text, size_t n, const char *name)
{
    struct store_label pair;
    for (const char *p = text; labels_next(&p, text + n, &pair);) {
        if (strcmp(pair.name, name) == 0) {
            return pair.value;
        }
    }
    return "";
}

static bool satisfies(const struct store_matcher *m, const char *value)
{
    switch (m->match) {
    case STORE_MATCH_EQUAL:
        return strcmp(value, m->value) == 0;
    case STORE_MATCH_NOT_EQUAL:
        return strcmp(value, m->value) != 0;
    case STORE_MATCH_LIKE:
        return pattern_match(m->pattern, value);
    case STORE_MATCH_UNLIKE:
        return !pattern_match(m->pattern, value);
    }
    return false;
}

bool labels_match(const char *text, size_t n, const struct store_matcher *matchers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!satisfies(&matchers[i], find_value(text, n, matchers[i].name))) {
            return false;
        }
    }
    return true;
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

void label_tally_init(struct label_tally *t)
{
    hashmap_init(&t->pairs, 0);
}

void label_tally_done(struct label_tally *t)
{
    hashmap_clear(&t->pairs);
}

enum profd_status label_tally_add(struct label_tally *t, const char *text, size_t n, uint64_t uploads,
                                  struct profd_error *e)
{
    struct store_label pair;
    for (const char *p = text, *start = text; labels_next(&p, text + n, &pair); start = p) {
        size_t size = (size_t)(p - start);
        bool saturated = false;
        uint64_t *count = hashmap_find(&t->pairs, start, size);
        if (count) {
            sum_add(count, uploads, &saturated);
        } else if (!hashmap_put(&t->pairs, start, size, &uploads, sizeof uploads)) {
            return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the list of labels");
        }
    }
    return PROFD_OK;
}

struct tally_row {
    const char *key;
    uint64_t uploads;
};

static int compare_rows(const void *a, const void *b)
{
    const struct tally_row *x = a, *y = b;
    int names = strcmp(x->key, y->key);
    return names != 0 ? names : strcmp(x->key + strlen(x->key) + 1, y->key + strlen(y->key) + 1);
}

enum profd_status label_tally_each(const struct label_tally *t,
                                   bool (*each)(void *context, const struct label_row *row), void *context,
                                   struct profd_error *e)
{
    size_t n = 0, position = 0;
    struct tally_row *rows = calloc(t->pairs.count + 1, sizeof *rows);
    if (!rows) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the list of labels");
    }
    const void *key;
    for (const uint64_t *count; (count = hashmap_next(&t->pairs, &position, &key));) {
        rows[n++] = (struct tally_row){.key = key, .uploads = *count};
    }
    qsort(rows, n, sizeof *rows, compare_rows);
    for (size_t i = 0; i < n; i++) {
        struct label_row row = {
            .name = rows[i].key, .value = rows[i].key + strlen(rows[i].key) + 1, .uploads = rows[i].uploads};
        if (!each(context, &row)) {
            break;
        }
    }
    free(rows);
    return PROFD_OK;
}

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
