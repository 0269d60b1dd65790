#define _XOPEN_SOURCE 700
#include "profctl/diff_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "profctl/profctl.h"
#include "profctl/profctl_csv.h"
#include "profctl/profctl_function.h"
#include "profctl/profctl_show.h"
#include "proto/noun.h"

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static double real_of(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static bool has(const json_t *object, const char *key)
{
    return json_is_number(json_object_get(object, key));
}

static bool is(const json_t *row, const char *verdict)
{
    return strcmp(text_of(row, "verdict"), verdict) == 0;
}

static void print_clean(const char *text, size_t most)
{
    char clean[512];
    profctl_clean(text, clean, most < sizeof clean ? most : sizeof clean);
    fputs(clean, stdout);
}

/* What people call a metric, the words for more and less of it, what a function needs to have it, and how its values
 * are shown. */
struct metric_words {
    const char *metric, *title, *more, *less, *common, *needs;
    bool percent;
};
static const struct metric_words METRICS[] = {
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
    for (size_t i = 0; i < sizeof METRICS / sizeof METRICS[0]; i++) {
        if (strcmp(METRICS[i].metric, text_of(table, "metric")) == 0) {
            return &METRICS[i];
        }
    }
    static const struct metric_words OTHER = {"", "Another metric", "more", "less", "", "values", false};
    return &OTHER;
}

/* "12.3%", "340 ns", "2.51". */
static void show_value(const struct metric_words *w, double value, char *out, size_t size)
{
    static const struct {
        double seconds;
        const char *unit;
    } UNITS[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {0, "ns"}};
    const bool per_call = strcmp(w->metric, "time-per-call") == 0;
    if (value == 0 && (w->percent || per_call)) {
        (void)snprintf(out, size, "no ticks");
    } else if (w->percent) {
        show_share(value, out, size);
    } else if (per_call) {
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
    (void)snprintf(out, size, p < 0.0001 ? "< 0.0001" : "= %.2g", p);
}

#define SECOND 19 /* characters of a time up to its second */

static int64_t seconds_of(const char *rfc3339)
{
    struct tm tm = {0};
    return strptime(rfc3339, "%Y-%m-%dT%H:%M:%S", &tm) ? (int64_t)timegm(&tm) : 0;
}

static void print_side(const json_t *diff, const char *name)
{
    const json_t *side = json_object_get(diff, name);
    const char *path = text_of(side, "name"), *slash = strrchr(path, '/');
    char title[2] = {(char)(name[0] - 'a' + 'A'), '\0'};
    const uint64_t machines = (uint64_t)real_of(side, "hosts"),
                   processes = (uint64_t)real_of(side, "processes_started");
    printf("%s  ", title);
    print_clean(slash ? slash + 1 : path, 60);
    printf(" %.12s", text_of(side, "build_id"));
    if (text_of(side, "match")[0] != '\0') {
        printf(" with ");
        print_clean(text_of(side, "match"), 120);
    }
    printf("\n   %.19sZ to %.19sZ; %" PRIu64 " %s started, %" PRIu64 " %s; %.0f ticks, %.6g %s\n",
           text_of(side, "first"), text_of(side, "last"), processes, noun_for(processes, "process", "processes"),
           machines, noun_for(machines, "machine", "machines"), real_of(side, "ticks"), real_of(side, "seconds"),
           text_of(diff, "dimension"));
    function_print_reasons(side, "   ");
}

/* Two time ranges of the same uploads may both contain what was counted around their common border. */
static void print_overlap(const json_t *diff)
{
    const json_t *a = json_object_get(diff, "a"), *b = json_object_get(diff, "b");
    const char *first = text_of(a, "first"), *last = text_of(a, "last");
    if (!json_is_true(json_object_get(diff, "paired")) || strcmp(text_of(a, "match"), text_of(b, "match")) != 0) {
        return;
    }
    if (strcmp(first, text_of(b, "first")) == 0 && strcmp(last, text_of(b, "last")) == 0) {
        printf("Both sides are of one time: what was counted then is on both.\n");
        return;
    }
    first = strncmp(first, text_of(b, "first"), SECOND) < 0 ? text_of(b, "first") : first;
    last = strncmp(last, text_of(b, "last"), SECOND) > 0 ? text_of(b, "last") : last;
    if (strncmp(first, last, SECOND) < 0) {
        printf("What was counted from %.19sZ to %.19sZ may be on both sides.\n", first, last);
    }
}

#define FEW_TICKS 150 /* a side that nothing has changed on has as many in a test (DIFF_TICKS_LEAST of profd) */

/* Ticks of a row on a side: those of the metric, which are self ticks unless the callees count, too. */
static double ticks_of(const json_t *diff, const struct metric_words *w, const json_t *row, bool first)
{
    return w->percent ? real_of(row, first ? "a" : "b") * real_of(json_object_get(diff, first ? "a" : "b"), "ticks")
                      : real_of(row, first ? "ticks_a" : "ticks_b");
}

/* Not tested because one side has few ticks, and the other many: most likely a great change. */
static bool is_one_sided(const json_t *diff, const struct metric_words *w, const json_t *row)
{
    const double a = ticks_of(diff, w, row, true), b = ticks_of(diff, w, row, false);
    return is(row, "too-few") && strncmp(w->needs, "ticks", 5) == 0 && (a < FEW_TICKS) != (b < FEW_TICKS);
}

/* What a row says. */
static void print_verdict(const json_t *diff, const struct metric_words *w, const json_t *row, bool relative)
{
    char p[32];
    const char *direction = real_of(row, "change") > 0 ? w->more : w->less;
    if (is(row, "changed")) {
        show_p(real_of(row, "q"), p, sizeof p);
        printf("%s%s (q %s)", direction, relative ? " than the others" : "", p);
    } else if (is(row, "constant-changed")) {
        printf("%s%s, the same in every group of processes", direction, relative ? " than the others" : "");
    } else if (is(row, "only-in-a")) {
        printf("no longer called from there");
    } else if (is(row, "only-in-b")) {
        printf("newly called from there");
    } else if (is(row, "not-significant")) {
        show_p(real_of(row, "p"), p, sizeof p);
        printf("may be chance (p %s)", p);
    } else if (is(row, "constant")) {
        printf("exactly as before");
    } else if (is_one_sided(diff, w, row)) {
        printf("too few ticks in %s for a test", ticks_of(diff, w, row, true) < FEW_TICKS ? "A" : "B");
    } else {
        printf("too few samples or processes to tell");
    }
}

/* A number of calls changes, too, if the compiler inlines a function in one version only. */
static void print_inlined(const json_t *row)
{
    const bool a = json_is_true(json_object_get(row, "inlined_a")), b = json_is_true(json_object_get(row, "inlined_b"));
    if (a != b) {
        printf("; %c has inlined copies of it, and no call of these is counted", a ? 'A' : 'B');
    }
}

static double needed_of(const json_t *row)
{
    return has(row, "data_needed") ? real_of(row, "data_needed") : 0;
}

/* "4.2 times the data (8 h more)": at the speed at which the data of B came. */
static void print_plan(const json_t *diff, const json_t *row)
{
    const json_t *b = json_object_get(diff, "b");
    char text[40];
    double needed = needed_of(row),
           hours = (double)(seconds_of(text_of(b, "last")) - seconds_of(text_of(b, "first"))) / 3600;
    if (needed <= 0) {
        return;
    }
    printf("\n%*s", 6, "");
    if (needed <= 1) {
        printf("a change of %.3g%% would be seen", 100 * real_of(diff, "planned"));
        return;
    }
    show_rounded(needed, 2, text, sizeof text);
    printf("%.3g%% needs %s times the data of both sides", 100 * real_of(diff, "planned"), text);
    if (hours > 0) {
        const double more = (needed - 1) * hours, unit = more >= 1 ? 1 : more >= 1. / 60 ? 60 : 3600;
        show_rounded(more * unit, 2, text, sizeof text);
        printf(" (%s %s more, as fast as B's came)", text, unit < 2 ? "h" : unit < 61 ? "min" : "s");
    }
}

static void print_row(const json_t *diff, const struct metric_words *w, const json_t *row, bool relative, bool plan)
{
    char a[40] = "-", b[40] = "-", change[40], low[40], high[40];
    if (has(row, "a")) {
        show_value(w, real_of(row, "a"), a, sizeof a);
    }
    if (has(row, "b")) {
        show_value(w, real_of(row, "b"), b, sizeof b);
    }
    printf("  ");
    print_clean(text_of(row, "function"), 200);
    if (json_is_string(json_object_get(row, "renamed_from"))) {
        printf(" (in A ");
        print_clean(text_of(row, "renamed_from"), 200);
        printf(", the same code)");
    }
    if (json_is_string(json_object_get(row, "caller"))) {
        printf(" from ");
        print_clean(text_of(row, "caller"), 200);
    }
    printf("  %s -> %s", a, b);
    if (has(row, "change")) {
        show_change(real_of(row, "change"), change, sizeof change);
        show_change(real_of(row, "low"), low, sizeof low);
        show_change(real_of(row, "high"), high, sizeof high);
        printf(strcmp(low, high) == 0 ? "  %s" : "  %s [%s, %s]", change, low, high);
    }
    printf("  ");
    print_verdict(diff, w, row, relative);
    print_inlined(row);
    if (plan) {
        print_plan(diff, row);
    }
    printf("\n");
}

static void print_common(const struct metric_words *w, const json_t *common)
{
    char change[40], low[40], high[40];
    show_change(real_of(common, "change"), change, sizeof change);
    show_change(real_of(common, "low"), low, sizeof low);
    show_change(real_of(common, "high"), high, sizeof high);
    printf("  %s (%.0f in common)  %s [%s, %s]  the rows below are relative to this\n", w->common,
           real_of(common, "functions"), change, low, high);
}

static bool is_changed(const json_t *diff, const struct metric_words *w, const json_t *row)
{
    return is(row, "changed") || is(row, "constant-changed") || is(row, "only-in-a") || is(row, "only-in-b") ||
           is_one_sided(diff, w, row);
}

static double count_of(const json_t *table, const char *what)
{
    return real_of(json_object_get(table, "counts"), what);
}

/* one_sided: rows of too few samples that are listed. */
static void print_rest(const json_t *table, const struct metric_words *w, double changed, double one_sided)
{
    const double same = count_of(table, "not-significant"), constant = count_of(table, "constant"),
                 few = count_of(table, "too-few") - one_sided;
    const bool arcs = strcmp(text_of(table, "metric"), "calls-per-parent") == 0;
    const char *noun = arcs ? "arcs" : "functions", *one = arcs ? "arc" : "function";
    char visible[40];
    if (count_of(table, "rows") <= 0) {
        printf("  nothing to compare: no function has %s on both sides\n", w->needs);
    } else if (changed <= 0 && same + constant > 0) {
        printf("  no significant change\n");
    }
    if (same > 0) {
        show_change(real_of(table, "visible"), visible, sizeof visible);
        printf("  %.0f %s: no significant change; %s%s or more would probably have been seen\n", same,
               noun_for((uint64_t)same, one, noun), same > 1 ? "in half of them " : "", visible);
    }
    if (constant > 0) {
        printf("  %.0f %s: exactly as before\n", constant, noun_for((uint64_t)constant, one, noun));
    }
    if (few > 0) {
        printf("  %.0f %s: too few %s for a test\n", few, noun_for((uint64_t)few, one, noun),
               arcs || strcmp(text_of(table, "metric"), "calls-per-process") == 0
                   ? "groups with calls"
                   : "samples (150 a side, in 12 groups)");
    }
}

static void print_table(const json_t *diff, const json_t *table, const struct diff_print *how)
{
    const struct metric_words *w = words_of(table);
    const json_t *common = json_object_get(table, "common"), *rows = json_object_get(table, "rows"), *row;
    size_t i;
    long shown = 0, one_sided = 0;
    printf("\n%s\n", w->title);
    if (json_is_string(json_object_get(table, "not_computed"))) {
        printf("  cannot be compared: %s\n", text_of(table, "not_computed"));
        return;
    }
    if (json_is_object(common)) {
        print_common(w, common);
    }
    json_array_foreach(rows, i, row)
    {
        one_sided += is_one_sided(diff, w, row);
        if ((is_changed(diff, w, row) || how->all) && shown < how->limit) {
            print_row(diff, w, row, json_is_object(common), how->plan);
            shown++;
        }
    }
    const double changed = count_of(table, "changed") + count_of(table, "constant-changed") +
                           count_of(table, "only-in-a") + count_of(table, "only-in-b") + (double)one_sided;
    double left = (how->all ? count_of(table, "rows") : changed) - (double)shown;
    if (left > 0) {
        printf("  %.0f more; --limit shows them\n", left);
    }
    print_rest(table, w, changed, (double)one_sided);
}

/* Calls, where they were counted, and what is known of the function on the other side. */
static void print_only_rest(const json_t *row, char other, bool sampled)
{
    const double calls = real_of(row, "calls");
    const bool idle = json_is_true(json_object_get(row, "idle")),
               inlined = json_is_true(json_object_get(row, "inlined"));
    if (calls > 0) {
        printf(", %s%.0f %s", sampled ? "~" : "", calls, noun_for((uint64_t)calls, "call", "calls"));
    }
    if (idle || inlined) {
        printf("; %c %s", other, inlined ? "has inlined it" : "has it, too");
        printf("%s", idle && inlined ? ", and has it, too" : "");
    }
    printf("\n");
}

/* What is to be said of functions of one side. */
struct only_notes {
    bool inlined; /* on the other side */
    bool unnamed; /* an address is all that is known */
};

/* Functions of one side. */
static void print_only(const json_t *diff, bool first, const struct diff_print *how, struct only_notes *notes)
{
    const json_t *only = json_object_get(diff, first ? "only_in_a" : "only_in_b"), *row;
    const char side = first ? 'A' : 'B', other = first ? 'B' : 'A';
    char self[40], total[40];
    size_t i;
    const double count = real_of(only, "count");
    if (count <= 0) {
        return;
    }
    printf("\nSeen only in %c: %.0f %s\n", side, count, noun_for((uint64_t)count, "function", "functions"));
    json_array_foreach(json_object_get(only, "rows"), i, row)
    {
        if ((long)i < how->limit) {
            printf("  ");
            print_clean(text_of(row, "function"), 200);
            show_share(real_of(row, "self_share"), self, sizeof self);
            show_share(real_of(row, "total_share"), total, sizeof total);
            printf("  self %s, with callees %s", self, total);
            print_only_rest(row, other, function_is_sampled(json_object_get(diff, first ? "a" : "b")));
            notes->inlined |= json_is_true(json_object_get(row, "inlined"));
            notes->unnamed |= strncmp(text_of(row, "function"), "0x", 2) == 0;
        }
    }
    if (count > (double)how->limit) {
        printf("  %.0f more; --limit shows them\n", count - (double)how->limit);
    }
}

static void print_unknown(double items)
{
    if (items > 0) {
        printf("none certainly; %.0f cannot be told\n", items);
    } else {
        printf("cannot be told, because nothing could be compared\n");
    }
}

static void print_judgement(const json_t *diff)
{
    const json_t *j = json_object_get(diff, "judgement"), *name;
    size_t i;
    json_array_foreach(json_object_get(diff, "watch_missing"), i, name)
    {
        printf("\nNeither side has a function ");
        print_clean(json_string_value(name), 200);
        printf("\n");
    }
    if (!json_is_object(j)) {
        return;
    }
    printf("\n%s by more than %.4g%%: ", text_of(j, "metric"), 100 * real_of(j, "threshold"));
    if (strcmp(text_of(j, "verdict"), "above") == 0) {
        printf("%.0f certainly\n", real_of(j, "above"));
    } else if (strcmp(text_of(j, "verdict"), "below") == 0) {
        printf("none of those that could be compared\n");
    } else {
        print_unknown(real_of(j, "cannot_tell"));
    }
}

void diff_print_text(const json_t *diff, const struct diff_print *how)
{
    const json_t *table;
    size_t i;
    print_side(diff, "a");
    print_side(diff, "b");
    print_overlap(diff);
    printf("Intervals are 95%%, from %.0f and %.0f of 16 random groups of processes%s. Of the changes, %.3g%% may be "
           "chance.\n",
           real_of(json_object_get(diff, "a"), "groups"), real_of(json_object_get(diff, "b"), "groups"),
           json_is_true(json_object_get(diff, "paired")) ? ", compared group by group" : "",
           100 * real_of(diff, "fdr"));
    json_array_foreach(json_object_get(diff, "metrics"), i, table)
    {
        print_table(diff, table, how);
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
    print_judgement(diff);
}

/* Functions of one side, by their share of its time: rows of the metrics self and total. */
static void print_csv_only(const json_t *diff, const char *metric, const char *share)
{
    static const char *const FIELDS[] = {"function", "file", "object"};
    for (int side = 'a'; side <= 'b'; side++) {
        const json_t *row;
        size_t i;
        json_array_foreach(json_object_get(json_object_get(diff, side == 'a' ? "only_in_a" : "only_in_b"), "rows"), i,
                           row)
        {
            printf("%s,", metric);
            csv_print_fields(row, FIELDS, sizeof FIELDS / sizeof *FIELDS);
            printf(",,\"only-in-%c\",%s", side, side == 'a' ? "" : ",");
            csv_print_fields(row, &share, 1);
            printf("%s,,,,,,,,,,\r\n", side == 'a' ? "," : "");
        }
    }
}

void diff_print_csv(const json_t *diff)
{
    static const char *const FIELDS[] = {"function", "file",        "object",  "caller",  "verdict", "a",
                                         "b",        "change",      "low",     "high",    "p",       "q",
                                         "visible",  "data_needed", "ticks_a", "ticks_b", "share"};
    const json_t *table, *row;
    size_t i, k;
    printf("metric,function,file,object,caller,verdict,a,b,change,low,high,p,q,visible,data_needed,ticks_a,ticks_b,"
           "share\r\n");
    json_array_foreach(json_object_get(diff, "metrics"), i, table)
    {
        const char *metric = text_of(table, "metric");
        const json_t *common = json_object_get(table, "common");
        if (json_is_object(common)) {
            printf("%s,,,,,\"common\",,,", metric);
            csv_print_fields(common, &FIELDS[7], 4);
            printf(",,,,,,\r\n");
        }
        json_array_foreach(json_object_get(table, "rows"), k, row)
        {
            printf("%s,", metric);
            csv_print_fields(row, FIELDS, sizeof FIELDS / sizeof *FIELDS);
            printf("\r\n");
        }
        if (strcmp(metric, "self") == 0 || strcmp(metric, "total") == 0) {
            print_csv_only(diff, metric, strcmp(metric, "self") == 0 ? "self_share" : "total_share");
        }
    }
}
