/* The parameters of reports, and the steps of time that a window is divided into. */
#include <inttypes.h>
#include <string.h>

#include "proto/collector.h"
#include "proto/http_text.h"
#include "proto/label.h"
#include "query/query_internal.h"

/* The value between quotes, without the backslashes before quotes and backslashes; NULL if it does not end with a
 * quote, or memory did. In a pattern other backslashes are its own: "a\.b" and "a\\.b" are the same. */
static char *unquote(const char *quoted, bool pattern, struct arena *a)
{
    char *value = arena_take(a, strlen(quoted) + 1), *to = value;
    const char *at = quoted + 1;
    if (!value || *quoted != '"') {
        return NULL;
    }
    for (; *at != '\0' && *at != '"'; at++) {
        bool escape = *at == '\\' && (at[1] == '"' || at[1] == '\\');
        if (*at == '\\' && !escape && (!pattern || at[1] == '\0')) {
            return NULL;
        }
        at += escape;
        *to++ = *at;
    }
    return at[0] == '"' && at[1] == '\0' ? value : NULL;
}

/* The character that a number after a backslash stands for, as in Go: \ooo and \xhh are bytes, \uhhhh and
 * \Uhhhhhhhh are written as UTF-8. Returns where the text goes on; NULL: it is no such number, or the end of a string.
 */
static const char *unquote_number(const char *at, char **to)
{
    const bool octal = *at >= '0' && *at <= '7';
    const int digits = octal ? 3 : *at == 'x' ? 2 : *at == 'u' ? 4 : *at == 'U' ? 8 : 0;
    uint32_t c = 0;
    at += !octal && digits > 0;
    for (int i = 0; i < digits; i++) {
        const int digit = http_hex_value(*at++);
        if (digit < 0 || (octal && digit > 7)) {
            return NULL;
        }
        c = c * (octal ? 8 : 16) + (uint32_t)digit;
    }
    if (c == 0 || c > (octal ? 0xff : 0x10ffff) || (c >= 0xd800 && c <= 0xdfff)) {
        return NULL;
    }
    if (digits < 4 || c < 0x80) {
        *(*to)++ = (char)c;
        return at;
    }
    const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    *(*to)++ = (char)(0xf0u << (3 - more) | c >> 6 * more);
    for (int shift = 6 * (more - 1); shift >= 0; shift -= 6) {
        *(*to)++ = (char)(0x80 | (c >> shift & 0x3f));
    }
    return at;
}

/* The value of a string of Go, which is what Prometheus has in selectors: in double or single quotes with escapes, in
 * backquotes without. NULL: it is none, or has a zero byte. */
static char *unquote_go(const char *quoted, struct arena *a)
{
    static const char NAMES[] = "abfnrtv\\", VALUES[] = "\a\b\f\n\r\t\v\\";
    char *value = arena_take(a, strlen(quoted) + 1), *to = value;
    const char quote = *quoted, *at = quoted + 1;
    if (quote == '\0' || strchr("\"'`", quote) == NULL) {
        return NULL;
    }
    while (at != NULL && *at != '\0' && *at != quote) {
        if (quote == '`' || (*at != '\\' && *at != '\n')) {
            *to++ = *at++;
            continue;
        }
        const char *name = at[1] != '\0' ? strchr(NAMES, at[1]) : NULL;
        if (*at == '\n') {
            return NULL;
        }
        if (name != NULL || at[1] == quote) {
            *to++ = name != NULL ? VALUES[name - NAMES] : quote;
            at += 2;
        } else {
            at = unquote_number(at + 1, &to);
        }
    }
    return at != NULL && at[0] == quote && at[1] == '\0' ? value : NULL;
}

/* One matcher, K="V", K!="V", K=~"V" or K!~"V" with \" and \\ inside; in the latter two V is a regular expression,
 * compiled into the arena, in which other backslashes need no escape. go: V is a string of Go. BAD_QUERY. */
static enum profd_status options_parse_match(const char *text, bool go, struct arena *a, struct store_matcher *out,
                                             struct profd_error *e)
{
    static const struct {
        const char *text;
        enum store_match match;
    } OPERATORS[] = {
        {"=~", STORE_MATCH_LIKE}, {"!~", STORE_MATCH_UNLIKE}, {"!=", STORE_MATCH_NOT_EQUAL}, {"=", STORE_MATCH_EQUAL}};
    struct store_matcher m = {0};
    size_t n = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789"), k = 0;
    FAIL_IF(n == 0 || n > LIMIT_LABEL_NAME || (text[0] >= '0' && text[0] <= '9'), e, PROFD_BAD_QUERY,
            "match=%s does not begin with a label name", text);
    while (k < sizeof OPERATORS / sizeof *OPERATORS &&
           strncmp(text + n, OPERATORS[k].text, strlen(OPERATORS[k].text)) != 0) {
        k++;
    }
    FAIL_IF(k == sizeof OPERATORS / sizeof *OPERATORS, e, PROFD_BAD_QUERY,
            "match=%s has neither =, !=, =~ nor !~ after the label name", text);
    m.match = OPERATORS[k].match;
    bool pattern = m.match == STORE_MATCH_LIKE || m.match == STORE_MATCH_UNLIKE;
    m.name = arena_copy(a, text, n);
    const char *quoted = text + n + strlen(OPERATORS[k].text);
    m.value = go ? unquote_go(quoted, a) : unquote(quoted, pattern, a);
    FAIL_IF(!m.name || !m.value, e, PROFD_BAD_QUERY, "%s%s: the value must be %s, as in host=\"db1\"",
            go ? "" : "match=", text, go ? "a string of Go" : "in double quotes");
    if (pattern) {
        TRY(store_pattern_compile(a, m.value, &m.pattern, e));
    }
    *out = m;
    return PROFD_OK;
}

enum profd_status options_parse_selector(const char *text, struct arena *a, struct store_matcher out[LIMIT_MATCHERS],
                                         size_t *count, struct profd_error *e)
{
    const char *at = text + strspn(text, " ");
    char *piece = arena_take(a, strlen(text) + 1);
    if (*at == '\0') {
        return PROFD_OK;
    }
    if (*at++ != '{') {
        return profd_error_set(e, PROFD_BAD_QUERY, "the selector %.100s does not begin with {", text);
    }
    while (*(at += strspn(at, " ")) != '}') {
        size_t n = 0; /* a matcher without the blanks around its parts */
        for (char quote = '\0'; *at != '\0' && (quote || (*at != ',' && *at != '}')); at++) {
            if (!quote && strchr("\"'`", *at)) {
                quote = *at;
            } else if (*at == quote) {
                quote = '\0';
            } else if (quote && quote != '`' && *at == '\\' && at[1] != '\0') {
                piece[n++] = *at++;
            }
            if (quote || *at != ' ') {
                piece[n++] = *at;
            }
        }
        piece[n] = '\0';
        FAIL_IF(*at == '\0', e, PROFD_BAD_QUERY, "the selector %.100s does not end with }", text);
        FAIL_IF(*count == LIMIT_MATCHERS, e, PROFD_BAD_QUERY, "more than %u label matchers", LIMIT_MATCHERS);
        TRY(options_parse_match(piece, true, a, &out[(*count)++], e));
        at += *at == ',';
    }
    at += 1 + strspn(at + 1, " ");
    return *at == '\0' ? PROFD_OK
                       : profd_error_set(e, PROFD_BAD_QUERY, "the selector %.100s has text after its }", text);
}

/* Matchers as they may be asked for again, K="V", joined by ", ", in the arena. n ≥ 1. */
static const char *format_matchers(const struct store_matcher *matchers, size_t n, struct arena *a)
{
    static const char *const OPERATORS[] = {"=", "!=", "=~", "!~"}; /* in the order of enum store_match */
    size_t size = 1;
    for (size_t i = 0; i < n; i++) {
        size += strlen(matchers[i].name) + 2 * strlen(matchers[i].value) + strlen("!=\"\", ");
    }
    char *text = arena_take(a, size), *to = text;
    for (size_t i = 0; text && i < n; i++) {
        const struct store_matcher *m = &matchers[i];
        to = stpcpy(stpcpy(stpcpy(stpcpy(to, i > 0 ? ", " : ""), m->name), OPERATORS[m->match]), "\"");
        for (const char *at = m->value; *at != '\0'; at++) {
            if (*at == '"' || *at == '\\') {
                *to++ = '\\';
            }
            *to++ = *at;
        }
        to = stpcpy(to, "\"");
    }
    return text;
}

/* A parameter that is a field: modes and values as RENDER_CHOICES describes them. */
struct parameter {
    const char *name;
    enum { ANY_MODE, TRUE_MODE, COMPAT_MODE } modes;
    size_t at;         /* of the field in struct options */
    const char *words; /* joined by ", " */
    unsigned long long low, high;
    bool is_text;
    bool is_switch; /* words at even positions mean off, the others on */
};

#define WORDS(list) .words = list
#define NUMBERS(least, most) .low = (least), .high = (most)
#define TEXT .is_text = true
#define SWITCH() .words = "0, 1, no, yes, false, true", .is_switch = true
static const struct parameter PARAMETERS[] = {
#define X(type, field, parameter, modes, values) {parameter, modes, offsetof(struct options, field), values},
    OPTIONS_LIST(X)
#undef X
#define X(type, field, parameter, modes, values) {parameter, modes, offsetof(struct options, show.field), values},
        RENDER_CHOICES(X)
#undef X
};
#define PARAMETER_COUNT (sizeof PARAMETERS / sizeof *PARAMETERS)

#define X(type, field, parameter, modes, values) parameter,
const char *const options_of_report[] = {"since", "until", "match",  "label.*",
                                         "uid",   "mode",  "format", OPTIONS_LIST(X) RENDER_CHOICES(X) NULL};
#undef X

/* The position of a value in a list of words joined by ", ". An absent parameter changes nothing. */
static enum profd_status parse_word(const struct params *p, const char *name, const char *words, uint32_t *out,
                                    struct profd_error *e)
{
    const char *text = params_find(p, name), *word = words;
    if (!text) {
        return PROFD_OK;
    }
    for (uint32_t i = 0; *word != '\0'; i++) {
        size_t n = strcspn(word, ",");
        if (strlen(text) == n && strncmp(text, word, n) == 0) {
            *out = i;
            return PROFD_OK;
        }
        word += n + strspn(word + n, ", ");
    }
    return profd_error_set(e, PROFD_BAD_QUERY, "%s=%s is none of: %s", name, text, words);
}

enum profd_status options_parse_matchers(const struct params *p, struct arena *a,
                                         struct store_matcher out[LIMIT_MATCHERS], size_t *count, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; i < p->count && !status; i++) {
        const struct param *item = &p->items[i];
        bool sugar = strncmp(item->name, "label.", 6) == 0;
        if (!sugar && strcmp(item->name, "match") != 0) {
            continue;
        }
        if (*count == LIMIT_MATCHERS) {
            status = profd_error_set(e, PROFD_BAD_QUERY, "more than %u label matchers", LIMIT_MATCHERS);
        } else if (!sugar) {
            status = options_parse_match(item->value, false, a, &out[(*count)++], e);
        } else if (label_judge_name(item->name + 6, strlen(item->name + 6)) != LABEL_GOOD) {
            status = profd_error_set(e, PROFD_BAD_QUERY, "%s does not name a label", item->name);
        } else {
            out[(*count)++] =
                (struct store_matcher){.name = item->name + 6, .value = item->value, .match = STORE_MATCH_EQUAL};
        }
    }
    return status;
}

/* The parameters that are fields. */
static enum profd_status parse_parameters(const struct params *p, bool http, struct options *o, struct profd_error *e)
{
    o->scope = OPTIONS_SCOPE_DEFAULT;
    o->show.limit = http ? LIMIT_HTTP_ROWS : 0;
    for (const struct parameter *row = PARAMETERS; row < PARAMETERS + PARAMETER_COUNT; row++) {
        void *field = (char *)o + row->at;
        if (row->words) {
            TRY(parse_word(p, row->name, row->words, field, e));
            *(uint32_t *)field %= row->is_switch ? 2 : UINT32_MAX;
        } else if (row->is_text) {
            const char *text = params_find(p, row->name);
            *(const char **)field = text;
            FAIL_IF(text && text[0] == '\0', e, PROFD_BAD_QUERY, "%s= is empty; leave it out, or give a value",
                    row->name);
        } else {
            unsigned long long number = *(uint32_t *)field;
            TRY(params_parse_number(p, row->name, row->low, row->high, &number, e));
            *(uint32_t *)field = (uint32_t)number;
        }
    }
    o->show.rows = o->show.limit != 0 ? LIMIT_REPORT_ROWS : 0;
    /* The flat profile has an order of its own, by which limit cuts. */
    if (o->show.view == RENDER_VIEW_FLAT && params_find(p, "sort") == NULL) {
        o->show.sort = RENDER_SORT_SELF;
    }
    FAIL_IF(o->dimension && collector_is_dimension(o->dimension), e, PROFD_BAD_QUERY,
            "dimension=%s: not a dimension of samples; every report shows it", o->dimension);
    return PROFD_OK;
}

enum profd_status options_parse(const struct params *p, const struct store_scope *scope, bool http, int64_t now,
                                bool compat, struct arena *a, struct options *out, struct profd_error *e)
{
    struct options o = {.visible = *scope};
    const char *format = params_find(p, "format"), *mode = params_find(p, "mode");
    uint32_t mode_compat = compat;
    unsigned long long uid = 0;
    TRY(when_parse_window(params_find(p, "since"), params_find(p, "until"), now, &o.since, &o.until, e));
    TRY(options_parse_matchers(p, a, o.matchers, &o.matcher_count, e));
    TRY(parse_parameters(p, http, &o, e));

    TRY(parse_word(p, "mode", "true, compat", &mode_compat, e));
    o.format = render_find(format ? format : mode_compat ? "gprof" : "json");
    FAIL_IF(!o.format, e, PROFD_BAD_QUERY, "format=%s is none of: %s", format, render_names());
    FAIL_IF(mode && o.format->wants_report == (mode_compat == 1), e, PROFD_BAD_QUERY, "mode=%s has no format=%s: %s",
            mode, o.format->name, mode_compat ? "compat mode is format=gprof" : "format=gprof is compat mode");
    if (o.format->functions != 0 && params_find(p, "limit") == NULL) {
        o.show.limit = o.format->functions;
    }
    /* Parameters that the other mode has no use for are refused: silence would look like an answer. */
    for (const struct parameter *row = PARAMETERS; row < PARAMETERS + PARAMETER_COUNT; row++) {
        FAIL_IF(row->modes == (o.format->wants_report ? COMPAT_MODE : TRUE_MODE) && params_find(p, row->name) != NULL,
                e, PROFD_BAD_QUERY, "%s= has no meaning in %s mode (format=%s)", row->name,
                o.format->wants_report ? "true" : "compat", o.format->name);
    }
    FAIL_IF(!o.format->lists_rows && o.show.view == RENDER_VIEW_NOT_CALLED, e, PROFD_BAD_QUERY,
            "view=not-called has no meaning for format=%s: it is for json and text", o.format->name);

    TRY(params_parse_number(p, "uid", 0, UINT32_MAX, &uid, e));
    if (params_find(p, "uid") != NULL) {
        FAIL_IF(!store_scope_has(&o.visible, (uint32_t)uid), e, PROFD_FORBIDDEN,
                "uid=%llu: you may read only the uploads of uid %" PRIu32, uid, o.visible.uid);
        o.visible = (struct store_scope){.uid = (uint32_t)uid};
    }
    if (o.matcher_count > 0) {
        o.match = format_matchers(o.matchers, o.matcher_count, a);
    }
    *out = o;
    return PROFD_OK;
}

#define SECOND INT64_C(1000000000)

/* Steps divide a day or are whole days, so that they begin where sums begin, in UTC. */
static const struct {
    const char *text;
    int64_t seconds;
} STEPS[] = {{"1m", 60},    {"5m", 300},   {"10m", 600},  {"15m", 900},  {"30m", 1800},  {"1h", 3600},  {"2h", 7200},
             {"3h", 10800}, {"4h", 14400}, {"6h", 21600}, {"8h", 28800}, {"12h", 43200}, {"1d", 86400}, {"7d", 604800}};

enum profd_status steps_parse(struct job *job, int64_t usual, int64_t *step, struct profd_error *e)
{
    const char *text = params_find(job->params, "step");
    int64_t found = !text ? usual : 0;
    for (size_t i = 0; text && i < sizeof STEPS / sizeof *STEPS; i++) {
        if (strcmp(STEPS[i].text, text) == 0) {
            found = STEPS[i].seconds * SECOND;
        }
    }
    FAIL_IF(text && found == 0, e, PROFD_BAD_QUERY,
            "step=%s is none of: 1m, 5m, 10m, 15m, 30m, 1h, 2h, 3h, 4h, 6h, 8h, 12h, 1d, 7d", text);
    job->unsettled = found % STEPS_HOUR != 0;
    *step = found;
    return PROFD_OK;
}

enum profd_status steps_find_span(const struct report_work *w, int64_t step, int64_t *begin, int64_t *end,
                                  struct profd_error *e)
{
    int64_t from = w->options.since > 0 ? w->options.since : w->first_seen;
    int64_t to = w->options.until > 0 ? w->options.until : w->last_seen + 1;
    from = from < w->first_seen ? w->first_seen : from;
    to = to > w->last_seen + 1 ? w->last_seen + 1 : to;
    int64_t steps = step > 0 && from < to ? (to - from) / step + 1 : 0;
    FAIL_IF(steps > LIMIT_STEPS, e, PROFD_BAD_QUERY,
            "%" PRId64 " steps, the limit is %u; use a longer step= or a shorter time range", steps, LIMIT_STEPS);
    *begin = from;
    *end = to;
    return PROFD_OK;
}
