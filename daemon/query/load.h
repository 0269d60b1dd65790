/* Stored uploads and sums become one profile. */
#ifndef PROFD_QUERY_LOAD_H
#define PROFD_QUERY_LOAD_H

#include <stdbool.h>

#include "core/arena.h"
#include "core/downtime.h"
#include "core/profile.h"
#include "core/provenance.h"
#include "core/shares.h"
#include "proto/status.h"
#include "query/query.h"
#include "store/store.h"

struct load_request {
    struct store *store;
    struct store_scope scope;
    struct store_filter filter;
    bool alone;     /* only the filter's build: its histograms and the arcs with an end in it; other ends become
                       COUNTS_NOWHERE */
    bool arcs_only; /* for the arcs ever observed */
    enum load_stacks { LOAD_STACKS_NONE, LOAD_STACKS_TOTALS, LOAD_STACKS_SHARES } stacks; /* not with arcs_only */
    struct arena *shares;            /* bins and arcs by random group, too, in this arena; the filter must ask for the
                                        spread. NULL: not wanted */
    struct query_cache *cache;       /* of sums added up before; NULL: none */
    const struct downtime *downtime; /* NULL: unknown */
};

struct load {
    struct profile *profile;
    const char *const *names; /* one per build of the profile, as first delivered */
    struct provenance provenance;
    struct shares shares; /* if the request has an arena for them */
};

/* Sums every matching upload, single or in a sum already; the same profile whichever (orders within an upload apart, if
 * alone). Everything but the shares lives in the arena. O(bins + arcs) of all rows. LIMIT if a label pattern of the
 * filter could not be decided. */
enum profd_status load_profile(const struct load_request *request, struct arena *a, struct load *out,
                               struct profd_error *e);

#endif
