/* profctl hosts: the hosts of a centre. */
#include <inttypes.h>
#include <stdio.h>

#include "profctl/profctl.h"
#include "profctl/profctl_ask.h"
#include "profctl/profctl_rows.h"

/* Shortens a time of the daemon's JSON to minutes; "-" for no time. */
static const char *hosts_time(const char *text, char out[32])
{
    (void)snprintf(out, 32, *text ? "%.16sZ" : "-", text);
    return out;
}

/* Returns "WHAT TIME; ", or "" if there is no time. */
static const char *hosts_remark(const char *what, const char *text, char out[96])
{
    char when[32];

    (void)snprintf(out, 96, "%s%s; ", what, hosts_time(text, when));
    return *text ? out : "";
}

static void hosts_print(const struct rows *rows)
{
    printf("%-24s %-32s %-12s %-18s %8s %-12s %-32s %s\n", "HOST", "IDENTITY", "TENANT", "LAST UPLOAD", "LAG",
           "VERSION", "MACHINE-ID", "REMARKS");
    for (size_t i = 0; i < rows_count(rows); i++) {
        const char *version = rows_text(rows, i, "version"), *machine = rows_text(rows, i, "machine_id");
        char last[32], copied[96], restored[96];

        printf("%-24s %-32s %-12s %-18s %7" PRIu64 "s %-12s %-32s %s%s\n", rows_text(rows, i, "name"),
               rows_text(rows, i, "identity"), rows_text(rows, i, "tenant"),
               hosts_time(rows_text(rows, i, "last_upload"), last), rows_number(rows, i, "lag_seconds"),
               *version ? version : "-", *machine ? machine : "-",
               hosts_remark("two machines with one identity, seen ", rows_text(rows, i, "two_machines_seen"), copied),
               hosts_remark("restored ", rows_text(rows, i, "restored"), restored));
    }
}

static enum profd_status hosts_run(const struct profctl_call *call, struct profd_error *e)
{
    const struct profd_options o = profctl_options(call, ASK_ANSWER_MS);
    struct profd_conn *conn;
    struct rows *rows = NULL;
    struct ask_target target;
    enum profd_status status;

    TRY(profd_conn_open(&o, &conn, e));
    ask_target_init(&target, "/api/v1/hosts", NULL);
    status = rows_read(conn, &target, &rows, e);
    if (!status && call->json) {
        status = rows_print_json(rows, e);
    } else if (!status) {
        hosts_print(rows);
    }
    rows_free(rows);
    profd_conn_close(conn);
    return status;
}

const struct profctl_verb verb_hosts = {
    .name = "hosts",
    .arguments = "",
    .summary = "List the hosts of a centre",
    .details = "LAG is the time since the host's last connection.\n"
               "The list contains only hosts of tenants that the user may read.\n",
    .arguments_least = 0,
    .arguments_most = 0,
    .run = hosts_run,
};
