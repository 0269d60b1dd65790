/* Reading what counts. */
#ifndef PROFD_CLICKHOUSE_READ_H
#define PROFD_CLICKHOUSE_READ_H

#include "clickhouse/hosts.h"
#include "clickhouse/plan.h"

typedef enum profd_status row_sink(void *context, const struct store_row *row, struct profd_error *e);

/* What rows of a series share. */
struct store_row read_begin_row(const struct plan_series *x);
/* A number that differs for different numbers, most likely. */
uint64_t read_mix(uint64_t a, uint64_t b);

/* Gives totals by host of the series that are given so; hours of the plan are known. any: not NULL: only says whether
 * there is one. */
enum profd_status totals_read(struct plan *p, struct host_slots *hosts, row_sink *each, void *context, bool *any,
                              struct profd_error *e);

/* Has a host that the filter's matchers select totals in its range, with functions that are not kept by host? */
enum profd_status engine_has_totals(struct clickhouse_store *s, const struct store_scope *scope,
                                    const struct store_filter *filter, bool *any, struct profd_error *e);

#endif
