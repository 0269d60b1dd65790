/* match=K="V" and its like, and label.K=V which means the same. */
#include <string.h>

#include "query/options.h"

static bool letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Length of the label name that text begins with. */
static size_t name_length(const char *text)
{
    size_t n = 0;
    while (letter(text[n]) || (n > 0 && text[n] >= '0' && text[n] <= '9')) {
        n++;
    }
    return n;
}

/* The value between quotes, without the backslashes before quotes and backslashes; NULL if it does not end with a
 * quote, or memory did. In a pattern other backslashes are its own: "a\.b" and "a\\.b" are the same. */
static char *unquote(const char *quoted, bool pattern, struct arena *a)
{
    char *value = arena_take(a, strlen(quoted) + 1), *to = value;
    const char *at = quoted + 1;
    if (value == NULL || *quoted != '"') {
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

/* Parses =, !=, =~ or !~ and returns the text after it, or NULL. */
static const char *read_operator(const char *op, enum store_match *match)
{
    static const struct {
        const char *text;
        enum store_match match;
    } OPERATORS[] = {
        {"=~", STORE_MATCH_LIKE}, {"!~", STORE_MATCH_UNLIKE}, {"!=", STORE_MATCH_NOT_EQUAL}, {"=", STORE_MATCH_EQUAL}};
    for (size_t i = 0; i < sizeof OPERATORS / sizeof *OPERATORS; i++) {
        size_t n = strlen(OPERATORS[i].text);
        if (strncmp(op, OPERATORS[i].text, n) == 0) {
            *match = OPERATORS[i].match;
            return op + n;
        }
    }
    return NULL;
}

enum profd_status options_parse_match(const char *text, struct arena *a, struct store_matcher *out,
                                      struct profd_error *e)
{
    size_t n = name_length(text);
    struct store_matcher m = {0};
    if (n == 0 || n > LIMIT_LABEL_NAME) {
        return profd_error_set(e, PROFD_BAD_QUERY, "match=%s does not begin with a label name", text);
    }
    const char *quoted = read_operator(text + n, &m.match);
    if (quoted == NULL) {
        return profd_error_set(e, PROFD_BAD_QUERY, "match=%s has neither =, !=, =~ nor !~ after the label name", text);
    }
    bool pattern = m.match == STORE_MATCH_LIKE || m.match == STORE_MATCH_UNLIKE;
    m.name = arena_copy(a, text, n);
    m.value = unquote(quoted, pattern, a);
    if (m.name == NULL || m.value == NULL) {
        return profd_error_set(e, PROFD_BAD_QUERY, "match=%s: the value must be in double quotes, as in host=\"db1\"",
                               text);
    }
    enum profd_status status = pattern ? store_pattern_compile(a, m.value, &m.pattern, e) : PROFD_OK;
    if (status == PROFD_OK) {
        *out = m;
    }
    return status;
}

const char *options_format_matchers(const struct store_matcher *matchers, size_t n, struct arena *a)
{
    static const char *const OPERATORS[] = {"=", "!=", "=~", "!~"}; /* in the order of enum store_match */
    size_t size = 1;
    for (size_t i = 0; i < n; i++) {
        size += strlen(matchers[i].name) + 2 * strlen(matchers[i].value) + strlen("!=\"\", ");
    }
    char *text = arena_take(a, size), *to = text;
    for (size_t i = 0; text != NULL && i < n; i++) {
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
