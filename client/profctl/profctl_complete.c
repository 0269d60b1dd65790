#include "profctl/profctl_complete.h"

#include <stdio.h>
#include <string.h>

#include "profctl/profctl_ask.h"
#include "profctl/profctl_rows.h"

#define ANSWER_MS 2000u /* the user waits for the completion */
#define LABELS_MOST 64

enum complete_kind complete_option(const struct profctl_option *o, const char **words)
{
    static const struct {
        const char *option, *words;
    } examples[] = {
        {"since", "now-1h|now-6h|now-1d|now-7d|now-30d"},
        {"until", "now|now-1h|now-1d"},
        {"window", "10m|1h|6h|1d|7d"},
    };
    if (o->argument[0] < 'A' || o->argument[0] > 'Z') { /* its values themselves */
        *words = o->argument;
        return COMPLETE_WORDS;
    }
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        if (strcmp(examples[i].option, o->name) == 0) {
            *words = examples[i].words;
            return COMPLETE_WORDS;
        }
    }
    if (strcmp(o->name, "label") == 0) {
        return COMPLETE_LABELS;
    }
    static const char *const files[] = {"FILE", "PATH", "EXE", "DIR", "GMON"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        if (strstr(o->argument, files[i])) {
            return COMPLETE_FILES;
        }
    }
    return COMPLETE_TEXT;
}

bool complete_takes_build(const struct profctl_verb *v)
{
    return strstr(v->arguments, "BUILD") != NULL;
}

bool complete_takes_file(const struct profctl_verb *v)
{
    return strstr(v->arguments, "EXE") != NULL || strstr(v->arguments, "FILE") != NULL ||
           strstr(v->arguments, "CMD") != NULL || v->run_alone != NULL;
}

/* Values with characters that the shell interprets are not completed. */
static bool is_plain(const char *text)
{
    return text[0] != '\0' &&
           text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/:@%+,-")] == '\0';
}

static void builds_list(struct profd_conn *conn)
{
    struct ask_target target;
    struct rows *rows;
    ask_target_init(&target, "/api/v1/builds", NULL);
    ask_target_add(&target, "limit", "1000");
    if (rows_read(conn, &target, &rows, NULL) != PROFD_OK) {
        return;
    }
    for (size_t i = 0; i < rows_count(rows); i++) {
        const char *id = rows_text(rows, i, "build_id");
        if (is_plain(id)) {
            printf("%s\t%s\n", id, rows_text(rows, i, "name"));
        }
    }
    rows_free(rows);
}

static void labels_list(struct profd_conn *conn)
{
    struct ask_target target;
    struct rows *names, *values;
    ask_target_init(&target, "/api/v1/labels", NULL);
    if (rows_read(conn, &target, &names, NULL) != PROFD_OK) {
        return;
    }
    for (size_t i = 0; i < rows_count(names) && i < LABELS_MOST; i++) {
        const char *name = rows_text(names, i, "name");
        ask_target_init(&target, "/api/v1/labels/{}/values", name);
        if (!is_plain(name) || rows_read(conn, &target, &values, NULL) != PROFD_OK) {
            continue;
        }
        for (size_t k = 0; k < rows_count(values); k++) {
            if (is_plain(rows_text(values, k, "value"))) {
                printf("%s=%s\n", name, rows_text(values, k, "value"));
            }
        }
        rows_free(values);
    }
    rows_free(names);
}

bool complete_list(const struct profctl_call *call, const char *what)
{
    bool builds = strcmp(what, "builds") == 0;
    struct profd_conn *conn;
    const struct profd_options o = profctl_options(call, ANSWER_MS);
    if (!builds && strcmp(what, "labels") != 0) {
        return false;
    }
    if (profd_conn_open(&o, &conn, NULL) == PROFD_OK) {
        if (builds) {
            builds_list(conn);
        } else {
            labels_list(conn);
        }
        profd_conn_close(conn);
    }
    return true;
}
