/* profctl tier: sums of past days in ClickHouse. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "profctl/profctl.h"
#include "profctl/profctl_admin.h"
#include "profctl/profctl_json.h"
#include "profctl/profctl_rows.h"
#include "profctl/profctl_show.h"
#include "proto/noun.h"

static enum profd_status init_run(const struct profctl_call *call, struct profd_error *e)
{
    struct rows *answer = NULL;
    TRY(admin_ask(call, "tier-init", NULL, 0, "asking ClickHouse", true, &answer, e));
    for (size_t i = 0; answer && i < rows_count(answer); i++) {
        printf("ClickHouse %s at %s: the tables in database %s %s, and every statement of profd runs\n",
               rows_text(answer, i, "version"), rows_text(answer, i, "server"), rows_text(answer, i, "database"),
               rows_flag(answer, i, "made") ? "were made" : "were there");
    }
    rows_free(answer);
    return PROFD_OK;
}

static uint64_t number_of(const json_t *tier, const char *name)
{
    return (uint64_t)json_integer_value(json_object_get(tier, name));
}

static void tier_print(const json_t *tier)
{
    const uint64_t sealed = number_of(tier, "days_sealed"), waiting = number_of(tier, "days_waiting"),
                   failures = number_of(tier, "failures");
    const char *to = json_string_value(json_object_get(tier, "sealed_to")),
               *error = json_string_value(json_object_get(tier, "error"));
    char text[512], bytes[32];
    profctl_clean(json_string_value(json_object_get(tier, "url")), text, sizeof text);
    show_bytes(number_of(tier, "bytes"), bytes, sizeof bytes);
    printf("tier     %s\n", text);
    printf("sealed   %" PRIu64 " %s%s%.10s, with %" PRIu64 " sums of %s\n", sealed, noun_for(sealed, "day", "days"),
           to ? " to " : "", to ? to : "", number_of(tier, "sums"), bytes);
    printf("waiting  %" PRIu64 " %s", waiting, noun_for(waiting, "day", "days"));
    if (waiting) {
        printf(", the oldest for %.0f min", json_number_value(json_object_get(tier, "lag_seconds")) / 60);
    }
    puts("");
    if (error) {
        profctl_clean(error, text, sizeof text);
        printf("FAILED   %" PRIu64 " %s since the start, and the last time: %s\n", failures,
               noun_for(failures, "time", "times"), text);
    } else if (failures) {
        printf("failed   %" PRIu64 " %s since the start, and not the last time\n", failures,
               noun_for(failures, "time", "times"));
    }
}

static enum profd_status status_run(const struct profctl_call *call, struct profd_error *e)
{
    const struct profd_options o = profctl_options(call, ASK_ANSWER_MS);
    struct ask_target target;
    struct profd_conn *conn;
    struct rows *whole = NULL;
    TRY(profd_conn_open(&o, &conn, e));
    ask_target_init(&target, "/api/v1/status", NULL);
    enum profd_status status = rows_read_object(conn, &target, &whole, e);
    if (!status) {
        json_t *tier = json_object_get(json_array_get(rows_list(whole), 0), "tier");
        if (!json_is_object(tier)) {
            status =
                profd_error_set(e, PROFD_NOTHING, "this daemon has no tier: the key tier of profd.conf(5) names it");
        } else if (call->json) {
            status = json_print(json_incref(tier), e);
        } else {
            tier_print(tier);
        }
    }
    rows_free(whole);
    profd_conn_close(conn);
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
