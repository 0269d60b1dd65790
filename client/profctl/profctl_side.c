#include "profctl/profctl_side.h"

#include <stdio.h>
#include <string.h>

#include "profctl/profctl_build.h"
#include "profctl/profctl_rows.h"

#define ID_SIZE 160

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

/* The one program of that name, or with such an id, that has the label. */
static enum profd_status find_labelled(struct profd_conn *conn, const char *program, const char *label,
                                       const char *value, char id[ID_SIZE], struct profd_error *e)
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
        bool named = rows_flag(builds, i, "is_program") &&
                     (strcmp(slash ? slash + 1 : path, program) == 0 || strncmp(own, program, strlen(program)) == 0);
        if (!named || !has_label(conn, own, label, value)) {
            continue;
        }
        if (found++ > 0) {
            status = profd_error_set(e, PROFD_AMBIGUOUS,
                                     "%s@%s=%s: builds %.12s and %.12s both have this label; choose one by its "
                                     "build-id and give the label with --a-label or --b-label",
                                     program, label, value, id, own);
        }
        (void)snprintf(id, ID_SIZE, "%s", own);
    }
    rows_free(builds);
    if (status == PROFD_OK && found == 0) {
        status = profd_error_set(e, PROFD_NOT_FOUND,
                                 "%s@%s=%s: no program of this name has profiles with this label; `profctl labels %s` "
                                 "lists its values",
                                 program, label, value, label);
    }
    return status;
}

enum profd_status side_add(const struct profctl_call *call, const char *argument, const char *name,
                           struct ask_target *t, struct profd_error *e)
{
    char id[ID_SIZE], program[ID_SIZE], label[ID_SIZE], prefix[8];
    const char *at = strrchr(argument, '@'), *equals = at ? strchr(at, '=') : NULL;
    if (!equals || at == argument || equals == at + 1 || strlen(argument) >= ID_SIZE) {
        enum profd_status status = build_find(call, argument, id, e);
        ask_target_add(t, name, status == PROFD_OK ? id : NULL);
        return status;
    }
    struct profd_conn *conn;
    const struct profd_options o = profctl_options(call, ASK_ANSWER_MS);
    (void)snprintf(program, sizeof program, "%.*s", (int)(at - argument), argument);
    (void)snprintf(label, sizeof label, "%.*s", (int)(equals - at - 1), at + 1);
    (void)snprintf(prefix, sizeof prefix, "%s.", name);
    enum profd_status status = PROFD_OK;
    if (strchr(program, '/')) {
        char path[ID_SIZE];
        memcpy(path, program, sizeof path);
        status = profd_executable_read_id(path, program, sizeof program, e);
    }
    if (status == PROFD_OK) {
        status = profd_conn_open(&o, &conn, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    status = find_labelled(conn, program, label, equals + 1, id, e);
    profd_conn_close(conn);
    if (status == PROFD_OK) {
        ask_target_add(t, name, id);
        status = ask_target_add_label(t, call, prefix, at + 1, e);
    }
    return status;
}
