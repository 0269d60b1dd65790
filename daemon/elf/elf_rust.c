#include "elf/elf_rust.h"

#include <string.h>

#define HASH 19 /* "17h" and 16 hexadecimal digits */

/* The identifiers between "_ZN" and the hash. */
struct path {
    const char *at, *end;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The next "<length><bytes>" of the path. */
static bool identifier_next(struct path *p, const char **text, size_t *n)
{
    size_t length = 0;
    if (p->at == p->end || !is_digit(*p->at) || *p->at == '0') {
        return false;
    }
    for (; p->at < p->end && is_digit(*p->at); p->at++) {
        length = length * 10 + (size_t)(*p->at - '0');
        if (length > (size_t)(p->end - p->at)) {
            return false;
        }
    }
    if (length > (size_t)(p->end - p->at)) {
        return false;
    }
    *text = p->at;
    *n = length;
    p->at += length;
    return true;
}

/* A hash has sixteen lower-case hexadecimal digits, at least five of them different: others are identifiers. */
static bool is_hash(const char *text)
{
    unsigned seen = 0, kinds = 0;
    if (strncmp(text, "17h", 3) != 0) {
        return false;
    }
    for (unsigned i = 3; i < HASH; i++) {
        char c = text[i];
        if (!is_digit(c) && !(c >= 'a' && c <= 'f')) {
            return false;
        }
        seen |= 1u << (is_digit(c) ? c - '0' : c - 'a' + 10);
    }
    for (; seen != 0; seen &= seen - 1) {
        kinds++;
    }
    return kinds >= 5;
}

/* Decodes "$LT$" and similar escapes at text: appends the character and returns the length of the escape; 0 if there is
 * none. */
static size_t escape_undo(const char *text, size_t n, struct buffer *out)
{
    static const struct {
        const char name[5];
        char c;
    } escapes[] = {{"SP$", '@'}, {"BP$", '*'}, {"RF$", '&'}, {"LT$", '<'},
                   {"GT$", '>'}, {"LP$", '('}, {"RP$", ')'}, {"C$", ','}};
    for (unsigned i = 0; i < sizeof escapes / sizeof *escapes; i++) {
        size_t length = strlen(escapes[i].name);
        if (n > length && strncmp(text + 1, escapes[i].name, length) == 0) {
            buffer_add_char(out, escapes[i].c);
            return length + 1;
        }
    }
    if (n < 5 || text[1] != 'u' || text[4] != '$' || text[2] < '2' || text[2] > '7' ||
        !(is_digit(text[3]) || (text[3] >= 'a' && text[3] <= 'f'))) {
        return 0;
    }
    int value = (text[2] - '0') * 16 + (is_digit(text[3]) ? text[3] - '0' : text[3] - 'a' + 10);
    if (value == 0x7f) {
        return 0;
    }
    buffer_add_char(out, (char)value);
    return 5;
}

static void identifier_add(const char *text, size_t n, struct buffer *out)
{
    if (n >= 2 && text[0] == '_' && text[1] == '$') { /* the underscore only makes it an identifier */
        text++, n--;
    }
    while (n > 0) {
        size_t used = 0;
        if (text[0] == '$') {
            used = escape_undo(text, n, out);
            if (used == 0) {
                buffer_add(out, text, n);
                return;
            }
        } else if (text[0] == '.' && n >= 2 && text[1] == '.') {
            buffer_add_text(out, "::");
            used = 2;
        } else {
            buffer_add_char(out, text[0]);
            used = 1;
        }
        text += used;
        n -= used;
    }
}

/* Finds the end of the path: the last 'E' that ends the name or precedes a ".llvm." suffix. */
static const char *path_end(const char *first)
{
    const char *end = first + strlen(first);
    bool suffix = true;
    while (end > first && !(suffix && end[-1] == 'E')) {
        suffix = end[-1] == '.';
        end--;
    }
    return end > first ? end - 1 : NULL;
}

bool elf_rust_demangle(const char *mangled, struct buffer *out)
{
    if (strncmp(mangled, "_ZN", 3) != 0) {
        return false;
    }
    const char *first = mangled + 3, *end = path_end(first), *text = NULL;
    if (end == NULL || end - first <= HASH || !is_hash(end - HASH)) {
        return false;
    }
    if (strspn(mangled, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_$.:@") != strlen(mangled)) {
        return false;
    }
    size_t n = 0;
    struct path whole = {first, end};
    while (whole.at < whole.end) {
        if (!identifier_next(&whole, &text, &n)) {
            return false;
        }
    }
    if (text + n != end || n != HASH - 2) {
        return false;
    }
    struct path p = {first, end - HASH};
    bool begins = true;
    while (p.at < p.end && identifier_next(&p, &text, &n)) {
        if (!begins) {
            buffer_add_text(out, "::");
        }
        begins = false;
        identifier_add(text, n, out);
    }
    return true;
}
