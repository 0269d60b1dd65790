#include "core/buffer_number.h"

#include <string.h>

#include "core/buffer.h"

static const char buffer_pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
                                   "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
                                   "8081828384858687888990919293949596979899";

struct buffer_parts buffer_split(double value)
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

char *buffer_digits(char *end, uint64_t value)
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

void buffer_add_padded(struct buffer *b, const char *text, size_t n, int width)
{
    size_t field = width < 0 ? 0 - (size_t)width : (size_t)width;
    size_t pad = field > n ? field - n : 0;
    char *room = n + pad < n ? NULL : buffer_room(b, n + pad);
    if (room == NULL) {
        return;
    }
    memset(width < 0 ? room + n : room, ' ', pad);
    memcpy(width < 0 ? room : room + pad, text, n);
}

void buffer_add_u64(struct buffer *b, uint64_t value, int width)
{
    char digits[20];
    char *first = buffer_digits(digits + sizeof digits, value);
    buffer_add_padded(b, first, (size_t)(digits + sizeof digits - first), width);
}
