/* What a row of the store holds. */
#ifndef PROFD_QUERY_ROW_H
#define PROFD_QUERY_ROW_H

#include "proto/counts.h"
#include "proto/status.h"
#include "store/store.h"

/* The counts of a single upload (not rolled); counts_done frees them. DAMAGED, naming the upload, or NO_MEMORY. */
enum profd_status row_decode_counts(const struct store_row *row, struct counts *c, struct profd_error *e);

#endif
