/* profctl tier: the tables in ClickHouse where sums of past days lie. */
#include <stdio.h>
#include <string.h>

#include "profctl/profctl.h"
#include "profctl/profctl_admin.h"
#include "profctl/profctl_rows.h"

static enum profd_status tier_run(const struct profctl_call *call, struct profd_error *e)
{
    struct rows *answer = NULL;
    if (strcmp(call->arguments[0], "init") != 0) {
        return profd_error_set(e, PROFD_USAGE, "tier: \"%s\" is not init", call->arguments[0]);
    }
    TRY(admin_ask(call, "tier-init", NULL, 0, "asking ClickHouse", true, &answer, e));
    for (size_t i = 0; answer && i < rows_count(answer); i++) {
        printf("ClickHouse %s at %s: the tables in database %s %s, and every statement of profd runs\n",
               rows_text(answer, i, "version"), rows_text(answer, i, "server"), rows_text(answer, i, "database"),
               rows_flag(answer, i, "made") ? "were made" : "were there");
    }
    rows_free(answer);
    return PROFD_OK;
}

const struct profctl_verb verb_tier = {
    .name = "tier",
    .arguments = "init",
    .summary = "Make the tables of the tier in ClickHouse",
    .details = "Runs every statement of profd once on each server. May be repeated: what is there stays.\n",
    .arguments_least = 1,
    .arguments_most = 1,
    .run = tier_run,
};
