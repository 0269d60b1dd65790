/* profctl enroll: gives this host a certificate of a centre. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "profctl/profctl.h"
#include "profctl/profctl_program.h"

static const struct profctl_option options[] = {
    {"token", 0, "TOKEN", "the token of `profctl invite`; - or none: the first line of standard input"},
    {"dir", 0, "DIR", "directory of the key and the certificates (default: that of profd-relay)"},
    {"name", 0, "NAME", "name of this host in reports (default: its host name)"},
};

/* The token goes through a pipe: a command line can be seen by every user. */
static enum profd_status enroll_pass(const char *token, struct profd_error *e)
{
    int ends[2];
    const size_t n = strlen(token);
    const bool done = n < 512 && !pipe(ends) && write(ends[1], token, n) == (ssize_t)n &&
                      write(ends[1], "\n", 1) == 1 && dup2(ends[0], STDIN_FILENO) >= 0 && !close(ends[0]) &&
                      !close(ends[1]);

    return done ? PROFD_OK : profd_error_set(e, PROFD_USAGE, "the token cannot be passed on: %s", strerror(errno));
}

static enum profd_status enroll_run(const struct profctl_call *call, struct profd_error *e)
{
    const char *token = profctl_value(call, "token"), *dir = profctl_value(call, "dir"),
               *name = profctl_value(call, "name");
    const char *arguments[8] = {NULL, "--enroll", call->arguments[0]};
    size_t n = 3;
    enum profd_status status = token && strcmp(token, "-") != 0 ? enroll_pass(token, e) : PROFD_OK;

    if (dir) {
        arguments[n++] = "--dir";
        arguments[n++] = dir;
    }
    if (name) {
        arguments[n++] = "--name";
        arguments[n++] = name;
    }
    return status ? status : program_become("profd-relay", arguments, e);
}

const struct profctl_verb verb_enroll = {
    .name = "enroll",
    .arguments = "tls://HOST:PORT",
    .summary = "Give this host a certificate of a centre",
    .details = "Makes a key on this host, and asks the centre for a certificate with a token of `profctl invite`. The "
               "token\nalso says which centre is the right one. As root; see profd-relay(8) and profd-fleet(7).\n",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .arguments_least = 1,
    .arguments_most = 1,
    .run = enroll_run,
};
