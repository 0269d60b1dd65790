#include "proto/status.h"

#include <stddef.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "proto/utf8.h"

struct status_row {
    const char *name, *text;
    bool retry;
    int http, exit;
};

static const struct status_row status_rows[] = {
#define X(name, code, retry, http, exit, text) [code] = {#name, text, retry, http, exit},
    PROFD_STATUS_LIST(X)
#undef X
};

static const struct status_row *status_find(unsigned code)
{
    static const struct status_row unknown = {"INTERNAL", "unknown status", false, 500, 70};
    return profd_status_known(code) ? &status_rows[code] : &unknown;
}

bool profd_status_known(unsigned code)
{
    return code < sizeof status_rows / sizeof status_rows[0] && status_rows[code].name != NULL;
}

const char *profd_status_name(enum profd_status status)
{
    return status_find((unsigned)status)->name;
}

const char *profd_status_text(enum profd_status status)
{
    return status_find((unsigned)status)->text;
}

bool profd_status_retry(enum profd_status status)
{
    return status_find((unsigned)status)->retry;
}

int profd_status_http(enum profd_status status)
{
    return status_find((unsigned)status)->http;
}

int profd_status_exit(enum profd_status status)
{
    return status_find((unsigned)status)->exit;
}

/* tail: behind the sentence, after ": "; NULL: nothing. Writes to a second buffer first, because arguments may point
 * into e->sentence. */
__attribute__((format(printf, 3, 0))) static void error_write(struct profd_error *e, const char *tail,
                                                              const char *format, va_list arguments)
{
    char text[sizeof e->sentence];
    int n = vsnprintf(text, sizeof text, format, arguments);
    size_t used = n < 0 ? 0 : n >= (int)sizeof text ? sizeof text - 1 : (size_t)n;
    text[used] = '\0';
    int more = tail != NULL ? snprintf(text + used, sizeof text - used, ": %s", tail) : 0;
    const size_t size = strlen(text);
    if (n >= (int)sizeof text || more < 0 || used + (size_t)more >= sizeof text) {
        /* A cut sentence may end inside a character: drops that piece. */
        size_t start = size;
        while (start > 0 && size - start < 4 && utf8_continues((uint8_t)text[start - 1])) {
            start--;
        }
        if (start > 0 && (uint8_t)text[start - 1] >= 0xc0u &&
            utf8_length((const uint8_t *)text + start - 1, size - start + 1) == 0) {
            text[start - 1] = '\0';
        }
    }
    memcpy(e->sentence, text, size + 1);
    utf8_scrub(e->sentence);
}

enum profd_status profd_error_set(struct profd_error *e, enum profd_status status, const char *format, ...)
{
    if (e != NULL) {
        va_list arguments;
        va_start(arguments, format);
        error_write(e, NULL, format, arguments);
        va_end(arguments);
    }
    return status;
}

enum profd_status profd_no_memory(struct profd_error *e)
{
    return profd_error_set(e, PROFD_NO_MEMORY, "no memory is left");
}

enum profd_status profd_error_wrap(struct profd_error *e, enum profd_status status, const char *format, ...)
{
    if (e != NULL) {
        va_list arguments;
        va_start(arguments, format);
        error_write(e, e->sentence, format, arguments);
        va_end(arguments);
    }
    return status;
}
