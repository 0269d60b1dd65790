/* Tables of counts: one for the calls of each thread, and shared ones for samples, sampled pairs, and calls for which
 * no thread's table could be had. Layout of the memory: proto/attach.h; what the stubs read of it: stub.h.
 *
 * A slot is claimed by setting its key from 0 with a compare-and-swap, so that a signal handler on the same thread
 * cannot be overwritten; then its identity is written; the count needs no lock: one thread adds to it (shared tables
 * add atomically). A table that gets full stays as it is, a larger one is begun: the reader sums. Nothing is ever
 * rehashed. */
#ifndef PROFD_COLLECT_TABLE_H
#define PROFD_COLLECT_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/attach.h"

struct table_entry {
    uint64_t key;
    struct attach_identity id;
};

/* The table of the calling thread, acquired on its first call: one that an ended thread left, or a new one. NULL: no
 * room. */
struct attach_chunk *table_of_thread(void);
/* Gives the calling thread's tables to whoever comes next, as they are. */
void table_release(void);

/* Adds n for the entry in the thread's table, growing it when it is full. False: no room. */
bool table_count_mine(const struct table_entry *entry, uint64_t n);
/* Gives the call one of two slots that site number `site` (from 0) has for the caller `from` in the thread's table of
 * sites, where the site's thunk looks first; what it counted before stays where it is. Nothing if both are other
 * callers', or there is no room. O(1). */
void table_prefer_site(uint32_t site, uintptr_t from, const struct attach_identity *id);
/* How many sites tables of sites have room for; set once, before there is one. At most STUB_SITES_MAX. */
void table_set_sites(uint32_t n);
uint32_t table_sites(void);

/* Adds n in the shared tables of that kind (ARCS: the overflow). False: no room. */
bool table_count_shared(enum attach_kind kind, const struct table_entry *entry, uint64_t n);

/* No key of a slot that speaks of module id may match any more: its addresses may soon be somebody else's. The counts
 * stay, and a slot comes back to life if the same call is seen again. O(slots). */
void table_retire_module(uint16_t id);

/* Sends every lookup of the stubs to the slow path, or lets them find their slots again. */
void table_switch_all(bool on);

/* In a fork's child: no tables, nobody owns any. */
void table_forget_all(void);

#endif
