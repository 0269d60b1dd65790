/* profctl report: the call graph of a build. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "profctl/profctl.h"
#include "proto/limits.h"
#include "proto/report_format.h"
#include "proto/whole.h"

/* ---- A picture of the call graph, drawn by Graphviz's dot ---- */

#define DRAWING_FORMAT "svg"

static bool drawing_is_format(const char *format)
{
    return format && strcmp(format, DRAWING_FORMAT) == 0;
}

/* Lets dot draw what was written to fd, into out. NOT_FOUND without dot; INTERNAL if it fails. */
static enum profd_status drawing_run(int fd, struct output *out, struct profd_error *e)
{
    const char *const words[] = {"dot", "-T" DRAWING_FORMAT, NULL};
    char piece[65536];
    pid_t pid = 0;
    int from = -1, how = 0;
    enum profd_status status = PROFD_OK;
    FAIL_IF(getauxval(AT_SECURE), e, PROFD_FORBIDDEN,
            "-f " DRAWING_FORMAT " starts another program, which is refused when profctl runs set-user-ID");
    FAIL_IF(lseek(fd, 0, SEEK_SET) != 0, e, PROFD_INTERNAL, "cannot read the drawing");
    (void)setenv("SERVER_NAME", "profctl", 0); /* to Graphviz: it must not open files named in the graph */
    const int error = program_start(words, fd, &pid, &from);
    FAIL_IF(error == ENOENT || error == EACCES, e, PROFD_NOT_FOUND,
            "-f " DRAWING_FORMAT " requires the program \"dot\" of Graphviz, which is not in PATH");
    FAIL_IF(error != 0, e, PROFD_INTERNAL, "cannot start dot: %s", strerror(error));
    for (;;) {
        ssize_t n = read(from, piece, sizeof piece);
        if (n == 0 || (n < 0 && errno != EINTR)) {
            break;
        }
        if (n > 0 && status == PROFD_OK) { /* what cannot be written is still taken from dot */
            status = output_write(out, piece, (size_t)n, e);
        }
    }
    close(from);
    while (waitpid(pid, &how, 0) < 0 && errno == EINTR) {
    }
    if (status == PROFD_OK && (!WIFEXITED(how) || WEXITSTATUS(how) != 0)) {
        status = WIFEXITED(how) ? profd_error_set(e, PROFD_INTERNAL, "dot failed with status %d", WEXITSTATUS(how))
                                : profd_error_set(e, PROFD_INTERNAL, "dot was ended by signal %d", WTERMSIG(how));
    }
    return status;
}

/* ---- The verb ---- */

#define OR_FORMAT(name, word, content_type, wants_report, lists_rows, functions) "|" word

static const struct profctl_option report_options[] = {
    {"format", 'f', &(REPORT_FORMATS(OR_FORMAT) "|" DRAWING_FORMAT)[1], "output format (default text)"},
    {"output", 'o', "FILE", "output file, which appears when it is complete"},
    OPTIONS_SELECTION,
    {"flat", 0, NULL, "print only the flat profile"},
    {"graph", 0, NULL, "print only the call graph"},
    {"not-called", 0, NULL, "print only the instrumented functions without calls and ticks"},
    {"focus", 0, "NAME", "print only entries of functions with NAME in their names"},
    {"limit", 0, "N", "print only the first N functions"},
    {"sort", 0, "index|self|total|calls", "order of the rows (default index; with --flat self)"},
    OPTION_SCOPE,
    {"static", 0, NULL, "also use calls found in the machine code but never executed when detecting cycles"},
    OPTION_DIMENSION,
    OPTION_TIME,
    {"geometry", 0, "N", "for -f gprof: select one of several histograms"},
    OPTION_COLOR,
    OPTION_NAMES,
    OPTION_WIDE,
    OPTION_VERBOSE,
    {"no-pager", 0, NULL, "do not use a pager"},
};

/* Options that are parameters of the same name. */
#define PARAMETERS "since|until|focus|limit|sort|scope|dimension|time|geometry|uid"

static const char *const VIEWS[] = {"flat", "graph", "not-called"};

static enum profd_status target_build(const struct profctl_call *call, struct ask_target *t, struct profd_error *e)
{
    char id[160];
    const char *format = profctl_value(call, "format");
    size_t chosen;
    TRY(profctl_choose(call, "format", &chosen, e));
    TRY(build_find(call, call->arguments[0], id, e));
    FAIL_IF(call->json && format && strcmp(format, "json") != 0, e, PROFD_USAGE,
            "report: --json and -f %s exclude each other", format);
    const char *view = NULL;
    for (size_t i = 0; i < COUNT(VIEWS); i++) {
        FAIL_IF(profctl_value(call, VIEWS[i]) && view, e, PROFD_USAGE, "report: --%s and --%s exclude each other", view,
                VIEWS[i]);
        view = profctl_value(call, VIEWS[i]) ? VIEWS[i] : view;
    }
    ask_target_init(t, "/api/v1/builds/{}/report", id);
    ask_target_add(t, "format", call->json ? "json" : drawing_is_format(format) ? "dot" : format ? format : "text");
    ask_target_add(t, "view", view);
    ask_target_add(t, "empty", "error");
    ask_target_add(t, "static", profctl_value(call, "static") ? "1" : NULL);
    ask_target_add(t, "verbose", profctl_value(call, "verbose") ? "1" : NULL);
    bool text = !call->json && !profctl_value(call, "output") && (!format || strcmp(format, "text") == 0);
    ask_target_add(t, "names", look_names(call, text && isatty(STDOUT_FILENO) == 1));
    return ask_target_add_given(t, call, PARAMETERS, e);
}

/* Where the answer's bytes go. */
struct shown {
    struct output out;
    struct look look;
    struct paint paint;
    bool picture; /* an svg is drawn; otherwise the answer itself is shown */
    int dot;      /* an unnamed file with the graph, which Graphviz's dot reads */
};

static enum profd_status piece_write(void *context, const struct profd_answer *answer, const void *bytes, size_t n,
                                     struct profd_error *e)
{
    struct shown *s = context;
    (void)answer;
    if (!s->picture) {
        return output_write(&s->out, bytes, n, e);
    }
    return whole_write(s->dot, bytes, n)
               ? PROFD_OK
               : profd_error_set(e, PROFD_CANT_CREATE, "no memory for a drawing: %s", strerror(errno));
}

/* Colour, shortened names and a pager only for text on a terminal; a file and every other format is exactly the
 * daemon's output. */
static enum profd_status shown_open(const struct profctl_call *call, struct shown *s, struct profd_error *e)
{
    const char *format = call->json ? "json" : profctl_value(call, "format"), *path = profctl_value(call, "output");
    TRY(look_choose(call, &s->look, e));
    FAIL_IF(!path && s->look.terminal && format && (strcmp(format, "pprof") == 0 || strcmp(format, "otlp") == 0), e,
            PROFD_USAGE, "report: -f %s is not printed to a terminal; use -o FILE", format);
    s->picture = drawing_is_format(format);
    s->dot = s->picture ? memfd_create("profctl-dot", MFD_CLOEXEC) : -1;
    FAIL_IF(s->picture && s->dot < 0, e, PROFD_CANT_CREATE, "no memory for a drawing: %s", strerror(errno));
    enum profd_status status = output_open(path, &s->out, e);
    if (status == PROFD_OK && !path) {
        bool text = !format || strcmp(format, "text") == 0;
        paint_init(&s->paint, &s->look);
        output_dress(&s->out, text && (s->look.colour || s->look.terminal) ? &s->paint : NULL,
                     s->look.terminal && !profctl_value(call, "no-pager") ? pager_choose() : NULL);
    } else if (status != PROFD_OK && s->picture) {
        close(s->dot);
    }
    return status;
}

/* Writes an export, with the lines of its addresses, which are found on this machine. */
static enum profd_status write_with_lines(const struct profctl_call *call, struct shown *s, struct profd_conn *conn,
                                          const struct ask_target *target, struct profd_error *e)
{
    char *body = NULL, *text = NULL;
    size_t size = 0, n = 0;
    enum profd_status status = ask_read(conn, target, LIMIT_REPORT_BYTES, &body, &size, NULL, e);
    FILE *out = status == PROFD_OK ? open_memstream(&text, &n) : NULL;
    if (out) {
        status = export_lines_fill(call->arena, call->arguments[0], body, out, e);
        const bool whole = !ferror(out);
        if (fclose(out) != 0 || !whole) {
            status = profd_no_memory(e);
        }
        status = status ? status : output_write(&s->out, text, n, e);
    } else if (!status) {
        status = profd_no_memory(e);
    }
    free(body);
    free(text);
    return status;
}

static enum profd_status report_run(const struct profctl_call *call, struct profd_error *e)
{
    const char *format = profctl_value(call, "format");
    const struct profd_options o = profctl_options(call, ASK_ANSWER_MS);
    struct ask_target target;
    struct profd_conn *conn = NULL;
    struct profd_error end = {""};
    TRY(target_build(call, &target, e));
    struct shown *s = calloc(1, sizeof *s);
    FAIL_IF(!s, e, PROFD_NO_MEMORY, "no memory for a report");
    enum profd_status status = profd_conn_open(&o, &conn, e);
    status = status ? status : shown_open(call, s, e);
    if (status == PROFD_OK) {
        status = format && strcmp(format, "callgrind") == 0 ? write_with_lines(call, s, conn, &target, e)
                                                            : ask_run(conn, &target, piece_write, s, e);
        if (status == PROFD_OK && s->picture) {
            status = drawing_run(s->dot, &s->out, e);
        }
        enum profd_status closed = output_close(&s->out, status == PROFD_OK, &end);
        if (s->picture) {
            close(s->dot);
        }
        if (closed != PROFD_OK && (status == PROFD_OK || s->out.left)) {
            status = profd_error_set(e, closed, "%s", end.sentence);
        } else if (s->out.left) { /* a pager that was left early has shown what was wanted */
            status = PROFD_OK;
        }
    }
    profd_conn_close(conn);
    free(s);
    return status;
}

const struct profctl_verb verb_report = {
    .name = "report",
    .arguments = "PROGRAM|BUILD|EXE",
    .summary = "Print the flat profile and call graph of a build",
    .details = "On a terminal, long names are shortened, and $PROFD_PAGER, $PAGER or less -FRX shows long reports.\n",
    OPTIONS(report_options),
    .arguments_least = 1,
    .arguments_most = 1,
    .run = report_run,
};

/* profctl top: the functions with the most time, updated as the data changes. */

#define TOP_ANSWER_MAX ((size_t)16 << 20)
#define LOOK_SECONDS 2 /* between two questions whether the data has changed */

static const struct profctl_option top_options[] = {
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
    TRY(profctl_number(t->call, "limit", "a number", 1, 1000000, &rows, e));
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
static enum profd_status top_fetch(struct top *t, bool *changed, struct profd_error *e)
{
    const struct profd_options o = profctl_options(t->call, ASK_ANSWER_MS);
    struct profd_answer answer;
    struct profd_conn *conn;
    char *text = NULL;
    size_t n = 0;
    TRY(profd_conn_open(&o, &conn, e));
    t->target.if_none_match = t->text ? t->shown.etag : NULL;
    enum profd_status status = ask_read(conn, &t->target, TOP_ANSWER_MAX, &text, &n, &answer, e);
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

/* Shows the report that is kept. On a terminal the age in it grows. */
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

static enum profd_status top_run(const struct profctl_call *call, struct profd_error *e)
{
    const struct sigaction action = {.sa_handler = on_signal};
    struct top t = {.call = call, .terminal = !call->json && isatty(STDOUT_FILENO) == 1};
    enum profd_status status = PROFD_OK;
    t.count = t.terminal ? 0 : 1;
    TRY(look_choose(call, &t.look, e));
    TRY(profctl_number(call, "interval", "a number", 1, 1000000, &t.interval, e));
    TRY(profctl_number(call, "count", "a number", 1, 1000000, &t.count, e));
    TRY(make_target(&t, e));
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    for (unsigned long updates = 0; !interrupted;) {
        bool changed = false;
        status = top_fetch(&t, &changed, e);
        const bool update = status == PROFD_OK && (changed || t.interval > 0);
        if (status == PROFD_OK && (update || t.terminal)) {
            status = show(&t, e);
        }
        updates += update;
        if (status != PROFD_OK && t.text && t.terminal && !interrupted) {
            profctl_complain("%s", e->sentence); /* it may come back */
            status = PROFD_OK;
        }
        if (status != PROFD_OK || (t.count > 0 && updates >= t.count)) {
            break;
        }
        const struct timespec pause = {.tv_sec = t.interval > 0 ? (time_t)t.interval : LOOK_SECONDS};
        (void)nanosleep(&pause, NULL);
    }
    free(t.text);
    return interrupted ? PROFD_OK : status;
}

const struct profctl_verb verb_top = {
    .name = "top",
    .arguments = "PROGRAM|BUILD|EXE",
    .summary = "Show the functions with the most time, updated continuously",
    .details = "The list is printed again when the daemon has new data. Ctrl-C ends it.\n",
    OPTIONS(top_options),
    .arguments_least = 1,
    .arguments_most = 1,
    .run = top_run,
};
