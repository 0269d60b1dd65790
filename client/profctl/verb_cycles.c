/* profctl cycles: the cycles of a program, and which arcs to remove so that they are none. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profctl/profctl.h"
#include "profctl/profctl_ask.h"
#include "profctl/profctl_build.h"
#include "profctl/profctl_csv.h"
#include "profctl/profctl_function.h"
#include "profctl/profctl_options.h"
#include "profctl/profctl_show.h"
#include "proto/noun.h"

#define ANSWER_MOST ((size_t)256 << 20)

static const struct profctl_option options[] = {
    OPTION_SINCE,
    OPTION_UNTIL,
    OPTION_LABEL,
    OPTION_MATCH,
    {"limit", 0, "N", "number of cycles, and of members and arcs of each (default 20; 0: all)"},
    OPTION_FORMAT,
    OPTION_SCOPE,
    OPTION_DIMENSION,
    OPTION_UID,
    OPTION_PARTIAL,
};

static uint64_t number(const json_t *object, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(object, key));
}

static void print_name(const json_t *object, const char *key)
{
    char clean[256];
    const char *name = json_string_value(json_object_get(object, key));
    profctl_clean(name ? name : "", clean, sizeof clean);
    fputs(clean, stdout);
}

/* mark: "~" where calls were sampled. */
static void print_calls(uint64_t calls, const char *mark)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%s%" PRIu64, mark, calls);
    printf("  %12s  ", text);
}

static void print_arcs(const json_t *list, const char *mark)
{
    const json_t *arc;
    size_t i;
    json_array_foreach(list, i, arc)
    {
        print_calls(number(arc, "calls"), mark);
        print_name(arc, "caller");
        printf(" -> ");
        print_name(arc, "callee");
        printf("\n");
    }
}

static void print_rest(uint64_t all, const json_t *list)
{
    if (all > json_array_size(list)) {
        printf("  %12s  %" PRIu64 " more; --limit shows them\n", "", all - json_array_size(list));
    }
}

/* how: where the times come from; mark: as above. */
static void print_cycle(const json_t *cycle, const char *dimension, const char *how, const char *mark)
{
    const json_t *members = json_object_get(cycle, "members"), *arcs = json_object_get(cycle, "arcs"), *member;
    const uint64_t breaking = number(cycle, "break_count"), calls = number(cycle, "break_calls");
    size_t i;
    char own[40], below[40];
    show_amount(json_number_value(json_object_get(cycle, "self_seconds")), own, sizeof own);
    show_amount(json_number_value(json_object_get(cycle, "children_seconds")), below, sizeof below);
    printf("cycle %" PRIu64 ": %" PRIu64 " functions, %.2f%% of the time%s, %s %s in it and %s below; %s%" PRIu64
           " calls from outside, %s%" PRIu64 " inside\n",
           number(cycle, "number"), number(cycle, "member_count"), json_number_value(json_object_get(cycle, "percent")),
           how, own, dimension, below, mark, number(cycle, "calls_outside"), mark, number(cycle, "calls_inside"));
    printf(" members, with their calls from inside:\n");
    json_array_foreach(members, i, member)
    {
        print_calls(number(member, "calls_inside"), mark);
        print_name(member, "name");
        printf("\n");
    }
    print_rest(number(cycle, "member_count"), members);
    printf(" calls inside:\n");
    print_arcs(arcs, mark);
    print_rest(number(cycle, "arc_count"), arcs);
    if (breaking > 0) {
        if (breaking == 1) {
            printf(" to break it, remove this arc");
        } else {
            printf(" to break it, remove these %" PRIu64 " arcs", breaking);
        }
        printf(" (%s%" PRIu64 " %s):\n", mark, calls, noun_for(calls, "call", "calls"));
        print_arcs(json_object_get(cycle, "break"), mark);
        print_rest(breaking, json_object_get(cycle, "break"));
    } else {
        printf(" its members do not call each other in a circle in this window\n");
    }
}

/* A line for each member, each call inside, and each call to remove. */
static void print_csv(const json_t *rows, bool sampled)
{
    static const struct {
        const char *list, *row, *fields[5];
    } PARTS[] = {{"members", "member", {"", "name", "calls_inside", "calls_outside", "self_seconds"}},
                 {"arcs", "arc", {"caller", "callee", "calls"}},
                 {"break", "remove", {"caller", "callee", "calls"}}};
    const json_t *cycle, *row;
    size_t i, k;
    printf("cycle,row,caller,function,calls_inside,calls_outside,self_seconds,calls_sampled\r\n");
    json_array_foreach(rows, i, cycle)
    {
        for (size_t p = 0; p < sizeof PARTS / sizeof *PARTS; p++) {
            json_array_foreach(json_object_get(cycle, PARTS[p].list), k, row)
            {
                printf("%" PRIu64 ",%s,", number(cycle, "number"), PARTS[p].row);
                csv_print_fields(row, PARTS[p].fields, sizeof PARTS[p].fields / sizeof *PARTS[p].fields);
                printf(",%d\r\n", sampled);
            }
        }
    }
}

static enum profd_status print_answer(size_t format, const char *body, size_t size, struct profd_error *e)
{
    json_t *all = json_loadb(body, size, 0, NULL);
    const json_t *rows = json_object_get(all, "rows"), *cycle;
    const char *dimension = json_string_value(json_object_get(all, "dimension")),
               *time = json_string_value(json_object_get(all, "time"));
    size_t i;
    enum profd_status status = PROFD_OK;
    if (!json_is_array(rows)) {
        status = profd_error_set(e, PROFD_PROTOCOL, "the daemon's answer is no list of cycles");
    } else if (format == FORMAT_CSV) {
        print_csv(rows, function_is_sampled(all));
    } else if (format == FORMAT_JSON) {
        (void)fwrite(body, 1, size, stdout);
    } else if (json_array_size(rows) == 0) {
        puts("no cycles");
    } else {
        function_print_reasons(all, "");
        json_array_foreach(rows, i, cycle)
        {
            printf(i > 0 ? "\n" : "");
            print_cycle(cycle, dimension ? dimension : "seconds",
                        time && strcmp(time, "measured") == 0 ? " (measured)" : "",
                        function_is_sampled(all) ? "~" : "");
        }
        if (number(all, "count") > json_array_size(rows)) {
            printf("\n%" PRIu64 " cycles with less time; --limit shows them\n",
                   number(all, "count") - json_array_size(rows));
        }
        if (function_is_sampled(all)) {
            printf("~: sampled, at least in part: how often a tick found the function below its caller\n");
        }
    }
    json_decref(all);
    return status;
}

static enum profd_status cycles_run(const struct profctl_call *call, struct profd_error *e)
{
    struct ask_target target;
    char id[160], *body = NULL;
    size_t size = 0, format = FORMAT_TEXT;
    enum profd_status status = profctl_choose_format(call, &format, e);
    status = status == PROFD_OK ? build_find(call, call->arguments[0], id, e) : status;
    if (status != PROFD_OK) {
        return status;
    }
    ask_target_init(&target, "/api/v1/builds/{}/cycles", id);
    ask_target_add(&target, "limit", profctl_value(call, "limit") || format != FORMAT_TEXT ? NULL : "20");
    status = ask_target_add_given(&target, call, "since|until|limit|scope|dimension|uid", e);
    status = status == PROFD_OK ? ask_fetch(call, &target, ANSWER_MOST, &body, &size, e) : status;
    status = status == PROFD_OK ? print_answer(format, body, size, e) : status;
    free(body);
    return status;
}

const struct profctl_verb verb_cycles = {
    .name = "cycles",
    .arguments = "PROGRAM|BUILD|EXE",
    .summary = "List the cycles of a program, and arcs that break them",
    .details = "A cycle is a set of functions that call each other in a circle.\n",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .arguments_least = 1,
    .arguments_most = 1,
    .run = cycles_run,
};
