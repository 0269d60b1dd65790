#include "client/profctl_complete.h"

#include <stdio.h>
#include <string.h>

#include "client/profctl_ask.h"
#include "client/profctl_rows.h"

#define ANSWER_MS 2000u /* somebody waits for the key he pressed */
#define LABELS_MOST 64

enum complete_kind complete_option(const struct profctl_verb *v, const struct profctl_option *o, const char **words)
{
    static const struct {
        const char *verb, *option, *words; /* verb "": every one */
    } known[] = {
        {"report", "format",
         "text json gprof pprof callgrind folded speedscope dot svg png pdf csv flamegraph nodegraph"},
        {"", "color", "auto always never"},
        {"report", "sort", "index self total calls"},
        {"upload", "format", "auto gmon pprof callgrind perf"},
        {"run", "clock", "cpu wall off"},
        {"top", "sort", "self total calls"},
        {"builds", "sort", "seen name uploads processes seconds calls"},
        {"builds", "time", "auto relative iso"},
        {"open", "view", "report graph flame compare"},
        {"", "scope", "program build everywhere"},
        {"", "step", "1m 5m 10m 15m 30m 1h 2h 3h 4h 6h 8h 12h 1d 7d"},
        {"", "since", "now-1h now-6h now-1d now-7d now-30d"},
        {"", "until", "now now-1h now-1d"},
        {"", "window", "10m 1h 6h 1d 7d"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(known[i].option, o->name) == 0 &&
            (known[i].verb[0] == '\0' || strcmp(known[i].verb, v->name) == 0)) {
            *words = known[i].words;
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

/* A shell would take some characters for its own: such a value is typed by hand. */
static bool is_plain(const char *text)
{
    return text[0] != '\0' &&
           text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/:@%+,-")] == '\0';
}

static void builds_list(struct profd_conn *conn)
{
    struct ask_target target;
    struct rows *rows;
    ask_target_init(&target, "/api/v1/builds");
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
    ask_target_init(&target, "/api/v1/labels");
    if (rows_read(conn, &target, &names, NULL) != PROFD_OK) {
        return;
    }
    for (size_t i = 0; i < rows_count(names) && i < LABELS_MOST; i++) {
        const char *name = rows_text(names, i, "name");
        ask_target_init(&target, "/api/v1/labels");
        ask_target_add_segment(&target, name);
        ask_target_add_segment(&target, "values");
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
