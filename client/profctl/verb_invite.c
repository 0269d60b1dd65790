/* profctl invite: tokens with which hosts enrol. */
#include <stdio.h>
#include <stdlib.h>

#include "profctl/profctl.h"
#include "profctl/profctl_admin.h"
#include "profctl/profctl_rows.h"

static const struct profctl_option options[] = {
    {"tenant", 0, "T", "owner of what the hosts send (default: default)"},
    {"uses", 0, "N", "number of hosts that may enrol with it (default 1)"},
    {"expires", 0, "AGE", "how long it is valid: 30m, 1h, 7d (default 1h)"},
};

static enum profd_status invite_run(const struct profctl_call *call, struct profd_error *e)
{
    const char *tenant = profctl_value(call, "tenant"), *uses = profctl_value(call, "uses");
    char lasts[24], *text = NULL;
    const char *const arguments[] = {tenant ? tenant : "default", uses ? uses : "1", lasts};
    struct rows *answer = NULL;
    size_t n;
    enum profd_status status;

    status = profctl_duration(call, "expires", "1h", lasts, e);
    if (!status) {
        status = admin_read(call, "enrol-token", arguments, 3, "asking", &text, &n, e);
    }
    if (!status && call->json) {
        (void)fwrite(text, 1, n, stdout);
    } else if (!status) {
        status = rows_parse_object(text, n, &answer, e);
        if (!status) {
            printf("%s\n", rows_text(answer, 0, "token"));
        }
        rows_free(answer);
    }
    free(text);
    return status;
}

const struct profctl_verb verb_invite = {
    .name = "invite",
    .arguments = "",
    .summary = "Make a token with which hosts enrol",
    .details =
        "Prints the token, once: the centre stores its hash. For root, the daemon's user and members of its admin "
        "group.\n",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = invite_run,
};
