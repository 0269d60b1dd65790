#include "profctl/profctl_side.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "profctl/profctl_build.h"
#include "profctl/profctl_rows.h"

#define ID_SIZE 160

/* PROGRAM@LABEL=VALUE, in its parts. */
struct side {
    char program[ID_SIZE], label[ID_SIZE];
    const char *value, *text; /* text: LABEL=VALUE */
};

static bool has_label(struct profd_conn *conn, const char *id, const char *label, const char *value)
{
    struct ask_target target;
    struct rows *values = NULL;
    bool found = false;
    ask_target_init(&target, "/api/v1/labels/{}/values", label);
    ask_target_add(&target, "build_id", id);
    if (rows_read(conn, &target, &values, NULL) == PROFD_OK) {
        for (size_t i = 0; i < rows_count(values); i++) {
            found = found || strcmp(rows_text(values, i, "value"), value) == 0;
        }
    }
    rows_free(values);
    return found;
}

/* The one program of that name, or with such an id, that has the label. option: gives a build a label. */
static enum profd_status find_labelled(struct profd_conn *conn, const struct side *side, const char *option,
                                       char id[ID_SIZE], struct profd_error *e)
{
    struct ask_target target;
    struct rows *builds = NULL;
    size_t found = 0;
    ask_target_init(&target, "/api/v1/builds", NULL);
    ask_target_add(&target, "limit", "1000");
    enum profd_status status = rows_read(conn, &target, &builds, e);
    for (size_t i = 0; status == PROFD_OK && i < rows_count(builds); i++) {
        const char *own = rows_text(builds, i, "build_id"), *path = rows_text(builds, i, "name");
        const char *slash = strrchr(path, '/');
        bool named = rows_flag(builds, i, "is_program") && (strcmp(slash ? slash + 1 : path, side->program) == 0 ||
                                                            strncmp(own, side->program, strlen(side->program)) == 0);
        if (!named || !has_label(conn, own, side->label, side->value)) {
            continue;
        }
        if (found++ > 0) {
            status = profd_error_set(e, PROFD_AMBIGUOUS,
                                     "%s@%s: builds %.12s and %.12s both have this label; choose one by its build-id, "
                                     "and give %s %s",
                                     side->program, side->text, id, own, option, side->text);
        }
        (void)snprintf(id, ID_SIZE, "%s", own);
    }
    rows_free(builds);
    if (status == PROFD_OK && found == 0) {
        status = profd_error_set(e, PROFD_NOT_FOUND,
                                 "%s@%s: no program of this name has profiles with this label; `profctl labels %s` "
                                 "lists its values",
                                 side->program, side->text, side->label);
    }
    return status;
}

/* False if the argument has another form, or is a file. */
static bool split(const char *argument, struct side *out)
{
    const char *at = strrchr(argument, '@'), *equals = at ? strchr(at, '=') : NULL;
    struct stat s;
    if (!equals || at == argument || equals == at + 1 || strlen(argument) >= ID_SIZE || stat(argument, &s) == 0) {
        return false;
    }
    (void)snprintf(out->program, sizeof out->program, "%.*s", (int)(at - argument), argument);
    (void)snprintf(out->label, sizeof out->label, "%.*s", (int)(equals - at - 1), at + 1);
    out->value = equals + 1;
    out->text = at + 1;
    return true;
}

static enum profd_status find(const struct profctl_call *call, struct side *side, const char *option, char id[ID_SIZE],
                              struct profd_error *e)
{
    struct profd_conn *conn;
    const struct profd_options o = profctl_options(call, ASK_ANSWER_MS);
    enum profd_status status = PROFD_OK;
    if (strchr(side->program, '/')) {
        char path[ID_SIZE];
        memcpy(path, side->program, sizeof path);
        status = profd_executable_read_id(path, side->program, sizeof side->program, e);
    }
    if (status == PROFD_OK) {
        status = profd_conn_open(&o, &conn, e);
    }
    if (status == PROFD_OK) {
        status = find_labelled(conn, side, option, id, e);
        profd_conn_close(conn);
    }
    return status;
}

enum profd_status side_add(const struct profctl_call *call, const char *argument, const char *name,
                           struct ask_target *t, struct profd_error *e)
{
    struct side side;
    char id[ID_SIZE], prefix[8], option[16];
    if (!split(argument, &side)) {
        enum profd_status status = build_find(call, argument, id, e);
        ask_target_add(t, name, status == PROFD_OK ? id : NULL);
        return status;
    }
    (void)snprintf(prefix, sizeof prefix, "%s.", name);
    (void)snprintf(option, sizeof option, "--%s-label", name);
    enum profd_status status = find(call, &side, option, id, e);
    if (status == PROFD_OK) {
        ask_target_add(t, name, id);
        status = ask_target_add_label(t, call, prefix, side.text, e);
    }
    return status;
}

static const struct profctl_option *find_option(const struct profctl_verb *verb, const char *name)
{
    for (size_t i = 0; i < verb->option_count; i++) {
        if (strcmp(verb->options[i].name, name) == 0) {
            return &verb->options[i];
        }
    }
    return NULL;
}

enum profd_status side_take(struct profctl_call *call, struct profd_error *e)
{
    struct side side;
    const struct profctl_verb *verb = call->verb;
    const struct profctl_option *label = find_option(verb, "label");
    if (!label || !strstr(verb->arguments, SIDE_BUILD) || call->argument_count < verb->arguments_most ||
        !split(call->arguments[0], &side)) {
        return PROFD_OK;
    }
    TRY(find(call, &side, "-l", call->build_id, e));
    call->given[call->given_count++] = (struct profctl_given){label, side.text};
    call->arguments[0] = call->build_id;
    return PROFD_OK;
}
