/* The builds of a report in an order that does not depend on how uploads arrived, with their tables of owners. Owners
 * of all builds are numbered through: those of build b are first[b] … first[b + 1] − 1. */
#ifndef PROFD_CORE_REPORT_BUILDS_H
#define PROFD_CORE_REPORT_BUILDS_H

#include <stdint.h>

#include "core/arena.h"
#include "core/report.h"
#include "core/symtab.h"
#include "proto/status.h"

#define REPORT_BUILDS_ABSENT UINT32_MAX

struct report_builds {
    uint32_t count;      /* builds; tables[count] is what lies outside all of them */
    uint32_t *origin;    /* of each build: its index in the profile */
    uint32_t *rank;      /* of each index of the profile: the build here; rank[profile builds] = count */
    uint32_t *ever_rank; /* likewise for the profile `ever`; REPORT_BUILDS_ABSENT for builds only in it */
    uint32_t ever_count;
    struct symtab **tables; /* count + 1 */
    uint32_t *first;        /* count + 2 */
};

/* Order: load order (profile.build_orders), then build-id; without load order, the profile's. Builds without names get
 * an owner wherever an arc of the window or of `ever` goes. O((symbols + arcs) log n). */
enum profd_status report_builds_make(struct arena *a, const struct report_request *request, struct report_builds *out,
                                     struct profd_error *e);

/* The build here of a profile's build index, COUNTS_NOWHERE and nonsense included. */
static inline uint32_t report_builds_rank(const struct report_builds *b, uint32_t build)
{
    return build < b->count ? b->rank[build] : b->count;
}

static inline uint32_t report_builds_ever_rank(const struct report_builds *b, uint32_t build)
{
    return build < b->ever_count ? b->ever_rank[build] : b->count;
}

/* The build that owns a numbered owner. O(log builds). */
uint32_t report_builds_of(const struct report_builds *b, uint32_t owner);

#endif
