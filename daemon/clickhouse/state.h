/* Table state: what identifies the data of a centre, and what its latest backup has. */
#ifndef PROFD_CLICKHOUSE_STATE_H
#define PROFD_CLICKHOUSE_STATE_H

#include <stdint.h>

#include "clickhouse/address.h"
#include "clickhouse/client.h"
#include "proto/status.h"

/* Draws an incarnation and a salt, unless there are some. Errors as clickhouse_ask, for all three. */
enum profd_status clickhouse_draw_state(struct clickhouse *c, const struct clickhouse_address *address,
                                        struct profd_error *e);
/* Draws them anew, after the tables were restored from a backup: hosts send again what the backup may lack, and no ETag
 * of before is used again. */
enum profd_status clickhouse_renew_state(struct clickhouse *c, const struct clickhouse_address *address,
                                         struct profd_error *e);
/* All that arrived before this time (ns) is in a backup: hosts may remove it. */
enum profd_status clickhouse_set_backup(struct clickhouse *c, const struct clickhouse_address *address, int64_t before,
                                        struct profd_error *e);

#endif
