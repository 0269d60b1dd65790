/* profctl top: the functions with the most time, updated as the data changes. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "profctl/profctl.h"
#include "profctl/profctl_ask.h"
#include "profctl/profctl_find.h"
#include "profctl/profctl_output.h"
#include "profctl/profctl_options.h"
#include "profctl/terminal.h"

#define ANSWER_MAX ((size_t)16 << 20)
#define LOOK_SECONDS 2 /* between two questions whether the data has changed */

static const struct profctl_option options[] = {
    {"interval", 'i', "S", "update every S seconds (default: when the data has changed)"},
    {"window", 'w', "T", "time range to show, such as 10m or 1h (default: everything)"},
    {"count", 'n', "N", "exit after N updates (default: never on a terminal, otherwise 1)"},
    {"limit", 0, "N", "number of functions (default: as many as fit the terminal, otherwise 20)"},
    {"sort", 0, "self|total|calls", "order of the rows (default self)"},
    OPTION_LABEL,
    OPTION_TIME,
    OPTION_COLOR,
    OPTION_NAMES,
    OPTION_WIDE,
    OPTION_VERBOSE,
};

struct top {
    const struct profctl_call *call;
    struct ask_target target;
    unsigned long interval, count; /* interval 0: when the data has changed; count 0: without end */
    bool terminal;
    struct profd_answer shown;
    char *text; /* the latest answer's */
    size_t size;
    struct look look;
    struct paint paint;
};

static volatile sig_atomic_t interrupted;

static void on_signal(int signal)
{
    (void)signal;
    interrupted = 1;
}

static enum profd_status take_number(const struct profctl_call *call, const char *name, unsigned long least,
                                     unsigned long *out, struct profd_error *e)
{
    const char *text = profctl_value(call, name);
    if (text && !profctl_number(text, least, 1000000, out)) {
        return profd_error_set(e, PROFD_USAGE, "top: --%s is \"%s\", not a number from %lu to 1000000", name, text,
                               least);
    }
    return PROFD_OK;
}

static enum profd_status make_target(struct top *t, struct profd_error *e)
{
    char id[160], since[64], limit[24], past[24];
    /* Functions that fit the screen: the usual heading, the titles of the table and the line below it take twelve
     * lines. */
    struct winsize size;
    unsigned long rows =
        t->terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 16 ? size.ws_row - 12u : 20;
    const char *window = profctl_value(t->call, "window"), *sort = profctl_value(t->call, "sort");
    TRY(build_find(t->call, t->call->arguments[0], id, e));
    TRY(take_number(t->call, "limit", 1, &rows, e));
    TRY(profctl_duration(t->call, "window", "1s", past, e));
    (void)snprintf(since, sizeof since, "now-%ss", past);
    (void)snprintf(limit, sizeof limit, "%lu", rows);
    ask_target_init(&t->target, "/api/v1/builds/{}/report", id);
    ask_target_add(&t->target, "format", t->call->json ? "json" : "text");
    ask_target_add(&t->target, "view", "flat");
    ask_target_add(&t->target, "empty", "error");
    ask_target_add(&t->target, "verbose", profctl_value(t->call, "verbose") ? "1" : NULL);
    ask_target_add(&t->target, "sort", sort ? sort : "self");
    ask_target_add(&t->target, "limit", limit);
    ask_target_add(&t->target, "names", look_names(t->call, t->terminal));
    ask_target_add(&t->target, "since", window ? since : NULL);
    return ask_target_add_given(&t->target, t->call, "time", e);
}

/* Asks for the report, unless it is the one that is kept. A connection a look: the daemon may be restarted in
 * between. */
static enum profd_status fetch(struct top *t, bool *changed, struct profd_error *e)
{
    const struct profd_options o = profctl_options(t->call, ASK_ANSWER_MS);
    struct profd_answer answer;
    struct profd_conn *conn;
    char *text = NULL;
    size_t n = 0;
    TRY(profd_conn_open(&o, &conn, e));
    t->target.if_none_match = t->text ? t->shown.etag : NULL;
    enum profd_status status = ask_read_answer(conn, &t->target, ANSWER_MAX, &text, &n, &answer, e);
    profd_conn_close(conn);
    *changed = status == PROFD_OK && answer.http_status != 304;
    if (*changed) {
        free(t->text);
        t->text = text;
        t->size = n;
        t->shown = answer;
    } else {
        free(text);
    }
    return status;
}

/* Shows what is kept: on a terminal its age grows. */
static enum profd_status show(struct top *t, struct profd_error *e)
{
    if (t->terminal) {
        fputs("\033[H\033[2J", stdout);
    }
    if (!t->call->json && (t->terminal || t->look.colour)) {
        (void)look_choose(t->call, &t->look, NULL); /* the terminal may have another size by now */
        struct terminal_filter filter = {.held_count = 0};
        char clean[TERMINAL_BOUND(4096)];
        paint_init(&t->paint, &t->look);
        for (size_t at = 0; at < t->size; at += 4096) {
            size_t piece = t->size - at < 4096 ? t->size - at : 4096;
            paint_run(&t->paint, clean, terminal_filter_run(&filter, t->text + at, piece, clean), stdout);
        }
        paint_end(&t->paint, stdout);
    } else {
        struct output out;
        TRY(output_open(NULL, &out, e));
        TRY(output_write(&out, t->text, t->size, e));
        TRY(output_close(&out, true, e));
    }
    return fflush(stdout) == 0 ? PROFD_OK : profd_error_set(e, PROFD_IO, "cannot write to stdout");
}

static enum profd_status looks(struct top *t, struct profd_error *e)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    for (unsigned long updates = 0; !interrupted;) {
        bool changed = false;
        enum profd_status status = fetch(t, &changed, e);
        const bool update = status == PROFD_OK && (changed || t->interval > 0);
        if (status == PROFD_OK && (update || t->terminal)) {
            status = show(t, e);
        }
        updates += update;
        if (status != PROFD_OK && t->text && t->terminal && !interrupted) {
            profctl_complain("%s", e->sentence); /* it may come back */
        } else if (status != PROFD_OK) {
            return interrupted ? PROFD_OK : status;
        }
        if (t->count > 0 && updates >= t->count) {
            break;
        }
        const struct timespec pause = {.tv_sec = t->interval > 0 ? (time_t)t->interval : LOOK_SECONDS};
        (void)nanosleep(&pause, NULL);
    }
    return PROFD_OK;
}

static enum profd_status top_run(const struct profctl_call *call, struct profd_error *e)
{
    struct top t = {.call = call, .terminal = !call->json && isatty(STDOUT_FILENO) == 1};
    t.count = t.terminal ? 0 : 1;
    TRY(look_choose(call, &t.look, e));
    TRY(take_number(call, "interval", 1, &t.interval, e));
    TRY(take_number(call, "count", 1, &t.count, e));
    TRY(make_target(&t, e));
    enum profd_status status = looks(&t, e);
    free(t.text);
    return status;
}

const struct profctl_verb verb_top = {
    .name = "top",
    .arguments = "PROGRAM|BUILD|EXE",
    .summary = "Show the functions with the most time, updated continuously",
    .details = "The list is printed again when the daemon has new data. Ctrl-C ends it.\n",
    OPTIONS(options),
    .arguments_least = 1,
    .arguments_most = 1,
    .run = top_run,
};
