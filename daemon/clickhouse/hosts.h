/* Hosts by their slots (table host), for sums that have a set of hosts. */
#ifndef PROFD_CLICKHOUSE_HOSTS_H
#define PROFD_CLICKHOUSE_HOSTS_H

#include "clickhouse/engine_internal.h"

struct host_slot {
    const char *identity, *name; /* identity: 32 hexadecimal digits */
};

/* Read from the table when the first slot is asked for. */
struct host_slots {
    struct clickhouse_store *s;
    struct arena *arena;    /* of the texts */
    struct hashmap by_slot; /* slot → struct host_slot */
    bool loaded;
};

void host_slots_init(struct host_slots *h, struct clickhouse_store *s, struct arena *a);
void host_slots_done(struct host_slots *h);
/* The host of a slot. BUSY: none has it. O(1), the first time O(hosts). */
enum profd_status host_slots_find(struct host_slots *h, uint32_t slot, const struct host_slot **out,
                                  struct profd_error *e);

#endif
