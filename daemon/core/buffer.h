/* A growing run of bytes with a sticky failure: callers append freely and look once at the end.
 * Numbers are formatted here, exactly and without locale, because snprintf costs more than the whole report. */
#ifndef PROFD_CORE_BUFFER_H
#define PROFD_CORE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Takes the first n bytes of a buffer that is full; false: they cannot be taken, and the buffer has failed. */
typedef bool buffer_drain(void *context, const char *data, size_t n);

struct arena;

struct buffer {
    char *data; /* owned, or the arena's; not NUL-terminated */
    size_t size, capacity, limit;
    bool failed;         /* out of memory, limit reached or not drained: what follows was dropped */
    buffer_drain *drain; /* may be NULL */
    void *context;       /* its */
    uint64_t drained;    /* bytes that it took */
    struct arena *arena; /* NULL: none */
};

/* An empty buffer that refuses to grow beyond limit bytes. */
void buffer_init(struct buffer *b, size_t limit);
/* The same, but what fills a block goes to drain; the last bytes by buffer_flush. So output of any length needs one
 * block. */
void buffer_init_drained(struct buffer *b, size_t block, buffer_drain *drain, void *context);
/* Drains what is there. False, now and always after, if that failed. */
bool buffer_flush(struct buffer *b);
/* An empty buffer that lives in an arena: it needs no buffer_done. */
void buffer_init_arena(struct buffer *b, struct arena *a);
void buffer_done(struct buffer *b);
/* The same, as arena_defer takes it. */
void buffer_release(void *b);

void buffer_add(struct buffer *b, const void *bytes, size_t n);
void buffer_add_text(struct buffer *b, const char *text);
void buffer_add_char(struct buffer *b, char c);
void buffer_add_repeat(struct buffer *b, char c, size_t n);
/* Appends n bytes for the caller to fill in immediately; NULL (and failed) if there is no memory. */
char *buffer_extend(struct buffer *b, size_t n);
/* Reserves n bytes, for code that writes by itself; NULL (and failed) if there is no memory. buffer_close ends it. */
char *buffer_open(struct buffer *b, size_t n);
/* end: behind the last byte written since buffer_open. */
static inline void buffer_close(struct buffer *b, const char *end)
{
    b->size = (size_t)(end - b->data);
}
/* Left-aligned (width < 0) or right-aligned decimal, as %*llu. */
void buffer_add_u64(struct buffer *b, uint64_t value, int width);
/* As printf("%*.*f"): correctly rounded (half to even on the binary value), any double, infinities and NaN with sign as
 * glibc prints them. decimals 0–9. Same bytes as glibc for every value. */
void buffer_add_fixed(struct buffer *b, double value, int width, int decimals);
/* Shortest decimal that reads back as the same double, in JSON's syntax. NaN and infinities become null. */
void buffer_add_shortest(struct buffer *b, double value);
/* Anything else. */
void buffer_add_format(struct buffer *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* How numbers become digits, for code that writes into memory of its own. core/buffer.h has the same for buffers. */

/* Writes value at p, right-aligned in at least width bytes, width ≤ 20; returns the end. At most 20 bytes. */
char *buffer_put_u64(char *p, uint64_t value, unsigned width);

/* Likewise what buffer_add_fixed writes; at most BUFFER_FIXED_MOST bytes. */
#define BUFFER_FIXED_MOST 336
char *buffer_put_fixed(char *p, double value, unsigned width, unsigned decimals);

#endif
