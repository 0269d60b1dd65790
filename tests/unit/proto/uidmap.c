/* The overflow uid proves nothing about a peer unless all users are mapped. */
#include "proto/uidmap.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

Test(uidmap, the_overflow_uid_proves_nothing_unless_all_users_are_mapped)
{
    static const struct {
        const char *overflow, *map;
        uint32_t unproven;
    } rows[] = {
        {"65534\n", "         0          0 4294967295\n", UIDMAP_NONE},
        {"65534\n", "         0       1000          1\n", 65534},
        {"65534\n", "", 65534}, /* unmapped altogether, or not readable */
        {"99\n", "         0          0      65536\n", 99},
        {"", "0 0 10\n", UIDMAP_OVERFLOW},
        {"65534\n", "         0          0     100000\n    100000     200000 4294867295\n", UIDMAP_NONE},
        {"65534\n", "         0          0     100000\n    100000     200000 4294867294\n", 65534},
        {"65534\n", "0 0 429496729", 65534}, /* cut off */
        {"65534\n", "0 0", 65534},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const size_t overflow_size = strlen(rows[i].overflow), map_size = strlen(rows[i].map);
        char *overflow = malloc(overflow_size + 1),
             *map = malloc(map_size + 1); /* so that a sanitizer sees their ends */

        memcpy(overflow, rows[i].overflow, overflow_size);
        memcpy(map, rows[i].map, map_size);
        cr_assert_eq(uidmap_unproven(overflow, overflow_size, map, map_size), rows[i].unproven, "row %zu", i);
        free(overflow);
        free(map);
    }
}
