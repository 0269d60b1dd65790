/* One of the many reports that a single question is made of: a step of time, or a program. Each is computed whole and
 * forgotten. */
#ifndef PROFD_QUERY_PART_H
#define PROFD_QUERY_PART_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/object.h"
#include "core/profile.h"
#include "proto/status.h"
#include "query/job.h"
#include "query/options.h"
#include "query/work.h"

struct part_object;

struct part {
    struct job job;              /* the question's, with an arena that lasts until the next report */
    struct arena *kept;          /* holds the objects, which most of the reports share */
    struct part_object *objects; /* of the users of the latest report */
    uint32_t object_count, object_capacity;
    uint32_t *uids;
    uint32_t uid_count;
    bool any;
    const struct profile *ever; /* the caller's: arcs of all time; NULL: each report loads them */
    uint64_t gone_through;
};

/* NO_MEMORY. Ended by part_done, after a failure too. */
enum profd_status part_init(struct part *p, const struct job *job, struct profd_error *e);
void part_done(struct part *p);

/* Loads what w's options select of w's build. w->load, and what follows from it, live until the next call;
 * w->load.provenance.uploads is 0 where nothing was selected. LIMIT when all reports so far went through more than
 * LIMIT_WORK, or need too much memory. */
enum profd_status part_load(struct part *p, struct work *w, struct profd_error *e);
/* What all the reports are of: the dimension that was asked for, else "seconds". Those without samples of it have none.
 */
const char *part_dimension(const struct options *o);
/* Computes the report of what was loaded. */
enum profd_status part_report(struct part *p, struct work *w, struct profd_error *e);

#endif
