/* Compat mode: a sum as the records of gmon.out files, in the order gprof would have read them. */
#ifndef PROFD_QUERY_LISTING_H
#define PROFD_QUERY_LISTING_H

#include <stdint.h>

#include "core/arena.h"
#include "core/profile.h"
#include "proto/counts.h"
#include "proto/status.h"

/* Histogram and arcs of the profile's build in order of first arrival, ends elsewhere left out. Several geometries or rates: CONFLICT
 * naming them, unless geometry (1…) picks one; BAD_QUERY if there is no such one. Arrays live in the arena. */
enum profd_status listing_make_counts(const struct profile *profile, uint32_t build, uint32_t geometry, struct arena *a,
                                      struct counts *out, struct profd_error *e);

#endif
