/* profctl open: a build on the dashboard. */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>

#include "profctl/profctl.h"
#include "profctl/profctl_ask.h"
#include "profctl/profctl_build.h"
#include "profctl/profctl_json.h"
#include "profctl/profctl_options.h"
#include "profctl/profctl_rows.h"

extern char **environ;

static const struct profctl_option options[] = {
    {"print", 'p', NULL, "only print the URL, start no browser"},
    {"view", 0, "report|graph|flame|tree|compare|never|cycles|code", "view of the dashboard (default report)"},
    OPTION_SINCE,
    OPTION_UNTIL,
    {"focus", 0, "NAME", "show only functions with this in their names"},
};

struct place {
    char base[256]; /* ends with '/' */
    bool token;     /* is asked for there */
};

/* From --server http://… or https://…, else from what the daemon says of itself. */
static enum profd_status place_find(const struct profctl_call *call, struct profd_conn *conn, struct place *p,
                                    struct profd_error *e)
{
    struct ask_target target;
    struct rows *rows;
    if (call->server && (strncmp(call->server, "http://", 7) == 0 || strncmp(call->server, "https://", 8) == 0)) {
        size_t n = strlen(call->server);
        (void)snprintf(p->base, sizeof p->base, "%.240s%s", call->server, call->server[n - 1] == '/' ? "" : "/");
        p->token = call->token_file != NULL;
        return PROFD_OK;
    }
    ask_target_init(&target, "/api/v1/status", NULL);
    enum profd_status status = rows_read_object(conn, &target, &rows, e);
    if (status == PROFD_FORBIDDEN) {
        return profd_error_set(e, status,
                               "the daemon tells its HTTP address only to users who may read everything; use --server "
                               "http://ADDRESS:PORT");
    }
    if (status != PROFD_OK) {
        return status;
    }
    const char *url = rows_text(rows, 0, "http_url");
    if (strncmp(url, "http://", 7) != 0 || strlen(url) >= sizeof p->base ||
        url[strspn(url, "abcdefghijklmnopqrstuvwxyz0123456789.:/[]")]) {
        status = profd_error_set(e, PROFD_UNAVAILABLE,
                                 "the daemon does not serve HTTP over TCP; start profd with --http 127.0.0.1:9461 and "
                                 "--http-token FILE (or --http-open)");
    } else {
        (void)snprintf(p->base, sizeof p->base, "%s", url);
        p->token = rows_flag(rows, 0, "http_token");
    }
    rows_free(rows);
    return status;
}

/* The whole id of the build that the argument means. */
static enum profd_status build_complete(const struct profctl_call *call, struct profd_conn *conn, char id[160],
                                        struct profd_error *e)
{
    struct ask_target target;
    struct rows *rows;
    enum profd_status status = build_find(call, call->arguments[0], id, e);
    if (status != PROFD_OK) {
        return status;
    }
    ask_target_init(&target, "/api/v1/builds/{}", id);
    status = rows_read_object(conn, &target, &rows, e);
    if (status == PROFD_OK) {
        (void)snprintf(id, 160, "%s", rows_text(rows, 0, "build_id"));
        rows_free(rows);
    }
    return status;
}

static enum profd_status address_make(const struct profctl_call *call, const struct place *p, const char *id,
                                      struct ask_target *t, struct profd_error *e)
{
    size_t view = 0;
    enum profd_status status = profctl_choose(call, "view", &view, e);
    if (status != PROFD_OK) {
        return status;
    }
    ask_target_init(t, p->base, NULL);
    ask_target_add(t, "build", id[0] ? id : NULL);
    ask_target_add(t, "view", profctl_value(call, "view"));
    ask_target_add(t, "since", profctl_value(call, "since"));
    ask_target_add(t, "until", profctl_value(call, "until"));
    ask_target_add(t, "q", profctl_value(call, "focus"));
    return t->too_long ? profd_error_set(e, PROFD_USAGE, "open: the URL has more than %d bytes", ASK_TARGET_SIZE - 1)
                       : PROFD_OK;
}

/* The exit status does not depend on the browser: the URL was printed. */
static void browser_start(char *url)
{
    char name[] = "xdg-open";
    char *words[] = {name, url, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    const char *x = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");
    if (getauxval(AT_SECURE) || (!(x && *x) && !(wayland && *wayland)) ||
        posix_spawn_file_actions_init(&actions) != 0) {
        return;
    }
    (void)posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", 1 /* O_WRONLY */, 0);
    (void)posix_spawn_file_actions_adddup2(&actions, 1, 2);
    if (posix_spawnp(&pid, name, &actions, NULL, words, environ) == 0) {
        (void)waitpid(pid, NULL, 0);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
}

static enum profd_status open_run(const struct profctl_call *call, struct profd_error *e)
{
    struct profd_conn *conn;
    struct place place = {.token = false};
    struct ask_target address;
    char id[160] = "";
    const struct profd_options o = profctl_options(call, ASK_ANSWER_MS);
    enum profd_status status = profd_conn_open(&o, &conn, e);
    if (status != PROFD_OK) {
        return status;
    }
    if (call->argument_count > 0) {
        status = build_complete(call, conn, id, e);
    }
    status = status == PROFD_OK ? place_find(call, conn, &place, e) : status;
    profd_conn_close(conn);
    status = status == PROFD_OK ? address_make(call, &place, id, &address, e) : status;
    if (status != PROFD_OK) {
        return status;
    }
    if (call->json) { /* base and parameters hold nothing that JSON would have to escape, but what --server said */
        status = json_print(json_pack("{s:s,s:b}", "url", address.text, "token", place.token), e);
    } else {
        puts(address.text);
        if (place.token) {
            (void)fputs("profctl: the daemon requires a token; append #t=TOKEN to the URL\n", stderr);
        }
    }
    if (status == PROFD_OK && !call->json && !profctl_value(call, "print")) {
        (void)fflush(stdout);
        browser_start(address.text);
    }
    return status;
}

const struct profctl_verb verb_open = {
    .name = "open",
    .arguments = "[BUILD|EXE]",
    .summary = "Open the dashboard, or print its URL",
    .details =
        "Prints the URL, and passes it to xdg-open if there is a display. Without BUILD it is the list of builds.\n",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .arguments_most = 1,
    .run = open_run,
};
