/* profctl open: a build on the dashboard. */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>

#include "client/profctl.h"
#include "client/profctl_ask.h"
#include "client/profctl_rows.h"

extern char **environ;

static const struct profctl_option options[] = {
    {"print", 'p', NULL, "only print the address, start no browser"},
    {"view", 0, "VIEW", "report (default), graph, flame or compare"},
    {"since", 0, "T", "RFC 3339, seconds since 1970, or now-1h, -30m, -7d"},
    {"until", 0, "T", "end of the time range"},
    {"focus", 0, "NAME", "show functions that have this in their names"},
};

struct place {
    char base[256]; /* ends with '/' */
    bool token;     /* is asked for there */
};

/* From --server http://…, else from what the daemon says of itself. */
static enum profd_status place_find(const struct profctl_call *call, struct profd_conn *conn, struct place *p,
                                    struct profd_error *e)
{
    struct ask_target target;
    struct rows *rows;
    if (call->server && strncmp(call->server, "http://", 7) == 0) {
        size_t n = strlen(call->server);
        (void)snprintf(p->base, sizeof p->base, "%.240s%s", call->server, call->server[n - 1] == '/' ? "" : "/");
        p->token = call->token_file != NULL;
        return PROFD_OK;
    }
    ask_target_init(&target, "/api/v1/status");
    enum profd_status status = rows_read_object(conn, &target, &rows, e);
    if (status == PROFD_FORBIDDEN) {
        return profd_error_set(
            e, status,
            "the daemon tells its address to root and to who may read everything; ask for it, and say "
            "--server http://ADDRESS:PORT");
    }
    if (status != PROFD_OK) {
        return status;
    }
    const char *url = rows_text(rows, 0, "http_url");
    if (strncmp(url, "http://", 7) != 0 || strlen(url) >= sizeof p->base ||
        url[strspn(url, "abcdefghijklmnopqrstuvwxyz0123456789.:/[]")]) {
        status = profd_error_set(e, PROFD_UNAVAILABLE,
                                 "the daemon serves no HTTP to browsers: start profd with --http 127.0.0.1:9461 "
                                 "and --http-token FILE (or --http-open)");
    } else {
        (void)snprintf(p->base, sizeof p->base, "%s", url);
        p->token = rows_flag(rows, 0, "http_token");
    }
    rows_free(rows);
    return status;
}

/* The whole id of the build that the argument means. */
static enum profd_status build_find(const struct profctl_call *call, struct profd_conn *conn, char id[160],
                                    struct profd_error *e)
{
    struct ask_target target;
    struct rows *rows;
    enum profd_status status = ask_build(call->arguments[0], id, e);
    if (status != PROFD_OK) {
        return status;
    }
    ask_target_init(&target, "/api/v1/builds");
    ask_target_add_segment(&target, id);
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
    static const char *const views[] = {"report", "graph", "flame", "compare"};
    const char *view = profctl_value(call, "view");
    bool known = view == NULL;
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++) {
        known = known || strcmp(view, views[i]) == 0;
    }
    if (!known) {
        return profd_error_set(e, PROFD_USAGE, "open: --view %s is none of report, graph, flame, compare", view);
    }
    ask_target_init(t, p->base);
    ask_target_add(t, "build", id[0] ? id : NULL);
    ask_target_add(t, "view", view);
    ask_target_add(t, "since", profctl_value(call, "since"));
    ask_target_add(t, "until", profctl_value(call, "until"));
    ask_target_add(t, "q", profctl_value(call, "focus"));
    return t->too_long
               ? profd_error_set(e, PROFD_USAGE, "open: the address has more than %d bytes", ASK_TARGET_SIZE - 1)
               : PROFD_OK;
}

/* Whoever it starts has no say in how profctl ends: the address was printed. */
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
        status = build_find(call, conn, id, e);
    }
    status = status == PROFD_OK ? place_find(call, conn, &place, e) : status;
    profd_conn_close(conn);
    status = status == PROFD_OK ? address_make(call, &place, id, &address, e) : status;
    if (status != PROFD_OK) {
        return status;
    }
    if (call->json) { /* base and parameters hold nothing that JSON would have to escape, but what --server said */
        status = rows_print_address(address.text, place.token, e);
    } else {
        puts(address.text);
        if (place.token) {
            (void)fputs("profctl: the daemon asks for its token there: put #t=TOKEN behind the address\n", stderr);
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
    .summary = "Open the dashboard, or print its address",
    .details = "The address is printed, and given to xdg-open where there is a display. Without BUILD it is the list "
               "of builds.\n",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .arguments_most = 1,
    .run = open_run,
};
