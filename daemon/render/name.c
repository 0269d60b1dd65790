/* Names of functions that are safe on a terminal, distinct and, if asked for, short. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/row_table.h"
#include "proto/utf8.h"
#include "render/render_internal.h"

#define DEEPEST 256u /* nesting of brackets that is followed */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
           (unsigned char)c >= 0x80;
}

static bool starts(const char *p, const char *end, const char *text)
{
    size_t n = strlen(text);
    return (size_t)(end - p) >= n && memcmp(p, text, n) == 0;
}

/* Bytes of "operator" with its symbol, so that its < and > are not taken for brackets; 0 if there is none. before: the
 * byte in front. */
static size_t operator_length(const char *p, const char *end, char before)
{
    static const char *const symbols[] = {
        "<<=", ">>=", "<=>", "->*", "<<", ">>", "<=", ">=", "->", "<", ">", "()", "[]"};
    if (is_word(before) || !starts(p, end, "operator")) {
        return 0;
    }
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        if (starts(p + 8, end, symbols[i])) {
            return 8 + strlen(symbols[i]);
        }
    }
    return 0;
}

/* The '>' that closes the '<' at p; NULL if there is none, or brackets are nested too deeply. */
static const char *closing(const char *p, const char *end)
{
    char open[DEEPEST];
    unsigned n = 0;
    for (const char *at = p; at < end; at++) {
        size_t length = at > p ? operator_length(at, end, at[-1]) : 0;
        if (length > 0) {
            at += length - 1;
        } else if (*at == '-' && at + 1 < end && at[1] == '>') {
            at++;
        } else if (*at == '<' || *at == '(' || *at == '[' || *at == '{') {
            if (n == DEEPEST) {
                return NULL;
            }
            open[n++] = *at;
        } else if (*at == ')' || *at == ']' || *at == '}') {
            char wanted = *at == ')' ? '(' : *at == ']' ? '[' : '{';
            if (n == 0 || open[--n] != wanted) {
                return NULL;
            }
        } else if (*at == '>' && n > 0 && open[n - 1] == '<' && --n == 0) {
            return at;
        }
    }
    return NULL;
}

/* End of the argument that starts at p: the comma at this level, or end. */
static const char *argument_end(const char *p, const char *end)
{
    while (p < end && *p != ',') {
        const char *close = *p == '<' ? closing(p, end) : NULL;
        if (!close && (*p == '(' || *p == '[' || *p == '{')) {
            unsigned depth = 0;
            for (close = p; close < end; close++) {
                depth += *close == '(' || *close == '[' || *close == '{';
                depth -= *close == ')' || *close == ']' || *close == '}';
                if (depth == 0) {
                    break;
                }
            }
        }
        p = close && close < end ? close + 1 : p + 1;
    }
    return p;
}

/* Where a std::basic_string of char or wchar_t with the usual arguments ends, and what it is called; NULL if there is
 * none. */
static const char *string_end(const char *p, const char *end, const char **name)
{
    static const struct {
        const char *text, *name;
    } forms[] = {{"std::basic_string<char, std::char_traits<char>, std::allocator<char> >", "std::string"},
                 {"std::basic_string<char, std::char_traits<char>, std::allocator<char>>", "std::string"},
                 {"std::basic_string<wchar_t, std::char_traits<wchar_t>, std::allocator<wchar_t> >", "std::wstring"},
                 {"std::basic_string<wchar_t, std::char_traits<wchar_t>, std::allocator<wchar_t>>", "std::wstring"}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const char *q = p, *f = forms[i].text;
        while (*f != '\0' && q < end) {
            if (starts(q, end, "std::") && strncmp(f, "std::", 5) == 0) {
                q += 5;
                f += 5;
                q += starts(q, end, "__cxx11::") ? 9 : starts(q, end, "__1::") ? 5 : 0;
            } else if (*q == *f) {
                q++;
                f++;
            } else {
                break;
            }
        }
        if (*f == '\0') {
            *name = forms[i].name;
            return q;
        }
    }
    return NULL;
}

/* The text between p and end with its template arguments shortened, and without arguments that are allocators. */
static void add_part(struct buffer *out, const char *p, const char *end, unsigned depth, unsigned nesting)
{
    const char *start = p;
    while (p < end) {
        const char *name, *close;
        char before = p > start ? p[-1] : ' ';
        size_t length = operator_length(p, end, before);
        if (length > 0) {
            buffer_add(out, p, length);
            p += length;
            if (p + 1 < end && *p == ' ' && p[1] == '<') { /* arguments of an operator template */
                buffer_add_char(out, *p++);
            }
            before = 'x';
        } else if (!is_word(before) && (close = string_end(p, end, &name)) != NULL) {
            buffer_add_text(out, name);
            p = close;
            continue;
        } else if (!is_word(before) && (starts(p, end, "std::__cxx11::") || starts(p, end, "std::__1::"))) {
            buffer_add_text(out, "std::");
            p += starts(p, end, "std::__1::") ? 10 : 14;
            continue;
        }
        if (length == 0 && (*p != '<' || !is_word(before))) {
            buffer_add_char(out, *p++);
            continue;
        }
        if (p == end || *p != '<') {
            continue;
        }

        close = closing(p, end);
        if (!close) { /* and so would every later search end */
            buffer_add(out, p, (size_t)(end - p));
            return;
        }
        if (close == p + 1) {
            buffer_add_text(out, "<>");
        } else if (depth == 0 || nesting == DEEPEST) {
            buffer_add_text(out, "<…>");
        } else {
            const char *last = close[-1] == ' ' ? close - 1 : close, *stop;
            buffer_add_char(out, '<');
            for (const char *at = p + 1; at < last; at = stop + 1) {
                const char *text = at;
                stop = argument_end(at, last);
                while (text < stop && *text == ' ') {
                    text++;
                }
                if (at == p + 1 || !starts(text, stop, "std::allocator<")) {
                    buffer_add_text(out, at == p + 1 ? "" : ", ");
                    add_part(out, text, stop, depth - 1, nesting + 1);
                }
            }
            buffer_add_char(out, '>');
        }
        p = close + 1;
    }
}

void name_add_short(struct buffer *out, const char *name, unsigned depth)
{
    if (depth >= NAME_SHORT_WHOLE) {
        buffer_add_text(out, name);
    } else {
        add_part(out, name, name + strlen(name), depth, 0);
    }
}

struct short_name {
    const char *whole, *text;
    uint32_t position, depth;
};

static int compare_texts(const void *left, const void *right)
{
    const struct short_name *a = left, *b = right;
    int by_text = strcmp(a->text, b->text);
    return by_text != 0 ? by_text : strcmp(a->whole, b->whole);
}

static void shorten(struct arena *a, struct short_name *n)
{
    struct buffer b;
    struct arena_deferred deferred;
    buffer_init(&b, 4 * strlen(n->whole) + 64);
    arena_defer(a, &deferred, buffer_release, &b);
    name_add_short(&b, n->whole, n->depth);
    bool same = b.failed || (b.size == strlen(n->whole) && memcmp(b.data, n->whole, b.size) == 0);
    n->text = same ? n->whole : arena_copy(a, b.data, b.size);
    arena_undefer(a, &deferred);
}

const char **name_short_list(const char *const *whole, const bool *cplusplus, uint32_t n, struct arena *a)
{
    const char **out = ARENA_ARRAY(a, (size_t)n + 1, const char *);
    struct short_name *names = ARENA_ARRAY(a, (size_t)n + 1, struct short_name);
    for (uint32_t i = 0; i < n; i++) {
        names[i] = (struct short_name){whole[i], whole[i], i, cplusplus[i] ? 0 : NAME_SHORT_WHOLE};
        if (cplusplus[i]) {
            shorten(a, &names[i]);
        }
    }

    /* Different names of one text get one level more, until there are none. */
    for (bool again = true; again;) {
        again = false;
        qsort(names, n, sizeof *names, compare_texts);
        for (uint32_t low = 0, high; low < n; low = high) {
            for (high = low + 1; high < n && strcmp(names[low].text, names[high].text) == 0; high++) {
            }
            bool differ = strcmp(names[low].whole, names[high - 1].whole) != 0; /* sorted by whole within a text */
            for (uint32_t i = low; differ && i < high; i++) {
                if (names[i].depth < NAME_SHORT_WHOLE) {
                    names[i].depth++;
                    again = true;
                    shorten(a, &names[i]);
                }
            }
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        out[names[i].position] = names[i].text;
    }
    return out;
}

const char **name_short_functions(const struct report *report, struct arena *a)
{
    uint32_t n = report->function_count;
    const char **whole = ARENA_ARRAY(a, (size_t)n + 1, const char *);
    bool *cplusplus = ARENA_ARRAY(a, (size_t)n + 1, bool);
    for (uint32_t i = 0; i < n; i++) {
        whole[i] = report->functions[i].name;
        cplusplus[i] = report->functions[i].raw && strncmp(report->functions[i].raw, "_Z", 2) == 0;
    }
    return name_short_list(whole, cplusplus, n, a);
}

/* Bytes from the start of text that may go out as they are. */
static size_t safe_run(const uint8_t *p, size_t n)
{
    size_t i = 0;
    while (i < n) {
        if (p[i] >= 0x20 && p[i] < 0x7f) {
            i++;
            continue;
        }
        size_t length = p[i] < 0x80 ? 0 : utf8_length(p + i, n - i);
        if (length == 0 || utf8_unseen(utf8_decode(p + i, length))) {
            break;
        }
        i += length;
    }
    return i;
}

void name_add_safe(struct buffer *out, const char *text)
{
    const uint8_t *p = (const uint8_t *)text;
    size_t n = strlen(text);
    while (n > 0) {
        size_t run = safe_run(p, n);
        buffer_add(out, p, run);
        p += run;
        n -= run;
        if (n == 0) {
            return;
        }
        char shown[UTF8_ESCAPE_SIZE];
        size_t length;
        buffer_add(out, shown, utf8_escape(p, n, shown, &length));
        p += length;
        n -= length;
    }
}

const char *name_make_safe(struct arena *a, const char *text)
{
    size_t n = strlen(text);
    if (safe_run((const uint8_t *)text, n) == n) {
        return text;
    }
    struct buffer b;
    buffer_init_arena(&b, a);
    name_add_safe(&b, text);
    buffer_add_char(&b, '\0');
    return b.data;
}

const char *name_find_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] != '\0' ? slash + 1 : path;
}

void name_list_make(const struct report *report, bool is_short, struct arena *a, struct name_list *out)
{
    const uint32_t n = report->function_count;
    size_t slot_count = 16; /* a power of two of cells, more than 2 × n */
    while (slot_count < 2 * (size_t)n + 1) {
        slot_count *= 2;
    }
    const char **text = ARENA_ARRAY(a, (size_t)n + 1, const char *);
    uint32_t *length = ARENA_ARRAY(a, (size_t)n + 1, uint32_t);
    uint32_t *slots = ARENA_ARRAY(a, slot_count, uint32_t);
    bool *equal = ARENA_ARRAY(a, (size_t)n + 1, bool);
    const struct table t = {slots, (uint32_t)(slot_count - 1), n, 0};
    const char *const *shorts = is_short ? name_short_functions(report, a) : NULL;
    for (uint32_t i = 0; i < n; i++) {
        text[i] = name_make_safe(a, shorts ? shorts[i] : report->functions[i].name);
    }

    /* Two rounds: equal names get their file or build, and those that are still equal their address. */
    for (int round = 0; round < 2; round++) {
        memset(slots, 0, slot_count * sizeof *slots);
        for (uint32_t i = 0; i < n; i++) {
            uint32_t at = table_slot(&t, table_hash_text(text[i], '\0', (uintptr_t)slots));
            while (slots[at] != 0 && strcmp(text[slots[at] - 1], text[i]) != 0) {
                at = (at + 1) & t.mask;
            }
            if (slots[at] == 0) {
                slots[at] = i + 1;
            }
            equal[i] = slots[at] != i + 1;
            equal[slots[at] - 1] |= equal[i];
        }
        for (uint32_t i = 0; i < n; i++) {
            const struct report_function *f = &report->functions[i];
            const char *where = f->file && f->file[0] != '\0' ? f->file : NULL;
            if (!where && report->build_count > 1 && f->build < report->build_count) {
                where = report->build_names[f->build];
            }
            if (equal[i] && round == 1) {
                text[i] = arena_format(a, "%s [0x%" PRIx64 "]", text[i], f->address);
            } else if (equal[i] && where) {
                text[i] = arena_format(a, "%s (%s)", text[i], name_make_safe(a, name_find_base(where)));
            }
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        length[i] = (uint32_t)strlen(text[i]);
    }
    *out = (struct name_list){text, length};
}
