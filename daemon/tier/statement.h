/* Statements about sums in ClickHouse (schema/tier.sql), as text. Pure. They run on every version from 18.16 on.
 * Queries that are appended have no FORMAT yet. */
#ifndef PROFD_TIER_STATEMENT_H
#define PROFD_TIER_STATEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/buffer.h"
#include "store/store.h"

/* The date of a day since the epoch, as in "2026-11-26". */
struct day_text {
    char text[32];
};
struct day_text statement_format_day(int64_t day);
/* The first and the last day of n sums, at least one. */
void statement_find_days(const struct store_stub *const *stubs, size_t n, int64_t *first, int64_t *last);

#define STATEMENT_PUT_SERIES "INSERT INTO series (series, tenant, program, builds, names, labels) FORMAT RowBinary"
#define STATEMENT_PUT_SUMS                                                                                             \
    "INSERT INTO sum (centre, day, block, attempt, program, series, level, at, number, uploads, processes, ticks, "    \
    "calls, first, last, inexact, groups, shares, hosts, totals, counts, spread) FORMAT RowBinary"
#define STATEMENT_PUT_MANIFEST                                                                                         \
    "INSERT INTO manifest (centre, name, day, block, attempt, state, rows, bytes, checksum, keys, sealed, version) "   \
    "FORMAT RowBinary"
/* A row of this centre on one server of a cluster, which belongs to no block. */
#define STATEMENT_PUT_NOTHING "INSERT INTO sum_local (centre, number) FORMAT RowBinary"
#define STATEMENT_PUT_TOMBSTONES "INSERT INTO tombstone (tenant, build, centre, block, deleted) FORMAT RowBinary"
#define STATEMENT_COUNT_TOMBSTONES "SELECT count() FROM tombstone FORMAT RowBinary"
#define STATEMENT_LIST_TOMBSTONES "SELECT tenant, build, centre, block, deleted FROM tombstone FORMAT RowBinary"
#define STATEMENT_PUT_MARKS "INSERT INTO mark (centre, hour, tenant, host, reasons) FORMAT RowBinary"
#define STATEMENT_COUNT_MARKS "SELECT count() FROM mark FORMAT RowBinary"
#define STATEMENT_LIST_MARKS                                                                                           \
    "SELECT centre, hour, tenant, host, toUInt32(groupBitOr(reasons)) FROM mark GROUP BY centre, hour, tenant, host "  \
    "FORMAT RowBinary"
/* A digest of the manifest, and all of it. */
#define STATEMENT_DIGEST_BLOCKS                                                                                        \
    "SELECT toUInt64(sum(cityHash64(centre, day, block, attempt, state, version))) FROM manifest FORMAT RowBinary"
#define STATEMENT_LIST_BLOCKS                                                                                          \
    "SELECT centre, name, day, block, attempt, state, rows, bytes, checksum, sealed, version FROM manifest "           \
    "FORMAT RowBinary"
/* Centres, and the greatest number of a block of each. */
#define STATEMENT_LAST_BLOCKS "SELECT centre, max(block) FROM manifest GROUP BY centre FORMAT RowBinary"

/* Appends a query for one row of an attempt of a block: count of its sums, bytes of their counts and spread, sum of
 * their digests (statement_digest), each UInt64. */
void statement_check_block(struct buffer *b, const struct store_block *block);
/* Of a sum: the first eight bytes of a SHA-256 over all that the tier keeps of it. */
uint64_t statement_digest(const struct store_block_sum *sum);
/* Appends a query for n sums of one centre, which are sorted by block and level: as `part` says hosts and counts, these
 * and spread, or totals, then block, attempt, series, level, at. */
void statement_fetch(struct buffer *b, const struct store_stub *const *stubs, size_t n, enum store_archive_part part);

/* Appends a query for the keys of a block, as the manifest has them: a row of a String and a UInt8. */
void statement_find_keys(struct buffer *b, const struct store_block *block);
/* Appends a query for the next n sums of a block after one of them, by program, series, level and time: program,
 * series, level, at, number, uploads, processes, ticks, calls, first, last, inexact, groups, shares, bytes of counts
 * and spread, and number of hosts that it has totals of. after: only its program, which has no quotes, series, level
 * and at are looked at; program "": the first sums. */
void statement_list_sums(struct buffer *b, const struct store_block *block, const struct store_stub *after, unsigned n);
/* Appends a query for the series of n sums that are sorted by program and series: series, tenant, builds, names,
 * labels, program. */
void statement_find_series(struct buffer *b, const struct store_stub *const *stubs, size_t n);

/* A row of the manifest. */
enum { STATEMENT_VISIBLE = 1, STATEMENT_DROPPED };
/* Greater than any attempt: a dropped block does not come back. */
#define STATEMENT_DROPPED_VERSION (UINT64_C(1) << 32)
struct statement_manifest {
    const struct store_block *block;
    const char *name; /* of the centre */
    uint8_t state;
    uint64_t rows, bytes, checksum, version;
    int64_t now;
    const void *keys; /* store/block_keys.h; NULL if keys_size is 0 */
    size_t keys_size;
};
/* Appends a row for STATEMENT_PUT_MANIFEST. */
void statement_add_manifest(struct buffer *b, const struct statement_manifest *m);
/* Appends a statement that drops all sums of a day of a centre, in a cluster on one server. */
void statement_drop_day(struct buffer *b, const uint8_t centre[STORE_CENTRE_SIZE], int64_t day, bool cluster);
/* Appends a statement that removes a centre's marks of the days before one, in a cluster on one server.
 */
void statement_drop_marks(struct buffer *b, const uint8_t centre[STORE_CENTRE_SIZE], int64_t day, bool cluster);

#endif
