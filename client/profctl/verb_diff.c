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

/* A metric: its title, what a function needs to have it, and whether its values are percentages. */
struct metric_words {
    const char *metric, *title, *common, *needs;
    bool percent;
};
static const struct metric_words METRICS[] = {
    {"time-per-process", "CPU time", "", "ticks", false},
    {"all-calls-per-process", "Calls", "", "counted calls", false},
    {"self", "Self time, as a share of all time", "", "ticks", true},
    {"total", "Time with callees, as a share of all time", "", "ticks", true},
    {"time-per-call", "Self time per call", "all functions", "ticks and counted calls", false},
    {"calls-per-process", "Calls per process", "all functions", "counted calls", false},
    {"calls-per-parent", "Calls per call of the caller", "", "counted calls", false},
};

static const struct metric_words *words_of(const json_t *table)
{
    for (size_t i = 0; i < COUNT(METRICS); i++) {
        if (strcmp(METRICS[i].metric, row_raw(table, "metric")) == 0) {
            return &METRICS[i];
        }
    }
    static const struct metric_words OTHER = {"", "Another metric", "", "values", false};
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
    if (strcmp(row_raw(a, "build_id"), row_raw(b, "build_id")) != 0 ||
        strcmp(row_raw(a, "match"), row_raw(b, "match")) != 0) {
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

/* Prints the words of a row, and how sure they are. Each interval is one of many, so the words must not claim more than
 * the verdict. */
static void print_verdict(const json_t *table, const json_t *row)
{
    char p[32], q[32];
    const bool one = row_real(table, "tests") <= 1;
    show_p(row_real(row, "p"), p, sizeof p);
    show_p(row_real(row, "q"), q, sizeof q);
    printf("%s", row_raw(row, "words"));
    if (row_has(row, "change") && row_real(row, "change") != 0 && !is(row, "not-significant") &&
        json_is_object(json_object_get(table, "common"))) {
        printf(" than the others");
    }
    if (is(row, "changed")) {
        printf(" (%s%s)", one ? "p" : "q", one ? p : q);
    } else if (is(row, "constant-changed")) {
        printf(", the same in every group of processes");
    } else if (is(row, "uncertain") && row_has(row, "p")) {
        printf(" (p%s in %.0f tests, q%s)", p, row_real(table, "tests"), q);
    } else if (is(row, "not-significant")) {
        printf(" (p%s)", p);
    }
}

/* Prints what a change of a share is in points, and in time for each process. */
static void print_effect(const json_t *diff, const json_t *row)
{
    char text[40];
    const double points = 100 * (row_real(row, "b") - row_real(row, "a"));
    if (row_has(row, "a") && row_has(row, "b")) {
        printf("  %+.*f points", points > -9.95 && points < 9.95 ? 1 : 0, points); /* 9.95 would become 10.0 */
    }
    if (row_has(row, "seconds_a") || row_has(row, "seconds_b")) {
        const double effect = row_real(row, "seconds_b") - row_real(row, "seconds_a");
        const struct metric_words as_time = {.metric = "time-per-process"};
        show_value(diff, &as_time, effect < 0 ? -effect : effect, text, sizeof text);
        printf("  %s%s a process", effect < 0 ? "-" : "+", effect != 0 ? text : "0");
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

/* The values of a row as texts; "-" for one that is not known. */
struct row_texts {
    char a[40], b[40], change[40], low[40], high[40];
};
static struct row_texts show_row(const json_t *diff, const json_t *table, const json_t *row)
{
    struct row_texts t = {"-", "-", "-", "-", "-"};
    if (row_has(row, "a")) {
        show_value(diff, words_of(table), row_real(row, "a"), t.a, sizeof t.a);
    }
    if (row_has(row, "b")) {
        show_value(diff, words_of(table), row_real(row, "b"), t.b, sizeof t.b);
    }
    if (row_has(row, "change")) {
        show_change(row_real(row, "change"), t.change, sizeof t.change);
        show_change(row_real(row, "low"), t.low, sizeof t.low);
        show_change(row_real(row, "high"), t.high, sizeof t.high);
    }
    return t;
}

static void print_row(const json_t *diff, const json_t *table, const char *name, const json_t *row, bool plan)
{
    const struct row_texts t = show_row(diff, table, row);
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
    printf("  %s -> %s", t.a, t.b);
    if (row_has(row, "change")) {
        printf(strcmp(t.low, t.high) == 0 ? "  %s" : "  %s [%s, %s]", t.change, t.low, t.high);
    }
    if (words_of(table)->percent) {
        print_effect(diff, row);
    }
    printf("  ");
    print_verdict(table, row);
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

/* Returns whether the table compares all functions together. */
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
        const struct row_texts t = show_row(diff, table, common);
        printf("  %s (%.0f in common)  %s [%s, %s]  the rows below are relative to this\n", w->common,
               row_real(common, "functions"), t.change, t.low, t.high);
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

    /* "No significant change" is printed only if no function is new or gone, either. */
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
                   ? "processes with calls"
                   : "samples (150 a side, in about 20 processes)");
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

/* Prints the answer to --fail-on. */
static void print_judgement(const json_t *j)
{
    const double unknown = row_real(j, "cannot_tell");
    printf("%s by more than %.4g%%: ", row_raw(j, "metric"), 100 * row_real(j, "threshold"));
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

/* diff: the answer of /api/v1/diff. To stdout. */
static void diff_print_text(const json_t *diff, const struct diff_print *how)
{
    const json_t *table, *name;
    size_t i;
    profctl_print(row_raw(diff, "sentence"), 400);
    printf("\n\n");
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
    if (json_is_object(json_object_get(diff, "judgement"))) {
        printf("\n");
        print_judgement(json_object_get(diff, "judgement"));
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

/* ---- A comparison for a pipeline ---- */

/* Prints text so that it has no markup of XML, HTML or Markdown. */
static void print_quoted(const char *text)
{
    char clean[1024];
    profctl_clean(text, clean, sizeof clean);
    for (const char *c = clean; *c; c++) {
        printf(strchr("&<>\"'`*_|\\[]~", *c) ? "&#%d;" : "%c", *c);
    }
}

/* Prints the name of a row: a function, with the caller of an arc. */
static void print_name(const json_t *row)
{
    print_quoted(json_is_string(json_object_get(row, "function")) ? row_raw(row, "function") : "each process");
    if (json_is_string(json_object_get(row, "caller"))) {
        printf(" from ");
        print_quoted(row_raw(row, "caller"));
    }
}

/* Returns NULL if the metric was not compared. */
static const json_t *find_table(const json_t *diff, const char *metric)
{
    const json_t *tables = json_object_get(diff, "metrics");
    size_t i = 0;
    while (i < json_array_size(tables) && strcmp(row_raw(json_array_get(tables, i), "metric"), metric) != 0) {
        i++;
    }
    return json_array_get(tables, i);
}

/* For the discussion of a change: the sentence, tables of what changed by the judged and by the leading metric, and the
 * whole text, folded. */
static void diff_print_markdown(const json_t *diff, const struct diff_print *how)
{
    const json_t *j = json_object_get(diff, "judgement"), *row;
    const json_t *tables[] = {find_table(diff, row_raw(j, "metric")), find_table(diff, row_raw(diff, "lead"))};
    size_t i;
    printf("**");
    print_quoted(row_raw(diff, "sentence"));
    printf("**\n\n");
    if (json_is_object(j)) {
        print_judgement(j);
    }
    for (size_t k = tables[0] == tables[1]; k < COUNT(tables); k++) {
        const double shown = tables[k] && is_of_all(tables[k]) ? count_of(tables[k], "rows") : count_changes(tables[k]);
        json_array_foreach(json_object_get(tables[k], "rows"), i, row)
        {
            const struct row_texts t = show_row(diff, tables[k], row);
            if ((double)i < shown && (long)i < how->limit) {
                if (i == 0) {
                    printf("\n| %s | A | B | change | 95 %% interval | |\n|:--|--:|--:|--:|:-:|:--|\n",
                           words_of(tables[k])->title);
                }
                printf("| <code>");
                print_name(row);
                printf("</code> | %s | %s | %s | %s to %s | ", t.a, t.b, t.change, t.low, t.high);
                print_verdict(tables[k], row);
                printf(" |\n");
            }
        }
    }
    printf("\n<details><summary>All figures</summary>\n\n```\n");
    diff_print_text(diff, how);
    printf("```\n\n</details>\n");
}

/* A row of the judged metric as a test. It fails if the judgement counts the row as above the threshold. It is skipped
 * if that cannot be told. */
enum { CASE_PASSED, CASE_FAILED, CASE_SKIPPED };
static unsigned judge_case(const json_t *row, double threshold)
{
    if (row_has(row, "high") && row_real(row, "high") > threshold) {
        const bool certain = is(row, "changed") || is(row, "constant-changed");
        return certain && row_real(row, "low") > threshold ? CASE_FAILED : CASE_SKIPPED;
    }
    return row_has(row, "high") || is(row, "only-in-a") ? CASE_PASSED : CASE_SKIPPED;
}

static void diff_print_junit(const json_t *diff)
{
    static const char *const RESULTS[] = {"", "failure", "skipped"};
    const json_t *j = json_object_get(diff, "judgement"), *row;
    const json_t *table = find_table(diff, row_raw(j, "metric")), *rows = json_object_get(table, "rows");
    const double threshold = row_real(j, "threshold");
    size_t i, counts[COUNT(RESULTS)] = {0};
    json_array_foreach(rows, i, row)
    {
        counts[judge_case(row, threshold)]++;
    }
    printf("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"profctl diff\" tests=\"%zu\" "
           "failures=\"%zu\" errors=\"0\" skipped=\"%zu\">\n",
           json_array_size(rows), counts[CASE_FAILED], counts[CASE_SKIPPED]);
    json_array_foreach(rows, i, row)
    {
        const struct row_texts t = show_row(diff, table, row);
        const char *result = RESULTS[judge_case(row, threshold)];
        printf("<testcase classname=\"%s by more than %.4g%%\" name=\"", row_raw(j, "metric"), 100 * threshold);
        print_name(row);
        printf("\">");
        if (*result) {
            char values[256]; /* "<0.001%" is one */
            (void)snprintf(values, sizeof values, "%s to %s, %s [%s, %s]: ", t.a, t.b, t.change, t.low, t.high);
            printf("<%s message=\"", result);
            print_quoted(values);
            print_quoted(row_raw(row, "words"));
            printf("\"/>");
        }
        printf("</testcase>\n");
    }
    printf("</testsuite>\n");
}

/* ---- The verb ---- */

#define ROWS_SHOWN 20
enum { FORMAT_MARKDOWN = FORMAT_CSV + 1, FORMAT_JUNIT };
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
    {"paired", 0, NULL, "compare processes with the same label compare_pair with each other"},
    {"all", 0, NULL, "also print functions without a significant change"},
    {"limit", 0, "N", "rows of each table (default 20; 0: all)"},
    {"format", 'f', "text|json|csv|markdown|junit", "output format (default text); junit needs --fail-on"},
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
    ask_target_add(t, "paired", profctl_value(call, "paired") ? "1" : NULL);
    ask_target_add(t, "limit", format == FORMAT_JUNIT ? "0" : limit || format != FORMAT_TEXT ? limit : "20");
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
    FAIL_IF((profctl_value(call, "strict") || format == FORMAT_JUNIT) && !profctl_value(call, "fail-on"), e,
            PROFD_USAGE, "diff: %s needs --fail-on", format == FORMAT_JUNIT ? "the format junit" : "--strict");
    TRY(make_target(call, format, &target, e));
    TRY(ask_fetch_object(call, &target, &answer, e));
    if (format == FORMAT_JSON) {
        (void)fwrite(answer.text, 1, answer.size, stdout);
    } else if (format == FORMAT_CSV) {
        diff_print_csv(answer.whole);
    } else if (format == FORMAT_MARKDOWN) {
        diff_print_markdown(answer.whole, &how);
    } else if (format == FORMAT_JUNIT) {
        diff_print_junit(answer.whole);
    } else {
        diff_print_text(answer.whole, &how);
    }
    const char *verdict = row_raw(json_object_get(answer.whole, "judgement"), "verdict"); /* "" without --fail-on */
    *call->exit_status = strcmp(verdict, "above") == 0                ? RESULT_ABOVE
                         : strcmp(verdict, "below") == 0 || !*verdict ? 0
                         : profctl_value(call, "strict") != NULL      ? RESULT_UNKNOWN
                                                                      : 0;
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
