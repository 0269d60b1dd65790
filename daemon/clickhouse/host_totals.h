/* Totals by host, of series that do not have the host among their labels. */
#ifndef PROFD_CLICKHOUSE_HOST_TOTALS_H
#define PROFD_CLICKHOUSE_HOST_TOTALS_H

#include "clickhouse/hosts.h"
#include "clickhouse/plan.h"
#include "core/share.h"

/* What a host has sent of a series in an hour, or on a day. Sums stop at 2^63−1, and inexact says so. */
struct host_total {
    const struct plan_series *series;
    uint32_t hour; /* or the day */
    uint32_t host; /* slot */
    uint64_t uploads, processes, ticks, calls;
    int64_t first, last;
    uint32_t inexact;
    const struct share *shares; /* of each build; calls: of arcs that begin or end in it */
};
/* Takes a row, as store_each_upload gives it. */
typedef enum profd_status row_sink(void *context, const struct store_row *row, struct profd_error *e);
typedef enum profd_status total_sink(void *context, const struct host_total *x, struct profd_error *e);

/* Gives the totals of n hours of the plan, which the servers add up: by series, hour and host. O(segments of the
 * hours) on the servers. */
enum profd_status totals_each_hour(const struct plan *p, const struct plan_hour *const *hours, size_t n,
                                   total_sink *each, void *context, struct profd_error *e);

/* The same, of hours of one day and all of them together. */
enum profd_status totals_of_day(const struct plan *p, const struct plan_hour *const *hours, size_t n, total_sink *each,
                                void *context, struct profd_error *e);

/* A day of a series that table host_day may have. */
struct total_day {
    uint32_t series; /* index */
    uint32_t day;
    uint64_t version; /* sum of the versions of its hours */
    bool stored;      /* set by totals_each_day: the table has all of it */
};
/* Gives what the table has of these days, which ascend by series and day; days of which the rows lack something are not
 * given. */
enum profd_status totals_each_day(const struct plan *p, struct total_day *days, size_t n, total_sink *each,
                                  void *context, struct profd_error *e);

/* Gives the totals of all series of the plan that are given so, as rows. */
enum profd_status totals_read(struct plan *p, struct host_slots *hosts, row_sink *each, void *context,
                              struct profd_error *e);

/* Inserts totals of a day: rows of TOTALS_COLUMNS. */
#define TOTALS_TABLE                                                                                                   \
    "host_day (program, series, day, generation, host, version, uploads, processes, ticks, calls, first, last, "       \
    "inexact, nanoseconds, touching)"
void totals_put(const struct host_total *x, uint64_t version, struct buffer *rows);

#endif
