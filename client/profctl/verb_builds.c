/* profctl builds: what profd knows. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "profctl/profctl.h"
#include "profctl/profctl_ask.h"
#include "profctl/profctl_look.h"
#include "profctl/profctl_rows.h"
#include "profctl/profctl_show.h"
#include "proto/object_note.h"

#define ID_LEAST 8
#define NAME_MOST 40

/* X(key, field, descending) */
#define ORDERS(X)                                                                                                      \
    X(seen, "last_seen", true)                                                                                         \
    X(name, "name", false)                                                                                             \
    X(uploads, "uploads", true)                                                                                        \
    X(processes, "processes_started", true)                                                                            \
    X(seconds, "seconds", true)                                                                                        \
    X(calls, "calls", true)
#define OR_KEY(key, field, descending) "|" #key
#define ORDER(key, field, descending) {field, descending},

static const struct profctl_option options[] = {
    {"all", 'a', NULL, "also list shared libraries"},
    {"full", 0, NULL, "print complete build-ids and paths"},
    {"sort", 0, &(ORDERS(OR_KEY))[1], "order of the rows (default seen: latest first)"},
    {"time", 0, "auto|relative|iso", "format of times (default auto: relative on a terminal)"},
};

struct table {
    const struct rows *rows;
    bool all, full, relative;
    int64_t now;
    int name_width, id_width;
    size_t id_least; /* characters that distinguish an id from every other */
};

static enum profd_status sort_rows(struct rows *rows, size_t order, struct profd_error *e)
{
    static const struct {
        const char *field;
        bool descending;
    } orders[] = {ORDERS(ORDER)};
    return rows_sort(rows, orders[order].field, orders[order].descending, e);
}

static bool row_is_shown(const struct table *t, size_t i)
{
    return t->all || rows_flag(t->rows, i, "is_program");
}

static const char *row_name(const struct table *t, size_t i)
{
    const char *name = rows_text(t->rows, i, "name"), *slash = strrchr(name, '/');
    return !t->full && slash && slash[1] ? slash + 1 : name;
}

static const char *table_title(const struct table *t)
{
    return t->all ? "PROGRAM OR LIBRARY" : "PROGRAM";
}

/* The common beginning of two ids, at most 40 characters. */
static size_t common_length(const char *a, const char *b)
{
    size_t n = 0;
    while (n < 40 && a[n] && a[n] == b[n]) {
        n++;
    }
    return n;
}

/* One length for all ids: the longest common prefix of two adjacent ids in sorted order, plus one digit. */
static enum profd_status measure(struct table *t, struct rows *by_id, struct profd_error *e)
{
    size_t n = rows_count(t->rows), longest = strlen(table_title(t));
    enum profd_status status = rows_sort(by_id, "build_id", false, e);
    t->id_least = ID_LEAST;
    for (size_t i = 1; status == PROFD_OK && i < n; i++) {
        const char *a = rows_text(by_id, i - 1, "build_id"), *b = rows_text(by_id, i, "build_id");
        size_t common =
            strcmp(a, b) == 0 ? 0 : common_length(a, b); /* variants of one id: no prefix distinguishes them */
        t->id_least = common >= t->id_least ? common + 1 : t->id_least;
    }
    for (size_t i = 0; i < n; i++) {
        size_t width = row_is_shown(t, i) ? strlen(row_name(t, i)) : 0;
        longest = width > longest ? width : longest;
    }
    t->name_width = (int)(longest < NAME_MOST ? longest : NAME_MOST);
    t->id_width = t->full ? 40 : (int)t->id_least;
    return status;
}

static const char *row_names(const struct rows *rows, size_t i, const char *note)
{
    return !rows_flag(rows, i, "symbols") ? "no" : strstr(note, OBJECT_NOTE_EXPORTED) != NULL ? "exported" : "yes";
}

static void table_print(const struct table *t)
{
    size_t shown = 0;
    for (size_t i = 0; i < rows_count(t->rows); i++) {
        if (!row_is_shown(t, i)) {
            continue;
        }
        if (shown++ == 0) {
            printf("%-*s %-*s %8s %9s %11s %14s %-5s %-8s %s\n", t->name_width, table_title(t), t->id_width, "BUILD",
                   "UPLOADS", "PROCESSES", "OWN SECONDS", "OWN CALLS", "EXACT", "NAMES", "LAST SEEN");
        }
        char age[64], calls[32], seconds[40];
        rows_calls(t->rows, i, calls, sizeof calls);
        show_amount(rows_real(t->rows, i, "seconds"), seconds, sizeof seconds);
        const char *note = rows_text(t->rows, i, "note"), *seen = rows_text(t->rows, i, "last_seen");
        if (t->relative) {
            show_age_of(seen, t->now, age, sizeof age);
        } else { /* to the second: more is in the JSON */
            (void)snprintf(age, sizeof age, "%.19s%s", seen[0] ? seen : "-", strlen(seen) > 19 ? "Z" : "");
        }
        printf("%-*s %-*.*s %8" PRIu64 " %9" PRIu64 " %11s %14s %-5s %-8s %s%s%s%s\n", t->name_width, row_name(t, i),
               t->id_width, t->full ? 128 : t->id_width, rows_text(t->rows, i, "build_id"),
               rows_number(t->rows, i, "uploads"), rows_number(t->rows, i, "processes_started"), seconds, calls,
               rows_flag(t->rows, i, "exact") ? "yes" : "no", row_names(t->rows, i, note), age, note[0] ? " (" : "",
               note, note[0] ? ")" : "");
    }
    if (shown == 0) {
        puts("No profiles stored yet. Make one with: profctl run COMMAND, or send one with: profctl upload -e EXE "
             "gmon.out");
    }
}

static enum profd_status builds_run(const struct profctl_call *call, struct profd_error *e)
{
    struct profd_conn *conn;
    struct rows *rows = NULL;
    struct ask_target target;
    struct look look;
    enum { AUTO, RELATIVE };
    size_t when = AUTO, order = 0;
    const struct profd_options o = profctl_options(call, ASK_ANSWER_MS);
    enum profd_status status = look_choose(call, &look, e);
    status = status == PROFD_OK ? profctl_choose(call, "time", &when, e) : status;
    status = status == PROFD_OK ? profctl_choose(call, "sort", &order, e) : status;
    status = status == PROFD_OK ? profd_conn_open(&o, &conn, e) : status;
    if (status != PROFD_OK) {
        return status;
    }
    ask_target_init(&target, "/api/v1/builds", NULL);
    ask_target_add(&target, "limit", "1000");
    status = rows_read(conn, &target, &rows, e);
    if (status == PROFD_OK && call->json) {
        status = profctl_value(call, "sort") ? sort_rows(rows, order, e) : PROFD_OK;
        status = status == PROFD_OK ? rows_print_json(rows, e) : status;
    } else if (status == PROFD_OK) {
        struct table t = {.rows = rows,
                          .all = profctl_value(call, "all"),
                          .full = profctl_value(call, "full"),
                          .relative = when == AUTO ? look.terminal : when == RELATIVE,
                          .now = (int64_t)time(NULL)};
        status = measure(&t, rows, e); /* leaves them by id */
        status = status == PROFD_OK ? sort_rows(rows, order, e) : status;
        if (status == PROFD_OK) {
            table_print(&t);
        }
    }
    rows_free(rows);
    profd_conn_close(conn);
    return status;
}

const struct profctl_verb verb_builds = {
    .name = "builds",
    .arguments = "",
    .summary = "List the programs that have profiles",
    .details =
        "EXACT is yes if no call and no tick was lost. OWN SECONDS and OWN CALLS are those of the program's own file;\n"
        "report adds its libraries. ~ marks calls that were sampled, not counted.\n",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .arguments_most = 0,
    .run = builds_run,
};
