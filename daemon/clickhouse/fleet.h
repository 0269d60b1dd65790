/* Rows of table host, and how hours of hosts are marked. */
#ifndef PROFD_CLICKHOUSE_FLEET_H
#define PROFD_CLICKHOUSE_FLEET_H

#include "clickhouse/engine_internal.h"

/* A host that has arrived. Texts live in an arena. A host talks to one daemon at a time, so whatever one writes of it
 * replaces what was there. */
struct engine_host {
    uint8_t identity[STORE_HOST_SIZE];
    uint32_t slot; /* 0: it is new */
    uint32_t uid;
    const char *name, *machine, *other, *version;
    int64_t clock, restored, first, last, delivered, copied, began, not_after;
    uint64_t number; /* the greatest that its database gave */
    uint8_t epoch[SEGMENT_EPOCH_SIZE];
};

/* Loads the rows of n hosts, or, if identities is NULL, of all, in no order; those that have not arrived are not among
 * them. */
enum profd_status engine_load_hosts(struct clickhouse_store *s, struct arena *a, const uint8_t *const *identities,
                                    size_t n, struct engine_host **out, size_t *count, struct profd_error *e);
/* Appends a row, with a new number, to rows of ENGINE_HOST_COLUMNS. */
void engine_put_host(struct clickhouse_store *s, const struct engine_host *h, struct buffer *rows);
#define ENGINE_HOST_COLUMNS                                                                                            \
    "host (identity, slot, uid, name, machine, other, version, clock, restored, first, last, delivered, copied, "      \
    "began, not_after, database_number, epoch, number)"

/* Notes that something of a host is missing in an hour, for these reasons: a row of ENGINE_MARK_COLUMNS. */
void engine_put_mark(struct clickhouse_store *s, const uint8_t host[STORE_HOST_SIZE], int64_t hour, uint32_t reasons,
                     struct buffer *rows);
#define ENGINE_MARK_COLUMNS "mark (hour, host, reason, number)"

/* What answers say to readers of a tenant has changed for all its builds. */
enum profd_status engine_touch_tenant(struct clickhouse_store *s, uint32_t uid, struct profd_error *e);

#endif
