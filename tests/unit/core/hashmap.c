/* Protects: every entry of a table is found until it is removed, whatever was removed before it. */
#include <criterion/criterion.h>
#include <stdint.h>

#include "core/hashmap.h"
#include "core/row_table.h"
#include "tests/rounds.h"

#define KEYS 3000u

Test(hashmap, what_was_put_is_found_until_it_is_removed)
{
    struct hashmap t;
    bool there[KEYS] = {false};
    uint64_t state = 1, count = 0;
    hashmap_init(&t, 0);
    for (uint32_t round = 0; round < rounds(20000); round++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        uint32_t key = (uint32_t)(state >> 33) % KEYS, value = key * 7;
        uint32_t *found = hashmap_find(&t, &key, sizeof key);
        cr_assert_eq(found != NULL, there[key], "key %u in round %u", key, round);
        if (found != NULL) {
            cr_assert_eq(*found, value);
            hashmap_remove(&t, found);
            count--;
        } else {
            cr_assert_not_null(hashmap_put(&t, &key, sizeof key, &value, sizeof value));
            count++;
        }
        there[key] = !there[key];
        cr_assert_eq(t.count, count);
    }
    size_t position = 0;
    const void *key;
    for (const uint32_t *value; (value = hashmap_next(&t, &position, &key)) != NULL; count--) {
        cr_assert(there[*(const uint32_t *)key]);
        cr_assert_eq(*value, *(const uint32_t *)key * 7);
    }
    cr_assert_eq(count, 0);
    hashmap_clear(&t);
    cr_assert_eq(t.bytes, 0);
}

/* A client that chooses one word of a key must not make the other word meaningless. */
Test(hashmap, no_word_hides_the_other_one)
{
    static const uint64_t words[] = {0, 1, UINT64_MAX, UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xd6e8feb86659fd93)};
    for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
        for (uint64_t first = 1; first < 1000; first++) {
            cr_assert_neq(table_mix(first, words[w]), table_mix(first + 1, words[w]), "word %zu", w);
        }
    }
}
