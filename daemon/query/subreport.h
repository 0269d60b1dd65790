/* Subreports: a query over steps of time, or over programs, makes one report for each step or program. Each is computed
 * completely, and its memory is reused for the next. */
#ifndef PROFD_QUERY_SUBREPORT_H
#define PROFD_QUERY_SUBREPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/object.h"
#include "core/profile.h"
#include "proto/status.h"
#include "query/job.h"
#include "query/options.h"
#include "query/work.h"

struct subreport_object;

struct subreport {
    struct job job;                   /* the query's, with an arena that lasts until the next report */
    struct arena *kept;               /* holds the objects, which most of the reports share */
    struct subreport_object *objects; /* of the users of the latest report */
    uint32_t object_count, object_capacity;
    uint32_t *uids;
    uint32_t uid_count;
    bool any;
    const struct profile *ever; /* the caller's: arcs of all time; NULL: each report loads them */
    uint64_t gone_through;
};

void subreport_init(struct subreport *p, const struct job *job);

/* Loads what w's options select of w's build. w->load, and everything derived from it, is valid until the next call.
 * w->load.provenance.uploads is 0 if nothing was selected. LIMIT if all reports so far processed more than LIMIT_WORK.
 */
enum profd_status subreport_load(struct subreport *p, struct work *w, struct profd_error *e);
/* The dimension of all subreports: the requested one, else "seconds". A subreport without samples of it has none. */
const char *subreport_dimension(const struct options *o);
/* Computes the report from the loaded data. */
enum profd_status subreport_make(struct subreport *p, struct work *w, struct profd_error *e);

#endif
