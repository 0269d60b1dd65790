/* profctl delete: removes a program's uploads. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "profctl/profctl.h"
#include "profctl/profctl_admin.h"
#include "profctl/profctl_ask.h"
#include "profctl/profctl_build.h"
#include "profctl/profctl_rows.h"
#include "proto/noun.h"

static const struct profctl_option options[] = {
    {"yes", 'y', NULL, "do not ask for confirmation"},
};

struct victim {
    char id[160], name[256];
    uint64_t uploads;
};

/* What the argument means now: what is asked about is what will be deleted. */
static enum profd_status victim_find(const struct profctl_call *call, struct victim *v, struct profd_error *e)
{
    struct profd_conn *conn;
    struct rows *build = NULL;
    struct ask_target target;
    char id[160];
    enum profd_status status = build_find(call, call->arguments[0], id, e);
    const struct profd_options o = profctl_options(call, ASK_ANSWER_MS);
    if (status == PROFD_OK) {
        status = profd_conn_open(&o, &conn, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    ask_target_init(&target, "/api/v1/builds/{}", id);
    status = rows_read_object(conn, &target, &build, e);
    if (status == PROFD_OK) {
        (void)snprintf(v->id, sizeof v->id, "%s", rows_text(build, 0, "build_id"));
        (void)snprintf(v->name, sizeof v->name, "%s", rows_text(build, 0, "name"));
        v->uploads = rows_number(build, 0, "uploads");
    }
    rows_free(build);
    profd_conn_close(conn);
    return status;
}

static enum profd_status delete_run(const struct profctl_call *call, struct profd_error *e)
{
    struct victim v = {.uploads = 0};
    const char *const arguments[] = {v.id};
    struct rows *answer;
    TRY(victim_find(call, &v, e));
    if (!profctl_value(call, "yes")) {
        char line[16] = "";
        if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1) {
            return profd_error_set(e, PROFD_USAGE,
                                   "delete would remove %" PRIu64 " %s of %s permanently; confirm with --yes",
                                   v.uploads, noun_for(v.uploads, "upload", "uploads"), v.name);
        }
        (void)fprintf(stderr, "Delete %s, build %s: %" PRIu64 " %s, permanently? [y/N] ", v.name, v.id, v.uploads,
                      noun_for(v.uploads, "upload", "uploads"));
        (void)fflush(stderr);
        if (!fgets(line, sizeof line, stdin) || (strcmp(line, "y\n") != 0 && strcmp(line, "yes\n") != 0)) {
            return profd_error_set(e, PROFD_USAGE, "nothing was deleted");
        }
    }
    TRY(admin_ask(call, "delete", arguments, 1, "deleting", false, &answer, e));
    if (answer) {
        const uint64_t gone = rows_number(answer, 0, "uploads");
        printf("deleted %s, build %s: %" PRIu64 " %s\n", v.name, v.id, gone, noun_for(gone, "upload", "uploads"));
    }
    rows_free(answer);
    return PROFD_OK;
}

const struct profctl_verb verb_delete = {
    .name = "delete",
    .arguments = "PROGRAM|BUILD|EXE",
    .summary = "Delete every upload of a program",
    .details = "The ids of the deleted uploads stay known, so an upload that is sent again is not counted.\n",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .arguments_least = 1,
    .arguments_most = 1,
    .run = delete_run,
};
