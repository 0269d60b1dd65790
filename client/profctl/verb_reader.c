/* profctl reader: readers over the network, with their tokens, roles and tenants. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "profctl/profctl.h"
#include "profctl/profctl_admin.h"
#include "profctl/profctl_output.h"
#include "profctl/profctl_rows.h"

static const struct profctl_option options[] = {
    {"role", 0, "read|admin", "add: read sees reports; admin may also send symbols (default read)"},
    {"tenant", 't', "T[,T]", "add: the tenants that it sees, or \"all\""},
    {"expires", 0, "AGE", "add: how long it is valid, as 90d, 12h or 30m (default: for ever)"},
    {"proxy", 0, NULL, "add: no token; a proxy names the reader"},
};

static enum profd_status ask(const struct profctl_call *call, const char *verb, const char *const *arguments, size_t n,
                             json_t **out, struct profd_error *e)
{
    char *text = NULL;
    size_t size = 0;
    TRY(admin_read(call, verb, arguments, n, verb, &text, &size, e));
    *out = json_loadb(text, size, 0, NULL);
    explicit_bzero(text, size);
    free(text);
    return *out ? PROFD_OK : profd_error_set(e, PROFD_PROTOCOL, "the daemon's answer to %s is not JSON", verb);
}

static void print_json(const json_t *document)
{
    (void)json_dumpf(document, stdout, JSON_COMPACT);
    putchar('\n');
}

static enum profd_status add(const struct profctl_call *call, struct profd_error *e)
{
    char seconds[24] = "0";
    const char *role = profctl_value(call, "role"), *tenant = profctl_value(call, "tenant");
    json_t *answer = NULL;
    if (call->argument_count != 2) {
        return profd_error_set(e, PROFD_USAGE, "reader add: give one name");
    }
    if (!tenant) {
        return profd_error_set(e, PROFD_USAGE, "reader add: --tenant says what the reader sees: names, or \"all\"");
    }
    enum profd_status status =
        profctl_value(call, "expires") ? profctl_duration(call, "expires", "", seconds, e) : PROFD_OK;
    const char *const arguments[] = {call->arguments[1], role ? role : "read", tenant, seconds,
                                     profctl_value(call, "proxy") ? "proxy" : "token"};
    if (status == PROFD_OK) {
        status = ask(call, "reader-add", arguments, 5, &answer, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    const char *token = json_string_value(json_object_get(answer, "token"));
    if (call->json) {
        print_json(answer);
    } else if (token) {
        printf("%s\n", token);
        profctl_complain("this is the token of reader %s; it is not shown again", call->arguments[1]);
    } else {
        printf("added reader %s, which a proxy names\n", call->arguments[1]);
    }
    json_decref(answer);
    return PROFD_OK;
}

static void print_reader(const json_t *row)
{
    char name[256], tenants[1024] = "";
    const json_t *list = json_object_get(row, "tenants");
    const char *expires = json_string_value(json_object_get(row, "expires"));
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(list) && n < sizeof tenants; i++) {
        n += (size_t)snprintf(tenants + n, sizeof tenants - n, "%s%s", i ? "," : "",
                              json_string_value(json_array_get(list, i)));
    }
    profctl_clean(json_string_value(json_object_get(row, "name")), name, sizeof name);
    printf("%-24s %-5s %-5s %-24s %s\n", name, json_string_value(json_object_get(row, "role")),
           json_is_true(json_object_get(row, "has_token")) ? "token" : "proxy", expires ? expires : "never", tenants);
}

static enum profd_status list(const struct profctl_call *call, struct profd_error *e)
{
    json_t *answer = NULL;
    TRY(call->argument_count == 1 ? ask(call, "reader-list", NULL, 0, &answer, e)
                                  : profd_error_set(e, PROFD_USAGE, "reader list: no argument is expected"));
    if (call->json) {
        print_json(answer);
    } else {
        const json_t *rows = json_object_get(answer, "rows");
        printf("%-24s %-5s %-5s %-24s %s\n", "NAME", "ROLE", "BY", "EXPIRES", "TENANTS");
        for (size_t i = 0; i < json_array_size(rows); i++) {
            print_reader(json_array_get(rows, i));
        }
    }
    json_decref(answer);
    return PROFD_OK;
}

static enum profd_status remove_reader(const struct profctl_call *call, struct profd_error *e)
{
    json_t *answer = NULL;
    const char *const name = call->argument_count == 2 ? call->arguments[1] : NULL;
    TRY(name ? ask(call, "reader-remove", &name, 1, &answer, e)
             : profd_error_set(e, PROFD_USAGE, "reader remove: give one name"));
    if (call->json) {
        print_json(answer);
    } else {
        printf("removed reader %s\n", name);
    }
    json_decref(answer);
    return PROFD_OK;
}

static enum profd_status reader_run(const struct profctl_call *call, struct profd_error *e)
{
    static const struct {
        const char *name;
        enum profd_status (*run)(const struct profctl_call *call, struct profd_error *e);
    } actions[] = {{"add", add}, {"list", list}, {"remove", remove_reader}};
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
        if (strcmp(call->arguments[0], actions[i].name) == 0) {
            return actions[i].run(call, e);
        }
    }
    return profd_error_set(e, PROFD_USAGE, "reader: \"%s\" is not add, list or remove", call->arguments[0]);
}

const struct profctl_verb verb_reader = {
    .name = "reader",
    .arguments = "add NAME | list | remove NAME",
    .summary = "Manage the readers of a centre over the network",
    .details =
        "A reader sees the data of its tenants over HTTP, with a token that is printed once, or because a proxy\n"
        "names it. A tenant that does not exist is made. A reader that is removed is refused from the next\n"
        "request on.\n",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .arguments_least = 1,
    .arguments_most = 2,
    .run = reader_run,
};
