/* profctl callers: the callers of a function, how long their calls took, and how that is known. */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profctl/profctl.h"
#include "profctl/profctl_ask.h"
#include "profctl/profctl_build.h"
#include "profctl/profctl_csv.h"
#include "profctl/profctl_function.h"
#include "profctl/profctl_json.h"
#include "profctl/profctl_options.h"
#include "profctl/profctl_rows.h"
#include "profctl/profctl_show.h"
#include "proto/noun.h"

#define ANSWER_MOST ((size_t)64 << 20)

static const struct profctl_option options[] = {
    {"method", 0, "best|stacks|calls",
     "how time is divided among callers (default best: the first of these that is possible)"},
    {"limit", 0, "N", "number of callers (default 40; 0: all)"},
    OPTION_FORMAT,
    OPTION_LABEL,
    OPTION_MATCH,
    OPTION_SCOPE,
    OPTION_DIMENSION,
    OPTION_UID,
    OPTION_PARTIAL,
    OPTION_SINCE,
    OPTION_UNTIL,
};

/* What the answers of several programs become. */
struct shown {
    const struct profctl_call *call;
    size_t format;
    size_t count;
    json_t *list; /* of JSON, where several programs may answer; NULL: there is one */
};

static double real_of(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static bool has(const json_t *object, const char *key)
{
    return json_is_number(json_object_get(object, key));
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static void print_clean(const json_t *object, const char *key)
{
    char clean[4096];
    profctl_clean(text_of(object, key), clean, sizeof clean);
    fputs(clean, stdout);
}

static void print_head(const json_t *all)
{
    const json_t *f = json_object_get(all, "function");
    char total[40];
    const bool stacks = strcmp(text_of(all, "method"), "stacks") == 0 && has(f, "measured_total");
    show_amount(stacks ? real_of(f, "measured_total") : real_of(f, "total_seconds"), total, sizeof total);
    print_clean(f, "name");
    printf(" in ");
    print_clean(all, "name");
    printf(": %s %s with all that it calls, ", total, text_of(all, "dimension"));
    function_print_calls(all);
    /* Which method was used, and why not a better one. */
    const char *method = text_of(all, "method");
    if (text_of(all, "stacks_refused")[0]) {
        printf("Not measured: %s.\n", text_of(all, "stacks_refused"));
    }
    if (strcmp(method, "stacks") == 0) {
        printf("Times are those of ticks with the caller on the stack (stacks).\n");
    } else {
        printf("Times are divided by numbers of calls (calls), as if each call took the same time.\n");
    }
}

/* Significant digits of a row's times: as many as its interval knows, 4 at most; without an interval 2. */
static int digits_of(const json_t *row)
{
    const double seconds = real_of(row, "total_seconds"), half = (real_of(row, "high") - real_of(row, "low")) / 2;
    int digits = 1;
    if (!has(row, "low")) {
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

static void print_row(const json_t *row, double unit, bool sampled)
{
    char seconds[40] = "", low[40], high[40], interval[90] = "", each[40] = "-", ratio[40] = "-", calls[40] = "-";
    const json_int_t counted = json_integer_value(json_object_get(row, "calls"));
    if (counted > 0) {
        (void)snprintf(calls, sizeof calls, "%s%" JSON_INTEGER_FORMAT, sampled ? "~" : "", counted);
    }
    if (has(row, "total_seconds")) {
        show_amount(real_of(row, "total_seconds"), seconds, sizeof seconds);
    }
    if (has(row, "low")) {
        show_amount(real_of(row, "low"), low, sizeof low);
        show_amount(real_of(row, "high"), high, sizeof high);
        (void)snprintf(interval, sizeof interval, "%s to %s", low, high);
    }
    if (has(row, "seconds_per_call") && real_of(row, "total_seconds") > 0) { /* without a tick it is not known */
        format_rounded(unit * real_of(row, "seconds_per_call"), digits_of(row), each, sizeof each);
    }
    if (counted > 0 && has(row, "calls_per_caller_call")) {
        (void)snprintf(ratio, sizeof ratio, "%.6g", real_of(row, "calls_per_caller_call"));
    }
    printf("%10s %18s %14s %11s %11s %-10s ", seconds, interval, calls, each, ratio,
           json_is_true(json_object_get(row, "inside")) ? "(cycle)" : text_of(row, "method"));
    print_clean(row, "caller");
    printf("\n");
}

/* A function that ends with a jump to another leaves no return address: calls are counted for its own caller, and the
 * stack's call instruction names it. */
static void print_jumps(const json_t *rows)
{
    const json_t *row, *jumps = NULL;
    bool idle = false;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        const bool counted = json_integer_value(json_object_get(row, "calls")) > 0;
        const bool timed = strcmp(text_of(row, "method"), "stacks") == 0, any = real_of(row, "total_seconds") > 0;
        jumps = jumps == NULL && timed && any && !counted ? row : jumps;
        idle = idle || (timed && !any && counted);
    }
    if (jumps != NULL && idle) {
        print_clean(jumps, "caller");
        printf(" has time and no calls: it may end with a jump to the function. Such calls are counted for its own "
               "callers,\nwhich have no time of them here.\n");
    }
}

static void print_text(const json_t *all)
{
    const json_t *row, *rows = json_object_get(all, "rows");
    const json_int_t count = json_integer_value(json_object_get(all, "row_count"));
    const bool seconds = strcmp(text_of(all, "dimension"), "seconds") == 0;
    size_t i;
    print_head(all);
    if (count == 0) {
        printf("No caller is known.\n");
        return;
    }
    printf("%10s %18s %14s %11s %11s %-10s %s\n", "TIME", "95% INTERVAL", "CALLS", seconds ? "US/CALL" : "PER CALL",
           "CALLS/CALL", "METHOD", "CALLER");
    json_array_foreach(rows, i, row)
    {
        print_row(row, seconds ? 1e6 : 1, function_is_sampled(all));
    }
    if ((size_t)count > json_array_size(rows)) {
        printf("%zu more; --limit shows them\n", (size_t)count - json_array_size(rows));
    }
    print_jumps(rows);
}

static void print_csv(const json_t *all, bool head)
{
    static const char *const FIELDS[] = {"caller",
                                         "file",
                                         "address",
                                         "method",
                                         "total_seconds",
                                         "low",
                                         "high",
                                         "calls",
                                         "calls_per_caller_call",
                                         "seconds_per_call",
                                         "seconds_by_calls"};
    const json_t *row;
    size_t i;
    if (head) {
        printf("build_id,function,caller,file,address,method,total_seconds,low,high,calls,calls_per_caller_call,"
               "seconds_per_call,seconds_by_calls,calls_sampled\r\n");
    }
    json_array_foreach(json_object_get(all, "rows"), i, row)
    {
        csv_print_text(text_of(all, "build_id"));
        putchar(',');
        csv_print_text(text_of(json_object_get(all, "function"), "name"));
        putchar(',');
        csv_print_fields(row, FIELDS, sizeof FIELDS / sizeof FIELDS[0]);
        printf(",%d\r\n", function_is_sampled(all));
    }
}

static enum profd_status show(struct shown *s, const char *body, size_t size, struct profd_error *e)
{
    json_t *all = json_loadb(body, size, 0, NULL);
    if (!json_is_object(json_object_get(all, "function"))) {
        json_decref(all);
        return profd_error_set(e, PROFD_PROTOCOL, "the daemon's answer is no list of callers");
    }
    if (s->list) {
        (void)json_array_append(s->list, all);
    } else if (s->format == FORMAT_JSON) {
        (void)fwrite(body, 1, size, stdout);
    } else if (s->format == FORMAT_CSV) {
        print_csv(all, s->count == 0);
    } else {
        fputs(s->count > 0 ? "\n" : "", stdout);
        print_text(all);
    }
    s->count++;
    json_decref(all);
    return PROFD_OK;
}

static enum profd_status show_build(struct shown *s, const char *id, const char *function, struct profd_error *e)
{
    const struct profctl_call *call = s->call;
    struct function_place place;
    struct ask_target target;
    char *body = NULL;
    size_t size = 0;
    enum profd_status status = function_find(call, id, function, &place, e);
    if (status != PROFD_OK) {
        return status;
    }
    function_target_init(&target, "/api/v1/builds/{}/functions/{}/callers", id, &place);
    ask_target_add(&target, "limit", profctl_value(call, "limit") || s->format != FORMAT_TEXT ? NULL : "40");
    status = ask_target_add_given(&target, call, "since|until|scope|uid|dimension|method|limit", e);
    status = status == PROFD_OK ? ask_fetch(call, &target, ANSWER_MOST, &body, &size, e) : status;
    status = status == PROFD_OK ? show(s, body, size, e) : status;
    free(body);
    return status;
}

/* Every program that has the function in the selection. */
static enum profd_status show_programs(struct shown *s, const char *function, struct profd_error *e)
{
    const struct profd_options o = profctl_options(s->call, ASK_ANSWER_MS);
    struct profd_conn *conn;
    struct ask_target target;
    struct rows *builds = NULL;
    ask_target_init(&target, "/api/v1/builds", NULL);
    ask_target_add(&target, "limit", "1000");
    enum profd_status status = profd_conn_open(&o, &conn, e);
    if (status == PROFD_OK) {
        status = rows_read(conn, &target, &builds, e);
        profd_conn_close(conn);
    }
    for (size_t i = 0; status == PROFD_OK && i < rows_count(builds); i++) {
        if (rows_flag(builds, i, "is_program")) {
            status = show_build(s, rows_text(builds, i, "build_id"), function, e);
            status = status == PROFD_NOT_FOUND || status == PROFD_NOTHING ? PROFD_OK : status;
        }
    }
    rows_free(builds);
    if (status == PROFD_OK && s->count == 0) {
        status = profd_error_set(e, PROFD_NOT_FOUND,
                                 "no program has a function with %.100s in its name in this selection", function);
    }
    return status;
}

static enum profd_status callers_run(const struct profctl_call *call, struct profd_error *e)
{
    struct shown s = {.call = call, .format = FORMAT_TEXT};
    char id[160];
    size_t method;
    enum profd_status status = profctl_choose_format(call, &s.format, e);
    status = status == PROFD_OK ? profctl_choose(call, "method", &method, e) : status;
    if (status != PROFD_OK) {
        return status;
    }
    if (call->argument_count == 2) {
        status = build_find(call, call->arguments[0], id, e);
        return status == PROFD_OK ? show_build(&s, id, call->arguments[1], e) : status;
    }
    s.list = s.format == FORMAT_JSON ? json_array() : NULL;
    status = show_programs(&s, call->arguments[0], e);
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
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .arguments_least = 1,
    .arguments_most = 2,
    .run = callers_run,
};
