/* Verbs of operators: commands that the daemon obeys over its Unix socket. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profctl/profctl.h"
#include "profctl/profctl_find.h"
#include "profctl/profctl_list.h"
#include "proto/attach.h"
#include "proto/limits.h"
#include "proto/noun.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- delete ---- */

static const struct profctl_option delete_options[] = {
    {"yes", 'y', NULL, "do not ask for confirmation"},
};

static enum profd_status delete_run(const struct profctl_call *call, struct profd_error *e)
{
    struct ask_target target;
    struct answer build, answer;
    char id[160], name[256];
    const char *const arguments[] = {id};
    /* What the argument means now: what is asked about is what will be deleted. */
    TRY(build_find(call, call->arguments[0], id, e));
    ask_target_init(&target, "/api/v1/builds/{}", id);
    TRY(ask_fetch_object(call, &target, &build, e));
    (void)snprintf(id, sizeof id, "%s", row_text(build.whole, "build_id"));
    (void)snprintf(name, sizeof name, "%s", row_text(build.whole, "name"));
    const uint64_t uploads = row_number(build.whole, "uploads");
    answer_free(&build);
    if (!profctl_value(call, "yes")) {
        char line[16] = "";
        if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1) {
            return profd_error_set(e, PROFD_USAGE,
                                   "delete would remove %" PRIu64 " %s of %s permanently; confirm with --yes", uploads,
                                   noun_for(uploads, "upload", "uploads"), name);
        }
        (void)fprintf(stderr, "Delete %s, build %s: %" PRIu64 " %s, permanently? [y/N] ", name, id, uploads,
                      noun_for(uploads, "upload", "uploads"));
        (void)fflush(stderr);
        if (!fgets(line, sizeof line, stdin) || (strcmp(line, "y\n") != 0 && strcmp(line, "yes\n") != 0)) {
            return profd_error_set(e, PROFD_USAGE, "nothing was deleted");
        }
    }
    TRY(ask_admin_text(call, "delete", arguments, 1, "deleting", &answer, e));
    if (answer.whole) {
        const uint64_t gone = row_number(answer.whole, "uploads");
        printf("deleted %s, build %s: %" PRIu64 " %s\n", name, id, gone, noun_for(gone, "upload", "uploads"));
    }
    answer_free(&answer);
    return PROFD_OK;
}

const struct profctl_verb verb_delete = {
    .name = "delete",
    .arguments = "PROGRAM|BUILD|EXE",
    .summary = "Delete every upload of a program",
    .details = "The ids of the deleted uploads stay known, so an upload that is sent again is not counted.\n",
    .options = delete_options,
    .option_count = COUNT(delete_options),
    .arguments_least = 1,
    .arguments_most = 1,
    .run = delete_run,
};

/* ---- verify ---- */

static enum profd_status verify_run(const struct profctl_call *call, struct profd_error *e)
{
    struct answer answer;
    json_t *row;
    size_t i;
    enum profd_status status = PROFD_OK;
    TRY(ask_admin(call, "verify", NULL, 0, "verifying", &answer, e));
    const uint64_t uploads = row_number(answer.whole, "uploads"), mismatches = row_number(answer.whole, "mismatches");
    if (call->json) {
        (void)fwrite(answer.text, 1, answer.size, stdout);
        status = mismatches ? PROFD_MALFORMED : PROFD_OK; /* the document has said it */
        answer_free(&answer);
        return status;
    }
    json_array_foreach(answer.rows, i, row)
    {
        puts(row_text(row, "mismatch"));
    }
    if (mismatches > i) {
        printf("and %" PRIu64 " more\n", mismatches - i);
    }
    if (mismatches) {
        status = profd_error_set(e, PROFD_MALFORMED, "%" PRIu64 " %s in %" PRIu64 " %s", mismatches,
                                 noun_for(mismatches, "mismatch", "mismatches"), uploads,
                                 noun_for(uploads, "upload", "uploads"));
    } else {
        printf("%" PRIu64 " %s verified, no mismatch\n", uploads, noun_for(uploads, "upload", "uploads"));
    }
    answer_free(&answer);
    return status;
}

const struct profctl_verb verb_verify = {
    .name = "verify",
    .arguments = "",
    .summary = "Verify all stored data against the ledger",
    .details = "Prints every difference; exits with 65 if there is one. The daemon does the same by itself, one round "
               "a day.\n",
    .arguments_most = 0,
    .run = verify_run,
};

/* ---- reload ---- */

static enum profd_status reload_run(const struct profctl_call *call, struct profd_error *e)
{
    struct answer answer;
    char applied[4096], restart[4096];
    TRY(ask_admin_text(call, "reload", NULL, 0, "reading", &answer, e));
    row_join(answer.whole, "applied", applied, sizeof applied);
    row_join(answer.whole, "restart", restart, sizeof restart);
    if (*applied) {
        printf("Applied: %s\n", applied);
    }
    if (*restart) {
        printf("Not applied before profd is restarted: %s\n", restart);
    }
    if (answer.whole && !*applied && !*restart) {
        puts("No key of the configuration has changed; the files that it names were read again");
    }
    answer_free(&answer);
    return PROFD_OK;
}

const struct profctl_verb verb_reload = {
    .name = "reload",
    .arguments = "",
    .summary = "Let the daemon read its configuration again",
    .details =
        "Prints the keys that were applied, and those that need a restart. With an error in it nothing changes.\n",
    .arguments_most = 0,
    .run = reload_run,
};

/* ---- retention ---- */

static const struct profctl_option retention_options[] = {
    {"confirm-clock", 0, NULL, "the clock is right, although it is ahead"},
};

static enum profd_status retention_run(const struct profctl_call *call, struct profd_error *e)
{
    struct answer answer;
    if (!profctl_value(call, "confirm-clock")) {
        return profd_error_set(e, PROFD_USAGE,
                               "retention needs --confirm-clock; profctl status says if the clock is "
                               "ahead");
    }
    TRY(ask_admin_text(call, "confirm-clock", NULL, 0, "confirming", &answer, e));
    if (answer.whole) {
        printf("Data and ids of uploads are removed by the clock again, which is %.1f days ahead of the time that was "
               "used before\n",
               row_real(answer.whole, "clock_ahead_seconds") / 86400);
    }
    answer_free(&answer);
    return PROFD_OK;
}

const struct profctl_verb verb_retention = {
    .name = "retention",
    .arguments = "",
    .summary = "Confirm a clock that is ahead, so that old data is removed again",
    .details =
        "While the clock is more than a day ahead, for at most 24 hours of uptime, no data is removed for its age.\n",
    .options = retention_options,
    .option_count = COUNT(retention_options),
    .arguments_most = 0,
    .run = retention_run,
};

/* ---- pause ---- */

static const struct profctl_option pause_options[] = {
    {"off", 0, NULL, "let paused processes count again"},
    {"label", 'l', "K=V", "select processes with this label, as the argument K=V does; may be repeated"},
    {"rate", 0, "HZ", "ticks per second from now on, at most the original rate; 0 restores it"},
};

/* One request: a pid or instance, or all labels together. */
struct request {
    const char *words[LIMIT_ADMIN_ARGUMENTS];
    size_t count;
};

static enum profd_status word_add(struct request *r, const char *word, struct profd_error *e)
{
    if (r->count == LIMIT_ADMIN_ARGUMENTS) {
        return profd_error_set(e, PROFD_TOO_LARGE, "more than %u labels and options: %s", LIMIT_ADMIN_ARGUMENTS, word);
    }
    r->words[r->count++] = word;
    return PROFD_OK;
}

static enum profd_status rate_take(const struct profctl_call *call, char out[32], struct profd_error *e)
{
    const char *text = profctl_value(call, "rate");
    char *end = NULL;
    out[0] = '\0';
    if (!text) {
        return PROFD_OK;
    }
    errno = 0;
    unsigned long n = strtoul(text, &end, 10);
    if (errno != 0 || *text < '0' || *text > '9' || *end != '\0' || n > ATTACH_RATE_MAX) {
        return profd_error_set(e, PROFD_USAGE, "%s: --rate is \"%s\", not a number from 0 to %u", call->verb->name,
                               text, ATTACH_RATE_MAX);
    }
    (void)snprintf(out, 32, "rate=%lu", n);
    return PROFD_OK;
}

/* Sends one command, followed by the rate. */
static enum profd_status request_send(const struct profctl_call *call, struct request *r, const char *rate,
                                      struct profd_error *e)
{
    const bool off = profctl_value(call, "off") != NULL;
    const unsigned long wanted = rate[0] ? strtoul(rate + strlen("rate="), NULL, 10) : 0;
    struct answer answer;
    json_t *row;
    size_t i;
    TRY(rate[0] ? word_add(r, rate, e) : PROFD_OK);
    TRY(ask_admin_text(call, off ? "resume" : "pause", r->words, r->count, call->verb->name, &answer, e));
    json_array_foreach(answer.rows, i, row)
    {
        const char *name = row_base(row, "name");
        const uint64_t most = row_number(row, "rate"), pid = row_number(row, "pid");
        printf("%s %" PRIu64 "%s%s\n", off ? "counting" : "paused", pid, name[0] ? " " : "", name);
        if (wanted > most) {
            profctl_complain("%s: process %" PRIu64 " was started with a rate of %" PRIu64 ", which is its limit",
                             call->verb->name, pid, most);
        }
    }
    answer_free(&answer);
    return PROFD_OK;
}

static enum profd_status pause_run(const struct profctl_call *call, struct profd_error *e)
{
    char rate[32];
    struct request labels = {.count = 0};
    enum profd_status first = rate_take(call, rate, e);
    for (size_t i = 0; i < call->given_count && first == PROFD_OK; i++) {
        if (strcmp(call->given[i].option->name, "label") == 0) {
            if (!strchr(call->given[i].value, '=')) {
                return profd_error_set(e, PROFD_USAGE, "%s: -l \"%s\" is not NAME=VALUE", call->verb->name,
                                       call->given[i].value);
            }
            first = word_add(&labels, call->given[i].value, e);
        }
    }
    for (size_t i = 0; i < call->argument_count && first == PROFD_OK; i++) {
        if (strchr(call->arguments[i], '=')) {
            first = word_add(&labels, call->arguments[i], e);
        }
    }
    if (first == PROFD_OK && call->argument_count == 0 && labels.count == 0) {
        first = profd_error_set(e, PROFD_USAGE, "%s: no process given; name a PID, labels K=V, or an instance",
                                call->verb->name);
    }
    if (first != PROFD_OK) {
        return first;
    }
    if (labels.count) {
        first = request_send(call, &labels, rate, e);
    }
    for (size_t i = 0; i < call->argument_count; i++) { /* one that is gone does not keep the others back */
        struct request one = {.words = {call->arguments[i]}, .count = 1};
        struct profd_error why = {""};
        enum profd_status status = strchr(call->arguments[i], '=') ? PROFD_OK : request_send(call, &one, rate, &why);
        if (status != PROFD_OK && first == PROFD_OK) {
            first = profd_error_set(e, status, "%s", why.sentence);
        } else if (status != PROFD_OK) {
            profctl_complain("%s", why.sentence);
        }
    }
    return first;
}

const struct profctl_verb verb_pause = {
    .name = "pause",
    .arguments = "PID|K=V|INSTANCE...",
    .summary = "Make live processes stop counting, or count again",
    .details = "A process is named by its PID or by at least four characters of its instance (profctl ps --json). K=V "
               "selects\n"
               "all processes with that label. A process obeys at its next tick of CPU time.\n",
    .options = pause_options,
    .option_count = COUNT(pause_options),
    .arguments_most = (size_t)-1,
    .run = pause_run,
};

/* ---- relay ---- */

static enum profd_status relay_run(const struct profctl_call *call, struct profd_error *e)
{
    struct answer answer;
    if (strcmp(call->arguments[0], "move") != 0) {
        return profd_error_set(e, PROFD_USAGE, "\"%s\" is not move", call->arguments[0]);
    }
    TRY(ask_admin_text(call, "relay-move", NULL, 0, "moving", &answer, e));
    if (answer.whole) {
        const uint64_t withdrawn = row_number(answer.whole, "withdrawn");
        printf("The next centre that answers is the centre of this host\n"
               "withdrawn  %" PRIu64 " %s, which the centre before may have counted\n",
               withdrawn, noun_for(withdrawn, "upload", "uploads"));
    }
    answer_free(&answer);
    return PROFD_OK;
}

const struct profctl_verb verb_relay = {
    .name = "relay",
    .arguments = "move",
    .summary = "Send to another centre from now on",
    .details =
        "Forgets the centre that answered this host first. What may have arrived there is not sent to the next one.\n",
    .arguments_least = 1,
    .arguments_most = 1,
    .run = relay_run,
};

/* ---- token ---- */

static const struct profctl_option token_options[] = {
    {"read", 0, NULL, "add: allow reading"},
    {"write", 0, NULL, "add: allow the host NAME to send its counts"},
    {"admin", 0, NULL, "add: allow reading and sending symbols"},
    {"tenant", 't', "T", "add: tenant of the data, or all (default: all; with --write: default)"},
    {"hosts", 0, "PATTERN", "add, with --write: allow all hosts with such names; * and ? are wildcards"},
    {"expires", 0, "TIME|AGE", "add: end of the token: a time, as 2027-01-31, or an age, as 90d (default: none)"},
    {"proxy", 0, NULL, "add: print no token; a proxy sends NAME"},
};

static enum profd_status token_add(const struct profctl_call *call, struct profd_error *e)
{
    static const char *const words[] = {"read", "write", "admin"};
    const char *name = call->argument_count == 2 ? call->arguments[1] : NULL, *tenant = profctl_value(call, "tenant"),
               *hosts = profctl_value(call, "hosts");
    const bool proxy = profctl_value(call, "proxy") != NULL;
    char end[64], rights[24] = "";
    struct answer answer;
    for (size_t i = 0, used = 0; i < COUNT(words); i++) {
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
    TRY(ask_admin_text(call, "token-add", arguments, COUNT(arguments), "adding", &answer, e));
    if (answer.whole && proxy) {
        printf("added token %s for a proxy\n", name);
    } else if (answer.whole) {
        printf("%s\n", row_text(answer.whole, "token"));
        profctl_complain("this is token %s (%s; tenant %s); it cannot be shown again", name, rights, tenant);
    }
    answer_free(&answer);
    return PROFD_OK;
}

static const char *cell_by(json_t *row, const char *field, char out[LIST_CELL])
{
    (void)out;
    return row_flag(row, field) ? "proxy" : "token";
}

static const char *cell_never(json_t *row, const char *field, char out[LIST_CELL])
{
    (void)out;
    return row_text(row, field)[0] ? row_text(row, field) : "never";
}

static enum profd_status token_list(const struct profctl_call *call, struct profd_error *e)
{
    static const struct list_column columns[] = {
        {"NAME", -24, "name", cell_text, false},        {"RIGHTS", -16, "rights", cell_join, false},
        {"TENANT", -16, "tenant", cell_text, false},    {"BY", -5, "proxy", cell_by, false},
        {"EXPIRES", -24, "expires", cell_never, false}, {"HOSTS", 0, "hosts", cell_text, false},
    };
    struct answer answer;
    TRY(call->argument_count == 1 ? ask_admin_text(call, "token-list", NULL, 0, "asking", &answer, e)
                                  : profd_error_set(e, PROFD_USAGE, "token list: no argument is expected"));
    if (answer.whole) {
        list_print_table(answer.rows, columns, COUNT(columns), NULL);
    }
    answer_free(&answer);
    return PROFD_OK;
}

static enum profd_status token_remove(const struct profctl_call *call, struct profd_error *e)
{
    struct answer answer;
    const char *const name = call->argument_count == 2 ? call->arguments[1] : NULL;
    TRY(name ? ask_admin_text(call, "token-remove", &name, 1, "removing", &answer, e)
             : profd_error_set(e, PROFD_USAGE, "token remove: give one name"));
    if (answer.whole) {
        printf("removed token %s\n", name);
    }
    answer_free(&answer);
    return PROFD_OK;
}

static enum profd_status token_run(const struct profctl_call *call, struct profd_error *e)
{
    static const struct {
        const char *name;
        enum profd_status (*run)(const struct profctl_call *call, struct profd_error *e);
    } actions[] = {{"add", token_add}, {"list", token_list}, {"remove", token_remove}};
    for (size_t i = 0; i < COUNT(actions); i++) {
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
    .options = token_options,
    .option_count = COUNT(token_options),
    .arguments_least = 1,
    .arguments_most = 2,
    .run = token_run,
};
