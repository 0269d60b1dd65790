/* Names come from strangers, and terminals obey control characters. */
#ifndef PROFD_CLIENT_TERMINAL_H
#define PROFD_CLIENT_TERMINAL_H

#include <stddef.h>

/* A stream of text on its way to a terminal. Zeroed it is ready. */
struct terminal_filter {
    unsigned char held[4]; /* the beginning of a character that is not yet whole */
    size_t held_count;
};

/* Copies n bytes to out (room n + 3), C0 (but newline and tab), DEL, C1 and bidirectional controls as '?'; returns
 * bytes written. With n = 0 at the end of the stream what was held is written. Any way of cutting the stream gives the
 * same. O(n). */
size_t terminal_filter_run(struct terminal_filter *f, const void *bytes, size_t n, char *out);

#endif
