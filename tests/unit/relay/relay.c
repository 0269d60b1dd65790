/* The pure parts of profd-relay: answers of proxies, and when to connect next. */
#include <criterion/criterion.h>
#include <string.h>

#include "relay/connect.h"
#include "relay/wait.h"

Test(relay, a_proxy_that_refuses_is_quoted)
{
    static const char *const good[] = {"HTTP/1.1 200 Connection established\r\n\r\n", "HTTP/1.0 204 x\r\n\r\n"};
    static const char *const bad[] = {"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "HTTP/2 200\r\n\r\n",
                                      "SSH-2.0-OpenSSH\r\n\r\n", "\r\n\r\n"};
    struct profd_error e;

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        cr_assert_eq(connect_judge_proxy(good[i], strlen(good[i]), &e), PROFD_OK, "%s", good[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_assert_eq(connect_judge_proxy(bad[i], strlen(bad[i]), &e), PROFD_UNAVAILABLE, "%s", bad[i]);
    }
    (void)connect_judge_proxy(bad[0], strlen(bad[0]), &e);
    cr_assert_str_eq(e.sentence, "the proxy refuses the connection: HTTP/1.1 407 Proxy Authentication Required");
}

Test(relay, the_slot_of_the_centre_is_kept_and_without_one_hosts_spread)
{
    const int64_t minute = INT64_C(60000000000);
    const struct flush none = {0}, slot = {.has_slot = true, .wait_ms = 200000}, zero = {.has_slot = true};
    const struct flush far = {.has_slot = true, .wait_ms = UINT32_MAX};

    cr_assert_eq(wait_next(&slot, minute, 12345), 200000);
    cr_assert_eq(wait_next(&zero, minute, 12345), 100);
    cr_assert_eq(wait_next(&far, minute, 12345), 86400000);
    cr_assert_eq(wait_next(&none, minute, 0), 3000);
    cr_assert_eq(wait_next(&none, minute, UINT32_MAX), 59999);
    cr_assert_eq(wait_next(&none, minute, UINT32_MAX / 2), 31499);
}

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
