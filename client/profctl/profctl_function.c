#include "profctl/profctl_function.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "profctl/profctl_rows.h"
#include "proto/noun.h"

#define SHOWN 4 /* of several functions that are meant */

/* How well a name fits: 0 it has the text in it, 1 without its parameters it is the text, 2 it is the text. */
static int judge(const struct rows *r, size_t i, const char *text)
{
    const char *name = rows_text(r, i, "name");
    const size_t n = strlen(text);
    if (strcmp(name, text) == 0 || strcmp(rows_text(r, i, "raw_name"), text) == 0) {
        return 2;
    }
    return strncmp(name, text, n) == 0 && name[n] == '(';
}

static enum profd_status choose(const struct rows *r, const char *text, struct function_place *out,
                                struct profd_error *e)
{
    int best = -1;
    size_t count = 0, at = 0;
    for (size_t i = 0; i < rows_count(r); i++) {
        int fit = judge(r, i, text);
        if (fit > best) {
            best = fit;
            count = 0;
            at = i;
        }
        count += fit == best;
    }
    if (count == 0) {
        return profd_error_set(e, PROFD_NOT_FOUND,
                               "no function with %.100s in its name has calls or time in this "
                               "selection",
                               text);
    }
    if (count > 1) {
        char list[400] = "";
        size_t shown = 0;
        for (size_t i = 0; i < rows_count(r) && shown < SHOWN; i++) {
            if (judge(r, i, text) == best) {
                const size_t used = strlen(list);
                (void)snprintf(list + used, sizeof list - used, "%s%.60s at %s", shown++ > 0 ? ", " : "",
                               rows_text(r, i, "name"), rows_text(r, i, "address"));
            }
        }
        return profd_error_set(e, PROFD_AMBIGUOUS,
                               "%.100s: %zu functions have this name: %s%s; give the address of one", text, count, list,
                               count > shown ? ", …" : "");
    }
    (void)snprintf(out->name, sizeof out->name, "%s", rows_text(r, at, "name"));
    (void)snprintf(out->build_id, sizeof out->build_id, "%s", rows_text(r, at, "build_id"));
    (void)snprintf(out->address, sizeof out->address, "%s", rows_text(r, at, "address"));
    return PROFD_OK;
}

enum profd_status function_find(const struct profctl_call *call, const char *build_id, const char *text,
                                struct function_place *out, struct profd_error *e)
{
    struct ask_target target;
    struct profd_conn *conn;
    struct rows *found = NULL;
    *out = (struct function_place){.name = ""};
    if (strncmp(text, "0x", 2) == 0 && strlen(text) < sizeof out->address) {
        (void)snprintf(out->address, sizeof out->address, "%s", text);
        (void)snprintf(out->build_id, sizeof out->build_id, "%s", build_id);
        return PROFD_OK;
    }
    const struct profd_options o = profctl_options(call, ASK_ANSWER_MS);
    ask_target_init(&target, "/api/v1/builds/{}/functions", build_id);
    ask_target_add(&target, "name", text);
    ask_target_add(&target, "limit", "1000");
    enum profd_status status = ask_target_add_given(&target, call, "since|until|scope|uid|dimension", e);
    status = status == PROFD_OK ? profd_conn_open(&o, &conn, e) : status;
    if (status == PROFD_OK) {
        status = rows_read(conn, &target, &found, e);
        profd_conn_close(conn);
    }
    status = status == PROFD_OK ? choose(found, text, out, e) : status;
    rows_free(found);
    return status;
}

void function_target_init(struct ask_target *target, const char *path, const char *build_id,
                          const struct function_place *place)
{
    ask_target_init_two(target, path, build_id, place->address);
    ask_target_add(target, "build_id", strcmp(place->build_id, build_id) != 0 ? place->build_id : NULL);
}

bool function_is_sampled(const json_t *answer)
{
    const json_t *reason;
    size_t i;
    json_array_foreach(json_object_get(answer, "inexact_reasons"), i, reason)
    {
        if (strcmp(json_string_value(reason), "sampled") == 0) {
            return true;
        }
    }
    return false;
}

void function_print_reasons(const json_t *answer, const char *indentation)
{
    const json_t *reasons = json_object_get(answer, "inexact_reasons"), *reason;
    size_t i;
    json_array_foreach(reasons, i, reason)
    {
        printf("%s%s %s", i > 0 ? "," : indentation, i > 0 ? "" : "not exact:", json_string_value(reason));
    }
    if (json_array_size(reasons) > 0) {
        printf("\n");
    }
}

void function_print_calls(const json_t *answer)
{
    const json_t *function = json_object_get(answer, "function");
    const uint64_t calls = (uint64_t)json_integer_value(json_object_get(function, "calls"));
    const bool exact = json_is_true(json_object_get(answer, "calls_exact")), sampled = function_is_sampled(answer);
    if (calls == 0) {
        printf("no call by others was counted\n");
        return;
    }
    printf("%s%" PRIu64 " %s by others\n",
           exact     ? ""
           : sampled ? "~"
                     : "at least ",
           calls, noun_for(calls, "call", "calls"));
    if (sampled) {
        printf("~: sampled, at least in part: how often a tick found the function below its caller\n");
    }
}
