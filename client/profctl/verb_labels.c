/* profctl labels: label names, or the values of one. */
#include <inttypes.h>
#include <stdio.h>

#include "profctl/profctl.h"
#include "profctl/profctl_ask.h"
#include "profctl/profctl_build.h"
#include "profctl/profctl_rows.h"

static const struct profctl_option options[] = {
    {"build", 'b', "PROGRAM|BUILD|EXE", "use only labels of uploads of this build"},
};

static void table_print(const struct rows *r, bool names)
{
    if (rows_count(r) == 0) {
        puts("No labels are stored yet.");
        return;
    }
    printf(names ? "%8s %8s %s\n" : "%8s%.0s %s\n", "UPLOADS", "VALUES", names ? "LABEL" : "VALUE");
    for (size_t i = 0; i < rows_count(r); i++) {
        printf("%8" PRIu64, rows_number(r, i, "uploads"));
        if (names) {
            printf(" %8" PRIu64, rows_number(r, i, "values"));
        }
        printf(" %s\n", rows_text(r, i, names ? "name" : "value"));
    }
}

static enum profd_status labels_run(const struct profctl_call *call, struct profd_error *e)
{
    struct profd_conn *conn;
    struct rows *rows = NULL;
    struct ask_target target;
    char id[160];
    const char *build = profctl_value(call, "build");
    bool names = call->argument_count == 0;
    enum profd_status status = build ? build_find(call, build, id, e) : PROFD_OK;
    const struct profd_options o = profctl_options(call, ASK_ANSWER_MS);
    if (status == PROFD_OK) {
        status = profd_conn_open(&o, &conn, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    ask_target_init(&target, names ? "/api/v1/labels" : "/api/v1/labels/{}/values", call->arguments[0]);
    ask_target_add(&target, "build_id", build ? id : NULL);
    status = rows_read(conn, &target, &rows, e);
    if (status == PROFD_OK && call->json) {
        status = rows_print_json(rows, e);
    } else if (status == PROFD_OK && !names && rows_count(rows) == 0) {
        status =
            profd_error_set(e, PROFD_NOT_FOUND, "no upload%s has the label \"%s\"; `profctl labels` lists the labels",
                            build ? " of this build" : "", call->arguments[0]);
    } else if (status == PROFD_OK) {
        table_print(rows, names);
    }
    rows_free(rows);
    profd_conn_close(conn);
    return status;
}

const struct profctl_verb verb_labels = {
    .name = "labels",
    .arguments = "[LABEL]",
    .summary = "List label names, or the values of one",
    .details = "",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .arguments_most = 1,
    .run = labels_run,
};
