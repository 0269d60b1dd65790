/* profctl report: the call graph of a build. */
#include <stdlib.h>
#include <string.h>

#include "client/profctl.h"
#include "client/profctl_ask.h"
#include "client/profctl_drawing.h"
#include "client/profctl_look.h"
#include "client/profctl_output.h"
#include "client/profctl_pager.h"
#include "client/profctl_paint.h"

static const struct profctl_option options[] = {
    {"format", 'f', "FORMAT", "text (default), json, gprof, pprof, callgrind, folded, speedscope, dot, svg, csv, …"},
    {"output", 'o', "FILE", "write there; the file appears when it is whole"},
    {"since", 0, "T", "RFC 3339, seconds since 1970, or now-1h, -30m, -7d"},
    {"until", 0, "T", "end of the time range"},
    {"label", 'l', "K=V", "only uploads with this label; may repeat"},
    {"match", 'm', "MATCHER", "only uploads whose label matches: K=\"V\", K!=\"V\", K=~\"V\" or K!~\"V\"; may repeat"},
    {"flat", 0, NULL, "only the flat profile"},
    {"graph", 0, NULL, "only the call graph"},
    {"focus", 0, "NAME", "only entries that have this in a name"},
    {"limit", 0, "N", "show the first N functions"},
    {"sort", 0, "KEY", "index (default), self, total or calls"},
    {"scope", 0, "S", "program, build or everywhere"},
    {"static", 0, NULL, "let calls that are only in the machine code close cycles"},
    {"dimension", 0, "D", "of the samples: seconds, cycles, …; seconds if there are any"},
    {"geometry", 0, "N", "for -f gprof: which of several histograms"},
    {"uid", 0, "UID", "only uploads of this user"},
    {"color", 0, "WHEN", "auto (default: on a terminal, unless NO_COLOR is set), always or never"},
    {"wide", 0, NULL, "long names whole, on a terminal too"},
    {"no-pager", 0, NULL, "no pager on a terminal"},
};

/* Options that are parameters of the same name. */
static bool is_parameter(const char *name)
{
    static const char *const names[] = {"since", "until",     "focus",    "limit", "sort",
                                        "scope", "dimension", "geometry", "uid"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static enum profd_status target_build(const struct profctl_call *call, struct ask_target *t, struct profd_error *e)
{
    char id[160];
    const char *format = profctl_value(call, "format");
    enum profd_status status = ask_build(call->arguments[0], id, e);
    if (status != PROFD_OK) {
        return status;
    }
    if (call->json && format && strcmp(format, "json") != 0) {
        return profd_error_set(e, PROFD_USAGE, "report: --json and -f %s", format);
    }
    if (profctl_value(call, "flat") && profctl_value(call, "graph")) {
        return profd_error_set(e, PROFD_USAGE, "report: --flat and --graph; without either both are shown");
    }
    ask_target_init(t, "/api/v1/builds");
    ask_target_add_segment(t, id);
    ask_target_add_segment(t, "report");
    ask_target_add(t, "format", call->json ? "json" : drawing_is_format(format) ? "dot" : format ? format : "text");
    ask_target_add(t, "view", profctl_value(call, "flat") ? "flat" : profctl_value(call, "graph") ? "graph" : NULL);
    ask_target_add(t, "static", profctl_value(call, "static") ? "1" : NULL);
    for (size_t i = 0; i < call->given_count && status == PROFD_OK; i++) {
        const struct profctl_given *g = &call->given[i];
        if (strcmp(g->option->name, "label") == 0) {
            status = ask_target_add_label(t, call, g->value, e);
        } else if (strcmp(g->option->name, "match") == 0) {
            ask_target_add(t, "match", g->value);
        } else if (is_parameter(g->option->name) && profctl_value(call, g->option->name) == g->value) {
            ask_target_add(t, g->option->name, g->value);
        }
    }
    return status;
}

/* Where the answer's bytes go. */
struct shown {
    struct output out;
    struct look look;
    struct paint paint;
    struct drawing drawing;
    const char *picture; /* svg, png or pdf; NULL where the answer itself is shown */
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
    return format && (strcmp(format, "pprof") == 0 || strcmp(format, "png") == 0 || strcmp(format, "pdf") == 0);
}

/* Text on stdout is dressed for who reads it; a file and every other format stay as the daemon says them. */
static enum profd_status shown_open(const struct profctl_call *call, struct shown *s, struct profd_error *e)
{
    const char *format = call->json ? "json" : profctl_value(call, "format"), *path = profctl_value(call, "output");
    enum profd_status status = look_choose(call, &s->look, e);
    if (status == PROFD_OK && !path && s->look.terminal && is_binary(format)) {
        status = profd_error_set(e, PROFD_USAGE, "report: -f %s is no text for a terminal; say -o FILE", format);
    }
    if (status == PROFD_OK && drawing_is_format(format)) {
        s->picture = format;
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

static enum profd_status shown_fill(struct shown *s, struct profd_conn *conn, const struct ask_target *target,
                                    struct profd_error *e)
{
    enum profd_status status = ask_run(conn, target, piece_write, s, e);
    if (status == PROFD_OK && s->picture) {
        status = drawing_run(&s->drawing, s->picture, &s->out, e);
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
            status = shown_fill(s, conn, &target, e);
        }
        profd_conn_close(conn);
    }
    free(s);
    return status;
}

const struct profctl_verb verb_report = {
    .name = "report",
    .arguments = "BUILD|EXE",
    .summary = "Show the call graph of a build",
    .details = "BUILD is a build-id or the first four or more of its characters; EXE is an executable file\n"
               "(an argument with a / or that names a file). On a terminal times are coloured by their weight, long "
               "names are\n"
               "cut, and a pager ($PROFD_PAGER, $PAGER, less -FRX) shows what is long. svg, png and pdf are drawn by "
               "Graphviz.\n",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .arguments_least = 1,
    .arguments_most = 1,
    .run = report_run,
};
