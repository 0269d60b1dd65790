#include "compat/compat_spec.h"

#include <string.h>

/* Leading decimal digits; the largest number if they do not fit. */
static uint32_t line_parse(const char *text)
{
    uint64_t line = 0;
    for (; *text >= '0' && *text <= '9'; text++) {
        line = line * 10 + (uint64_t)(*text - '0');
        line = line > INT32_MAX ? INT32_MAX : line;
    }
    return (uint32_t)line;
}

static void name_parse(const char *text, struct compat_pattern *p)
{
    if (text[0] >= '0' && text[0] <= '9') {
        p->line = line_parse(text);
    } else if (text[0] != '\0') {
        p->name = text;
    }
}

static enum profd_status file_parse(const char *file, const struct compat_symbols *s, struct arena *a,
                                    struct compat_pattern *p)
{
    enum profd_status status = compat_symbols_source(s, file, a, &p->file);
    if (status != PROFD_NOT_FOUND) {
        return status;
    }
    p->no_file = true;
    return PROFD_OK;
}

enum profd_status compat_pattern_parse(const char *text, size_t n, const struct compat_symbols *s, struct arena *a,
                                       struct compat_pattern *out)
{
    struct compat_pattern p = {0};
    char *copy = arena_copy(a, text, n);
    if (copy == NULL) {
        return PROFD_NO_MEMORY;
    }
    char *colon = strrchr(copy, ':');
    enum profd_status status = PROFD_OK;
    if (colon != NULL) {
        *colon = '\0';
        if (colon > copy) {
            status = file_parse(copy, s, a, &p);
        }
        name_parse(colon + 1, &p);
    } else if (strchr(copy, '.') != NULL) {
        status = file_parse(copy, s, a, &p);
    } else {
        name_parse(copy, &p);
    }
    if (status == PROFD_OK) {
        *out = p;
    }
    return status;
}

static bool pattern_matches(const struct compat_pattern *p, const struct compat_symbols *s, uint32_t symbol)
{
    if (p->no_file || (p->line != 0 && p->line != s->line[symbol])) {
        return false;
    }
    const char *name = s->raw[symbol];
    if (p->name != NULL && (p->name[0] != name[0] || strcmp(p->name, name) != 0)) {
        return false;
    }
    const char *file = s->file[symbol];
    return p->file == NULL || p->file == file || (file[0] != '\0' && strcmp(p->file, file) == 0);
}

enum profd_status compat_pattern_ranges(const struct compat_pattern *p, const struct compat_symbols *s, struct arena *a,
                                        struct compat_range **out, uint32_t *count)
{
    uint32_t n = 0, last = COMPAT_NONE;
    for (uint32_t i = 0; i < s->count; i++) {
        if (!pattern_matches(p, s, i)) {
            continue;
        }
        n += last == COMPAT_NONE || last + 1 != i;
        last = i;
    }
    struct compat_range *ranges = ARENA_ARRAY(a, (size_t)n + 1, struct compat_range);
    if (ranges == NULL) {
        return PROFD_NO_MEMORY;
    }
    n = 0;
    last = COMPAT_NONE;
    for (uint32_t i = 0; i < s->count; i++) {
        if (!pattern_matches(p, s, i)) {
            continue;
        }
        if (last == COMPAT_NONE || last + 1 != i) {
            ranges[n++] = (struct compat_range){s->address[i], s->end[i], i};
        } else {
            ranges[n - 1].high = s->end[i];
        }
        last = i;
    }
    *out = ranges;
    *count = n;
    return PROFD_OK;
}
