/* Builds of sampled files: each id once, also beside builds that get their id late. */
#include <criterion/criterion.h>
#include <string.h>

#include "record/record_internal.h"

#define MANY 300u /* the table of builds grows several times */

static struct buildid id_of(uint32_t i)
{
    const uint8_t bytes[20] = {(uint8_t)i, (uint8_t)(i >> 8), 1};
    struct buildid id;
    cr_assert_eq(buildid_from_note(bytes, sizeof bytes, &id, NULL), PROFD_OK);
    return id;
}

Test(image, builds_are_found_again)
{
    struct images *m;
    uint32_t builds[MANY];
    cr_assert_eq(images_new(&m, NULL), PROFD_OK);
    for (uint32_t i = 0; i < MANY; i++) {
        const struct buildid id = id_of(i);
        if (i % 10 == 3) {
            const uint32_t late = images_reserve_build(m, "late");
            const struct buildid own = id_of(MANY + i);
            cr_assert_neq(late, IMAGE_NONE);
            images_set_build(m, late, &own, -1, 16, 0);
            cr_assert_str_eq(images_get_id(m, late), own.text);
        }
        builds[i] = images_add_build(m, &id, "early", -1, 0, 1);
        for (uint32_t k = 0; k <= i; k++) {
            const struct buildid again = id_of(k);
            cr_assert_eq(images_add_build(m, &again, "early", -1, 0, 1), builds[k], "%u of %u", k, i);
        }
    }
    cr_assert_eq(images_reserved(m), MANY / 10);
    images_free(m);
}

Test(image, reserved_builds_are_limited)
{
    struct images *m;
    cr_assert_eq(images_new(&m, NULL), PROFD_OK);
    for (uint32_t i = 0; i < IMAGE_RESERVED_MAX; i++) {
        cr_assert_neq(images_reserve_build(m, "late"), IMAGE_NONE);
    }
    cr_assert_eq(images_reserve_build(m, "late"), IMAGE_NONE);
    images_free(m);
}
