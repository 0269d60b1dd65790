/* What /proc tells of this process. */
#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#include "record/record_internal.h"

Test(origin, of_this_process)
{
    struct sum_origin o = {.uid = UINT32_MAX};
    cr_assert(origin_read((uint32_t)getpid(), &o));
    cr_assert_eq(o.uid, geteuid());
    cr_assert(origin_read_comm((uint32_t)getpid(), o.comm));
    cr_assert_gt(strlen(o.comm), 0);
    cr_assert_not(origin_read(INT32_MAX, &o));
}
