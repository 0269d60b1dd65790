/* A finished report becomes bytes: one file a format, one table of formats. */
#ifndef PROFD_RENDER_RENDER_H
#define PROFD_RENDER_RENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/buffer.h"
#include "core/coverage.h"
#include "core/object.h"
#include "core/provenance.h"
#include "core/report.h"
#include "core/rows.h"
#include "proto/counts.h"
#include "proto/status.h"

enum render_sort { RENDER_SORT_INDEX, RENDER_SORT_SELF, RENDER_SORT_TOTAL, RENDER_SORT_CALLS };
enum render_view { RENDER_VIEW_BOTH, RENDER_VIEW_FLAT, RENDER_VIEW_GRAPH };

/* What a reader may ask of a report. The options of a query hold it, too: a further choice is a field here, its
 * parameter in query/options.c, and the format that follows it. */
struct render_choice {
    enum render_sort sort;
    enum render_view view;
    uint32_t limit;    /* functions shown; 0: all. Indexes stay those of the whole report */
    uint32_t rows;     /* shown of each list of callers, callees and members; 0: all */
    bool short_names;  /* names of C++ without template arguments (name_short.h) */
    const char *focus; /* only functions with this text in their name or raw name; NULL: all */
};

struct render_input {
    const struct report *report; /* NULL for formats that do not need it */
    const struct provenance *provenance;
    const struct coverage *coverage;   /* NULL or empty: the sum has no counters of collectors */
    const char *build_id, *build_name; /* what was asked for */
    const char *scope;                 /* "program" | "build" | "everywhere" */
    int64_t since, until;              /* as asked, 0 if open */
    int64_t used_since, used_until;    /* as used: an edge inside an hour that is one sum, or a slice of a live process,
                                          lies at its border */
    struct render_choice show;
    const char *match;     /* only uploads with such labels: K="V", joined by ", "; NULL: all */
    uint32_t only;         /* 1 + the one function to show (its position); 0: all */
    const bool *has_names; /* one per build of the report, in its order; NULL: as the functions' kinds tell */
    /* for format gprof only */
    const struct object *object;
    const struct counts *counts;
};

struct render_format {
    const char *name; /* "json" */
    const char *content_type;
    bool wants_report;  /* true mode; else wants object and counts */
    bool lists_rows;    /* shows lists of callers and callees, so that `rows` has a meaning */
    uint32_t functions; /* shown when no limit was asked for: a picture of all is none; 0: as for every format */
    enum profd_status (*render)(const struct render_input *in, struct arena *a, struct buffer *out,
                                struct profd_error *e);
};

/* The format of that name, or NULL. */
const struct render_format *render_find(const char *name);
/* Names of all formats, joined by ", ", for sentences. */
const char *render_names(void);

/* Does the function's name, or its raw name, contain focus? */
bool render_has_focus(const struct report_function *f, const char *focus);
/* Does a function that is an entry of the report? */
bool render_find_focus(const struct report *r, const char *focus);

/* Lists. next is the cursor of the following page, NULL on the last. */
void render_builds(const struct build_row *rows, size_t n, const char *next, struct buffer *out);
/* variants: different contents under the id; 0: not known. */
void render_build(const struct build_row *row, const struct label_row *labels, size_t label_count,
                  const char *const *companion_ids, const char *const *companion_names, size_t companion_count,
                  uint32_t variants, struct buffer *out);
/* Names of labels: rows stand in ascending order of name and value, and become one row a name. */
void render_labels(const struct label_row *rows, size_t n, struct buffer *out);
/* One live process, as an object. */
void render_process(const struct process_row *row, struct buffer *out);
/* Values of one label; next as above. */
void render_values(const struct label_row *rows, size_t n, const char *next, struct buffer *out);
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
};
void render_joined(const struct render_joined *joined, struct buffer *out);
/* Functions as flat rows (no callers, no callees): positions in the report. */
void render_functions(const struct report *report, const uint32_t *positions, size_t n, const char *next,
                      struct buffer *out);
/* RFC 9457 problem document for a status and a sentence. */
void render_problem(enum profd_status status, int http_status, const char *sentence, struct buffer *out);
/* A string as JSON: quotes included, bad UTF-8 replaced by U+FFFD, control characters, <, >, & escaped. */
void render_json_string(struct buffer *out, const char *text);
/* "2026-11-21T15:48:00.123456789Z" (fraction only when not zero); 32 bytes are enough. */
void render_time(int64_t nanoseconds, char out[40]);

#endif
