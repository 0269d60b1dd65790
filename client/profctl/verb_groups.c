/* profctl groups: the uploads of a build by the values of labels, by time, or both. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "profctl/profctl.h"
#include "profctl/profctl_ask.h"
#include "profctl/profctl_build.h"
#include "profctl/profctl_csv.h"
#include "profctl/profctl_options.h"
#include "profctl/profctl_rows.h"
#include "profctl/profctl_show.h"

#define LABELS_MAX 3 /* the daemon's limit, which it says itself when there are more */

static const struct profctl_option options[] = {
    {"by", 'b', "LABEL", "divide by this label; may be given up to three times"},
    {"step", 0, "1m|5m|10m|15m|30m|1h|2h|3h|4h|6h|8h|12h|1d|7d", "divide by time"},
    OPTION_FORMAT,
    OPTION_PARTIAL,
    OPTION_SINCE,
    OPTION_UNTIL,
    OPTION_LABEL,
    OPTION_MATCH,
    OPTION_SCOPE,
    OPTION_DIMENSION,
    OPTION_UID,
};

static enum profd_status make_target(const struct profctl_call *call, struct ask_target *t, struct profd_error *e)
{
    char id[160];
    TRY(build_find(call, call->arguments[0], id, e));
    ask_target_init(t, "/api/v1/builds/{}/groups", id);
    ask_target_add(t, "limit", "1000");
    return ask_target_add_given(t, call, "step|since|until|scope|dimension|uid", e);
}

#define VALUE_MOST 40

static void table_print(const struct rows *r, char fields[LABELS_MAX][160], size_t labels, bool steps)
{
    int widths[LABELS_MAX] = {0};
    if (rows_count(r) == 0) {
        puts("no uploads");
        return;
    }
    if (steps) {
        printf("%-20s ", "TIME");
    }
    printf("%8s %9s %8s %11s %14s %-5s", "UPLOADS", "STARTED", "MACHINES", "SECONDS", "CALLS", "EXACT");
    for (size_t k = 0; k < labels; k++) {
        /* Width of the values of a label, so that columns are aligned. */
        size_t width = strlen(fields[k] + strlen("label_"));
        for (size_t i = 0; i < rows_count(r); i++) {
            size_t n = strlen(rows_text(r, i, fields[k]));
            width = n > width ? n : width;
        }
        widths[k] = width < VALUE_MOST ? (int)width : VALUE_MOST;
        printf(" %-*s", k + 1 < labels ? widths[k] : 0, fields[k] + strlen("label_"));
    }
    printf("\n");
    for (size_t i = 0; i < rows_count(r); i++) {
        char calls[32], seconds[40];
        rows_calls(r, i, calls, sizeof calls);
        show_amount(rows_real(r, i, "seconds"), seconds, sizeof seconds);
        if (steps) {
            printf("%-20s ", rows_text(r, i, "time"));
        }
        printf("%8" PRIu64 " %9" PRIu64 " %8" PRIu64 " %11s %14s %-5s", rows_number(r, i, "uploads"),
               rows_number(r, i, "processes_started"), rows_number(r, i, "hosts"), seconds, calls,
               rows_flag(r, i, "exact") ? "yes" : "no");
        for (size_t k = 0; k < labels; k++) {
            const char *value = rows_text(r, i, fields[k]);
            printf(" %-*s", k + 1 < labels ? widths[k] : 0, value[0] != '\0' ? value : "-");
        }
        printf("\n");
    }
    for (size_t k = 0; k < labels; k++) {
        bool known = false;
        for (size_t i = 0; i < rows_count(r); i++) {
            known = known || rows_text(r, i, fields[k])[0] != '\0';
        }
        if (!known) {
            printf("No upload here has the label \"%s\"; `profctl labels` lists the labels.\n",
                   fields[k] + strlen("label_"));
        }
    }
}

static enum profd_status show(const struct profctl_call *call, size_t format, const struct rows *r,
                              struct profd_error *e)
{
    char fields[LABELS_MAX][160];
    /* The labels that were asked for, as fields of a row. */
    size_t labels = 0;
    for (size_t i = 0; i < call->given_count && labels < LABELS_MAX; i++) {
        if (strcmp(call->given[i].option->name, "by") == 0) {
            (void)snprintf(fields[labels++], sizeof fields[0], "label_%.150s", call->given[i].value);
        }
    }
    const bool steps = profctl_value(call, "step") != NULL;
    if (format == FORMAT_JSON) {
        return rows_print_json(r, e);
    }
    if (format == FORMAT_CSV) {
        /* The columns are those of a row of the daemon, the keys first. */
        static const char *const NUMBERS[] = {"uploads", "processes_started", "hosts", "seconds", "calls",
                                              "exact",   "inexact_reasons"};
        const char *columns[2 + LABELS_MAX + sizeof NUMBERS / sizeof *NUMBERS];
        size_t n = 0;
        if (steps) {
            columns[n++] = "time";
            columns[n++] = "width";
        }
        for (size_t k = 0; k < labels; k++) {
            columns[n++] = fields[k];
        }
        memcpy(columns + n, NUMBERS, sizeof NUMBERS);
        csv_print_rows(rows_list(r), columns, n + sizeof NUMBERS / sizeof *NUMBERS);
    } else {
        table_print(r, fields, labels, steps);
    }
    return PROFD_OK;
}

static enum profd_status groups_run(const struct profctl_call *call, struct profd_error *e)
{
    struct profd_conn *conn;
    struct rows *rows = NULL;
    struct ask_target target;
    size_t format = FORMAT_TEXT;
    if (!profctl_value(call, "by") && !profctl_value(call, "step")) {
        return profd_error_set(
            e, PROFD_USAGE,
            "groups: --by LABEL or --step T is required, for example --by host or --step 1h; `profctl labels` lists "
            "the labels");
    }
    enum profd_status status = profctl_choose_format(call, &format, e);
    status = status == PROFD_OK ? make_target(call, &target, e) : status;
    const struct profd_options o = profctl_options(call, ASK_ANSWER_MS);
    if (status == PROFD_OK) {
        status = profd_conn_open(&o, &conn, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    status = rows_read(conn, &target, &rows, e);
    status = status == PROFD_OK ? show(call, format, rows, e) : status;
    rows_free(rows);
    profd_conn_close(conn);
    return status;
}

const struct profctl_verb verb_groups = {
    .name = "groups",
    .arguments = "PROGRAM|BUILD|EXE --by LABEL|--step T",
    .summary = "Divide the uploads of a program by label or time",
    .details = "STARTED is the number of processes that began in a group, MACHINES that of distinct machines.\n",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .arguments_least = 1,
    .arguments_most = 1,
    .run = groups_run,
};
