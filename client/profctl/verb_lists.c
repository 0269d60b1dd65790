/* Verbs that show a list of the daemon's, each a table of columns: hosts, labels, groups, builds, ps, never-called,
 * functions, cycles. */
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "profctl/profctl.h"
#include "proto/noun.h"
#include "proto/object_note.h"

/* Prints " (TEXT)", or nothing without text. */
static void print_bracketed(const char *text)
{
    printf("%s%s%s", text[0] ? " (" : "", text, text[0] ? ")" : "");
}

static void tail_file(json_t *row)
{
    print_bracketed(row_text(row, "file"));
}

/* ---- hosts ---- */

/* A time of the daemon's JSON up to its minute; "-" for no time. */
static const char *cell_minute(json_t *row, const char *field, char out[LIST_CELL])
{
    (void)snprintf(out, LIST_CELL, *row_text(row, field) ? "%.16sZ" : "-", row_text(row, field));
    return out;
}

static const char *cell_lag(json_t *row, const char *field, char out[LIST_CELL])
{
    (void)snprintf(out, LIST_CELL, "%" PRIu64 "s", row_number(row, field));
    return out;
}

static const char *cell_remarks(json_t *row, const char *field, char out[LIST_CELL])
{
    static const struct {
        const char *field, *what;
    } remarks[] = {{"two_machines_seen", "two machines with one identity, seen "}, {"restored", "restored "}};
    size_t used = 0;
    (void)field;
    out[0] = '\0';
    for (size_t i = 0; i < COUNT(remarks); i++) {
        if (*row_text(row, remarks[i].field)) {
            used += (size_t)snprintf(out + used, LIST_CELL - used, "%s%.16sZ; ", remarks[i].what,
                                     row_text(row, remarks[i].field));
        }
    }
    return out;
}

static enum profd_status hosts_run(const struct profctl_call *call, struct profd_error *e)
{
    static const struct list_column columns[] = {
        {"HOST", -24, "name", cell_text, false},
        {"IDENTITY", -32, "identity", cell_text, false},
        {"TENANT", -12, "tenant", cell_text, false},
        {"LAST UPLOAD", -18, "last_upload", cell_minute, false},
        {"LAG", 8, "lag_seconds", cell_lag, false},
        {"VERSION", -12, "version", cell_dash, false},
        {"MACHINE-ID", -32, "machine_id", cell_dash, false},
        {"REMARKS", 0, "", cell_remarks, false},
    };
    static const struct list list = {
        .route = "/api/v1/hosts", .parameters = "", .columns = columns, .column_count = COUNT(columns)};
    return list_run(call, &list, e);
}

const struct profctl_verb verb_hosts = {
    .name = "hosts",
    .arguments = "",
    .summary = "List the hosts of a centre",
    .details = "LAG is the time since the host's last connection.\n"
               "The list contains only hosts of tenants that the user may read.\n",
    .run = hosts_run,
};

/* ---- labels ---- */

static const struct profctl_option labels_options[] = {
    {"build", 'b', "PROGRAM|BUILD|EXE", "use only labels of uploads of this build"},
};

static enum profd_status labels_ask(struct list_view *l, struct profd_error *e)
{
    const char *build = profctl_value(l->call, "build");
    char id[160];
    if (l->call->argument_count > 0) {
        ask_target_init(&l->target, "/api/v1/labels/{}/values", l->call->arguments[0]);
    }
    if (build) {
        TRY(build_find(l->call, build, id, e));
        ask_target_add(&l->target, "build_id", id);
    }
    return PROFD_OK;
}

static enum profd_status labels_prepare(struct list_view *l, struct profd_error *e)
{
    FAIL_IF(l->format == FORMAT_TEXT && l->call->argument_count > 0 && json_array_size(l->answer.rows) == 0, e,
            PROFD_NOT_FOUND, "no upload%s has the label \"%s\"; `profctl labels` lists the labels",
            profctl_value(l->call, "build") ? " of this build" : "", l->call->arguments[0]);
    return PROFD_OK;
}

static enum profd_status labels_run(const struct profctl_call *call, struct profd_error *e)
{
    static const struct list_column names[] = {
        {"UPLOADS", 8, "uploads", cell_number, false},
        {"VALUES", 8, "values", cell_number, false},
        {"LABEL", 0, "name", cell_text, false},
    };
    static const struct list_column values[] = {
        {"UPLOADS", 8, "uploads", cell_number, false},
        {"VALUE", 0, "value", cell_text, false},
    };
    const bool named = call->argument_count > 0;
    const struct list list = {.route = "/api/v1/labels",
                              .parameters = "",
                              .columns = named ? values : names,
                              .column_count = named ? COUNT(values) : COUNT(names),
                              .empty = "No labels are stored yet.",
                              .ask = labels_ask,
                              .prepare = labels_prepare};
    return list_run(call, &list, e);
}

const struct profctl_verb verb_labels = {
    .name = "labels",
    .arguments = "[LABEL]",
    .summary = "List label names, or the values of one",
    .details = "",
    OPTIONS(labels_options),
    .arguments_most = 1,
    .run = labels_run,
};

/* ---- groups ---- */

#define LABELS_MAX 3 /* the daemon's limit, which it says itself when there are more */

static const struct profctl_option groups_options[] = {
    {"by", 'b', "LABEL", "divide by this label; may be given up to three times"},
    {"step", 0, "1m|5m|10m|15m|30m|1h|2h|3h|4h|6h|8h|12h|1d|7d", "divide by time"},
    OPTION_FORMAT,
    OPTIONS_SELECTION,
    OPTION_SCOPE,
    OPTION_DIMENSION,
};

static void groups_print(struct list_view *l)
{
    list_print_table(l->answer.rows, l->list.columns, l->list.column_count, NULL);
    for (size_t k = 0; k < l->list.column_count; k++) {
        const struct list_column *column = &l->list.columns[k];
        bool known = column->cell != cell_dash;
        json_t *row;
        size_t i;
        json_array_foreach(l->answer.rows, i, row)
        {
            known = known || row_text(row, column->field)[0] != '\0';
        }
        if (!known) {
            printf("No upload here has the label \"%s\"; `profctl labels` lists the labels.\n", column->title);
        }
    }
}

/* The columns are the time, numbers, and the labels that were asked for; in CSV the labels stand before the numbers. */
static enum profd_status groups_run(const struct profctl_call *call, struct profd_error *e)
{
    struct list_column columns[7 + LABELS_MAX] = {
        {"TIME", -20, "time", cell_text, false},
        {"UPLOADS", 8, "uploads", cell_number, false},
        {"STARTED", 9, "processes_started", cell_number, false},
        {"MACHINES", 8, "hosts", cell_number, false},
        {"SECONDS", 11, "seconds", cell_amount, false},
        {"CALLS", 14, "calls", cell_calls, false},
        {"EXACT", -5, "exact", cell_yes, false},
    };
    const bool steps = profctl_value(call, "step") != NULL;
    char fields[LABELS_MAX][160], csv[LABELS_MAX * 160 + 160];
    size_t labels = 0, used = (size_t)snprintf(csv, sizeof csv, steps ? "time,width," : "");
    FAIL_IF(!profctl_value(call, "by") && !steps, e, PROFD_USAGE,
            "groups: --by LABEL or --step T is required, for example --by host or --step 1h; `profctl labels` lists "
            "the labels");
    for (size_t i = 0; i < call->given_count && labels < LABELS_MAX; i++) {
        if (strcmp(call->given[i].option->name, "by") == 0) {
            (void)snprintf(fields[labels], sizeof fields[0], "label_%.150s", call->given[i].value);
            used += (size_t)snprintf(csv + used, sizeof csv - used, "%s,", fields[labels]);
            columns[7 + labels] =
                (struct list_column){fields[labels] + strlen("label_"), LIST_FIT, fields[labels], cell_dash, false};
            labels++;
        }
    }
    columns[6 + labels].width = labels > 0 ? 0 : columns[6].width;
    (void)snprintf(csv + used, sizeof csv - used,
                   "uploads,processes_started,hosts,seconds,calls,exact,inexact_reasons");
    const struct list list = {.route = "/api/v1/builds/{}/groups",
                              .limit = "1000",
                              .parameters = "step|since|until|scope|dimension|uid",
                              .csv = csv,
                              .columns = columns + !steps,
                              .column_count = 6 + steps + labels,
                              .empty = "no uploads",
                              .print = groups_print};
    return list_run(call, &list, e);
}

const struct profctl_verb verb_groups = {
    .name = "groups",
    .arguments = "PROGRAM|BUILD|EXE --by LABEL|--step T",
    .summary = "Divide the uploads of a program by label or time",
    .details = "STARTED is the number of processes that began in a group, MACHINES that of distinct machines.\n",
    OPTIONS(groups_options),
    .arguments_least = 1,
    .arguments_most = 1,
    .run = groups_run,
};

/* ---- builds ---- */

#define ID_LEAST 8
#define ID_MOST 40 /* characters that are looked at to tell two ids apart */

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

static const struct profctl_option builds_options[] = {
    {"all", 'a', NULL, "also list shared libraries"},
    {"full", 0, NULL, "print complete build-ids and paths"},
    {"sort", 0, &(ORDERS(OR_KEY))[1], "order of the rows (default seen: latest first)"},
    {"time", 0, "auto|relative|iso", "format of times (default auto: relative on a terminal)"},
};

static const char *cell_names(json_t *row, const char *field, char out[LIST_CELL])
{
    (void)out;
    return !row_flag(row, field)                                         ? "no"
           : strstr(row_text(row, "note"), OBJECT_NOTE_EXPORTED) != NULL ? "exported"
                                                                         : "yes";
}

static const char *cell_age(json_t *row, const char *field, char out[LIST_CELL])
{
    show_age_of(row_text(row, field), (int64_t)time(NULL), out, LIST_CELL);
    return out;
}

/* A time to the second: more is in the JSON. */
static const char *cell_second(json_t *row, const char *field, char out[LIST_CELL])
{
    const char *time = row_text(row, field);
    (void)snprintf(out, LIST_CELL, "%.19s%s", time[0] ? time : "-", strlen(time) > 19 ? "Z" : "");
    return out;
}

static void tail_note(json_t *row)
{
    print_bracketed(row_text(row, "note"));
}

static struct list_column builds_columns[] = {
    {"PROGRAM", LIST_FIT, "name", cell_base, false},
    {"BUILD", 0, "build_id", cell_text, true},
    {"UPLOADS", 8, "uploads", cell_number, false},
    {"PROCESSES", 9, "processes_started", cell_number, false},
    {"OWN SECONDS", 11, "seconds", cell_amount, false},
    {"OWN CALLS", 14, "calls", cell_calls, false},
    {"EXACT", -5, "exact", cell_yes, false},
    {"NAMES", -8, "symbols", cell_names, false},
    {"LAST SEEN", 0, "last_seen", cell_second, false},
};

static enum profd_status builds_ask(struct list_view *l, struct profd_error *e)
{
    enum { AUTO, RELATIVE };
    size_t when = AUTO, order = 0;
    TRY(profctl_choose(l->call, "time", &when, e));
    TRY(profctl_choose(l->call, "sort", &order, e));
    if (when == AUTO ? isatty(STDOUT_FILENO) == 1 : when == RELATIVE) {
        builds_columns[8].cell = cell_age;
    }
    return PROFD_OK;
}

/* The width of ids that tells each from every other: the longest common beginning of two adjacent ones in their order,
 * and one more. No beginning tells variants of one id apart. */
static size_t builds_id_width(const json_t *by_id)
{
    size_t width = ID_LEAST;
    for (size_t i = 1; i < json_array_size(by_id); i++) {
        const char *a = row_text(json_array_get(by_id, i - 1), "build_id"),
                   *b = row_text(json_array_get(by_id, i), "build_id");
        size_t n = 0;
        while (n < ID_MOST && a[n] && a[n] == b[n]) {
            n++;
        }
        width = n >= width && strcmp(a, b) != 0 ? n + 1 : width;
    }
    return width;
}

static enum profd_status builds_prepare(struct list_view *l, struct profd_error *e)
{
    static const struct {
        const char *field;
        bool descending;
    } orders[] = {ORDERS(ORDER)};
    const bool text = l->format == FORMAT_TEXT, full = profctl_value(l->call, "full") != NULL;
    size_t order = 0;
    TRY(profctl_choose(l->call, "sort", &order, e));
    if (text) { /* equal rows stay in the order of their ids */
        TRY(answer_sort(&l->answer, "build_id", false, e));
        builds_columns[1].width = full ? -ID_MOST : -(int)builds_id_width(l->answer.rows);
        builds_columns[1].cut = !full;
        builds_columns[0].cell = full ? cell_text : cell_base;
    }
    if (text || profctl_value(l->call, "sort")) {
        TRY(answer_sort(&l->answer, orders[order].field, orders[order].descending, e));
    }
    if (text && profctl_value(l->call, "all")) {
        builds_columns[0].title = "PROGRAM OR LIBRARY";
    } else if (text) {
        for (size_t i = json_array_size(l->answer.rows); i-- > 0;) {
            if (!row_flag(json_array_get(l->answer.rows, i), "is_program")) {
                (void)json_array_remove(l->answer.rows, i);
            }
        }
    }
    return PROFD_OK;
}

static enum profd_status builds_run(const struct profctl_call *call, struct profd_error *e)
{
    static const struct list list = {
        .route = "/api/v1/builds",
        .limit = "1000",
        .parameters = "",
        .columns = builds_columns,
        .column_count = COUNT(builds_columns),
        .empty = "No profiles stored yet. Make one with: profctl run COMMAND, or send one with: profctl upload -e EXE "
                 "gmon.out",
        .tail = tail_note,
        .ask = builds_ask,
        .prepare = builds_prepare};
    return list_run(call, &list, e);
}

const struct profctl_verb verb_builds = {
    .name = "builds",
    .arguments = "",
    .summary = "List the programs that have profiles",
    .details =
        "EXACT is yes if no call and no tick was lost. OWN SECONDS and OWN CALLS are those of the program's own file;\n"
        "report adds its libraries. ~ marks calls that were sampled, not counted.\n",
    OPTIONS(builds_options),
    .run = builds_run,
};

/* ---- ps ---- */

static const struct profctl_option ps_options[] = {
    {"label", 'l', "K=V", "list only processes with this label; may be repeated"},
    {"match", 'm', "MATCHER",
     "list only processes with a matching label: K=\"V\", K!=\"V\", K=~\"V\" or K!~\"V\"; may be repeated"},
    {"pids", 0, NULL, "print only the process ids, one a line"},
};

static const char *cell_program(json_t *row, const char *field, char out[LIST_CELL])
{
    const char *name = cell_base(row, field, out);
    return name[0] ? name : "?";
}

static const char *cell_user(json_t *row, const char *field, char out[LIST_CELL])
{
    const struct passwd *user = getpwuid((uid_t)row_number(row, field));
    if (!user) {
        return cell_number(row, field, out);
    }
    profctl_clean(user->pw_name, out, 40);
    return out;
}

/* As ps shows ELAPSED: [days-][hours:]minutes:seconds. */
static const char *cell_elapsed(json_t *row, const char *field, char out[LIST_CELL])
{
    const uint64_t seconds = (uint64_t)row_real(row, field), days = seconds / 86400, hours = seconds / 3600 % 24;
    size_t used = 0;
    if (days) {
        used += (size_t)snprintf(out, LIST_CELL, "%" PRIu64 "-", days);
    }
    if (days || hours) {
        used += (size_t)snprintf(out + used, LIST_CELL - used, days ? "%02" PRIu64 ":" : "%" PRIu64 ":", hours);
    }
    (void)snprintf(out + used, LIST_CELL - used, used ? "%02" PRIu64 ":%02" PRIu64 : "%" PRIu64 ":%02" PRIu64,
                   seconds / 60 % 60, seconds % 60);
    return out;
}

/* "0", "<0.01", "0.25", "812", "4.31k", "12.3M", "144M", "2.20G". */
static const char *cell_rate(json_t *row, const char *field, char out[LIST_CELL])
{
    static const char *const units[] = {"", "k", "M", "G", "T"};
    double n = row_real(row, field);
    size_t i = 0;
    if (n > 0 && n < 9.995) {
        show_amount(n, out, LIST_CELL);
        return out;
    }
    while (n >= 999.5 && i + 1 < COUNT(units)) {
        n /= 1000;
        i++;
    }
    (void)snprintf(out, LIST_CELL, "%.*f%s", i == 0 || n >= 99.95 ? 0 : n >= 9.995 ? 1 : 2, n, units[i]);
    return out;
}

/* "81%"; "<1.29%" where no tick was inside the collector; "-" where too few ticks tell. */
static const char *cell_overhead(json_t *row, const char *field, char out[LIST_CELL])
{
    const double below = row_real(row, "overhead_below"), overhead = row_real(row, field);
    if (below > 0) {
        (void)snprintf(out, LIST_CELL, "<%.2f%%", 100 * below + 0.005);
    } else if (overhead > 0) {
        show_percent(100 * overhead, row_number(row, "ticks"), out, LIST_CELL);
    } else {
        return "-";
    }
    return out;
}

static void ps_tail(json_t *row)
{
    const char *labels = row_pairs(row, "labels");
    printf("%s%s", labels[0] ? " " : "", labels);
    print_bracketed(row_text(row, "why"));
}

static enum profd_status ps_ask(struct list_view *l, struct profd_error *e)
{
    const char *pid = l->call->argument_count > 0 ? l->call->arguments[0] : NULL;
    FAIL_IF(pid && (pid[0] == '\0' || pid[strspn(pid, "0123456789")] != '\0'), e, PROFD_USAGE,
            "ps: \"%s\" is not a process id; -l K=V selects processes by label", pid);
    ask_target_add(&l->target, "pid", pid);
    return PROFD_OK;
}

/* The largest overhead first, then by process id. */
static enum profd_status ps_prepare(struct list_view *l, struct profd_error *e)
{
    if (l->format != FORMAT_TEXT || profctl_value(l->call, "pids")) {
        return PROFD_OK;
    }
    TRY(answer_sort(&l->answer, "pid", false, e));
    return answer_sort(&l->answer, "overhead", true, e);
}

static void ps_print_pids(struct list_view *l)
{
    const json_t *row;
    size_t i;
    json_array_foreach(l->answer.rows, i, row)
    {
        printf("%" PRIu64 "\n", row_number(row, "pid"));
    }
}

static enum profd_status ps_run(const struct profctl_call *call, struct profd_error *e)
{
    static const struct list_column columns[] = {
        {"PID", 7, "pid", cell_number, false},
        {"PROGRAM", -16, "name", cell_program, true},
        {"USER", -8, "uid", cell_user, true},
        {"AGE", 9, "age_seconds", cell_elapsed, false},
        {"CALLS", 15, "calls", cell_number, false},
        {"TICKS", 9, "ticks", cell_number, false},
        {"CALLS/S", 8, "calls_per_second", cell_rate, false},
        {"OVERHEAD", 8, "overhead", cell_overhead, false},
        {"STATE", -9, "state", cell_text, false},
        {"EXACT", -5, "exact", cell_yes, false},
        {"LABELS", 0, "labels", NULL, false},
    };
    const bool pids = profctl_value(call, "pids") != NULL;
    const struct list list = {.route = "/api/v1/processes",
                              .limit = "1000",
                              .parameters = "",
                              .columns = columns,
                              .column_count = COUNT(columns),
                              .empty = pids ? NULL
                                       : call->argument_count || call->given_count
                                           ? "No live process matches. List all with: profctl ps"
                                           : "No live processes. Start one with: profctl run COMMAND",
                              .tail = ps_tail,
                              .ask = ps_ask,
                              .prepare = ps_prepare,
                              .print = pids ? ps_print_pids : NULL};
    return list_run(call, &list, e);
}

const struct profctl_verb verb_ps = {
    .name = "ps",
    .arguments = "[PID]",
    .summary = "List the live processes",
    .details =
        "OVERHEAD is a rough estimate of the share of CPU time spent counting, in the daemon's latest harvest.\n",
    OPTIONS(ps_options),
    .arguments_most = 1,
    .run = ps_run,
};

/* ---- never-called ---- */

static const struct profctl_option never_called_options[] = {
    OPTIONS_SELECTION,
    {"limit", 0, "N", "number of rows (default all)"},
    OPTION_FORMAT,
    OPTION_SCOPE,
};

static void never_called_print_head(json_t *all)
{
    char bytes[40], reasons[200];
    const uint64_t functions = row_number(all, "functions"), processes = row_number(all, "processes_started"),
                   reported = row_number(all, "not_called");
    const double bound = row_real(all, "bound");
    const char *named = row_text(all, "symbols");
    const bool whole = strcmp(named, "exported") != 0 && strcmp(named, "no") != 0;
    if (row_number(all, "counted_functions") == 0) {
        printf("unknown: no function of this build %s\n",
               whole ? "counts its calls (gcc -pg)"
                     : "that counts its calls has a name; profctl symbols sends its executable or debug file");
        return;
    }
    show_bytes(row_number(all, "bytes"), bytes, sizeof bytes);
    printf("%" PRIu64 " %s, %s, entered by none of %" PRIu64 " %s", functions,
           noun_for(functions, "function", "functions"), bytes, processes, noun_for(processes, "process", "processes"));
    if (bound > 0) {
        printf(": fewer than %.3g%% of processes enter any one of them (95%%)\n", 100 * bound);
    } else if (!row_flag(all, "calls_exact")) {
        row_join(all, "inexact_reasons", reasons, sizeof reasons);
        printf("; calls may be missing (%s), so some may have been entered\n", reasons);
    } else {
        printf("; too few processes for a bound\n");
    }
    printf("Listed are functions that count their calls.%s\n",
           row_flag(all, "inlined_known")
               ? ""
               : " There is no debug information: code of theirs that was inlined elsewhere may have run.");
    if (!whole) {
        printf("Only exported functions have names, and only these are known: profctl symbols sends a debug file.\n");
    }
    if (reported > functions) {
        printf("A report says %" PRIu64 " not called: there each copy of a function counts, also where another was "
               "entered or inlined,\nand so does start-up code, in all builds of the report.\n",
               reported);
    }
}

static void never_called_tail(json_t *row)
{
    tail_file(row);
    if (row_flag(row, "entered_elsewhere")) {
        printf("  this copy was never entered, another one was");
    } else if (row_flag(row, "inlined")) {
        printf("  never entered, but it is also inlined, where it may have run");
    } else if (row_number(row, "copies") > 1) {
        printf("  %" PRIu64 " copies", row_number(row, "copies"));
    }
}

static void never_called_print(struct list_view *l)
{
    const size_t n = json_array_size(l->answer.rows);
    never_called_print_head(l->answer.whole);
    if (n > 0) {
        list_print_table(l->answer.rows, l->list.columns, l->list.column_count, never_called_tail);
    }
    if (n > 0 && row_number(l->answer.whole, "row_count") > n) {
        printf("%" PRIu64 " more; without --limit they are listed\n", row_number(l->answer.whole, "row_count") - n);
    }
}

static enum profd_status never_called_run(const struct profctl_call *call, struct profd_error *e)
{
    static const struct list_column columns[] = {
        {"BYTES", 10, "bytes", cell_number, false},
        {"ADDRESS", -18, "address", cell_text, false},
        {"FUNCTION", 0, "function", cell_text, false},
    };
    static const struct list list = {.route = "/api/v1/builds/{}/never-called",
                                     .is_one_page = true,
                                     .parameters = "since|until|limit|scope|uid",
                                     .csv = "function,file,address,bytes,copies,inlined,entered_elsewhere,raw_name",
                                     .columns = columns,
                                     .column_count = COUNT(columns),
                                     .print = never_called_print};
    return list_run(call, &list, e);
}

const struct profctl_verb verb_never_called = {
    .name = "never-called",
    .arguments = "PROGRAM|BUILD|EXE",
    .summary = "List the functions that no process entered",
    .details = "Only functions compiled to count their calls (-pg, -mfentry, -finstrument-functions) can be listed.\n",
    OPTIONS(never_called_options),
    .arguments_least = 1,
    .arguments_most = 1,
    .run = never_called_run,
};

/* ---- functions ---- */

static const struct profctl_option functions_options[] = {
    OPTIONS_SELECTION,
    {"name", 0, "TEXT", "show only functions with TEXT in their names"},
    {"sort", 0, "self|total|calls", "order of the rows (default self)"},
    {"limit", 0, "N", "number of functions, at most 1,000 (default 20)"},
    OPTION_FORMAT,
    OPTION_DIMENSION,
    OPTION_NAMES,
};

static const char *cell_share(json_t *row, const char *field, char out[LIST_CELL])
{
    (void)snprintf(out, LIST_CELL, "%.2f", row_real(row, field));
    return out;
}

static const char *cell_short_name(json_t *row, const char *field, char out[LIST_CELL])
{
    const char *name = cell_text(row, field, out);
    return name[0] ? name : row_text(row, "name");
}

static enum profd_status functions_ask(struct list_view *l, struct profd_error *e)
{
    size_t sort;
    TRY(profctl_choose(l->call, "sort", &sort, e));
    ask_target_add(&l->target, "names",
                   l->format != FORMAT_TEXT ? profctl_value(l->call, "names")
                                            : look_names(l->call, isatty(STDOUT_FILENO) == 1));
    return PROFD_OK;
}

static enum profd_status functions_prepare(struct list_view *l, struct profd_error *e)
{
    FAIL_IF(l->format != FORMAT_JSON && row_number(l->answer.whole, "uploads") == 0, e, PROFD_NOTHING,
            "nothing matches: no upload has these labels in this time range");
    if (l->format != FORMAT_JSON) {
        /* Whether a row's numbers of calls are sampled becomes a member for CSV, and for cell_counted. */
        json_t *row;
        size_t i;
        json_array_foreach(l->answer.rows, i, row)
        {
            (void)json_object_set_new(row, "calls_sampled", json_boolean(row_is_sampled(row)));
        }
    }
    return PROFD_OK;
}

static void functions_print(struct list_view *l)
{
    /* Time of what could not be joined by name. */
    static const struct {
        const char *field, *what;
    } PARTS[] = {{"unnamed_seconds", "functions of builds without symbols"},
                 {"ambiguous_seconds", "functions with the name and file of another one of their build"},
                 {"other_seconds", "[plt] and [gap]"}};
    json_t *all = l->answer.whole, *apart = json_object_get(all, "not_joined");
    char seconds[40];
    const uint64_t programs = row_number(all, "programs"), processes = row_number(all, "processes_started"),
                   more = row_number(all, "names"), left = row_number(apart, "programs");
    show_amount(row_real(all, "seconds"), seconds, sizeof seconds);
    printf("%s %s in %" PRIu64 " %s, %" PRIu64 " %s started\n", seconds, row_text(all, "dimension"), programs,
           noun_for(programs, "program", "programs"), processes, noun_for(processes, "process", "processes"));
    function_print_reasons(all, "");
    list_print_table(l->answer.rows, l->list.columns, l->list.column_count, tail_file);
    if (more > json_array_size(l->answer.rows)) {
        printf("%" PRIu64 " more; --limit shows them\n", more - json_array_size(l->answer.rows));
    }
    for (size_t i = 0; i < COUNT(PARTS); i++) {
        if (row_real(apart, PARTS[i].field) > 0) {
            show_amount(row_real(apart, PARTS[i].field), seconds, sizeof seconds);
            printf("%s %s more in %s\n", seconds, row_text(all, "dimension"), PARTS[i].what);
        }
    }
    if (left > 0) {
        printf("%" PRIu64 " %s less CPU time %s left out; --since leaves out what was not seen lately\n", left,
               noun_for(left, "program with", "programs with"), noun_for(left, "is", "are"));
    }
}

static enum profd_status functions_run(const struct profctl_call *call, struct profd_error *e)
{
    static const struct list_column columns[] = {
        {"% SELF", 7, "percent", cell_share, false},           {"SELF", 11, "self_seconds", cell_amount, false},
        {"% TOTAL", 7, "total_percent", cell_share, false},    {"TOTAL", 11, "total_seconds", cell_amount, false},
        {"CALLS", 14, "calls", cell_counted, false},           {"BUILDS", 6, "builds", cell_number, false},
        {"FUNCTION", 0, "short_name", cell_short_name, false},
    };
    static const struct list list = {
        .route = "/api/v1/functions",
        .is_one_page = true,
        .limit = "20",
        .parameters = "since|until|name|sort|limit|dimension|uid",
        .csv = "name,file,self_seconds,percent,total_seconds,total_percent,calls,self_calls,programs,builds,"
               "calls_sampled",
        .columns = columns,
        .column_count = COUNT(columns),
        .ask = functions_ask,
        .prepare = functions_prepare,
        .print = functions_print};
    return list_run(call, &list, e);
}

const struct profctl_verb verb_functions = {
    .name = "functions",
    .arguments = "",
    .summary = "Show the functions with the most time, over all programs and builds",
    .details = "Functions of all programs with matching uploads are joined by name (and file, if static).\n",
    OPTIONS(functions_options),
    .run = functions_run,
};

/* ---- cycles ---- */

static const struct profctl_option cycles_options[] = {
    OPTIONS_SELECTION, {"limit", 0, "N", "number of cycles, and of members and arcs of each (default 20; 0: all)"},
    OPTION_FORMAT,     OPTION_SCOPE,
    OPTION_DIMENSION,
};

/* A line for each function or arc of the list, and how many of all were left out. mark: "~" where calls were sampled.
 */
static void cycles_print_part(const json_t *list, uint64_t all, const char *calls, const char *mark)
{
    const json_t *row;
    size_t i;
    json_array_foreach(list, i, row)
    {
        char text[32];
        (void)snprintf(text, sizeof text, "%s%" PRIu64, mark, row_number(row, calls));
        printf("  %12s  ", text);
        if (json_object_get(row, "caller")) {
            profctl_print(row_raw(row, "caller"), 256);
            printf(" -> ");
            profctl_print(row_raw(row, "callee"), 256);
        } else {
            profctl_print(row_raw(row, "name"), 256);
        }
        printf("\n");
    }
    if (all > json_array_size(list)) {
        printf("  %12s  %" PRIu64 " more; --limit shows them\n", "", all - json_array_size(list));
    }
}

/* dimension and how: what the times are, and where they come from. */
static void cycles_print_one(const json_t *cycle, const char *dimension, const char *how, const char *mark)
{
    const uint64_t breaking = row_number(cycle, "break_count"), calls = row_number(cycle, "break_calls");
    char own[40], below[40];
    show_amount(row_real(cycle, "self_seconds"), own, sizeof own);
    show_amount(row_real(cycle, "children_seconds"), below, sizeof below);
    printf("cycle %" PRIu64 ": %" PRIu64 " functions, %.2f%% of the time%s, %s %s in it and %s below; %s%" PRIu64
           " calls from outside, %s%" PRIu64 " inside\n",
           row_number(cycle, "number"), row_number(cycle, "member_count"), row_real(cycle, "percent"), how, own,
           dimension, below, mark, row_number(cycle, "calls_outside"), mark, row_number(cycle, "calls_inside"));
    printf(" members, with their calls from inside:\n");
    cycles_print_part(json_object_get(cycle, "members"), row_number(cycle, "member_count"), "calls_inside", mark);
    printf(" calls inside:\n");
    cycles_print_part(json_object_get(cycle, "arcs"), row_number(cycle, "arc_count"), "calls", mark);
    if (breaking == 0) {
        printf(" its members do not call each other in a circle in this window\n");
        return;
    }
    if (breaking == 1) {
        printf(" to break it, remove this arc");
    } else {
        printf(" to break it, remove these %" PRIu64 " arcs", breaking);
    }
    printf(" (%s%" PRIu64 " %s):\n", mark, calls, noun_for(calls, "call", "calls"));
    cycles_print_part(json_object_get(cycle, "break"), breaking, "calls", mark);
}

static void cycles_print(struct list_view *l)
{
    json_t *all = l->answer.whole, *cycle;
    const char *dimension = row_text(all, "dimension");
    const bool sampled = row_is_sampled(all);
    size_t i;
    if (l->format == FORMAT_CSV) {
        static const struct {
            const char *list, *row, *members;
        } PARTS[] = {{"members", "member", ",name,calls_inside,calls_outside,self_seconds"},
                     {"arcs", "arc", "caller,callee,calls,calls_outside,self_seconds"},
                     {"break", "remove", "caller,callee,calls,calls_outside,self_seconds"}};
        const json_t *row;
        size_t k;
        printf("cycle,row,caller,function,calls_inside,calls_outside,self_seconds,calls_sampled\r\n");
        json_array_foreach(l->answer.rows, i, cycle)
        {
            for (size_t p = 0; p < COUNT(PARTS); p++) {
                json_array_foreach(json_object_get(cycle, PARTS[p].list), k, row)
                {
                    printf("%" PRIu64 ",%s,", row_number(cycle, "number"), PARTS[p].row);
                    csv_print_row(row, PARTS[p].members);
                    printf(",%d\r\n", sampled);
                }
            }
        }
        return;
    }
    if (json_array_size(l->answer.rows) == 0) {
        puts("no cycles");
        return;
    }
    function_print_reasons(all, "");
    json_array_foreach(l->answer.rows, i, cycle)
    {
        printf(i > 0 ? "\n" : "");
        cycles_print_one(cycle, dimension[0] ? dimension : "seconds",
                         strcmp(row_text(all, "time"), "measured") == 0 ? " (measured)" : "", sampled ? "~" : "");
    }
    if (row_number(all, "count") > i) {
        printf("\n%" PRIu64 " cycles with less time; --limit shows them\n", row_number(all, "count") - i);
    }
    if (sampled) {
        printf("~: sampled, at least in part: how often a tick found the function below its caller\n");
    }
}

static enum profd_status cycles_run(const struct profctl_call *call, struct profd_error *e)
{
    static const struct list list = {.route = "/api/v1/builds/{}/cycles",
                                     .is_one_page = true,
                                     .limit = "20",
                                     .limit_is_text = true,
                                     .parameters = "since|until|limit|scope|dimension|uid",
                                     .print = cycles_print};
    return list_run(call, &list, e);
}

const struct profctl_verb verb_cycles = {
    .name = "cycles",
    .arguments = "PROGRAM|BUILD|EXE",
    .summary = "List the cycles of a program, and arcs that break them",
    .details = "A cycle is a set of functions that call each other in a circle.\n",
    OPTIONS(cycles_options),
    .arguments_least = 1,
    .arguments_most = 1,
    .run = cycles_run,
};
