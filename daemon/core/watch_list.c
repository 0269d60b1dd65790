#include "core/watch_list.h"

#include <string.h>

#include "proto/noun.h"

bool watch_list_means(const char *wanted, const char *name)
{
    const size_t n = strlen(wanted);
    return strncmp(name, wanted, n) == 0 && (name[n] == '\0' || name[n] == '(');
}

/* Blanks at both ends go. */
static void trim(const char **text, size_t *n)
{
    while (*n > 0 && (*text)[0] == ' ') {
        (*text)++;
        (*n)--;
    }
    while (*n > 0 && (*text)[*n - 1] == ' ') {
        (*n)--;
    }
}

/* Takes the next item of a list off its beginning; its copy. */
static const char *take_item(struct arena *a, const char **text, size_t *n)
{
    const char *item = *text;
    size_t end = noun_list_end(item, *n), size = end;
    const size_t whole = end < *n ? end + 1 : end;
    trim(&item, &size);
    *text += whole;
    *n -= whole;
    return arena_copy(a, item, size);
}

static enum profd_status parse_labels(const char *text, size_t n, struct arena *a, struct watch *w,
                                      struct profd_error *e)
{
    w->name = arena_copy(a, text, n);
    while (n > 0) {
        const char *label = take_item(a, &text, &n);
        const size_t end = strcspn(label, "=");
        FAIL_IF(end == 0 || label[end] != '=' || label[end + 1] == '\0' || strpbrk(label, "!~<>\"'") != NULL, e,
                PROFD_CONFIG, "watch \"%s\": \"%s\" is not NAME=VALUE", w->name, label);
        FAIL_IF(w->label_count == WATCH_LIST_LABELS, e, PROFD_CONFIG, "watch \"%s\" has more than %u labels", w->name,
                WATCH_LIST_LABELS);
        w->labels[w->label_count++] = label;
    }
    return PROFD_OK;
}

static enum profd_status parse_functions(const char *text, size_t n, struct arena *a, struct watch *w,
                                         struct profd_error *e)
{
    while (n > 0) {
        const char *function = take_item(a, &text, &n);
        FAIL_IF(function[0] == '\0' || strlen(function) > WATCH_LIST_FUNCTION_BYTES, e, PROFD_CONFIG,
                "watch \"%s\": a function has between 1 and %u bytes", w->name, WATCH_LIST_FUNCTION_BYTES);
        for (size_t i = 0; i < w->function_count; i++) {
            FAIL_IF(strcmp(w->functions[i], function) == 0, e, PROFD_CONFIG, "watch \"%s\" names %s twice", w->name,
                    function);
        }
        FAIL_IF(w->function_count == WATCH_LIST_FUNCTIONS, e, PROFD_CONFIG, "watch \"%s\" has more than %u functions",
                w->name, WATCH_LIST_FUNCTIONS);
        w->functions[w->function_count++] = function;
    }
    return PROFD_OK;
}

enum profd_status watch_list_parse(const char *text, struct arena *a, struct watch_list *out, struct profd_error *e)
{
    ARENA_BOUNDARY(a, profd_no_memory(e));
    struct watch_list list = {.watches = ARENA_ARRAY(a, WATCH_LIST_MOST + 1, struct watch)};
    for (const char *at = text; at != NULL && *at != '\0';) {
        const size_t whole = strcspn(at, "\n");
        const char *line = at;
        size_t n = whole;
        trim(&line, &n);
        at += whole + (at[whole] == '\n');
        const char *colon = memchr(line, ':', n);
        const size_t left = colon != NULL ? (size_t)(colon - line) : 0;
        struct watch *w = &list.watches[list.count];
        FAIL_IF(left == 0 || left + 1 == n || n > WATCH_LIST_BYTES, e, PROFD_CONFIG,
                "watch is \"%.*s\", not NAME=VALUE[,NAME=VALUE]:FUNCTION[,FUNCTION] of at most %u bytes",
                (int)(n < 100 ? n : 100), line, WATCH_LIST_BYTES);
        FAIL_IF(list.count == WATCH_LIST_MOST, e, PROFD_CONFIG, "watch occurs more than %u times", WATCH_LIST_MOST);
        TRY(parse_labels(line, left, a, w, e));
        TRY(parse_functions(colon + 1, n - left - 1, a, w, e));
        for (size_t i = 0; i < list.count; i++) {
            FAIL_IF(strcmp(list.watches[i].name, w->name) == 0, e, PROFD_CONFIG,
                    "watch \"%s\" occurs twice; name all functions in one", w->name);
        }
        list.count++;
    }
    *out = list;
    return PROFD_OK;
}
