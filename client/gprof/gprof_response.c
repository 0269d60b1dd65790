#include "gprof/gprof_response.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "gprof/gprof_file.h"

#define FILES_MAX 2000

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Takes the quotes out of the word at *p, in place; *p moves behind it. */
static char *word_take(char **p)
{
    char *word = *p, *to = word, *from = word;
    char quote = '\0';
    for (; *from != '\0'; from++) {
        if (*from == '\\') {
            if (from[1] != '\0') {
                *to++ = *++from;
            }
        } else if (quote != '\0' && *from == quote) {
            quote = '\0';
        } else if (quote == '\0' && (*from == '\'' || *from == '"')) {
            quote = *from;
        } else if (quote == '\0' && is_blank(*from)) {
            from++;
            break;
        } else {
            *to++ = *from;
        }
    }
    /* Only now: to may stand where from was. */
    *p = from;
    *to = '\0';
    return word;
}

/* The words of text, which stays their owner. *count of them, or NULL. */
static char **words_split(char *text, int *count)
{
    size_t most = strlen(text) / 2 + 2;
    char **list = calloc(most, sizeof *list);
    int n = 0;
    char *p = text;
    while (list != NULL) {
        while (is_blank(*p)) {
            p++;
        }
        if (*p == '\0') {
            break;
        }
        list[n++] = word_take(&p);
    }
    *count = n;
    return list;
}

/* Puts n words into the place of word at. */
static bool words_put(struct gprof_words *w, int at, char *const *words, int n)
{
    char **list = calloc((size_t)w->count + (size_t)n + 1, sizeof *list);
    if (list == NULL) {
        return false;
    }
    memcpy(list, w->list, (size_t)at * sizeof *list);
    if (n > 0) {
        memcpy(list + at, words, (size_t)n * sizeof *list);
    }
    memcpy(list + at + n, w->list + at + 1, (size_t)(w->count - at - 1) * sizeof *list);
    free(w->list);
    w->list = list;
    w->count += n - 1;
    return true;
}

enum taken { LEFT_ALONE, REPLACED, FAILED };

/* Replaces word at, "@FILE". */
static enum taken word_expand(const char *program, struct gprof_words *w, int at)
{
    const char *path = w->list[at] + 1;
    struct stat st;
    if (stat(path, &st) != 0) {
        return LEFT_ALONE;
    }
    if (S_ISDIR(st.st_mode)) {
        (void)fprintf(stderr, "%s: error: @-file refers to a directory\n", program);
        return FAILED;
    }
    if (w->text_count == FILES_MAX) {
        (void)fprintf(stderr, "%s: error: too many @-files encountered\n", program);
        return FAILED;
    }
    struct gprof_file f;
    if (!gprof_file_read(path, &f)) {
        return LEFT_ALONE;
    }
    char *text = (char *)f.bytes; /* a NUL stands behind */
    w->texts[w->text_count++] = text;
    int n = 0;
    char **words = words_split(text, &n);
    bool good = words != NULL && words_put(w, at, words, n);
    free(words);
    if (!good) {
        (void)fprintf(stderr, "%s: out of memory for the words of %s\n", program, path);
    }
    return good ? REPLACED : FAILED;
}

bool gprof_words_expand(const char *program, int argc, char **argv, struct gprof_words *out)
{
    struct gprof_words w = {.list = calloc((size_t)argc + 1, sizeof(char *)), .count = argc};
    w.texts = calloc(FILES_MAX, sizeof *w.texts);
    if (w.list == NULL || w.texts == NULL) {
        (void)fprintf(stderr, "%s: out of memory\n", program);
        gprof_words_done(&w);
        return false;
    }
    memcpy(w.list, argv, (size_t)argc * sizeof *w.list);
    for (int i = 1; i < w.count;) {
        enum taken taken = w.list[i][0] == '@' ? word_expand(program, &w, i) : LEFT_ALONE;
        if (taken == FAILED) {
            gprof_words_done(&w);
            return false;
        }
        i += taken == LEFT_ALONE;
    }
    *out = w;
    return true;
}

void gprof_words_done(struct gprof_words *w)
{
    for (int i = 0; i < w->text_count; i++) {
        free(w->texts[i]);
    }
    free(w->texts);
    free(w->list);
    *w = (struct gprof_words){0};
}
