/* The random groups of a load: what each brought to every bin and arc (schema/spread.md). */
#ifndef PROFD_QUERY_LOAD_SHARES_H
#define PROFD_QUERY_LOAD_SHARES_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/shares.h"
#include "proto/status.h"
#include "store/store.h"

struct load_shares;

/* Lives in the arena, with the shares. Ended by load_shares_done. */
struct load_shares *load_shares_new(struct arena *a);
/* Accepts NULL. The shares stay. */
void load_shares_done(struct load_shares *l);

/* Adds a row that was read with its spread; map as for profile_sum_add, and as long-lived as the load. DAMAGED names
 * the rule. */
enum profd_status load_shares_add(struct load_shares *l, const struct store_row *row, const uint32_t *map,
                                  struct profd_error *e);

/* All rows were added, and p is their sum: its shares. alone: as load_request. */
enum profd_status load_shares_finish(struct load_shares *l, const struct profile *p, bool alone, struct shares *out,
                                     struct profd_error *e);

#endif
