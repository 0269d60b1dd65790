/* When profd-relay connects next. */
#include <criterion/criterion.h>

#include "relay/round.h"

Test(relay, hosts_that_start_together_spread_over_ten_seconds)
{
    const int64_t second = INT64_C(1000000000);

    cr_assert_eq(wait_first(60 * second, 0), 0);
    cr_assert_eq(wait_first(60 * second, UINT32_MAX / 2), 4999);
    cr_assert_eq(wait_first(60 * second, UINT32_MAX), 9999);
    cr_assert_eq(wait_first(second, UINT32_MAX), 999, "an interval that is shorter");
}

Test(relay, the_time_until_the_next_round)
{
    const struct round_pause done = {.kind = ROUND_DONE, .said_ms = 60000}, none = {.kind = ROUND_DONE};
    const struct round_pause far = {.kind = ROUND_DONE, .said_ms = UINT64_MAX}, operator= {.kind = ROUND_LONG};
    const struct round_pause said = {.kind = ROUND_SAID, .said_ms = 8000};
    struct round_pause failed = {.kind = ROUND_FAILED};

    cr_assert_eq(wait_round(&done, 12345), 60000, "the centre spreads its hosts");
    cr_assert_eq(wait_round(&none, 0), 100);
    cr_assert_eq(wait_round(&far, 0), 86400000);
    cr_assert_eq(wait_round(&said, 0), 8000, "never sooner than was said");
    cr_assert_eq(wait_round(&said, UINT32_MAX), 9999);
    cr_assert_eq(wait_round(&operator, 0), 150000);
    cr_assert_eq(wait_round(&operator, UINT32_MAX), 299999);
    cr_assert_eq(wait_round(&failed, 0), 500);
    cr_assert_eq(wait_round(&failed, UINT32_MAX), 999);
    failed.failures = 3;
    cr_assert_eq(wait_round(&failed, 0), 4000);
    failed.failures = UINT32_MAX;
    cr_assert_eq(wait_round(&failed, UINT32_MAX), 299999);
}
