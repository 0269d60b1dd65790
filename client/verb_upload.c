/* profctl upload: gmon.out files to the daemon. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/profctl.h"

static const struct profctl_option options[] = {
    {"exe", 'e', "EXE", "the executable that was profiled (default: ./a.out)"},
    {"label", 'l', "K=V", "a label of all these uploads; may repeat"},
};

struct tally {
    size_t stored, spooled, refused, earlier_stored;
    enum profd_status first;       /* of what was refused */
    char why_spooled[sizeof(struct profd_error)];
};

static void refuse(struct tally *t, enum profd_status status, const char *sentence)
{
    t->refused++;
    t->first = t->first == PROFD_OK ? status : t->first;
    profctl_complain("%s", sentence);
}

static void outcome_take(void *context, const struct profd_outcome *o)
{
    struct tally *t = context;
    if (o->status != PROFD_OK) {
        struct profd_error line;
        (void)profd_error_set(&line, o->status, "%s%s: %s", o->earlier ? "from the spool, refused: " : "", o->name, o->sentence);
        if (o->earlier || o->executable) { /* no file of this run: it is told, and changes no exit status */
            profctl_complain("%s", line.sentence);
        } else {
            refuse(t, o->status, line.sentence);
        }
    } else if (o->earlier) {
        t->earlier_stored += !o->spooled;
    } else if (o->spooled) {
        t->spooled++;
        (void)snprintf(t->why_spooled, sizeof t->why_spooled, "%s", o->sentence);
    } else {
        t->stored++;
    }
}

/* -l K=V of the command line, and the name of this host where none is given. */
static enum profd_status labels_add(const struct profctl_call *call, struct profd_upload *u, struct profd_error *e)
{
    char host[256] = "";
    for (size_t i = 0; i < call->given_count; i++) {
        if (strcmp(call->given[i].option->name, "label") != 0) {
            continue;
        }
        const char *text = call->given[i].value, *equals = strchr(text, '=');
        char name[160];
        if (!equals || (size_t)(equals - text) >= sizeof name) {
            return profd_error_set(e, PROFD_USAGE, "upload: -l %s is not NAME=VALUE", text);
        }
        (void)snprintf(name, sizeof name, "%.*s", (int)(equals - text), text);
        enum profd_status status = profd_upload_add_label(u, name, equals + 1, e);
        if (status != PROFD_OK) {
            return profd_error_wrap(e, PROFD_USAGE, "upload: -l %s", text);
        }
    }
    if (profd_upload_has_label(u, "host") || gethostname(host, sizeof host - 1) != 0 || host[0] == '\0') {
        return PROFD_OK;
    }
    return profd_upload_add_label(u, "host", host, e);
}

/* Bad labels are refused before anything is read or sent. */
static enum profd_status labels_check(const struct profctl_call *call, struct profd_error *e)
{
    struct profd_upload *u;
    enum profd_status status = profd_upload_new(&u, e);
    if (status == PROFD_OK) {
        status = labels_add(call, u, e);
        profd_upload_free(u);
    }
    return status;
}

static void file_send(const struct profctl_call *call, struct profd_delivery *d, const struct profd_executable *x,
                      const char *path, struct tally *t)
{
    struct profd_error why = {""};
    struct profd_upload *u = NULL;
    enum profd_status status = profd_executable_import(x, path, &u, &why);
    if (status == PROFD_OK) {
        status = labels_add(call, u, &why);
    }
    if (status == PROFD_OK) {
        status = profd_delivery_upload(d, u, path, &why);
    }
    if (status != PROFD_OK) {
        refuse(t, status, why.sentence);
    }
    profd_upload_free(u);
}

static void summary_print(const struct profctl_call *call, const struct profd_executable *x, const struct tally *t)
{
    const char *path = profd_executable_path(x), *slash = strrchr(path, '/'), *id = profd_executable_build_id(x);
    char name[512];
    profctl_clean(slash ? slash + 1 : path, name, sizeof name);
    if (call->json) {
        printf("{\"build_id\":\"%s\",\"stored\":%zu,\"spooled\":%zu,\"refused\":%zu,\"stored_from_spool\":%zu}\n", id, t->stored,
               t->spooled, t->refused, t->earlier_stored);
    } else if (t->stored || t->spooled == 0) {
        printf("%zu upload%s of %s (build %.12s) stored", t->stored, t->stored == 1 ? "" : "s", name, id);
        if (t->refused) {
            printf(", %zu refused", t->refused);
        }
        if (t->earlier_stored) {
            printf("; and %zu from the spool", t->earlier_stored);
        }
        putchar('\n');
    }
    if (t->spooled) {
        profctl_complain("%s: %zu upload%s of %s kept in the spool, to go with the next", t->why_spooled, t->spooled,
                         t->spooled == 1 ? "" : "s", name);
    }
}

static enum profd_status upload_run(const struct profctl_call *call, struct profd_error *e)
{
    struct profd_executable *x = NULL;
    struct profd_delivery *d = NULL;
    struct tally tally = {.stored = 0};
    const char *exe = profctl_value(call, "exe");
    const struct profd_options o = profctl_options(call, 30000);
    enum profd_status status = labels_check(call, e);
    if (status == PROFD_OK) {
        status = profd_executable_open(exe ? exe : "./a.out", &x, e);
    }
    if (status == PROFD_OK) {
        status = profd_delivery_open(&o, outcome_take, &tally, &d, e);
    }
    if (status == PROFD_OK) {
        status = profd_delivery_offer(d, x, e);
    }
    if (status == PROFD_OK) {
        for (size_t i = 0; i < call->argument_count; i++) {
            file_send(call, d, x, call->arguments[i], &tally);
        }
        status = profd_delivery_finish(d, e);
        summary_print(call, x, &tally);
    }
    profd_delivery_close(d);
    profd_executable_free(x);
    return status != PROFD_OK ? status : tally.first;
}

const struct profctl_verb verb_upload = {
    .name = "upload", .arguments = "[-e EXE] [-l K=V]... FILE...", .summary = "Send gmon.out files",
    .details = "Each FILE is one process's gmon.out. A file that EXE did not write is refused; the others are delivered.\n"
               "Without a daemon uploads wait in the spool and go with the next.\n",
    .options = options, .option_count = sizeof options / sizeof options[0], .arguments_least = 1,
    .arguments_most = (size_t)-1, .run = upload_run,
};
