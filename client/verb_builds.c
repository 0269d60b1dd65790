/* profctl builds: what profd knows. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "client/profctl.h"
#include "client/profctl_ask.h"
#include "client/profctl_look.h"
#include "client/profctl_rows.h"
#include "client/profctl_show.h"

#define ID_LEAST 8
#define NAME_MOST 40

static const struct profctl_option options[] = {
    {"all", 'a', NULL, "shared libraries too, not only programs"},
    {"full", 0, NULL, "whole build-ids and paths"},
    {"sort", 0, "KEY", "seen (default: latest first), name, uploads, processes, seconds or calls"},
    {"time", 0, "WHEN", "auto (default: relative on a terminal), relative or iso"},
};

struct table {
    const struct rows *rows;
    bool all, full, relative;
    int64_t now;
    int name_width, id_width;
    size_t id_least; /* characters of an id that tell it from every other */
};

static enum profd_status sort_rows(const struct profctl_call *call, struct rows *rows, struct profd_error *e)
{
    static const struct {
        const char *key, *field;
        bool descending;
    } orders[] = {{"seen", "last_seen", true},  {"name", "name", false},  {"uploads", "uploads", true},
                  {"seconds", "seconds", true}, {"calls", "calls", true}, {"processes", "processes_started", true}};
    const char *given = profctl_value(call, "sort"), *key = given ? given : orders[0].key;
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        if (strcmp(orders[i].key, key) == 0) {
            return rows ? rows_sort(rows, orders[i].field, orders[i].descending, e) : PROFD_OK;
        }
    }
    return profd_error_set(e, PROFD_USAGE,
                           "builds: --sort %s is none of seen, name, uploads, processes, seconds, calls", key);
}

static enum profd_status choose_time(const struct profctl_call *call, bool terminal, bool *relative,
                                     struct profd_error *e)
{
    const char *when = profctl_value(call, "time");
    bool automatic = !when || strcmp(when, "auto") == 0;
    if (!automatic && strcmp(when, "relative") != 0 && strcmp(when, "iso") != 0) {
        return profd_error_set(e, PROFD_USAGE, "builds: --time %s is none of auto, relative, iso", when);
    }
    *relative = automatic ? terminal : strcmp(when, "relative") == 0;
    return PROFD_OK;
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

/* The common beginning of two ids, at most 40 characters. */
static size_t common_length(const char *a, const char *b)
{
    size_t n = 0;
    while (n < 40 && a[n] && a[n] == b[n]) {
        n++;
    }
    return n;
}

/* One length for all ids: the longest common beginning of neighbours in sorted order, and one more. */
static enum profd_status measure(struct table *t, struct rows *by_id, struct profd_error *e)
{
    size_t n = rows_count(t->rows), longest = strlen("PROGRAM");
    enum profd_status status = rows_sort(by_id, "build_id", false, e);
    t->id_least = ID_LEAST;
    for (size_t i = 1; status == PROFD_OK && i < n; i++) {
        const char *a = rows_text(by_id, i - 1, "build_id"), *b = rows_text(by_id, i, "build_id");
        size_t common =
            strcmp(a, b) == 0 ? 0 : common_length(a, b); /* variants of one id: no prefix tells them apart */
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

static void row_print(const struct table *t, size_t i)
{
    char age[64];
    const char *note = rows_text(t->rows, i, "note"), *seen = rows_text(t->rows, i, "last_seen");
    if (t->relative) {
        show_age_of(seen, t->now, age, sizeof age);
    } else { /* to the second: more is in the JSON */
        (void)snprintf(age, sizeof age, "%.19s%s", seen[0] ? seen : "-", strlen(seen) > 19 ? "Z" : "");
    }
    printf("%-*s %-*.*s %8" PRIu64 " %9" PRIu64 " %11.2f %14" PRIu64 " %-5s %-5s %s%s%s%s\n", t->name_width,
           row_name(t, i), t->id_width, t->full ? 128 : t->id_width, rows_text(t->rows, i, "build_id"),
           rows_number(t->rows, i, "uploads"), rows_number(t->rows, i, "processes_started"),
           rows_real(t->rows, i, "seconds"), rows_number(t->rows, i, "calls"),
           rows_flag(t->rows, i, "exact") ? "yes" : "no", rows_flag(t->rows, i, "symbols") ? "yes" : "no", age,
           note[0] ? " (" : "", note, note[0] ? ")" : "");
}

static void table_print(const struct table *t)
{
    size_t shown = 0;
    for (size_t i = 0; i < rows_count(t->rows); i++) {
        if (!row_is_shown(t, i)) {
            continue;
        }
        if (shown++ == 0) {
            printf("%-*s %-*s %8s %9s %11s %14s %-5s %-5s %s\n", t->name_width, "PROGRAM", t->id_width, "BUILD",
                   "UPLOADS", "PROCESSES", "SECONDS", "CALLS", "EXACT", "NAMES", "LAST SEEN");
        }
        row_print(t, i);
    }
    if (shown == 0) {
        puts("no builds yet: profctl upload delivers the first");
    }
}

static enum profd_status builds_show(const struct profctl_call *call, struct rows *rows, bool relative,
                                     struct profd_error *e)
{
    struct table t = {.rows = rows,
                      .all = profctl_value(call, "all"),
                      .full = profctl_value(call, "full"),
                      .relative = relative,
                      .now = (int64_t)time(NULL)};
    enum profd_status status = measure(&t, rows, e); /* leaves them by id */
    status = status == PROFD_OK ? sort_rows(call, rows, e) : status;
    if (status == PROFD_OK) {
        table_print(&t);
    }
    return status;
}

static enum profd_status builds_run(const struct profctl_call *call, struct profd_error *e)
{
    struct profd_conn *conn;
    struct rows *rows = NULL;
    struct ask_target target;
    struct look look;
    bool relative = false;
    const struct profd_options o = profctl_options(call, ASK_ANSWER_MS);
    enum profd_status status = look_choose(call, &look, e);
    status = status == PROFD_OK ? choose_time(call, look.terminal, &relative, e) : status;
    status = status == PROFD_OK ? sort_rows(call, NULL, e) : status;
    status = status == PROFD_OK ? profd_conn_open(&o, &conn, e) : status;
    if (status != PROFD_OK) {
        return status;
    }
    ask_target_init(&target, "/api/v1/builds");
    ask_target_add(&target, "limit", "1000");
    status = rows_read(conn, &target, &rows, e);
    if (status == PROFD_OK && call->json) {
        status = profctl_value(call, "sort") ? sort_rows(call, rows, e) : PROFD_OK;
        status = status == PROFD_OK ? rows_print_json(rows, e) : status;
    } else if (status == PROFD_OK) {
        status = builds_show(call, rows, relative, e);
    }
    rows_free(rows);
    profd_conn_close(conn);
    return status;
}

const struct profctl_verb verb_builds = {
    .name = "builds",
    .arguments = "",
    .summary = "List the builds that profiles came from",
    .details = "EXACT is yes where no call and no tick was lost on the way; NAMES where function names are known. "
               "BUILD is as short\n"
               "as it can be and still means one build only.\n",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .arguments_most = 0,
    .run = builds_run,
};
