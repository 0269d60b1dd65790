/* profctl callers: the callers of a function, how long their calls took, and how that is known. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profctl/profctl.h"

static const struct profctl_option options[] = {
    {"method", 0, "best|stacks|calls",
     "how time is divided among callers (default best: the first of these that is possible)"},
    {"limit", 0, "N", "number of callers (default 40; 0: all)"},
    OPTION_FORMAT,
    OPTION_SCOPE,
    OPTION_DIMENSION,
    OPTIONS_SELECTION,
};

/* The output of one or several answers. */
struct callers_shown {
    const struct profctl_call *call;
    size_t format;
    size_t count;
    json_t *list; /* the answers, if they are printed as one JSON document; otherwise NULL */
};

/* Significant digits of a row's times: as many as its interval knows, 4 at most; without an interval 2. */
static int digits_of(const json_t *row)
{
    const double seconds = row_real(row, "total_seconds"), half = (row_real(row, "high") - row_real(row, "low")) / 2;
    int digits = 1;
    if (!row_has(row, "low")) {
        return 2;
    }
    for (double part = half; digits < 4 && part < 0.1 * seconds; part *= 10) {
        digits++;
    }
    return digits;
}

/* The value rounded to this number of significant digits, without an exponent. */
static void format_rounded(double value, int digits, char *out, size_t size)
{
    const int places = value > 0 ? digits - 1 - (int)floor(log10(value)) : 0;
    const double step = pow(10, -places); /* above 1 where whole numbers have more digits than are known */
    (void)snprintf(out, size, "%.*f", places > 0 ? places : 0, places > 0 ? value : step * round(value / step));
}

static const char *cell_time(json_t *row, const char *field, char out[LIST_CELL])
{
    return row_has(row, field) ? cell_amount(row, field, out) : "";
}

static const char *cell_interval(json_t *row, const char *field, char out[LIST_CELL])
{
    char low[40], high[40];
    show_amount(row_real(row, field), low, sizeof low);
    show_amount(row_real(row, "high"), high, sizeof high);
    (void)snprintf(out, LIST_CELL, "%s to %s", low, high);
    return row_has(row, field) ? out : "";
}

/* Unknown without ticks. */
static const char *cell_each(json_t *row, const char *field, char out[LIST_CELL])
{
    format_rounded(row_real(row, field), digits_of(row), out, LIST_CELL);
    return row_has(row, field) && row_real(row, "total_seconds") > 0 ? out : "-";
}

static const char *cell_each_us(json_t *row, const char *field, char out[LIST_CELL])
{
    format_rounded(1e6 * row_real(row, field), digits_of(row), out, LIST_CELL);
    return row_has(row, field) && row_real(row, "total_seconds") > 0 ? out : "-";
}

static const char *cell_ratio(json_t *row, const char *field, char out[LIST_CELL])
{
    (void)snprintf(out, LIST_CELL, "%.6g", row_real(row, field));
    return row_number(row, "calls") > 0 && row_has(row, field) ? out : "-";
}

static const char *cell_method(json_t *row, const char *field, char out[LIST_CELL])
{
    return row_flag(row, "inside") ? "(cycle)" : cell_text(row, field, out);
}

static void print_text(json_t *all, json_t *rows)
{
    const bool seconds = strcmp(row_text(all, "dimension"), "seconds") == 0;
    const struct list_column columns[] = {
        {"TIME", 10, "total_seconds", cell_time, false},
        {"95% INTERVAL", 18, "low", cell_interval, false},
        {"CALLS", 14, "calls", cell_counted, false},
        {seconds ? "US/CALL" : "PER CALL", 11, "seconds_per_call", seconds ? cell_each_us : cell_each, false},
        {"CALLS/CALL", 11, "calls_per_caller_call", cell_ratio, false},
        {"METHOD", -10, "method", cell_method, false},
        {"CALLER", 0, "caller", cell_text, false},
    };
    const uint64_t count = row_number(all, "row_count");
    json_t *f = json_object_get(all, "function");
    char total[40];
    const bool stacks = strcmp(row_text(all, "method"), "stacks") == 0;
    show_amount(row_real(f, stacks && row_has(f, "measured_total") ? "measured_total" : "total_seconds"), total,
                sizeof total);
    printf("%s in %s: %s %s with all that it calls, ", row_text(f, "name"), row_text(all, "name"), total,
           row_text(all, "dimension"));
    function_print_calls(all);

    /* The reader must know by which method the times were found, and why not by a better one. */
    if (row_text(all, "stacks_refused")[0]) {
        printf("Not measured: %s.\n", row_text(all, "stacks_refused"));
    }
    printf(stacks ? "Times are those of ticks with the caller on the stack (stacks).\n"
                  : "Times are divided by numbers of calls (calls), as if each call took the same time.\n");
    if (count == 0) {
        printf("No caller is known.\n");
        return;
    }
    list_print_table(rows, columns, COUNT(columns), NULL);
    if (count > json_array_size(rows)) {
        printf("%" PRIu64 " more; --limit shows them\n", count - json_array_size(rows));
    }

    /* A function that ends with a jump to another leaves no return address: calls are counted for its own caller, and
     * the stack's call instruction names it. */
    json_t *row, *jumps = NULL;
    bool idle = false;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        const bool counted = row_number(row, "calls") > 0, any = row_real(row, "total_seconds") > 0,
                   timed = strcmp(row_text(row, "method"), "stacks") == 0;
        jumps = jumps == NULL && timed && any && !counted ? row : jumps;
        idle = idle || (timed && !any && counted);
    }
    if (jumps != NULL && idle) {
        printf("%s has time and no calls: it may end with a jump to the function. Such calls are counted for its own "
               "callers,\nwhich have no time of them here.\n",
               row_text(jumps, "caller"));
    }
}

static enum profd_status show_build(struct callers_shown *s, const char *id, const char *function,
                                    struct profd_error *e)
{
    static const char CSV[] = "build_id,function,caller,file,address,method,total_seconds,low,high,calls,"
                              "calls_per_caller_call,seconds_per_call,seconds_by_calls,calls_sampled";
    const struct profctl_call *call = s->call;
    struct function_place place;
    struct ask_target target;
    struct answer answer;
    json_t *row;
    size_t i;
    TRY(function_find(call, id, function, &place, e));
    function_target_init(&target, "/api/v1/builds/{}/functions/{}/callers", id, &place);
    ask_target_add(&target, "limit", profctl_value(call, "limit") || s->format != FORMAT_TEXT ? NULL : "40");
    TRY(ask_target_add_given(&target, call, "since|until|scope|uid|dimension|method|limit", e));
    TRY(ask_fetch_object(call, &target, &answer, e));
    json_t *f = json_object_get(answer.whole, "function");
    FAIL_IF(!json_is_object(f), e, PROFD_PROTOCOL, "the daemon's answer is no list of callers");
    if (s->list) {
        (void)json_array_append(s->list, answer.whole);
    } else if (s->format == FORMAT_JSON) {
        (void)fwrite(answer.text, 1, answer.size, stdout);
    } else {
        const bool csv = s->format == FORMAT_CSV, first = s->count == 0;
        printf("%s%s", csv && first ? CSV : "", csv && first ? "\r\n" : csv || first ? "" : "\n");
        json_array_foreach(answer.rows, i, row)
        {
            (void)json_object_set_new(row, "calls_sampled", json_boolean(row_is_sampled(answer.whole)));
            if (csv) {
                (void)json_object_set(row, "build_id", json_object_get(answer.whole, "build_id"));
                (void)json_object_set(row, "function", json_object_get(f, "name"));
                csv_print_row(row, CSV);
                printf("\r\n");
            }
        }
        if (!csv) {
            print_text(answer.whole, answer.rows);
        }
    }
    s->count++;
    return PROFD_OK;
}

static enum profd_status callers_run(const struct profctl_call *call, struct profd_error *e)
{
    struct callers_shown s = {.call = call, .format = FORMAT_TEXT};
    const char *function = call->arguments[call->argument_count - 1];
    struct ask_target target;
    struct answer builds;
    json_t *build;
    char id[160];
    size_t method, i;
    TRY(profctl_choose_format(call, &s.format, e));
    TRY(profctl_choose(call, "method", &method, e));
    if (call->argument_count == 2) {
        TRY(build_find(call, call->arguments[0], id, e));
        return show_build(&s, id, function, e);
    }

    /* Every program that has the function in the selection. */
    ask_target_init(&target, "/api/v1/builds", NULL);
    ask_target_add(&target, "limit", "1000");
    TRY(ask_fetch_rows(call, &target, &builds, e));
    enum profd_status status = PROFD_OK;
    s.list = s.format == FORMAT_JSON ? json_array() : NULL;
    json_array_foreach(builds.rows, i, build)
    {
        if (status == PROFD_OK && row_flag(build, "is_program")) {
            status = show_build(&s, row_text(build, "build_id"), function, e);
            status = status == PROFD_NOT_FOUND || status == PROFD_NOTHING ? PROFD_OK : status;
        }
    }
    if (status == PROFD_OK && s.count == 0) {
        status = profd_error_set(e, PROFD_NOT_FOUND,
                                 "no program has a function with %.100s in its name in this selection", function);
    }
    if (s.list && status == PROFD_OK) {
        return json_print(json_pack("{so}", "rows", s.list), e);
    }
    json_decref(s.list);
    return status;
}

const struct profctl_verb verb_callers = {
    .name = "callers",
    .arguments = "[PROGRAM|BUILD|EXE] FUNCTION",
    .summary = "Show the callers of a function, and how long their calls took",
    .details =
        "Each row says how its time is known: stacks (ticks with the caller on the stack) or calls (by numbers of\n"
        "calls, as gprof does). Without a build, every program with the function is shown.\n",
    OPTIONS(options),
    .arguments_least = 1,
    .arguments_most = 2,
    .run = callers_run,
};
