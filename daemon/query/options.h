/* The parameters of a report, understood. */
#ifndef PROFD_QUERY_OPTIONS_H
#define PROFD_QUERY_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/buffer.h"
#include "proto/limits.h"
#include "proto/status.h"
#include "query/params.h"
#include "render/render.h"
#include "store/store.h"

enum options_scope {
    OPTIONS_SCOPE_PROGRAM,    /* uploads of this program, all builds together */
    OPTIONS_SCOPE_BUILD,      /* the same uploads, this build alone */
    OPTIONS_SCOPE_EVERYWHERE, /* uploads of every process that had the build, this build alone */
    OPTIONS_SCOPE_DEFAULT,    /* program if the build ever was a main executable, else everywhere */
};

/* Parameters that choose what is summed, as RENDER_CHOICES are those that choose what is shown. scope: enum
 * options_scope. empty_is_error: a selection without uploads is answered with NOTHING instead of an empty report.
 * geometry: 0 if not given. time: enum report_time. dimension: of the samples; NULL: the usual one. */
#define OPTIONS_LIST(X)                                                                                                \
    X(uint32_t, scope, "scope", ANY_MODE, WORDS("program, build, everywhere"))                                         \
    X(uint32_t, static_arcs, "static", TRUE_MODE, SWITCH())                                                            \
    X(uint32_t, empty_is_error, "empty", ANY_MODE, WORDS("report, error"))                                             \
    X(uint32_t, geometry, "geometry", COMPAT_MODE, NUMBERS(1, LIMIT_HISTOGRAMS))                                       \
    X(uint32_t, time, "time", TRUE_MODE, WORDS("best, measured, calls"))                                               \
    X(const char *, dimension, "dimension", TRUE_MODE, TEXT)

struct options {
#define X(type, field, parameter, modes, values) type field;
    OPTIONS_LIST(X)
#undef X
    struct render_choice show;
    int64_t since, until; /* 0: open */
    size_t matcher_count;
    struct store_matcher matchers[LIMIT_MATCHERS];
    const char *match; /* the same as text, joined by ", "; NULL: none */
    const struct render_format *format;
    struct store_scope visible; /* of the asker, narrowed by uid= */
};

/* The parameters of a report, ended by NULL. */
extern const char *const options_of_report[];

/* http: a limit applies unless another one is given. compat: that mode is the default unless mode= or format= is given.
 * Strings live in the params or in the arena. BAD_QUERY with the value; FORBIDDEN for uid= of another user. */
enum profd_status options_parse(const struct params *p, const struct store_scope *scope, bool http, int64_t now,
                                bool compat, struct arena *a, struct options *out, struct profd_error *e);

/* The matchers of "match" and "label.K"; *count, which was 0, is how many there are. Strings live in the params or in
 * the arena. BAD_QUERY. */
enum profd_status options_parse_matchers(const struct params *p, struct arena *a,
                                         struct store_matcher out[LIMIT_MATCHERS], size_t *count,
                                         struct profd_error *e);
#endif
