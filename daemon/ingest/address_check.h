/* Can these counts be of the executables that are stored for their builds? */
#ifndef PROFD_INGEST_ADDRESS_CHECK_H
#define PROFD_INGEST_ADDRESS_CHECK_H

#include "ingest/build_cache.h"
#include "proto/counts.h"
#include "proto/status.h"
#include "store/store.h"

/* Checks the counts of an upload against every build of which its uid has an object (bounds_check_counts). */
enum profd_status address_check(struct build_cache *cache, const struct store_upload *u, const struct counts *c,
                                struct profd_error *e);

#endif
