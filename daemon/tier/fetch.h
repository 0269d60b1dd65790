/* Reads sums of past days from ClickHouse, for all threads that read the store. */
#ifndef PROFD_TIER_FETCH_H
#define PROFD_TIER_FETCH_H

#include <stdatomic.h>
#include <stdbool.h>

#include "proto/status.h"
#include "store/store.h"
#include "base/clickhouse_address.h"

struct fetcher;

/* ca: file with the certificates of the CAs that are trusted; NULL: the system's. Both are borrowed. */
enum profd_status fetcher_new(const struct clickhouse_address *address, const char *ca, struct fetcher **out,
                              struct profd_error *e);
/* For store_set_archive of any number of handles. */
const struct store_archive *fetcher_get_archive(const struct fetcher *f);
/* A query of this thread begins. Its statements are cancelled when *cancelled becomes true. NULL: the query has ended.
 */
void fetcher_set_cancelled(const atomic_bool *cancelled);
/* Returns whether ClickHouse lacked sums that the query of this thread asked for. That happens if their day was removed
 * after the query had read the database. */
bool fetcher_lacked(void);
/* Ends the statements that run: the daemon stops. Any thread. */
void fetcher_stop(struct fetcher *f);
/* After the handles. Accepts NULL. */
void fetcher_free(struct fetcher *f);

#endif
