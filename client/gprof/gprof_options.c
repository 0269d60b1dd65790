#include "gprof/gprof_internal.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/status.h"

enum { LONG_DEMANGLE = 256, LONG_NO_DEMANGLE, LONG_FILE_NAMES };

/* In gprof's order, in which it lists the candidates for an abbreviation. */
static const struct option long_options[] = {
    {"line", no_argument, NULL, 'l'},
    {"no-static", no_argument, NULL, 'a'},
    {"ignore-non-functions", no_argument, NULL, 'D'},
    {"external-symbol-table", required_argument, NULL, 'S'},
    {"annotated-source", optional_argument, NULL, 'A'},
    {"no-annotated-source", optional_argument, NULL, 'J'},
    {"flat-profile", optional_argument, NULL, 'p'},
    {"no-flat-profile", optional_argument, NULL, 'P'},
    {"graph", optional_argument, NULL, 'q'},
    {"no-graph", optional_argument, NULL, 'Q'},
    {"exec-counts", optional_argument, NULL, 'C'},
    {"no-exec-counts", optional_argument, NULL, 'Z'},
    {"function-ordering", no_argument, NULL, 'r'},
    {"file-ordering", required_argument, NULL, 'R'},
    {"file-info", no_argument, NULL, 'i'},
    {"sum", no_argument, NULL, 's'},
    {"all-lines", no_argument, NULL, 'x'},
    {"demangle", optional_argument, NULL, LONG_DEMANGLE},
    {"no-demangle", no_argument, NULL, LONG_NO_DEMANGLE},
    {"directory-path", required_argument, NULL, 'I'},
    {"display-unused-functions", no_argument, NULL, 'z'},
    {"inline-file-names", no_argument, NULL, LONG_FILE_NAMES},
    {"min-count", required_argument, NULL, 'm'},
    {"print-path", no_argument, NULL, 'L'},
    {"separate-files", no_argument, NULL, 'y'},
    {"static-call-graph", no_argument, NULL, 'c'},
    {"table-length", required_argument, NULL, 't'},
    {"time", required_argument, NULL, 'n'},
    {"no-time", required_argument, NULL, 'N'},
    {"width", required_argument, NULL, 'w'},
    {"brief", no_argument, NULL, 'b'},
    {"debug", optional_argument, NULL, 'd'},
    {"help", no_argument, NULL, 'h'},
    {"file-format", required_argument, NULL, 'O'},
    {"traditional", no_argument, NULL, 'T'},
    {"version", no_argument, NULL, 'v'},
    {NULL, 0, NULL, 0},
};
static const char short_options[] = "aA::bBcC::d::De:E:f:F:hiI:J::k:lLm:n:N:O:p::P::q::Q::rR:sS:t:Tvw:xyzZ::";

static const char help[] = "usage: profctl gprof [options] [EXE [GMON...]]\n"
                           "\n"
                           "Prints what gprof prints, without a daemon. EXE is a.out, GMON is gmon.out; \"-\" is\n"
                           "standard input. S: func, file.c, file.c:func, file.c:line; arcs: S/S.\n"
                           "\n"
                           "  -p[S] -P[S]  flat profile: with, without          -C[S] -Z[S]  execution counts\n"
                           "  -q[S] -Q[S]  call graph: with, without            -k S/S       without these arcs\n"
                           "  -e S  -f S   call graph: hide, show only          -E S  -F S   the same, and their time\n"
                           "  -N S  -n S   time: never, only propagated         -B           call graph\n"
                           "  -s           sum into gmon.sum                    -i           contents of the files\n"
                           "  -b  no explanations     -T  layout of 4.2BSD      -z  also unused functions\n"
                           "  -a  no local symbols    -D  no local labels       -c  calls in the machine code\n"
                           "  -L  complete paths      -w N  index width         --inline-file-names\n"
                           "  -l  by source line\n"
                           "  --demangle[=auto|gnu-v3|rust|none]                --no-demangle\n"
                           "  -d  what was read       -h  this text             -v  the version\n"
                           "\n"
                           "profctl-gprof(1) describes the options, and the differences from gprof.\n";

/* State of one parse. */
struct parse {
    const char *program;
    struct gprof_options *o;
    unsigned styles, negative; /* asked for; named by a bare negative option */
    int status;
};

static bool stop(struct parse *p, int status)
{
    p->status = status;
    return false;
}

static bool refuse(struct parse *p, const char *option)
{
    (void)fprintf(stderr, "%s: option %s of gprof is not supported\n", p->program, option);
    return stop(p, profd_status_exit(PROFD_USAGE));
}

static void spec_add(struct parse *p, enum compat_purpose purpose, bool exclude, const char *text)
{
    p->o->specs[p->o->listing.spec_count++] = (struct compat_spec){purpose, exclude, text};
}

/* Takes an option for a style. With a symspec the style is always printed. */
static void style_take(struct parse *p, unsigned style, bool negative, enum compat_purpose purpose, const char *text)
{
    if (text != NULL) {
        spec_add(p, purpose, negative, text);
    }
    p->negative |= negative ? style : 0;
    if (negative && text == NULL) {
        p->styles &= ~style;
    } else {
        p->styles |= style;
    }
}

/* Takes one option. False: stop, with p->status. */
static bool option_take(struct parse *p, int c)
{
    struct gprof_options *o = p->o;
    struct compat_options *l = &o->listing;
    const struct {
        int letter;
        bool *set;
    } switches[] = {
        {'a', &l->no_static},  {'b', &l->brief},       {'c', &l->static_calls}, {'D', &l->only_functions},
        {'L', &l->full_paths}, {'T', &l->traditional}, {'z', &l->all_symbols},  {LONG_FILE_NAMES, &l->file_names},
        {'d', &o->debug},      {'i', &o->info},        {'s', &o->sum},          {LONG_NO_DEMANGLE, &l->raw_names},
        {'l', &l->lines}};
    for (unsigned i = 0; i < sizeof switches / sizeof *switches; i++) {
        if (switches[i].letter == c) {
            *switches[i].set = true;
            p->styles |= c == 'i' || c == 's' ? COMPAT_STYLE_OTHER : 0;
            return true;
        }
    }
    switch (c) {
    case 'p':
    case 'P':
        style_take(p, COMPAT_STYLE_FLAT, c == 'P', COMPAT_FLAT, optarg);
        return true;
    case 'q':
    case 'Q':
        style_take(p, COMPAT_STYLE_GRAPH, c == 'Q', optarg && strchr(optarg, '/') ? COMPAT_ARCS : COMPAT_GRAPH, optarg);
        return true;
    case 'C':
    case 'Z':
        style_take(p, COMPAT_STYLE_COUNTS, c == 'Z', COMPAT_EXEC, optarg);
        return true;
    case 'k':
        spec_add(p, COMPAT_ARCS, true, optarg);
        return true;
    case 'E':
    case 'F':
        spec_add(p, COMPAT_TIME, c == 'E', optarg);
        spec_add(p, COMPAT_GRAPH, c == 'E', optarg);
        return true;
    case 'e':
    case 'f':
        spec_add(p, COMPAT_GRAPH, c == 'e', optarg);
        return true;
    case 'N':
    case 'n':
        spec_add(p, COMPAT_TIME, c == 'N', optarg);
        return true;
    case 'B':
        p->styles |= COMPAT_STYLE_GRAPH;
        return true;
    case 'w': {
        int width = (int)strtol(optarg, NULL, 10);
        l->width = width < 1 ? 1 : (unsigned)width;
        return true;
    }
    case LONG_DEMANGLE: {
        const char *style = optarg ? optarg : "auto";
        const bool none = strcmp(style, "none") == 0, cxx = strcmp(style, "gnu-v3") == 0,
                   rust = strcmp(style, "rust") == 0;
        l->raw_names = false;
        if (strcmp(style, "java") == 0 || strcmp(style, "gnat") == 0 || strcmp(style, "dlang") == 0) {
            char option[32];
            (void)snprintf(option, sizeof option, "--demangle=%s", style);
            return refuse(p, option);
        }
        if (!none && !cxx && !rust && strcmp(style, "auto") != 0) {
            (void)fprintf(stderr, "%s: unknown demangling style `%s'\n", p->program, style);
            return stop(p, 1);
        }
        if (optarg) {
            o->no_cxx = none || rust;
            o->no_rust = none || cxx;
        }
        return true;
    }
    case 'h':
        (void)fputs(help, stdout);
        return stop(p, 0);
    case 'v':
        (void)printf("profctl gprof %s, which prints what GNU gprof 2.40 prints\n", PROFD_VERSION);
        return stop(p, 0);
    case '?':
        (void)fputs(help, stderr);
        return stop(p, 1);
    default: {
        const char name[] = {'-', (char)c, '\0'};
        return refuse(p, name);
    }
    }
}

bool gprof_options_parse(const char *program, int argc, char **argv, struct gprof_options *out, int *status)
{
    static char executable[] = "a.out", file[] = "gmon.out";
    static char *files[] = {file};
    struct gprof_options o = {.executable = executable, .files = files, .file_count = 1};
    struct parse p = {.program = program, .o = &o};
    char *name = strdup(program);
    o.specs = calloc(2 + 2 * (size_t)argc, sizeof *o.specs); /* an argument holds at most two: -E and -F */
    if (o.specs == NULL || name == NULL || argc < 1) {
        free(name);
        gprof_options_done(&o);
        (void)fprintf(stderr, "%s: out of memory\n", program);
        *status = profd_status_exit(PROFD_NO_MEMORY);
        return false;
    }
    argv[0] = name; /* getopt's complaints begin with it */
    optind = 0;
    int c;
    bool go = true;
    while (go && (c = getopt_long(argc, argv, short_options, long_options, NULL)) != -1) {
        go = option_take(&p, c);
    }
    free(name);
    argv[0] = executable;
    if (!go) {
        gprof_options_done(&o);
        *status = p.status;
        return false;
    }
    if (optind < argc) {
        o.executable = argv[optind++];
    }
    if (optind < argc) {
        o.files = argv + optind;
        o.file_count = argc - optind;
    }
    o.listing.styles = p.styles;
    o.listing.no_flat = (p.negative & COMPAT_STYLE_FLAT) != 0;
    o.listing.no_graph = (p.negative & COMPAT_STYLE_GRAPH) != 0;
    o.listing.no_counts = (p.negative & COMPAT_STYLE_COUNTS) != 0;
    o.listing.specs = o.specs;
    o.listing.lines |= o.sum;
    *out = o;
    return true;
}

void gprof_options_done(struct gprof_options *o)
{
    free(o->specs);
    o->specs = NULL;
}
