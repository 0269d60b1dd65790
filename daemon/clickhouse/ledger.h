/* What was accepted: what is stored, and what was removed since. */
#ifndef PROFD_CLICKHOUSE_LEDGER_H
#define PROFD_CLICKHOUSE_LEDGER_H

#include "clickhouse/catalogue.h"

#define LEDGER_DELETED UINT32_MAX /* column day of table removed, with generation 0: of all deleted generations */

#define LEDGER_NEVER                                                                                                   \
    UINT32_MAX /* column generation of tables arrival and removed: its program had been deleted before it arrived */

/* A row of table removed. Segments of its day, or of the deleted generations, with numbers up to `number` are in it. */
struct ledger_row {
    char program[BUILDID_TEXT_SIZE];
    uint32_t uid, generation, day;
    uint64_t number;
    struct store_amount amount;
};
/* A program of a user that was deleted. */
struct ledger_deletion {
    char program[BUILDID_TEXT_SIZE];
    uint32_t uid, generation; /* the current one */
    int64_t before;
    uint64_t number;             /* as of the row LEDGER_DELETED, 0 without one */
    struct store_amount removed; /* that row's */
    struct store_amount pending; /* of segments of deleted generations that are not in it */
    uint64_t last;               /* greatest number of those; 0: there are none */
};
struct ledger {
    struct ledger_row *rows;
    struct ledger_deletion *deletions;
    uint32_t row_count, row_capacity, deletion_count, deletion_capacity;
    struct store_amount removed; /* all of it, pending included */
};

/* Loads what was removed. Segments of deleted programs count as removed from the deletion on, whenever they arrived,
 * and whether their rows are still there or not. What is in table arrival with LEDGER_NEVER counts until a row of table
 * removed with this generation is there for the day of its receipt: that is to be stored before such rows of arrival
 * are removed. Arrays live in the arena. */
enum profd_status ledger_load(struct clickhouse_store *s, struct arena *a, struct ledger *out, struct profd_error *e);
/* The row of that day of a program; NULL: nothing of it was removed. O(rows). */
const struct ledger_row *ledger_find_day(const struct ledger *l, const char *program, uint32_t uid, uint32_t generation,
                                         uint32_t day);
/* Stores the row, in place of the one with its program, uid, generation and day. */
enum profd_status ledger_put(struct clickhouse_store *s, const struct ledger_row *rows, size_t n,
                             struct profd_error *e);
/* What segments add up to that have columns as the condition says, and their greatest number (0: there are none). */
enum profd_status ledger_sum_segments(struct clickhouse_store *s, const char *where, struct store_amount *out,
                                      uint64_t *last, struct profd_error *e);

/* What is stored of all users. */
struct ledger_stored {
    struct store_amount amount;
    uint64_t single; /* uploads in hours that are not rolled up */
    struct engine_ids builds;
};
enum profd_status ledger_load_stored(struct clickhouse_store *s, struct arena *a, struct ledger_stored *out,
                                     struct profd_error *e);

/* Columns of a query that adds up amounts, which do not overflow; and reads what it gives: the amount, and the greatest
 * number. */
#define LEDGER_SUMS                                                                                                    \
    "sum(bitShiftRight(uploads, 32)), sum(bitAnd(uploads, 4294967295)), sum(bitShiftRight(ticks, 32)), "               \
    "sum(bitAnd(ticks, 4294967295)), sum(bitShiftRight(calls, 32)), sum(bitAnd(calls, 4294967295)), max(number)"
void ledger_read_sums(struct row_reader *r, struct store_amount *out, uint64_t *last);

/* Appends what a query of parts of tables reads, with a condition: of the database, on all servers. */
void ledger_put_parts(struct clickhouse_store *s, struct buffer *b);
/* Bytes on disk of a table, NULL: of all, on all shards. */
enum profd_status ledger_count_bytes(struct clickhouse_store *s, const char *table, uint64_t *out,
                                     struct profd_error *e);

#endif
