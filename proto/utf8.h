/* UTF-8 as RFC 3629 defines it: shortest form, no surrogates, up to U+10FFFF. */
#ifndef PROFD_PROTO_UTF8_H
#define PROFD_PROTO_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool utf8_continues(uint8_t byte)
{
    return (byte & 0xc0u) == 0x80u;
}

static inline size_t utf8_length_long(const uint8_t *t, size_t n)
{
    if (t[0] < 0xf0) {
        if (n < 3 || !utf8_continues(t[1]) || !utf8_continues(t[2])) {
            return 0;
        }
        if ((t[0] == 0xe0 && t[1] < 0xa0) || (t[0] == 0xed && t[1] > 0x9f)) {
            return 0;
        }
        return 3;
    }
    if (t[0] > 0xf4 || n < 4 || !utf8_continues(t[1]) || !utf8_continues(t[2]) || !utf8_continues(t[3])) {
        return 0;
    }
    if ((t[0] == 0xf0 && t[1] < 0x90) || (t[0] == 0xf4 && t[1] > 0x8f)) {
        return 0;
    }
    return 4;
}

/* Returns the bytes of the character that the text begins with (1–4); 0 if n is 0 or it is not valid. Calls no
 * function: the collector uses it. */
static inline size_t utf8_length(const uint8_t *text, size_t n)
{
    if (n == 0) {
        return 0;
    }
    if (text[0] < 0x80) {
        return 1;
    }
    if (text[0] < 0xc2) {
        return 0;
    }
    if (text[0] < 0xe0) {
        return n >= 2 && utf8_continues(text[1]) ? 2 : 0;
    }
    return utf8_length_long(text, n);
}

/* Returns whether all n bytes are valid characters other than NUL. O(n). */
bool utf8_valid(const uint8_t *text, size_t n);

/* Returns the code point of a valid character of length bytes. */
uint32_t utf8_decode(const uint8_t *text, size_t length);

/* Returns whether a reader does not see the character although a terminal obeys it, or it reorders text or makes two
 * names look the same: controls (C0, DEL, C1), the general categories Cf, Zl and Zp, and characters that are ignorable
 * by default (Unicode 15). */
bool utf8_unseen(uint32_t code);

#define UTF8_ESCAPE_SIZE 12
/* Writes a safe representation of the first character of untrusted text (n ≥ 1 bytes): the character itself, \xNN for
 * C0, DEL and bytes that are not UTF-8, or \u{NNNN} for other invisible characters. Returns the bytes written, without
 * a NUL; *taken is the number of bytes that it represents. At most 4 bytes are written for each byte taken. */
size_t utf8_escape(const uint8_t *text, size_t n, char out[UTF8_ESCAPE_SIZE], size_t *taken);

/* Makes untrusted NUL-terminated text safe for logs and terminals: bytes that are not UTF-8 and invisible characters
 * become '?', in place. O(n). */
void utf8_scrub(char *text);

#endif
