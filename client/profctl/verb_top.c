/* profctl top: the functions with the most time, updated continuously. */
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
#include "profctl/profctl_build.h"
#include "profctl/profctl_look.h"
#include "profctl/profctl_options.h"
#include "profctl/profctl_output.h"
#include "profctl/profctl_paint.h"
#include "profctl/terminal.h"

#define ANSWER_MAX ((size_t)16 << 20)

static const struct profctl_option options[] = {
    {"interval", 'i', "S", "seconds between two updates (default 2)"},
    {"window", 'w', "T", "time range to show, such as 10m or 1h (default: everything)"},
    {"count", 'n', "N", "exit after N updates (default: never on a terminal, otherwise 1)"},
    {"limit", 0, "N", "number of functions (default: as many as fit the terminal, otherwise 20)"},
    {"sort", 0, "self|total|calls", "order (default self)"},
    OPTION_LABEL,
    OPTION_TIME,
    OPTION_COLOR,
    OPTION_NAMES,
    OPTION_WIDE,
};

struct top {
    const struct profctl_call *call;
    struct ask_target target;
    unsigned long interval, count; /* count 0: without end */
    bool terminal;
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
    char *end = NULL;
    if (!text) {
        return PROFD_OK;
    }
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (errno != 0 || *text < '0' || *text > '9' || *end != '\0' || value < least || value > 1000000) {
        return profd_error_set(e, PROFD_USAGE, "top: --%s is \"%s\", not a number from %lu to 1000000", name, text,
                               least);
    }
    *out = value;
    return PROFD_OK;
}

/* Lines that fit below the heading. */
static unsigned long lines_fit(bool terminal)
{
    struct winsize size;
    return terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 6 ? size.ws_row - 4u : 20;
}

static enum profd_status make_target(struct top *t, struct profd_error *e)
{
    char id[160], since[64], limit[24];
    unsigned long rows = lines_fit(t->terminal);
    const char *window = profctl_value(t->call, "window"), *sort = profctl_value(t->call, "sort");
    enum profd_status status = build_find(t->call, t->call->arguments[0], id, e);
    if (status == PROFD_OK) {
        status = take_number(t->call, "limit", 1, &rows, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    (void)snprintf(since, sizeof since, "now-%.40s", window ? window : "");
    (void)snprintf(limit, sizeof limit, "%lu", rows);
    ask_target_init(&t->target, "/api/v1/builds/{}/report", id);
    ask_target_add(&t->target, "format", t->call->json ? "json" : "text");
    ask_target_add(&t->target, "view", "flat");
    ask_target_add(&t->target, "empty", "error");
    ask_target_add(&t->target, "sort", sort ? sort : "self");
    ask_target_add(&t->target, "limit", limit);
    ask_target_add(&t->target, "names", look_names(t->call, t->terminal));
    ask_target_add(&t->target, "since", window ? since : NULL);
    return ask_target_add_given(&t->target, t->call, "time", e);
}

static void text_print(struct top *t, const char *text, size_t n)
{
    struct terminal_filter filter = {.held_count = 0};
    char clean[TERMINAL_BOUND(4096)];
    paint_init(&t->paint, &t->look);
    for (size_t at = 0; at < n; at += 4096) {
        size_t piece = n - at < 4096 ? n - at : 4096;
        paint_run(&t->paint, clean, terminal_filter_run(&filter, text + at, piece, clean), stdout);
    }
    paint_end(&t->paint, stdout);
}

/* A connection a look: the daemon may be restarted in between. The screen is cleared only when the answer is there. */
static enum profd_status look(struct top *t, struct profd_error *e)
{
    char *text;
    size_t n;
    enum profd_status status = ask_fetch(t->call, &t->target, ANSWER_MAX, &text, &n, e);
    if (status != PROFD_OK) {
        return status;
    }
    if (t->terminal) {
        fputs("\033[H\033[2J", stdout);
    }
    if (!t->call->json && (t->terminal || t->look.colour)) {
        (void)look_choose(t->call, &t->look, NULL); /* the terminal may have another size by now */
        text_print(t, text, n);
    } else {
        struct output out;
        status = output_open(NULL, &out, e);
        status = status == PROFD_OK ? output_write(&out, text, n, e) : status;
        status = status == PROFD_OK ? output_close(&out, true, e) : status;
    }
    free(text);
    if (status != PROFD_OK) {
        return status;
    }
    return fflush(stdout) == 0 ? PROFD_OK : profd_error_set(e, PROFD_IO, "cannot write to stdout");
}

static enum profd_status looks(struct top *t, struct profd_error *e)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    for (unsigned long i = 0; !interrupted && (t->count == 0 || i < t->count); i++) {
        if (i > 0) {
            struct timespec pause = {.tv_sec = (time_t)t->interval};
            if (nanosleep(&pause, NULL) != 0 && interrupted) {
                break;
            }
        }
        enum profd_status status = look(t, e);
        if (status != PROFD_OK && i > 0 && t->terminal && !interrupted) {
            profctl_complain("%s", e->sentence); /* it may come back */
        } else if (status != PROFD_OK) {
            return interrupted ? PROFD_OK : status;
        }
    }
    return PROFD_OK;
}

static enum profd_status top_run(const struct profctl_call *call, struct profd_error *e)
{
    struct top t = {.call = call, .interval = 2, .terminal = !call->json && isatty(STDOUT_FILENO) == 1};
    t.count = t.terminal ? 0 : 1;
    enum profd_status status = look_choose(call, &t.look, e);
    status = status == PROFD_OK ? take_number(call, "interval", 1, &t.interval, e) : status;
    if (status == PROFD_OK) {
        status = take_number(call, "count", 1, &t.count, e);
    }
    if (status == PROFD_OK) {
        status = make_target(&t, e);
    }
    return status == PROFD_OK ? looks(&t, e) : status;
}

const struct profctl_verb verb_top = {
    .name = "top",
    .arguments = "PROGRAM|BUILD|EXE",
    .summary = "Show the functions with the most time, updated continuously",
    .details = "Counts of live processes are those of the daemon's latest harvest, every ten seconds unless configured "
               "otherwise;\nthe line Live says how old they are. Ends with Ctrl-C.\n",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .arguments_least = 1,
    .arguments_most = 1,
    .run = top_run,
};
