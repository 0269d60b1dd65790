/* Table state: what identifies the data of a centre, and what its latest backup has. Every server has the same. */
#ifndef PROFD_CLICKHOUSE_STATE_H
#define PROFD_CLICKHOUSE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "clickhouse/address.h"
#include "clickhouse/client.h"
#include "proto/status.h"

#define CLICKHOUSE_INCARNATION_SIZE 16
#define CLICKHOUSE_SALT_SIZE 8
struct clickhouse_state {
    uint64_t number; /* as in the tables */
    uint8_t incarnation[CLICKHOUSE_INCARNATION_SIZE], salt[CLICKHOUSE_SALT_SIZE];
};

/* Draws both: for new tables, and after the tables were restored from a backup. Then hosts send again what the backup
 * may lack, and no ETag of before is used again. INTERNAL: there are no random numbers. */
enum profd_status clickhouse_draw_state(struct clickhouse_state *out, struct profd_error *e);
/* Reads what a server has; *found: it has some. Errors as clickhouse_ask, for all that ask. */
enum profd_status clickhouse_get_state(struct clickhouse *c, const struct clickhouse_address *address,
                                       struct clickhouse_state *out, bool *found, struct profd_error *e);
enum profd_status clickhouse_put_state(struct clickhouse *c, const struct clickhouse_address *address,
                                       const struct clickhouse_state *state, struct profd_error *e);
/* All that arrived before this time (ns) is in a backup: hosts may remove it. */
enum profd_status clickhouse_put_backup(struct clickhouse *c, const struct clickhouse_address *address, int64_t before,
                                        struct profd_error *e);

#endif
