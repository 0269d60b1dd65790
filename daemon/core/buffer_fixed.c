#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/buffer.h"
#include "core/buffer_number.h"

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

/* Digits of an integer, with a decimal point before the last `places` ones; they end before end. */
static char *fixed_digits(char *end, uint64_t scaled, unsigned places)
{
    uint64_t below = scaled % fixed_power[places];
    if (places == 0) {
        return buffer_digits(end, scaled);
    }
    if (places == 2) {
        *--end = (char)('0' + below % 10);
    }
    *--end = (char)('0' + (places == 2 ? below / 10 : below));
    *--end = '.';
    return buffer_digits(end, scaled / fixed_power[places]);
}

/* Writes value so that it ends before end, which has BUFFER_FIXED_MOST bytes before it; returns its first byte. */
static char *fixed_write(char *end, double value, unsigned places)
{
    char *first = end;
    uint64_t scaled;
    if (fixed_scale(value, places, &scaled)) {
        return fixed_digits(end, scaled, places);
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
