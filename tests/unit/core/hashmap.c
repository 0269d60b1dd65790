/* Protects: every entry of a table is found until it is removed, whatever was removed before it. */
#include <criterion/criterion.h>
#include <stdint.h>

#include "core/hashmap.h"
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
