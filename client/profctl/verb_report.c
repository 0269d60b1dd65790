/* profctl report: the call graph of a build. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profctl/export_lines.h"
#include "profctl/profctl.h"
#include "profctl/profctl_ask.h"
#include "profctl/profctl_drawing.h"
#include "profctl/profctl_find.h"
#include "profctl/profctl_look.h"
#include "profctl/profctl_options.h"
#include "profctl/profctl_output.h"
#include "profctl/profctl_pager.h"
#include "profctl/profctl_paint.h"
#include "proto/limits.h"
#include "proto/report_format.h"

#define OR_FORMAT(name, word, content_type, wants_report, lists_rows, functions) "|" word

static const struct profctl_option options[] = {
    {"format", 'f', &(REPORT_FORMATS(OR_FORMAT) "|" DRAWING_FORMAT)[1], "output format (default text)"},
    {"output", 'o', "FILE", "output file, which appears when it is complete"},
    OPTION_SINCE,
    OPTION_UNTIL,
    OPTION_LABEL,
    OPTION_MATCH,
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
    OPTION_UID,
    OPTION_PARTIAL,
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
    if (call->json && format && strcmp(format, "json") != 0) {
        return profd_error_set(e, PROFD_USAGE, "report: --json and -f %s exclude each other", format);
    }
    const char *view = NULL;
    for (size_t i = 0; i < sizeof VIEWS / sizeof VIEWS[0]; i++) {
        if (profctl_value(call, VIEWS[i]) && view) {
            return profd_error_set(e, PROFD_USAGE, "report: --%s and --%s exclude each other", view, VIEWS[i]);
        }
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
    struct drawing drawing;
    bool picture; /* an svg is drawn; else the answer itself is shown */
};

static enum profd_status piece_write(void *context, const struct profd_answer *answer, const void *bytes, size_t n,
                                     struct profd_error *e)
{
    struct shown *s = context;
    (void)answer;
    return s->picture ? drawing_write(&s->drawing, bytes, n, e) : output_write(&s->out, bytes, n, e);
}

static bool is_binary(const char *format)
{
    return format && strcmp(format, "pprof") == 0;
}

/* Colour, shortened names and a pager only for text on a terminal; a file and every other format is exactly the
 * daemon's output. */
static enum profd_status shown_open(const struct profctl_call *call, struct shown *s, struct profd_error *e)
{
    const char *format = call->json ? "json" : profctl_value(call, "format"), *path = profctl_value(call, "output");
    enum profd_status status = look_choose(call, &s->look, e);
    if (status == PROFD_OK && !path && s->look.terminal && is_binary(format)) {
        status = profd_error_set(e, PROFD_USAGE, "report: -f %s is not printed to a terminal; use -o FILE", format);
    }
    if (status == PROFD_OK && drawing_is_format(format)) {
        s->picture = true;
        status = drawing_open(&s->drawing, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    status = output_open(path, &s->out, e);
    if (status == PROFD_OK && !path) {
        bool text = !format || strcmp(format, "text") == 0;
        paint_init(&s->paint, &s->look);
        output_dress(&s->out, text && (s->look.colour || s->look.terminal) ? &s->paint : NULL,
                     s->look.terminal && !profctl_value(call, "no-pager") ? pager_choose() : NULL);
    } else if (status != PROFD_OK && s->picture) {
        drawing_close(&s->drawing);
    }
    return status;
}

/* An export of which the addresses get their lines here. */
static enum profd_status write_with_lines(const struct profctl_call *call, struct shown *s, struct profd_conn *conn,
                                          const struct ask_target *target, struct profd_error *e)
{
    char *body = NULL, *text = NULL;
    size_t size = 0, n = 0;
    enum profd_status status = ask_read(conn, target, LIMIT_REPORT_BYTES, &body, &size, e);
    FILE *out = status == PROFD_OK ? open_memstream(&text, &n) : NULL;
    if (out) {
        status = export_lines_fill(profctl_value(call, "format"), call->arguments[0], body, size, out, e);
        const bool whole = !ferror(out);
        if (fclose(out) != 0 || !whole) {
            status = profd_no_memory(e);
        }
        status = status == PROFD_OK ? output_write(&s->out, text, n, e) : status;
    } else if (status == PROFD_OK) {
        status = profd_no_memory(e);
    }
    free(body);
    free(text);
    return status;
}

static enum profd_status shown_fill(const struct profctl_call *call, struct shown *s, struct profd_conn *conn,
                                    const struct ask_target *target, struct profd_error *e)
{
    enum profd_status status = export_lines_has(profctl_value(call, "format"))
                                   ? write_with_lines(call, s, conn, target, e)
                                   : ask_run(conn, target, piece_write, s, e);
    if (status == PROFD_OK && s->picture) {
        status = drawing_run(&s->drawing, &s->out, e);
    }
    struct profd_error end = {""};
    enum profd_status closed = output_close(&s->out, status == PROFD_OK, &end);
    if (s->picture) {
        drawing_close(&s->drawing);
    }
    if (closed != PROFD_OK && (status == PROFD_OK || s->out.left)) {
        return profd_error_set(e, closed, "%s", end.sentence);
    }
    return s->out.left ? PROFD_OK : status; /* a pager that was left early has shown what was wanted */
}

static enum profd_status report_run(const struct profctl_call *call, struct profd_error *e)
{
    struct ask_target target;
    struct profd_conn *conn = NULL;
    enum profd_status status = target_build(call, &target, e);
    struct shown *s = status == PROFD_OK ? calloc(1, sizeof *s) : NULL;
    if (!s) {
        return status != PROFD_OK ? status : profd_error_set(e, PROFD_NO_MEMORY, "no memory for a report");
    }
    const struct profd_options o = profctl_options(call, ASK_ANSWER_MS);
    status = profd_conn_open(&o, &conn, e);
    if (status == PROFD_OK) {
        status = shown_open(call, s, e);
        if (status == PROFD_OK) {
            status = shown_fill(call, s, conn, &target, e);
        }
        profd_conn_close(conn);
    }
    free(s);
    return status;
}

const struct profctl_verb verb_report = {
    .name = "report",
    .arguments = "PROGRAM|BUILD|EXE",
    .summary = "Print the flat profile and call graph of a build",
    .details = "On a terminal, long names are shortened, and $PROFD_PAGER, $PAGER or less -FRX shows long reports.\n",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .arguments_least = 1,
    .arguments_most = 1,
    .run = report_run,
};
