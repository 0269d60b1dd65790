#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/buffer.h"
#include "core/buffer_number.h"

/* 10^k, k ≤ 22, exactly. */
static buffer_u128 shortest_power(unsigned k)
{
    buffer_u128 power = 1;
    while (k-- > 0) {
        power *= 10;
    }
    return power;
}

/* The shortest decimal between the halfway points to the adjacent doubles; of several, the nearest to the value. value
 * = mantissa × 2^exponent in [10^-6, 2^53), mantissa not a power of two (the gap below would be narrower). Afterwards
 * value ≈ *digits / 10^*places. */
static void shortest_search(struct buffer_parts p, double value, uint64_t *digits, unsigned *places)
{
    unsigned k = value >= 1e15 ? 1 : 16;
    for (double bound = 10; value < 1e15 && bound <= value; bound *= 10) {
        k--;
    }
    for (double bound = 1; bound > value && k < 22; bound /= 10) {
        k++;
    }
    unsigned shift = (unsigned)(1 - p.exponent); /* everything is doubled to have halves */
    buffer_u128 power = shortest_power(k);
    buffer_u128 middle = (buffer_u128)p.mantissa * 2 * power, low = middle - power, high = middle + power;
    buffer_u128 unit = (buffer_u128)1 << shift;
    bool open = (p.mantissa & 1) != 0; /* readers round half to even: odd ones do not own their borders */
    buffer_u128 from = (low + unit - 1) >> shift, to = high >> shift;
    if (open && (low & (unit - 1)) == 0) {
        from++;
    }
    if (open && (high & (unit - 1)) == 0) {
        to--;
    }
    uint64_t least = (uint64_t)from, most = (uint64_t)to, scale = 1;
    while ((least + 9) / 10 <= most / 10 && k > 0) {
        least = (least + 9) / 10;
        most /= 10;
        scale *= 10;
        k--;
    }
    /* Nearest candidate: round middle/2^shift to a multiple of scale, then keep it inside. */
    buffer_u128 step = unit * scale;
    buffer_u128 best = scale <= UINT64_C(1) << 40 ? (middle + step / 2) / step : least;
    *digits = best < least ? least : best > most ? most : (uint64_t)best;
    *places = k;
}

static void shortest_add_decimal(struct buffer *b, bool negative, uint64_t digits, unsigned places)
{
    char text[48];
    char *end = text + sizeof text;
    char *first = buffer_digits(end, digits);
    if (places > 0) {
        while (first > end - places - 1) {
            *--first = '0';
        }
        size_t whole = (size_t)(end - first) - places;
        memmove(first - 1, first, whole);
        first--;
        first[whole] = '.';
    }
    if (negative) {
        *--first = '-';
    }
    buffer_add(b, first, (size_t)(end - first));
}

/* Adds value with n digits and reads it back; profd never calls setlocale, so the radix is '.'. */
static double shortest_try(struct buffer *b, double value, int n)
{
    char text[40];
    size_t start = b->size;
    buffer_add_format(b, "%.*g", n, value);
    if (b->failed) {
        return 0;
    }
    size_t size = b->size - start < sizeof text ? b->size - start : sizeof text - 1;
    memcpy(text, b->data + start, size);
    text[size] = '\0';
    return strtod(text, NULL);
}

/* Magnitudes outside 10^-6 … 2^52. If n digits suffice, n + 1 do: search for the least n by halves. */
static void shortest_add_slow(struct buffer *b, double value)
{
    size_t start = b->size;
    int low = 1, high = 17;
    while (low < high && !b->failed) {
        int n = (low + high) / 2;
        if (shortest_try(b, value, n) == value) {
            high = n;
        } else {
            low = n + 1;
        }
        b->size = start;
    }
    buffer_add_format(b, "%.*g", low, value);
}

void buffer_add_shortest(struct buffer *b, double value)
{
    double magnitude = fabs(value);
    if (!isfinite(value)) {
        buffer_add_text(b, "null");
    } else if (magnitude < 9007199254740992.0 && floor(magnitude) == magnitude) {
        shortest_add_decimal(b, signbit(value) != 0, (uint64_t)magnitude, 0);
    } else {
        struct buffer_parts p = buffer_split(value);
        if (magnitude < 1e-6 || magnitude >= 4503599627370496.0 || p.mantissa == UINT64_C(1) << 52) {
            shortest_add_slow(b, value);
            return;
        }
        uint64_t digits;
        unsigned places;
        shortest_search(p, magnitude, &digits, &places);
        shortest_add_decimal(b, signbit(value) != 0, digits, places);
    }
}
