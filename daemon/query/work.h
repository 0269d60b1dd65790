/* From a report's parameters to what a renderer needs: load → symbolize → graph → cycles → propagate. */
#ifndef PROFD_QUERY_WORK_H
#define PROFD_QUERY_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "core/coverage.h"
#include "core/object.h"
#include "core/report.h"
#include "proto/buildid.h"
#include "proto/status.h"
#include "query/job.h"
#include "query/load.h"
#include "query/options.h"
#include "render/render.h"

struct work {
    struct options options;
    struct buildid id;
    const char *name; /* of the build */
    bool is_program;
    int64_t first_seen, last_seen;  /* of the build: earliest start and latest end of an upload */
    enum options_scope scope;       /* never the default */
    int64_t used_since, used_until; /* the edges at the resolution of the stored data */
    bool by_host;                   /* the answer tells hosts apart (store_filter) */
    struct arena *shares;           /* the load has the random groups, too, in this arena; set between work_find and
                                       work_load. NULL: it has not */
    bool without_errors;            /* no standard errors of measured times are shown: the load lacks what they take */
    struct load load;
    const struct object *const *objects; /* one for each build of the profile, NULL if it was not sent */
    struct coverage coverage;            /* of the load */
    struct report *report;
    const char *const *disputed;        /* likewise: which hosts have different names; NULL: none do */
    const bool *has_names;              /* one per build of the report; the order is not that of the profile */
    const char *const *report_disputed; /* likewise */
};

/* Reads the options, finds the build and the edges of the window, and sets the ETag. compat: as
 * options_parse. *fresh: the asker has the answer already, and nothing was loaded. */
enum profd_status work_begin(struct job *job, bool compat, struct work *w, bool *fresh, struct profd_error *e);
/* The same for one build of several: reads the options of these parameters, finds the build and the edges. Nothing is
 * known of a tag. */
enum profd_status work_find(struct job *job, const struct params *p, const char *build, bool compat, struct work *w,
                            struct profd_error *e);
/* What the options select of the build. */
struct store_filter work_make_filter(const struct work *w);
/* Reports state the window of the loaded data, but uploads may have been rolled up since: determines the edges again.
 * moved: they have changed, w has the new ones, and the caller must load again. Edges only move outward, so this ends.
 */
enum profd_status work_check_edges(struct job *job, struct work *w, bool *moved, struct profd_error *e);
/* Loads the sum. alone: one build whatever the scope says. */
enum profd_status work_load(struct job *job, struct work *w, bool alone, struct profd_error *e);
/* Fetches what names functions. */
enum profd_status work_find_objects(struct job *job, struct work *w, struct profd_error *e);
/* The symbols of one build in the loaded sum; NULL: they were not sent. *disputed: a sentence, or NULL. */
enum profd_status work_find_object(struct job *job, const struct work *w, const char *id, const struct object **out,
                                   const char **disputed, struct profd_error *e);
/* The arcs ever observed; NULL: the options narrow nothing, so that they are those that were loaded. */
enum profd_status work_load_ever(struct job *job, const struct work *w, const struct profile **ever,
                                 struct profd_error *e);
/* What a report of the loaded data is made from, without the arcs ever observed. */
struct report_request work_begin_request(const struct work *w);
/* Loads the arcs ever observed and computes the report. */
enum profd_status work_build_report(struct job *job, struct work *w, struct profd_error *e);
/* All of this for a list made from a report: reads limit= into *limit (SIZE_MAX: all), begins, loads, and computes the
 * report. NOTHING if no upload is selected. *fresh: as work_begin. */
enum profd_status work_make_report(struct job *job, struct work *w, size_t *limit, bool *fresh, struct profd_error *e);
/* What renderers are given. Points into w. */
struct render_input work_make_input(const struct work *w);

#endif
