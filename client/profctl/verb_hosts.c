/* profctl hosts: the hosts of a centre. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "profctl/profctl.h"
#include "profctl/profctl_admin.h"
#include "profctl/profctl_rows.h"
#include "proto/noun.h"

/* A date, or "-" of 0. */
static const char *hosts_time(uint64_t seconds, char out[32])
{
    const time_t at = (time_t)seconds;
    struct tm t;

    if (!seconds || !gmtime_r(&at, &t) || !strftime(out, 32, "%Y-%m-%dT%H:%MZ", &t)) {
        (void)snprintf(out, 32, "-");
    }
    return out;
}

/* "WHAT TIME; ", or "" if it never was. */
static const char *hosts_remark(const char *what, uint64_t seconds, char out[96])
{
    char when[32];

    (void)snprintf(out, 96, "%s%s; ", what, hosts_time(seconds, when));
    return seconds ? out : "";
}

static void hosts_print(const struct rows *rows)
{
    const size_t n = rows_count(rows);

    printf("%-24s %-32s %-12s %-18s %8s %-12s %-32s %s\n", "host", "identity", "tenant", "last segment", "lag",
           "version", "machine-id", "remarks");
    for (size_t i = 0; i < n; i++) {
        char name[64], tenant[64], version[32], machine[64], last[32], copied[96], restored[96];

        profctl_clean(rows_text(rows, i, "name"), name, sizeof name);
        profctl_clean(rows_text(rows, i, "tenant"), tenant, sizeof tenant);
        profctl_clean(rows_text(rows, i, "version"), version, sizeof version);
        profctl_clean(rows_text(rows, i, "machine_id"), machine, sizeof machine);
        printf("%-24s %-32s %-12s %-18s %7" PRIu64 "s %-12s %-32s %s%s\n", name, rows_text(rows, i, "identity"), tenant,
               hosts_time(rows_number(rows, i, "last_segment"), last), rows_number(rows, i, "lag_seconds"),
               *version ? version : "-", *machine ? machine : "-",
               hosts_remark("two machines with one identity, seen ", rows_number(rows, i, "two_machines_seen"), copied),
               hosts_remark("restored ", rows_number(rows, i, "restored"), restored));
    }
}

static enum profd_status hosts_run(const struct profctl_call *call, struct profd_error *e)
{
    struct rows *rows = NULL;
    char *text = NULL;
    size_t n;
    enum profd_status status = admin_read(call, "hosts", NULL, 0, "asking", &text, &n, e);

    if (!status && call->json) {
        (void)fwrite(text, 1, n, stdout);
    } else if (!status) {
        status = rows_parse(text, n, &rows, e);
        if (!status) {
            hosts_print(rows);
        }
        rows_free(rows);
    }
    free(text);
    return status;
}

const struct profctl_verb verb_hosts = {
    .name = "hosts",
    .arguments = "",
    .summary = "List the hosts of a centre",
    .details = "lag is the time since the host was last connected.\n"
               "For root, the daemon's user and members of its admin group.\n",
    .options = NULL,
    .option_count = 0,
    .arguments_least = 0,
    .arguments_most = 0,
    .run = hosts_run,
};
