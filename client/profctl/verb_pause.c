/* profctl pause: live processes stop counting, and with --off they go on. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profctl/profctl.h"
#include "profctl/profctl_admin.h"
#include "profctl/profctl_rows.h"
#include "proto/attach.h"
#include "proto/limits.h"

static const struct profctl_option options[] = {
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

static void answer_print(const struct profctl_call *call, const struct rows *rows, unsigned long rate)
{
    for (size_t i = 0; i < rows_count(rows); i++) {
        const char *name = rows_text(rows, i, "name"), *slash = strrchr(name, '/');
        uint64_t most = rows_number(rows, i, "rate"), pid = rows_number(rows, i, "pid");
        name = slash ? slash + 1 : name;
        printf("%s %" PRIu64 "%s%s\n", profctl_value(call, "off") ? "counting" : "paused", pid, name[0] ? " " : "",
               name);
        if (rate > most) {
            profctl_complain("%s: process %" PRIu64 " was started with a rate of %" PRIu64 ", which is its limit",
                             call->verb->name, pid, most);
        }
    }
}

static enum profd_status request_send(const struct profctl_call *call, const struct request *r, unsigned long rate,
                                      struct profd_error *e)
{
    struct rows *rows;
    const char *verb = profctl_value(call, "off") ? "resume" : "pause";
    TRY(admin_ask(call, verb, r->words, r->count, call->verb->name, true, &rows, e));
    if (rows) {
        answer_print(call, rows, rate);
    }
    rows_free(rows);
    return PROFD_OK;
}

/* Sends one command, followed by the rate. */
static enum profd_status request_finish(const struct profctl_call *call, struct request *r, const char *rate,
                                        struct profd_error *e)
{
    TRY(rate[0] ? word_add(r, rate, e) : PROFD_OK);
    return request_send(call, r, rate[0] ? strtoul(rate + strlen("rate="), NULL, 10) : 0, e);
}

static enum profd_status switch_run(const struct profctl_call *call, struct profd_error *e)
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
        first = request_finish(call, &labels, rate, e);
    }
    for (size_t i = 0; i < call->argument_count; i++) { /* one that is gone does not keep the others back */
        struct request one = {.words = {call->arguments[i]}, .count = 1};
        struct profd_error why = {""};
        enum profd_status status = strchr(call->arguments[i], '=') ? PROFD_OK : request_finish(call, &one, rate, &why);
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
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .arguments_most = (size_t)-1,
    .run = switch_run,
};
