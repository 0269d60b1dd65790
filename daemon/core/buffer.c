#include "core/buffer.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"

void buffer_init(struct buffer *b, size_t limit)
{
    *b = (struct buffer){.limit = limit};
}

void buffer_init_arena(struct buffer *b, struct arena *a)
{
    *b = (struct buffer){.limit = SIZE_MAX / 2, .arena = a};
}

void buffer_done(struct buffer *b)
{
    free(b->data);
    *b = (struct buffer){.limit = b->limit};
}

void buffer_release(void *b)
{
    buffer_done(b);
}

void buffer_init_drained(struct buffer *b, size_t block, buffer_drain *drain, void *context)
{
    *b = (struct buffer){.limit = SIZE_MAX / 2, .drain = drain, .context = context};
    b->data = malloc(block);
    b->failed = b->data == NULL;
    b->capacity = b->failed ? 0 : block;
}

bool buffer_flush(struct buffer *b)
{
    if (b->failed || b->drain == NULL || b->size == 0) {
        return !b->failed;
    }
    b->failed = !b->drain(b->context, b->data, b->size);
    b->drained += b->size;
    b->size = 0;
    return !b->failed;
}

static bool buffer_grow(struct buffer *b, size_t n)
{
    if (b->drain != NULL && (!buffer_flush(b) || n <= b->capacity)) {
        return !b->failed;
    }
    if (b->size > b->limit || n > b->limit - b->size) {
        b->failed = true;
        return false;
    }
    size_t capacity = b->capacity < 256 ? 256 : b->capacity;
    while (capacity - b->size < n) {
        capacity = capacity > SIZE_MAX / 2 ? SIZE_MAX : capacity * 2;
    }
    capacity = capacity > b->limit ? b->limit : capacity;
    char *data = b->arena ? arena_take(b->arena, capacity) : realloc(b->data, capacity == 0 ? 1 : capacity);
    if (data && b->arena && b->size > 0) {
        memcpy(data, b->data, b->size);
    }
    if (data == NULL) {
        b->failed = true;
        return false;
    }
    b->data = data;
    b->capacity = capacity;
    return true;
}

char *buffer_open(struct buffer *b, size_t n)
{
    if (b->failed || (b->capacity - b->size < n && !buffer_grow(b, n))) {
        return NULL;
    }
    return b->data == NULL && !buffer_grow(b, n) ? NULL : b->data + b->size;
}

char *buffer_extend(struct buffer *b, size_t n)
{
    char *added = buffer_open(b, n);
    if (added != NULL) {
        b->size += n;
    }
    return added;
}

void buffer_add(struct buffer *b, const void *bytes, size_t n)
{
    char *added = n == 0 ? NULL : buffer_extend(b, n);
    if (added != NULL) {
        memcpy(added, bytes, n);
    }
}

void buffer_add_text(struct buffer *b, const char *text)
{
    buffer_add(b, text, strlen(text));
}

void buffer_add_char(struct buffer *b, char c)
{
    buffer_add(b, &c, 1);
}

void buffer_add_repeat(struct buffer *b, char c, size_t n)
{
    char *added = n == 0 ? NULL : buffer_extend(b, n);
    if (added != NULL) {
        memset(added, c, n);
    }
}

void buffer_add_format(struct buffer *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0) {
        b->failed = true;
        return;
    }
    /* One byte more for vsnprintf's NUL, which is then given back. */
    char *added = buffer_extend(b, (size_t)n + 1);
    if (added == NULL) {
        return;
    }
    va_start(args, format);
    vsnprintf(added, (size_t)n + 1, format, args);
    va_end(args);
    b->size--;
}

static const char buffer_pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
                                   "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
                                   "8081828384858687888990919293949596979899";

__extension__ typedef unsigned __int128 buffer_u128;

/* A finite double is mantissa × 2^exponent exactly. */
struct buffer_parts {
    uint64_t mantissa;
    int exponent;
};

/* Splits the magnitude of a finite value; its sign is ignored. */
static struct buffer_parts buffer_split(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
    int exponent = (int)(bits >> 52 & 0x7ff);
    if (exponent == 0) { /* zero and subnormal */
        return (struct buffer_parts){fraction, -1074};
    }
    return (struct buffer_parts){fraction | UINT64_C(1) << 52, exponent - 1075};
}

/* Writes value in decimal so that it ends before end; returns its first digit. At most 20 bytes. */
static char *buffer_digits(char *end, uint64_t value)
{
    while (value >= 100) {
        end -= 2;
        memcpy(end, buffer_pairs + 2 * (value % 100), 2);
        value /= 100;
    }
    if (value >= 10) {
        end -= 2;
        memcpy(end, buffer_pairs + 2 * value, 2);
    } else {
        *--end = (char)('0' + value);
    }
    return end;
}

char *buffer_put_u64(char *p, uint64_t value, unsigned width)
{
    char digits[40];
    char *end = digits + sizeof digits, *first = buffer_digits(end, value);
    while (first > end - width) {
        *--first = ' ';
    }
    size_t n = (size_t)(end - first);
    memcpy(p, first, n);
    return p + n;
}

/* Adds n bytes in a field of that width: right-aligned, left-aligned if it is negative. */
static void buffer_add_padded(struct buffer *b, const char *text, size_t n, int width)
{
    size_t field = width < 0 ? 0 - (size_t)width : (size_t)width;
    size_t pad = field > n ? field - n : 0;
    char *added = n + pad < n ? NULL : buffer_extend(b, n + pad);
    if (added == NULL) {
        return;
    }
    memset(width < 0 ? added + n : added, ' ', pad);
    memcpy(width < 0 ? added : added + pad, text, n);
}

void buffer_add_u64(struct buffer *b, uint64_t value, int width)
{
    char digits[20];
    char *first = buffer_digits(digits + sizeof digits, value);
    buffer_add_padded(b, first, (size_t)(digits + sizeof digits - first), width);
}

static const uint64_t fixed_power[10] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000};

/* Digits of mantissa × 2^exponent, exponent ≥ 11: up to 309 of them, by repeated division of a large integer by 10^9.
 */
static char *fixed_digits_huge(char *end, struct buffer_parts p)
{
    uint32_t limbs[34] = {0};
    size_t at = (size_t)p.exponent / 32;
    buffer_u128 shifted = (buffer_u128)p.mantissa << ((unsigned)p.exponent % 32);
    for (size_t i = 0; i < 3; i++) {
        limbs[at + i] = (uint32_t)(shifted >> (32 * i));
    }
    size_t n = at + 3;
    for (;;) {
        uint64_t rest = 0;
        for (size_t i = n; i-- > 0;) {
            uint64_t part = rest << 32 | limbs[i];
            limbs[i] = (uint32_t)(part / 1000000000u);
            rest = part % 1000000000u;
        }
        while (n > 0 && limbs[n - 1] == 0) {
            n--;
        }
        char *first = buffer_digits(end, rest);
        if (n == 0) {
            return first;
        }
        end -= 9;
        if (first > end) {
            memset(end, '0', (size_t)(first - end));
        }
    }
}

/* Splits below 2^63 into whole and the decimals as an integer, rounded half to even on the exact binary value. */
static uint64_t fixed_round(struct buffer_parts p, unsigned decimals, uint64_t *whole)
{
    if (p.exponent >= 0) {
        *whole = p.mantissa << p.exponent;
        return 0;
    }
    unsigned shift = (unsigned)-p.exponent;
    if (shift > 127) { /* below 2^-74: rounds to zero in nine decimals */
        *whole = 0;
        return 0;
    }
    uint64_t below = shift < 64 ? p.mantissa & ((UINT64_C(1) << shift) - 1) : p.mantissa;
    *whole = shift < 64 ? p.mantissa >> shift : 0;
    buffer_u128 scaled = (buffer_u128)below * fixed_power[decimals];
    uint64_t fraction = (uint64_t)(scaled >> shift);
    buffer_u128 rest = scaled & (((buffer_u128)1 << shift) - 1);
    buffer_u128 half = (buffer_u128)1 << (shift - 1);
    bool odd = ((decimals == 0 ? *whole : fraction) & 1) != 0;
    if (rest > half || (rest == half && odd)) {
        fraction++;
    }
    if (fraction == fixed_power[decimals]) {
        ++*whole;
        fraction = 0;
    }
    return fraction;
}

/* value × 10^places, places ≤ 2, as an integer; false if the product of two doubles does not determine the rounding. */
static bool fixed_scale(double value, unsigned places, uint64_t *out)
{
    if (places > 2 || !(value >= 0.0 && value < 1e9) || signbit(value)) {
        return false;
    }
    double scaled = value * (double)fixed_power[places]; /* off by less than 10^11 × 2^-53 < 0.0001 */
    uint64_t whole = (uint64_t)scaled;
    double rest = scaled - (double)whole;
    *out = whole + (rest > 0.5);
    return rest < 0.499 || rest > 0.501;
}

/* Writes value so that it ends before end, which has BUFFER_FIXED_MOST bytes before it; returns its first byte. */
static char *fixed_write(char *end, double value, unsigned places)
{
    char *first = end;
    uint64_t scaled;
    if (fixed_scale(value, places, &scaled)) { /* at most two places */
        const uint64_t below = scaled % fixed_power[places];
        if (places == 2) {
            *--first = (char)('0' + below % 10);
        }
        if (places > 0) {
            *--first = (char)('0' + (places == 2 ? below / 10 : below));
            *--first = '.';
        }
        return buffer_digits(first, scaled / fixed_power[places]);
    }
    if (!isfinite(value)) {
        first -= 3;
        memcpy(first, isnan(value) ? "nan" : "inf", 3);
    } else {
        struct buffer_parts p = buffer_split(value);
        uint64_t whole = 0;
        uint64_t fraction = p.exponent > 10 ? 0 : fixed_round(p, places, &whole);
        if (places > 0) {
            char *point = end - places - 1;
            first = buffer_digits(end, fraction);
            while (first > point + 1) {
                *--first = '0';
            }
            first = point;
            *first = '.';
        }
        first = p.exponent > 10 ? fixed_digits_huge(first, p) : buffer_digits(first, whole);
    }
    if (signbit(value)) {
        *--first = '-';
    }
    return first;
}

void buffer_add_fixed(struct buffer *b, double value, int width, int decimals)
{
    char text[BUFFER_FIXED_MOST];
    char *end = text + sizeof text;
    char *first = fixed_write(end, value, decimals < 0 ? 0 : decimals > 9 ? 9 : (unsigned)decimals);
    buffer_add_padded(b, first, (size_t)(end - first), width);
}

char *buffer_put_fixed(char *p, double value, unsigned width, unsigned decimals)
{
    char text[BUFFER_FIXED_MOST];
    char *end = text + sizeof text;
    char *first = fixed_write(end, value, decimals > 9 ? 9 : decimals);
    while (first > end - width) {
        *--first = ' ';
    }
    size_t n = (size_t)(end - first);
    memcpy(p, first, n);
    return p + n;
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
    buffer_u128 power = 1;                       /* 10^k, k ≤ 22, exactly */
    for (unsigned i = 0; i < k; i++) {
        power *= 10;
    }
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
            /* Magnitudes outside 10^-6 … 2^52. If n digits suffice, n + 1 do: search for the least n by halves. */
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
            return;
        }
        uint64_t digits;
        unsigned places;
        shortest_search(p, magnitude, &digits, &places);
        shortest_add_decimal(b, signbit(value) != 0, digits, places);
    }
}
