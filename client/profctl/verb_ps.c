/* profctl ps: the live processes that the daemon reads. */
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profctl/profctl.h"
#include "profctl/profctl_ask.h"
#include "profctl/profctl_rows.h"
#include "profctl/profctl_show.h"

static const struct profctl_option options[] = {
    {"label", 'l', "K=V", "list only processes with this label; may be repeated"},
    {"match", 'm', "MATCHER",
     "list only processes with a matching label: K=\"V\", K!=\"V\", K=~\"V\" or K!~\"V\"; may be repeated"},
    {"pids", 0, NULL, "print only the process ids, one a line"},
};

static enum profd_status make_target(const struct profctl_call *call, struct ask_target *t, struct profd_error *e)
{
    ask_target_init(t, "/api/v1/processes", NULL);
    if (call->argument_count) {
        const char *pid = call->arguments[0];
        if (pid[0] == '\0' || pid[strspn(pid, "0123456789")] != '\0') {
            return profd_error_set(e, PROFD_USAGE, "ps: \"%s\" is not a process id; -l K=V selects processes by label",
                                   pid);
        }
        ask_target_add(t, "pid", pid);
    }
    ask_target_add(t, "limit", "1000");
    return ask_target_add_given(t, call, "", e);
}

/* As ps shows ELAPSED: [days-][hours:]minutes:seconds. */
static void show_elapsed(uint64_t seconds, char *out, size_t size)
{
    uint64_t days = seconds / 86400, hours = seconds / 3600 % 24, minutes = seconds / 60 % 60;
    if (days) {
        (void)snprintf(out, size, "%" PRIu64 "-%02" PRIu64 ":%02" PRIu64 ":%02" PRIu64, days, hours, minutes,
                       seconds % 60);
    } else if (hours) {
        (void)snprintf(out, size, "%" PRIu64 ":%02" PRIu64 ":%02" PRIu64, hours, minutes, seconds % 60);
    } else {
        (void)snprintf(out, size, "%" PRIu64 ":%02" PRIu64, minutes, seconds % 60);
    }
}

/* "0", "<0.01", "0.25", "812", "4.31k", "12.3M", "144M", "2.20G". */
static void show_rate(double n, char *out, size_t size)
{
    static const char units[] = {'\0', 'k', 'M', 'G', 'T'};
    size_t i = 0;
    if (n > 0 && n < 9.995) {
        show_amount(n, out, size);
        return;
    }
    while (n >= 999.5 && i + 1 < sizeof units) {
        n /= 1000;
        i++;
    }
    (void)snprintf(out, size, "%.*f%.1s",
                   i == 0 || n >= 99.95 ? 0
                   : n >= 9.995         ? 1
                                        : 2,
                   n, (const char[]){units[i], '\0'});
}

struct order {
    double overhead;
    uint64_t pid;
    size_t row;
};

static int order_compare(const void *a, const void *b)
{
    const struct order *x = a, *y = b;
    if (x->overhead != y->overhead) {
        return x->overhead > y->overhead ? -1 : 1;
    }
    return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static const char *user_of(uint64_t uid, char *out, size_t size)
{
    const struct passwd *user = getpwuid((uid_t)uid);
    (void)snprintf(out, size, "%" PRIu64, uid);
    if (user) {
        profctl_clean(user->pw_name, out, size);
    }
    return out;
}

/* "81%"; "<1.29%" where no tick was inside the collector; "-" where too few ticks tell. */
static void show_overhead(const struct rows *r, size_t i, char *out, size_t size)
{
    const double below = rows_real(r, i, "overhead_below"), overhead = rows_real(r, i, "overhead");
    if (below > 0) {
        (void)snprintf(out, size, "<%.2f%%", 100 * below + 0.005);
    } else if (overhead > 0) {
        show_percent(100 * overhead, rows_number(r, i, "ticks"), out, size);
    } else {
        (void)snprintf(out, size, "-");
    }
}

static void row_print(const struct rows *r, size_t i)
{
    char age[32], rate[16], user[40], overhead[24];
    const char *name = rows_text(r, i, "name"), *slash = strrchr(name, '/'), *why = rows_text(r, i, "why");
    show_elapsed((uint64_t)rows_real(r, i, "age_seconds"), age, sizeof age);
    show_rate(rows_real(r, i, "calls_per_second"), rate, sizeof rate);
    show_overhead(r, i, overhead, sizeof overhead);
    printf("%7" PRIu64 " %-16.16s %-8.8s %9s %15" PRIu64 " %9" PRIu64 " %8s %8s %-9s %-5s", rows_number(r, i, "pid"),
           slash && slash[1] ? slash + 1
           : name[0]         ? name
                             : "?",
           user_of(rows_number(r, i, "uid"), user, sizeof user), age, rows_number(r, i, "calls"),
           rows_number(r, i, "ticks"), rate, overhead, rows_text(r, i, "state"),
           rows_flag(r, i, "exact") ? "yes" : "no");
    if (rows_pairs(r, i, "labels")[0]) {
        printf(" %s", rows_pairs(r, i, "labels"));
    }
    printf("%s%s%s\n", why[0] ? " (" : "", why, why[0] ? ")" : "");
}

static enum profd_status table_print(const struct profctl_call *call, const struct rows *r, struct profd_error *e)
{
    size_t n = rows_count(r);
    if (profctl_value(call, "pids")) {
        for (size_t i = 0; i < rows_count(r); i++) {
            printf("%" PRIu64 "\n", rows_number(r, i, "pid"));
        }
        return PROFD_OK;
    }
    if (n == 0) {
        puts(call->argument_count || call->given_count ? "No live process matches. List all with: profctl ps"
                                                       : "No live processes. Start one with: profctl run COMMAND");
        return PROFD_OK;
    }
    struct order *orders = calloc(n, sizeof *orders);
    if (!orders) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for %zu processes", n);
    }
    for (size_t i = 0; i < n; i++) {
        orders[i] = (struct order){rows_real(r, i, "overhead"), rows_number(r, i, "pid"), i};
    }
    qsort(orders, n, sizeof *orders, order_compare);
    printf("%7s %-16s %-8s %9s %15s %9s %8s %8s %-9s %-5s LABELS\n", "PID", "PROGRAM", "USER", "AGE", "CALLS", "TICKS",
           "CALLS/S", "OVERHEAD", "STATE", "EXACT");
    for (size_t i = 0; i < n; i++) {
        row_print(r, orders[i].row);
    }
    free(orders);
    return PROFD_OK;
}

static enum profd_status ps_run(const struct profctl_call *call, struct profd_error *e)
{
    struct profd_conn *conn;
    struct rows *rows = NULL;
    struct ask_target target;
    const struct profd_options o = profctl_options(call, ASK_ANSWER_MS);
    enum profd_status status = make_target(call, &target, e);
    if (status == PROFD_OK) {
        status = profd_conn_open(&o, &conn, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    status = rows_read(conn, &target, &rows, e);
    if (status == PROFD_OK) {
        status = call->json ? rows_print_json(rows, e) : table_print(call, rows, e);
    }
    rows_free(rows);
    profd_conn_close(conn);
    return status;
}

const struct profctl_verb verb_ps = {
    .name = "ps",
    .arguments = "[PID]",
    .summary = "List the live processes",
    .details =
        "OVERHEAD is a rough estimate of the share of CPU time spent counting, in the daemon's latest harvest.\n",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .arguments_most = 1,
    .run = ps_run,
};
