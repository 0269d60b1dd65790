#include <stdlib.h>
#include <string.h>

#include "elf/elf_internal.h"

/* Rust's legacy symbol names ("_ZN … 17h<hash>E"), which look like C++ names. */

#define HASH 19 /* "17h" and 16 hexadecimal digits */

/* The identifiers between "_ZN" and the hash. */
struct path {
    const char *at, *end;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads the next "<length><bytes>" of the path. False if there is none. */
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

/* Appends the path without its hash, with escapes decoded. False, and nothing is appended, if the name is not one of
 * Rust. O(length). */
static bool rust_demangle(const char *mangled, struct buffer *out)
{
    if (strncmp(mangled, "_ZN", 3) != 0) {
        return false;
    }
    /* The path ends at the last 'E' that ends the name or precedes a ".llvm." suffix. */
    const char *first = mangled + 3, *end = first + strlen(first), *text = NULL;
    for (bool suffix = true; end > first && !(suffix && end[-1] == 'E'); end--) {
        suffix = end[-1] == '.';
    }
    end -= end > first;
    if (end - first <= HASH || strncmp(end - HASH, "17h", 3) != 0) {
        return false;
    }
    /* A hash has sixteen lower-case hexadecimal digits, at least five of them different: others are identifiers. */
    unsigned seen = 0, kinds = 0;
    for (const char *c = end - HASH + 3; c < end; c++) {
        if (!is_digit(*c) && !(*c >= 'a' && *c <= 'f')) {
            return false;
        }
        seen |= 1u << (is_digit(*c) ? *c - '0' : *c - 'a' + 10);
    }
    for (; seen != 0; seen &= seen - 1) {
        kinds++;
    }
    if (kinds < 5 ||
        strspn(mangled, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_$.:@") != strlen(mangled)) {
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

/* From libstdc++; its header <cxxabi.h> is C++. */
extern char *__cxa_demangle(const char *mangled, char *buffer, size_t *length, int *status);

struct demangler {
    char *buffer; /* of __cxa_demangle, which reallocates it */
    size_t length;
    struct buffer core, whole; /* the name without prefix and suffix; the result */
    bool cxx, rust;
};

/* Returns the offset of the demangled form of the name at an offset; that offset if there is none. */
static uint32_t demangle_name(struct demangler *d, struct elf_build *b, uint32_t name)
{
    const char *raw = b->names.data + name, *mangled = raw + strspn(raw, ".$");
    if (mangled[0] != '_') {
        return name;
    }
    const size_t core = strcspn(mangled, "@");
    d->core.failed = d->whole.failed = false; /* a name that is too long does not affect the next one */
    d->core.size = d->whole.size = 0;
    buffer_add(&d->core, mangled, core);
    buffer_add_char(&d->core, '\0');
    buffer_add(&d->whole, raw, (size_t)(mangled - raw));
    if (d->core.failed) {
        return name;
    }
    const char *n = d->core.data;
    if (!d->rust || !rust_demangle(n, &d->whole)) {
        const bool global = strncmp(n, "_GLOBAL_", 8) == 0 && n[8] != '\0' && strchr("._$", n[8]) != NULL &&
                            (n[9] == 'D' || n[9] == 'I') && n[10] == '_';
        int failed = 0;
        char *text =
            d->cxx && (strncmp(n, "_Z", 2) == 0 || global) ? __cxa_demangle(n, d->buffer, &d->length, &failed) : NULL;
        if (text == NULL || failed != 0) {
            return name;
        }
        d->buffer = text;
        buffer_add_text(&d->whole, text);
    }
    buffer_add_text(&d->whole, mangled + core);
    const uint32_t demangled = d->whole.failed ? 0 : elf_build_name(b, d->whole.data, d->whole.size);
    return demangled != 0 ? demangled : name;
}

void elf_demangle_all(struct elf_build *b, bool cxx, bool rust)
{
    struct demangler d = {.cxx = cxx, .rust = rust};
    buffer_init(&d.core, b->name_limit);
    buffer_init(&d.whole, b->name_limit);
    struct object *o = b->object;
    for (uint32_t i = 0; i < o->symbol_count && !b->names.failed; i++) {
        struct object_symbol *s = &o->symbols[i];
        s->demangled = demangle_name(&d, b, s->name);
    }
    for (uint32_t i = 0; i < o->line_function_count && !b->names.failed; i++) {
        struct object_line_function *f = &o->line_functions[i];
        f->demangled = demangle_name(&d, b, f->name);
    }
    free(d.buffer);
    buffer_done(&d.core);
    buffer_done(&d.whole);
}
