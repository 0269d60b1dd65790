/* match=K="V", and label.K=V which means the same. */
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

bool options_name_valid(const char *name)
{
    size_t n = name_length(name);
    return n > 0 && n <= LIMIT_LABEL_NAME && name[n] == '\0';
}

/* The value between quotes, without its backslashes; NULL if it does not end with a quote, or memory did. */
static char *unquote(const char *quoted, struct arena *a)
{
    char *value = arena_take(a, strlen(quoted) + 1), *to = value;
    const char *at = quoted + 1;
    if (value == NULL || *quoted != '"') {
        return NULL;
    }
    for (; *at != '\0' && *at != '"'; at++) {
        if (*at == '\\' && *++at != '"' && *at != '\\') {
            return NULL;
        }
        *to++ = *at;
    }
    return at[0] == '"' && at[1] == '\0' ? value : NULL;
}

enum profd_status options_parse_match(const char *text, struct arena *a, struct store_matcher *out,
                                      struct profd_error *e)
{
    size_t n = name_length(text);
    const char *op = text + n;
    if (n == 0 || n > LIMIT_LABEL_NAME) {
        return profd_error_set(e, PROFD_BAD_QUERY, "match=%s does not begin with a label name", text);
    }
    if (strncmp(op, "=~", 2) == 0 || strncmp(op, "!~", 2) == 0) {
        return profd_error_set(e, PROFD_BAD_QUERY, "match=%s: %.2s (regular expressions) is not there yet, = and != are",
                               text, op);
    }
    bool equal = *op == '=';
    if (!equal && strncmp(op, "!=", 2) != 0) {
        return profd_error_set(e, PROFD_BAD_QUERY, "match=%s has neither = nor != after the label name", text);
    }
    char *name = arena_copy(a, text, n);
    char *value = unquote(op + (equal ? 1 : 2), a);
    if (name == NULL || value == NULL) {
        return profd_error_set(e, PROFD_BAD_QUERY, "match=%s: the value must stand in double quotes, as in host=\"db1\"",
                               text);
    }
    *out = (struct store_matcher){name, value, equal ? STORE_MATCH_EQUAL : STORE_MATCH_NOT_EQUAL};
    return PROFD_OK;
}
