/* The other file with a static function of that name. */
#include "tests/unit/import/place_twin.h"

static int __attribute__((noinline, used)) place_twin(int x)
{
    return x * 7 + twin_sum(x);
}

int twin_sum(int x)
{
    return x ^ 5;
}

int twin_call(int x)
{
    return place_twin(x) - 1;
}

uintptr_t twin_address(void)
{
    return (uintptr_t)place_twin;
}
