/* Tables of counts: one for the calls of each thread, and shared ones for samples and for calls for which no thread's
 * table could be had. Layout of the memory: proto/attach_memory.h; what the stubs read of it: stub.h.
 *
 * A slot is claimed by setting its key from 0 with a compare-and-swap, so that a signal handler on the same thread
 * cannot be overwritten; then its identity is written; the count needs no lock: one thread adds to it (shared tables
 * add atomically). A table that gets full stays as it is, a larger one is begun: the reader sums. Nothing is ever
 * rehashed. */
#ifndef PROFD_COLLECT_COUNT_TABLE_H
#define PROFD_COLLECT_COUNT_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/attach_memory.h"

struct count_table_entry {
    uint64_t key;
    struct attach_identity id;
};

/* Releases the calling thread's tables for other threads, as they are. */
void count_table_release(void);

/* Adds n for the entry in the thread's table, which grows when it is full. False: no memory. */
bool count_table_add_mine(const struct count_table_entry *entry, uint64_t n);
/* Assigns one of the two slots of site number `site` (from 0) in the thread's table of sites to the caller `from`; the
 * site's thunk searches there first. Earlier counts stay where they are. Does nothing if both are other callers', or
 * there is no memory. O(1). */
void count_table_prefer_site(uint32_t site, uintptr_t from, const struct attach_identity *id);
/* The capacity of tables of sites; set once, before there is one. At most STUB_SITES_MAX. */
void count_table_set_sites(uint32_t n);
uint32_t count_table_sites(void);

/* Adds n in the shared tables of that kind (ARCS: the overflow). False: no memory. */
bool count_table_add_shared(enum attach_kind kind, const struct count_table_entry *entry, uint64_t n);

/* Invalidates the keys of all slots of module id, because its addresses may be reused. The counts stay, and a slot is
 * used again if the same call is seen again. O(slots). */
void count_table_retire_module(uint16_t id);

/* Makes every lookup of the stubs take the slow path, or find its slot again. */
void count_table_switch_all(bool on);

/* In a child of fork: removes all tables and their owners. */
void count_table_reset(void);

#endif
