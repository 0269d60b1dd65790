/* profctl retention: an operator confirms the clock by which stored data is removed. */
#include <stdio.h>

#include "profctl/profctl.h"
#include "profctl/profctl_admin.h"
#include "profctl/profctl_rows.h"

static const struct profctl_option options[] = {
    {"confirm-clock", 0, NULL, "the clock is right, although it is ahead"},
};

static enum profd_status retention_run(const struct profctl_call *call, struct profd_error *e)
{
    struct rows *whole;
    if (!profctl_value(call, "confirm-clock")) {
        return profd_error_set(e, PROFD_USAGE,
                               "retention needs --confirm-clock; profctl status says if the clock is "
                               "ahead");
    }
    TRY(admin_ask(call, "confirm-clock", NULL, 0, "confirming", false, &whole, e));
    if (whole) {
        printf("Data and ids of uploads are removed by the clock again, which is %.1f days ahead of the time that was "
               "used before\n",
               rows_real(whole, 0, "clock_ahead_seconds") / 86400);
    }
    rows_free(whole);
    return PROFD_OK;
}

const struct profctl_verb verb_retention = {
    .name = "retention",
    .arguments = "",
    .summary = "Confirm a clock that is ahead, so that old data is removed again",
    .details =
        "While the clock is more than a day ahead, for at most 24 hours of uptime, no data is removed for its age.\n",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .arguments_most = 0,
    .run = retention_run,
};
