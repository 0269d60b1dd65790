/* profctl diff: two builds, versions, times or label sets compared. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "profctl/profctl.h"
#include "proto/noun.h"

/* ---- A comparison for people, and as CSV ---- */

struct diff_print {
    bool all;   /* rows without a significant change, too */
    bool plan;  /* how much more data each needs */
    long limit; /* rows of a table */
};

static bool is(const json_t *row, const char *verdict)
{
    return strcmp(row_raw(row, "verdict"), verdict) == 0;
}

/* A metric: its title, the words for more and less of it, what a function needs to have it, and whether its values are
 * percentages. */
struct metric_words {
    const char *metric, *title, *more, *less, *common, *needs;
    bool percent;
};
static const struct metric_words METRICS[] = {
    {"time-per-process", "CPU time", "more", "less", "", "ticks", false},
    {"all-calls-per-process", "Calls", "more", "less", "", "counted calls", false},
    {"self", "Self time, as a share of all time", "takes a larger share", "takes a smaller share", "", "ticks", true},
    {"total", "Time with callees, as a share of all time", "takes a larger share", "takes a smaller share", "", "ticks",
     true},
    {"time-per-call", "Self time per call", "slower", "faster", "all functions", "ticks and counted calls", false},
    {"calls-per-process", "Calls per process", "called more often", "called less often", "all functions",
     "counted calls", false},
    {"calls-per-parent", "Calls per call of the caller", "called more often", "called less often", "", "counted calls",
     false},
};

static const struct metric_words *words_of(const json_t *table)
{
    for (size_t i = 0; i < COUNT(METRICS); i++) {
        if (strcmp(METRICS[i].metric, row_raw(table, "metric")) == 0) {
            return &METRICS[i];
        }
    }
    static const struct metric_words OTHER = {"", "Another metric", "more", "less", "", "values", false};
    return &OTHER;
}

/* "12.3%", "340 ns", "2.51". Amounts of dimensions other than time are plain numbers. */
static void show_value(const json_t *diff, const struct metric_words *w, double value, char *out, size_t size)
{
    static const struct {
        double seconds;
        const char *unit;
    } UNITS[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {0, "ns"}};
    const char *dimension = row_raw(diff, "dimension");
    const bool of_time = strncmp(w->metric, "time-per-", 9) == 0,
               timed = of_time && (strcmp(dimension, "seconds") == 0 || strcmp(dimension, "wall") == 0);
    if (value == 0 && (w->percent || of_time)) {
        (void)snprintf(out, size, "no ticks");
    } else if (w->percent) {
        show_share(value, out, size);
    } else if (timed) {
        size_t i = 0;
        while (value < UNITS[i].seconds) {
            i++;
        }
        (void)snprintf(out, size, "%.3g %s", value / (UNITS[i].seconds > 0 ? UNITS[i].seconds : 1e-9), UNITS[i].unit);
    } else {
        (void)snprintf(out, size, value >= 1000 ? "%.0f" : "%.4g", value);
    }
}

static void show_p(double p, char *out, size_t size)
{
    (void)snprintf(out, size, p < 0.0001 ? " < 0.0001" : " = %.2g", p);
}

#define SECOND 19 /* characters of a time up to its second */

static void print_side(const json_t *diff, const char *name)
{
    const json_t *side = json_object_get(diff, name);
    char title[2] = {(char)(name[0] - 'a' + 'A'), '\0'};
    const uint64_t machines = (uint64_t)row_real(side, "hosts"),
                   processes = (uint64_t)row_real(side, "processes_started");
    printf("%s  ", title);
    profctl_print(basename(row_raw(side, "name")), 60);
    printf(" %.12s", row_raw(side, "build_id"));
    if (row_raw(side, "match")[0] != '\0') {
        printf(" with ");
        profctl_print(row_raw(side, "match"), 120);
    }
    printf("\n   %.19sZ to %.19sZ; %" PRIu64 " %s started, %" PRIu64 " %s; %.0f ticks, %.6g %s\n",
           row_raw(side, "first"), row_raw(side, "last"), processes, noun_for(processes, "process", "processes"),
           machines, noun_for(machines, "machine", "machines"), row_real(side, "ticks"), row_real(side, "seconds"),
           row_raw(diff, "dimension"));
    function_print_reasons(side, "   ");
}

/* Two time ranges of the same uploads may both contain what was counted around their common border. */
static void print_overlap(const json_t *diff)
{
    const json_t *a = json_object_get(diff, "a"), *b = json_object_get(diff, "b");
    const char *first = row_raw(a, "first"), *last = row_raw(a, "last");
    if (!json_is_true(json_object_get(diff, "paired")) || strcmp(row_raw(a, "match"), row_raw(b, "match")) != 0) {
        return;
    }
    if (strcmp(first, row_raw(b, "first")) == 0 && strcmp(last, row_raw(b, "last")) == 0) {
        printf("Both sides are of one time: what was counted then is on both.\n");
        return;
    }
    first = strncmp(first, row_raw(b, "first"), SECOND) < 0 ? row_raw(b, "first") : first;
    last = strncmp(last, row_raw(b, "last"), SECOND) > 0 ? row_raw(b, "last") : last;
    if (strncmp(first, last, SECOND) < 0) {
        printf("What was counted from %.19sZ to %.19sZ may be on both sides.\n", first, last);
    }
}

/* Prints the verdict of a row in words. Each interval is one of many, so the words must not claim more than the
 * verdict. */
static void print_verdict(const json_t *table, const struct metric_words *w, const json_t *row)
{
    char p[32], q[32];
    const char *direction = row_real(row, "change") > 0 ? w->more : w->less,
               *than = json_is_object(json_object_get(table, "common")) ? " than the others" : "";
    const double tests = row_real(table, "tests");
    show_p(row_real(row, "p"), p, sizeof p);
    show_p(row_real(row, "q"), q, sizeof q);
    if (is(row, "changed")) {
        printf("%s%s (%s%s)", direction, than, tests > 1 ? "q" : "p", tests > 1 ? q : p);
    } else if (is(row, "constant-changed")) {
        printf("%s%s, the same in every group of processes", direction, than);
    } else if (is(row, "only-in-a") || is(row, "only-in-b")) {
        const bool arc = json_is_string(json_object_get(row, "caller")), in_a = is(row, "only-in-a");
        const char here = in_a ? 'A' : 'B', other = in_a ? 'B' : 'A';
        if (arc) {
            printf("%s called from there", in_a ? "no longer" : "newly");
        } else if (!row_has(row, in_a ? "b" : "a")) {
            printf("only in %c", here);
        } else {
            printf("no ticks in %c", other);
        }
    } else if (is(row, "uncertain") && row_has(row, "p")) {
        printf("%s%s or chance (p%s in %.0f tests, q%s)", direction, than, p, tests, q);
    } else if (is(row, "uncertain")) {
        printf("too few ticks in %c for a test", (row_real(row, "a") < row_real(row, "b") ? 'A' : 'B'));
    } else if (is(row, "not-significant")) {
        printf("may be chance (p%s)", p);
    } else if (is(row, "constant")) {
        printf("exactly as before");
    } else {
        printf("too few samples or processes to tell");
    }
}

/* "2% needs 4.2 times the data (8 h more)": at the speed at which the data of B came. */
static void print_plan(const json_t *diff, const json_t *row)
{
    const json_t *b = json_object_get(diff, "b");
    const char *needs = row_raw(row, "needs");
    char text[40], subject[40];
    const double needed = row_real(row, "data_needed"),
                 hours = (double)(show_time_of(row_raw(b, "last")) - show_time_of(row_raw(b, "first"))) / 3600;
    (void)snprintf(subject, sizeof subject, "%.3g%%", 100 * row_real(diff, "planned"));
    if (!row_has(row, "p")) {
        (void)snprintf(subject, sizeof subject, "a test");
    } else if (strcmp(needs, "nothing") == 0) {
        printf("\n      a change of %s would be seen", subject);
    }
    if (strcmp(needs, "too-much") == 0) {
        printf(row_has(row, "p") ? "\n      %s cannot be told: these processes differ too much"
                                 : "\n      %s is out of reach: it has too few ticks",
               subject);
    } else if (strcmp(needs, "processes") == 0) {
        printf("\n      %s needs more processes that have it", subject);
    } else if (strcmp(needs, "data") == 0) {
        show_rounded(needed, 2, text, sizeof text);
        printf("\n      %s needs %s times the data of both sides", subject, text);
        if (hours > 0) {
            const double more = (needed - 1) * hours, unit = more >= 1 ? 1 : more >= 1. / 60 ? 60 : 3600;
            show_rounded(more * unit, 2, text, sizeof text);
            printf(" (%s %s more, as fast as B's came)", text, unit < 2 ? "h" : unit < 61 ? "min" : "s");
        }
    }
}

static void print_row(const json_t *diff, const json_t *table, const char *name, const json_t *row, bool plan)
{
    const struct metric_words *w = words_of(table);
    char a[40] = "-", b[40] = "-", change[40], low[40], high[40];
    if (row_has(row, "a")) {
        show_value(diff, w, row_real(row, "a"), a, sizeof a);
    }
    if (row_has(row, "b")) {
        show_value(diff, w, row_real(row, "b"), b, sizeof b);
    }
    printf("  ");
    profctl_print(name, 200);
    if (json_is_string(json_object_get(row, "renamed_from"))) {
        printf(" (in A ");
        profctl_print(row_raw(row, "renamed_from"), 200);
        printf(", the same code)");
    }
    if (json_is_string(json_object_get(row, "caller"))) {
        printf(" from ");
        profctl_print(row_raw(row, "caller"), 200);
    }
    printf("  %s -> %s", a, b);
    if (row_has(row, "change")) {
        show_change(row_real(row, "change"), change, sizeof change);
        show_change(row_real(row, "low"), low, sizeof low);
        show_change(row_real(row, "high"), high, sizeof high);
        printf(strcmp(low, high) == 0 ? "  %s" : "  %s [%s, %s]", change, low, high);
    }
    printf("  ");
    print_verdict(table, w, row);
    /* A number of calls changes, too, if the compiler inlines a function in one version only. */
    const bool inlined_a = json_is_true(json_object_get(row, "inlined_a")),
               inlined_b = json_is_true(json_object_get(row, "inlined_b"));
    if (inlined_a != inlined_b) {
        printf("; %c has inlined copies of it, and no call of these is counted", inlined_a ? 'A' : 'B');
    }
    if (plan) {
        print_plan(diff, row);
    }
    printf("\n");
}

static double count_of(const json_t *table, const char *what)
{
    return row_real(json_object_get(table, "counts"), what);
}

/* The number of rows with a change, which stand first. */
static double count_changes(const json_t *table)
{
    return count_of(table, "changed") + count_of(table, "constant-changed") + count_of(table, "only-in-a") +
           count_of(table, "only-in-b") + count_of(table, "uncertain");
}

/* Whether the table compares all functions together. */
static bool is_of_all(const json_t *table)
{
    return strcmp(row_raw(table, "metric"), "time-per-process") == 0 ||
           strcmp(row_raw(table, "metric"), "all-calls-per-process") == 0;
}

static void print_table(const json_t *diff, const json_t *table, const struct diff_print *how)
{
    const struct metric_words *w = words_of(table);
    const json_t *common = json_object_get(table, "common"), *rows = json_object_get(table, "rows"), *row;
    const double listed = how->all ? count_of(table, "rows") : count_changes(table);
    size_t i;
    long shown = 0;
    printf("\n%s\n", w->title);
    if (json_is_string(json_object_get(table, "not_computed"))) {
        printf("  cannot be compared: %s\n", row_raw(table, "not_computed"));
        return;
    }
    if (json_is_object(common)) {
        char change[40], low[40], high[40];
        show_change(row_real(common, "change"), change, sizeof change);
        show_change(row_real(common, "low"), low, sizeof low);
        show_change(row_real(common, "high"), high, sizeof high);
        printf("  %s (%.0f in common)  %s [%s, %s]  the rows below are relative to this\n", w->common,
               row_real(common, "functions"), change, low, high);
    }
    json_array_foreach(rows, i, row)
    {
        if ((double)shown < listed && shown < how->limit) {
            print_row(diff, table, row_raw(row, "function"), row, how->plan);
            shown++;
        }
    }
    if (listed > (double)shown) {
        printf("  %.0f more; --limit shows them\n", listed - (double)shown);
    }
    const double same = count_of(table, "not-significant"), constant = count_of(table, "constant"),
                 few = count_of(table, "too-few"),
                 only = row_real(json_object_get(diff, "only_in_a"), "count") +
                        row_real(json_object_get(diff, "only_in_b"), "count");
    const bool arcs = strcmp(row_raw(table, "metric"), "calls-per-parent") == 0;
    const char *noun = arcs ? "arcs" : "functions", *one = arcs ? "arc" : "function";
    char visible[40];
    if (count_of(table, "rows") <= 0) {
        printf("  nothing to compare: no function has %s on both sides\n", w->needs);
    } else if (count_changes(table) <= 0 && only <= 0 && same + constant > 0) {
        printf("  no significant change\n");
    }
    if (same > 0) {
        show_change(row_real(table, "visible"), visible, sizeof visible);
        printf("  %.0f %s: no significant change; ", same, noun_for((uint64_t)same, one, noun));
        if (row_has(table, "visible")) {
            printf("%s%s or more would probably have been seen\n", same > 1 ? "in half of them " : "", visible);
        } else {
            printf("these processes differ too much to see less than a doubling\n");
        }
    }
    if (constant > 0) {
        printf("  %.0f %s: exactly as before\n", constant, noun_for((uint64_t)constant, one, noun));
    }
    if (few > 0) {
        printf("  %.0f %s: too few %s for a test\n", few, noun_for((uint64_t)few, one, noun),
               arcs || strcmp(row_raw(table, "metric"), "calls-per-process") == 0
                   ? "groups with calls"
                   : "samples (150 a side, in 12 groups)");
    }
}

/* Notes that the functions of one side need. */
struct only_notes {
    bool inlined; /* on the other side */
    bool unnamed; /* only the address is known */
};

/* Prints the functions that only one side has. */
static void print_only(const json_t *diff, bool first, const struct diff_print *how, struct only_notes *notes)
{
    const json_t *only = json_object_get(diff, first ? "only_in_a" : "only_in_b"), *row;
    const char side = first ? 'A' : 'B', other = first ? 'B' : 'A';
    char self[40], total[40];
    size_t i;
    const double count = row_real(only, "count");
    if (count <= 0) {
        return;
    }
    printf("\nSeen only in %c: %.0f %s\n", side, count, noun_for((uint64_t)count, "function", "functions"));
    json_array_foreach(json_object_get(only, "rows"), i, row)
    {
        if ((long)i < how->limit) {
            printf("  ");
            profctl_print(row_raw(row, "function"), 200);
            show_share(row_real(row, "self_share"), self, sizeof self);
            show_share(row_real(row, "total_share"), total, sizeof total);
            printf("  self %s, with callees %s", self, total);
            const double calls = row_real(row, "calls");
            const bool idle = row_flag(row, "idle"), inlined = row_flag(row, "inlined");
            if (calls > 0) {
                printf(", %s%.0f %s", row_is_sampled(json_object_get(diff, first ? "a" : "b")) ? "~" : "", calls,
                       noun_for((uint64_t)calls, "call", "calls"));
            }
            if (idle || inlined) {
                printf("; %c %s", other, inlined ? "has inlined it" : "contains it, but it was not seen there");
                printf("%s", idle && inlined ? ", and contains it" : "");
            }
            printf("\n");
            notes->inlined |= inlined;
            notes->unnamed |= strncmp(row_raw(row, "function"), "0x", 2) == 0;
        }
    }
    if (count > (double)how->limit) {
        printf("  %.0f more; --limit shows them\n", count - (double)how->limit);
    }
}

/* diff: the answer of /api/v1/diff. To stdout. */
static void diff_print_text(const json_t *diff, const struct diff_print *how)
{
    const json_t *table, *name;
    size_t i;
    print_side(diff, "a");
    print_side(diff, "b");
    print_overlap(diff);
    printf("Intervals are 95%%, from %.0f and %.0f of 16 random groups of processes%s. Of the changes, %.3g%% may be "
           "chance.\n",
           row_real(json_object_get(diff, "a"), "groups"), row_real(json_object_get(diff, "b"), "groups"),
           json_is_true(json_object_get(diff, "paired")) ? ", compared group by group" : "",
           100 * row_real(diff, "fdr"));
    json_array_foreach(json_object_get(diff, "metrics"), i, table)
    {
        if (i == 0 && is_of_all(table)) {
            printf("\nEach process\n");
        }
        if (is_of_all(table)) {
            const struct metric_words *w = words_of(table);
            const json_t *row = json_array_get(json_object_get(table, "rows"), 0);
            const char *dimension = row_raw(diff, "dimension"),
                       *title =
                           strcmp(w->needs, "ticks") != 0 || strcmp(dimension, "seconds") == 0 ? w->title : dimension;
            if (json_is_string(json_object_get(table, "not_computed"))) {
                printf("  %s cannot be compared: %s\n", title, row_raw(table, "not_computed"));
            } else if (!row) {
                printf("  %s cannot be compared: neither side has %s\n", title, w->needs);
            } else {
                print_row(diff, table, title, row, how->plan);
            }
        }
    }
    struct only_notes notes = {false, false};
    print_only(diff, true, how, &notes);
    print_only(diff, false, how, &notes);
    if (notes.inlined) {
        printf("  The time of a function that was inlined is in its callers: compare their total time.\n");
    }
    if (notes.unnamed) {
        printf("  A function without a name is found on the other side by its code only, if at all: profctl symbols "
               "sends names.\n");
    }
    json_array_foreach(json_object_get(diff, "metrics"), i, table)
    {
        if (!is_of_all(table)) {
            print_table(diff, table, how);
        }
    }
    json_array_foreach(json_object_get(diff, "watch_missing"), i, name)
    {
        printf("\nNeither side has a function ");
        profctl_print(json_string_value(name), 200);
        printf("\n");
    }
    const json_t *j = json_object_get(diff, "judgement");
    const double unknown = row_real(j, "cannot_tell");
    if (json_is_object(j)) {
        printf("\n%s by more than %.4g%%: ", row_raw(j, "metric"), 100 * row_real(j, "threshold"));
        if (strcmp(row_raw(j, "verdict"), "above") == 0) {
            printf("%.0f certainly\n", row_real(j, "above"));
        } else if (strcmp(row_raw(j, "verdict"), "below") == 0) {
            printf("none of those that could be compared\n");
        } else if (unknown > 0) {
            printf("none certainly; %.0f cannot be told\n", unknown);
        } else {
            printf("cannot be told, because nothing could be compared\n");
        }
    }
}

static void diff_print_csv(const json_t *diff)
{
    static const char MEMBERS[] = "function,file,object,caller,verdict,a,b,change,low,high,p,q,visible,needs,"
                                  "data_needed,ticks_a,ticks_b,share";
    const json_t *table, *row;
    size_t i, k;
    printf("metric,%s\r\n", MEMBERS);
    json_array_foreach(json_object_get(diff, "metrics"), i, table)
    {
        const char *metric = row_raw(table, "metric");
        const json_t *common = json_object_get(table, "common");
        if (json_is_object(common)) {
            printf("%s,,,,,\"common\",,,", metric);
            csv_print_row(common, "change,low,high,p");
            printf(",,,,,,,\r\n");
        }
        json_array_foreach(json_object_get(table, "rows"), k, row)
        {
            printf("%s,", metric);
            csv_print_row(row, MEMBERS);
            printf("\r\n");
        }
    }
}

/* ---- The verb ---- */

#define ROWS_SHOWN 20
#define RESULT_ABOVE 1
#define RESULT_UNKNOWN 3

static const struct profctl_option options[] = {
    OPTION_SINCE,
    OPTION_UNTIL,
    OPTION_LABEL,
    OPTION_MATCH,
    {"a-since", 0, "T", "start of the time range of A, in place of that of both"},
    {"a-until", 0, "T", "end of the time range of A"},
    {"a-label", 0, "K=V", "use for A only uploads with this label; may be repeated"},
    {"a-match", 0, "MATCHER", "use for A only uploads with a matching label; may be repeated"},
    {"b-since", 0, "T", "start of the time range of B, in place of that of both"},
    {"b-until", 0, "T", "end of the time range of B"},
    {"b-label", 0, "K=V", "use for B only uploads with this label; may be repeated"},
    {"b-match", 0, "MATCHER", "use for B only uploads with a matching label; may be repeated"},
    {"metric", 0, "M[,M...]",
     "compare only these metrics: time-per-process, all-calls-per-process, self, total, time-per-call, "
     "calls-per-process, "
     "calls-per-parent (default all)"},
    {"watch", 'w', "FUNCTION[,...]", "test only these functions; may be repeated"},
    {"fail-on", 0, "METRIC>P%", "exit with status 1 if a function grew significantly by more, as in 'self>2%'"},
    {"strict", 0, NULL, "with --fail-on: exit with status 3 if nothing can be told"},
    {"plan", 0, NULL, "print how much data is needed to find an increase by 2 %, or by that of --fail-on"},
    {"fdr", 0, "F", "part of the changes that may be chance, between 0 and 1 (default 0.05)"},
    {"all", 0, NULL, "also print functions without a significant change"},
    {"limit", 0, "N", "rows of each table (default 20; 0: all)"},
    OPTION_FORMAT,
    OPTION_SCOPE,
    OPTION_DIMENSION,
    OPTION_UID,
};

/* The options of one side are parameters of it: "a-since" is a.since. Each function of --watch parse,render is a
 * parameter of its own; a C++ name has commas of its own within its parentheses. */
static enum profd_status make_target(const struct profctl_call *call, size_t format, struct ask_target *t,
                                     struct profd_error *e)
{
    const char *limit = profctl_value(call, "limit");
    char text[1024];
    ask_target_init(t, "/api/v1/diff", NULL);
    TRY(side_add(call, call->arguments[0], "a", t, e));
    TRY(side_add(call, call->arguments[1], "b", t, e));
    for (size_t i = 0; i < call->given_count; i++) {
        const struct profctl_given *g = &call->given[i];
        const char *name = g->option->name;
        if (strcmp(name, "watch") == 0) {
            for (const char *list = g->value; *list;) {
                const size_t n = noun_list_end(list, strlen(list));
                (void)snprintf(text, sizeof text, "%.*s", (int)n, list);
                ask_target_add(t, "watch", n > 0 ? text : NULL);
                list += n + (list[n] == ',');
            }
        } else if (name[1] == '-') {
            const char prefix[] = {name[0], '.', '\0'};
            (void)snprintf(text, sizeof text, "%s%s", prefix, name + 2);
            if (strcmp(name + 2, "label") == 0) {
                TRY(ask_target_add_label(t, call, prefix, g->value, e));
            } else if (strcmp(name + 2, "match") == 0 || profctl_value(call, name) == g->value) {
                ask_target_add(t, text, g->value);
            }
        }
    }
    ask_target_add(t, "fail_on", profctl_value(call, "fail-on"));
    ask_target_add(t, "limit", limit || format != FORMAT_TEXT ? limit : "20");
    return ask_target_add_given(t, call, "since|until|scope|dimension|uid|metric|fdr", e);
}

static enum profd_status diff_run(const struct profctl_call *call, struct profd_error *e)
{
    const char *limit = profctl_value(call, "limit");
    const struct diff_print how = {.all = profctl_value(call, "all") || profctl_value(call, "plan"),
                                   .plan = profctl_value(call, "plan") != NULL,
                                   .limit = !limit                    ? ROWS_SHOWN
                                            : strcmp(limit, "0") == 0 ? LONG_MAX
                                                                      : strtol(limit, NULL, 10)};
    struct ask_target target;
    struct answer answer;
    size_t format = FORMAT_TEXT;
    TRY(profctl_choose_format(call, &format, e));
    if (profctl_value(call, "strict") && !profctl_value(call, "fail-on")) {
        return profd_error_set(e, PROFD_USAGE, "diff: --strict has a meaning with --fail-on only");
    }
    TRY(make_target(call, format, &target, e));
    TRY(ask_fetch_object(call, &target, &answer, e));
    if (format == FORMAT_JSON) {
        (void)fwrite(answer.text, 1, answer.size, stdout);
    } else if (format == FORMAT_CSV) {
        diff_print_csv(answer.whole);
    } else {
        diff_print_text(answer.whole, &how);
    }
    const char *verdict = row_raw(json_object_get(answer.whole, "judgement"), "verdict"); /* "" without --fail-on */
    *call->exit_status = strcmp(verdict, "above") == 0                ? RESULT_ABOVE
                         : strcmp(verdict, "below") == 0 || !*verdict ? 0
                         : profctl_value(call, "strict") != NULL      ? RESULT_UNKNOWN
                                                                      : 0;
    answer_free(&answer);
    return PROFD_OK;
}

const struct profctl_verb verb_diff = {
    .name = "diff",
    .arguments = "A B",
    .summary = "Compare two builds, versions, times or label sets",
    .details = "A and B are PROGRAM, BUILD or EXE as for report, or PROGRAM@LABEL=VALUE, as in shop@version=1.2.\n"
               "Exit status with --fail-on: 1 if a function grew by more; with --strict 3 if that cannot be told.\n",
    OPTIONS(options),
    .arguments_least = 2,
    .arguments_most = 2,
    .run = diff_run,
};
