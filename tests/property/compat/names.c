/* Order by name against strcmp, and owners of addresses against a search from the begin, over random tables. */
#include "compat/compat_run.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static uint64_t state = 0x2545f4914f6cdd1d;

static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* Long common beginnings, bytes above 127, empty names, the same name twice. */
static const char *make_name(struct arena *a)
{
    static const char *const begins[] = {"", "_ZN4core3fmt", "f", "a_very_long_beginning_of_a_name_that_many_have_",
                                         "\xc3\xa9t\xc3\xa9"};
    char text[128];
    int n = snprintf(text, sizeof text, "%s", begins[next_random() % 5]);
    for (uint64_t more = next_random() % 12; more > 0; more--) {
        text[n++] = (char)(next_random() % 3 == 0 ? 1 + next_random() % 255 : 'a' + next_random() % 2);
    }
    return arena_copy(a, text, (size_t)n);
}

Test(compat_names, order_is_that_of_strcmp)
{
    for (unsigned round = 0; round < 400; round++) {
        struct arena *a = arena_new(0);
        uint32_t n = (uint32_t)(next_random() % (round % 20 == 0 ? 5000 : 200)), *order;
        const char **names = ARENA_ARRAY(a, n, const char *);
        for (uint32_t i = 0; i < n; i++) {
            names[i] = i > 0 && next_random() % 10 == 0 ? names[next_random() % i] : make_name(a);
        }
        order = compat_names_order(names, n, a);
        bool *met = ARENA_ARRAY(a, n, bool);
        for (uint32_t i = 0; i < n; i++) {
            cr_assert(order[i] < n && !met[order[i]]);
            met[order[i]] = true;
            int way = i == 0 ? -1 : strcmp(names[order[i - 1]], names[order[i]]);
            cr_assert(way < 0 || (way == 0 && order[i - 1] < order[i]), "round %u, place %u of %u", round, i, n);
        }
        arena_free(a);
    }
}

static uint32_t find_slowly(const struct compat_symbols *s, uint64_t address)
{
    uint32_t owner = COMPAT_NONE;
    for (uint32_t v = 0; v < s->count && s->address[v] <= address; v++) {
        owner = address <= s->end[v] ? v : COMPAT_NONE;
    }
    return owner;
}

Test(compat_symbols, stripes_find_the_owner)
{
    for (unsigned round = 0; round < 2000; round++) {
        struct arena *a = arena_new(0);
        uint32_t n = 1 + (uint32_t)(next_random() % 60);
        struct compat_symbols s = {
            .count = n, .address = ARENA_ARRAY(a, n, uint64_t), .end = ARENA_ARRAY(a, n, uint64_t)};
        uint64_t at = round % 7 == 0 ? 0 : next_random() >> next_random() % 60;
        for (uint32_t v = 0; v < n; v++) {
            s.address[v] = at;
            uint64_t step = 1 + (next_random() >> (next_random() % 5 == 0 ? 12 : 58)); /* some far apart, most near */
            s.end[v] = at + (next_random() % 4 == 0 ? (step - 1) / 2 : step - 1);
            at = at > UINT64_MAX - step - 1 ? at + 1 : at + step;
            s.end[v] = s.end[v] < s.address[v] ? s.address[v] : s.end[v];
        }
        if (s.address[n - 1] < s.address[0]) { /* came round */
            arena_free(a);
            continue;
        }
        compat_symbols_stripe(&s, a);
        for (unsigned k = 0; k < 400; k++) {
            uint64_t address =
                k % 2 == 0 ? s.address[next_random() % n] + next_random() % 9 - 4 : next_random() >> next_random() % 64;
            cr_assert_eq(compat_symbols_find(&s, address), find_slowly(&s, address), "round %u, %lx", round, address);
        }
        cr_assert_eq(compat_symbols_find(&s, UINT64_MAX), find_slowly(&s, UINT64_MAX));
        cr_assert_eq(compat_symbols_find(&s, 0), find_slowly(&s, 0));
        arena_free(a);
    }
}
