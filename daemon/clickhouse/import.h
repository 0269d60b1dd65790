/* Moves a centre from its SQLite database into tables of ClickHouse.
 *
 * What is stored of a series in an hour becomes a segment for each of its hosts: the first one has the counts, each has
 * the totals of its host. Their keys follow from the database, the series, the hour and the host, and their times of
 * arrival from the hour; so they are read, rolled up and removed as any others, and importing again replaces them. Of
 * what was imported before and was changed in the tables since (enrolments that were renewed, readers that were
 * removed, ...) the tables' state stays. The order in which functions were first called is kept within a series and
 * hour. */
#ifndef PROFD_CLICKHOUSE_IMPORT_H
#define PROFD_CLICKHOUSE_IMPORT_H

#include "store/store.h"

/* What was imported. */
struct clickhouse_imported {
    uint64_t tenants, tokens, enrolments, readers, hosts, epochs, arrivals, quarantined, marks, deletions, attestations,
        objects, watch_rows;
    uint64_t hours;              /* of series */
    struct store_amount counted; /* in these */
    /* Hours of series that were left out: in the tables, their programs were deleted, or their days removed, since. */
    uint64_t deleted, removed;
    uint64_t local; /* series of users of the centre's machine: they are not imported */
};

/* from: a reading handle of sqlite, of which one state is read, whatever a daemon stores meanwhile. to: a writing
 * handle of store_clickhouse_open. Other daemons may store meanwhile, but no host may have sent to them what the
 * database has: REFUSED. BUSY: a day of which the database has something is being removed from the tables, or was
 * removed meanwhile. DAMAGED: a sum cannot be read. After any failure the tables have some of it, and the same call
 * completes it. O(database). */
enum profd_status clickhouse_import(struct store *from, struct store *to, struct clickhouse_imported *out,
                                    struct profd_error *e);

#endif
