/* A growing run of bytes with a sticky failure: callers append freely and look once at the end.
 * Numbers are formatted here, exactly and without locale, because snprintf costs more than the whole report. */
#ifndef PROFD_CORE_BUFFER_H
#define PROFD_CORE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buffer {
    char *data;      /* owned, not NUL-terminated */
    size_t size, capacity, limit;
    bool failed;     /* out of memory or limit reached: what follows was dropped */
};

/* An empty buffer that refuses to grow beyond limit bytes. */
void buffer_init(struct buffer *b, size_t limit);
void buffer_done(struct buffer *b);

void buffer_add(struct buffer *b, const void *bytes, size_t n);
void buffer_add_text(struct buffer *b, const char *text);
void buffer_add_char(struct buffer *b, char c);
void buffer_add_repeat(struct buffer *b, char c, size_t n);
/* Adds n bytes for the caller to fill in at once; NULL (and failed) when there is no room. */
char *buffer_room(struct buffer *b, size_t n);
/* Left-aligned (width < 0) or right-aligned decimal, as %*llu. */
void buffer_add_u64(struct buffer *b, uint64_t value, int width);
/* As printf("%*.*f"): correctly rounded (half to even on the binary value), any double, infinities and NaN with sign as
 * glibc prints them. decimals 0–9. Same bytes as glibc for every value. */
void buffer_add_fixed(struct buffer *b, double value, int width, int decimals);
/* Shortest decimal that reads back as the same double, in JSON's syntax. NaN and infinities become null. */
void buffer_add_shortest(struct buffer *b, double value);
/* Anything else. */
void buffer_add_format(struct buffer *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
