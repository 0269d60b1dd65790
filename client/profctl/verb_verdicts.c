/* profctl verdicts: what the daemon's watch list says of new versions. */
#include <stdio.h>
#include <string.h>

#include "profctl/profctl.h"
#include "profctl/profctl_ask.h"
#include "profctl/profctl_csv.h"
#include "profctl/profctl_options.h"
#include "profctl/profctl_rows.h"
#include "profctl/profctl_show.h"

static const struct profctl_option options[] = {
    OPTION_FORMAT,
    {"since", 0, "TIME", "only verdicts that changed at TIME or later"},
};

static void text_print(const struct rows *r)
{
    if (rows_count(r) == 0) {
        puts(
            "no verdicts: functions that watch in profd.conf(5) names are compared when a new version of their program "
            "has uploads");
        return;
    }
    printf("%-14s %8s  %-19s  %s\n", "VERDICT", "CHANGE", "BETWEEN", "FUNCTION, VERSIONS");
    for (size_t i = 0; i < rows_count(r); i++) {
        const char *verdict = rows_text(r, i, "verdict"), *why = rows_text(r, i, "why");
        char change[16] = "-", low[16], high[16], between[40] = "-";
        if (why[0] == '\0') {
            show_change(rows_real(r, i, "change"), change, sizeof change);
            show_change(rows_real(r, i, "low"), low, sizeof low);
            show_change(rows_real(r, i, "high"), high, sizeof high);
            (void)snprintf(between, sizeof between, "%s and %s", low, high);
        }
        printf("%-14s %8s  %-19s  %s (%s) in %s, %s, %.24s after %.24s%s%s\n",
               strcmp(verdict, "waiting") == 0 ? "cannot tell yet" : verdict, change, between,
               rows_text(r, i, "function"), rows_text(r, i, "metric"), rows_text(r, i, "program"),
               rows_text(r, i, "watch"), rows_text(r, i, "after"), rows_text(r, i, "before"),
               why[0] != '\0' ? ": " : "", why);
    }
}

static void csv_print(const struct rows *r)
{
    static const char *const FIELDS[] = {"watch", "program", "function", "metric", "before", "after", "verdict",
                                         "why",   "decided", "change",   "low",    "high",   "p",     "visible"};
    csv_print_rows(rows_list(r), FIELDS, sizeof FIELDS / sizeof *FIELDS);
}

static enum profd_status verdicts_run(const struct profctl_call *call, struct profd_error *e)
{
    struct profd_conn *conn;
    struct rows *rows = NULL;
    struct ask_target target;
    size_t format = FORMAT_TEXT;
    enum profd_status status = profctl_choose_format(call, &format, e);
    const struct profd_options o = profctl_options(call, ASK_ANSWER_MS);
    if (status == PROFD_OK) {
        status = profd_conn_open(&o, &conn, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    ask_target_init(&target, "/api/v1/verdicts", NULL);
    ask_target_add(&target, "since", profctl_value(call, "since"));
    status = rows_read(conn, &target, &rows, e);
    if (status == PROFD_OK && format == FORMAT_JSON) {
        status = rows_print_json(rows, e);
    } else if (status == PROFD_OK && format == FORMAT_CSV) {
        csv_print(rows);
    } else if (status == PROFD_OK) {
        text_print(rows);
    }
    rows_free(rows);
    profd_conn_close(conn);
    return status;
}

const struct profctl_verb verb_verdicts = {
    .name = "verdicts",
    .arguments = "",
    .summary = "List verdicts on new versions of watched functions",
    .details = "The key watch of profd.conf(5) names the functions. For users who may read all profiles.\n",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .arguments_most = 0,
    .run = verdicts_run,
};
