/* Reads words and numbers from one line of text with any bytes. Pure. */
#ifndef PROFD_CLIENT_IMPORT_SCAN_H
#define PROFD_CLIENT_IMPORT_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* [at, end) is the rest of the line. */
struct import_scan {
    const char *at, *end;
};

static inline struct import_scan import_scan_of(const char *text, size_t n)
{
    return (struct import_scan){text, text + n};
}

static inline size_t import_scan_left(const struct import_scan *s)
{
    return (size_t)(s->end - s->at);
}

static inline void import_scan_blanks(struct import_scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t')) {
        s->at++;
    }
}

/* Blanks at both ends go. */
static inline void import_scan_trim(struct import_scan *s)
{
    import_scan_blanks(s);
    while (s->at < s->end && (s->end[-1] == ' ' || s->end[-1] == '\t')) {
        s->end--;
    }
}

static inline bool import_scan_is(const struct import_scan *s, const char *word)
{
    size_t n = strlen(word);
    return import_scan_left(s) == n && memcmp(s->at, word, n) == 0;
}

static inline bool import_scan_begins(const struct import_scan *s, const char *word)
{
    size_t n = strlen(word);
    return import_scan_left(s) >= n && memcmp(s->at, word, n) == 0;
}

/* Skips a word at the beginning; false if it is not there. */
static inline bool import_scan_skip(struct import_scan *s, const char *word)
{
    bool begins = import_scan_begins(s, word);
    s->at += begins ? strlen(word) : 0;
    return begins;
}

/* Reads the next word up to a blank, after blanks; empty at the end. */
static inline struct import_scan import_scan_word(struct import_scan *s)
{
    import_scan_blanks(s);
    struct import_scan word = {s->at, s->at};
    while (s->at < s->end && *s->at != ' ' && *s->at != '\t') {
        s->at++;
    }
    word.end = s->at;
    return word;
}

static inline bool import_scan_digit(char c, unsigned base, unsigned *digit)
{
    *digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
             : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
             : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
                                    : 99;
    return *digit < base;
}

/* Reads a number of that base at the beginning, with at least one digit. False, and nothing is read, if there is none
 * or it exceeds 64 bits. */
static inline bool import_scan_number(struct import_scan *s, unsigned base, uint64_t *out)
{
    const char *at = s->at;
    uint64_t value = 0;
    unsigned digit;
    for (; at < s->end && import_scan_digit(*at, base, &digit); at++) {
        if (__builtin_mul_overflow(value, (uint64_t)base, &value) ||
            __builtin_add_overflow(value, (uint64_t)digit, &value)) {
            return false;
        }
    }
    if (at == s->at) {
        return false;
    }
    s->at = at;
    *out = value;
    return true;
}

/* Likewise, hexadecimal after "0x". */
static inline bool import_scan_any_number(struct import_scan *s, uint64_t *out)
{
    if (import_scan_begins(s, "0x")) {
        struct import_scan rest = {s->at + 2, s->end};
        if (!import_scan_number(&rest, 16, out)) {
            return false;
        }
        s->at = rest.at;
        return true;
    }
    return import_scan_number(s, 10, out);
}

/* Length for printf's "%.*s": as much of the rest as fits into a sentence. */
static inline int import_scan_shown(const struct import_scan *s)
{
    size_t n = import_scan_left(s);
    return n > 60 ? 60 : (int)n;
}

#endif
