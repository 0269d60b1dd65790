/* profctl reload: the daemon reads its configuration again. */
#include <stdio.h>

#include "profctl/profctl.h"
#include "profctl/profctl_admin.h"
#include "profctl/profctl_rows.h"

#define LIST_MAX 4096

static void reload_print(const char *what, const char *list)
{
    if (*list) {
        printf("%s: %s\n", what, list);
    }
}

static enum profd_status reload_run(const struct profctl_call *call, struct profd_error *e)
{
    struct rows *whole;
    TRY(admin_ask(call, "reload", NULL, 0, "reading", false, &whole, e));
    if (whole) {
        char applied[LIST_MAX], restart[LIST_MAX];
        rows_join(whole, 0, "applied", applied, sizeof applied);
        rows_join(whole, 0, "restart", restart, sizeof restart);
        reload_print("Applied", applied);
        reload_print("Not applied before profd is restarted", restart);
        if (!*applied && !*restart) {
            puts("No key of the configuration has changed; the files that it names were read again");
        }
    }
    rows_free(whole);
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
