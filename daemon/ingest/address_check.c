#include "ingest/address_check.h"

#include <stdlib.h>

#include "core/bounds.h"
#include "proto/message.h"
#include "proto/collector.h"

#define FEW 32 /* builds of a usual upload */

/* The collector's counters are of the program as a whole. */
static enum profd_status check_collector(const struct store_upload *u, const struct counts *c, struct profd_error *e)
{
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        if (collector_is_dimension(c->histograms[i].dimension) && c->histograms[i].build != u->program) {
            return profd_error_set(e, PROFD_MALFORMED,
                                   "histogram %u of dimension " COLLECTOR_DIMENSION
                                   " is of build number %u: it must be of the program, number %u",
                                   i, c->histograms[i].build, u->program);
        }
    }
    return PROFD_OK;
}

enum profd_status address_check(struct build_cache *cache, const struct store_upload *u, const struct counts *c,
                                struct profd_error *e)
{
    struct bounds_build few[FEW] = {{0}}, *builds = few;
    enum profd_status status = check_collector(u, c, e);
    if (u->build_count > FEW) {
        builds = calloc(u->build_count, sizeof *builds);
    }
    if (!builds) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to check an upload");
    }
    for (size_t i = 0; status == PROFD_OK && i < u->build_count; i++) {
        builds[i].id = u->builds[i].id.text;
        builds[i].name = u->builds[i].name;
        status = build_cache_find_bounds(cache, u->uid, u->builds[i].id.text, &builds[i].bounds, e);
    }
    if (status == PROFD_OK) {
        status = bounds_check_counts(builds, u->program, (u->inexact & INEXACT_CALLER_BUCKET) != 0, c, e);
    }
    if (builds != few) {
        free(builds);
    }
    return status;
}
