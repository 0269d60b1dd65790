/* profctl token: tokens of the HTTP API, with their rights and tenants. */
#include <stdio.h>
#include <string.h>

#include "profctl/profctl.h"
#include "profctl/profctl_admin.h"
#include "profctl/profctl_rows.h"

static const struct profctl_option options[] = {
    {"read", 0, NULL, "add: allow reading"},
    {"write", 0, NULL, "add: allow the host NAME to send its counts"},
    {"admin", 0, NULL, "add: allow reading and sending symbols"},
    {"tenant", 't', "T", "add: tenant of the data, or all (default: all; with --write: default)"},
    {"hosts", 0, "PATTERN", "add, with --write: allow all hosts with such names; * and ? are wildcards"},
    {"expires", 0, "TIME|AGE", "add: end of the token: a time, as 2027-01-31, or an age, as 90d (default: none)"},
    {"proxy", 0, NULL, "add: print no token; a proxy sends NAME"},
};

static enum profd_status add(const struct profctl_call *call, struct profd_error *e)
{
    static const char *const words[] = {"read", "write", "admin"};
    const char *name = call->argument_count == 2 ? call->arguments[1] : NULL, *tenant = profctl_value(call, "tenant"),
               *hosts = profctl_value(call, "hosts");
    const bool proxy = profctl_value(call, "proxy") != NULL;
    char end[64], rights[24] = "";
    struct rows *answer = NULL;
    for (size_t i = 0, used = 0; i < sizeof words / sizeof words[0]; i++) {
        if (profctl_value(call, words[i]) != NULL) {
            used += (size_t)snprintf(rights + used, sizeof rights - used, "%s%s", used > 0 ? "," : "", words[i]);
        }
    }
    if (!name || rights[0] == '\0') {
        return profd_error_set(e, PROFD_USAGE,
                               "token add: give one name and at least one right: --read, --write or --admin");
    }
    if (!tenant) {
        tenant = profctl_value(call, "write") != NULL ? "default" : "all";
    }
    /* Tells a time from an age: only a time contains a "-". */
    const char *given = profctl_value(call, "expires");
    char seconds[24];
    if (given == NULL) {
        end[0] = '\0';
    } else if (strchr(given, '-') != NULL) {
        (void)snprintf(end, 64, "%s", given);
    } else {
        TRY(profctl_duration(call, "expires", "", seconds, e));
        (void)snprintf(end, 64, "+%s", seconds);
    }
    const char *const arguments[] = {name, rights, tenant, end, proxy ? "proxy" : "token", hosts ? hosts : ""};
    TRY(admin_ask(call, "token-add", arguments, sizeof arguments / sizeof *arguments, "adding", false, &answer, e));
    if (answer && proxy) {
        printf("added token %s for a proxy\n", name);
    } else if (answer) {
        printf("%s\n", rows_text(answer, 0, "token"));
        profctl_complain("this is token %s (%s; tenant %s); it cannot be shown again", name, rights, tenant);
    }
    rows_free(answer);
    return PROFD_OK;
}

static enum profd_status list(const struct profctl_call *call, struct profd_error *e)
{
    struct rows *answer = NULL;
    TRY(call->argument_count == 1 ? admin_ask(call, "token-list", NULL, 0, "asking", true, &answer, e)
                                  : profd_error_set(e, PROFD_USAGE, "token list: no argument is expected"));
    if (answer) {
        printf("%-24s %-16s %-16s %-5s %-24s %s\n", "NAME", "RIGHTS", "TENANT", "BY", "EXPIRES", "HOSTS");
    }
    for (size_t i = 0; answer && i < rows_count(answer); i++) {
        const char *expires = rows_text(answer, i, "expires");
        char rights[64];
        rows_join(answer, i, "rights", rights, sizeof rights);
        printf("%-24s %-16s %-16s %-5s %-24s %s\n", rows_text(answer, i, "name"), rights,
               rows_text(answer, i, "tenant"), rows_flag(answer, i, "proxy") ? "proxy" : "token",
               expires[0] != '\0' ? expires : "never", rows_text(answer, i, "hosts"));
    }
    rows_free(answer);
    return PROFD_OK;
}

static enum profd_status remove_token(const struct profctl_call *call, struct profd_error *e)
{
    struct rows *answer = NULL;
    const char *const name = call->argument_count == 2 ? call->arguments[1] : NULL;
    TRY(name ? admin_ask(call, "token-remove", &name, 1, "removing", false, &answer, e)
             : profd_error_set(e, PROFD_USAGE, "token remove: give one name"));
    if (answer) {
        printf("removed token %s\n", name);
    }
    rows_free(answer);
    return PROFD_OK;
}

static enum profd_status token_run(const struct profctl_call *call, struct profd_error *e)
{
    static const struct {
        const char *name;
        enum profd_status (*run)(const struct profctl_call *call, struct profd_error *e);
    } actions[] = {{"add", add}, {"list", list}, {"remove", remove_token}};
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
        if (strcmp(call->arguments[0], actions[i].name) == 0) {
            return actions[i].run(call, e);
        }
    }
    return profd_error_set(e, PROFD_USAGE, "token: \"%s\" is not add, list or remove", call->arguments[0]);
}

const struct profctl_verb verb_token = {
    .name = "token",
    .arguments = "add NAME | list | remove NAME",
    .summary = "Manage the tokens of the HTTP API",
    .details =
        "add prints the token once; the daemon stores only its hash. Programs send it as Bearer token or password.\n",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .arguments_least = 1,
    .arguments_most = 2,
    .run = token_run,
};
