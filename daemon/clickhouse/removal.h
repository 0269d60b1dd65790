/* Days that are removed while daemons store segments and sums.
 *
 * Table state says which day is being removed (row `retiring`), and which handles store (rows `storing/WRITER`). A
 * handle enters itself before it reads the day; a day is announced before the handles are read. So each handle that
 * stores either leaves the day alone, or is seen, and what it may have on its way is waited for. */
#ifndef PROFD_CLICKHOUSE_REMOVAL_H
#define PROFD_CLICKHOUSE_REMOVAL_H

#include "clickhouse/engine_internal.h"

/* The day that is removed. */
struct engine_removal {
    bool any, begun; /* begun: something of it may be gone */
    uint32_t day;    /* days since the epoch */
    uint64_t since;  /* s by the servers' clock: when it was announced */
};
enum profd_status engine_load_removal(struct clickhouse_store *s, struct engine_removal *out, struct profd_error *e);
/* Announces the day, or that its removal begins; x->any false: that it is done. */
enum profd_status engine_put_removal(struct clickhouse_store *s, const struct engine_removal *x, struct profd_error *e);
/* *quiet: no other handle stores that has not seen the announcement. */
enum profd_status engine_check_quiet(struct clickhouse_store *s, const struct engine_removal *x, bool *quiet,
                                     struct profd_error *e);
enum profd_status engine_servers_now(struct clickhouse_store *s, uint64_t *seconds, struct profd_error *e);

/* Enters the handle, unless it is, and reads the first day (days since the epoch) for which it may store rows now and
 * for ENGINE_STORING_MS; 0: for every day. When the handle is closed, it is no longer entered. */
#define ENGINE_STORING_MS 30000
enum profd_status engine_begin_storing(struct clickhouse_store *s, uint32_t *first_day, struct profd_error *e);

/* Removes the partition of a table that has the day (of table host_day: the days), on every server.
 *
 * ClickHouse 18.16 remembers of each partition of a replicated table which part a quorum has stored last, and answers
 * no query with select_sequential_consistency while that part is not there (error 289): DROP PARTITION leaves the table
 * unreadable. So one row that counts nowhere is inserted behind it. The row `dropping/TABLE` of table state says that
 * this is not done: engine_complete_drop does it, before the table is read. It may run while another daemon drops; that
 * all is done is entered only by the one that has the lock of the table's removals. */
enum profd_status engine_drop_day(struct clickhouse_store *s, const char *table, uint32_t day, struct profd_error *e);
enum profd_status engine_complete_drop(struct clickhouse_store *s, const char *table, bool locked,
                                       struct profd_error *e);
/* Removes the rows of a removed day from the partitions of other days: of table segment_group, those of hosts with a
 * wrong clock, or that sent around midnight; of host_day, all. They would count again when something arrives for the
 * day. *done: every server of the address has removed them; else it goes on, and a later call asks again. */
enum profd_status engine_delete_day(struct clickhouse_store *s, const char *table, uint32_t day, bool *done,
                                    struct profd_error *e);
/* Merges the partition of the day on every server: of rows with one key the latest is left. */
enum profd_status engine_merge_day(struct clickhouse_store *s, const char *table, uint32_t day, struct profd_error *e);
/* BUSY unless every replica of the table can take part in that; *e names the table. */
enum profd_status engine_check_replicas(struct clickhouse_store *s, const char *table, struct profd_error *e);

#define ENGINE_HOST_DAYS 30u        /* in a partition of table host_day */
#define ENGINE_REAL "program != ''" /* holds for rows that count: of tables change, segment_group, rollup, host_day */
#define ENGINE_REAL_ARRIVAL "host > 0"

#endif
