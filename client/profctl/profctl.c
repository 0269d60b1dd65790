#include "profctl/profctl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profctl/profctl_https.h"
#include "profctl/profctl_progress.h"
#include "profctl/terminal.h"

#define NAME_SIZE 160

enum profd_status labels_add(const struct profctl_call *call, struct profd_upload *u, struct profd_error *e)
{
    for (size_t i = 0; i < call->given_count; i++) {
        if (strcmp(call->given[i].option->name, "label") != 0) {
            continue;
        }
        const char *text = call->given[i].value, *equals = strchr(text, '=');
        char name[NAME_SIZE];
        if (!equals || (size_t)(equals - text) >= sizeof name) {
            return profd_error_set(e, PROFD_USAGE, "%s: -l %s is not NAME=VALUE", call->verb->name, text);
        }
        (void)snprintf(name, sizeof name, "%.*s", (int)(equals - text), text);
        enum profd_status status = profd_upload_add_label(u, name, equals + 1, e);
        if (status != PROFD_OK) {
            return profd_error_wrap(e, PROFD_USAGE, "%s: -l %s", call->verb->name, text);
        }
    }
    return PROFD_OK;
}

enum profd_status labels_check(const struct profctl_call *call, struct profd_error *e)
{
    struct profd_upload *u;
    enum profd_status status = profd_upload_new(&u, e);
    if (status == PROFD_OK) {
        status = labels_add(call, u, e);
        profd_upload_free(u);
    }
    return status;
}

int profctl_alternative(const char *list, const char *word)
{
    size_t n = strlen(word);
    int index = 0;
    for (const char *at = list; *at; index++) {
        size_t size = strcspn(at, "|");
        if (size == n && memcmp(at, word, n) == 0) {
            return index;
        }
        at += size + (at[size] == '|');
    }
    return -1;
}

#define NEAREST_MOST 32 /* bytes of a word; longer ones are near to none */

/* The number of letters to insert, remove, replace or exchange with the adjacent one. */
static size_t distance_of(const char *a, const char *b)
{
    size_t rows[3][NEAREST_MOST + 1], n = strlen(b);
    for (size_t k = 0; k <= n; k++) {
        rows[0][k] = k;
    }
    for (size_t i = 1; i <= strlen(a); i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *second = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t k = 1; k <= n; k++) {
            size_t least = above[k - 1] + (a[i - 1] != b[k - 1]);
            least = above[k] + 1 < least ? above[k] + 1 : least;
            least = row[k - 1] + 1 < least ? row[k - 1] + 1 : least;
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1] && second[k - 2] + 1 < least) {
                least = second[k - 2] + 1;
            }
            row[k] = least;
        }
    }
    return rows[strlen(a) % 3][n];
}

void nearest_offer(struct nearest *n, const char *candidate)
{
    const size_t size = strlen(candidate);
    if (strlen(n->word) > NEAREST_MOST || size > NEAREST_MOST) {
        return;
    }
    const size_t distance = distance_of(n->word, candidate);
    if (distance <= (size < 6 ? 1 : size / 3) && (!n->best || distance < n->distance)) {
        n->best = candidate;
        n->distance = distance;
    }
}

const char *profctl_value(const struct profctl_call *call, const char *option)
{
    const char *value = NULL;
    for (size_t i = 0; i < call->given_count; i++) {
        if (strcmp(call->given[i].option->name, option) == 0) {
            value = call->given[i].value;
        }
    }
    return value;
}

enum profd_status profctl_duration(const struct profctl_call *call, const char *option, const char *otherwise,
                                   char out[24], struct profd_error *e)
{
    static const struct {
        char unit;
        unsigned seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    const char *given = profctl_value(call, option), *text = given ? given : otherwise;
    char *end = NULL;
    const unsigned long n = strtoul(text, &end, 10);
    for (size_t i = 0; i < COUNT(units); i++) {
        if (text[0] >= '0' && text[0] <= '9' && n > 0 && n <= 100000000 && end[0] == units[i].unit && end[1] == '\0') {
            (void)snprintf(out, 24, "%lu", n * units[i].seconds);
            return PROFD_OK;
        }
    }
    return profd_error_set(e, PROFD_USAGE, "%s: --%s is \"%s\", not a time such as 90s, 30m, 1h or 7d",
                           call->verb->name, option, text);
}

enum profd_status profctl_choose(const struct profctl_call *call, const char *option, size_t *out,
                                 struct profd_error *e)
{
    for (size_t i = call->given_count; i-- > 0;) {
        const struct profctl_given *g = &call->given[i];
        if (strcmp(g->option->name, option) != 0) {
            continue;
        }
        int index = profctl_alternative(g->option->argument, g->value);
        if (index < 0) {
            return profd_error_set(e, PROFD_USAGE, "%s: --%s must be one of %s, not \"%s\"", call->verb->name, option,
                                   g->option->argument, g->value);
        }
        *out = (size_t)index;
        return PROFD_OK;
    }
    *out = 0;
    return PROFD_OK;
}

enum profd_status profctl_choose_format(const struct profctl_call *call, size_t *out, struct profd_error *e)
{
    TRY(profctl_choose(call, "format", out, e));
    if (call->json) {
        *out = FORMAT_JSON;
    }
    return PROFD_OK;
}

void profctl_clean(const char *text, char *out, size_t size)
{
    struct terminal_filter f = {.one_line = true};
    char piece[TERMINAL_BOUND(1)];
    size_t written = 0;
    for (bool more = true; more; text++) {
        more = *text != '\0';
        size_t n = terminal_filter_run(&f, text, more, piece);
        if (written + n >= size) {
            break;
        }
        memcpy(out + written, piece, n);
        written += n;
    }
    out[written] = '\0';
}

void profctl_print(const char *text, size_t size)
{
    char clean[1024];
    profctl_clean(text, clean, size < sizeof clean ? size : sizeof clean);
    fputs(clean, stdout);
}

bool profctl_number(const char *text, unsigned long least, unsigned long most, unsigned long *out)
{
    char *end = NULL;
    errno = 0;
    const unsigned long n = strtoul(text, &end, 10);
    if (errno != 0 || *text < '0' || *text > '9' || *end != '\0' || n < least || n > most) {
        return false;
    }
    *out = n;
    return true;
}

void profctl_complain(const char *format, ...)
{
    char text[2048], clean[2048];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof text, format, list);
    va_end(list);
    profctl_clean(text, clean, sizeof clean);
    progress_clear();
    (void)fprintf(stderr, "profctl: %s\n", clean);
}

struct profd_options profctl_options(const struct profctl_call *call, unsigned answer_ms)
{
    return (struct profd_options){.server = call->server,
                                  .token_file = call->token_file ? call->token_file : secure_getenv("PROFD_TOKEN_FILE"),
                                  .name = "profctl " PROFD_VERSION,
                                  .connect_ms = 20000,
                                  .answer_ms = answer_ms,
                                  .http = https_ask,
                                  .http_context = (void *)(uintptr_t)call->ca_file};
}
