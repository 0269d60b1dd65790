/* Fields of the kernel's text files. */
#ifndef PROFD_CLIENT_RECORD_SCAN_H
#define PROFD_CLIENT_RECORD_SCAN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Reads a number of that base (16: with or without 0x) that stands at *at, perhaps behind spaces, and moves *at behind
 * it. False: there is none; *at and *out are unchanged. */
static inline bool scan_number(const char **at, int base, uint64_t *out)
{
    char *end;
    const unsigned long long n = strtoull(*at, &end, base);
    if (end == *at) {
        return false;
    }
    *at = end;
    *out = n;
    return true;
}

/* Moves *at behind the character c if it stands there. */
static inline bool scan_skip(const char **at, char c)
{
    if (**at != c) {
        return false;
    }
    ++*at;
    return true;
}

/* Copies the word at *at, behind spaces, and moves *at behind it. False: there is none, or it does not fit. */
static inline bool scan_word(const char **at, char *out, size_t size)
{
    const char *p = *at;
    size_t n = 0;
    while (*p == ' ' || *p == '\t') {
        p++;
    }
    while (p[n] && p[n] != ' ' && p[n] != '\t' && p[n] != '\n' && n < size) {
        out[n] = p[n];
        n++;
    }
    if (n == 0 || n == size) {
        return false;
    }
    out[n] = '\0';
    *at = p + n;
    return true;
}

#endif
