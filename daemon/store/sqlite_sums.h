/* The numbers that the ledger, a series and lists add up. Only sqlite*.c include this. */
#ifndef PROFD_STORE_SQLITE_SUMS_H
#define PROFD_STORE_SQLITE_SUMS_H

#include <limits.h>

#include "core/shares.h"
#include "proto/limits.h"
#include "store/sqlite.h"

/* Sums stop at 2^63−1; one that did sets INEXACT_SATURATED. Of no uploads, first is INT64_MAX and last INT64_MIN. */
struct sqlite_sums {
    uint64_t uploads, processes, ticks, calls;
    uint64_t stack_ticks; /* of ticks, those that have a stack */
    int64_t first, last;
    uint32_t inexact;
    uint64_t raw_uploads, raw_bytes, live_bytes; /* live_bytes: of the raw ones, those of live processes */
    int64_t raw_since;                           /* seconds; INT64_MAX: no raw uploads, or not known here */
    size_t build_count;
    struct share shares[LIMIT_BUILDS]; /* of the set's builds, in load order; only build_count are there */
};
#define SQLITE_SUMS_SIZE(builds) (offsetof(struct sqlite_sums, shares) + (builds) * sizeof(struct share))
#define SQLITE_SUM_COLUMNS 12 /* that a row read as sums begins with */
#define SQLITE_SHARES_BYTES (((size_t)LIMIT_BUILDS * 2 + 1) * 10)

/* Sums without uploads, for that many builds. */
void sqlite_sums_init(struct sqlite_sums *s, size_t builds);
void sqlite_sums_add(struct sqlite_sums *to, const struct sqlite_sums *more);
/* Takes a part away. False, and to is not usable, when the rest must be added up anew: a sum was at its end, or the
 * part held the earliest or latest time or all of a reason for inexactness. */
bool sqlite_sums_subtract(struct sqlite_sums *to, const struct sqlite_sums *part);

/* A set's builds from its blob. */
static inline uint32_t sqlite_set_build(const uint8_t *set, size_t i)
{
    return (uint32_t)set[4 * i] | (uint32_t)set[4 * i + 1] << 8 | (uint32_t)set[4 * i + 2] << 16 |
           (uint32_t)set[4 * i + 3] << 24;
}

/* Writes the shares, and behind them the ticks of stacks: at most SQLITE_SHARES_BYTES. Returns how many bytes they are.
 */
size_t sqlite_shares_encode(const struct sqlite_sums *s, uint8_t *out);
/* Reads them, of build_count builds. False: the bytes break their rules. */
bool sqlite_shares_decode(const uint8_t *in, size_t n, struct sqlite_sums *s);
/* Reads the sums that the current row of q begins with (SUM_COLUMNS, raw_since, shares). DAMAGED if they cannot be. */
enum profd_status sqlite_sums_read(struct store *s, sqlite3_stmt *q, size_t builds, struct sqlite_sums *out,
                                   struct profd_error *e);

/* Σ of the rows of a statement that begin with sums. */
enum profd_status sqlite_sums_of_rows(struct store *s, enum sqlite_sql which, const struct sqlite_value *values,
                                      size_t count, size_t builds, struct sqlite_sums *out, struct profd_error *e);
/* The ledger's row of a series and hour; sums without uploads if there is none. */
enum profd_status sqlite_ledger_load(struct store *s, int64_t series, int64_t hour, size_t builds,
                                     struct sqlite_sums *out, bool *found, struct profd_error *e);
/* Writes the row. raw_since is that of a new row; SQL_LEDGER_SINCE changes it. */
enum profd_status sqlite_ledger_save(struct store *s, int64_t series, int64_t hour, const struct sqlite_sums *sums,
                                     struct profd_error *e);
/* Σ of the ledger's rows of the series in these hours, both included. */
enum profd_status sqlite_ledger_sum(struct store *s, int64_t series, int64_t from, int64_t to, size_t builds,
                                    struct sqlite_sums *out, struct profd_error *e);

enum profd_status sqlite_series_load(struct store *s, int64_t series, size_t builds, struct sqlite_sums *out,
                                     bool *found, struct profd_error *e);
enum profd_status sqlite_series_save(struct store *s, int64_t series, const struct sqlite_sums *sums,
                                     struct profd_error *e);

/* The key of a series. builds lives in the arena. */
struct sqlite_identity {
    int64_t id, set, program;
    uint32_t uid;
    bool mirror; /* its sums are in no total */
    size_t build_count;
    const uint32_t *builds; /* row ids in load order */
};
enum profd_status sqlite_series_identify(struct store *s, struct arena *a, int64_t series, struct sqlite_identity *out,
                                         bool *found, struct profd_error *e);

#endif
