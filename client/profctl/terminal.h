/* Names are untrusted, and terminals obey control characters. */
#ifndef PROFD_CLIENT_TERMINAL_H
#define PROFD_CLIENT_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

/* A stream of text on its way to a terminal. Zeroed it is ready. */
struct terminal_filter {
    bool one_line;         /* newlines, tabs and form feeds are escaped, too */
    unsigned char held[4]; /* the beginning of a character that is not yet whole */
    size_t held_count;
};

/* Bytes that are enough for what n bytes become. */
#define TERMINAL_BOUND(n) (4 * ((n) + 4))

/* Copies n bytes to out (TERMINAL_BOUND(n)) as utf8_escape shows them. Unless one_line, newlines and tabs stay, and
 * form feeds, which begin the pages of gprof's listing, are left out. Returns bytes written. With n = 0 at the end of
 * the stream what was held is written. Any way of cutting the stream gives the same. O(n). */
size_t terminal_filter_run(struct terminal_filter *f, const void *bytes, size_t n, char *out);

#endif
