/* profctl relay: an operator makes a host send to another centre. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "profctl/profctl.h"
#include "profctl/profctl_admin.h"
#include "profctl/profctl_rows.h"
#include "proto/noun.h"

static enum profd_status relay_run(const struct profctl_call *call, struct profd_error *e)
{
    struct rows *answer;
    if (strcmp(call->arguments[0], "move") != 0) {
        return profd_error_set(e, PROFD_USAGE, "\"%s\" is not move", call->arguments[0]);
    }
    TRY(admin_ask(call, "relay-move", NULL, 0, "moving", false, &answer, e));
    if (answer) {
        const uint64_t withdrawn = rows_number(answer, 0, "withdrawn");
        printf("The next centre that answers is the centre of this host\n"
               "withdrawn  %" PRIu64 " %s, which the centre before may have counted\n",
               withdrawn, noun_for(withdrawn, "upload", "uploads"));
    }
    rows_free(answer);
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
