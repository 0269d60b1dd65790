/* profctl tier: sums of past days in ClickHouse. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "profctl/profctl.h"
#include "profctl/profctl_ask.h"
#include "profctl/profctl_show.h"
#include "proto/noun.h"

static enum profd_status init_run(const struct profctl_call *call, struct profd_error *e)
{
    struct answer answer;
    json_t *row;
    size_t i;
    TRY(ask_admin_text(call, "tier-init", NULL, 0, "asking ClickHouse", &answer, e));
    json_array_foreach(answer.rows, i, row)
    {
        printf("ClickHouse %s at %s: the tables in database %s %s, and every statement of profd runs\n",
               row_text(row, "version"), row_text(row, "server"), row_text(row, "database"),
               row_flag(row, "made") ? "were made" : "were there");
    }
    answer_free(&answer);
    return PROFD_OK;
}

static void tier_print(json_t *tier)
{
    const uint64_t sealed = row_number(tier, "days_sealed"), waiting = row_number(tier, "days_waiting"),
                   failures = row_number(tier, "failures");
    const char *to = row_text(tier, "sealed_to"), *error = row_text(tier, "error");
    char bytes[32];
    show_bytes(row_number(tier, "bytes"), bytes, sizeof bytes);
    printf("tier     %s\n", row_text(tier, "url"));
    printf("sealed   %" PRIu64 " %s%s%.10s, with %" PRIu64 " sums of %s\n", sealed, noun_for(sealed, "day", "days"),
           to[0] ? " to " : "", to, row_number(tier, "sums"), bytes);
    printf("waiting  %" PRIu64 " %s", waiting, noun_for(waiting, "day", "days"));
    if (waiting) {
        printf(", the oldest for %.0f min", row_real(tier, "lag_seconds") / 60);
    }
    puts("");
    if (error[0]) {
        printf("FAILED   %" PRIu64 " %s since the start, and the last time: %s\n", failures,
               noun_for(failures, "time", "times"), error);
    } else if (failures) {
        printf("failed   %" PRIu64 " %s since the start, and not the last time\n", failures,
               noun_for(failures, "time", "times"));
    }
}

static enum profd_status status_run(const struct profctl_call *call, struct profd_error *e)
{
    struct ask_target target;
    struct answer answer;
    enum profd_status status = PROFD_OK;
    ask_target_init(&target, "/api/v1/status", NULL);
    TRY(ask_fetch_object(call, &target, &answer, e));
    json_t *tier = json_object_get(answer.whole, "tier");
    if (!json_is_object(tier)) {
        status = profd_error_set(e, PROFD_NOTHING, "this daemon has no tier: the key tier of profd.conf(5) names it");
    } else if (call->json) {
        status = json_print(json_incref(tier), e);
    } else {
        tier_print(tier);
    }
    answer_free(&answer);
    return status;
}

static enum profd_status tier_run(const struct profctl_call *call, struct profd_error *e)
{
    if (strcmp(call->arguments[0], "init") == 0) {
        return init_run(call, e);
    }
    return strcmp(call->arguments[0], "status") == 0
               ? status_run(call, e)
               : profd_error_set(e, PROFD_USAGE, "tier: \"%s\" is neither init nor status", call->arguments[0]);
}

const struct profctl_verb verb_tier = {
    .name = "tier",
    .arguments = "init | status",
    .summary = "Make the tables of the tier in ClickHouse, or show its state",
    .details = "init runs every statement of profd once on each server. It may be repeated: what is there stays.\n",
    .arguments_least = 1,
    .arguments_most = 1,
    .run = tier_run,
};
