/* Numbers against the C library, byte for byte, over millions of values. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/buffer.h"
#include "tests/rounds.h"

static uint64_t state = 88172645463325252u;

static uint64_t next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void check_fixed(struct buffer *b, double v, int width, int decimals)
{
    char want[512];
    b->size = 0;
    buffer_add_fixed(b, v, width, decimals);
    int n = snprintf(want, sizeof want, "%*.*f", width, decimals, v);
    cr_assert(!b->failed && (size_t)n == b->size && memcmp(want, b->data, b->size) == 0, "%a %%%d.%df: '%s' but '%.*s'",
              v, width, decimals, want, (int)b->size, b->data);
}

static double any_double(void)
{
    uint64_t bits = next();
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static const double corners[] = {0.0,
                                 -0.0,
                                 0.125,
                                 0.375,
                                 0.475,
                                 0.5,
                                 1.5,
                                 2.5,
                                 0.005,
                                 0.015,
                                 0.025,
                                 1e15,
                                 1e16,
                                 1e17,
                                 1e18,
                                 9e18,
                                 9.3e18,
                                 1e22,
                                 1e23,
                                 1e300,
                                 DBL_MAX,
                                 -DBL_MAX,
                                 DBL_MIN,
                                 DBL_TRUE_MIN,
                                 -DBL_TRUE_MIN,
                                 INFINITY,
                                 -INFINITY,
                                 NAN,
                                 -NAN,
                                 4503599627370495.5,
                                 4503599627370496.5,
                                 9007199254740991.0,
                                 9007199254740993.0,
                                 0.9999999999,
                                 9.995,
                                 99.995,
                                 999999.5,
                                 9223372036854775807.0,
                                 18446744073709551616.0,
                                 1.0 / 3,
                                 2.0 / 3,
                                 0.1,
                                 0.01,
                                 0.001,
                                 123456789.123456789,
                                 5e-10,
                                 4.9e-10};

Test(buffer, fixed_is_printf)
{
    struct buffer b;
    buffer_init(&b, 1 << 20);
    for (size_t i = 0; i < sizeof corners / sizeof *corners; i++) {
        for (int decimals = 0; decimals <= 9; decimals++) {
            for (int width = -25; width <= 25; width += 5) {
                check_fixed(&b, corners[i], width, decimals);
            }
        }
    }
    for (uint32_t i = 0; i < rounds(40000); i++) {
        int decimals = (int)(next() % 10), width = (int)(next() % 24) - 8;
        check_fixed(&b, any_double(), width, decimals);
        check_fixed(&b, (double)(next() % 100000000) / 100.0, width, decimals);
        check_fixed(&b, (double)(next() % 1000000) / 1024.0, width, decimals); /* ties */
        check_fixed(&b, (double)(int64_t)next() / (double)(1u << (next() % 31)), width, decimals);
        check_fixed(&b, ldexp((double)(next() >> 11), -(int)(next() % 140)), width, decimals);
    }
    buffer_done(&b);
}

Test(buffer, u64_is_printf)
{
    struct buffer b;
    buffer_init(&b, 1 << 20);
    for (uint32_t i = 0; i < rounds(40000); i++) {
        char want[64];
        uint64_t v = next() >> (next() % 64);
        int width = (int)(next() % 50) - 25;
        int n = snprintf(want, sizeof want, "%*llu", width, (unsigned long long)v);
        b.size = 0;
        buffer_add_u64(&b, v, width);
        cr_assert((size_t)n == b.size && memcmp(want, b.data, b.size) == 0, "%llu", (unsigned long long)v);
    }
    buffer_done(&b);
}

/* Digits that count: without sign, leading zeros, point, trailing zeros of an integer, exponent. */
static size_t significant(const char *text)
{
    size_t n = 0, zeros = 0;
    for (; *text != '\0' && *text != 'e'; text++) {
        if (*text == '-' || *text == '.' || (*text == '0' && n == 0)) {
            continue;
        }
        zeros = *text == '0' ? zeros + 1 : 0;
        n++;
    }
    return n - zeros;
}

static void check_shortest(struct buffer *b, double v)
{
    char got[64], shorter[64];
    b->size = 0;
    buffer_add_shortest(b, v);
    cr_assert_lt(b->size, sizeof got);
    memcpy(got, b->data, b->size);
    got[b->size] = '\0';
    char *end;
    double back = strtod(got, &end);
    cr_assert(*end == '\0' && memcmp(&back, &v, sizeof v) == 0, "%a printed as %s", v, got);
    cr_assert_neq(got[got[0] == '-'], '.', "%s", got);
    size_t digits = significant(got);
    if (digits > 1) {
        snprintf(shorter, sizeof shorter, "%.*e", (int)digits - 2, v);
        cr_assert(strtod(shorter, NULL) != v, "%s is shorter than %s", shorter, got);
    }
    if (digits <= 17 && digits > 0) { /* and among the shortest no other is nearer */
        snprintf(shorter, sizeof shorter, "%.*e", (int)digits - 1, v);
        cr_assert(fabsl(strtold(got, NULL) - (long double)v) <=
                      fabsl(strtold(shorter, NULL) - (long double)v) * 1.0000001L,
                  "%s is nearer than %s", shorter, got);
    }
}

Test(buffer, shortest_reads_back_and_is_shortest)
{
    struct buffer b;
    buffer_init(&b, 1 << 20);
    for (size_t i = 0; i < sizeof corners / sizeof *corners; i++) {
        if (isfinite(corners[i])) {
            check_shortest(&b, corners[i]);
        }
    }
    for (uint32_t i = 0; i < rounds(10000); i++) {
        double v = any_double();
        if (isfinite(v)) {
            check_shortest(&b, v);
        }
        check_shortest(&b, (double)(next() % 100000000) / 100.0);
        check_shortest(&b, (double)(next() >> 11) / (double)(next() % 1000 + 1));
        check_shortest(&b, (double)next() / 18446744073709551616.0 * 1e-5);
        check_shortest(&b, ldexp(1.0, (int)(next() % 2000) - 1000));
        check_shortest(&b, nextafter(4503599627370496.0, 0) - (double)(next() % 100) / 2);
    }
    buffer_done(&b);
}

Test(buffer, not_a_number_is_null)
{
    struct buffer b;
    buffer_init(&b, 100);
    buffer_add_shortest(&b, NAN);
    buffer_add_shortest(&b, -INFINITY);
    buffer_add_shortest(&b, 1.77);
    cr_assert(b.size == 12 && memcmp(b.data, "nullnull1.77", 12) == 0);
    buffer_done(&b);
}

Test(buffer, limit_is_sticky)
{
    struct buffer b;
    buffer_init(&b, 1000);
    buffer_add_repeat(&b, 'x', 999);
    cr_assert(!b.failed);
    buffer_add_text(&b, "ab");
    cr_assert(b.failed && b.size == 999, "nothing half done");
    buffer_add_char(&b, 'c');
    buffer_add_format(&b, "%d", 7);
    buffer_add_shortest(&b, 1e-300);
    buffer_add_fixed(&b, 1.0, 5, 2);
    cr_assert(b.size == 999, "what follows is dropped");
    buffer_done(&b);
    buffer_init(&b, 0);
    buffer_add(&b, "", 0);
    cr_assert(!b.failed);
    buffer_add_u64(&b, 1, 0);
    cr_assert(b.failed);
    buffer_done(&b);
}

/* What a drain has taken so far. */
struct taken {
    char bytes[200000];
    size_t size, most; /* bytes that fit */
};

static bool take(void *context, const char *data, size_t n)
{
    struct taken *t = context;
    if (n > t->most - t->size) {
        return false;
    }
    memcpy(t->bytes + t->size, data, n);
    t->size += n;
    return true;
}

/* The same bytes as without a drain, whatever the block; a drain that fails is not asked again. */
Test(buffer, drained)
{
    static struct taken t;
    for (size_t block = 1; block < 3000; block = block * 3 + 1) {
        struct buffer whole, b;
        t = (struct taken){.most = sizeof t.bytes};
        buffer_init(&whole, 1 << 20);
        buffer_init_drained(&b, block, take, &t);
        for (int i = 0; i < 3000; i++) {
            uint64_t x = next();
            struct buffer *const both[] = {&whole, &b};
            for (unsigned k = 0; k < 2; k++) {
                buffer_add_u64(both[k], x >> x % 64, (int)(x % 20));
                buffer_add_format(both[k], "%x,", (unsigned)x);
                char *p = buffer_open(both[k], 40);
                cr_assert_not_null(p);
                buffer_close(both[k], p + snprintf(p, 40, "%d", i));
            }
        }
        cr_assert(buffer_flush(&b) && b.size == 0 && b.drained == whole.size);
        cr_assert(t.size == whole.size && memcmp(t.bytes, whole.data, t.size) == 0, "block %zu", block);
        t.most = t.size;
        buffer_add_repeat(&b, 'x', block + 10000);
        cr_assert(!buffer_flush(&b) && b.failed);
        t.most = sizeof t.bytes;
        buffer_add_text(&b, "more");
        cr_assert(!buffer_flush(&b) && t.size == whole.size);
        buffer_done(&b);
        buffer_done(&whole);
    }
}
