/* profctl ca: the keys and certificates of a centre. */
#include "profctl/profctl.h"
#include "profctl/profctl_program.h"

#define NAMES_MAX 32

static const struct profctl_option options[] = {
    {"dir", 0, "DIR", "directory of the files (default: that of profd.conf)"},
};

static enum profd_status ca_run(const struct profctl_call *call, struct profd_error *e)
{
    static const char *const verbs = "init|roll|gate", *const given[] = {"--init", "--roll", "--gate"};
    const char *arguments[2 * NAMES_MAX + 6] = {NULL}, *dir = profctl_value(call, "dir");
    const int which = profctl_alternative(verbs, call->arguments[0]);
    size_t n = 1;

    if (which < 0) {
        return profd_error_set(e, PROFD_USAGE, "\"%s\" is not %s", call->arguments[0], "init, roll or gate");
    }
    if (which == 1 ? call->argument_count > 1 : call->argument_count < 2) {
        return profd_error_set(e, PROFD_USAGE,
                               which == 1 ? "ca roll takes no names: the gate's certificate stays"
                                          : "name the centre as hosts do: a name or address");
    }
    arguments[n++] = given[which];
    if (dir) {
        arguments[n++] = "--dir";
        arguments[n++] = dir;
    }
    for (size_t i = 1; i < call->argument_count; i++) {
        arguments[n++] = "--name";
        arguments[n++] = call->arguments[i];
    }
    return program_become("profd-signer", arguments, e);
}

const struct profctl_verb verb_ca = {
    .name = "ca",
    .arguments = "init|roll|gate [HOST…]",
    .summary = "Make the keys and certificates of a centre",
    .details = "init makes a CA and the certificate of the gate. HOST is a name or address under which hosts reach the "
               "centre.\nroll makes a new key for the CA; certificates of both keys are valid. gate makes a new "
               "certificate for the gate,\nissued by the newest key. See profd-signer(8).\n",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .arguments_least = 1,
    .arguments_most = NAMES_MAX + 1,
    .run = ca_run,
};
