/* How numbers become digits; shared by the files that format them. */
#ifndef PROFD_CORE_BUFFER_NUMBER_H
#define PROFD_CORE_BUFFER_NUMBER_H

#include <stddef.h>
#include <stdint.h>

struct buffer;

__extension__ typedef unsigned __int128 buffer_u128;

/* A finite double is mantissa × 2^exponent exactly. */
struct buffer_parts {
    uint64_t mantissa;
    int exponent;
};

/* Splits the magnitude of a finite value; its sign is ignored. */
struct buffer_parts buffer_split(double value);

/* Writes value in decimal so that it ends before end; returns its first digit. At most 20 bytes. */
char *buffer_digits(char *end, uint64_t value);

/* Writes value at p, right-aligned in at least width bytes, width ≤ 20; returns the end. At most 20 bytes. */
char *buffer_put_u64(char *p, uint64_t value, unsigned width);

/* The same for what buffer_add_fixed writes. */
#define BUFFER_FIXED_MOST 336
char *buffer_put_fixed(char *p, double value, unsigned width, unsigned decimals);

/* Adds n bytes in a field of that width: right-aligned, left-aligned if it is negative. */
void buffer_add_padded(struct buffer *b, const char *text, size_t n, int width);

#endif
