/* profctl diff: two builds, versions, times or label sets compared. */
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profctl/diff_print.h"
#include "profctl/profctl.h"
#include "profctl/profctl_ask.h"
#include "profctl/profctl_find.h"
#include "profctl/profctl_options.h"
#include "proto/name_list.h"

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

/* --watch parse,render: one parameter for each. A name of C++ has commas of its own within its parentheses. */
static void add_watch(struct ask_target *t, const char *list)
{
    char name[1024];
    while (*list) {
        const size_t n = name_list_end(list, strlen(list));
        (void)snprintf(name, sizeof name, "%.*s", (int)n, list);
        ask_target_add(t, "watch", n > 0 ? name : NULL);
        list += n + (list[n] == ',');
    }
}

/* The options of one side: "a-since" is the parameter a.since. */
static enum profd_status add_side_option(const struct profctl_call *call, const struct profctl_given *g,
                                         struct ask_target *t, struct profd_error *e)
{
    const char prefix[] = {g->option->name[0], '.', '\0'};
    const char *name = g->option->name + 2;
    char parameter[32];
    if (strcmp(name, "label") == 0) {
        return ask_target_add_label(t, call, prefix, g->value, e);
    }
    (void)snprintf(parameter, sizeof parameter, "%s%s", prefix, name);
    if (strcmp(name, "match") == 0 || profctl_value(call, g->option->name) == g->value) {
        ask_target_add(t, parameter, g->value);
    }
    return PROFD_OK;
}

static enum profd_status make_target(const struct profctl_call *call, size_t format, struct ask_target *t,
                                     struct profd_error *e)
{
    ask_target_init(t, "/api/v1/diff", NULL);
    TRY(side_add(call, call->arguments[0], "a", t, e));
    TRY(side_add(call, call->arguments[1], "b", t, e));
    for (size_t i = 0; i < call->given_count; i++) {
        const struct profctl_given *g = &call->given[i];
        if (strncmp(g->option->name, "a-", 2) == 0 || strncmp(g->option->name, "b-", 2) == 0) {
            TRY(add_side_option(call, g, t, e));
        } else if (strcmp(g->option->name, "watch") == 0) {
            add_watch(t, g->value);
        }
    }
    ask_target_add(t, "fail_on", profctl_value(call, "fail-on"));
    const char *limit = profctl_value(call, "limit");
    ask_target_add(t, "limit", limit || format != FORMAT_TEXT ? limit : "20");
    return ask_target_add_given(t, call, "since|until|scope|dimension|uid|metric|fdr", e);
}

/* The result of --fail-on. */
static int judge(const json_t *diff, bool strict)
{
    const json_t *j = json_object_get(diff, "judgement");
    const char *verdict = json_string_value(json_object_get(j, "verdict"));
    if (!verdict || strcmp(verdict, "below") == 0) {
        return 0;
    }
    return strcmp(verdict, "above") == 0 ? RESULT_ABOVE : strict ? RESULT_UNKNOWN : 0;
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
    *call->exit_status = judge(answer.whole, profctl_value(call, "strict") != NULL);
    answer_free(&answer);
    return PROFD_OK;
}

const struct profctl_verb verb_diff = {
    .name = "diff",
    .arguments = "A B",
    .summary = "Compare two builds, versions, times or label sets",
    .details = "A and B are PROGRAM, BUILD or EXE as for report, or PROGRAM@LABEL=VALUE, as in shop@version=1.2.\n"
               "Exit status with --fail-on: 1 if a function grew by more; with --strict 3 if that cannot be told.\n",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .arguments_least = 2,
    .arguments_most = 2,
    .run = diff_run,
};
