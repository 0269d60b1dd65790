#include "store/labels.h"

#include <stdlib.h>
#include <string.h>

#include "proto/sum.h"

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
