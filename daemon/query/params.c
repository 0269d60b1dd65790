#include "query/params.h"

#include <stdint.h>
#include <string.h>

#include "proto/http_text.h"
#include "proto/utf8.h"

/* Decodes n bytes at target + offset to *out and appends a NUL; *out is advanced. */
static enum profd_status decode_piece(const char *target, size_t offset, size_t n, char **out, struct profd_error *e)
{
    char *start = *out, *to = *out;
    for (size_t i = 0; i < n; i++) {
        const char *at = target + offset + i;
        if (*at != '%') {
            *to++ = *at;
            continue;
        }
        int byte = http_percent_value(at, n - i);
        if (byte < 0) {
            return profd_error_set(e, PROFD_BAD_QUERY, "%% at offset %zu is not followed by two hexadecimal digits",
                                   offset + i);
        }
        if (byte < 0x20 || byte == 0x7f) {
            return profd_error_set(e, PROFD_BAD_QUERY, "control character %%%02X at offset %zu is not allowed",
                                   (unsigned)byte, offset + i);
        }
        *to++ = (char)byte;
        i += 2;
    }
    if (!utf8_valid((const uint8_t *)start, (size_t)(to - start))) {
        return profd_error_set(e, PROFD_BAD_QUERY, "the text at offset %zu is not UTF-8", offset);
    }
    *to++ = '\0';
    *out = to;
    return PROFD_OK;
}

/* target[0 … n) is the path. */
static enum profd_status parse_path(const char *target, size_t n, struct params *p, char **out, struct profd_error *e)
{
    size_t at = 1;
    while (at <= n) {
        const char *slash = memchr(target + at, '/', n - at);
        size_t end = slash != NULL ? (size_t)(slash - target) : n;
        if (p->segment_count == PARAMS_SEGMENTS) {
            return profd_error_set(e, PROFD_NOT_FOUND, "not found: the path has more than %d segments",
                                   PARAMS_SEGMENTS);
        }
        p->segments[p->segment_count++] = *out;
        enum profd_status status = decode_piece(target, at, end - at, out, e);
        if (status != PROFD_OK) {
            return status;
        }
        at = end + 1;
    }
    return PROFD_OK;
}

static enum profd_status parse_item(const char *target, size_t at, size_t end, struct params *p, char **out,
                                    struct profd_error *e)
{
    const char *equals = memchr(target + at, '=', end - at);
    if (equals == NULL || equals == target + at) {
        return profd_error_set(e, PROFD_BAD_QUERY, "parameter '%.*s' at offset %zu is not name=value",
                               (int)(end - at < 64 ? end - at : 64), target + at, at);
    }
    if (p->count == PARAMS_COUNT) {
        return profd_error_set(e, PROFD_BAD_QUERY, "more than %d parameters", PARAMS_COUNT);
    }
    size_t middle = (size_t)(equals - target);
    struct param *item = &p->items[p->count++];
    item->name = *out;
    TRY(decode_piece(target, at, middle - at, out, e));
    item->value = *out;
    return decode_piece(target, middle + 1, end - middle - 1, out, e);
}

static enum profd_status parse_query(const char *target, size_t at, size_t n, struct params *p, char **out,
                                     struct profd_error *e)
{
    while (at < n) {
        const char *ampersand = memchr(target + at, '&', n - at);
        size_t end = ampersand != NULL ? (size_t)(ampersand - target) : n;
        enum profd_status status = parse_item(target, at, end, p, out, e);
        if (status != PROFD_OK) {
            return status;
        }
        at = end + 1;
        if (at == n && ampersand != NULL) {
            return profd_error_set(e, PROFD_BAD_QUERY, "the query ends with '&'");
        }
    }
    return PROFD_OK;
}

enum profd_status params_parse(const char *target, struct params *p, struct profd_error *e)
{
    size_t n = strnlen(target, LIMIT_QUERY_BYTES + 1);
    p->segment_count = 0;
    p->count = 0;
    if (n > LIMIT_QUERY_BYTES) {
        return profd_error_set(e, PROFD_TOO_LARGE, "the target is longer than %u bytes", LIMIT_QUERY_BYTES);
    }
    if (n == 0 || target[0] != '/') {
        return profd_error_set(e, PROFD_BAD_QUERY, "the target must begin with '/'");
    }
    for (size_t i = 0; i < n; i++) {
        if (target[i] != '%' && target[i] != '?' && !http_is_path(target[i])) {
            return profd_error_set(e, PROFD_BAD_QUERY, "byte 0x%02x at offset %zu must be percent-encoded",
                                   (unsigned char)target[i], i);
        }
    }
    const char *mark = memchr(target, '?', n);
    size_t path = mark != NULL ? (size_t)(mark - target) : n;
    char *out = p->text; /* every piece shrinks by its separator, so that the NULs fit, plus one for the last */
    enum profd_status status = parse_path(target, path, p, &out, e);
    return status == PROFD_OK && mark != NULL ? parse_query(target, path + 1, n, p, &out, e) : status;
}

static bool name_allowed(const char *name, const char *const *allowed)
{
    for (size_t i = 0; allowed[i] != NULL; i++) {
        size_t n = strlen(allowed[i]);
        bool prefix = allowed[i][n - 1] == '*';
        if (prefix ? strncmp(name, allowed[i], n - 1) == 0 && name[n - 1] != '\0' : strcmp(name, allowed[i]) == 0) {
            return true;
        }
    }
    return false;
}

enum profd_status params_check(const struct params *p, const char *const *allowed, const char *more,
                               struct profd_error *e)
{
    for (size_t i = 0; i < p->count; i++) {
        const char *name = p->items[i].name;
        if (!name_allowed(name, allowed) && (more == NULL || strcmp(name, more) != 0)) {
            return profd_error_set(e, PROFD_BAD_QUERY, "unknown parameter '%s'", name);
        }
        const char *base = name[0] != '\0' && name[1] == '.' ? name + 2 : name; /* "a.match" of one side */
        bool repeats = strcmp(base, "match") == 0 || strcmp(name, "by") == 0 || strcmp(name, "watch") == 0 ||
                       strncmp(base, "label.", 6) == 0;
        for (size_t j = 0; j < i && !repeats; j++) {
            if (strcmp(p->items[j].name, name) == 0) {
                return profd_error_set(e, PROFD_BAD_QUERY, "parameter '%s' is given twice", name);
            }
        }
    }
    return PROFD_OK;
}

const char *params_find(const struct params *p, const char *name)
{
    for (size_t i = 0; i < p->count; i++) {
        if (strcmp(p->items[i].name, name) == 0) {
            return p->items[i].value;
        }
    }
    return NULL;
}

enum profd_status params_parse_flag(const struct params *p, const char *name, bool *out, struct profd_error *e)
{
    static const char *const words[] = {"0", "1", "no", "yes", "false", "true"};
    const char *text = params_find(p, name);
    *out = false;
    for (size_t i = 0; text != NULL && i < sizeof words / sizeof *words; i++) {
        if (strcmp(text, words[i]) == 0) {
            *out = i % 2 == 1;
            return PROFD_OK;
        }
    }
    return text == NULL ? PROFD_OK
                        : profd_error_set(e, PROFD_BAD_QUERY, "%s=%s: give 0, 1, no, yes, false or true", name, text);
}

enum profd_status params_parse_number(const struct params *p, const char *name, unsigned long long low,
                                      unsigned long long high, unsigned long long *out, struct profd_error *e)
{
    const char *text = params_find(p, name);
    if (text == NULL) {
        return PROFD_OK;
    }
    unsigned long long value = 0;
    bool ok = *text != '\0';
    for (const char *c = text; ok && *c != '\0'; c++) {
        ok = *c >= '0' && *c <= '9' && !__builtin_mul_overflow(value, 10ull, &value) &&
             !__builtin_add_overflow(value, (unsigned long long)(*c - '0'), &value);
    }
    if (!ok || value < low || value > high) {
        return profd_error_set(e, PROFD_BAD_QUERY, "%s=%s is not a whole number from %llu to %llu", name, text, low,
                               high);
    }
    *out = value;
    return PROFD_OK;
}

static void add_counted(struct buffer *out, const char *text)
{
    buffer_add_format(out, "%zu %s ", strlen(text), text);
}

void params_add_canonical(const struct params *p, const char *build, struct buffer *out)
{
    const struct param *sorted[PARAMS_COUNT];
    for (size_t i = 0; i < p->count; i++) {
        size_t at = i;
        for (; at > 0 && strcmp(sorted[at - 1]->name, p->items[i].name) > 0; at--) {
            sorted[at] = sorted[at - 1];
        }
        sorted[at] = &p->items[i];
    }
    for (size_t i = 0; i < p->segment_count; i++) {
        add_counted(out, i == PARAMS_BUILD && build != NULL ? build : p->segments[i]);
    }
    buffer_add_char(out, '\n');
    for (size_t i = 0; i < p->count; i++) {
        add_counted(out, sorted[i]->name);
        add_counted(out, sorted[i]->value);
    }
    buffer_add_char(out, '\n');
}
