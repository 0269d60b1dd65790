/* A finished report becomes bytes, by one table of formats; lists become JSON, by one table of fields. */
#ifndef PROFD_RENDER_RENDER_H
#define PROFD_RENDER_RENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/buffer.h"
#include "core/callers.h"
#include "core/coverage.h"
#include "core/graph.h"
#include "core/diff.h"
#include "core/never_called.h"
#include "core/object.h"
#include "core/rows.h"
#include "core/report.h"
#include "proto/counts.h"
#include "proto/message.h"
#include "proto/status.h"

enum render_sort { RENDER_SORT_INDEX, RENDER_SORT_SELF, RENDER_SORT_TOTAL, RENDER_SORT_CALLS };
enum render_view { RENDER_VIEW_BOTH, RENDER_VIEW_FLAT, RENDER_VIEW_GRAPH, RENDER_VIEW_NOT_CALLED };

/* What a reader may ask of a report: X(type, field, parameter, modes, values). Each row is a field of struct
 * render_choice and a parameter of reports.
 *   modes        TRUE_MODE, COMPAT_MODE or ANY_MODE: where the parameter has a meaning
 *   values       WORDS("a, b"): uint32_t, the position of the given word; NUMBERS(low, high): uint32_t;
 *                SWITCH(): uint32_t, 0 or 1; TEXT: const char *, not empty
 * An absent parameter leaves 0 or NULL, unless options_parse has a preset. The fields mean:
 *   sort, view   the enumerations above
 *   limit        number of functions shown, with the indexes of the whole report; 0 shows all
 *   short_names  names of C++ have no template arguments
 *   focus        only functions with this text in their name or raw name are shown
 *   verbose      the heading of a text has all its lines */
#define RENDER_CHOICES(X)                                                                                              \
    X(uint32_t, sort, "sort", TRUE_MODE, WORDS("index, self, total, calls"))                                           \
    X(uint32_t, view, "view", ANY_MODE, WORDS("both, flat, graph, not-called"))                                        \
    X(uint32_t, limit, "limit", TRUE_MODE, NUMBERS(0, 4000000000u))                                                    \
    X(uint32_t, short_names, "names", TRUE_MODE, WORDS("full, short"))                                                 \
    X(const char *, focus, "focus", TRUE_MODE, TEXT)                                                                   \
    X(uint32_t, verbose, "verbose", TRUE_MODE, SWITCH())

struct render_choice {
#define X(type, field, parameter, modes, values) type field;
    RENDER_CHOICES(X)
#undef X
    uint32_t rows; /* shown of each list of callers, callees and members; 0: all. options_parse sets it by limit */
};

/* An outgoing upload of a host. */
struct render_upload {
    const uint8_t *epoch; /* UPLOAD_SENDER_SIZE bytes: with sequence, its key */
    uint64_t sequence;
    const char *host; /* NULL: unknown */
    const struct message_label *labels;
    size_t label_count;
};

struct render_input {
    const struct report *report;        /* NULL for formats that do not need it */
    const struct report *const *others; /* for format otlp: of the same sum in further dimensions */
    size_t other_count;
    const struct profile *profile; /* that the report is of; NULL: formats with addresses have those of functions */
    const struct provenance *provenance;
    const struct coverage *coverage;   /* NULL or empty: the sum has no counters of collectors */
    const char *build_id, *build_name; /* what was asked for */
    const char *scope;                 /* "program" | "build" | "everywhere" */
    int64_t since, until;              /* as asked, 0 if open */
    int64_t used_since, used_until;    /* as used: an edge inside an hour that is one sum, or a slice of a live process,
                                          lies at its border */
    struct render_choice show;
    const struct render_upload *upload; /* for format otlp: what the report is of; NULL: another sum */
    const char *match;                  /* only uploads with such labels: K="V", joined by ", "; NULL: all */
    uint32_t only;                      /* 1 + the one function to show (its position); 0: all */
    const bool *has_names;       /* one per build of the report, in its order; NULL: as the functions' kinds tell */
    const char *const *disputed; /* likewise: which hosts have different names of it; NULL: none do */
    /* for format gprof only */
    const struct object *object;
    const struct counts *counts;
};

struct render_format {
    const char *name; /* "json" */
    const char *content_type;
    bool wants_report;  /* true mode; else wants object and counts */
    bool lists_rows;    /* shows lists, such as that of functions never called */
    uint32_t functions; /* shown when no limit was asked for: a picture of all is none; 0: as for every format */
    enum profd_status (*render)(const struct render_input *in, struct arena *a, struct buffer *out,
                                struct profd_error *e);
};

/* Renders a finished report: with the times that it is sorted by, where the format does not have both. */
enum profd_status render_report(const struct render_format *f, const struct render_input *in, struct arena *a,
                                struct buffer *out, struct profd_error *e);
/* The format of that name, or NULL. */
const struct render_format *render_find(const char *name);
/* Names of all formats, joined by ", ", for sentences. */
const char *render_names(void);

/* Returns whether the function's name, or its raw name, contains focus. */
bool render_has_focus(const struct report_function *f, const char *focus);
/* Returns whether that is true of a function that is an entry of the report. */
bool render_find_focus(const struct report *r, const char *focus);

/* A name of labels. */
struct label_name_row {
    const char *name;
    uint64_t values, uploads; /* distinct values, and uploads with one of them */
};

/* A function of a report. */
struct function_row {
    const char *name, *raw, *file, *build_id;
    uint64_t address;
    uint32_t index, cycle; /* as in the report */
    double self, children, percent;
    uint64_t calls, self_calls;
};

/* Lists of flat rows, and the type of their rows; those that are not above are in core/rows.h. */
enum render_list {
    RENDER_BUILDS,    /* struct build_row */
    RENDER_LABELS,    /* struct label_name_row */
    RENDER_VALUES,    /* struct label_row, of one label */
    RENDER_VERSIONS,  /* struct version_row */
    RENDER_HOSTS,     /* struct fleet_row */
    RENDER_PROCESSES, /* struct process_row */
    RENDER_FUNCTIONS, /* struct function_row */
};
/* A page of n rows. next: the cursor of the following page, NULL on the last. */
void render_list(enum render_list list, const void *rows, size_t n, const char *next, struct buffer *out);
/* One build, its labels, and the builds that processes loaded with it. variants: how many different contents its id
 * has; 0 if that is not known. */
void render_build(const struct build_row *row, const struct label_row *labels, size_t label_count,
                  const char *const *companion_ids, const char *const *companion_names, size_t companion_count,
                  uint32_t variants, struct buffer *out);
/* Groups of uploads by the values of labels. step: ns, 0 if there are none; since and until: the edges that were used.
 */
struct render_groups {
    const char *const *labels;
    size_t label_count;
    int64_t step, since, until;
    const struct group_row *rows;
    size_t row_count;
    const char *next;
    const char *dimension; /* of the rows' seconds */
};
void render_groups(const struct render_groups *groups, struct buffer *out);
/* CPU time of builds by steps, for many builds at once. */
struct render_loads {
    const char *const *labels;
    size_t label_count;
    int64_t step, begin; /* ns; begin of the first step */
    size_t step_count;
    const struct load_row *rows;
    size_t row_count;
    const char *next;
};
void render_loads(const struct render_loads *loads, struct buffer *out);
/* One function over time. name: NULL if no step knew it; strings as stored. */
struct render_series {
    const char *build_id, *name;
    const char *dimension; /* of the samples of all rows */
    uint64_t address;
    int64_t step, since, until;
    const struct series_row *rows;
    size_t row_count;
};
void render_series(const struct render_series *series, struct buffer *out);
/* Functions joined by name over programs; percents are of all samples. */
struct render_joined {
    const struct joined_row *rows;
    size_t row_count;
    bool short_names; /* add short_name to rows that have one; short names are made in the arena */
    struct arena *arena;
    uint64_t names;                      /* rows of all pages */
    const char *next, *sort, *dimension; /* dimension of all samples */
    const struct joined_rest *rest;
    int64_t since, until;
    int64_t first, last; /* times of the uploads; 0: there are none */
    int64_t step, begin; /* of the trends; step 0: there are none */
    uint32_t steps;
};
void render_joined(const struct render_joined *joined, struct buffer *out);

/* A flame graph of the stacks of many reports, merged by the names of functions. A comparison has two sides. */

#define FLAME_SIDES 2
#define FLAME_DERIVED "derived" /* the frame above stacks that were not seen, but derived from arcs */

struct flame;

/* Lives in the arena. Only stacks whose outermost frames below the root are those of site count. If site_count is 0,
 * all stacks count. */
struct flame *flame_new(struct arena *a, const char *const *site, size_t site_count);
/* Adds the stacks that the other formats of the report have, in nanoseconds or in units of its dimension. scratch is
 * used only during the call. */
void flame_add(struct flame *f, const struct report *r, unsigned side, struct arena *scratch);

/* Each level holds its nodes from left to right. A node has three values for each side: the gap to the end of the node
 * before it, its total value and its self value. Then follows the number of its name. Its children begin at its own
 * beginning plus its self value. names[0] is "total", the root. */
struct flame_picture {
    const char **names;
    struct flame_level {
        const int64_t *values;
        size_t count;
    } * levels;
    uint32_t name_count, level_count;
    int64_t total, max_self, ticks[FLAME_SIDES]; /* ticks: of each side; total is their sum */
};

/* Draws the nodes with the most time, at most `most`. The children of a node that are not drawn are added up in a node
 * "other", which counts for this limit. The root and its "other" are always drawn. Siblings are sorted by name. Returns
 * false if there is no time. O(nodes · log nodes). */
bool flame_draw(struct flame *f, uint32_t most, unsigned sides, struct flame_picture *out);

/* Writes a flame graph and its values over time in Pyroscope's JSON. */
struct render_flamebearer {
    const struct flame_picture *picture;
    unsigned sides;
    bool is_time; /* values are nanoseconds */
    const char *name;
    int64_t start, step;   /* seconds */
    const double *samples; /* one for each step; NULL: zeros */
    size_t step_count, group_count;
    const char *const *groups;
    const double *const *group_samples;
};
void render_flamebearer(const struct render_flamebearer *in, struct buffer *out);

/* RFC 9457 problem document for a status and a sentence. */
void render_problem(enum profd_status status, int http_status, const char *sentence, struct buffer *out);
/* The same as an error of the Connect protocol. Returns the HTTP status that the protocol fixes for its code. */
int render_connect_problem(enum profd_status status, const char *sentence, struct buffer *out);
/* A string as JSON: quotes included, bad UTF-8 replaced by U+FFFD, control characters, <, >, & escaped. */
void render_json_string(struct buffer *out, const char *text);
/* "2026-11-21T15:48:00.123456789Z" (fraction only when not zero); 32 bytes are enough. */
void render_time(int64_t nanoseconds, char out[40]);
/* The same without the fraction, as a person reads it. */
void render_time_second(int64_t nanoseconds, char out[40]);

/* Ticks and calls of one function by address, as JSON. */

/* A bin: bytes from address on, at least one. */
struct address_ticks {
    uint64_t address, bytes, ticks;
    double seconds;
    bool shared; /* some of its bytes are outside the function */
};

/* Calls that return to address. */
struct address_calls {
    uint64_t address, calls;
    const struct report_function *callee; /* NULL: it is not in the report */
};

struct render_addresses {
    const struct report_function *function;
    uint32_t tick_count, call_count, line_count, instruction_count;
    const struct address_ticks *ticks;             /* ascending by address, then bytes */
    const struct address_calls *calls;             /* ascending by address */
    const struct object *object;                   /* that lines and instructions are of; NULL: there are none */
    const struct object_line *lines;               /* ascending by low, cut at the function's ends */
    const struct object_instruction *instructions; /* ascending by address */
    const char *const *target_names;               /* one for each of them; NULL: it has no target with a name */
    double overdispersion;                         /* variance of a number of ticks over that of independent ones */
};

void render_addresses(const struct render_input *in, const struct render_addresses *what, struct buffer *out);

/* The callers of a function, as JSON. */

/* limit: of rows. */
void render_callers(const struct render_input *in, const struct callers *c, size_t limit, struct buffer *out);

/* Cycles with the arcs inside them, as JSON. */

/* arcs: by calls, the most first; their ends are places in cycle->members. */
struct render_cycle {
    const struct report_cycle *cycle;
    const struct cycle_arc *arcs;
    uint32_t arc_count;
};

/* cycles: of in->report, count of them. limit: of members, of arcs, and of arcs that break a cycle. */
void render_cycles(const struct render_input *in, const struct render_cycle *cycles, uint32_t count, size_t limit,
                   struct buffer *out);

/* A comparison as JSON. */

struct render_diff {
    const struct diff *diff;
    const struct diff_request *request;
    size_t limit;                 /* rows of each list */
    struct render_input sides[2]; /* the report, coverage and choices are not looked at */
    const char *versions[2];      /* of the sides, where each has one and they differ; else NULL */
    struct arena *arena;          /* for scratch */
};

void render_diff(const struct render_diff *in, struct buffer *out);

/* The list of functions that were never called, as JSON. */

void render_never(const struct render_input *in, const struct never_called *never, size_t limit, struct buffer *out);

#endif
