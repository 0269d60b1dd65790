/* Compat mode: a sum as the records of gmon.out files, in the order gprof would have read them. */
#ifndef PROFD_QUERY_LISTING_H
#define PROFD_QUERY_LISTING_H

#include <stdint.h>

#include "core/arena.h"
#include "core/object.h"
#include "core/profile.h"
#include "proto/counts.h"
#include "proto/status.h"
#include "query/job.h"
#include "query/work.h"

/* Loads what the options select and makes the counts of the build that was asked for. *object: what is known of its
 * executable, NULL if nothing. NOT_FOUND without an upload in the window. */
enum profd_status listing_load(struct job *job, struct work *w, struct counts *out, const struct object **object,
                               struct profd_error *e);

#endif
