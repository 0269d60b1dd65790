/* profctl functions: the functions of a service with the most time, over all its programs and builds. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profctl/profctl.h"
#include "profctl/profctl_ask.h"
#include "profctl/profctl_csv.h"
#include "profctl/profctl_function.h"
#include "profctl/profctl_look.h"
#include "profctl/profctl_options.h"
#include "profctl/profctl_rows.h"
#include "profctl/profctl_show.h"
#include "proto/noun.h"

#define ANSWER_MOST ((size_t)64 << 20)

static const struct profctl_option options[] = {
    OPTION_SINCE,
    OPTION_UNTIL,
    OPTION_LABEL,
    OPTION_MATCH,
    {"name", 0, "TEXT", "show only functions with TEXT in their names"},
    {"sort", 0, "self|total|calls", "order of the rows (default self)"},
    {"limit", 0, "N", "number of functions, at most 1,000 (default 20)"},
    OPTION_FORMAT,
    OPTION_DIMENSION,
    OPTION_NAMES,
    OPTION_UID,
    OPTION_PARTIAL,
};

/* Time of what could not be joined by name. */
static void print_rest(const json_t *all, const char *dimension)
{
    char seconds[40];
    static const struct {
        const char *field, *what;
    } PARTS[] = {{"unnamed_seconds", "functions of builds without symbols"},
                 {"ambiguous_seconds", "functions with the name and file of another one of their build"},
                 {"other_seconds", "[plt] and [gap]"}};
    for (size_t i = 0; i < sizeof PARTS / sizeof PARTS[0]; i++) {
        const double rest = json_number_value(json_object_get(json_object_get(all, "not_joined"), PARTS[i].field));
        if (rest > 0) {
            show_amount(rest, seconds, sizeof seconds);
            printf("%s %s more in %s\n", seconds, dimension, PARTS[i].what);
        }
    }
    const json_int_t left = json_integer_value(json_object_get(json_object_get(all, "not_joined"), "programs"));
    if (left > 0) {
        printf("%lld %s less CPU time %s left out; --since leaves out what was not seen lately\n", (long long)left,
               left == 1 ? "program with" : "programs with", left == 1 ? "is" : "are");
    }
}

static void print_table(const struct rows *all, const struct rows *r, const json_t *answer)
{
    char self[40], total[40], calls[32];
    const bool sampled = function_is_sampled(answer);
    const uint64_t programs = rows_number(all, 0, "programs"), processes = rows_number(all, 0, "processes_started");
    show_amount(rows_real(all, 0, "seconds"), total, sizeof total);
    printf("%s %s in %" PRIu64 " %s, %" PRIu64 " %s started\n", total, rows_text(all, 0, "dimension"), programs,
           noun_for(programs, "program", "programs"), processes, noun_for(processes, "process", "processes"));
    function_print_reasons(answer, "");
    printf("%7s %11s %7s %11s %14s %6s %s\n", "% SELF", "SELF", "% TOTAL", "TOTAL", "CALLS", "BUILDS", "FUNCTION");
    for (size_t i = 0; i < rows_count(r); i++) {
        const char *name = rows_text(r, i, "short_name"), *file = rows_text(r, i, "file");
        show_amount(rows_real(r, i, "self_seconds"), self, sizeof self);
        show_amount(rows_real(r, i, "total_seconds"), total, sizeof total);
        const uint64_t counted = rows_number(r, i, "calls");
        (void)snprintf(calls, sizeof calls, "%s%" PRIu64, sampled ? "~" : "", counted);
        if (counted == 0) {
            (void)snprintf(calls, sizeof calls, "-");
        }
        printf("%7.2f %11s %7.2f %11s %14s %6" PRIu64 " %s%s%s%s\n", rows_real(r, i, "percent"), self,
               rows_real(r, i, "total_percent"), total, calls, rows_number(r, i, "builds"),
               name[0] != '\0' ? name : rows_text(r, i, "name"), file[0] != '\0' ? " (" : "", file,
               file[0] != '\0' ? ")" : "");
    }
    const uint64_t names = rows_number(all, 0, "names");
    if (names > rows_count(r)) {
        printf("%" PRIu64 " more; --limit shows them\n", names - rows_count(r));
    }
}

static enum profd_status show(size_t format, const char *body, size_t size, struct profd_error *e)
{
    static const char *const FIELDS[] = {"name",          "file",          "self_seconds", "percent",
                                         "total_seconds", "total_percent", "calls",        "self_calls",
                                         "programs",      "builds",        "calls_sampled"};
    struct rows *all = NULL, *list = NULL;
    json_t *answer = json_loadb(body, size, 0, NULL);
    enum profd_status status = rows_parse_object(body, size, &all, e);
    if (status == PROFD_OK) {
        status = rows_parse(body, size, &list, e);
    }
    if (status == PROFD_OK && rows_number(all, 0, "uploads") == 0) {
        status = profd_error_set(e, PROFD_NOTHING, "nothing matches: no upload has these labels in this time range");
    } else if (status == PROFD_OK && format == FORMAT_CSV) {
        rows_set_flag(list, "calls_sampled", function_is_sampled(answer));
        csv_print_rows(rows_list(list), FIELDS, sizeof FIELDS / sizeof *FIELDS);
    } else if (status == PROFD_OK) {
        print_table(all, list, answer);
        print_rest(answer, rows_text(all, 0, "dimension"));
    }
    json_decref(answer);
    rows_free(all);
    rows_free(list);
    return status;
}

static enum profd_status make_target(const struct profctl_call *call, size_t format, struct ask_target *t,
                                     struct profd_error *e)
{
    size_t sort = 0;
    const bool terminal = isatty(STDOUT_FILENO) == 1;
    enum profd_status status = profctl_choose(call, "sort", &sort, e);
    ask_target_init(t, "/api/v1/functions", NULL);
    ask_target_add(t, "limit", profctl_value(call, "limit") ? NULL : "20");
    ask_target_add(t, "names", format != FORMAT_TEXT ? profctl_value(call, "names") : look_names(call, terminal));
    return status == PROFD_OK ? ask_target_add_given(t, call, "since|until|name|sort|limit|dimension|uid", e) : status;
}

static enum profd_status functions_run(const struct profctl_call *call, struct profd_error *e)
{
    struct ask_target target;
    char *body = NULL;
    size_t size = 0, format = FORMAT_TEXT;
    enum profd_status status = profctl_choose_format(call, &format, e);
    status = status == PROFD_OK ? make_target(call, format, &target, e) : status;
    status = status == PROFD_OK ? ask_fetch(call, &target, ANSWER_MOST, &body, &size, e) : status;
    if (status == PROFD_OK && format == FORMAT_JSON) {
        (void)fwrite(body, 1, size, stdout);
    } else if (status == PROFD_OK) {
        status = show(format, body, size, e);
    }
    free(body);
    return status;
}

const struct profctl_verb verb_functions = {
    .name = "functions",
    .arguments = "",
    .summary = "Show the functions with the most time, over all programs and builds",
    .details = "Functions of all programs with matching uploads are joined by name (and file, if static).\n",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = functions_run,
};
