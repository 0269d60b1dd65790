/* profctl builds: what profd knows. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "client/profctl.h"
#include "client/profctl_ask.h"
#include "client/profctl_rows.h"
#include "client/profctl_show.h"

static const struct profctl_option options[] = {
    {"all", 'a', NULL, "shared libraries too, not only programs"},
    {"full", 0, NULL, "whole build-ids"},
};

static void row_print(const struct rows *r, size_t i, bool full, int64_t now)
{
    char age[32];
    const char *note = rows_text(r, i, "note");
    show_age_of(rows_text(r, i, "last_seen"), now, age, sizeof age);
    int width = full ? 40 : strncmp(rows_text(r, i, "build_id"), "sha256-", 7) == 0 ? 16 : 12;
    printf("%-*.*s %8" PRIu64 " %9" PRIu64 " %11.2f %12" PRIu64 " %-5s %-5s %-11s %s%s%s%s\n", full ? 40 : 16,
           full ? 128 : width, rows_text(r, i, "build_id"), rows_number(r, i, "uploads"),
           rows_number(r, i, "processes_started"), rows_real(r, i, "seconds"), rows_number(r, i, "calls"),
           rows_flag(r, i, "exact") ? "yes" : "no", rows_flag(r, i, "symbols") ? "yes" : "no", age, rows_text(r, i, "name"),
           note[0] ? " (" : "", note, note[0] ? ")" : "");
}

static void table_print(const struct rows *r, bool all, bool full)
{
    int64_t now = (int64_t)time(NULL);
    size_t shown = 0;
    for (size_t i = 0; i < rows_count(r); i++) {
        if (!all && !rows_flag(r, i, "is_program")) {
            continue;
        }
        if (shown++ == 0) {
            printf("%-*s %8s %9s %11s %12s %-5s %-5s %-11s %s\n", full ? 40 : 16, "BUILD", "UPLOADS", "PROCESSES", "SECONDS",
                   "CALLS", "EXACT", "NAMES", "LAST SEEN", "PROGRAM");
        }
        row_print(r, i, full, now);
    }
    if (shown == 0) {
        puts("no builds yet: profctl upload delivers the first");
    }
}

static enum profd_status builds_run(const struct profctl_call *call, struct profd_error *e)
{
    struct profd_conn *conn;
    struct rows *rows = NULL;
    struct ask_target target;
    const struct profd_options o = profctl_options(call, ASK_ANSWER_MS);
    enum profd_status status = profd_conn_open(&o, &conn, e);
    if (status != PROFD_OK) {
        return status;
    }
    ask_target_init(&target, "/api/v1/builds");
    ask_target_add(&target, "limit", "1000");
    status = rows_read(conn, &target, &rows, e);
    if (status == PROFD_OK && call->json) {
        status = rows_print_json(rows, e);
    } else if (status == PROFD_OK) {
        table_print(rows, profctl_value(call, "all") != NULL, profctl_value(call, "full") != NULL);
    }
    rows_free(rows);
    profd_conn_close(conn);
    return status;
}

const struct profctl_verb verb_builds = {
    .name = "builds", .arguments = "", .summary = "List the builds that profiles came from",
    .details = "EXACT is yes where no call and no tick was lost on the way; NAMES where function names are known.\n",
    .options = options, .option_count = sizeof options / sizeof options[0], .arguments_most = 0, .run = builds_run,
};
